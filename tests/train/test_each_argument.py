"""Each argument of each rule: no example's rows depend on other examples, or on their place.

A rule may check some of its arguments only. So each tensor argument is in turn of examples in
another order, of one example alone, or untracked, beside arguments that are rows of examples. Then
one example's values change, or all that are untracked. Rows that the result credits to other
examples must not change. And if all examples are equal, and an argument is a constant that counts,
their rows must be equal.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from discreet.errors import Refused
from discreet.train._calls._arguments import tensors_in
from discreet.train._flow import sets_first
from discreet.train._flow._call import sees_places
from discreet.train._flow._random import is_random
from discreet.train._flow._shapes import elementwise, of_the_first
from discreet.train._flow._table import FLOW
from discreet.train._forward._capture import Capture
from discreet.train._rules import RULES
from discreet.train._tags._layouts import ExampleOrder, RowLayout
from discreet.train._tags._tag import ExampleRows, OneExample, UntrackedRows

NUMBER, WIDTH, CHANGED = 4, 3, 1
MOST = 3  # calls of each function, for each number of tensors
HOW = ("by place", "untracked", "reversed", "of one")
FIRST_CONSTANT = 100  # the number of a call's first constant; rows of examples come before
Call = tuple[Any, ...]  # Any: arguments, of several kinds
MODEL = nn.Linear(1, 1)
PARAMETERS = dict(MODEL.named_parameters())


def _floats(*shape: int) -> Tensor:
    numbers = torch.arange(torch.Size(shape).numel()).double()
    return torch.cos(1 + numbers * 1.7).abs().view(shape)


MADE = {
    "f1": _floats(NUMBER),
    "f2": _floats(NUMBER, WIDTH),
    "f3": _floats(NUMBER, WIDTH, WIDTH),
    "first": _floats(NUMBER, 1),
    "i1": torch.tensor([2, 0, 1, 0]),
    "i2": torch.arange(NUMBER * WIDTH).view(NUMBER, WIDTH) * 7 % 3,
    "m1": torch.tensor([True, True, False, True]),
    "m2": torch.arange(NUMBER * WIDTH).view(NUMBER, WIDTH) % 3 > 0,
}
ROWS = [*MADE]


@dataclass(frozen=True)
class Shared:
    """A constant argument."""

    value: Tensor


TABLES = [
    Shared(torch.zeros(NUMBER, dtype=torch.float64)),
    Shared(torch.zeros(NUMBER, WIDTH, dtype=torch.float64)),
    Shared(_floats(WIDTH, WIDTH)),
]


def calls() -> Iterator[Call]:
    """Arguments by place; a name is that of rows.

    No slice or number picks some places of the batch only: what happens to these is a decision of
    Python's, which docs/limits.md states.
    """
    for a in ROWS:
        yield from ((a,), (a, 0), (a, 1), (a, -1), (a, (slice(None), 0)))
    for a, b in product(ROWS, ROWS):
        yield from ((a, b), ([a, b],), ([a, b], 1), (a, 0, b), (a, 1, b))
        yield from ((a, (slice(None), b)), (a, (b, 0)))
    for table, b in product(TABLES, ROWS):
        yield from ((table, b), (b, table), (table, 0, b))
    for a, b, c in product(ROWS, ROWS, ["f2", "i1"]):
        yield from ((a, b, c), (a, 0, b, c), (a, (b, c)))
    for table, b, c in product(TABLES, ROWS, ["f1", "f2", "first"]):
        yield from ((table, b, c), (table, 0, b, c), (table, (b, c)))


def _filled(one: Any, found: dict[int, Tensor]) -> Any:  # Any: an argument
    """The argument with its tensors, each of which gets a number in ``found``: rows of examples
    from 0, constants from 100."""
    if isinstance(one, str):
        rows = sum(number < FIRST_CONSTANT for number in found)
        found[rows] = MADE[one].clone()
        return found[rows]
    if isinstance(one, Shared):
        constants = sum(number >= FIRST_CONSTANT for number in found)
        found[FIRST_CONSTANT + constants] = one.value.clone()
        return found[FIRST_CONSTANT + constants]
    if isinstance(one, (list, tuple)):
        return type(one)(_filled(each, found) for each in one)
    return one


CALLS: dict[int, list[Call]] = {1: [], 2: [], 3: []}  # by the number of tensors
for _call in calls():
    CALLS[len(tensors_in((_filled(_call, {}),)))].append(_call)
_FEW = {  # of the rules of very many functions
    elementwise: ["add", "__mul__", "where", "lerp", "masked_fill", "clamp", "addcmul", "copy_"],
    of_the_first: ["bucketize", "embedding", "isin", "zeros_like"],
}


def _constant(*shape: int) -> Shared:
    return Shared(_floats(*shape))


def plain_gru(data: Tensor, state: Tensor, weights: list[Tensor]) -> Any:  # Any: PyTorch's tensors
    return torch.gru(data, state, weights, True, 1, 0.0, False, False, True)


def packed_gru(
    data: Tensor, state: Tensor, weights: list[Tensor], sizes: Tensor
) -> Any:  # Any: as PyTorch has it
    """A layer of a packed sequence; all examples have three steps."""
    rows, numbers = torch._pack_padded_sequence(data, sizes, True)
    return torch.gru(rows, numbers, state, weights, True, 1, 0.0, False, False)


_GATES = [_constant(9, 3), _constant(9, 3), _constant(9), _constant(9)]
_HEADS = (_constant(9, 3), _constant(9), _constant(1, 1, 3), _constant(1, 1, 3), False, 0.0)
_PLAIN_HEADS = (_constant(9, 3), _constant(9), None, None, False, 0.0)
_PROJECTIONS = (_constant(3, 3), _constant(3, 3), _constant(3, 3))
_STATIC = (None, True, None, True, *_PROJECTIONS, _constant(4, 3, 3), _constant(4, 3, 3))
_OUT = (_constant(3, 3), _constant(3))
_STATE = Shared(torch.ones(1, NUMBER, 3, dtype=torch.float64))
LAYERS: dict[str, list[Call]] = {  # functions of many tensors
    "plain_gru": [("f3", _STATE, _GATES)],
    "packed_gru": [("f3", _STATE, _GATES, Shared(torch.full((NUMBER,), 3)))],
    "transposed_attention": [
        ("f3", "f3", "f3", 3, 1, *_HEADS, *_OUT, False),
        ("f3", "f3", "f3", 3, 1, *_HEADS, *_OUT, False, "f2", True, _constant(3, 3)),
        ("f3", "f3", "f3", 3, 1, *_PLAIN_HEADS, *_OUT, False, *_STATIC),
        (Shared(torch.ones(4, 3, 3).double()), "f3", "f3", 3, 1, *_HEADS, *_OUT, False),
    ],
}


def unique_in(values: Tensor, table: Tensor) -> Tensor:
    """Looks at neighbours among all values, if the table is long."""
    return torch.isin(values, table, assume_unique=True)


def areas(values: Tensor, points: Tensor) -> Tensor:
    """One-dimensional points lie along the given dimension, not along the last one."""
    return torch.trapezoid(values, points, dim=0)


_FIRST_ROW = Shared(torch.zeros(1, 1, dtype=torch.int64))
_SQUARE = Shared(_floats(NUMBER, 1).expand(NUMBER, NUMBER))
_LAST, _NOTHING = Shared(torch.tensor([NUMBER - 1])), Shared(torch.zeros(1, WIDTH).double())
_IS_LAST = Shared(torch.arange(NUMBER) == NUMBER - 1)
_ZERO = Shared(torch.zeros(()).double())
ODD: dict[str, list[Call]] = {  # arguments that are laid along another dimension, or end early
    "areas": [(_SQUARE, "f1"), (_SQUARE, _constant(NUMBER)), ("f2", "f1"), ("f2", "first")],
    "unique_in": [("i1", Shared(torch.arange(100, 200)))],
    "scatter": [("f2", 1, _FIRST_ROW, "f2"), ("f2", 1, _FIRST_ROW, 2.0)],
    "scatter_": [("f2", 1, _FIRST_ROW, "f2"), ("f2", 1, _FIRST_ROW, 2.0)],
    "scatter_add": [("f2", 1, _FIRST_ROW, "f2")],
    "gather": [("f2", 1, _FIRST_ROW)],
    "take_along_dim": [("f2", _FIRST_ROW, 1)],
    "__setitem__": [
        *((data, index, 0) for data in ("f2", "i1", "m2") for index in (_LAST, _IS_LAST)),
        *(("f2", index, 0.0) for index in (NUMBER - 1, slice(1, None), [0, 2], (_LAST, 0))),
        ("f2", _IS_LAST, _NOTHING),
    ],
    **{
        name: [("f2", (index,), _ZERO, adds) for index in (_LAST, _IS_LAST) for adds in (0, 1)]
        for name in ("index_put", "index_put_")
    },
    **{
        name: [("f2", 0, _LAST, Shared(_floats(1, WIDTH)))]
        for name in ("index_copy", "index_add", "index_copy_", "index_add_")
    },
}


def transposed_attention(
    query: Tensor, key: Tensor, value: Tensor, *args: Any
) -> Any:  # Any: as above
    """Attention with examples in the second dimension."""
    attention: Any = nn.functional.multi_head_attention_forward  # Any: many arguments
    return attention(*(one.transpose(0, 1) for one in (query, key, value)), *args)


def _name(function: Any) -> str:  # Any: as below
    return str(getattr(function, "__name__", ""))


def _is_tried(function: Any, rule: Any) -> bool:  # Any: functions of PyTorch's, and rules
    name = getattr(function, "__name__", "")
    is_odd = name in ("__get__", "__set__") or name.startswith(("empty", "new_empty"))
    return not is_odd and not is_random(function) and name in _FEW.get(rule, [name])


FUNCTIONS = {
    getattr(function, "__name__", ""): function
    for function, rule in FLOW.items()
    if _is_tried(function, rule)
}
FUNCTIONS |= {"areas": areas, "unique_in": unique_in}
OF_LAYERS = {one.__name__: one for one in (plain_gru, packed_gru, transposed_attention)}


def fits(function: Any, call: Call) -> bool:  # Any: as above
    try:
        function(*_filled(call, {}))
    except Exception:  # noqa: BLE001  most arguments don't fit
        return False
    return True


def _other(values: Tensor) -> Tensor:
    """Other values of the same kind."""
    if values.dtype == torch.bool:
        return ~values
    return 1.9 - values if values.is_floating_point() else (values + 1) % WIDTH


@dataclass(frozen=True)
class Outcome:
    """For each tensor of a result: its tag, and the rows that are not the changed example's."""

    tags: list[object]
    others: list[Tensor]


def outcome(
    function: Any, call: Call, odd: int, how: str, *, is_changed: bool
) -> Outcome | None:  # Any: as above
    """None if the call was refused. Argument ``odd`` is untracked, in reverse order, or of one."""
    found: dict[int, Tensor] = {}
    args = _filled(call, found)
    rows = [one for number, one in found.items() if number < FIRST_CONSTANT]
    capture = Capture(MODEL, PARAMETERS, NUMBER, RULES, batch=rows)
    tags = capture.tags
    order = torch.arange(NUMBER).flip(0)
    for number, one in found.items():
        if number == odd and how == "untracked":
            tags.set(one, UntrackedRows("another function"))
            one.copy_(_other(one) if is_changed else one)
            continue
        if number == odd and how == "of one":
            tags.set(one, OneExample(tags.every, CHANGED))
            one.copy_(_other(one) if is_changed else one)
            continue
        if number >= FIRST_CONSTANT:
            continue
        place = CHANGED
        if number == odd:
            tags.set(one, ExampleRows(0, RowLayout(ExampleOrder(NUMBER, order))))
            place = NUMBER - 1 - CHANGED
        if is_changed and how != "untracked":
            one[place] = _other(one[place])
    with capture:
        try:
            result = function(*args)
        except (Refused, RuntimeError, IndexError):
            return None
    results = [args[0]] if sets_first(function) else tensors_in((result,))
    return Outcome(
        [tags.of(each) for each in results],
        [_others(each, tags.of(each), is_any=how == "untracked") for each in results],
    )


def _others(result: Tensor, tag: object, *, is_any: bool) -> Tensor:
    """The rows of a result that must not change."""
    if isinstance(tag, UntrackedRows):
        return torch.zeros(0)
    if isinstance(tag, ExampleRows) and not is_any:
        whose = tag.layout.example_of_row(result.device)
        return result.movedim(tag.dim, 0)[whose != CHANGED]
    if isinstance(tag, OneExample) and not is_any:
        whose = tag.order.example_of_row(result.device)[tag.place]
        return torch.zeros(0) if whose == CHANGED else result
    return result


def differs_by_place(function: Any, call: Call, odd: int) -> bool:  # Any: as above
    """Whether equal examples have different rows, if argument ``odd`` counts."""
    found: dict[int, Tensor] = {}
    args = _filled(call, found)
    found = {number: one for number, one in found.items() if number < FIRST_CONSTANT}
    for number, one in found.items():
        counts = torch.arange(NUMBER).view(-1, *[1] * (one.dim() - 1)) % WIDTH
        one.copy_(counts if number == odd else one[:1].clone())
    batch = [one for number, one in found.items() if number != odd]
    capture = Capture(MODEL, PARAMETERS, NUMBER, RULES, batch=batch or [torch.zeros(NUMBER)])
    with capture:
        try:
            result = function(*args)
        except (Refused, RuntimeError, IndexError):
            return False
    for each in [args[0]] if sets_first(function) else tensors_in((result,)):
        tag = capture.tags.of(each)
        if isinstance(tag, ExampleRows):
            whose = tag.layout.example_of_row(each.device)
            plain = torch.view_as_real(each.resolve_conj()) if each.is_complex() else each
            rows = plain.movedim(tag.dim, 0).double().nan_to_num()
            several = [rows[whose == number] for number in {*whose.tolist()}]
            least = min(map(len, several), default=0)  # a constant may pick some rows twice
            if not all(torch.allclose(one[:least], several[0][:least]) for one in several):
                return True
    return False


def is_broken(function: Any, call: Call, odd: int, how: str) -> bool:  # Any: as above
    if how == "by place":
        return differs_by_place(function, call, odd)
    before = outcome(function, call, odd, how, is_changed=False)
    after = outcome(function, call, odd, how, is_changed=True)
    if before is None or after is None:
        return False
    return any(
        one.shape != other.shape or not torch.equal(one.nan_to_num(), other.nan_to_num())
        for one, other in zip(before.others, after.others, strict=True)
    )


def some_calls(function: Any) -> list[Call]:  # Any: as above
    """Calls that fit, of each number of tensors."""
    own = LAYERS.get(_name(function), []) + ODD.get(_name(function), [])
    found = [each for each in own if fits(function, each)]
    for several in CALLS.values():
        found += islice((each for each in several if fits(function, each)), MOST)
    return found


def broken(name: str) -> tuple[int, list[str]]:
    """The number of calls that were tried, and those in which examples touch."""
    function, tried, found = (FUNCTIONS | OF_LAYERS)[name], 0, list[str]()
    for call in some_calls(function):
        given: dict[int, Tensor] = {}
        _filled(call, given)
        rows = [number for number in given if number < FIRST_CONSTANT]
        several = [*product([-1], ("by place", "reversed")), *product(rows, HOW)]
        constants = given.keys() - rows
        for odd, how in [*several, *product(constants, ("untracked", "of one"))]:
            tried += 1
            if is_broken(function, call, odd, how):
                found.append(f"{call}: argument {odd} {how}")
    return tried, found


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_argument_makes_examples_touch(name: str) -> None:
    assert not broken(name)[1]


def test_rules_that_ignore_arguments_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The power: a rule that looks at its first argument only, or at none."""
    for name in ("gather", "cumsum", "where", "nonzero", "bmm", "mse_loss", "__setitem__", "sort"):
        monkeypatch.setitem(FLOW, FUNCTIONS[name], _as_the_first)
        assert broken(name)[1], name


@pytest.mark.parametrize("name", LAYERS)
def test_no_argument_of_a_layer_makes_examples_touch(name: str) -> None:
    assert some_calls(OF_LAYERS[name])[: len(LAYERS[name])] == LAYERS[name]  # all of them fit
    assert not broken(name)[1]


@sees_places
def _as_the_first(call: Any) -> Any:  # Any: a call of a rule, and its tag
    return call.tags.of(call.first)
