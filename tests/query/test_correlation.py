"""The interval of a correlation: it holds, and one quantile decides on its width."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import discreet as dp
from discreet.query import Noise, QuestionPrice, Table
from discreet.query._answers._forecast import law
from discreet.query._estimates._correlation import CorrelationEstimator
from discreet.query._estimates._estimates import Estimates
from tests.query.kit import without_noise

DRAWS = 800
FALSE_ALARM = 1e-9
LEVEL = Fraction(95, 100)


def _drawn(rows: int, spread: float, correlation: float, noise: Noise) -> tuple[Estimates, float]:
    """The estimates of many draws at epsilon 1, and the correlation without noise."""
    random = np.random.default_rng(rows)
    x, other = random.normal(size=(2, rows))
    y = correlation * x + math.sqrt(1 - correlation**2) * other
    frame = pd.DataFrame({"x": 20 + 40 * spread * x, "y": 25 + 40 * spread * y}).clip(0, 40)
    columns = {"x": dp.Column.number(0, 40), "y": dp.Column.number(0, 40)}
    question = Table(frame, name="t", unit=dp.Unit.ROW, columns=columns).agg(r=dp.corr("x", "y"))
    plain = without_noise(question, epsilon=10**6)
    delta = 0 if noise is Noise.LAPLACE else 1e-6
    priced = question.price(QuestionPrice(1, delta, noise=noise), LEVEL)
    noisy = []
    for name in priced.plan.sources[0]:
        mechanism, sum_ = priced.mechanisms[name], int(np.atleast_1d(plain.release.value[name])[0])
        drawn = (
            random.laplace(0, float(mechanism.scale), DRAWS)
            if isinstance(mechanism, dp.DiscreteLaplace)
            else random.normal(0, float(mechanism.stddev), DRAWS)  # type: ignore[union-attr]  # of a sum
        )
        noisy.append([sum_ + round(float(step)) for step in drawn])
    made = CorrelationEstimator().estimate(law(priced, priced.plan.sources[0]), noisy, LEVEL)  # type: ignore[arg-type]  # of sums
    return made, float(frame.x.corr(frame.y))


OF_LAPLACE = [(4_000, 1 / 8, 0.5, 0.12), (4_000, 1 / 16, 0, 0.45), (300, 1 / 8, 0.95, 1.0)]
OF_GAUSSIAN = [(4_000, 1 / 8, -0.9, 0.14), (20_000, 1 / 16, 0.5, 0.09), (20, 1 / 8, 0.3, 1.0)]
WITH_NOISE = [
    *((*case, Noise.LAPLACE) for case in OF_LAPLACE),
    *((*case, Noise.GAUSSIAN) for case in OF_GAUSSIAN),
    *(pytest.param(*case, Noise.GAUSSIAN, marks=pytest.mark.long) for case in OF_LAPLACE),
    *(pytest.param(*case, Noise.LAPLACE, marks=pytest.mark.long) for case in OF_GAUSSIAN),
]


@pytest.mark.parametrize(("rows", "spread", "correlation", "widest", "noise"), WITH_NOISE)
def test_the_interval_holds_the_truth_and_is_as_wide_as_stated(
    rows: int, spread: float, correlation: float, widest: float, noise: Noise
) -> None:
    """False alarm: at most 1e-9 for each case."""
    made, true = _drawn(rows, spread, correlation, noise)
    low, high = np.array(made.low, dtype=float), np.array(made.high, dtype=float)
    held = int(((low <= true + 1e-5) & (true - 1e-5 <= high)).sum())
    assert binom.cdf(held, DRAWS, 0.95) > FALSE_ALARM
    assert np.median(high - low) / 2 <= widest
    for value, bottom, top in zip(made.values, made.low, made.high, strict=True):
        assert -1 <= bottom <= top <= 1  # type: ignore[operator]  # numbers
        assert value is None or bottom <= value <= top  # type: ignore[operator]  # the same
