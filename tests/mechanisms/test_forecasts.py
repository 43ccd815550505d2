"""Each mechanism's forecast of its error, against draws: by `sample` itself, where data are at
their worst for that mechanism.

At the forecast no more draws may be farther off than is allowed, and 3 % below it no fewer: so
that the measured quantile is within 3 % of the forecast. Each of the two is wrong by chance in
fewer than one of 10^9 runs, by the exact binomial law; forecasts that are proven bounds and no
more are asked the first alone. 10^5 draws where a call draws many, and by the `long` test for all.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from scipy.stats import binom

from discreet.noise import Bits, SecureBits
from tests.mechanisms.registry import CASES
from tests.mechanisms.worst_case import CONFIDENCE, Forecast

MANY, SOME = 100_000, 400
ALARM = 1e-9
SHORTER = Fraction(97, 100)

FORECASTS = {name: case.forecast for name, case in CASES.items() if case.forecast is not None}


def smaller(error: Any) -> Any:
    """3 % less, of whole errors rounded down."""
    return math.floor(SHORTER * error) if isinstance(error, int) else SHORTER * error


def assert_as_forecast(case: Forecast, draws: int) -> None:
    allowed, bits = float(1 - CONFIDENCE), SecureBits()
    assert case.far(case.mechanism, case.error, draws, bits) <= binom.isf(ALARM, draws, allowed)
    if not case.is_bound:
        nearer = case.far(case.mechanism, smaller(case.error), draws, bits)
        assert nearer >= binom.ppf(ALARM, draws, allowed)


@pytest.mark.parametrize("name", FORECASTS)
def test_errors_are_as_forecast(name: str) -> None:
    case = FORECASTS[name]
    assert_as_forecast(case, MANY if case.is_batch else SOME)


@pytest.mark.long
@pytest.mark.parametrize("name", FORECASTS)
def test_errors_are_as_forecast_over_many_draws(name: str) -> None:
    assert_as_forecast(FORECASTS[name], MANY)


@pytest.mark.parametrize("name", ["Gaussian", "DiscreteLaplace", "Staircase"])
def test_a_forecast_that_is_a_tenth_too_large_or_too_small_is_noticed(name: str) -> None:
    case = FORECASTS[name]
    for wrong in (Fraction(9, 10), Fraction(11, 10)):
        other = Forecast(_Misstated(case.mechanism, wrong), case.far)
        with pytest.raises(AssertionError):
            assert_as_forecast(other, MANY)


@dataclass(frozen=True)
class _Misstated:
    """A mechanism that states this error."""

    inner: Any
    share: Fraction

    def sample(self, value: Any, bits: Bits) -> Any:
        return self.inner.sample(value, bits)

    def error(self, confidence: Fraction) -> int:
        return int(self.share * self.inner.error(confidence))
