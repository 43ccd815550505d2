"""Private models are right as often as `benchmarks.accuracy` says, and as Opacus' are; bits are
known, so that no figure varies."""

import math
from collections.abc import Iterator, Sequence

import pytest

from benchmarks import accuracy
from benchmarks.accuracy_data import DATA, split
from benchmarks.accuracy_sweep import (
    DRAWS,
    EPSILONS,
    SHOWN,
    SWEEP,
    Accuracies,
    Run,
    Setting,
    SweepResult,
    sweep,
)
from benchmarks.figures.accuracy import stored
from discreet.mechanisms import Door
from tests.mechanisms.kit import FakePayer
from tests.noise.fit import QuickBits

ROWS = [(name, epsilon) for name in DATA for epsilon in EPSILONS]
FAR = 4  # standard errors


def known(name: str, epsilon: float, runs: Sequence[Run]) -> Iterator[Accuracies]:
    for run in runs:
        bits = QuickBits(1000 * run.draw + run.seed)
        yield accuracy.fitted(name, epsilon, run, Door(FakePayer(), bits, None))


@pytest.mark.parametrize("name", DATA)
def test_features_are_within_public_bounds(name: str) -> None:
    x, y = DATA[name]()
    assert x.min() >= -1
    assert x.max() <= 1
    parts = split(name, 0)
    assert len(parts.test_x) == len(parts.test_y) == -(-len(x) // 5)
    assert len(parts.x) + len(parts.test_x) == len(y)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_plan_costs_what_it_is_compared_at(epsilon: float) -> None:
    made = accuracy.planned(1437, SWEEP[0], epsilon)
    assert 0.999 * epsilon < made.epsilon <= epsilon


def test_models_are_right_as_often_as_opacus_ones_and_twice_the_noise_would_show() -> None:
    """One draw for each split, by the setting that Opacus' sweep chose."""
    peer = stored("digits", 1)
    error = peer.error * math.sqrt(DRAWS + 1)
    runs = [Run(peer.setting, seed) for seed in SHOWN]
    assert mean(known("digits", 1, runs), peer) > peer.share - FAR * error
    assert mean(known("digits", 0.5, runs), peer) < peer.share - FAR * error


def mean(rights: Iterator[Accuracies], like: SweepResult) -> float:
    return sum(each.mean if like.is_of_mean else each.last for each in rights) / len(SHOWN)


def test_the_choice_is_made_on_other_splits_than_are_shown() -> None:
    """Made-up shares: one setting is the best there, another one here."""

    def train(runs: Sequence[Run]) -> Iterator[Accuracies]:
        for run in runs:
            good = SWEEP[2] if run.seed >= 100 else SWEEP[5]
            share = 0.9 if run.setting == good else 0.8 + 0.01 * run.draw + 0.001 * (run.seed % 100)
            yield Accuracies(last=share, mean=share / 2)

    found = sweep("digits", train)
    spread = math.sqrt(DRAWS * (DRAWS + 1) / 12)  # standard deviation of 1, 2, ... DRAWS
    assert (found.setting, found.is_of_mean) == (SWEEP[2], False)
    assert found.share == pytest.approx(0.8 + 0.01 * (DRAWS - 1) / 2 + 0.002)
    assert found.error == pytest.approx(0.01 * spread / math.sqrt(DRAWS * len(SHOWN)))


def test_a_lead_has_the_error_of_both() -> None:
    setting = Setting(length=2, clip=0.1)
    ours, theirs = SweepResult(setting, True, 0.92, 0.003), SweepResult(setting, False, 0.91, 0.004)
    assert ours.over(theirs) == pytest.approx((0.01, 0.005))


@pytest.mark.long
@pytest.mark.parametrize(("name", "epsilon"), ROWS)
def test_the_sweep_reaches_the_goal_and_opacus(name: str, epsilon: float) -> None:
    found = sweep(name, lambda runs: known(name, epsilon, runs))
    lead, error = found.over(stored(name, epsilon))
    assert found.share >= accuracy.goal_of(name, epsilon)
    assert lead > -FAR * error
