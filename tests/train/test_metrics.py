"""Metrics on private examples, and choices by them, are bounded, paid for and noisy."""

import math
from fractions import Fraction
from functools import cache, partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import discreet as dp
from discreet.errors import ComputationFailed, InvalidArgument
from discreet.mechanisms import Door
from discreet.mechanisms._fixed_point import FixedPoint
from discreet.mechanisms._release import release_through
from discreet.mechanisms._rows import Grid, Rows
from discreet.mechanisms.tuning import NegativeBinomialRuns, Scored, Tuning
from discreet.train import metrics
from discreet.train._plans._plan import TrainingPlan, plan
from discreet.train._run import run
from discreet.train._trained import StateDict, Trained
from tests.bad_values import BadValue
from tests.mechanisms.kit import FakePayer
from tests.noise.fit import QuickBits
from tests.train.steps import data, linear, losses_of


def test_a_count_is_of_units() -> None:
    right = metrics.count(lambda: torch.tensor([[True], [False], [True]]), name="right")
    assert right.compute() == 2
    assert right.part.sensitivity.l1 == 1
    assert metrics.count(lambda: torch.zeros(0), name="none").compute() == 0


def exactly(made: dp.Bounded[FixedPoint]) -> Fraction:
    found = made.checked(made.compute())
    assert isinstance(found.steps, int)
    return found.steps * found.step


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf, 1e300, -5.0])
def test_an_odd_example_moves_a_total_by_at_most_its_bound(odd: float) -> None:
    given = [0.3, 1.7, 0.0001, 5.0]

    def of(losses: list[float]) -> Fraction:
        made = metrics.total(lambda: torch.tensor(losses), most=2, name="loss")
        assert made.part.sensitivity.l1 <= 4096 + 1
        return exactly(made)

    assert of(given) == of(given[::-1])
    assert abs(of(given) - Fraction(4.0001)) < Fraction(1, 1000)
    assert 0 <= of([*given, odd]) - of(given) <= 2


def test_a_total_in_single_precision_is_summed_exactly() -> None:
    """In float32, adding 0.1 to a million of them would be lost or not by the order."""
    many = torch.full((100_000,), 0.1)
    made = metrics.total(lambda: many, most=1, name="loss")
    assert exactly(made) == 100_000 * Fraction(round(0.1 * 4096), 4096)


@pytest.mark.parametrize("most", [0, -1, math.nan, math.inf])
def test_a_total_without_a_bound_is_refused(most: float) -> None:
    with pytest.raises(InvalidArgument, match="most"):
        metrics.total(lambda: torch.zeros(1), most=most, name="loss")


def test_metrics_are_paid_before_the_data_are_read_and_close_to_the_truth() -> None:
    payer, model = FakePayer(), linear()

    def right() -> Tensor:
        assert payer.charges
        found: Tensor = (model(data()["x"])[:, 0] > 0) == (data()["y"] > 0.5)
        return found

    counted = metrics.count(right, name="right answers")
    mechanism = dp.DiscreteLaplace.for_epsilon(5, counted)
    release = dp.release(counted, mechanism, payer)
    assert payer.charges == [mechanism.privacy_loss(counted)]
    assert abs(release.value - int(right().sum())) <= release.error(1 - 1e-9)
    assert "one figure for each unit" in repr(release)
    loss = metrics.total(lambda: losses_of(model)(part()), most=4, name="loss")
    told = dp.release(loss, dp.Laplace.for_epsilon(5, loss), payer)
    mean = told.processed(by_sixty, by="divided by 60")
    assert abs(mean.value - math.log(2)) < 0.5


def by_sixty(found: object) -> float:
    assert isinstance(found, float)
    return found / 60


def part() -> BadValue:
    from discreet.train._batches._data import microbatch_of

    return microbatch_of(data(), np.arange(60))


def test_a_failing_figure_locks_and_tells_nothing() -> None:
    def broken() -> Tensor:
        raise ValueError("4079213586")

    payer = FakePayer()
    counted = metrics.count(broken, name="right answers")
    with pytest.raises(ComputationFailed) as told:
        dp.release(counted, dp.DiscreteLaplace(1), payer)
    assert "4079213586" not in str(told.value)
    assert payer.is_locked


# A choice among runs

COLUMNS = {"a": Grid(-4, 4, step=Fraction(1, 64)), "b": Grid(-4, 4, step=Fraction(1, 64))}
COLUMNS["y"] = Grid(0, 1)


def rows() -> np.ndarray:
    chance = np.random.default_rng(3)
    points = chance.normal(size=(300, 2))
    return np.column_stack([points, points[:, 0] > 0])


def table(unit: dp.Unit = dp.Unit.ROW) -> dp.Bounded[Rows]:
    return dp.Bounded.rows(rows, columns=COLUMNS, unit=unit, name="points")


def examples(given: Rows) -> dict[str, Tensor]:
    found = torch.tensor(
        np.stack([given.places[:, place] for place in range(3)], 1), dtype=torch.float32
    )
    return {"x": found[:, :2] / 64 - 4, "y": found[:, 2]}


def start(rate: float) -> tuple[nn.Module, torch.optim.Optimizer]:
    model = nn.Linear(2, 1)
    for parameter in model.parameters():
        nn.init.zeros_(parameter)
    return model, torch.optim.SGD(model.parameters(), lr=abs(rate), maximize=rate < 0)


def losses(model: nn.Module, part: BadValue) -> Tensor:
    return nn.functional.binary_cross_entropy_with_logits(
        model(part.x)[:, 0], part.y, reduction="none"
    )


def right(given: Rows, state: StateDict) -> int:
    found = examples(given)
    sides = found["x"] @ state["weight"][0] + state["bias"] > 0
    return int((sides == (found["y"] > 0.5)).sum())


PUBLIC = {"x": data(5)["x"][:, :2], "y": data(5)["y"]}


@cache
def made(steps: int = 8) -> TrainingPlan:
    return plan(multiplier=8, delta=1e-6, records=300, batch=300, steps=steps)


def candidate(rate: float, made: TrainingPlan) -> Scored[Rows, StateDict]:
    trained = Trained(made, lambda: start(rate), examples, losses, PUBLIC)
    return Scored(trained, right, dp.DiscreteLaplace(4), sensitivity=1)


def tuned() -> Tuning[Rows]:
    """One candidate learns, the other learns the opposite."""
    named = {rate: candidate(rate, made()) for rate in (2.0, -2.0)}
    return Tuning(named, NegativeBinomialRuns.for_mean(8, eta=1, most=12))


def test_the_best_of_many_runs_costs_less_than_they_do() -> None:
    one, price = candidate(2.0, made()).privacy_loss(table()), tuned().privacy_loss(table())
    noise = dp.DiscreteLaplace(4).privacy_loss(metrics.count(lambda: torch.zeros(0), name="one"))
    assert one == made().privacy_loss + noise
    assert one.epsilon(1e-6) < price.epsilon(1e-6) < (4 * one).epsilon(1e-6)


def test_the_best_run_is_chosen_and_paid_as_a_whole() -> None:
    payer = FakePayer()
    release = release_through(Door(payer, QuickBits(2), None), table(), tuned())
    assert payer.charges == [tuned().privacy_loss(table())]
    assert release.value is not None
    assert release.value["candidate"] == 2.0
    assert release.value["score"] > 240
    assert right(table().checked(rows()), release.value["value"]) > 240


def test_candidates_of_different_prices_are_refused() -> None:
    named = {steps: candidate(2.0, made(steps)) for steps in (8, 9)}
    tuning = Tuning(named, NegativeBinomialRuns.for_mean(8, eta=1))
    payer = FakePayer()
    with pytest.raises(InvalidArgument, match="each run must cost the same"):
        dp.release(table(), tuning, payer)
    assert not payer.events


def test_another_unit_is_refused() -> None:
    trained = Trained(made(), lambda: start(1), examples, losses, PUBLIC)
    with pytest.raises(InvalidArgument, match="give both the same unit"):
        trained.privacy_loss(table(dp.Unit("person")))
    assert repr(trained).startswith("Trained(8 steps, epsilon=")


def test_a_tuned_candidate_trains_as_a_run_does(drawn: list[list[int]]) -> None:
    trained = Trained(made(), lambda: start(2.0), examples, losses, PUBLIC)
    given = table().checked(rows())
    state = trained.sample(given, QuickBits(5))
    model, optimizer = start(2.0)
    with run(
        model, optimizer, examples(given), made(), losses=partial(losses, model), payer=FakePayer()
    ) as training:
        for ticket in training.batches():
            training.step(ticket)
    assert torch.equal(state["weight"], model.state_dict()["weight"])
    assert len(drawn) == 16
