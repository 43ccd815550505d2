"""Losses that catch errors of calls with data are refused, before the charge where that shows.

Otherwise one example decides a factor of all others' gradients.
"""

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor

from discreet.errors import Refused
from discreet.train import check
from tests.train.layers import WIDTH, Layers, Use, of, summed, total, victim

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
