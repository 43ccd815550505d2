"""An adaptive clip norm: its rule, its price, and that what is drawn is what is priced."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from discreet._arrays import FloatArray
from discreet._budget import Limit
from discreet._unit import Change, Unit
from discreet.accounting import Gaussian, PoissonSampled, PrivacyLoss, RandomAllocation
from discreet.errors import InvalidArgument
from discreet.ledger import Ledger
from discreet.noise import RoundedGaussianLaw
from discreet.train._plans import _adaptive as module
from discreet.train._plans._adaptive import Adaptive, NoisyShare, read
from discreet.train._plans._noise import ExactGaussian, FloatLaplace
from discreet.train._plans._plan import Stage, TrainingPlan
from discreet.train._plans._sampling import AllocatedBatches, WithoutReplacement
from discreet.train._run import run
from tests.bad_values import BadValue
from tests.noise.fit import QuickBits
from tests.train.steps import (
    book,
    by_hand,
    data,
    known,
    linear,
    losses_of,
    of_persons,
    sgd,
    short,
    weights,
)
from tests.train.test_white_box import FAR, Finding, Told, compare, made

STEPS = 400  # that an attacker sees
REPLACED = Unit.ROW.with_change(Change.REPLACE)
PERSON = Unit("person")
SURE = Adaptive(quantile=0.6, start=0.4, rate=0.3, stddev=1e-9)  # with hardly any noise


def followed(made: TrainingPlan, given: BadValue, seed: int = 1) -> tuple[NoisyShare, ...]:
    """The noisy shares of a whole run with known bits."""
    model = linear()
    with known(model, given, made, seed) as training:
        for ticket in training.batches():
            training.step(ticket)
        return training.report().norms


# The price


def test_sum_and_count_are_priced_together_on_one_sample() -> None:
    made = short(clip=Adaptive(stddev=0.05), multiplier=2, records=930, batch=10, steps=5)
    both = Gaussian(2) + Gaussian(1)  # 2 * 0.05 * 10
    assert made.privacy_loss == (5 * PoissonSampled(both, Fraction(1, 93))).for_unit(Unit.ROW)
    assert made.epsilon > replace_clip(made, Fraction(1)).epsilon


def replace_clip(made: TrainingPlan, clip: Fraction) -> TrainingPlan:
    return replace(made, phases=tuple(replace(phase, clip=clip) for phase in made.phases))


def test_a_replaced_unit_moves_the_count_by_two() -> None:
    made = short(clip=Adaptive(), sampling=WithoutReplacement(), unit=REPLACED, multiplier=2)
    [(term, steps)] = made.privacy_loss.terms
    assert steps == 6
    assert "Gaussian(multiplier=1)" in repr(term)  # 2 * 0.05 * 20 / 2
    allocated = short(clip=Adaptive(), sampling=AllocatedBatches(), multiplier=2)
    [(term, _)] = allocated.privacy_loss.terms
    assert isinstance(term, RandomAllocation)


def test_noise_is_found_for_an_epsilon_the_count_included() -> None:
    facts = {"multiplier": None, "epsilon": 3, "records": 600, "batch": 100, "steps": 50}
    plain, counted = short(**facts), short(**facts, clip=Adaptive())
    assert 2.99 < counted.epsilon <= 3
    assert counted.phases[0].multiplier > plain.phases[0].multiplier
    with pytest.raises(InvalidArgument, match="the counts alone cost epsilon = 246"):
        short(**facts, clip=Adaptive(stddev=1e-3))


def test_a_plan_says_what_it_counts() -> None:
    told = short(clip=Adaptive(start=0.1), multiplier=2).explain()
    assert "starts at 0.1 and goes to where 0.5 of all are within it" in told
    assert "of scale 0.2 at first" in told
    assert "not covered: the count" in told
    assert short(clip=Adaptive()).digest != short(clip=Adaptive(quantile=0.6)).digest


@pytest.mark.parametrize(
    "wrong",
    [
        {"quantile": 0},
        {"quantile": 1},
        {"quantile": math.nan},
        {"start": 0},
        {"start": math.inf},
        {"rate": -1},
        {"stddev": 0},
        {"stddev": "1"},
    ],
)
def test_bad_adaptive_clips_are_refused(wrong: dict[str, BadValue]) -> None:
    with pytest.raises(InvalidArgument):
        Adaptive(**wrong)


@pytest.mark.parametrize("noise", [ExactGaussian(12), FloatLaplace()])
def test_other_noise_is_refused(noise: BadValue) -> None:
    with pytest.raises(InvalidArgument):
        short(clip=Adaptive(), noise=noise)


# The rule


@pytest.mark.parametrize("physical", [1024, 7])
def test_norms_follow_the_rule(physical: int) -> None:
    """Weights and norms of the whole run are those of a plain loop."""
    made, model, expected = short(clip=SURE, batch=60, steps=12), linear(), linear()
    norms, norm = list[float](), 0.4
    with known(model, data(), made) as training:
        training._size.rows = physical
        for ticket in training.batches():
            training.step(ticket)
            norms.append(norm)
            sizes = [float(by_hand(expected, data(), [place], 1e9).norm()) for place in range(60)]
            moved = by_hand(expected, data(), [*range(60)], norm) / 60
            with torch.no_grad():
                expected.weight -= moved[:3]  # type: ignore[operator]
                expected.bias -= moved[3:]  # type: ignore[operator]
            assert torch.allclose(weights(model), weights(expected), atol=1e-4)
            share = sum(size <= norm for size in sizes) / 60
            norm *= math.exp(0.3 * (0.6 - share))
        told = training.report().norms
    assert [each.norm for each in told] == pytest.approx(norms, rel=1e-6)
    assert len({round(each, 6) for each in norms}) == 12


def test_the_contribution_of_a_unit_counts_once() -> None:
    made = short(clip=SURE, unit=PERSON, records=12, batch=12, steps=2)
    first, second = followed(made, of_persons())
    assert first.share * 12 == pytest.approx(round(first.share * 12), abs=1e-6)
    assert second.norm == pytest.approx(0.4 * math.exp(0.3 * (0.6 - first.share)))


def test_an_example_that_is_not_finite_is_beyond_every_norm() -> None:
    given = data()
    whole = followed(short(clip=replace(SURE, start=100.0), batch=60, steps=1), given)
    given["x"][7] = float("nan")
    less = followed(short(clip=replace(SURE, start=100.0), batch=60, steps=1), given)
    assert whole[0].share - less[0].share == pytest.approx(1 / 60)


def test_an_empty_batch_is_reported_as_any_other() -> None:
    made = short(clip=Adaptive(stddev=0.25), records=10**9, batch=1, multiplier=1)
    assert len(followed(made, data())) == 6


def test_noise_is_relative_to_the_norm_in_use() -> None:
    made, model = short(clip=Adaptive(rate=2.0), multiplier=1e4, batch=60, steps=40), linear()
    with known(model, data(), made) as training:
        for ticket in training.batches():
            training.step(ticket)
            norm = training.report().norms[-1].norm
            scaled = torch.cat([p.grad.ravel() for p in model.parameters() if p.grad is not None])
            assert 0.05 < float(scaled.norm()) * 60 / (1e4 * norm) < 6


def test_schedules_go_on_with_the_same_clip_and_start_anew_with_another() -> None:
    other = replace(SURE, start=3.0)
    stages = [Stage(2), Stage(1, clip=5), Stage(2, noise=2), Stage(1, clip=other)]
    made = short(clip=SURE, batch=60, steps=None, stages=stages)
    told = followed(made, data())
    assert [each.step for each in told] == [1, 2, 4, 5, 6]
    for last, following in pairwise(told[:4]):
        assert following.norm == SURE.after(last)
    assert told[-1].norm == 3.0
    assert made.phase_now(2, told).norm == 5


def test_an_adaptive_clip_tracks_a_quantile_that_moves() -> None:
    """Log-normal norms, a tenth of which are sampled; they grow tenfold in between."""
    chance, bits, clip = np.random.default_rng(1), QuickBits(1), Adaptive(quantile=0.8, start=0.01)
    norm, batch = clip.start, 500
    for step in range(400):
        sizes = np.exp(chance.normal(0, 1, chance.binomial(5000, 0.1))) * (10 if step >= 200 else 1)
        within = int((sizes <= norm).sum())
        share = clip.share(within, sizes.size - within, batch, bits)
        norm = clip.after(NoisyShare(step + 1, norm, share))
        if step in {199, 399}:
            true = math.exp(0.8416) * (10 if step == 399 else 1)
            assert norm == pytest.approx(true, rel=0.15)


def test_norms_stay_where_floats_are() -> None:
    for share in (-1e300, 1e300):
        norm = Adaptive().after(NoisyShare(1, 1.0, share))
        assert norm == pytest.approx(2.0**20 if share < 0 else 2.0**-20)
        assert Adaptive().after(NoisyShare(2, norm, share)) == pytest.approx(norm)


# Resuming


def test_a_resumed_run_goes_on_with_its_norm(tmp_path: Path) -> None:
    path, made, model = tmp_path / "x.ledger", short(clip=Adaptive(), multiplier=1), linear()
    Ledger.create(path, unit=Unit.ROW, limit=Limit(10**20, 0.5))
    with run(
        model, sgd(model), data(), made, losses=losses_of(model), payer=Ledger.open(path)
    ) as training:
        steps = training.batches()
        for _ in range(3):
            training.step(next(steps))
        torch.save(training.checkpoint(), tmp_path / "kept.pt")
        before = training.report().norms
    kept = torch.load(tmp_path / "kept.pt", weights_only=True)
    other = linear()
    with run(
        other,
        sgd(other),
        data(),
        made,
        losses=losses_of(other),
        payer=Ledger.open(path),
        resume=kept,
    ) as training:
        for ticket in training.batches():
            training.step(ticket)
        told = training.report().norms
        assert f"clip norm 1 in step 1, {told[-1].norm:.6g} in step 6" in repr(training.report())
    assert told[:3] == before
    assert [each.step for each in told] == [1, 2, 3, 4, 5, 6]
    assert told[3].norm == Adaptive().after(before[-1])


@pytest.mark.parametrize(
    "told", [5, [1], [(1, "x", 0.5)], [(1, -1, 0.5)], [(1, math.nan, 0.5)], [(1, 1, math.inf)]]
)
def test_norms_that_are_none_are_refused(told: BadValue) -> None:
    with pytest.raises(InvalidArgument, match="clip norms"):
        read(told)


def test_a_step_that_failed_tells_nothing() -> None:
    made, model = short(clip=Adaptive(), multiplier=1), linear()
    optimizer = sgd(model)
    with run(model, optimizer, data(), made, losses=losses_of(model), payer=book()) as training:
        steps = training.batches()
        training.step(next(steps))
        optimizer.register_step_pre_hook(fail)
        with pytest.raises(ArithmeticError):
            training.step(next(steps))
        assert [each.step for each in training.report().norms] == [1]


def fail(*_: object) -> None:
    raise ArithmeticError


# What an attacker sees, sum and count, is what is priced


class Setting:
    """Steps of one other example, with noise mostly on the sum, or on the count."""

    def __init__(self, multiplier: float, count: float, example: float) -> None:
        clip = Adaptive(rate=1e-6, stddev=count / 8)  # of batches of 4
        self.plan, self.example = made(multiplier, clip=clip, steps=STEPS), example
        self.spread = multiplier, count
        self.claim = PrivacyLoss.of(self.plan.loss_after(1).terms[0][0]).trade_off()

    def observed(self, *, is_in: bool, steps: int = STEPS) -> FloatArray:
        """The first steps' likelihood ratios: larger if it looks as if the example were in it."""
        rows = torch.zeros(1 + is_in, 8)
        rows[:, 0] = torch.tensor([0.5, self.example][: 1 + is_in])
        model, found = Told(), []
        own = lambda part: model(part[0])  # noqa: E731
        with known(model, (rows,), self.plan, seed=2 + is_in, losses=own) as training:
            for ticket in islice(training.batches(), steps):
                training.step(ticket)
                last = training.report().norms[-1]
                assert model.layer.weight.grad is not None
                along = 4 * float(model.layer.weight.grad[0, 0]) / last.norm
                found.append(self._looks(along, 8 * last.share - 4))
        return np.array(found)

    def _looks(self, along: float, signs: float) -> float:
        direction, sign = math.copysign(1, self.example), 1 if abs(self.example) <= 1 else -1
        by_sum, by_count = (spread**-2 for spread in self.spread)
        return along * direction * by_sum + signs * sign * by_count

    def attacked(self, steps: int = STEPS) -> Finding:
        without, with_it = (self.observed(is_in=is_in, steps=steps) for is_in in (False, True))
        worst = Finding()
        for threshold in np.quantile(np.concatenate([without, with_it]), np.linspace(0.02, 0.98)):
            compare(self.claim, without >= threshold, with_it >= threshold, "both", worst)
            compare(self.claim, with_it < threshold, without < threshold, "both", worst)
        return worst


SETTINGS = {
    "a long one": Setting(4, 0.5, FAR),
    "a short one": Setting(4, 0.5, 1e-3),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_the_claim_is_never_exceeded(name: str) -> None:
    finding = SETTINGS[name].attacked()
    assert finding.excess <= 0, finding


def noise_of_the_count_halved(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(module, "RoundedGaussianLaw", lambda scale: RoundedGaussianLaw(scale / 2))


def bits_not_centred(patch: pytest.MonkeyPatch) -> None:
    honest = Adaptive.share
    patch.setattr(
        Adaptive,
        "share",
        lambda self, within, beyond, batch, bits: honest(self, 2 * within, 0, batch, bits),
    )


def count_without_noise(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Adaptive, "share", lambda self, within, beyond, *_: (within - beyond) / 8 + 0.5)


@pytest.mark.parametrize(
    ("mistake", "name", "steps"),  # as many as show it
    [
        (noise_of_the_count_halved, "a long one", 200),
        (count_without_noise, "a long one", 160),
        (bits_not_centred, "a short one", 300),
    ],
)
def test_each_mistake_is_caught(
    mistake: Callable[[pytest.MonkeyPatch], None],
    name: str,
    steps: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mistake(monkeypatch)
    assert SETTINGS[name].attacked(steps).excess > 0
