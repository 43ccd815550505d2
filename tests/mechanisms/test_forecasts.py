"""What each mechanism says of its error, against draws: by `sample` itself, where data are at
their worst for that mechanism.

At the forecast no more draws may be farther off than is allowed, and 3 % below it no fewer: so
that the measured quantile is within 3 % of the forecast. Each of the two is wrong by chance in
fewer than one of 10^9 runs, by the exact binomial law; forecasts that are proven bounds and no
more are asked the first alone. 10^5 draws where a call draws many, and by the `long` test for all.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.stats import binom

from discreet.accounting import PrivacyLoss, Pure
from discreet.mechanisms import (
    Bounded,
    DiscreteLaplace,
    FixedPoint,
    Grid,
    Key,
    MaxNorm,
    Rows,
)
from discreet.mechanisms.framework import MeanOfBlocks, MedianOfBlocks, ProposeTestRelease
from discreet.mechanisms.quantiles import (
    ApproximateBounds,
    Cumulative,
    InterQuartileRange,
    PermuteAndFlipQuantile,
    Quantile,
    Quantiles,
    SmoothMedian,
)
from discreet.mechanisms.selection import (
    BestOfEachGroup,
    DensestInterval,
    ExponentialMechanism,
    NoisyMax,
    PermuteAndFlip,
    TopK,
)
from discreet.mechanisms.thresholds import (
    GaussianThreshold,
    LaplaceThreshold,
    NumericSparseVector,
    PartitionSelection,
    SetUnion,
    SparseVector,
    sets_of_keys,
)
from discreet.mechanisms.trees import StreamCounter, TreeCounts
from discreet.mechanisms.tuning import NegativeBinomialRuns, Scored, Tuning
from discreet.noise import Bits, SecureBits
from discreet.noise._arrays import IndexArray
from tests.mechanisms.calls import MADE
from tests.mechanisms.kit import PERSON
from tests.mechanisms.registry import ADDITIVE, real
from tests.mechanisms.test_five_things import WHY_NOT

CONFIDENCE = Fraction(9, 10)
MANY, SOME = 100_000, 400
ALARM = 1e-9
SHORTER = Fraction(97, 100)
HALF = Fraction(1, 2)
NAMES = list("abcdefgh")
GRID = Grid(0, 99)
WIDE = Grid(0, 10**6)
LARGE = 10**6

Far = Callable[[Any, Any, int, Bits], int]  # Any: a mechanism, and its kind of error


@dataclass(frozen=True)
class Forecast:
    """A mechanism, and how many of so many draws are farther off than its kind of error, where
    that is likeliest; whether a call draws many; and whether the forecast is a bound alone."""

    mechanism: Any
    far: Far
    is_batch: bool = False
    is_bound: bool = False
    apart: int | None = None

    @property
    def error(self) -> Any:
        told = {} if self.apart is None else {"apart": self.apart}
        return self.mechanism.error(CONFIDENCE, **told)


def noise(mechanism: Any, error: Any, draws: int, bits: Bits) -> int:
    return int((abs(mechanism.sample(np.zeros(draws, np.int64), bits)) > error).sum())


def real_noise(mechanism: Any, error: Any, draws: int, bits: Bits) -> int:
    zeros = FixedPoint(np.zeros(draws, np.int64), mechanism.step)
    return int((abs(mechanism.sample(zeros, bits)) > float(error) + 1e-9).sum())


def one_by_one(is_far: Callable[[Any, Any, Bits], object]) -> Far:
    return lambda mechanism, error, draws, bits: sum(
        bool(is_far(mechanism, error, bits)) for _ in range(draws)
    )


def largest_noise(mechanism: Any, error: int, bits: Bits) -> bool:
    return bool(abs(mechanism.sample(np.zeros(3, np.int64), bits)).max() > error)


def one_best(mechanism: Any, error: int, bits: Bits) -> bool:
    """One is the best, all others fall behind by more; it is the last one."""
    scores = np.full(len(NAMES), -error - 1)
    scores[-1] = 0
    return bool(mechanism.sample(scores, bits) != NAMES[-1])


def best_of_groups(mechanism: BestOfEachGroup, error: int, draws: int, bits: Bits) -> int:
    scores = np.full((len(mechanism.groups), len(NAMES)), -error - 1)
    scores[:, -1] = 0
    chosen = [
        best
        for _ in range(draws // len(mechanism.groups))
        for best in mechanism.sample(scores, bits).values()
    ]
    return sum(best != NAMES[-1] for best in chosen)


def some_best(mechanism: TopK, error: int, bits: Bits) -> bool:
    scores = np.where(np.arange(len(NAMES)) < mechanism.k, 0, -error - 1)
    return set(mechanism.sample(scores, bits)) != set(NAMES[: mechanism.k])


def rows(places: IndexArray, grid: Grid = GRID) -> Rows:
    return Rows((("x", grid),), places.reshape(-1, 1))


@cache
def at_one_place(count: int) -> Rows:
    return rows(np.full(count, 7))


@cache
def at_both_ends(each: int) -> Rows:
    return rows(np.repeat([0, 99], each))


@cache
def evenly(count: int) -> Rows:
    return rows(np.arange(count) * LARGE // count, WIDE)


@cache
def stairs(places: int, each: int) -> Rows:
    return rows(np.repeat(np.arange(places), each))


def one_place(mechanism: Any, error: int, bits: Bits) -> bool:
    """All rows at one place: half of them more or less, and all others miss the median."""
    return bool(mechanism.sample(at_one_place(2 * error + 1), bits) != 7)


def densest(mechanism: Any, error: int, bits: Bits) -> bool:
    return bool(mechanism.sample(at_one_place(error + 1), bits) != 7)


def both_ends(mechanism: Any, error: int, bits: Bits) -> bool:
    return bool(mechanism.sample(at_both_ends(2 * error + 1), bits) != 99)


def many_quantiles(mechanism: Any, error: int, bits: Bits) -> bool:
    count = 8 * error
    found = mechanism.sample(evenly(count), bits)
    return bool(abs(found[0] * count / LARGE - count / 4) > error + 1)


def bounds(mechanism: Any, error: int, bits: Bits) -> bool:
    """A bin with so many rows is found, or is not."""
    found = mechanism.sample(at_one_place(error), bits)
    return found is None or not found[0] <= 7 <= found[1]


def cumulative(mechanism: Any, error: int, bits: Bits) -> bool:
    places, each = len(mechanism.edges) - 1, 4 * error
    found = np.asarray(mechanism.sample(stairs(places, each), bits))[-places:]
    return bool(abs(found - each * np.arange(1, places + 1)).max() > error)


def smooth(mechanism: SmoothMedian, error: int, bits: Bits) -> bool:
    return abs(mechanism.sample(EVENLY, bits) - 50_000) > error


EVENLY = rows(np.arange(100, 10**5, 100), Grid(0, 10**5))


def blocks(mechanism: Any, error: int, bits: Bits) -> bool:
    return bool(mechanism.sample(np.full(error + 1, 7), bits) != 7)


def mean(mechanism: Any, error: Any, bits: Bits) -> bool:
    return bool(abs(mechanism.sample(np.full(3, 50), bits) - 50) > float(error) + 1e-9)


def keys(mechanism: Any, error: int, bits: Bits) -> bool:
    return bool(abs(mechanism.sample({"a": LARGE}, bits)["a"] - LARGE) > error)


def shown(mechanism: Any, error: int, bits: Bits) -> bool:
    return "a" not in mechanism.sample({"a": error + 1}, bits)


def shown_of_sets(mechanism: Any, error: int, bits: Bits) -> bool:
    return "a" not in mechanism.sample(weights(error + 1), bits)


@cache
def weights(units: int) -> Mapping[Any, int]:
    sets: dict[Key, Iterable[Key]] = {unit: ["a", f"b{unit}"] for unit in range(units)}
    return {"a": sets_of_keys(lambda: sets, per_unit=2, unit=PERSON, name="s").compute()["a"]}


def proposed(mechanism: Any, error: int, bits: Bits) -> bool:
    return bool(abs(mechanism.sample({"a": (10**9, 0)}, bits)) > error)


def above(mechanism: SparseVector, error: int, bits: Bits) -> bool:
    return mechanism.begin(bits)(mechanism.threshold - error - 1)[0]


def told(mechanism: NumericSparseVector, error: int, bits: Bits) -> bool:
    found = mechanism.begin(bits)(LARGE)[0]
    return found is None or abs(found - LARGE) > error


def seventh_total(mechanism: StreamCounter, error: int, bits: Bits) -> bool:
    add = mechanism.begin(bits)
    return abs([add(0)[0] for _ in range(7)][-1]) > error


def sums(mechanism: TreeCounts, error: int, draws: int, bits: Bits) -> int:
    levels = mechanism.sample(np.zeros(draws, np.int64), bits)
    return int((abs(levels[-1]) > error).sum())


def score(mechanism: Any, error: int, bits: Bits) -> bool:
    return bool(abs(mechanism.sample(5, bits)["score"]) > error)


@dataclass(frozen=True)
class Even:
    """Its score is any number of 64 bits."""

    is_scored: ClassVar[bool] = True

    def privacy_loss(self, bounded: Bounded[int]) -> PrivacyLoss:
        return PrivacyLoss.of(Pure(1), unit=bounded.unit)

    def sample(self, value: int, bits: Bits) -> Mapping[str, Any]:
        return {"score": bits.word()}


def best_share(mechanism: Any, error: Fraction, bits: Bits) -> bool:
    return bool(mechanism.sample(0, bits)["score"] < (1 - error) * 2**64)


LAPLACE = DiscreteLaplace(100)
GROUPS = range(50)
RUN: Scored[int, int] = Scored(DiscreteLaplace(2), lambda *_: 0, LAPLACE, 1)

FORECASTS: dict[str, Forecast] = {
    **{
        name: Forecast(
            added.at(Fraction(100)), real_noise if added.about is real else noise, is_batch=True
        )
        for name, added in ADDITIVE.items()
    },
    "MaxNorm": Forecast(MaxNorm(100, length=3), one_by_one(largest_noise)),
    "ExponentialMechanism": Forecast(
        ExponentialMechanism(NAMES, Fraction(1, 50)), one_by_one(one_best)
    ),
    "PermuteAndFlip": Forecast(PermuteAndFlip(NAMES, Fraction(1, 50)), one_by_one(one_best)),
    "NoisyMax": Forecast(NoisyMax(NAMES, 50), one_by_one(one_best)),
    "TopK": Forecast(TopK(NAMES, 3, Fraction(1, 50)), one_by_one(some_best)),
    "BestOfEachGroup": Forecast(
        BestOfEachGroup(groups=GROUPS, candidates=NAMES, rate=Fraction(1, 50)), best_of_groups
    ),
    "Quantile": Forecast(Quantile(scale=20, grid=GRID), one_by_one(one_place)),
    "PermuteAndFlipQuantile": Forecast(
        PermuteAndFlipQuantile(scale=20, grid=GRID), one_by_one(one_place)
    ),
    "InterQuartileRange": Forecast(InterQuartileRange(scale=20, grid=GRID), one_by_one(both_ends)),
    "Quantiles": Forecast(
        Quantiles([0.25, 0.75], scale=5, grid=WIDE), one_by_one(many_quantiles), is_bound=True
    ),
    "DensestInterval": Forecast(
        DensestInterval(GRID, width=1, rate=Fraction(1, 20)), one_by_one(densest)
    ),
    "ApproximateBounds": Forecast(ApproximateBounds(scale=50, grid=GRID), one_by_one(bounds)),
    "Cumulative": Forecast(Cumulative(range(5), scale=20), one_by_one(cumulative)),
    "SmoothMedian": Forecast(
        SmoothMedian(epsilon=1, delta=1e-3, grid=Grid(0, 10**5)),
        one_by_one(smooth),
        apart=100,
    ),
    "MeanOfBlocks": Forecast(MeanOfBlocks(20, grid=GRID, blocks=3), one_by_one(mean)),
    "MedianOfBlocks": Forecast(MedianOfBlocks(20, grid=GRID), one_by_one(blocks)),
    "LaplaceThreshold": Forecast(LaplaceThreshold(scale=100, threshold=9), one_by_one(keys)),
    "GaussianThreshold": Forecast(GaussianThreshold(stddev=100, threshold=9), one_by_one(keys)),
    "PartitionSelection": Forecast(PartitionSelection(Fraction(1, 30), 1e-3), one_by_one(shown)),
    "SetUnion": Forecast(SetUnion(stddev=20, threshold=80, per_unit=2), one_by_one(shown_of_sets)),
    "ProposeTestRelease": Forecast(
        ProposeTestRelease(distance_scale=2, value_scale=100, threshold=20), one_by_one(proposed)
    ),
    "SparseVector": Forecast(
        SparseVector(10, threshold_scale=50, query_scale=50), one_by_one(above)
    ),
    "NumericSparseVector": Forecast(
        NumericSparseVector(SparseVector.for_epsilon(1, 5), answer_scale=100), one_by_one(told)
    ),
    "StreamCounter": Forecast(StreamCounter(LAPLACE, steps=7), one_by_one(seventh_total)),
    "TreeCounts": Forecast(TreeCounts(LAPLACE, branching=16), sums, is_batch=True),
    "Scored": Forecast(RUN, one_by_one(score)),
    "Tuning": Forecast(
        Tuning({"even": Even()}, NegativeBinomialRuns(eta=1, gamma=0.1)), one_by_one(best_share)
    ),
}


def smaller(error: Any) -> Any:
    """3 % less, of whole errors rounded down."""
    return math.floor(SHORTER * error) if isinstance(error, int) else SHORTER * error


def assert_as_forecast(case: Forecast, draws: int) -> None:
    allowed, bits = float(1 - CONFIDENCE), SecureBits()
    assert case.far(case.mechanism, case.error, draws, bits) <= binom.isf(ALARM, draws, allowed)
    if not case.is_bound:
        nearer = case.far(case.mechanism, smaller(case.error), draws, bits)
        assert nearer >= binom.ppf(ALARM, draws, allowed)


def test_every_error_that_is_stated_is_measured() -> None:
    without = {name for name, verb in WHY_NOT if verb == "error"}
    assert FORECASTS.keys() == MADE.keys() - without


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
    """A mechanism that says so much of its error."""

    inner: Any
    share: Fraction

    def sample(self, value: Any, bits: Bits) -> Any:
        return self.inner.sample(value, bits)

    def error(self, confidence: Fraction) -> int:
        return int(self.share * self.inner.error(confidence))
