"""Every mechanism as a black box: what it draws for two neighbours, against what it charges.

The law of each is attacked by exact sums in its own test. This is the same question once more, of
the whole way from the data to what is shown, and asked of each mechanism by its name.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.accounting import PrivacyLoss
from discreet.mechanisms import (
    Bounded,
    DiscreteLaplace,
    Gaussian,
    Grid,
    Sensitivity,
    Together,
)
from discreet.mechanisms._max_norm import MaxNorm
from discreet.mechanisms.framework import (
    MeanOfBlocks,
    MedianOfBlocks,
    ProposeTestRelease,
    proposed,
)
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
from tests.mechanisms import registry
from tests.mechanisms.kit import PERSON
from tests.mechanisms.registry import ADDITIVE
from tests.mechanisms.statistics.kit import at_least, at_most
from tests.mechanisms.test_table import ELSEWHERE, mechanisms
from tests.noise.fit import QuickBits

DRAWS = 700  # to find an event, and as many to count it
EPSILONS = 0.0, 0.5, 1.0, 2.0

GRID = Grid(0, 1)
PAIR = Sensitivity(linf=1, length=2)
HALF = Fraction(1, 2)

Some = Any  # Any: each mechanism's own values and outcomes


def plain(outcome: Some) -> Hashable:
    """The outcome as something to be counted."""
    if isinstance(outcome, np.ndarray):
        return tuple(map(plain, outcome.ravel().tolist()))
    if isinstance(outcome, Mapping):
        return tuple((key, plain(item)) for key, item in outcome.items())
    if isinstance(outcome, tuple):
        return tuple(map(plain, outcome))
    return outcome  # type: ignore[no-any-return]  # a number, a text or nothing


@dataclass(frozen=True)
class Attack:
    """Two neighbours, and the mechanism with so much of its noise, all of it or some."""

    of: Callable[[Some], Bounded[Some]]
    one: Some
    other: Some
    make: Callable[[Fraction], Some]
    less: Fraction = HALF  # of the noise, which is to be caught
    sees: Callable[[Some], Hashable] = plain

    def charged(self) -> PrivacyLoss:
        mechanism = self.make(Fraction(1))
        if hasattr(mechanism, "begin"):
            mechanism.check(self.of(self.one[0]))
            loss = mechanism.privacy_loss(PERSON)
        else:
            loss = mechanism.privacy_loss(self.of(self.one))
        assert isinstance(loss, PrivacyLoss)
        return loss

    def drawn(self, noise: Fraction, value: Some, seed: int) -> list[Hashable]:
        mechanism, bits = self.make(noise), QuickBits(seed)
        if hasattr(mechanism, "begin"):
            return [asked(mechanism.begin(bits), value) for _ in range(2 * DRAWS)]
        bounded = self.of(value)
        return [
            self.sees(mechanism.sample(bounded.checked(bounded.compute()), bits))
            for _ in range(2 * DRAWS)
        ]


def asked(answer: Callable[[Some], tuple[Some, bool]], values: list[int]) -> Hashable:
    found = []
    for value in values:
        given, goes_on = answer(value)
        found.append(given)
        if not goes_on:
            break
    return tuple(found)


def side(outcome: Some) -> Hashable:
    """On which side of the first row each number lies."""
    return tuple(np.sign(np.atleast_1d(outcome) - MOST[0]).tolist())


def refuted(attack: Attack, noise: Fraction) -> bool:
    """Whether some event is too much more likely for one than for the other."""
    loss = attack.charged()
    draws = [
        attack.drawn(noise, value, seed) for seed, value in enumerate((attack.one, attack.other))
    ]
    return any(
        proven_loss(p, q, epsilon) > loss.delta(epsilon)
        for p, q in (draws, draws[::-1])
        for epsilon in EPSILONS
    )


def proven_loss(one: list[Hashable], other: list[Hashable], epsilon: float) -> float:
    """What P(event) - e^epsilon Q(event) lies above: the event is found among the first half of
    the draws, and counted among the others; false once in 10^9 for each of two bounds."""
    seen, expected = Counter(one[:DRAWS]), Counter(other[:DRAWS])
    event = {y for y, many in seen.items() if many > math.exp(epsilon) * expected[y]}
    p, q = (sum(y in event for y in draws[DRAWS:]) for draws in (one, other))
    return at_least(p, DRAWS) - math.exp(epsilon) * at_most(q, DRAWS)


# What is attacked


def number(value: int) -> Bounded[Some]:
    return Bounded(lambda: value, sensitivity=1, unit=PERSON, name="number")


def real(value: float) -> Bounded[Some]:
    return Bounded.real(lambda: value, sensitivity=1, step=0.5, unit=PERSON, name="real")


def pair(value: list[int]) -> Bounded[Some]:
    return Bounded(lambda: np.array(value), sensitivity=PAIR, unit=PERSON, name="pair", shape=(2,))


def groups(value: list[list[int]]) -> Bounded[Some]:
    sensitivity = Sensitivity(linf=1, length=4)
    return Bounded(
        lambda: np.array(value), sensitivity=sensitivity, unit=PERSON, name="g", shape=(2, 2)
    )


def rows(value: list[float]) -> Bounded[Some]:
    return Bounded.rows(lambda: np.array(value), columns={"x": GRID}, unit=PERSON, name="rows")


def wide(value: list[float]) -> Bounded[Some]:
    return Bounded.rows(lambda: np.array(value), columns={"x": WIDE}, unit=PERSON, name="rows")


def keys(value: Some) -> Bounded[Some]:
    return Bounded.keys(lambda: value, per_unit=1, unit=PERSON, name="keys")


def sets(value: Some) -> Bounded[Some]:
    return sets_of_keys(lambda: value, per_unit=1, unit=PERSON, name="sets")


def blocks(value: list[int]) -> Bounded[Some]:
    sensitivity = Sensitivity(l0=1, linf=1)
    return Bounded(
        lambda: np.array(value), sensitivity=sensitivity, unit=PERSON, name="blocks", shape=(3,)
    )


def proven(value: tuple[int, int]) -> Bounded[Some]:
    return proposed(lambda: value, bound=4, unit=PERSON, name="tested")


def both(value: tuple[int, int]) -> Bounded[Some]:
    parts = tuple(
        Bounded(lambda: 0, sensitivity=1, unit=PERSON, name=name).parts[0] for name in "ab"
    )
    return Bounded.together(
        lambda: dict(zip("ab", value, strict=True)), parts=parts, unit=PERSON, name="both"
    )


def run(noise: Fraction) -> Scored[int, int]:
    each = DiscreteLaplace(2 * noise)
    return Scored(each, lambda n, given: given - n, each, 1)


AB, APART = ["a", "b"], ([0, 1], [1, 0])
EIGHTH = Fraction(1, 8)
WIDE, MOST, FEW = Grid(0, 28000), [27500.0], [27500.0, 28000.0]

ATTACKS: dict[str, Attack] = {
    **{
        name: Attack(real, 0.0, 1.0, added.at)
        if added.about is registry.real
        else Attack(number, 0, 1, added.at)
        for name, added in ADDITIVE.items()
    },
    "ApproximateBounds": Attack(
        rows, [1.0] * 3, [1.0] * 4, lambda f: ApproximateBounds(scale=4 * f, grid=GRID), EIGHTH
    ),
    "BestOfEachGroup": Attack(
        groups,
        [[0, 0], [0, 0]],
        [[1, -1], [1, -1]],
        lambda f: BestOfEachGroup(groups=AB, candidates=AB, rate=1 / f),
    ),
    "Cumulative": Attack(
        rows, [0.0] * 90, [0.0] * 91, lambda f: Cumulative([0, 0.5, 1], scale=4 * f), EIGHTH
    ),
    "DensestInterval": Attack(
        wide, [], MOST, lambda f: DensestInterval(WIDE, width=1, rate=2 / f), EIGHTH, side
    ),
    "ExponentialMechanism": Attack(pair, *APART, lambda f: ExponentialMechanism(AB, 2 / f)),
    "GaussianThreshold": Attack(
        keys, {"a": 30}, {"a": 31}, lambda f: GaussianThreshold(stddev=f, threshold=9)
    ),
    "InterQuartileRange": Attack(
        rows,
        [0.0, 0.0, 0.0, 1.0],
        [0.0, 0.0, 0.0, 1.0, 1.0],
        lambda f: InterQuartileRange(scale=8 * f, grid=GRID),
        Fraction(1, 64),
    ),
    "LaplaceThreshold": Attack(
        keys, {"a": 30}, {"a": 31}, lambda f: LaplaceThreshold(scale=f, threshold=20)
    ),
    "MaxNorm": Attack(pair, [0, 0], [1, 1], lambda f: MaxNorm(f, length=2)),
    "MeanOfBlocks": Attack(
        blocks, [0, 0, 0], [1, 0, 0], lambda f: MeanOfBlocks(f / 3, grid=GRID, blocks=3)
    ),
    "MedianOfBlocks": Attack(blocks, [0, 1, 0], [1, 1, 0], lambda f: MedianOfBlocks(f, grid=GRID)),
    "NoisyMax": Attack(pair, *APART, lambda f: NoisyMax(AB, 2 * f), Fraction(1, 4)),
    "NumericSparseVector": Attack(
        number,
        [0, 0],
        [1, 1],
        lambda f: NumericSparseVector(
            SparseVector(0, threshold_scale=4 * f, query_scale=8 * f), answer_scale=4 * f
        ),
        EIGHTH,
    ),
    "PartitionSelection": Attack(
        keys, {"a": 2}, {"a": 3}, lambda f: PartitionSelection(1 / f, 0.02)
    ),
    "PermuteAndFlip": Attack(
        pair, *APART, lambda f: PermuteAndFlip(AB, 1 / (2 * f)), Fraction(1, 4)
    ),
    "PermuteAndFlipQuantile": Attack(
        wide, MOST, FEW, lambda f: PermuteAndFlipQuantile(scale=f, grid=WIDE), EIGHTH, side
    ),
    "ProposeTestRelease": Attack(
        proven,
        (9, 0),
        (10, 4),
        lambda f: ProposeTestRelease(distance_scale=4 * f, value_scale=16 * f, threshold=9),
        EIGHTH,
    ),
    "Quantile": Attack(wide, MOST, FEW, lambda f: Quantile(scale=f / 4, grid=WIDE), HALF, side),
    "Quantiles": Attack(
        wide, MOST, FEW, lambda f: Quantiles([0.5, 0.75], scale=f, grid=WIDE), EIGHTH, side
    ),
    "Scored": Attack(number, 0, 1, lambda f: run(4 * f), EIGHTH),
    "SetUnion": Attack(
        sets,
        {n: ["a"] for n in range(3)},
        {n: ["a"] for n in range(4)},
        lambda f: SetUnion(stddev=f, threshold=3.5, per_unit=1),
    ),
    "SmoothMedian": Attack(
        rows,
        [0.0, 1.0],
        [0.0, 1.0, 1.0],
        lambda f: SmoothMedian(epsilon=1 / f, delta=0.1, grid=GRID),
        Fraction(1, 64),
    ),
    "SparseVector": Attack(
        number,
        [-1] * 3,
        [0] * 3,
        lambda f: SparseVector(0, threshold_scale=4 * f, query_scale=8 * f),
        Fraction(1, 64),
    ),
    "StreamCounter": Attack(
        number,
        [0] * 4,
        [1, 0, 0, 0],
        lambda f: StreamCounter(DiscreteLaplace(8 * f), steps=4),
        EIGHTH,
    ),
    "Together": Attack(
        both,
        (0, 0),
        (1, 1),
        lambda f: Together({"a": DiscreteLaplace(4 * f), "b": Gaussian(4 * f)}),
        EIGHTH,
    ),
    "TopK": Attack(pair, *APART, lambda f: TopK(AB, 1, 2 / f)),
    "TreeCounts": Attack(
        pair, [0, 0], [1, 1], lambda f: TreeCounts(DiscreteLaplace(6 * f), branching=2), EIGHTH
    ),
    "Tuning": Attack(
        number,
        0,
        1,
        lambda f: Tuning({"one": run(4 * f)}, NegativeBinomialRuns(eta=0, gamma=HALF)),
        EIGHTH,
    ),
}


def test_every_mechanism_is_attacked() -> None:
    assert set(mechanisms()) == ATTACKS.keys() | ELSEWHERE.keys()


@pytest.mark.parametrize("name", ATTACKS)
def test_what_is_drawn_is_what_is_charged(name: str) -> None:
    assert not refuted(ATTACKS[name], Fraction(1))
    assert refuted(ATTACKS[name], ATTACKS[name].less)
