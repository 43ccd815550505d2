"""Calls that tell Python about values of data, or run code where nothing is followed, are refused.

Otherwise one example decides a factor of all others' gradients.
"""

import contextlib
import random
import warnings
from collections.abc import Callable
from types import MethodType
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor, nn
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import get_gradient_edge
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.utils._device import DeviceContext
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack
from torch.utils.dlpack import from_dlpack, to_dlpack  # type: ignore[attr-defined]  # it has both

from discreet.errors import Refused
from discreet.train import Flat, check, clipped_sum
from discreet.train._randomness._secret_draws import RefuseGenerators
from tests.train.layers import WIDTH, Layers, Use, of, summed, total, victim

NUMBER = 5


class Own:
    """An argument that computes by itself."""

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # Any: PyTorch's functions and what they take
        return args[0] * args[0].max().item()


OWN: Any = Own()  # Any: no tensor


class OwnTensor(Tensor):
    """A kind of tensor that computes by itself."""

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # Any: as above
        found = super().__torch_function__(func, types, args, kwargs or {})  # type: ignore[no-untyped-call]  # PyTorch has no types
        return found.as_subclass(Tensor) if isinstance(found, Tensor) else found


class PlainKind(Tensor):
    """A kind of tensor that computes as all others."""


class Seen(TorchDispatchMode):  # type: ignore[no-untyped-call]  # PyTorch has no types
    """A mode that sees all values."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # Any: as above
        return func(*args, **(kwargs or {}))


class Reads(torch.autograd.Function):
    """Reads values in its backward pass."""

    @staticmethod
    def forward(context: Any, x: Tensor) -> Tensor:  # Any: PyTorch's context has no type
        context.save_for_backward(x)
        return x.clone()

    @staticmethod
    def backward(context: Any, rows: Tensor) -> Tensor:  # Any: as above
        found: Tensor = rows * context.saved_tensors[0].max().item()
        return found


def reads_in_backward(x: Tensor) -> Tensor:
    found = x.detach().clone().requires_grad_()
    applied: Any = Reads.apply  # Any: PyTorch has no types
    torch.autograd.grad(applied(found).sum(), found)
    return x


def weights_of_labels(x: Tensor) -> Tensor:
    """The sum over the batch of the weights by which PyTorch divides."""
    labels, weights = (x[:, 0].detach() > 0.9).long(), torch.tensor([1.0, 9.0], dtype=x.dtype)
    logits = torch.zeros(len(x), 2, dtype=x.dtype, requires_grad=True)
    node: Any = F.cross_entropy(logits, labels, weight=weights).grad_fn  # Any: it has no types
    found: Tensor = node._saved_total_weight
    return found


def place_of_the_largest(x: Tensor) -> Tensor:
    """The place in the batch of the largest number."""
    rows = x[:, 0].detach().requires_grad_()[None, None]
    node: Any = get_gradient_edge(F.adaptive_max_pool1d(rows, 1)).node.next_functions[0][0]
    found: Tensor = node._saved_result1
    return found


def by_the_engine(x: Tensor) -> Tensor:
    """The gradient of a mean over the batch, where no mode sees how it is computed."""
    found = x.detach().clone().requires_grad_()
    total, engine = found.square().mean(), vars(torch.autograd.Variable)["_execution_engine"]
    outputs = (total,), (torch.ones_like(total),), False, False, (found,), True
    gradient: Tensor = engine.run_backward(*outputs, accumulate_grad=False)[0]
    return gradient


def masked_tensor(x: Tensor, mask: Tensor) -> Any:  # Any: it has no types
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch calls it a prototype
        return torch.masked.masked_tensor(x.detach(), mask)


def times(make: Callable[[Tensor], Any]) -> Use:  # Any: a number or a tensor
    return lambda m, x: summed(m.layer(x)) * make(x)


def dispatched(m: Layers, x: Tensor) -> Tensor:
    with Seen():  # type: ignore[no-untyped-call]  # as above
        return summed(m.layer(x))


def saved(m: Layers, x: Tensor) -> Tensor:
    """A hook that gives each example another one's values in the backward pass."""
    with torch.autograd.graph.saved_tensors_hooks(lambda it: it, lambda it: it.flip(0)):
        return summed(m.layer(x).tanh())


def by_context(act: Callable[[Any], object], *, within: str = "backward") -> Use:
    """A function of one's own that does something with its context, which is a node."""

    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:  # Any: as PyTorch has it
            ctx.save_for_backward(x)
            if within == "forward":
                act(ctx)
            return 2 * x

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:  # Any: as above
            if within == "backward":
                act(ctx)
            return 2 * gradient

    apply: Any = Own.apply  # Any: PyTorch has no types
    return lambda m, x: summed(apply(m.layer(x).tanh()))


CONTEXTS: dict[str, Use] = {
    "next nodes": by_context(lambda ctx: ctx.next_functions),
    "next nodes of the running node": by_context(
        lambda _: torch._C._current_autograd_node().next_functions
    ),
    "a hook": by_context(lambda ctx: ctx.register_hook(lambda *_: None), within="forward"),
    "a hook before": by_context(lambda ctx: ctx.register_prehook(lambda _: None), within="forward"),
    "saved tensors": by_context(lambda ctx: ctx._raw_saved_tensors),
}


@pytest.mark.parametrize("name", CONTEXTS)
def test_contexts_of_functions_show_no_graph(name: str) -> None:
    """Their next nodes hold what all examples saved, and hooks get all gradients."""
    model = Layers(CONTEXTS[name]).double()
    with pytest.raises(Refused, match=r"Own \(torch.autograd.Function\) uses ctx\."):
        check(model, model, of(NUMBER, WIDTH))
    with pytest.raises(Refused):  # the same in a step
        clipped_sum(model, lambda: model(of(NUMBER, WIDTH)), NUMBER, Flat(1.0))
    usual = by_context(lambda ctx: (ctx.saved_tensors, ctx.needs_input_grad))
    model = Layers(usual).double()
    check(model, model, of(NUMBER, WIDTH))
    assert not {"next_functions", "register_hook"} & {*vars(BackwardCFunction)}


CALLS: dict[str, tuple[Use, str]] = {
    "quantization": (
        times(lambda x: torch._choose_qparams_per_tensor(x.float(), False)[0]),
        "Python read values.*_choose_qparams_per_tensor",
    ),
    "places": (times(lambda x: F.relu(x).to_sparse()._nnz()), "Python read values.*_nnz"),
    "an operator": (times(lambda x: torch.ops.aten.Float.Tensor(x.max())), "Python read values"),
    "a truth": (times(lambda x: torch.ops.aten.Bool.Tensor(x.max())), "Python read values"),
    "closeness": (times(lambda x: torch.ops.aten.allclose(x, x)), "Python read values"),
    "an address": (times(lambda x: x.data_ptr()), "Python read values.*data_ptr"),
    "a function for each": (times(lambda x: x.clone().apply_(abs).sum(1)), "apply_ calls"),
    "a function of two": (times(lambda x: x.clone().map_(x, max).sum(1)), "map_ calls"),
    "a distance": (
        lambda m, x: F.triplet_margin_with_distance_loss(
            m.layer(x),
            x,
            x,
            distance_function=lambda a, b: (a - b).sum(1) * float(x.max()),
            reduction="none",
        ),
        "Python read values.*float",
    ),
    "hooks on what is saved": (saved, "saved_tensors_hooks get values of all examples"),
    "a gradient within": (times(lambda x: reads_in_backward(x).sum(1)), "Reads .torch.autograd"),
    "an argument": (times(lambda x: torch.add(x, OWN).sum(1)), "Own, whose __torch_function__"),
    "a constant": (
        times(lambda x: (x + torch.zeros(()).as_subclass(OwnTensor)).sum(1)),
        "OwnTensor, whose __torch_function__",
    ),
    "a masked tensor": (
        lambda m, x: summed(m.layer(x)) * masked_tensor(x, x > 0).mean().get_data(),
        "MaskedTensor, whose __torch_function__",
    ),
    "a node": (times(weights_of_labels), "grad_fn of a tensor of data, or of a weight"),
    "an edge": (times(place_of_the_largest), "grad_fn of a tensor of data, or of a weight"),
    "the engine": (times(lambda x: by_the_engine(x).sum(1)), "by its private name, run_backward"),
    "a mode": (dispatched, "Seen is a TorchDispatchMode"),
}


@pytest.mark.parametrize("name", CALLS)
def test_unfollowed_calls_are_refused_before_they_are_paid(name: str) -> None:
    use, why = CALLS[name]
    model = Layers(use).double()
    with pytest.raises(Refused, match=why):
        check(model, model, of(NUMBER, WIDTH))


def a_derived_weight(weight: Tensor) -> Any:  # Any: nodes of PyTorch's graph
    return get_gradient_edge(weight * 2).node


NODES: dict[str, Callable[[Tensor], Any]] = {  # Any: as above
    "derived": lambda weight: (weight * 2).grad_fn,
    "an edge": a_derived_weight,
    "a view": lambda weight: weight.t().grad_fn,
    "the parameter's own": lambda weight: weight.view_as(weight).grad_fn.next_functions[0][0],  # type: ignore[union-attr]  # it has one
}


@pytest.mark.parametrize("name", NODES)
def test_nodes_of_weights_are_not_shown(name: str) -> None:
    """Hooks on a node run twice, for norms and for the sum, and may tell these apart."""

    def losses(m: Layers, x: Tensor) -> Tensor:
        NODES[name](m.layer.weight).register_prehook(lambda given: given)
        return summed(m.layer(x))

    model = Layers(losses).double()
    with pytest.raises(Refused, match="or of a weight, was read"):
        check(model, model, of(NUMBER, WIDTH))


def test_a_parameter_says_that_it_has_no_node() -> None:
    model = Layers(lambda m, x: summed(m.layer(x)) * (m.layer.weight.grad_fn is None)).double()
    check(model, model, of(NUMBER, WIDTH))


def test_the_engine_is_open_outside_of_losses() -> None:
    model = Layers(lambda m, x: summed(m.layer(x))).double()
    clipped_sum(model, lambda: model(of(NUMBER, WIDTH)), NUMBER, Flat(1.0))
    x = torch.ones(2, requires_grad=True)
    with RefuseGenerators():
        assert by_the_engine(x).tolist() == [1, 1]


def saved_elsewhere(m: Layers, x: Tensor) -> Tensor:
    with torch.autograd.graph.save_on_cpu():
        return summed(m.layer(x).tanh())


PUBLIC: dict[str, Use] = {
    "lengths": times(lambda x: len(x.t()) + x.dim() + x.element_size() + x.storage_offset()),
    "kinds": times(lambda x: x.is_complex() + x.is_contiguous() + (x.type() == "") + 1),
    "properties": times(lambda x: x.itemsize + x.is_sparse + x.ndim),
    "a kind": times(lambda x: (x + torch.zeros(()).as_subclass(PlainKind)).sum(1)),
    "saved tensors in memory": saved_elsewhere,
    "a type": times(lambda x: x.type(torch.float64).sum(1)),
    "a gradient within": times(
        lambda x: torch.autograd.grad(
            (found := x.detach().clone().requires_grad_()).square().sum(), found
        )[0].shape[1]
    ),
}


@pytest.mark.parametrize("name", PUBLIC)
def test_public_facts_may_be_read(name: str) -> None:
    model = Layers(PUBLIC[name]).double()
    check(model, model, of(NUMBER, WIDTH))


Register = Callable[[nn.Module, Any], Any]  # Any: a hook and its handle


def of_one(name: str) -> Register:
    return lambda module, hook: getattr(module, name)(hook)


def of_all(name: str) -> Register:
    return lambda _, hook: getattr(nn.modules.module, name)(hook)


def registering(space: Any, begin: str) -> list[str]:  # Any: a class or a module
    return [name for name in vars(space) if name.startswith(begin) and "backward" in name]


HOOKS = {name: of_one(name) for name in registering(nn.Module, "register_")}
EVERYWHERE = {name: of_all(name) for name in registering(nn.modules.module, "register_module_")}


def nothing(module: nn.Module, given: Any, result: Any = None) -> None:  # Any: gradients
    """A hook that changes nothing."""


def hooked(model: Layers, register: str) -> None:
    HOOKS[register](model.layer, nothing)


@pytest.mark.parametrize("register", HOOKS)
def test_hooks_on_backward_passes_of_modules_are_refused(register: str) -> None:
    """A hook on a backward pass receives the gradients of all examples together."""
    model = Layers(lambda m, x: summed(m.layer(x))).double()
    hooked(model, register)
    with pytest.raises(Refused, match=r"layer \(Linear\) has a hook on its backward"):
        check(model, model, of(NUMBER, WIDTH))
    other = Layers(lambda m, x: summed(model.layer(m.layer(x)))).double()
    model.layer.requires_grad_(False)
    with pytest.raises(Refused, match="a module that the losses use has a hook"):
        check(other, other, of(NUMBER, WIDTH))


@pytest.fixture
def of_either_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch remembers whether hooks of all modules were full ones."""
    monkeypatch.setattr(nn.modules.module, "_global_is_full_backward_hook", None)


@pytest.mark.usefixtures("of_either_kind")
@pytest.mark.parametrize("register", HOOKS | EVERYWHERE)
def test_hooks_are_refused_that_go_before_the_losses_end(register: str) -> None:
    def losses(m: Layers, x: Tensor) -> Tensor:
        handle = (HOOKS | EVERYWHERE)[register](m.layer, nothing)
        try:
            return summed(m.layer(x))
        finally:
            handle.remove()

    model = Layers(losses).double()
    with pytest.raises(Refused, match="a module that the losses use has a hook"):
        check(model, model, of(NUMBER, WIDTH))


@pytest.mark.usefixtures("of_either_kind")
@pytest.mark.parametrize("register", HOOKS | EVERYWHERE)
def test_hooks_that_only_rare_rows_reach_are_refused(register: str) -> None:
    """Made-up examples don't show them, so a step must."""

    def losses(m: Layers, x: Tensor) -> Tensor:
        if len(x[x[:, 0] > 30]) > 0:
            handle = (HOOKS | EVERYWHERE)[register](m.layer, lambda *_: None)
            try:
                return summed(m.layer(x))
            finally:
                handle.remove()
        return summed(m.layer(x))

    model = Layers(losses).double()
    check(model, model, of(NUMBER, WIDTH))
    with pytest.raises(Refused, match="a module that the losses use has a hook"):
        total(losses, victim())


@pytest.mark.usefixtures("of_either_kind")
@pytest.mark.parametrize("register", EVERYWHERE)
def test_hooks_on_all_modules_are_refused(register: str) -> None:
    model = Layers(lambda m, x: summed(m.layer(x))).double()
    handle = EVERYWHERE[register](model, nothing)
    try:
        with pytest.raises(Refused, match="has a hook on its backward"):
            check(model, model, of(NUMBER, WIDTH))
    finally:
        handle.remove()


def amplified(gradient: Tensor) -> Tensor:
    """Large entries become larger: made-up examples don't show it."""
    return torch.where(gradient.abs() > 5, gradient * 1e3, gradient)


@pytest.mark.parametrize("register", ["register_hook", "register_post_accumulate_grad_hook"])
def test_hooks_of_parameters_are_refused(register: str) -> None:
    model = Layers(lambda m, x: summed(m.layer(x))).double()
    getattr(model.layer.weight, register)(amplified)
    with pytest.raises(Refused, match=r"layer.weight has a hook on its backward"):
        check(model, model, of(NUMBER, WIDTH))


HOOKED: dict[str, Callable[[Layers, Tensor], Tensor]] = {
    "parameter": lambda m, x: m.layer.weight,
    "view": lambda m, x: m.layer.weight.t(),
    "derived": lambda m, x: m.layer.weight * 2,
    "data": lambda m, x: m.layer(x),
    "constant": lambda m, x: torch.zeros(3, requires_grad=True),
}


@pytest.mark.parametrize("name", HOOKED)
def test_hooks_of_tensors_are_refused_in_the_losses(name: str) -> None:
    def losses(m: Layers, x: Tensor) -> Tensor:
        HOOKED[name](m, x).register_hook(amplified)  # type: ignore[no-untyped-call]  # PyTorch's
        return summed(m.layer(x))

    model = Layers(losses).double()
    with pytest.raises(Refused, match="register_hook may change gradients"):
        check(model, model, of(NUMBER, WIDTH))


@pytest.mark.parametrize("derive", [lambda w: w.t(), lambda w: w[1:, ::2], lambda w: w * 2])
def test_hooks_in_the_graph_of_a_weight_make_no_sum_longer(derive: Callable[[Tensor], Any]) -> None:
    """Nothing intercepts how a node is read here."""

    def losses(m: Layers, x: Tensor) -> Tensor:
        weight = derive(m.layer.weight)
        with torch._C.DisableTorchFunction():
            node = weight.grad_fn
        node.register_prehook(lambda given: tuple(map(amplified, given)))
        found: Tensor = (weight.sum() * x).sum(1)
        return found

    model, x = Layers(losses).double(), of(1, WIDTH) + 40
    contribution = clipped_sum(model, lambda: model(x), 1, Flat(1.0), batch=x)
    assert 0.99 < float(torch.cat([one.flatten() for one in contribution.sums]).norm()) <= 1


def test_modes_around_a_run_are_refused() -> None:
    model = Layers(lambda m, x: summed(m.layer(x)) * random.random()).double()
    with Seen(), pytest.raises(Refused, match="Seen"):  # type: ignore[no-untyped-call]  # as above
        check(model, model, of(NUMBER, WIDTH))


class Changes(TorchFunctionMode):
    """A mode that changes results where values are large."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # Any: as above
        found = func(*args, **(kwargs or {}))
        if func is F.linear:
            found = found + torch.where(found.abs().amax() > 30, found.flip(0) * 5, 0 * found)
        return found


def test_modes_that_change_results_after_they_are_followed_are_refused() -> None:
    model = Layers(lambda m, x: summed(m.layer(x))).double()
    with Changes(), pytest.raises(Refused, match="Changes is a TorchFunctionMode around"):
        check(model, model, of(NUMBER, WIDTH))
    with torch.device("cpu"):
        check(model, model, of(NUMBER, WIDTH))

    def within(m: Layers, x: Tensor) -> Tensor:
        with Changes():
            return summed(m.layer(x))

    model = Layers(within).double()
    with pytest.raises(Refused, match="depends on others"):
        check(model, model, of(NUMBER, WIDTH))


class OfADevice(DeviceContext):
    """A mode of a device, which PyTorch puts below all other modes, and which changes results."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # Any: as above
        return Changes().__torch_function__(func, types, args, kwargs)


def of_its_own(device: str) -> Any:  # Any: as above
    mode: Any = DeviceContext(device)
    mode.__torch_function__ = MethodType(OfADevice.__torch_function__, mode)
    return mode


@pytest.mark.parametrize("make", [OfADevice, of_its_own])
def test_modes_that_pytorch_puts_below_all_others_are_refused(make: Callable[[str], Any]) -> None:
    def losses(m: Layers, x: Tensor) -> Tensor:
        if len(x[x[:, 0] > 30]) > 0:  # made-up examples don't show it
            with make("cpu"):
                return summed(m.layer(x))
        with torch.device("cpu"):
            return summed(m.layer(x))

    model = Layers(losses).double()
    check(model, model, of(NUMBER, WIDTH))
    for device in (contextlib.nullcontext(), torch.device("cpu")):
        with device, pytest.raises(Refused, match="is a TorchFunctionMode around the training"):
            total(losses, victim())


@pytest.mark.parametrize("make", [Changes, Seen])
@pytest.mark.parametrize("fails", [False, True])
def test_modes_that_losses_leave_open_are_refused_and_closed(
    make: Callable[[], Any], *, fails: bool
) -> None:
    def losses(m: Layers, x: Tensor) -> Tensor:
        found = summed(m.layer(x))
        make().__enter__()
        if fails:
            raise ValueError("in the end")
        return found

    model = Layers(losses).double()
    with pytest.raises(Refused, match="in the end" if fails else "did not leave"):
        check(model, model, of(NUMBER, WIDTH))
    assert not _get_current_function_mode_stack()  # type: ignore[no-untyped-call]  # as above
    assert not _get_current_dispatch_mode_stack()


def exchanged(x: Tensor, by: Callable[[Tensor, Tensor], object]) -> Tensor:
    """Rows that became those of other examples."""
    rows = x * 1
    by(rows, x.flip(0).contiguous())
    return rows


def swapped(rows: Tensor, others: Tensor) -> None:
    """As torch.utils.swap_tensors does."""
    torch._C._swap_tensor_impl(rows, others)


DLPACK: Any = torch.utils.dlpack  # Any: PyTorch has no types
TENSOR: Any = Tensor  # Any: as above
SWAP: Any = torch.utils.swap_tensors  # Any: as above


def through_a_capsule(x: Tensor) -> Tensor:
    found: Tensor = DLPACK.from_dlpack(DLPACK.to_dlpack(x.detach())).flip(0)
    return found


UNSEEN: dict[str, Callable[[Tensor], Tensor]] = {
    "set_": lambda x: exchanged(x, TENSOR.set_),
    "swap_tensors": lambda x: exchanged(x, swapped),
    "a private set": lambda x: exchanged(x, torch._functionalize_unsafe_set),
    "view_func": lambda x: TENSOR._view_func(x[0], x.flip(0).contiguous()).expand(len(x), -1),
    "to_dlpack": through_a_capsule,
    "from_dlpack": lambda x: from_dlpack(to_dlpack(x.detach())).flip(0),
    "an array": lambda x: torch.from_numpy(np.from_dlpack(x.detach()).copy()).flip(0),
}


@pytest.mark.parametrize("name", UNSEEN)
def test_functions_that_no_mode_intercepts_are_refused(name: str) -> None:
    """In a step, where no dispatcher is asked."""
    with pytest.raises(Refused, match="was called within the losses: no call shows"):
        total(lambda m, x: summed(m.layer(UNSEEN[name](x))), victim())
    plain = torch.zeros(2)
    TENSOR.set_(plain, torch.ones(3))
    SWAP(plain, torch.ones(4))
    assert plain.tolist() == [1] * 4
    assert "set_" not in vars(Tensor)


class Counts(TorchFunctionMode):
    """Counts calls."""

    number = 0

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # Any: as above
        self.number += 1
        return func(*args, **(kwargs or {}))


ARGUMENTS: tuple[Callable[[], tuple[Any, ...]], ...] = (  # Any: arguments of any function
    *(tuple, lambda: (torch.ones(2, 2),), lambda: (torch.ones(2, 2), torch.ones(2, 2))),
    *(lambda: (0,), lambda: (0, 1), lambda: ("sum",), lambda: (torch.float64,)),
)
# a copy, or facts that depend on no values
HARMLESS = frozenset({"_fix_weakref", "_has_symbolic_sizes_strides", "_use_count"})


def is_unseen(name: str) -> bool:
    """Whether a method of tensors gives a tensor, or changes one, by a call that no mode sees."""
    for make in ARGUMENTS:
        first, others, counts = torch.ones(2, 2), make(), Counts()
        tensors = [first, *(each for each in others if isinstance(each, Tensor))]
        try:
            with counts:
                found = getattr(first, name)(*others)
        except Exception:  # noqa: BLE001  # no arguments for it
            continue
        is_changed = any(one._version for one in tensors)
        return not counts.number and (is_changed or isinstance(found, Tensor))
    return False


def test_no_other_method_of_tensors_hides_from_modes() -> None:
    names = [each for each in dir(Tensor) if not each.startswith("__")]
    found = {each for each in names if each not in HARMLESS and is_unseen(each)}
    assert {"set_"} <= found <= {"set_", "_view_func", "_view_func_unsafe", "_rev_view_func_unsafe"}
