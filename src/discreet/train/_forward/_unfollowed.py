"""Refuses calls that give values of data to Python, or that run Python's code unseen.

While a call of PyTorch's is computed, nothing follows what code of the user's does within it. So no
call may take functions, arguments with a ``__torch_function__`` of their own, or a
`TorchDispatchMode`. And a call with data may return tensors only, unless it is known to read no
values. An error that a call raises for some values tells Python about them, if it is caught.
"""

import sys
from typing import Any

import numpy as np
import torch
import torch.utils.checkpoint
from torch import Tensor, nn
from torch.nn.modules import module as modules
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.utils._device import DeviceContext
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from discreet.errors import Refused
from discreet.train._calls._arguments import Args, Keywords, tensors_in
from discreet.train._calls._graph import by_custom_functions, nodes, refuse_reentrant
from discreet.train._calls._objects import library_of, refuse_objects, refuse_own_operators
from discreet.train._calls._values import READS

_LIBRARIES = frozenset({"torch", "discreet"})
_NUMBERS = (bool, int, float, complex, str, bytes, np.ndarray, np.generic)
# by name: what they return depends on shapes, types and memory alone
_NAMES = """
dim ndimension size stride numel nelement element_size storage_offset dense_dim sparse_dim
dim_order get_device type is_contiguous is_floating_point is_complex is_signed is_conj is_neg
is_inference is_pinned is_shared is_same_size is_set_to is_coalesced is_distributed _is_view
has_names result_type can_cast cudnn_is_acceptable __len__ __hash__ __get__
"""
_PUBLIC = frozenset(_NAMES.split())
_PLAIN = (  # how tensors, and parameters, take part in calls
    Tensor.__torch_function__.__func__,  # type: ignore[attr-defined]  # a class method
    torch._C._disabled_torch_function_impl,  # noqa: SLF001  has no public name
)
_HOOKS = (Tensor.register_hook, Tensor.register_post_accumulate_grad_hook)
_ADDS_GRADIENTS = (torch.autograd.backward, Tensor.backward)
# types and arguments alone decide whether a call raises these
_PUBLIC_ERRORS = (AttributeError, NotImplementedError, TypeError)
_HOOKED = "BackwardHookFunctionBackward"
HOOK = (
    "has a hook on its backward pass, which may change the gradients of all examples together; "
    "remove it (gradients of single examples are clipped by the plan's clip)"
)
_hooks_on_saved = torch._C._autograd._top_saved_tensors_default_hooks  # noqa: SLF001  as above
_BACKWARD_HOOKS = ("_backward_hooks", "_backward_pre_hooks")  # of modules
_TENSOR_HOOKS = ("_backward_hooks", "_post_accumulate_grad_hooks")


def refuse_unfollowed(func: Any, types: Any, args: Args, keywords: Keywords) -> None:
    """Refuse a call that may run code of the user's."""  # Any: PyTorch's functions and types
    if own := [each for each in types if _is_own(each)]:
        raise Refused(
            f"{_name(func)} takes {own[0].__name__}, whose __torch_function__ runs where calls "
            "can't be followed; give plain tensors"
        )
    if func in _HOOKS:
        raise Refused(
            f"Tensor.{func.__name__} may change gradients of all examples together, or sums after "
            "they were clipped; train without hooks on tensors"
        )
    if (hooks := _hooks_on_saved(True)) is not None:
        _refuse_hooks_on_saved(hooks)
    refuse_objects(func, args, keywords)
    refuse_own_operators(func)
    if torch._C._len_torch_dispatch_stack():  # noqa: SLF001  has no public name
        _refuse_modes()
    if func in _ADDS_GRADIENTS:
        raise Refused(
            "backward adds to .grad, where gradients of several examples can't be followed; within "
            "the losses take gradients by torch.autograd.grad"
        )
    if func is torch.autograd.grad:
        _refuse_custom_functions(args, keywords)


def refuse_numbers(func: Any, result: object) -> None:  # Any: as above
    """Refuse a call with data that returns numbers, texts or arrays, of a function not known.

    Known reads are followed elsewhere: those of data are refused, those of random numbers count.
    """
    if result is None or isinstance(result, Tensor) or _name(func) in _PUBLIC or func in READS:
        return
    if _has_numbers(result):
        raise Refused(
            f"Python read values of data, by {_name(func)}, which returns more than tensors: what "
            "it does with them can't be credited to examples; compute with PyTorch's functions"
        )


def tells_values(error: Exception) -> bool:
    """Whether values may decide that a call raises this error; a checkpoint stops by one."""
    is_checkpoints = type(error).__module__ == torch.utils.checkpoint.__name__
    return not (is_checkpoints or isinstance(error, _PUBLIC_ERRORS))


def caught(func: Any, error: Exception) -> Refused:  # Any: as above
    """The refusal of losses that caught an error of a call with data."""
    if isinstance(error, Refused):
        return error
    return Refused(
        f"{_name(func)} raised an error that the model or its losses caught: whether values of "
        "data are valid can't be credited to examples; compute what is defined for all values, "
        "such as torch.linalg.cholesky_ex in the place of cholesky"
    )


def refuse_hooked(losses: object) -> None:
    """Refuse losses in which some module, also of another model, has a hook on its backward."""
    if isinstance(losses, Tensor) and any(one.name() == _HOOKED for one in nodes(losses)):
        raise Refused(f"a module that the losses use {HOOK}")


def refuse_backward_hooks(model: nn.Module) -> None:
    """Refuse modules and parameters with hooks that get gradients of all examples together."""
    everywhere = (modules._global_backward_hooks, modules._global_backward_pre_hooks)  # noqa: SLF001  no public name
    for name, module in model.named_modules():
        if any(vars(module).get(each) for each in _BACKWARD_HOOKS) or any(everywhere):
            raise Refused(f"{name or 'the model'} ({type(module).__name__}) {HOOK}")
    for name, parameter in model.named_parameters():
        if any(getattr(parameter, each) for each in _TENSOR_HOOKS):
            raise Refused(f"{name} {HOOK}")


def _name(func: Any) -> str:  # Any: as above
    return str(getattr(func, "__name__", "a function")).partition(".")[0]


def _is_own(kind: Any) -> bool:  # Any: a type with any attributes
    """Whether a type has another ``__torch_function__`` than PyTorch's plain tensors."""
    found = kind.__torch_function__
    return getattr(found, "__func__", found) not in _PLAIN


def _has_numbers(value: object) -> bool:
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return any(map(_has_numbers, value))
    if isinstance(value, dict):
        return any(map(_has_numbers, value.values()))
    return isinstance(value, _NUMBERS)


def _refuse_hooks_on_saved(hooks: tuple[Any, Any]) -> None:
    """Refuse hooks that get, and may change, what the backward pass needs, unless PyTorch made
    them, as for checkpoints, or we did."""  # Any: functions of the user's
    for hook in hooks:
        owner = getattr(hook, "__globals__", {})
        name = str(owner.get("__name__"))
        is_of_module = owner is getattr(sys.modules.get(name), "__dict__", None)
        if not (is_of_module and name.partition(".")[0] in _LIBRARIES):
            raise Refused(
                "saved_tensors_hooks get values of all examples where calls can't be followed, and "
                "may change gradients; use torch.utils.checkpoint or save_on_cpu to save memory"
            )


def lowest_mode() -> TorchFunctionMode | None:
    """The mode below all others, where PyTorch puts modes of devices, also within the losses."""
    is_there = torch._C._len_torch_function_stack()  # noqa: SLF001  has no public name
    return torch._C._get_function_stack_at(0) if is_there else None  # noqa: SLF001  as above


def refuse_modes_around() -> None:
    """Refuse modes of the user's around a run: they would change results after these are followed.

    Other modes within the losses change them before.
    """
    for mode in _get_current_function_mode_stack():  # type: ignore[no-untyped-call]  # PyTorch has no types
        is_own = "__torch_function__" in vars(mode) or library_of(type(mode)) not in _LIBRARIES
        if is_own:  # of calls
            is_below = isinstance(mode, DeviceContext)  # wherever it is entered
            mend = "give each tensor its device" if is_below else "enter it within the losses"
            raise Refused(
                f"{type(mode).__name__} is a TorchFunctionMode around the training, which may "
                f"change values where calls can't be followed; {mend}"
            )


def _refuse_modes() -> None:
    for mode in _get_current_dispatch_mode_stack():
        if library_of(type(mode)) not in _LIBRARIES:
            raise Refused(
                f"{type(mode).__name__} is a TorchDispatchMode, which sees and may change values "
                "where calls can't be followed; train without it"
            )


def _refuse_custom_functions(args: Args, keywords: Keywords) -> None:
    given = args[0] if args else keywords.get("outputs")
    for each in tensors_in([given]):
        refuse_reentrant(each)
        if found := by_custom_functions(each):
            raise Refused(
                f"gradients were computed within the losses{found}, whose backward can't be "
                "followed there; use PyTorch's own functions"
            )
