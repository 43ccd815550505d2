"""Checks at the border: every bad value is refused by name."""

import ast
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet import _checks
from discreet.errors import DiscreetError, InvalidArgument

Check = Callable[..., object]

NUMBERS: list[Check] = [
    _checks.positive,
    _checks.not_negative,
    _checks.probability,
    _checks.delta,
    _checks.finite,
    _checks.count,
    _checks.positive_count,
]
NEVER = [
    math.nan,
    math.inf,
    -math.inf,
    np.float64("nan"),
    Decimal("NaN"),
    Decimal("sNaN"),
    Decimal("Infinity"),
    True,
    False,
    np.True_,
    "1",
    "",
    b"1",
    None,
    1j,
    [1],
    (1,),
    {},
    np.array([1]),
    object,
    10**2000,
    Decimal("1e-999999999"),
]


@pytest.mark.parametrize("check", NUMBERS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("value", NEVER, ids=lambda value: repr(value)[:20])
def test_values_other_than_finite_numbers_are_refused(check: Check, value: object) -> None:
    with pytest.raises(InvalidArgument, match=r"^width = "):
        check(width=value)


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (_checks.positive, [5e-324, 1, 1e308], [0, 0.0, -0.0, -1, Fraction(-1, 3)]),
        (_checks.not_negative, [0, -0.0, 5e-324, 7], [-5e-324, -1]),
        (_checks.probability, [5e-324, 0.5, Fraction(10**20 - 1, 10**20)], [0, 1, 1.5, -0.1]),
        (_checks.delta, [0, 5e-324, Fraction(10**20 - 1, 10**20)], [1, 1.0, 2, -1e-9]),
        (_checks.finite, [-1e308, 0, 1e308], []),
        (_checks.count, [0, 1, 10**30, 3.0], [-1, 0.5, Fraction(1, 2)]),
        (_checks.positive_count, [1, 10**30, 3.0], [0, -1, 1.5]),
    ],
)
def test_bounds(check: Check, good: list[float], bad: list[float]) -> None:
    for value in good:
        assert check(width=value) == Fraction(repr(value) if isinstance(value, float) else value)
    for value in bad:
        with pytest.raises(InvalidArgument, match=r"^width = .*: give a "):
            check(width=value)


@pytest.mark.parametrize(
    "value", [2, 2.0, Decimal(2), Fraction(2), np.float64(2), np.int64(2), np.int8(2)]
)
def test_every_kind_of_number_is_taken(value: object) -> None:
    assert _checks.positive(scale=value) == 2
    assert type(_checks.positive(scale=value)) is Fraction
    assert _checks.count(scale=value) == 2
    assert type(_checks.count(scale=value)) is int


def test_a_float_means_its_shortest_decimal() -> None:
    assert _checks.positive(epsilon=0.1) == Fraction(1, 10)
    assert _checks.positive(epsilon=np.float64(0.1)) == Fraction(1, 10)


def test_texts() -> None:
    assert _checks.text(purpose=" a reason ") == " a reason "
    for value in ["", "  ", "\n", None, 1, b"x", ["x"]]:
        with pytest.raises(InvalidArgument, match=r"^purpose = "):
            _checks.text(purpose=value)


def test_the_error_is_ours_and_a_value_error() -> None:
    with pytest.raises(ValueError, match="epsilon = -1: give a finite number above 0") as caught:
        _checks.positive(epsilon=-1)
    assert isinstance(caught.value, DiscreetError)


def test_a_number_of_any_length_gets_a_clear_error() -> None:
    with pytest.raises(InvalidArgument, match="thousands of digits"):
        _checks.positive(epsilon=10**5000)
    with pytest.raises(InvalidArgument, match="…: give"):
        _checks.positive(epsilon="x" * 10**6)


CONVERT = {"positive", "not_negative", "probability", "delta", "finite"} | {
    "count",
    "positive_count",
    "size",
}


def discarded(folder: Path) -> list[str]:
    """The lines that check a number and continue with the unchecked one."""
    return [
        f"{path.relative_to(folder)}:{node.lineno}"
        for path in sorted(folder.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
        and ast.unparse(node.value.func.value) == "checks"
        and node.value.func.attr in CONVERT
        and any(isinstance(given.value, ast.Name | ast.Attribute) for given in node.value.keywords)
    ]


def test_no_checked_number_is_discarded() -> None:
    """A check converts 2.0 and Decimal(2) to 2. Code that continues with its argument still has the
    unconverted number."""
    assert discarded(Path(discreet.__file__).parent) == []


def test_a_thrown_away_number_is_found(tmp_path: Path) -> None:
    (tmp_path / "caps.py").write_text("def f(n):\n    checks.size(n=n)\n    return n\n")
    assert discarded(tmp_path) == ["caps.py:2"]
