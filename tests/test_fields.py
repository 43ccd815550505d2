"""Frozen values by their declared fields: checks, conversions, signatures, equality, text."""

import copy
import dataclasses
import inspect
import math
import pickle
from collections.abc import Sequence
from dataclasses import KW_ONLY, InitVar
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Annotated, Any, ClassVar

import pytest

from discreet import _checks
from discreet._exact import Number
from discreet._fields import (
    Converted,
    Count,
    Delta,
    Finite,
    NotNegative,
    Positive,
    PositiveCount,
    Probability,
    Size,
    Text,
    field,
    frozen,
    optional,
)
from discreet.errors import InvalidArgument
from tests.bad_values import BAD_VALUES, BadValue

HALF = Fraction(1, 2)


class Law(Enum):
    FLAT = "flat"
    STEEP = "steep"


def rising(levels: Sequence[Number]) -> tuple[Fraction, ...]:
    exact = tuple(_checks.probability(levels=level) for level in levels)
    if list(exact) != sorted(exact):
        raise InvalidArgument(f"levels = {levels!r}: give rising ones")
    return exact


@frozen
class Noise:
    """One number."""

    kind: ClassVar[str] = "noise"

    scale: Positive


@frozen
class Wide(Noise):
    """Has more fields, some of them with defaults."""

    length: PositiveCount = 2
    _: KW_ONLY
    level: Probability = field(default=0.1, brief=True)
    law: Law = Law.FLAT
    ceiling: Annotated[Converted[Fraction | None, Number | None], optional(_checks.positive)] = (
        field(default=None, brief=True)
    )

    def __post_init__(self) -> None:
        """Refuse combinations of fields."""
        if self.scale > 100 * self.length:
            raise InvalidArgument(f"scale = {self.scale}: give at most 100 for each of the length")


@frozen
class Levels:
    """Accepts a list, stores a tuple."""

    levels: Annotated[Converted[tuple[Fraction, ...], Sequence[Number]], rising] = field(
        named=False
    )
    name: str = field(text=lambda name: f"<{len(name)} characters>", default="x")


@frozen
class Block:
    """Has an argument that is not stored, and a derived attribute."""

    length: PositiveCount
    side: InitVar[PositiveCount] = field(default=2, kw_only=True)
    area: int = field(init=False)

    def __post_init__(self, side: int) -> None:
        """Derive the area."""
        object.__setattr__(self, "area", self.length * side)


@frozen
class Same(Noise):
    """Adds nothing."""


@frozen
class Every:
    """A field of each kind."""

    positive: Positive
    not_negative: NotNegative
    probability: Probability
    delta: Delta
    finite: Finite
    count: Count
    positive_count: PositiveCount
    size: Size
    text: Text


GOOD: dict[str, Any] = {
    "positive": 0.1,
    "not_negative": 0,
    "probability": 0.5,
    "delta": 0,
    "finite": -2.5,
    "count": 0,
    "positive_count": 1,
    "size": 3,
    "text": "a",
}
NUMBERS = [0, 1, -1, 2, 0.5, 1.5, -0.5, Fraction(1, 3), Decimal("0.1"), 2**41, 10**1001]


def outcome(make: Any, **given: object) -> tuple[str, object]:
    try:
        return "held", make(**given)
    except InvalidArgument as error:
        return "refused", str(error)


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize(
    "value", [*NUMBERS, *BAD_VALUES.values()], ids=lambda given: repr(given)[:20]
)
def test_each_kind_of_field_holds_and_refuses_what_its_check_does(
    name: str, value: BadValue
) -> None:
    kind, result = outcome(Every, **{**GOOD, name: value})
    expected_kind, expected = outcome(getattr(_checks, name), **{name: value})
    assert kind == expected_kind
    if kind == "refused":
        assert result == expected
    else:
        held = getattr(result, name)
        assert (held, type(held)) == (expected, type(expected))


def test_fields_are_given_by_place_or_by_name() -> None:
    made = Wide(2.5, 3, level=0.25, law=Law.STEEP, ceiling=4)
    assert made == Wide(
        scale=Fraction(5, 2), length=3, level=Fraction(1, 4), law=Law.STEEP, ceiling=4
    )
    assert (made.scale, made.length, made.level) == (Fraction(5, 2), 3, Fraction(1, 4))
    assert Wide(1).ceiling is None
    assert Wide(1).level == Fraction(1, 10)  # a default means its decimal, not its float
    wrong: BadValue = Wide
    for given in ((1, 2, 0.25), (), (1, 2, 3, 4)):
        with pytest.raises(TypeError):
            wrong(*given)
    with pytest.raises(TypeError):
        wrong(1, other=2)


def test_the_signature_names_what_may_be_given() -> None:
    given = inspect.signature(Wide).parameters
    assert list(given) == ["scale", "length", "level", "law", "ceiling"]
    assert given["scale"].annotation == Number
    assert given["length"].annotation is int
    assert given["length"].default == 2
    assert given["level"].kind is inspect.Parameter.KEYWORD_ONLY
    assert given["ceiling"].annotation == Number | None
    assert inspect.signature(Levels).parameters["levels"].annotation == Sequence[Number]
    assert inspect.signature(Same) == inspect.signature(Noise)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Noise(0.1), "Noise(scale=0.1)"),
        (Noise(Fraction(1, 3)), "Noise(scale=1/3)"),
        (Same(2), "Same(scale=2)"),
        (Wide(2.0), "Wide(scale=2, length=2, law=Law.FLAT)"),
        (Wide(1, level=0.1), "Wide(scale=1, length=2, law=Law.FLAT)"),
        (
            Wide(1, 3, level=0.5, law=Law.STEEP, ceiling=7.5),
            "Wide(scale=1, length=3, level=0.5, law=Law.STEEP, ceiling=7.5)",
        ),
        (Levels([0.25]), "Levels((0.25,), name=<1 characters>)"),
        (Levels([0.25, HALF], "abc"), "Levels((0.25, 0.5), name=<3 characters>)"),
    ],
)
def test_values_are_written_as_in_code(value: object, text: str) -> None:
    assert repr(value) == text


@pytest.mark.parametrize("value", [Noise(0.1), Wide(1, 3, ceiling=7.5), Same(3), Levels([0.25])])
def test_values_are_equal_by_their_fields_and_come_back_from_copies(value: Any) -> None:
    others = [copy.copy(value), copy.deepcopy(value), dataclasses.replace(value)]
    others.append(pickle.loads(pickle.dumps(value)))
    for other in others:
        assert other == value
        assert hash(other) == hash(value)
        assert repr(other) == repr(value)
    assert value != Noise(7)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, dataclasses.fields(value)[0].name, 3)
    assert not hasattr(value, "__dict__")


def test_a_replaced_field_is_checked() -> None:
    assert dataclasses.replace(Noise(1), scale=0.1) == Noise(Fraction(1, 10))
    with pytest.raises(InvalidArgument, match="scale = -1"):
        dataclasses.replace(Noise(1), scale=-1)


def test_fields_are_checked_before_the_whole() -> None:
    with pytest.raises(InvalidArgument, match="scale = 201: give at most 100"):
        Wide(201)
    with pytest.raises(InvalidArgument, match="scale = nan"):
        Wide(math.nan)
    with pytest.raises(InvalidArgument, match="levels = "):
        Levels([0.5, 0.25])
    with pytest.raises(InvalidArgument, match="ceiling = 0"):
        Wide(1, ceiling=0)


def test_a_subclass_keeps_the_checks_of_its_base() -> None:
    @frozen
    class Deeper(Wide):
        more: Positive = field(default=1, kw_only=True)

    for given in ({"scale": -1}, {"length": 0}, {"level": 1}, {"more": 0}, {"scale": 500}):
        [name] = given
        with pytest.raises(InvalidArgument, match=f"{name} = "):
            Deeper(**{"scale": 1, **given})  # type: ignore[arg-type]  # wrong on purpose
    assert repr(Deeper(1, more=2.5)) == "Deeper(scale=1, length=2, law=Law.FLAT, more=2.5)"


def test_an_argument_can_be_checked_and_not_stored() -> None:
    assert (Block(3).area, Block(3, side=1).area) == (6, 3)
    assert not hasattr(Block(3), "side")
    assert list(inspect.signature(Block).parameters) == ["length", "side"]
    assert inspect.signature(Block).parameters["side"].annotation is int
    wrong: BadValue = 0.5
    for side in (0, -1, wrong):
        with pytest.raises(InvalidArgument, match="side = "):
            Block(3, side=side)


def test_a_derived_attribute_is_no_argument() -> None:
    wrong: BadValue = Block
    with pytest.raises(TypeError):
        wrong(3, area=2)
    assert repr(Block(3)) == "Block(length=3)"
    assert Block(3) == Block(3, side=1) != Block(4)
    for other in (copy.deepcopy(Block(3, side=5)), pickle.loads(pickle.dumps(Block(3, side=5)))):
        assert other.area == 15


def test_own_text_stays() -> None:
    class Term:
        __slots__ = ()

        def __repr__(self) -> str:
            return "a term"

    @frozen
    class One(Term):
        scale: Positive

    @frozen
    class Other:
        scale: Positive

        def __repr__(self) -> str:
            return "other"

    assert (repr(One(1)), repr(Other(1))) == ("a term", "other")


def test_equality_can_be_by_identity() -> None:
    @frozen(eq=False)
    class Array:
        scale: Positive

    assert Array(1) != Array(1)
    assert Array(2.5).scale == Fraction(5, 2)


def test_a_check_that_would_be_overlooked_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Late\.scale: give annotations as types, not as texts"):

        @frozen
        class Late:
            scale: "Positive"
