"""All rules together: no argument without a tag makes rows of examples differ by place.

All examples are equal here, and another argument differs from row to row: a constant, or a draw
combined with its reverse, which can't be credited. If a function's result then has a tag of rows,
all of these rows must be equal.
"""

from collections.abc import Iterator
from itertools import islice, product
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from discreet.errors import Refused
from discreet.train._flow._random import is_random
from discreet.train._flow._shapes import elementwise
from discreet.train._flow._table import FLOW
from discreet.train._forward._capture import Capture
from discreet.train._rules import RULES
from discreet.train._tags._tag import ExampleRows

NUMBER, WIDTH = 5, 3
MOST = 20  # calls of each function
BATCH = torch.full((NUMBER, WIDTH), 0.5)
SHAPES = [(NUMBER,), (NUMBER, 1), (NUMBER, WIDTH), (NUMBER, 1, WIDTH), (NUMBER, WIDTH, 1)]
PRODUCTS = ["addmm", "addmv", "baddbmm", "bmm", "local_response_norm", "matmul"]
OTHERS: list[Any] = [  # Any: arguments, of several kinds
    *(torch.ones(shape) for shape in [(), (1,), (WIDTH,), (1, WIDTH), (WIDTH, WIDTH)]),
    *(torch.ones(shape) for shape in [(1, 1, WIDTH), (NUMBER, 1, 1), (NUMBER, WIDTH, 1)]),
    *(torch.zeros(NUMBER, dtype=torch.int64), 0, 1, -1),
]
ORIGINS = {
    "a constant": lambda shape: 1.0 + torch.arange(NUMBER).view(-1, *[1] * (len(shape) - 1)),
    "a draw": lambda shape: _with_reverse(torch.rand(NUMBER, *[1] * (len(shape) - 1))),
}


def _with_reverse(drawn: Tensor) -> Tensor:
    return drawn + 2 * drawn.flip(0)


FUNCTIONS = {
    getattr(function, "__name__", ""): function
    for function in FLOW
    if FLOW[function] is not elementwise
    and not is_random(function)
    and not getattr(function, "__name__", "").startswith(("__", "empty"))
}


def calls() -> Iterator[tuple[Any, ...]]:  # Any: as above
    """Arguments by place: the data's shape as "x", that of the other one as "c"."""
    for x, c in product(SHAPES, SHAPES):
        data, other = ("x", x), ("c", c)
        yield from ((data, other), (other, data), ([data, other],), ([data, other], 1))
        for one in OTHERS:
            yield from ((data, other, one), (other, data, one), (data, one, other))
            yield from ((one, data, other), (one, other, data))


CALLS = list(calls())


def made(one: Any, origin: str) -> Any:  # Any: an argument
    if isinstance(one, list):
        return [made(each, origin) for each in one]
    if not isinstance(one, tuple):
        return one.clone() if isinstance(one, Tensor) else one
    kind, shape = one
    if kind == "c":
        return ORIGINS[origin](shape).expand(shape).clone()
    return BATCH[:, 0].view(-1, *[1] * (len(shape) - 1)).expand(shape).clone()


def fits(function: Any, given: tuple[Any, ...]) -> bool:  # Any: as above
    try:
        result = function(*(made(one, "a constant") for one in given))
    except Exception:  # noqa: BLE001  most arguments don't fit
        return False
    return isinstance(result, Tensor)


def is_broken(function: Any, given: tuple[Any, ...], origin: str) -> bool:  # Any: as above
    """Whether equal examples have different rows."""
    model = nn.Linear(1, 1)
    capture = Capture(model, dict(model.named_parameters()), NUMBER, RULES, batch=BATCH)
    with capture:
        try:
            result = function(*(made(one, origin) for one in given))
        except Refused:
            return False
        tag = capture.tags.of(result)
    if not isinstance(tag, ExampleRows) or tag.layout.length != NUMBER:
        return False
    rows = result.movedim(tag.dim, 0).to(torch.float64).nan_to_num()
    return not torch.allclose(rows, rows[:1].expand_as(rows))


def check_rules(name: str) -> None:
    function = FUNCTIONS[name]
    some = islice((each for each in CALLS if fits(function, each)), MOST)
    for given, origin in product(list(some), ORIGINS):
        assert not is_broken(function, given, origin), (given, origin)


@pytest.mark.parametrize("name", PRODUCTS)
def test_equal_examples_have_equal_rows_after_products(name: str) -> None:
    check_rules(name)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted({*FUNCTIONS} - {*PRODUCTS}))
def test_equal_examples_have_equal_rows(name: str) -> None:
    check_rules(name)


def test_many_calls_fit() -> None:
    """The power: calls that fit are found, and a product that were wrong would be seen."""
    assert sum(fits(torch.addmm, each) for each in CALLS) > 5
    assert sum(fits(torch.baddbmm, each) for each in CALLS) > 5
