"""Variances, covariances and correlations: intervals for any data, and their forecasts."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import discreet as dp
from discreet.audit import SeededBits, replay
from discreet.mechanisms import DiscreteLaplace, Gaussian
from discreet.query import (
    AggregateFunction,
    Column,
    Query,
    Question,
    QuestionPrice,
    Table,
    aggregate,
)
from discreet.query._estimates._estimates import Estimates, NoisySum, SumKind
from discreet.query._estimates._grid import SumGrid
from discreet.query._expressions._aggregates import ESTIMATORS
from discreet.query._expressions._expressions import Aggregate, ColumnRef
from tests.query.kit import arrow, asking, declarations, without_noise
from tests.query.test_replay import neighbours

FALSE_ALARM = 1e-9
LEVEL = Fraction(19, 20)
DRAWS = 1_000
REACH = 500
FUNCTIONS = [
    AggregateFunction.VARIANCE,
    AggregateFunction.STDDEV_POP,
    AggregateFunction.COVAR_SAMP,
    AggregateFunction.CORR,
]


def _points(kind: str, rows: int) -> tuple[list[int], list[int]]:
    """Pairs of numbers from -500 to 500, of several kinds."""
    random = np.random.default_rng(rows)
    one, other = random.normal(size=(2, rows))
    match kind:
        case "alike":
            x, y = 100 * one, 90 * one + 30 * other
        case "opposite":
            x, y = 300 + 50 * one, -200 - 100 * one + 20 * other
        case "at an end":
            x, y = REACH - 20 * abs(one), -REACH + 5 * abs(other)
        case "far apart":
            x, y = REACH * np.sign(one), REACH * np.sign(one + other)
        case _:
            x, y = np.full(rows, 77.0), 60 * other
    first, second = (np.clip(np.rint(side), -REACH, REACH).astype(int).tolist() for side in (x, y))
    return first, second


KINDS = ["alike", "opposite", "at an end", "far apart", "constant"]
SUMS: dict[SumKind, Callable[[list[int], list[int]], int]] = {
    SumKind.ROWS: lambda x, _: len(x),
    SumKind.CENTRED_TO_SQUARE: lambda x, _: sum(x),
    SumKind.SECOND_CENTRED: lambda _, y: sum(y),
    SumKind.SQUARES: lambda x, _: sum(p * p - REACH**2 // 2 for p in x),
    SumKind.SECOND_SQUARES: lambda _, y: sum(q * q - REACH**2 // 2 for q in y),
    SumKind.PRODUCTS: lambda x, y: sum(p * q for p, q in zip(x, y, strict=True)),
}


def _true(function: AggregateFunction, x: list[int], y: list[int]) -> float | None:
    matrix = np.cov(x, y, ddof=0)
    ratio = len(x) / (len(x) - 1)
    spread = math.sqrt(matrix[0, 0] * matrix[1, 1])
    found: dict[AggregateFunction, float | None] = {
        AggregateFunction.VARIANCE: matrix[0, 0] * ratio,
        AggregateFunction.STDDEV_POP: math.sqrt(matrix[0, 0]),
        AggregateFunction.COVAR_SAMP: matrix[0, 1] * ratio,
        AggregateFunction.CORR: matrix[0, 1] / spread if spread else None,
    }
    return found[function]


@dataclass(frozen=True)
class _Noise:
    """A kind of noise and its size: the scale for a count, and REACH times it for each factor. The
    noise of a count that has a larger part of the price is only a ``share`` of this."""

    is_laplace: bool
    scale: Fraction
    share: Fraction = Fraction(1)

    def of(self, kind: SumKind) -> DiscreteLaplace | Gaussian:
        sizes = {  # how far one row moves each sum
            SumKind.ROWS: self.share,
            SumKind.SQUARES: Fraction(REACH**2, 2),
            SumKind.SECOND_SQUARES: Fraction(REACH**2, 2),
            SumKind.PRODUCTS: Fraction(REACH**2),
        }
        made = DiscreteLaplace if self.is_laplace else Gaussian
        return made(self.scale * sizes.get(kind, REACH))


def _estimates(
    function: AggregateFunction, x: list[int], y: list[int], noise: _Noise, draws: int
) -> Estimates:
    """The estimates of this many releases of the same sums."""
    noisy = []
    for number, kind in enumerate(ESTIMATORS[function].needs):
        drawn = noise.of(kind).law.draws(SeededBits(number), draws)
        exact = SUMS[kind](x, y)
        noisy.append([exact + int(step) for step in drawn])
    return ESTIMATORS[function].estimate(_law(function, noise), noisy, LEVEL)


def _law(function: AggregateFunction, noise: _Noise) -> tuple[NoisySum, ...]:
    grid, law = SumGrid(0, 0, -REACH, REACH), []
    for kind in ESTIMATORS[function].needs:
        is_square = kind in (SumKind.SQUARES, SumKind.SECOND_SQUARES)
        own = None if kind is SumKind.ROWS else grid
        law.append(NoisySum(noise.of(kind), own, is_square * REACH**2 // 2))
    return tuple(law)


CASES = [*((kind, True) for kind in KINDS), ("alike", False), ("at an end", False)]


@pytest.mark.parametrize(("rows", "scale"), [(5, 2), (400, 2), (20_000, 12)])
@pytest.mark.parametrize(("kind", "is_laplace"), CASES)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.value)
def test_thousands_of_releases_do_not_refute_the_confidence(
    function: AggregateFunction, kind: str, rows: int, scale: int, is_laplace: bool
) -> None:
    """False alarm: at most 1e-9 for each case and bound."""
    x, y = _points(kind, rows)
    true = _true(function, x, y)
    found = _estimates(function, x, y, _Noise(is_laplace, Fraction(scale)), DRAWS)
    for value, low, high in zip(found.values, found.low, found.high, strict=True):
        assert low is not None
        assert high is not None
        assert value is None or low <= value <= high
    if true is None:  # of values without spread
        return
    near = 1e-12 * abs(true)  # the truth is rounded here
    low_ends, high_ends = (np.array(ends, dtype=float) for ends in (found.low, found.high))
    held = int(((low_ends - near <= true) & (true <= high_ends + near)).sum())
    assert binom.cdf(held, DRAWS, 0.95) > FALSE_ALARM, held
    has_room = kind in ("alike", "opposite") and rows == 20_000  # the range cuts the others
    if has_room and function is not AggregateFunction.CORR:
        assert binom.sf(held - 1, DRAWS, 0.97) > FALSE_ALARM, held


MANY = 10_000


@pytest.mark.parametrize("rows", [400, 500])
@pytest.mark.parametrize("function", FUNCTIONS[::2], ids=lambda one: one.value)
def test_a_group_of_many_rows_has_no_interval_too_wide(
    function: AggregateFunction, rows: int
) -> None:
    """Estimated means stand for the means: 98 to 99 % were held by intervals that allowed for both
    errors. False alarm: at most 1e-9 for each bound."""
    x, y = _points("alike", rows)
    true = _true(function, x, y)
    found = _estimates(function, x, y, _Noise(is_laplace=False, scale=Fraction(10)), MANY)
    low, high = np.array(found.low, dtype=float), np.array(found.high, dtype=float)
    held = int(((low <= true) & (true <= high)).sum())
    assert binom.cdf(held, MANY, 0.95) > FALSE_ALARM, held
    assert binom.sf(held - 1, MANY, 0.97) > FALSE_ALARM, held


def test_a_count_with_little_noise_makes_no_group_large() -> None:
    """The errors of means come from the noise of sums: 92 % were held when the noise of the count
    alone decided. False alarm: at most 1e-9."""
    noise = _Noise(is_laplace=False, scale=Fraction(10), share=Fraction(1, 8))
    x, y = _points("at an end", round(18 * noise.of(SumKind.ROWS).stddev_of_noise()))
    true = _true(AggregateFunction.VARIANCE, x, y)
    found = _estimates(AggregateFunction.VARIANCE, x, y, noise, 4 * DRAWS)
    low, high = np.array(found.low, dtype=float), np.array(found.high, dtype=float)
    held = int(((low <= true) & (true <= high)).sum())
    assert binom.cdf(held, 4 * DRAWS, 0.95) > FALSE_ALARM, held


def test_the_test_has_power() -> None:
    """Intervals that are a bit too short, or too long, are refuted."""
    assert binom.cdf(round(0.936 * MANY), MANY, 0.95) < FALSE_ALARM
    assert binom.sf(round(0.981 * MANY), MANY, 0.97) < FALSE_ALARM
    assert binom.cdf(round(0.9 * DRAWS), DRAWS, 0.95) < FALSE_ALARM
    assert binom.cdf(round(0.92 * 4 * DRAWS), 4 * DRAWS, 0.95) < FALSE_ALARM
    assert binom.sf(round(0.999 * DRAWS), DRAWS, 0.97) < FALSE_ALARM


# --- without noise, and forecasts ---


def _question(
    rows: int, functions: list[AggregateFunction], scale: Fraction = Fraction(1)
) -> tuple[Question, pd.DataFrame]:
    random = np.random.default_rng(rows)
    x, y, g = random.normal(3, 2, rows), random.uniform(0, 8, rows), random.integers(0, 3, rows)
    frame = pd.DataFrame({"g": g, "x": x, "y": y + x})
    frame.loc[::7, "x"] = float("nan")
    frame.loc[::5, "y"] = float("nan")
    small = frame.assign(x=frame.x * float(scale), y=frame.y * float(scale))
    columns = {
        "g": Column.integer(keys=range(4)),
        "x": Column.number(-20 * scale, 30 * scale),
        "y": Column.number(-10 * scale, 40 * scale),
    }
    table = Table(small, name="t", unit=dp.Unit.ROW, columns=columns)
    asked = {
        one.value.lower(): aggregate(one, "x", "y" if ESTIMATORS[one].takes_two else None)
        for one in functions
    }
    return table.group_by("g").agg(**asked), frame


PAIRS = [one for one in AggregateFunction if ESTIMATORS[one].takes_two]


@pytest.mark.parametrize("rows", [0, 1, 4, 900])
def test_only_rows_where_both_are_there_count(rows: int) -> None:
    question, frame = _question(rows, PAIRS)
    for answered in without_noise(question, epsilon=10**6).rows():
        group = frame[frame.g == answered["g"]].dropna()
        for function in PAIRS:
            answer = answered[function.value.lower()]
            lost = function is AggregateFunction.COVAR_SAMP
            if len(group) < 1 + lost or (function is AggregateFunction.CORR and len(group) < 2):
                assert answer is None
                continue
            matrix = np.cov(group.x, group.y, ddof=int(lost))
            spread = math.sqrt(matrix[0, 0] * matrix[1, 1])
            true = matrix[0, 1] / (spread if function is AggregateFunction.CORR else 1)
            assert answer == pytest.approx(true, rel=1e-4, abs=1e-4)


def test_swapped_arguments_and_other_functions_share_sums() -> None:
    columns = {
        "x": Column.number(0, 9),
        "y": Column.number(0, 9, null=0),
        "z": Column.integer(0, 5),
    }
    table = Table(pd.DataFrame({"x": [], "y": [], "z": []}), unit=dp.Unit.ROW, columns=columns)
    text = 'SELECT CORR(x, y), CORR(y, x), COVAR_POP(y, x), COVAR_SAMP(x, y) FROM "table"'
    assert len(table.question(text).plan.sums) == 6
    text = 'SELECT CORR(y, y * 2), VARIANCE(y), VAR_POP(y * 2), COUNT(*) FROM "table"'
    assert len(table.question(text).plan.sums) == 6
    assert len(table.question('SELECT COVAR_POP(z, z), COUNT(z) FROM "table"').plan.sums) == 3


def test_a_root_of_a_tiny_variance_is_no_zero() -> None:
    """The square of a small step is no float."""
    functions = [AggregateFunction.STDDEV, AggregateFunction.CORR]
    scale = Fraction(1, 10**171)
    tiny, plain = (_question(900, functions, each)[0] for each in (scale, Fraction(1)))
    found, true = (without_noise(one, epsilon=100).rows()[0] for one in (tiny, plain))
    for ending in ("", "_low", "_high"):
        near = pytest.approx(float(true[f"stddev{ending}"]) * float(scale), rel=0.05, abs=0.0)  # type: ignore[arg-type]  # numbers
        assert found[f"stddev{ending}"] == near
    for one in (tiny, plain):
        assert one.forecast(epsilon=100, group_size=300).lines[0].half_width > 0


@pytest.mark.parametrize("epsilon", [2, 50])
def test_a_forecast_promises_what_any_values_have(epsilon: float) -> None:
    """Values close together at an end of their bounds, close together elsewhere, and spread out."""
    for middle, spread in ((29.0, 0.01), (5.0, 0.01), (5.0, 8.0), (-15.0, 4.0)):
        random = np.random.default_rng(5)
        frame = pd.DataFrame({"x": random.normal(middle, spread, 800)})
        frame["y"] = frame.x
        columns = {"x": Column.number(-20, 30), "y": Column.number(-20, 30)}
        table = Table(frame, name="t", unit=dp.Unit.ROW, columns=columns)
        text = "SELECT VARIANCE(x), STDDEV(x), COVAR_POP(x, y) FROM t"
        question = table.question(text)
        (row,) = without_noise(question, epsilon=epsilon).rows()
        for line in question.forecast(epsilon=epsilon, group_size=800).lines:
            assert line.half_width <= line.promised * (1 + 1e-9)
            error = row[f"{line.name}_error"]
            assert isinstance(error, float)
            assert error <= 1.05 * line.promised, line


@pytest.mark.parametrize("is_laplace", [True, False])
@pytest.mark.parametrize("function", FUNCTIONS[:3], ids=lambda one: one.value)
def test_a_forecast_holds_where_noise_decides_whether_rows_are_many(
    function: AggregateFunction, is_laplace: bool
) -> None:
    """Nine in ten releases are no worse than the forecast allows, near the least number of rows
    that are many: 16 standard deviations of the noisy count, which may be two of them too small."""
    noise = _Noise(is_laplace, Fraction(10))
    law = _law(function, noise)
    for deviations in (16, 16.5, 17.5, 19):
        rows = math.ceil(deviations * law[-1].mechanism.stddev_of_noise())
        promised = ESTIMATORS[function].half_width(law, rows, LEVEL).worst
        assert promised is not None
        for kind in ("at an end", "opposite"):
            found = _estimates(function, *_points(kind, rows), noise, 80)
            assert np.quantile(np.array(found.errors, float), 0.9) <= 1.2 * promised


@settings(max_examples=12, phases=[Phase.generate])
@given(st.data())
def test_no_unit_shows_in_products(data: st.DataObject) -> None:
    declaration = data.draw(declarations())
    values = [ColumnRef("wage"), ColumnRef("age")]
    one, other = data.draw(st.permutations(values))
    function = data.draw(st.sampled_from(PAIRS))
    keys = data.draw(st.sampled_from([(), ("union",)]))
    query = Query("t", (Aggregate(function, one, "x", None, other),), keys)
    first, second = data.draw(neighbours(declaration))
    run = replay(asking(declaration, query, QuestionPrice(1)), arrow(first), arrow(second))
    assert run.facts("released"), run.events
