"""Every mechanism by every question about its privacy loss, for units that come and go and for
units that are replaced. A new mechanism is asked for here by its name."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import discreet.mechanisms
from discreet._unit import Change, Unit
from discreet.accounting import PrivacyLoss
from discreet.errors import NoBound
from discreet.mechanisms import (
    Bounded,
    DiscreteLaplace,
    Gaussian,
    Grid,
    Rows,
    Sensitivity,
    Together,
)
from discreet.mechanisms._discrete_gaussian import DiscreteGaussian
from discreet.mechanisms._max_norm import MaxNorm
from discreet.mechanisms._staircase import Staircase
from discreet.mechanisms.framework import (
    MeanOfBlocks,
    MedianOfBlocks,
    ProposeTestRelease,
    proposed,
    sample_and_aggregate,
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
    TopKNoise,
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
from discreet.mechanisms.tuning import NegativeBinomialRuns, PoissonRuns, Scored, Tuning
from tests.mechanisms.kit import PERSON
from tests.mechanisms.registry import ADDITIVE, number

UNITS = {change: PERSON.with_change(change) for change in Change}
GRID = Grid(0, 10)
NAMES = ["a", "b", "c"]


def scores(unit: Unit, shape: tuple[int, ...] = (3,)) -> Bounded[Any]:  # Any: an array
    sensitivity = Sensitivity(linf=1, length=int(np.prod(shape)))
    zeros = np.zeros(shape, dtype=np.int64)
    return Bounded(lambda: zeros, sensitivity=sensitivity, unit=unit, name="scores", shape=shape)


def uneven(unit: Unit) -> Bounded[Any]:  # Any: an array
    """Six counts, which a unit may move by 2 and by 1."""
    sensitivity = Sensitivity(l1=3, linf=2, length=6)
    zeros = np.zeros(6, dtype=np.int64)
    return Bounded(lambda: zeros, sensitivity=sensitivity, unit=unit, name="counts", shape=(6,))


def rows(unit: Unit) -> Bounded[Rows]:
    return Bounded.rows(lambda: np.zeros(3), columns={"x": GRID}, unit=unit, name="rows")


def keys(unit: Unit) -> Bounded[Any]:  # Any: a mapping
    return Bounded.keys(lambda: {"a": 1}, per_unit=1, unit=unit, name="keys")


def sets(unit: Unit) -> Bounded[Any]:  # Any: weights
    return sets_of_keys(lambda: {1: ["a"]}, per_unit=2, unit=unit, name="sets")


def pairs(unit: Unit) -> Bounded[Any]:  # Any: a mapping
    parts = (number(unit).parts[0],)
    return Bounded.together(lambda: {"number": 3}, parts=parts, unit=unit, name="pairs")


def private_test(unit: Unit) -> Bounded[Any]:  # Any: a distance and a value
    return proposed(lambda: (31, 250), bound=4, unit=unit, name="tested")


def blocks(unit: Unit) -> Bounded[Any]:  # Any: an array
    return sample_and_aggregate(
        lambda: (np.arange(9), np.arange(9)),
        lambda part: float(part[0]),
        blocks=3,
        grid=GRID,
        default=0,
        unit=unit,
        name="blocks",
    )


SCORED: Scored[int, int] = Scored(
    DiscreteLaplace(20), lambda n, noisy: -abs(n - noisy), DiscreteLaplace(20), 1
)

PRICES: dict[str, Callable[[Unit], PrivacyLoss]] = {
    **{name: added.price for name, added in ADDITIVE.items()},
    "ApproximateBounds": lambda u: ApproximateBounds.for_epsilon(1, rows(u)).privacy_loss(rows(u)),
    "BestOfEachGroup": lambda u: BestOfEachGroup.for_epsilon(
        1, scores(u, (2, 3)), groups=["x", "y"], candidates=NAMES
    ).privacy_loss(scores(u, (2, 3))),
    "Cumulative": lambda u: Cumulative([0, 5, 10], scale=2).privacy_loss(rows(u)),
    "DensestInterval": lambda u: DensestInterval.for_epsilon(1, rows(u), width=2).privacy_loss(
        rows(u)
    ),
    "ExponentialMechanism": lambda u: ExponentialMechanism(NAMES, 1).privacy_loss(scores(u)),
    "GaussianThreshold": lambda u: GaussianThreshold.for_epsilon(1, 1e-6, keys(u)).privacy_loss(
        keys(u)
    ),
    "InterQuartileRange": lambda u: InterQuartileRange.for_epsilon(1, rows(u)).privacy_loss(
        rows(u)
    ),
    "LaplaceThreshold": lambda u: LaplaceThreshold.for_epsilon(1, 1e-6, keys(u)).privacy_loss(
        keys(u)
    ),
    "MaxNorm": lambda u: MaxNorm(3, length=3).privacy_loss(scores(u)),
    "NoisyMax": lambda u: NoisyMax(NAMES, 3).privacy_loss(scores(u)),
    "PartitionSelection": lambda u: PartitionSelection.for_epsilon(1, 1e-6, keys(u)).privacy_loss(
        keys(u)
    ),
    "PermuteAndFlip": lambda u: PermuteAndFlip(NAMES, 1).privacy_loss(scores(u)),
    "PermuteAndFlipQuantile": lambda u: PermuteAndFlipQuantile.for_epsilon(1, rows(u)).privacy_loss(
        rows(u)
    ),
    "Quantile": lambda u: Quantile.for_epsilon(1, rows(u)).privacy_loss(rows(u)),
    "Quantiles": lambda u: Quantiles.for_epsilon(1, rows(u), levels=[0.25, 0.75]).privacy_loss(
        rows(u)
    ),
    "SetUnion": lambda u: SetUnion.for_epsilon(1, 1e-6, sets(u)).privacy_loss(sets(u)),
    "SmoothMedian": lambda u: SmoothMedian.for_epsilon(1, 1e-6, rows(u)).privacy_loss(rows(u)),
    "SparseVector": lambda u: SparseVector.for_epsilon(1, 5).privacy_loss(u),
    "NumericSparseVector": lambda u: NumericSparseVector(
        SparseVector.for_epsilon(1, 5), answer_scale=3
    ).privacy_loss(u),
    "MeanOfBlocks": lambda u: MeanOfBlocks(3, grid=GRID, blocks=3).privacy_loss(blocks(u)),
    "MedianOfBlocks": lambda u: MedianOfBlocks(3, grid=GRID).privacy_loss(blocks(u)),
    "ProposeTestRelease": lambda u: ProposeTestRelease.for_epsilon(
        1, 1e-6, private_test(u)
    ).privacy_loss(private_test(u)),
    "Scored": lambda u: SCORED.privacy_loss(number(u)),
    "StreamCounter": lambda u: StreamCounter.for_epsilon(1, u, steps=20).privacy_loss(u),
    "TopK": lambda u: TopK(NAMES, 2, 1).privacy_loss(scores(u)),
    "TreeCounts": lambda u: TreeCounts(Gaussian(3), branching=2).privacy_loss(scores(u)),
    "Tuning": lambda u: Tuning(
        {"one": SCORED}, NegativeBinomialRuns(eta=1, gamma=0.1)
    ).privacy_loss(number(u)),
    "Together": lambda u: Together({"number": Gaussian(3)}).privacy_loss(pairs(u)),
}

# The same mechanisms where their price is of another form, by a word on when that is.
GAUSSIAN_RUN: Scored[int, int] = Scored(
    Gaussian(20), lambda n, noisy: -abs(n - noisy), DiscreteGaussian(20), 1
)
VARIANTS: dict[str, Callable[[Unit], PrivacyLoss]] = {
    "DiscreteGaussian, uneven moves": lambda u: DiscreteGaussian(3).privacy_loss(uneven(u)),
    "TreeCounts, discrete Gaussian": lambda u: TreeCounts(
        DiscreteGaussian(9), branching=2
    ).privacy_loss(uneven(u)),
    "StreamCounter, Gaussian": lambda u: StreamCounter(
        Gaussian(20), steps=100, per_unit=3, most=2
    ).privacy_loss(u),
    "Staircase, uneven moves": lambda u: Staircase(epsilon=0.2, width=1).privacy_loss(uneven(u)),
    "TopK, Laplace noise": lambda u: TopK(NAMES, 2, 1, noise=TopKNoise.LAPLACE).privacy_loss(
        scores(u)
    ),
    "Tuning, Poisson": lambda u: Tuning({"one": SCORED}, PoissonRuns(5)).privacy_loss(number(u)),
    "Tuning, with a ceiling": lambda u: Tuning(
        {"one": SCORED}, NegativeBinomialRuns(eta=0, gamma=0.1, most=30)
    ).privacy_loss(number(u)),
    "Tuning, Gaussian runs": lambda u: Tuning(
        {"one": GAUSSIAN_RUN}, NegativeBinomialRuns(eta=1, gamma=0.1)
    ).privacy_loss(number(u)),
}
ASKED = PRICES | VARIANTS

# The other ones, and why they aren't asked here.
ELSEWHERE: dict[str, str] = {
    "Release": "has a privacy loss, and is no mechanism",
}

QUESTIONS: dict[str, Callable[[PrivacyLoss], object]] = {
    "epsilon": lambda loss: loss.epsilon(delta=1e-5),
    "delta": lambda loss: loss.delta(epsilon=1),
    "interval": lambda loss: loss.interval(delta=1e-5),
    "explain": lambda loss: loss.explain(delta=1e-5),
    "renyi": lambda loss: loss.renyi(order=2),
    "zcdp": lambda loss: loss.zcdp(),
    "advantage": lambda loss: loss.advantage(),
    "profile": lambda loss: loss.profile().delta(1),
    "trade_off": lambda loss: loss.trade_off().type_two(0.1),
    "for_group": lambda loss: loss.for_group(2).epsilon(delta=1e-4),
    "ten times": lambda loss: (10 * loss).epsilon(delta=1e-4),
}
# Questions that nothing proven answers, each with the reason.
KEYS_OF_A_GROUP = (
    "a key that several of a group have comes out with another probability than one that a single "
    "unit has, and the term knows that of a single unit alone"
)
NOTHING_KNOWN: dict[tuple[str, str], str] = {
    (name, "for_group"): KEYS_OF_A_GROUP
    for name in ("GaussianThreshold", "LaplaceThreshold", "SetUnion", "ProposeTestRelease")
}
MANY_ROUGH_RUNS = (
    "the best of a secret number of runs that have no pure epsilon may cost so much at orders near "
    "1 that no line through 0 bounds all of them, as a rho would"
)
NOTHING_KNOWN["Tuning, Gaussian runs", "zcdp"] = MANY_ROUGH_RUNS


def mechanisms() -> Iterator[str]:
    """The names of all classes that have a privacy loss."""
    package = discreet.mechanisms
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        module = importlib.import_module(info.name)
        for name, kind in inspect.getmembers(module, inspect.isclass):
            is_role = getattr(kind, "_is_protocol", False) or inspect.isabstract(kind)
            if kind.__module__ == info.name and hasattr(kind, "privacy_loss") and not is_role:
                yield name


def test_every_mechanism_is_in_the_table() -> None:
    assert set(mechanisms()) == PRICES.keys() | ELSEWHERE.keys()
    assert {name.split(",")[0] for name in VARIANTS} <= PRICES.keys()


@pytest.mark.parametrize("change", Change, ids=lambda change: change.value)
@pytest.mark.parametrize("name", ASKED)
def test_every_question_has_an_answer(name: str, change: Change) -> None:
    loss = ASKED[name](UNITS[change])
    assert loss.unit == UNITS[change]
    assert PrivacyLoss.from_json(loss.to_json()) == loss
    for question, ask in QUESTIONS.items():
        if (name, question) in NOTHING_KNOWN:
            with pytest.raises(NoBound):
                ask(loss)
        else:
            assert ask(loss) is not None, question


@pytest.mark.parametrize("name", ASKED)
def test_a_unit_that_is_replaced_is_charged_no_less(name: str) -> None:
    """Where the same mechanism takes both: its sensitivities say how much more."""
    come, exchanged = (ASKED[name](UNITS[change]) for change in Change)
    assert come.epsilon(delta=1e-3) <= exchanged.epsilon(delta=1e-3) * 1.01 + 1e-9
