"""A plan knows what it will cost, never above its target, and couples what can't be mismatched."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet._unit import Change, Unit
from discreet.accounting import (
    Gaussian,
    Laplace,
    PoissonSampled,
    PrivacyLoss,
    RandomAllocation,
    SampledWithoutReplacement,
    Shuffled,
    TruncatedPoisson,
)
from discreet.errors import InvalidArgument, NoBound
from discreet.train._plans._noise import ExactGaussian, FloatLaplace
from discreet.train._plans._plan import Stage, TrainingPlan, plan
from discreet.train._plans._sampling import (
    AllocatedBatches,
    PoissonSampling,
    Sampling,
    SamplingSize,
    ShuffledBatches,
    TruncatedPoissonSampling,
    WithoutReplacement,
)
from tests.bad_values import BadValue

REPLACED = Unit.ROW.with_change(Change.REPLACE)
SAMPLINGS: list[Sampling] = [
    PoissonSampling(),
    TruncatedPoissonSampling(most=80),
    WithoutReplacement(),
    ShuffledBatches(),
    AllocatedBatches(),
]


def unit_of(sampling: Sampling) -> Unit:
    return Unit.ROW.with_change(sampling.change)


def short(**changes: BadValue) -> TrainingPlan:
    facts = {"multiplier": 2, "delta": 1e-5, "records": 1000, "batch": 50, "steps": 30}
    return plan(**{**facts, **changes})


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=repr)
@pytest.mark.parametrize("epsilon", [0.7, 4])
def test_a_calibrated_plan_never_exceeds_its_target(sampling: Sampling, epsilon: float) -> None:
    made = short(multiplier=None, epsilon=epsilon, sampling=sampling, unit=unit_of(sampling))
    assert made.epsilon <= epsilon
    assert made.epsilon >= 0.99 * epsilon
    assert made.privacy_loss.epsilon(1e-5) == made.epsilon == made.epsilon_after(30)
    assert made.privacy_loss.unit == made.unit


@given(
    epsilon=st.floats(0.3, 8),
    records=st.integers(500, 10**6),
    batch=st.integers(1, 500),
    epochs=st.sampled_from([1, 2.5]),
)
@settings(max_examples=8, deadline=None)
def test_whatever_the_sizes_the_target_holds(
    epsilon: float, records: int, batch: int, epochs: float
) -> None:
    if records / batch > 3000:
        batch = records // 3000 + 1
    made = plan(epsilon=epsilon, delta=1e-6, records=records, batch=batch, epochs=epochs)
    assert made.epsilon <= epsilon
    assert made.phases[0].size.rate == Fraction(batch, records)
    assert made.steps == -(-Fraction(epochs) * records // batch)


# What each sampling prices: each line is the term's own parameters

PRICES: list[tuple[Sampling, PrivacyLoss]] = [
    (PoissonSampling(), 30 * PoissonSampled(Gaussian(2), Fraction(50, 1000))),
    (
        TruncatedPoissonSampling(most=80),
        30 * TruncatedPoisson(Gaussian(2), Fraction(50, 1000), most=80, records=1000),
    ),
    (WithoutReplacement(), 30 * SampledWithoutReplacement(Gaussian(2), 50, 1000)),
    (ShuffledBatches(), 2 * Shuffled(Gaussian(2))),
    (AllocatedBatches(), 2 * RandomAllocation(Gaussian(2), 20)),
]


@pytest.mark.parametrize(("sampling", "loss"), PRICES, ids=repr)
def test_the_price_is_that_of_the_sampling(sampling: Sampling, loss: PrivacyLoss) -> None:
    made = short(sampling=sampling, unit=unit_of(sampling))
    assert made.privacy_loss == loss.for_unit(made.unit)
    wrong = Unit.ROW if made.unit == REPLACED else REPLACED
    with pytest.raises(InvalidArgument, match="is priced for"):
        short(sampling=sampling, unit=wrong)


def test_the_rate_is_an_exact_quotient() -> None:
    """1 / (1 / 93) lies below 93 in floats, which made 92 batches of 93."""
    assert int(1 / (1 / 93)) == 92
    made = short(records=930, batch=10, steps=None, epochs=1)
    assert made.steps == 93
    assert made.phases[0].size.rate == Fraction(1, 93)
    for records in range(1, 400):
        assert short(records=records, batch=1, steps=None, epochs=1).steps == records


@pytest.mark.parametrize(
    ("sampling", "steps"),
    [(PoissonSampling(), 13), (ShuffledBatches(), 14), (AllocatedBatches(), 14)],
)
def test_epochs_that_batches_do_not_fill(sampling: Sampling, steps: int) -> None:
    made = short(
        records=1000, batch=160, steps=None, epochs=2, sampling=sampling, unit=unit_of(sampling)
    )
    assert made.steps == steps
    assert made.loss_after(made.steps) == made.privacy_loss


@pytest.mark.parametrize("length", [{"epochs": 2}, {"steps": 10}, {"stages": [Stage(10)]}], ids=str)
@pytest.mark.parametrize("kind", [float, np.int64, Fraction], ids=lambda kind: kind.__name__)
def test_whole_numbers_of_any_type_give_the_same_plan(
    kind: Callable[[int], Any], length: dict[str, Any]
) -> None:
    expected = plan(records=100, batch=20, multiplier=2, delta=1e-5, **length)
    assert plan(records=kind(100), batch=kind(20), multiplier=2, delta=1e-5, **length) == expected


def test_an_epoch_that_is_begun_counts_whole() -> None:
    made = short(sampling=ShuffledBatches(), unit=REPLACED, steps=60)
    assert [made.loss_after(step).terms[0][1] for step in (1, 20, 21, 60)] == [1, 1, 2, 3]
    assert made.loss_after(0) == PrivacyLoss(unit=REPLACED)


def test_a_replaced_unit_moves_a_sum_by_twice_the_norm() -> None:
    made = short(sampling=WithoutReplacement(), unit=REPLACED, clip=0.5)
    assert made.scale(made.phases[0]) == 2
    assert (kept := short(clip=0.5)).scale(kept.phases[0]) == 1


def test_epsilon_grows_step_by_step() -> None:
    made = short(steps=30)
    curve = made.curve(10)
    assert [step for step, _ in curve] == list(range(3, 31, 3))
    epsilons = [epsilon for _, epsilon in curve]
    assert epsilons == sorted(epsilons)
    assert epsilons[-1] == made.epsilon
    with pytest.raises(InvalidArgument, match="the plan has 30"):
        made.epsilon_after(31)


def test_schedules_compose_term_by_term() -> None:
    stages = [
        Stage(10, noise=0.5),
        Stage(10, batch=100, clip=0.25),
        Stage(5, noise=2, batch=100),
    ]
    made = short(steps=None, stages=stages)
    assert made.steps == 25
    assert made.privacy_loss == (
        10 * PoissonSampled(Gaussian(1), 0.05)
        + 10 * PoissonSampled(Gaussian(2), 0.1)
        + 5 * PoissonSampled(Gaussian(4), 0.1)
    ).for_unit(Unit.ROW)
    assert (
        made.loss_after(12).terms
        == (10 * PoissonSampled(Gaussian(1), 0.05) + 2 * PoissonSampled(Gaussian(2), 0.1)).terms
    )
    assert [made.phase_at(step)[1] for step in (0, 9, 10, 19, 20, 24)] == [0, 0, 10, 10, 20, 20]
    assert [made.scale(phase) for phase in made.phases] == [1, Fraction(1, 2), 4]
    told = made.explain()
    assert "steps 11 to 20:" in told
    assert "100 / 1000" in told


def test_a_schedule_is_calibrated_as_a_whole() -> None:
    stages = [Stage(10, noise=3), Stage(20)]
    made = short(steps=None, stages=stages, multiplier=None, epsilon=2)
    first, second = made.phases
    assert first.multiplier == 3 * second.multiplier
    assert 1.98 <= made.epsilon <= 2


def test_laplace_noise_needs_no_delta() -> None:
    made = short(noise=FloatLaplace(), delta=0, epsilon=3, multiplier=None)
    assert made.epsilon <= 3
    level = made.phases[0].multiplier
    assert made.privacy_loss.terms == ((PoissonSampled(Laplace(level), 0.05), 30),)


def test_rounds_start_where_draws_are_anew() -> None:
    made = short(
        sampling=ShuffledBatches(), unit=REPLACED, steps=None, stages=[Stage(50), Stage(30)]
    )
    starts = [made.next_round(step) for step in (0, 1, 20, 21, 41, 50, 51, 70, 71, 80)]
    assert starts == [0, 20, 20, 40, 50, 50, 70, 70, 80, 80]
    assert [short().next_round(step) for step in (0, 7, 30)] == [0, 7, 30]


def test_a_plan_says_what_it_does_and_what_it_rests_on() -> None:
    made = short(unit=Unit("person_id"))
    told = made.explain()
    for words in (
        "30 steps, for all rows of one 'person_id'",
        "each with probability 50 / 1000, independently",
        "clipped to L2 norm 1",
        "divided by 50",
        f"epsilon = {made.epsilon:.6g} at delta = 1e-05",
        "1000 is public",
        "not covered: float noise",
    ):
        assert words in told
    assert "not covered" not in short(noise=ExactGaussian(16)).explain()


def test_each_sampling_says_what_the_declared_number_must_be() -> None:
    words = ["about", "at least", "exactly", "exactly", "about"]
    for sampling, word in zip(SAMPLINGS, words, strict=True):
        made = short(sampling=sampling, unit=unit_of(sampling))
        assert f"assumed: 1000 is public: {word} as many as the data have" in made.explain()


def test_a_digest_is_of_everything_that_the_run_does() -> None:
    made = short()
    assert made.digest == short().digest
    assert made.digest == replace(made, delta=Fraction(0)).digest
    others = [
        short(multiplier=3),
        short(records=1001),
        short(batch=51),
        short(steps=31),
        short(clip=2),
        short(unit=Unit("person_id")),
        short(sampling=AllocatedBatches()),
        short(noise=ExactGaussian(16)),
        short(steps=None, stages=[Stage(20), Stage(10)]),
    ]
    assert len({made.digest, *(other.digest for other in others)}) == 10


@dataclass(frozen=True)
class Loose:
    order: int = 2
    sensitivity: float = nan


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"records": 0}, "records"),
        ({"records": 10.5}, "records"),
        ({"records": True}, "records"),
        ({"batch": 0}, "batch"),
        ({"batch": 1001}, "at most the records, 1000"),
        ({"batch": None}, "batch"),
        ({"steps": 0}, "steps"),
        ({"steps": None}, "one of epochs, steps and stages"),
        ({"epochs": 1}, "one of epochs, steps and stages"),
        ({"steps": None, "epochs": nan}, "epochs"),
        ({"multiplier": 0}, "multiplier"),
        ({"multiplier": nan}, "multiplier"),
        ({"multiplier": None}, "either epsilon"),
        ({"epsilon": 1}, "either epsilon"),
        ({"multiplier": None, "epsilon": nan}, "epsilon"),
        ({"multiplier": None, "epsilon": -1}, "epsilon"),
        ({"multiplier": None, "epsilon": 1, "delta": 0}, "delta = 0"),
        ({"delta": 1}, "delta"),
        ({"clip": 0}, "clip"),
        ({"clip": nan}, "clip"),
        ({"clip": "1"}, "clip"),
        ({"clip": True}, "clip"),
        ({"clip": Loose()}, "clip"),
        ({"clip": Loose(1, 1.0)}, "needs L2"),
        ({"clip": Loose(2, 1.0), "noise": FloatLaplace()}, "needs L1"),
        ({"clip": Loose(2, 1.0), "noise": ExactGaussian(8)}, "one norm for all"),
        ({"clip": 1e-9, "noise": ExactGaussian(8)}, "steps of the grid"),
        ({"clip": 1e9, "noise": ExactGaussian(8)}, "steps of the grid"),
        ({"unit": "person"}, "unit"),
        ({"noise": 1.1}, "noise = 1.1: .*multiplier"),
        ({"sampling": "poisson"}, "sampling = 'poisson'"),
    ],
)
def test_bad_input_is_refused_by_name(wrong: dict[str, BadValue], told: str) -> None:
    with pytest.raises(InvalidArgument, match=told):
        short(**wrong)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Stage(0),
        lambda: Stage(1, noise=0),
        lambda: Stage(1, noise=nan),
        lambda: TruncatedPoissonSampling(most=0),
        lambda: ExactGaussian(Fraction(1)),  # type: ignore[arg-type]
        lambda: ExactGaussian(True),
        lambda: ExactGaussian(61),
        lambda: SamplingSize(1, 2),
    ],
)
def test_bad_pieces_are_refused(make: BadValue) -> None:
    with pytest.raises(InvalidArgument):
        make()


def test_parameters_without_noise_are_named() -> None:
    """Truncation that cuts all the time pays for it in delta or epsilon, or is refused."""
    made = short(sampling=TruncatedPoissonSampling(most=50), multiplier=None, epsilon=1)
    loose = short(sampling=TruncatedPoissonSampling(most=500), multiplier=None, epsilon=1)
    assert made.phases[0].multiplier > loose.phases[0].multiplier
    with pytest.raises(NoBound):
        short(noise=FloatLaplace(), multiplier=None, epsilon=1e-40, delta=0)


def test_a_plan_needs_no_torch() -> None:
    code = (
        "import sys, types, discreet\n"
        "sys.modules['torch'] = None\n"
        "folder = sys.modules['discreet.train'] = types.ModuleType('discreet.train')\n"
        "folder.__path__ = [discreet.__path__[0] + '/train']\n"
        "from discreet.train._plans._plan import plan\n"
        "import discreet.train._plans._report\n"
        "print(plan(multiplier=1, delta=1e-5, records=100, batch=10, steps=3).explain())"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "3 steps" in done.stdout
