"""An attacker who sees every noisy sum, and knows all data but one example, learns no more than is
claimed; and would, were the step wrong in any of the ways in which such steps were wrong.

Some steps run with the example and as many without it: how often some score lies beyond a
threshold in each is bounded by Clopper and Pearson, and no pair of bounds may lie beyond the
trade-off that the step's own term claims. Bits are known, so that the answer never varies. The
noise is small, so that few steps show each mistake.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy.stats import beta
from torch import Tensor, nn

from discreet._arrays import FloatArray, IndexArray
from discreet._unit import Change, Unit
from discreet.accounting import PrivacyLoss
from discreet.accounting._profile import TradeOff
from discreet.train._batches._units import Units
from discreet.train._clipped_sums import _engine
from discreet.train._clipped_sums._clipping import Clipping, Flat
from discreet.train._plans._noise import ExactGaussian, FloatGaussian, add_normal
from discreet.train._plans._plan import Phase, TrainingPlan, plan
from discreet.train._plans._sampling import (
    PoissonSampling,
    Sampling,
    TruncatedPoissonSampling,
    WithoutReplacement,
)
from discreet.train._step_inputs import trainable
from discreet.train._training_run import TrainingRun
from tests.noise.fit import QuickBits
from tests.train.steps import known

Score = Callable[[FloatArray], FloatArray]

STEPS = 200
MORE = 250  # where a mistake shows later
ALPHA = 1e-6  # of each bound
WIDTH = 8  # weights
FAR = 4.0  # how long the example's gradient is, in clip norms
REPLACED = Unit.ROW.with_change(Change.REPLACE)


class Told(nn.Module):
    """A model whose gradients are the examples themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH, 1, bias=False)

    def forward(self, rows: Tensor) -> Tensor:
        found: Tensor = self.layer(rows)[:, 0]
        return found


@dataclass(frozen=True)
class Setting:
    """A plan, and the data without and with the example."""

    plan: TrainingPlan
    without: Sequence[float]
    example: float = -FAR
    instead: float | None = None
    physical: int = 1024
    rows: int = 1  # of each of them, which is a person if there are more

    def observed(self, *, is_in: bool, steps: int = STEPS) -> FloatArray:
        """The noisy sum of each of the first steps, in clip norms: (step, weight)."""
        others = [*self.without]
        if is_in:
            others.append(self.example)
        elif self.instead is not None:
            others.append(self.instead)
        rows = torch.zeros(len(others), WIDTH)
        rows[:, 0] = torch.tensor(others)
        table, ids = (rows.repeat_interleave(self.rows, 0),), np.arange(len(others))
        persons = Units(table, ids.repeat(self.rows), column="person", most=self.rows)
        given, model, found = table if self.rows == 1 else persons, Told(), []
        own = lambda part: model(part[0])  # noqa: E731
        with known(model, given, self.plan, seed=2 + is_in, losses=own) as training:
            training._size.rows = self.physical
            for ticket in islice(training.batches(), steps):
                training.step(ticket)
                assert model.layer.weight.grad is not None
                found.append(model.layer.weight.grad.double().numpy().ravel().copy())
        return np.array(found) * self.plan.phases[0].size.batch

    def worlds(self, steps: int = STEPS) -> tuple[FloatArray, FloatArray]:
        """Without the example, and with it."""
        return self.observed(is_in=False, steps=steps), self.observed(is_in=True, steps=steps)


SCORES: dict[str, Score] = {
    "along": lambda sums: -sums[:, 0],
    "against": lambda sums: sums[:, 0],
    "near": lambda sums: -np.linalg.norm(sums[:, 1:], axis=1),
    "far": lambda sums: np.linalg.norm(sums[:, 1:], axis=1),
}


def bounds(often: int, of: int) -> tuple[float, float]:
    """Clopper and Pearson's, each of them wrong with probability `ALPHA`."""
    low = 0.0 if often == 0 else float(beta.ppf(ALPHA, often, of - often + 1))
    high = 1.0 if often == of else float(beta.ppf(1 - ALPHA, often + 1, of - often))
    return low, high


@dataclass
class Finding:
    """By how much the worst pair of bounds lies beyond the claim; above 0, the claim is wrong."""

    excess: float = -1.0
    by: str = ""
    epsilon: float = 0.0
    told: list[str] = field(default_factory=list)


def attacked(setting: Setting, worlds: tuple[FloatArray, FloatArray]) -> Finding:
    """Every score, every threshold, both directions."""
    [(term, _)] = setting.plan.loss_after(1).terms
    claim, worst = PrivacyLoss.of(term).trade_off(), Finding()
    for name, score in SCORES.items():
        scores = [score(world) for world in worlds]
        for null, other in (scores, scores[::-1]):
            for threshold in np.quantile(np.concatenate(scores), np.linspace(0.02, 0.98, 25)):
                compare(claim, null >= threshold, other >= threshold, name, worst)
    return worst


def compare(
    claim: TradeOff,
    null: npt.NDArray[np.bool_],
    other: npt.NDArray[np.bool_],
    name: str,
    worst: Finding,
) -> None:
    _, false_alarms = bounds(int(null.sum()), null.size)
    found, _ = bounds(int(other.sum()), other.size)
    excess = found - (1 - claim.type_two(false_alarms))
    worst.epsilon = max(worst.epsilon, float(np.log(max(found - 1e-5, 1e-9) / false_alarms)))
    if excess > worst.excess:
        worst.excess, worst.by = excess, name


def made(multiplier: float = 0.7, **changes: Any) -> TrainingPlan:
    facts = {"delta": 1e-5, "records": 4, "batch": 4, "steps": MORE}
    return plan(multiplier=multiplier, **{**facts, **changes})


OTHERS = Setting(made(), without=[FAR])
ALONE = Setting(made(), without=[], physical=1)
PERSONS = Setting(made(unit=Unit("person")), without=[FAR, FAR], rows=3)
EVERYONE = Setting(
    made(batch=2, records=2, sampling=WithoutReplacement(), unit=REPLACED),
    without=[FAR],
    instead=FAR,
)

HONEST: dict[str, Setting] = {
    "with another": OTHERS,
    "alone": ALONE,
    "sampled": Setting(made(0.5, batch=2), without=[FAR]),
    "truncated": Setting(made(batch=2, sampling=TruncatedPoissonSampling(most=1)), without=[FAR]),
    "exact": Setting(made(noise=ExactGaussian(12)), without=[FAR]),
    "persons": PERSONS,
    "replaced": Setting(
        made(batch=1, records=2, sampling=WithoutReplacement(), unit=REPLACED),
        without=[FAR],
        instead=FAR,
    ),
}

STEPS_OF = {"alone": 150, "persons": 150, "sampled": MORE, "exact": MORE}


@cache
def honest_worlds(name: str) -> tuple[FloatArray, FloatArray]:
    """As many steps as the mistakes of the same setting need, and at least 150."""
    return HONEST[name].worlds(STEPS_OF.get(name, STEPS))


@pytest.mark.parametrize("name", HONEST)
def test_the_claim_is_never_exceeded(name: str) -> None:
    setting = HONEST[name]
    finding = attacked(setting, honest_worlds(name))
    assert finding.excess <= 0, finding
    assert finding.epsilon <= setting.plan.epsilon_after(1)


@pytest.mark.parametrize("name", ["with another", "alone", "exact", "persons"])
def test_the_noise_is_what_is_claimed_and_no_more(name: str) -> None:
    without, with_it = honest_worlds(name)
    assert np.concatenate([without, with_it])[:, 1:].std() == pytest.approx(0.7, rel=0.05)
    moved = with_it[:, 0].mean() - without[:, 0].mean()
    assert moved == pytest.approx(-1, abs=0.4)


# Steps that are wrong


def noise_halved(patch: pytest.MonkeyPatch) -> None:
    honest = TrainingPlan.scale
    patch.setattr(TrainingPlan, "scale", lambda self, phase: honest(self, phase) / 2)


def clip_skipped(patch: pytest.MonkeyPatch) -> None:
    def loose(phase: Phase, order: int) -> Clipping:
        return Flat(1e9)

    patch.setattr(sys.modules["discreet.train._training_run"], "clipping_of", loose)


def summed_before_clipping(patch: pytest.MonkeyPatch) -> None:
    def wrong(
        model: nn.Module,
        losses: Callable[[], Tensor],
        examples: int,
        clipping: Clipping,
        **_: object,
    ) -> _engine.Contribution:
        found = torch.autograd.grad(losses().sum(), trainable(model))
        size = torch.cat([part.reshape(-1) for part in found]).norm()
        factor = min(1.0, clipping.sensitivity / max(float(size), 1e-9))
        return _engine.Contribution(tuple(part * factor for part in found), size.reshape(1, 1))

    patch.setattr(_engine, "clipped_sum", wrong)


def rows_clipped_one_by_one(patch: pytest.MonkeyPatch) -> None:
    honest = _engine.clipped_sum
    patch.setattr(_engine, "clipped_sum", lambda *arguments, **_: honest(*arguments))


def noise_per_part(patch: pytest.MonkeyPatch) -> None:
    honest, bits = _engine.clipped_sum, QuickBits(9)

    def noisy(*arguments: Any, **options: Any) -> _engine.Contribution:
        found = honest(*arguments, **options)
        add_normal(found.sums, 0.7, bits)
        return found

    patch.setattr(_engine, "clipped_sum", noisy)
    patch.setattr(FloatGaussian, "add", lambda *_: None)


def divided_by_the_realised_batch(patch: pytest.MonkeyPatch) -> None:
    honest = TrainingRun._noisy

    def wrong(self: TrainingRun, *arguments: Any) -> list[Tensor]:
        share = 4 / max(1, self._places.size)
        return [total * share for total in honest(self, *arguments)]

    patch.setattr(TrainingRun, "_noisy", wrong)


def sampled_with_certainty(patch: pytest.MonkeyPatch) -> None:
    def everyone(self: Sampling, size: object, count: int, bits: object) -> list[IndexArray]:
        return [np.arange(count)]

    patch.setattr(PoissonSampling, "round", everyone)


def replaced_as_if_removed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TrainingPlan, "scale", lambda self, phase: phase.multiplier * phase.norm)


def clipped_on_the_grid_by_nothing(patch: pytest.MonkeyPatch) -> None:
    def loose(self: ExactGaussian, values: FloatArray, norm: Fraction) -> npt.NDArray[np.int64]:
        return np.rint(np.ldexp(values * FAR, self.k)).astype(np.int64)

    patch.setattr(ExactGaussian, "on_grid", loose)


# and the number of steps that show it
WRONG: list[tuple[Callable[[pytest.MonkeyPatch], None], Setting, int]] = [
    (noise_halved, OTHERS, 150),
    (noise_halved, HONEST["exact"], MORE),
    (clip_skipped, OTHERS, 100),
    (summed_before_clipping, Setting(made(), without=[FAR / 2]), 150),
    (rows_clipped_one_by_one, PERSONS, 120),
    (noise_per_part, ALONE, 100),
    (divided_by_the_realised_batch, OTHERS, STEPS),
    (sampled_with_certainty, HONEST["sampled"], MORE),
    (replaced_as_if_removed, EVERYONE, STEPS),
    (clipped_on_the_grid_by_nothing, HONEST["exact"], 100),
]


@pytest.fixture
def patch() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patched:
        yield patched


@pytest.mark.parametrize(
    ("mistake", "setting", "steps"), WRONG, ids=lambda value: getattr(value, "__name__", "")
)
def test_each_mistake_is_caught(
    mistake: Callable[[pytest.MonkeyPatch], None],
    setting: Setting,
    steps: int,
    patch: pytest.MonkeyPatch,
) -> None:
    mistake(patch)
    assert attacked(setting, setting.worlds(steps)).excess > 0
