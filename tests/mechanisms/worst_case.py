"""Draws of a mechanism where data are at their worst for its stated error."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar

import numpy as np

from discreet._arrays import IndexArray
from discreet.accounting import PrivacyLoss, Pure
from discreet.mechanisms import Bounded, FixedPoint, Grid, Key, Rows
from discreet.mechanisms.quantiles import SmoothMedian
from discreet.mechanisms.selection import BestOfEachGroup, TopK
from discreet.mechanisms.thresholds import NumericSparseVector, SparseVector, sets_of_keys
from discreet.mechanisms.trees import StreamCounter, TreeCounts
from discreet.noise import Bits
from tests.mechanisms.kit import PERSON

CONFIDENCE = Fraction(9, 10)
NAMES = list("abcdefgh")
GRID = Grid(0, 99)
WIDE = Grid(0, 10**6)
LARGE = 10**6

Far = Callable[[Any, Any, int, Bits], int]  # Any: a mechanism, and its kind of error


@dataclass(frozen=True)
class Forecast:
    """A mechanism, and a function that counts the draws with a larger error, on the worst data.

    ``is_batch`` says that one call makes many draws, ``is_bound`` that the stated error is a proven
    bound and need not be attained.
    """

    mechanism: Any
    far: Far
    is_batch: bool = False
    is_bound: bool = False
    apart: int | None = None

    @property
    def error(self) -> Any:
        given = {} if self.apart is None else {"apart": self.apart}
        return self.mechanism.error(CONFIDENCE, **given)


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
    value = mechanism.sample(evenly(count), bits)
    return bool(abs(value[0] * count / LARGE - count / 4) > error + 1)


def bounds(mechanism: Any, error: int, bits: Bits) -> bool:
    """Whether the bounds miss the only bin with rows, which has as many as the error says."""
    value = mechanism.sample(at_one_place(error), bits)
    return value is None or not value[0] <= 7 <= value[1]


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


def answered(mechanism: NumericSparseVector, error: int, bits: Bits) -> bool:
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
