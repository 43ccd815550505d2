"""Intervals hold at least what they say, by the noise's exact law and in 20 000 releases."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import discreet as dp
from discreet._arrays import FloatArray
from discreet._exact import float_down, precision
from discreet.mechanisms import DiscreteLaplace, Gaussian
from discreet.noise import DiscreteLaplaceLaw, NoiseLaw, RoundedGaussianLaw
from discreet.query import AggregateFunction, Noise, Question, Table, aggregate
from discreet.query._estimates._grid import SumGrid
from discreet.query._estimates._intervals import RatioLaw
from discreet.query._expressions._aggregates import ESTIMATORS
from tests.query.kit import without_noise

FALSE_ALARM = 1e-9
GRID = SumGrid(0, 0, -50, 50)
Masses = tuple[FloatArray, FloatArray, FloatArray]


def _mass(law: NoiseLaw, reach: int) -> FloatArray:
    """P(x) for x from -reach to reach, rounded down."""
    with precision(128):
        tails = [law.tail(k) for k in range(1, reach + 2)]
        sides = [float_down((tails[k] - tails[k + 1]) / 2) for k in range(reach)]
        return np.array([*sides[::-1], float_down(1 - tails[0]), *sides])


@lru_cache(maxsize=1)
def _joint_mass(law: Callable[[Fraction], NoiseLaw], scales: tuple[Fraction, Fraction]) -> Masses:
    """The probabilities of both noises, rounded down, and the values of each. Beyond 40 times its
    scale a noise has probability e^-40 at most."""
    reaches = [math.ceil(40 * scale) for scale in scales]
    total, count = (_mass(law(s), reach) for s, reach in zip(scales, reaches, strict=True))
    of_total, of_count = (np.arange(-reach, reach + 1.0) for reach in reaches)
    return total[:, None] * count[None, :], of_total, of_count


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("slope", [-50.0, -3.0, 0.0, 0.37, 1.0, 20.0, 50.0])
@pytest.mark.parametrize(
    "scales",
    [
        (Fraction(1, 2), Fraction(1, 2)),
        (Fraction(10), Fraction(2)),
        (Fraction(30), Fraction(30)),
        (Fraction(12), Fraction(1, 3)),
        (Fraction(8), Fraction(1, 6)),
    ],
)
@pytest.mark.parametrize("is_laplace", [True, False])
def test_the_quantile_of_the_noise_of_a_ratio_is_reached(
    confidence: float, slope: float, scales: tuple[Fraction, Fraction], is_laplace: bool
) -> None:
    kind, law = (
        (DiscreteLaplace, DiscreteLaplaceLaw) if is_laplace else (Gaussian, RoundedGaussianLaw)
    )
    ratio = RatioLaw(kind(scales[0]), kind(scales[1]), GRID, Fraction(str(confidence)))
    joint, total, count = _joint_mass(law, scales)
    distances = np.abs(total[:, None] - slope * count[None, :])
    held = float(joint.sum(where=distances <= ratio.quantiles(np.array([slope]))[0]))
    assert held >= confidence - 1e-12
    if math.isfinite(flat := ratio.of_exact_count()):
        assert float(joint.sum(where=distances <= flat)) >= confidence - 1e-12
    if min(scales) >= 10 and confidence == 0.95:
        assert held <= 0.97


@pytest.mark.parametrize("kind", [DiscreteLaplace, Gaussian])
def test_a_count_that_is_nearly_exact_makes_intervals_shorter(kind: Any) -> None:
    """Over all noise, the interval of 21 in 3 rows holds 7 at its confidence, and no more often
    than it must."""
    of_total, of_count = kind(8), kind(Fraction(1, 6))
    ratio = RatioLaw(of_total, of_count, GRID, Fraction(19, 20))
    assert ratio.of_exact_count() < 0.75 * ratio.quantiles(np.array([40.0]))[0]
    total, count = _mass(of_total.law, 200), _mass(of_count.law, 2)
    noisy, rows = np.meshgrid(np.arange(-200, 201) + 21, np.arange(-2, 3) + 3)
    low, high = ratio.intervals(noisy.ravel().tolist(), rows.ravel().tolist())
    holds = ((low <= 7) & (high >= 7)).reshape(noisy.shape)
    held = float((count[:, None] * total[None, :])[holds].sum())
    assert 0.95 <= held + 1e-9 <= 0.985


def test_an_interval_is_where_the_noise_could_have_been() -> None:
    ratio = RatioLaw(DiscreteLaplace(10), DiscreteLaplace(2), GRID, Fraction(19, 20))
    (low,), (high,) = ratio.intervals([700], [100])
    assert low < 7 < high
    for inside, outside in ((low + 1e-3, low - 1e-3), (high - 1e-3, high + 1e-3)):
        assert abs(700 - inside * 100) <= ratio.quantiles(np.array([inside]))[0]
        assert abs(700 - outside * 100) > ratio.quantiles(np.array([outside]))[0]


@pytest.mark.parametrize(("total", "count"), [(0, 0), (5, 0), (-7, -3), (10**6, 3), (3, -(10**6))])
def test_an_interval_never_leaves_the_bounds(total: int, count: int) -> None:
    ratio = RatioLaw(DiscreteLaplace(10), DiscreteLaplace(2), GRID, Fraction(19, 20))
    (low,), (high,) = ratio.intervals([total], [count])
    assert -50 <= low <= high <= 50


def test_nothing_known_is_the_whole_range() -> None:
    ratio = RatioLaw(Gaussian(10**6), Gaussian(10**6), GRID, Fraction(19, 20))
    (low,), (high,) = ratio.intervals([3], [2])
    assert (low, high) == (-50, 50)


GROUPS = 20_000
FEW_GROUPS = 2_000  # whose variances take time
SIMPLE = [AggregateFunction.COUNT, AggregateFunction.SUM, AggregateFunction.AVG]
OF_OTHER_FORMS = [  # as COUNT and MEDIAN, and one without intervals
    AggregateFunction.COUNT_UNITS,
    AggregateFunction.QUANTILE,
    AggregateFunction.MODE,
]
OTHERS = [  # those of two values: test_second_moments
    one
    for one in AggregateFunction
    if one not in (*SIMPLE, *OF_OTHER_FORMS) and not ESTIMATORS[one].takes_two
]


def _question(functions: list[AggregateFunction], groups: int) -> Question:
    """Thousands of groups, each of which gets noise of its own: a release each."""
    rows = np.arange(groups * 3)
    frame = pd.DataFrame({"g": rows % groups, "x": (rows * 7919) % 51})
    columns = {"g": dp.Column.integer(keys=range(groups)), "x": dp.Column.integer(0, 50)}
    table = Table(frame, name="t", unit=dp.Unit.ROW, columns=columns)
    asked = {one.value.lower(): aggregate(one, "x") for one in functions}
    return table.group_by("g").agg(**asked)


@pytest.mark.parametrize(
    ("functions", "groups", "epsilon", "noise"),
    [
        (SIMPLE, GROUPS, 0.1, Noise.LAPLACE),
        (SIMPLE, GROUPS, 0.1, Noise.GAUSSIAN),
        (OTHERS, FEW_GROUPS, 0.1, Noise.LAPLACE),
        (OTHERS, FEW_GROUPS, 400, Noise.GAUSSIAN),
        pytest.param(OTHERS, FEW_GROUPS, 0.1, Noise.GAUSSIAN, marks=pytest.mark.long),
        pytest.param(OTHERS, FEW_GROUPS, 400, Noise.LAPLACE, marks=pytest.mark.long),
    ],
)
def test_thousands_of_releases_do_not_refute_the_confidence(
    functions: list[AggregateFunction], groups: int, epsilon: float, noise: Noise
) -> None:
    """False alarm: at most 1e-9 for each column and both bounds."""
    question = _question(functions, groups)
    truth = without_noise(question).to_pandas()
    ledger = dp.Ledger.in_memory(unit=dp.Unit.ROW, limit=dp.Limit(epsilon=999, delta=1e-6))
    released = Table.declared(question.table.source, question.table.declaration, ledger)
    answer = Question.of(released, question.query).release(
        epsilon=epsilon, delta=0 if noise is Noise.LAPLACE else 1e-6, noise=noise
    )
    frame = answer.to_pandas()
    for function in functions:
        name = function.value.lower()
        low, high = frame[f"{name}_low"], frame[f"{name}_high"]
        held = int(((low <= truth[name]) & (truth[name] <= high)).sum())
        assert binom.cdf(held, groups, 0.95) > FALSE_ALARM, f"{name}: held {held}"
        estimator = ESTIMATORS[function]
        if estimator.has_stddev and epsilon < 1:  # the bounds cut other intervals of so few rows
            assert binom.sf(held - 1, groups, 0.97) > FALSE_ALARM, f"{name}: held {held}"
        elif epsilon > 1 and not (estimator.has_stddev or estimator.is_in_ranks):  # it says much
            assert (high - low).median() < 0.95 * (high - low).max()


def test_the_test_has_power() -> None:
    """Intervals that are a bit too short are refuted: by many groups more easily."""
    assert binom.cdf(round(0.93 * GROUPS), GROUPS, 0.95) < FALSE_ALARM
    assert binom.cdf(round(0.915 * FEW_GROUPS), FEW_GROUPS, 0.95) < FALSE_ALARM


def test_quantiles_of_one_group_never_cross() -> None:
    """Also where a group is empty, and all levels are drawn without regard to one another; each
    value is within its interval."""
    frame = pd.DataFrame({"g": [0] * 30, "x": range(30), "y": range(30)})
    columns = {
        "g": dp.Column.integer(keys=[0, 1, 2]),
        "x": dp.Column.number(0, 30),
        "y": dp.Column.integer(0, 30),
    }
    ledger = dp.Ledger.in_memory(unit=dp.Unit.ROW, limit=dp.Limit(epsilon=999))
    table = dp.Table(frame, name="t", unit=dp.Unit.ROW, columns=columns, ledger=ledger)
    crossed = 0
    text = (
        "SELECT g, MAX(x) AS d, QUANTILE(x, 0.75) AS c, MEDIAN(x) AS b, MIN(x) AS a, "
        "QUANTILE(x, 0.75) - MIN(x) AS far, MEDIAN(y) AS other FROM t GROUP BY g"
    )
    for _ in range(30):
        for row in table.sql(text, epsilon=0.5).rows():
            values: list[Any] = [row[name] for name in "abcd"]
            assert values == sorted(values)
            assert row["far"] == row["c"] - row["a"]  # type: ignore[operator]  # numbers
            for name in ("a", "b", "c", "d", "other"):
                ends: Any = row[f"{name}_low"], row[f"{name}_high"]
                assert ends[0] <= row[name] <= ends[1]
            crossed += row["other"] < row["a"]  # type: ignore[operator]  # numbers
    assert crossed > 0  # another value's quantiles are left alone
