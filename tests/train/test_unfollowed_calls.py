"""Calls that tell Python about values of data, or run code where nothing is followed, are refused.

Otherwise one example decides a factor of all others' gradients.
"""

import contextlib
import random
import re
import warnings
from collections.abc import Callable, Iterator
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
from tests.train.layers import WIDTH, Layers, Use, of, summed

NUMBER = 5
Fails = Callable[[Tensor], object]


def matrices(x: Tensor) -> Tensor:
    """A positive definite matrix for each ordinary example."""
    sides = (x[:, :1] < 20)[:, :, None] * 2.0 - 1
    return torch.eye(2, dtype=x.dtype) * sides


def unless_far(x: Tensor) -> Tensor:
    """Numbers for ordinary examples; elsewhere there are none."""
    return matrices(x) + torch.where(x[:, 0] > 20, torch.nan, 0.0)[:, None, None]


def index(x: Tensor) -> Tensor:
    """0 for ordinary examples; 50 beyond every table."""
    return (x[:, 0] > 20).long() * 50


LINALG: Any = vars(torch.linalg)["LinAlgError"]  # Any: PyTorch doesn't export its type
TABLE = torch.ones(3, 2, dtype=torch.float64)
RAISES: dict[str, Fails] = {  # by values of the last example
    "cholesky": lambda x: torch.linalg.cholesky(matrices(x)),
    "inv": lambda x: torch.linalg.inv(matrices(x) + torch.eye(2, dtype=x.dtype)),
    "solve": lambda x: torch.linalg.solve(matrices(x) + torch.eye(2), torch.ones(2, dtype=x.dtype)),
    "embedding": lambda x: F.embedding(index(x), TABLE),
    "gather": lambda x: x.gather(1, index(x)[:, None]),
    "picked": lambda x: TABLE[index(x)],
    "selected": lambda x: TABLE.index_select(0, index(x)),
    "added": lambda x: torch.zeros_like(x).index_add(0, index(x), x),
    "one hot": lambda x: F.one_hot(index(x), 3),
    "classes": lambda x: F.nll_loss(x, index(x)),
    "entropy": lambda x: F.binary_cross_entropy(index(x).to(x.dtype), torch.zeros(len(x)).double()),
    "picks": lambda x: torch.multinomial(1.0 - index(x).double()[:, None].expand(-1, 2), 1),
    "coins": lambda x: torch.bernoulli(index(x).double()),
    "counts": lambda x: torch.poisson(-index(x).double()),
    "repeated": lambda x: x.repeat_interleave(-index(x), 0),
    "binned": lambda x: torch.bincount(-index(x)),
    "divided": lambda x: 1 // (50 - index(x)),
    "a condition": lambda x: torch.linalg.cond(unless_far(x)),
    "a rank": lambda x: torch.linalg.matrix_rank(unless_far(x)),
    "a norm": lambda x: torch.linalg.matrix_norm(unless_far(x), ord="nuc"),
    "a deviation": lambda x: torch.normal(x, -index(x).double()[:, None] + 1),
    "eigenvalues": lambda x: torch.linalg.eigvalsh(torch.diag_embed(x.where(x < 20, torch.nan))),
    "factors": lambda x: torch.linalg.lu_factor(matrices(x) + torch.eye(2, dtype=x.dtype)),
    "a power": lambda x: torch.linalg.matrix_power(matrices(x) + torch.eye(2).double(), -1),
    "variances": lambda x: F.gaussian_nll_loss(x[:, 0], x[:, 1], 1.0 - index(x), reduction="none"),
    "margins": lambda x: F.multi_margin_loss(x, index(x), reduction="none"),
    "bags": lambda x: F.embedding_bag(torch.arange(5) % 3, TABLE, index(x) // 5 + torch.arange(5)),
    "unpooled": lambda x: F.max_unpool1d(x[:, None], index(x)[:, None, None].expand(-1, 1, 4), [2]),
    "reduced": lambda x: torch.zeros_like(x).scatter_reduce(1, index(x)[:, None], x, "sum"),
    "reduced in place": lambda x: x.clone().scatter_reduce_(1, index(x)[:, None], x, "sum"),
    "put": lambda x: torch.zeros(3, 2, dtype=x.dtype).put_(index(x), x[:, 0]),
    "taken": lambda x: TABLE.take(index(x)),
    "index_put": lambda x: torch.zeros(3).index_put_((index(x),), torch.tensor(1.0)),
    "two indices": lambda x: TABLE[index(x), index(x) // 50],
    "indices from the end": lambda x: TABLE[-index(x)],
    "rounded": lambda x: torch.div(1, 50 - index(x), rounding_mode="floor"),
    "rounded by a method": lambda x: index(x).div(50 - index(x), rounding_mode="trunc"),
    "divided in place": lambda x: index(x).floor_divide_(50 - index(x)),
    "a remainder": lambda x: 7 % (50 - index(x)),
    "a remainder in place": lambda x: index(x).remainder_(50 - index(x)),
    "another in place": lambda x: index(x).fmod_(50 - index(x)),
    "coins in place": lambda x: torch.zeros(len(x)).bernoulli_(index(x).float()),
    "rows of a mask": lambda x: torch.zeros(len(x)).masked_scatter_(x[:, 0] > 20, torch.ones(0)),
    "picked rows": lambda x: x[x[:, 0] < 20].reshape(len(x), -1),
    "a product of rows": lambda x: x[x[:, 0] < 20] * x,
}


def caught(fails: Fails, kind: type[BaseException] = Exception) -> Use:
    """An error of one example decides a factor of all."""

    def use(m: Layers, x: Tensor) -> Tensor:
        factor = 1
        try:
            fails(x)
        except kind:
            factor = -1
        return summed(m.layer(x)) * factor

    return use


class Direct(Layers):
    """Layers that get the data as they are."""

    def forward(self, data: Tensor) -> Tensor:
        found: Tensor = self.use(self, data)
        return found


def total(use: Use, data: Tensor) -> None:
    model = Direct(use).double()
    clipped_sum(model, lambda: model(data), len(data), Flat(1.0), batch=data)


def victim(rows: int = NUMBER) -> Tensor:
    data = of(rows, WIDTH)
    data[-1] = 100.0
    return data


@pytest.mark.parametrize("name", RAISES)
def test_errors_that_losses_catch_are_refused(name: str) -> None:
    with pytest.raises(Refused, match="error that the model or its losses caught"):
        total(caught(RAISES[name]), victim())
    total(caught(RAISES[name]), of(NUMBER, WIDTH))  # ordinary examples raise none


@pytest.mark.parametrize("name", RAISES)
def test_errors_that_losses_would_catch_are_refused_before_they_are_paid(name: str) -> None:
    """No example raises one: each call fails on purpose."""
    model = Layers(caught(RAISES[name])).double()
    before = [each.detach().clone() for each in model.parameters()]
    with pytest.raises(Refused, match="catch an error of"):
        check(model, model, of(NUMBER, WIDTH))
    assert all(torch.equal(*pair) for pair in zip(before, model.parameters(), strict=True))


def without_numbers(error: BaseException) -> str:
    return re.sub(r"\d+", "", str(error))


@pytest.mark.parametrize("name", RAISES)
def test_errors_fail_on_purpose_with_their_own_type_and_text(name: str) -> None:
    """Losses that catch no other error are refused, too."""
    with pytest.raises(Exception) as real:  # noqa: PT011  of each kind
        RAISES[name](victim())

    def use(m: Layers, x: Tensor) -> Tensor:
        try:
            RAISES[name](x)
        except Exception as error:
            if type(error) is not real.type or without_numbers(error) != without_numbers(
                real.value
            ):
                raise
            return summed(m.layer(x)) * 2
        return summed(m.layer(x))

    model = Layers(use).double()
    with pytest.raises(Refused, match="catch an error of"):
        check(model, model, of(NUMBER, WIDTH))


def by_its_text(m: Layers, x: Tensor) -> Tensor:
    try:
        torch.linalg.cholesky(matrices(x))
    except RuntimeError as error:
        if "positive" not in str(error):
            raise
        return summed(m.layer(x)) * 2
    return summed(m.layer(x))


def by_its_type(m: Layers, x: Tensor) -> Tensor:
    try:
        torch.linalg.cholesky(matrices(x))
    except Exception as error:
        if type(error) is not LINALG:
            raise
        return summed(m.layer(x)) * 2
    return summed(m.layer(x))


class Catches(torch.autograd.Function):
    """Its backward pass catches an error."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:  # Any: as PyTorch has it
        ctx.save_for_backward(x)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # Any: as above
        try:
            torch.linalg.cholesky(matrices(ctx.saved_tensors[0]))
        except RuntimeError:
            return gradient * 0
        return gradient


def in_the_backward_pass(m: Layers, x: Tensor) -> Tensor:
    applied: Any = Catches.apply  # Any: PyTorch has no types
    return summed(m.layer(applied(x)))


def by_a_coin(m: Layers, x: Tensor) -> Tensor:
    return by_its_text(m, x) if torch.rand(()) > 0.5 else summed(m.layer(x))


def after_many_others(m: Layers, x: Tensor) -> Tensor:
    names = {"x": x, "i": (x[:, :1] > 0).long()}
    exec("\n".join(["x = x + 0 * x.gather(1, i)"] * 70), names)  # each is a place
    return by_its_text(m, x) + 0 * summed(names["x"])


def suppressed(m: Layers, x: Tensor) -> Tensor:
    factor = 1
    with contextlib.suppress(LINALG):
        torch.linalg.inv(matrices(x))
        factor = 2
    found: Tensor = summed(m.layer(x)) * factor
    return found


class ByType:
    """Its ``with`` statement goes on after one type of errors."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, traceback: object) -> bool:
        return kind is LINALG


@contextlib.contextmanager
def by_type() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        if type(error) is not LINALG:
            raise


def in_a_stack() -> contextlib.ExitStack:
    stack = contextlib.ExitStack()
    stack.push(lambda kind, error, traceback: kind is LINALG)
    return stack


def root_in(around: Callable[[], contextlib.AbstractContextManager[object]]) -> Use:
    def use(m: Layers, x: Tensor) -> Tensor:
        factor = 1
        with around():
            torch.linalg.cholesky(matrices(x))
            factor = 2
        return summed(m.layer(x)) * factor

    return use


class Root:
    """A property that is not there if it can't be computed."""

    def __init__(self, x: Tensor) -> None:
        self.x = x

    @property
    def root(self) -> Tensor:
        try:
            found: Tensor = torch.linalg.cholesky(matrices(self.x))
        except RuntimeError as error:
            raise AttributeError("no root") from error
        return found


def as_an_attribute(m: Layers, x: Tensor) -> Tensor:
    return summed(m.layer(x)) * (2 if hasattr(Root(x), "root") else 1)


class Rows:
    """A sequence that ends at the first IndexError."""

    def __init__(self, x: Tensor) -> None:
        self.x = x

    def __getitem__(self, number: int) -> Tensor:
        if number > 1:
            raise IndexError
        return TABLE[index(self.x)]


def as_a_sequence(m: Layers, x: Tensor) -> Tensor:
    rows: Any = Rows(x)  # Any: Python loops over it by `__getitem__`
    losses: Tensor = summed(m.layer(x)) * len([*rows])
    return losses


class Ends:
    """It computes when nothing refers to it any more, where Python ignores errors."""

    def __init__(self, x: Tensor, found: list[int]) -> None:
        self.x, self.found = x, found

    def __del__(self) -> None:
        torch.linalg.cholesky(matrices(self.x))
        self.found.append(1)


def at_its_end(m: Layers, x: Tensor) -> Tensor:
    found = list[int]()
    Ends(x, found)
    return summed(m.layer(x)) * (1 + len(found))


def as_a_generator(m: Layers, x: Tensor) -> Tensor:
    def roots() -> Iterator[int]:
        try:
            torch.linalg.cholesky(matrices(x))
            yield 1
        except RuntimeError:
            yield 2
            raise

    return summed(m.layer(x)) * next(roots())


def in_the_second_turn(m: Layers, x: Tensor) -> Tensor:
    """The same line is within `try` in one function only."""

    def factorised() -> Tensor:
        root: Tensor = torch.linalg.cholesky(matrices(x))
        return root.sum((1, 2))

    found = factorised()
    try:
        found = found + factorised()
    except RuntimeError:
        found = found * 2
    losses: Tensor = summed(m.layer(x)) * found
    return losses


def of_an_index(m: Layers, x: Tensor) -> Tensor:
    try:
        return summed(m.layer(x) * m.scale[index(x)][:, None])
    except IndexError:
        return summed(m.layer(x))


def with_other_draws(m: Layers, x: Tensor) -> Tensor:
    """Random numbers come before and after."""
    found = F.dropout(m.layer(x))
    try:
        scale = torch.linalg.det(torch.linalg.inv(matrices(x)))
    except LINALG:
        scale = torch.ones(len(x), dtype=x.dtype)
    losses: Tensor = summed(F.dropout(found)) * scale
    return losses


@pytest.mark.parametrize(
    "use",
    [
        *(suppressed, in_the_second_turn, of_an_index, with_other_draws, by_its_text, by_its_type),
        *(in_the_backward_pass, by_a_coin, after_many_others),
        *(root_in(ByType), root_in(by_type), root_in(in_a_stack)),
        *(as_an_attribute, as_a_sequence, as_a_generator),
        pytest.param(
            at_its_end,
            marks=pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
        ),
    ],
)
def test_ways_to_catch_an_error_are_found(use: Use) -> None:
    model = Layers(use).double()
    with pytest.raises(Refused, match=r"catch an error of (linalg_)?(inv|cholesky|__getitem__)"):
        check(model, model, of(NUMBER, WIDTH))


def in_the_end(m: Layers, x: Tensor) -> Tensor:
    try:
        scale = torch.linalg.det(torch.linalg.inv(matrices(x)))
    except RuntimeError as error:
        raise ValueError("no inverse") from error
    finally:
        factor = 2
    losses: Tensor = summed(m.layer(x)) * scale * factor
    return losses


def without_values(m: Layers, x: Tensor) -> Tensor:
    """A call without data may fail for all data, or for none."""
    try:
        scale = torch.linalg.inv(torch.eye(2))[0, 0]
    except RuntimeError:
        scale = torch.ones(())
    losses: Tensor = summed(m.layer(x)) * scale
    return losses


def out_of_memory(m: Layers, x: Tensor) -> Tensor:
    """No value decides this."""
    try:
        scale = torch.linalg.inv(matrices(x))
    except RuntimeError as error:
        if "out of memory" not in str(error):
            raise
        scale = torch.linalg.inv(matrices(x))
    losses: Tensor = summed(m.layer(x)) * scale[:, 0, 0]
    return losses


def of_another_kind(m: Layers, x: Tensor) -> Tensor:
    try:
        scale = torch.linalg.inv(matrices(x))
    except (IndexError, KeyError):
        scale = matrices(x)
    losses: Tensor = summed(m.layer(x)) * scale[:, 0, 0]
    return losses


def of_no_error(m: Layers, x: Tensor) -> Tensor:
    """No value makes these calls fail."""
    try:
        return summed(m.layer(x).relu().softmax(1))
    except RuntimeError:
        return summed(m.layer(x))


class Notes:
    """It looks at an error, and doesn't end it."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self.text = str(error)


@pytest.mark.parametrize(
    "use",
    [in_the_end, without_values, out_of_memory, of_another_kind, of_no_error, root_in(Notes)],
)
def test_losses_that_stop_at_an_error_train(use: Use) -> None:
    model = Layers(use).double()
    check(model, model, of(NUMBER, WIDTH))


def test_a_fallback_for_one_example_is_refused() -> None:
    """As code of Gaussian processes has it."""

    def use(m: Layers, x: Tensor) -> Tensor:
        try:
            found = torch.linalg.cholesky(matrices(x))
        except RuntimeError:  # of torch.linalg
            found = torch.linalg.cholesky(matrices(x) + 3 * torch.eye(2, dtype=x.dtype))
        scaled: Tensor = summed(m.layer(x)) * found.sum((1, 2))
        return scaled

    with pytest.raises(Refused, match="cholesky_ex"):
        total(use, victim())


@pytest.mark.parametrize("kind", [Exception, BaseException])
def test_refusals_that_losses_catch_stay_refusals(kind: type[BaseException]) -> None:
    with pytest.raises(Refused, match=r"item\(\)"):
        total(caught(lambda x: x.max().item(), kind), of(NUMBER, WIDTH))


@pytest.mark.parametrize(
    "fails", [lambda x: x.no_such_attribute, lambda _: int("a"), lambda x: x.sum("a")]
)
def test_errors_that_no_value_decides_may_be_caught(fails: Fails) -> None:
    """Those of Python itself, and of types."""
    total(caught(fails), of(NUMBER, WIDTH))


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
