"""Which tensors a function of PyTorch's changes in place, and whether PyTorch counts the change."""

import weakref
from collections.abc import Callable
from functools import lru_cache
from inspect import signature
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor

from discreet.errors import Refused
from discreet.train._calls._arguments import Args, Keywords, tensors_in

_OPERATORS = "add sub mul matmul truediv div floordiv mod pow and or xor lshift rshift"
_COUNTING = torch._C.DispatchKey.ADInplaceOrView  # noqa: SLF001  has no public name
_is_excluded = torch._C._dispatch_tls_is_dispatch_key_excluded  # noqa: SLF001  as above
_count_of_uses: Callable[[int], int] = torch._C._storage_Use_Count  # noqa: SLF001  as above
_OWN_USES = 2  # by the tensor, and by the object that Python sees
_IN_PLACE = frozenset(f"__i{name}__" for name in _OPERATORS.split())


def version_of(tensor: Tensor) -> int:
    """PyTorch's count of the changes made to a tensor in place."""
    return 0 if tensor.is_inference() else tensor._version  # noqa: SLF001  has no public name


class CountsOfChanges:
    """Refuses changes in place that leave PyTorch's count of them as it was.

    By these counts the backward pass finds that data were changed after a layer had used them.
    """

    def __init__(self) -> None:
        self._least: dict[int, tuple[weakref.ref[Tensor], int]] = {}  # by identity
        self._held: dict[int, Tensor] = {}  # tensors that share memory, which outlives them

    def note(self, changed: Tensor) -> None:
        """Note the count of a tensor that a call has just changed."""
        if _is_excluded(_COUNTING):
            raise _hidden()
        if changed.is_inference():  # it has no count, and can't be kept
            return
        self._least[id(changed)] = weakref.ref(changed), version_of(changed)
        if _is_in_shared_memory(changed):
            self._held[id(changed)] = changed

    def check(self) -> None:
        """Refuse counts that are less than when they were noted."""
        for ref, least in self._least.values():
            tensor = ref()
            if tensor is not None and version_of(tensor) < least:
                raise _hidden()


def _hidden() -> Refused:
    return Refused(
        "a change in place was hidden from PyTorch's count of changes, as by "
        "torch.autograd._unsafe_preserve_version_counter; make a new tensor instead"
    )


def _is_in_shared_memory(tensor: Tensor) -> bool:
    """Whether something else uses a tensor's memory, such as a detached copy of it."""
    try:
        memory = tensor.untyped_storage()
    except RuntimeError:  # a sparse tensor, or a wrapper of torch.func
        return True
    return _count_of_uses(memory._cdata) > _OWN_USES  # noqa: SLF001  no other name


def changed_by(func: Any, args: Args, keywords: Keywords) -> list[Tensor]:  # Any: PyTorch's
    """The tensors that a call changes in place."""
    always, inplace, out = _changes(func)
    if _writes_others(func):
        return tensors_in((args if always else args[1:], keywords.values()))
    is_first = always or _argument(inplace, "inplace", args, keywords)
    return tensors_in((_argument(out, "out", args, keywords), *(args[:1] if is_first else ())))


def _argument(place: int, name: str, args: Args, keywords: Keywords) -> Any:  # Any: as above
    return args[place] if 0 <= place < len(args) else keywords.get(name)


@lru_cache(maxsize=1024)
def _changes(func: Any) -> tuple[bool, int, int]:  # Any: as above
    """Whether a function always changes its first argument, and the places of the arguments
    ``inplace`` and ``out``, -1 if they are given by name only."""
    try:
        names = [*signature(func).parameters]
    except ValueError:  # PyTorch's own functions have no signature, and take these by name
        names = []
    places = [names.index(name) if name in names else -1 for name in ("inplace", "out")]
    name = getattr(func, "__name__", "")
    return changes_its_first(func) or name == "__set__", places[0], places[1]


@lru_cache(maxsize=1024)
def may_change(func: Any) -> bool:  # Any: as above
    """Whether a function may change an argument that is given by place."""
    return _changes(func) != (False, -1, -1) or _writes_others(func)


@lru_cache(maxsize=1024)
def _writes_others(func: Any) -> bool:  # Any: as above
    """Whether a function may write into others than its first argument, without a new version.

    Such are means over all examples, and what PyTorch's own schema says that it writes.
    """
    if func in (F.batch_norm, F.instance_norm):  # their rules refuse that
        return False
    name = getattr(func, "__name__", "").partition(".")[0]  # also of a function of torch.ops
    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{name}")  # noqa: SLF001  has no public name
    return (
        "batch_norm" in name
        or "instance_norm" in name
        or any(
            one.alias_info is not None and one.alias_info.is_write and not one.kwarg_only
            for schema in schemas
            for one in schema.arguments[1:]
        )
    )


def changes_its_first(func: Any) -> bool:  # Any: a function of PyTorch's
    """Whether a function changes its first argument in place."""
    name = getattr(func, "__name__", "")
    name = name.partition(".")[0]  # the overload of a function of torch.ops
    if name == "__setitem__" or name in _IN_PLACE:
        return True
    return name.endswith("_") and not name.endswith("__")
