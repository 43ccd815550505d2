"""A run is paid first, makes each step once, and leaves nothing of a step that failed."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from discreet.errors import (
    BudgetExceeded,
    DiscreetError,
    InvalidArgument,
    Refused,
    SessionEnded,
    WrongUnit,
)
from discreet.ledger import Kind, Ledger
from discreet.mechanisms import Door
from discreet.noise import SecureBits
from discreet.payment import Limit
from discreet.train.contributions import Examples, Physical, Seen, Work, clipping_of, float_sums
from discreet.train.noise import ExactGaussian, FloatLaplace
from discreet.train.plan import Stage, TrainingPlan
from discreet.train.run import run, run_through
from discreet.train.sampling import (
    AllocatedBatches,
    ShuffledBatches,
    TruncatedPoissonSampling,
    WithoutReplacement,
)
from discreet.train.units import Persons, Reduce
from discreet.unit import Change, Unit
from tests.mechanisms.kit import FakePayer
from tests.noise.test_fit import QuickBits
from tests.train.steps import (
    Wrong,
    book,
    data,
    known,
    linear,
    losses_of,
    sgd,
    short,
    trained,
    weights,
)

REPLACED = Unit.ROW.with_change(Change.REPLACE)
PERSON = Unit("person")


class Guarded:
    """Data that may not be looked at before they are paid."""

    def __init__(self, payer: FakePayer | None) -> None:
        self.payer = payer
        self.inner = data()

    def __len__(self) -> int:
        assert self.payer is not None
        assert self.payer.charges, "looked at before it was paid"
        return len(self.inner["x"])

    def __getitem__(self, place: int) -> tuple[Tensor, Tensor]:
        assert len(self)
        return self.inner["x"][place], self.inner["y"][place]


def pair_losses(model: nn.Module) -> Callable[[Any], Tensor]:
    """For parts that are lists of x and y."""
    return lambda part: nn.functional.binary_cross_entropy_with_logits(
        model(part[0])[:, 0], part[1], reduction="none"
    )


# Paid first


def test_the_whole_plan_is_paid_before_anything_is_read() -> None:
    payer, model, made = FakePayer(), linear(), short()
    with run(model, sgd(model), Guarded(payer), made, payer=payer, by="ana") as training:
        assert payer.charges == [made.privacy_loss]
        assert (training.receipt.by, training.receipt.is_insecure) == ("ana", False)
        for batch in training.batches():
            training.step(batch, pair_losses(model))
    assert payer.events == ["charge"]


def test_what_is_not_paid_is_not_read() -> None:
    model = linear()
    with (
        pytest.raises(BudgetExceeded),
        run(model, sgd(model), Guarded(None), short(), payer=FakePayer(refuses=True)),
    ):
        raise AssertionError
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(1, 1e-5))
    with (
        pytest.raises(WrongUnit),
        run(model, sgd(model), Guarded(None), short(), payer=ledger),
    ):
        raise AssertionError
    assert len(ledger.history()) == 1


def lbfgs(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.LBFGS(model.parameters())


def foreign(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD([*model.parameters(), nn.Parameter(torch.zeros(1))], lr=1)


@pytest.mark.parametrize(
    ("make", "given", "changes", "told"),
    [
        (lbfgs, data(), {}, "LBFGS"),
        (foreign, data(), {}, "parameters that the model hasn't"),
        (sgd, 5, {}, "train_set is a int"),
        (sgd, {}, {}, "train_set is a dict"),
        (sgd, iter([1]), {}, "samplers and loaders"),
        (sgd, data(), {"unit": PERSON}, "Persons"),
        (sgd, Persons(data(), [0] * 60, column="person", most=1), {}, "Unit.ROW"),
        (sgd, Persons(data(), [0] * 60, column="house", most=1), {"unit": PERSON}, "column"),
    ],
)
def test_what_can_not_be_run_is_refused_before_it_is_paid(
    make: Callable[[nn.Module], torch.optim.Optimizer],
    given: Wrong,
    changes: dict[str, Wrong],
    told: str,
) -> None:
    payer, model = FakePayer(), linear()
    with (
        pytest.raises(InvalidArgument, match=told),
        run(model, make(model), given, short(**changes), payer=payer),
    ):
        raise AssertionError
    frozen = linear().requires_grad_(False)
    with pytest.raises(InvalidArgument), run(frozen, sgd(model), data(), short(), payer=payer):
        raise AssertionError
    with pytest.raises(InvalidArgument), run(model, sgd(model), data(), 3, payer=payer):  # type: ignore[arg-type]
        raise AssertionError
    assert not payer.events


# What a step does


def test_a_model_or_loss_that_mixes_examples_is_refused_before_it_sees_any() -> None:
    given, made, seen = data(), short(), list[Tensor]()

    def contrasting(part: Any) -> Tensor:
        seen.append(part.x)
        found: Tensor = model(part.x)[:, 0]
        return (found - found.mean()) ** 2

    model = linear()  # all 0, where these gradients are 0 too
    with (
        known(model, given, made) as training,
        pytest.raises(Refused, match="loss of one example depends on others"),
    ):
        training.step(next(training.batches()), contrasting)
    assert not any((given["x"] == row).all(1).any() for part in seen for row in part)
    assert not weights(model).any()
    mixing = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 1))
    with known(mixing, given, made) as training, pytest.raises(Refused, match="BatchNorm1d"):
        training.step(next(training.batches()), losses_of(mixing))


def by_hand(model: nn.Module, given: dict[str, Tensor], places: list[int], norm: float) -> Tensor:
    """One after the other, clipped and summed."""
    total = torch.zeros(4)
    for place in places:
        x, y = given["x"][place], given["y"][place]
        loss = nn.functional.binary_cross_entropy_with_logits(model(x)[0], y)
        found = torch.autograd.grad(loss, list(model.parameters()))
        gradient = torch.cat([part.reshape(-1) for part in found])
        total += gradient * min(1.0, norm / float(gradient.norm()))
    return total


@pytest.mark.parametrize("clip", [0.3, 100.0])
def test_a_step_is_the_clipped_sum_over_the_public_batch(clip: float) -> None:
    given, made, model = data(), short(clip=clip), linear()
    expected = linear()
    with known(model, given, made) as training:
        for batch in training.batches():
            places = training._places.tolist()
            moved = by_hand(expected, given, places, clip) / 20
            training.step(batch, losses_of(model))
            with torch.no_grad():
                expected.weight -= moved[:3]  # type: ignore[operator]
                expected.bias -= moved[3:]  # type: ignore[operator]
            assert torch.allclose(weights(model), weights(expected), atol=1e-5)
    assert weights(model).norm() > 0.1


@pytest.mark.parametrize("physical", [1, 7, 19])
def test_splitting_changes_nothing(physical: int) -> None:
    """Nor does it add noise more than once."""
    made = short(multiplier=1)
    assert torch.allclose(
        trained(made, data(), physical=physical), trained(made, data()), atol=1e-5
    )


def test_running_out_of_memory_changes_nothing() -> None:
    made, model, sizes = short(multiplier=1), linear(), []

    def hungry(part: Any) -> Tensor:
        sizes.append(len(part.x))
        if len(part.x) > 3:
            kind = torch.OutOfMemoryError if len(sizes) % 2 else RuntimeError
            raise kind("DefaultCPUAllocator: can't allocate memory")
        return losses_of(model)(part)

    with known(model, data(), made) as training:
        for batch in training.batches():
            training.step(batch, hungry)
    assert torch.allclose(weights(model), trained(made, data()), atol=1e-5)
    assert max(sizes) > 3 >= sizes[-1]


def test_an_example_that_does_not_fit_alone_ends_the_step() -> None:
    model = linear()

    def hungry(_: Any) -> Tensor:
        raise torch.OutOfMemoryError

    with known(model, data(), short()) as training, pytest.raises(torch.OutOfMemoryError):
        training.step(next(training.batches()), hungry)
    assert training._physical.size == 1


def test_an_empty_batch_is_a_step() -> None:
    made, model, calls = short(multiplier=1, records=10**9, batch=1), linear(), list[Any]()

    def noted(part: Any) -> Tensor:
        calls.append(part)
        return losses_of(model)(part)

    with known(model, data(), made) as training:
        for batch in training.batches():
            if batch.step == 2:
                calls.clear()  # the first step looked at the model
            before = weights(model)
            training.step(batch, noted)
            assert (weights(model) != before).all()
        assert training.report().done == 6
        assert "0 examples, mean loss none" in repr(training.not_private)
    assert not calls


@pytest.mark.parametrize("rows", [0, 1, 45, 75])
def test_the_true_size_shows_nowhere(rows: int) -> None:
    """The same rate, divisor, number of steps and noise."""
    made, model = short(steps=40), linear()
    sizes = []
    with known(model, data(rows), made) as training:
        for batch in training.batches():
            sizes.append(training._places.size)
            training.step(batch, losses_of(model))
        assert training.report().done == 40
        told = re.sub(r"\([0-9a-f]{12}\)", "", repr(training.report()))
    assert abs(sum(sizes) / 40 - rows / 3) < 3
    with known(model, data(60), made) as other:
        for batch in other.batches():
            other.step(batch, losses_of(model))
        assert re.sub(r"\([0-9a-f]{12}\)", "", repr(other.report())) == told


def test_where_the_size_is_public_it_must_be_right() -> None:
    for sampling in (WithoutReplacement(), ShuffledBatches()):
        made = short(sampling=sampling, unit=REPLACED, records=61)
        with (
            pytest.raises(InvalidArgument, match="but the data have 60"),
            known(linear(), data(), made),
        ):
            raise AssertionError


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_an_example_that_is_not_finite_counts_as_zero(wrong: float) -> None:
    given = data()
    given["x"][7] = wrong
    made = short(batch=60)
    model = linear()
    with known(model, given, made) as training:
        training.step(next(training.batches()), losses_of(model))
    rest = [place for place in range(60) if place != 7]
    assert torch.allclose(weights(model), -by_hand(linear(), data(), rest, 1.0) / 60, atol=1e-5)


def test_gradients_from_elsewhere_are_dropped() -> None:
    model, made = linear(), short(batch=60)
    with known(model, data(), made) as training:
        steps = training.batches()
        batch = next(steps)
        for parameter in model.parameters():
            parameter.grad = torch.full_like(parameter, 1e6)
        training.step(batch, losses_of(model))
    assert weights(model).norm() < 2


def test_every_kind_of_data_is_taken() -> None:
    given, made = data(), short(multiplier=1)
    expected = trained(made, given)
    x, y = given["x"], given["y"]
    assert torch.equal(trained(made, (x, y)), expected)
    assert torch.equal(trained(made, TensorDataset(x, y)), expected)
    assert torch.equal(trained(made, {"x": x.numpy(), "y": y.numpy()}), expected)
    payer, model = FakePayer(), linear()
    payer.charges.append(made.privacy_loss)
    with known(model, Guarded(payer), made) as training:
        for batch in training.batches():
            training.step(batch, pair_losses(model))
    assert torch.equal(weights(model), expected)


@pytest.mark.parametrize(
    ("sampling", "unit"),
    [
        (TruncatedPoissonSampling(most=25), Unit.ROW),
        (AllocatedBatches(), Unit.ROW),
        (WithoutReplacement(), REPLACED),
        (ShuffledBatches(), REPLACED),
    ],
)
def test_every_sampling_runs_all_its_steps(sampling: Wrong, unit: Unit) -> None:
    made, model, sizes = short(sampling=sampling, unit=unit, batch=17, steps=9), linear(), []
    with known(model, data(), made) as training:
        for batch in training.batches():
            sizes.append(training._places.size)
            training.step(batch, losses_of(model))
    assert len(sizes) == 9
    if sampling == WithoutReplacement():
        assert sizes == [17] * 9
    if sampling == ShuffledBatches():
        assert sizes == [17, 17, 17, 9] * 2 + [17]
    if sampling == AllocatedBatches():
        assert sum(sizes[:4]) == sum(sizes[4:8]) == 60


def test_schedules_are_followed() -> None:
    stages = [Stage(2, clip=0.1), Stage(2, batch=60, clip=50), Stage(1, noise=1000)]
    made, model = short(steps=None, stages=stages), linear()
    with known(model, data(), made) as training:
        for batch, (clip, divisor) in zip(
            training.batches(), [(0.1, 20), (0.1, 20), (50, 60), (50, 60), (1, 20)], strict=True
        ):
            moved = by_hand(model, data(), training._places.tolist(), clip) / divisor
            before = weights(model)
            training.step(batch, losses_of(model))
            assert torch.allclose(before - weights(model), moved, atol=2e-5)


def test_nothing_seeds_a_run() -> None:
    made, found = short(multiplier=1), []
    for _ in range(2):
        torch.manual_seed(5)
        np.random.seed(5)
        model = linear()
        with run(model, sgd(model), data(), made, payer=book()) as training:
            for batch in training.batches():
                training.step(batch, losses_of(model))
        found.append(weights(model))
    assert (found[0] != found[1]).all()


# Each step once, in its turn


def test_a_step_that_is_passed_over_is_refused() -> None:
    model = linear()
    with known(model, data(), short()) as training:
        steps = training.batches()
        next(steps)
        with pytest.raises(Refused, match="step 1 was passed over"):
            next(steps)


def test_a_step_is_made_once() -> None:
    model = linear()
    with known(model, data(), short()) as training:
        steps = training.batches()
        first = next(steps)
        training.step(first, losses_of(model))
        with pytest.raises(Refused, match="is over"):
            training.step(first, losses_of(model))
        second = next(steps)
        with pytest.raises(Refused, match="is over"):
            training.step(first, losses_of(model))
        with pytest.raises(Refused, match="is over"):
            training.step(replace(second), losses_of(model))
        training.step(second, losses_of(model))
        assert training.report().done == 2


def test_steps_stop_where_the_plan_does() -> None:
    model = linear()
    with known(model, data(), short()) as training:
        assert len([training.step(batch, losses_of(model)) for batch in training.batches()]) == 6  # type: ignore[func-returns-value]
        assert list(training.batches()) == []
        assert training.report().done == training.report().taken == 6
    with pytest.raises(SessionEnded):
        next(training.batches())
    with known(model, data(), short()) as training:
        batch = next(training.batches())
    with pytest.raises(Refused):
        training.step(batch, losses_of(model))


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("part", [1, 2])
def test_a_step_that_fails_leaves_nothing(failure: type[BaseException], part: int) -> None:
    """The next one is as if it had never been, but for the step that it took."""
    made, model, calls = short(), linear(), []

    def failing(given: Any) -> Tensor:
        calls.append(given)
        if len(calls) == part:
            raise failure
        return losses_of(model)(given)

    with known(model, data(), made) as training:
        training._physical.size = 5
        with pytest.raises(failure):
            training.step(next(training.batches()), failing)
        assert not weights(model).any()
        assert all(parameter.grad is None for parameter in model.parameters())
        batch = next(training.batches())
        places = training._places.tolist()
        training.step(batch, losses_of(model))
        expected = -by_hand(linear(), data(), places, 1.0) / 20
        assert torch.allclose(weights(model), expected, atol=1e-5)
        assert (training.report().done, training.report().taken) == (1, 2)


def test_leaving_a_loop_early_leaves_nothing() -> None:
    model = linear()
    with known(model, data(), short()) as training:
        old = next(training.batches())
        for batch in training.batches():
            assert batch.step == 2
            with pytest.raises(Refused):
                training.step(old, losses_of(model))
            places = training._places.tolist()
            training.step(batch, losses_of(model))
            expected = -by_hand(linear(), data(), places, 1.0) / 20
            assert torch.allclose(weights(model), expected, atol=1e-5)
            break


@pytest.mark.parametrize(
    "wrong", [lambda part: part.y.mean(), lambda part: part.y[:, None], lambda part: 3.0]
)
def test_losses_that_are_not_of_examples_are_refused(wrong: Callable[[Any], Tensor]) -> None:
    model = linear()
    with known(model, data(), short(batch=60)) as training, pytest.raises(DiscreetError):
        training.step(next(training.batches()), wrong)


class Keeps(nn.Module):
    """Writes into a buffer what it sees: in place, or anew."""

    def __init__(self, *, anew: bool) -> None:
        super().__init__()
        self.layer, self.anew = linear(), anew
        self.register_buffer("mean", torch.zeros(3))
        self.mean: Tensor

    def forward(self, x: Tensor) -> Tensor:
        seen = x.detach().mean(0)
        if self.training:
            self.mean = seen if self.anew else self.mean.copy_(seen)
        found: Tensor = self.layer(x)
        return found


@pytest.mark.parametrize("anew", [False, True])
def test_what_a_model_keeps_of_data_is_put_back_and_refused(anew: bool) -> None:
    model = Keeps(anew=anew)
    with known(model, data(), short(batch=60)) as training:
        for batch in training.batches():
            with pytest.raises(Refused, match=r"Keeps\.mean was written"):
                training.step(batch, losses_of(model))
            assert not model.mean.any()
            assert not weights(model).any()
            if batch.step == 3:
                break
        model.eval()
        model.mean.fill_(7)  # by the user, between steps
        training.step(next(training.batches()), losses_of(model))
        assert (model.mean == 7).all()
        assert weights(model).any()


def test_what_a_failing_step_wrote_is_put_back() -> None:
    model = Keeps(anew=False)

    def failing(part: Any) -> Tensor:
        model(part.x)
        raise ValueError

    with known(model, data(), short(batch=60)) as training:
        with pytest.raises(Refused):
            training.step(next(training.batches()), failing)
        assert not model.mean.any()


# Durable


def begun(path: Path, made: TrainingPlan, steps: int) -> dict[str, Any]:
    """A run that is left after some steps; its checkpoint is of one step before."""
    model = linear()
    ledger = Ledger.open(path)
    with run(model, sgd(model), data(), made, payer=ledger) as training:
        for batch in training.batches():
            if batch.step == steps:
                kept = training.checkpoint()
            training.step(batch, losses_of(model))
            if batch.step == steps:
                return kept
    raise AssertionError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    Ledger.create(tmp_path / "x.ledger", unit=Unit.ROW, limit=Limit(10**20, 0.5))
    return tmp_path / "x.ledger"


def test_a_resumed_run_is_charged_once_and_redoes_no_step(path: Path, tmp_path: Path) -> None:
    made = short(multiplier=1)
    torch.save(begun(path, made, 3), tmp_path / "kept.pt")
    kept = torch.load(tmp_path / "kept.pt", weights_only=True)
    model, ledger, taken = linear(), Ledger.open(path), []
    with run(model, sgd(model), data(), made, payer=ledger, resume=kept) as training:
        assert torch.equal(weights(model)[:3], kept["model"]["weight"][0])
        for batch in training.batches():
            taken.append(batch.step)
            training.step(batch, losses_of(model))
        assert training.report().taken == 6
        assert training.report().done == 3
    assert taken == [4, 5, 6]
    assert [entry.kind for entry in ledger.history()].count(Kind.CHARGE) == 1
    with run(model, sgd(model), data(), made, payer=ledger, resume=kept) as training:
        assert list(training.batches()) == []
    ledger.verify()


def test_steps_are_counted_before_they_are_drawn(path: Path) -> None:
    """In blocks of a hundredth of all: what a crash may cost."""
    made, model, ledger = short(steps=300), linear(), Ledger.open(path)
    with run(model, sgd(model), data(), made, payer=ledger) as training:
        assert ledger.reserved(training.receipt) == 0
        steps = training.batches()
        for step in range(7):
            batch = next(steps)
            assert ledger.reserved(training.receipt) == 3 * (step // 3 + 1)
            training.step(batch, losses_of(model))
        kept = training.checkpoint()
    with run(model, sgd(model), data(), made, payer=ledger, resume=kept) as training:
        assert next(training.batches()).step == 10


def test_an_epoch_that_is_left_is_not_gone_on_with(path: Path) -> None:
    """Its draws are lost, and with others a unit might be in it twice."""
    made = short(sampling=AllocatedBatches(), steps=9)  # three epochs of three
    kept, model = begun(path, made, 4), linear()
    made_steps = []
    with run(model, sgd(model), data(), made, payer=Ledger.open(path), resume=kept) as training:
        for batch in training.batches():
            made_steps.append(batch.step)
            training.step(batch, losses_of(model))
    assert made_steps == [7, 8, 9]


def test_a_resumed_run_is_refused_another_plan_payer_or_receipt(path: Path) -> None:
    made, model = short(multiplier=1), linear()
    kept, ledger = begun(path, made, 2), Ledger.open(path)
    told: list[tuple[Wrong, Wrong, Wrong]] = [
        (short(multiplier=2), ledger, kept),
        (made, FakePayer(), kept),
        (made, book(), kept),
        (made, ledger, {**kept, "receipt": {**kept["receipt"], "digest": "0" * 64}}),
        (made, ledger, {**kept, "plan": "other"}),
        (made, ledger, {"plan": made.digest}),
        (made, ledger, 5),
    ]
    for other, payer, given in told:
        with (
            pytest.raises(InvalidArgument),
            run(model, sgd(model), data(), other, payer=payer, resume=given),
        ):
            raise AssertionError
    forged = {**kept, "plan": short(multiplier=1e-9).digest}
    cheap = short(multiplier=1e-9)
    with (
        run(model, sgd(model), data(), cheap, payer=ledger, resume=forged) as training,
        pytest.raises(InvalidArgument, match="paid for something else"),
    ):
        next(training.batches())


# Units of several rows


def of_persons(rows: int = 60, persons: int = 12, **more: Wrong) -> Persons:
    ids = [f"p{row * 7 % persons}" for row in range(rows)]
    return Persons(data(rows), ids, **{"column": "person", "most": 3, **more})


def sums_of(given: Persons, places: list[int], clip: float, seed: int = 0) -> Tensor:
    """The sum over some persons, at fixed weights that aren't 0."""
    model = linear()
    nn.init.constant_(model.weight, 0.3)  # type: ignore[arg-type]
    phase = short(clip=clip).phases[0]
    work = Work(model, Examples.of(given), np.array(places), losses_of(model), SecureBits(), Seen())
    return torch.cat([s.reshape(-1) for s in float_sums(work, clipping_of(phase, 2), Physical())])


@pytest.mark.parametrize("reduce", Reduce)
def test_a_person_is_clipped_as_one(reduce: Reduce) -> None:
    given = of_persons(reduce=reduce, most=5)
    for person in range(12):
        alone = sums_of(given, [person], clip=0.05)
        assert 0.0499 < float(alone.norm()) <= 0.05
        loose = sums_of(given, [person], clip=1e6)
        rows = [
            row
            for row in range(60)
            if sorted({f"p{n}" for n in range(12)})[person] == f"p{row * 7 % 12}"
        ]
        model = linear()
        nn.init.constant_(model.weight, 0.3)  # type: ignore[arg-type]
        whole = by_hand(model, data(), rows, 1e9) / (1 if reduce is Reduce.SUM else len(rows))
        assert torch.allclose(loose, whole, atol=1e-5)
    together = sums_of(given, list(range(12)), clip=0.05)
    less = sums_of(given, list(range(11)), clip=0.05)
    assert float((together - less).norm()) <= 0.05 * (1 + 1e-6)


def test_a_person_has_at_most_so_many_rows() -> None:
    given = of_persons(most=2, reduce=Reduce.SUM)
    people = Examples.of(given).people
    assert people is not None
    seen = set()
    for _ in range(200):
        rows = people.rows_of(3, 2, SecureBits())
        assert rows.size == 2
        seen.add(tuple(rows.tolist()))
    assert len(seen) == 10


def test_rows_without_an_id_belong_to_nobody() -> None:
    ids = np.array([1.0, float("nan"), 2.0, 1.0])
    people = Examples.of(Persons(data(4), ids, "person", 9)).people
    assert people is not None
    assert [people.rows_of(person, 9, SecureBits()).tolist() for person in (0, 1)] == [[0, 3], [2]]
    nobody = Persons(data(2), np.array([None, None]), "person", 9)
    assert Examples.of(nobody).count == 0


def test_persons_are_sampled_and_counted_as_persons() -> None:
    made = short(unit=PERSON, records=12, batch=6, steps=30)
    model, sizes = linear(), []
    with known(model, of_persons(), made) as training:
        for batch in training.batches():
            sizes.append(training._places.size)
            training.step(batch, losses_of(model))
    assert max(sizes) <= 12
    assert 4 < sum(sizes) / 30 < 8


@pytest.mark.parametrize("wrong", [{"most": 0}, {"column": ""}, {"reduce": "mean"}])
def test_bad_persons_are_refused(wrong: dict[str, Wrong]) -> None:
    with pytest.raises(InvalidArgument):
        of_persons(**wrong)


# Other noise


def test_exact_noise_comes_out_on_its_grid() -> None:
    made, model = short(noise=ExactGaussian(10), batch=64, records=64, multiplier=1), linear()
    with known(model, data(), made) as training:
        for batch in training.batches():
            training.step(batch, losses_of(model))
            for parameter in model.parameters():
                assert parameter.grad is not None
                steps = parameter.grad.double() * 64 * 2**10
                assert torch.equal(steps, steps.round())
        assert "not covered" not in repr(training.report())


def test_exact_sums_are_close_to_float_ones() -> None:
    for unit, given, count in ((Unit.ROW, data(), 60), (PERSON, of_persons(most=9), 12)):
        changes = {"unit": unit, "multiplier": 1e-6, "records": count, "batch": count}
        exact = trained(short(noise=ExactGaussian(24), **changes), given)
        assert torch.allclose(exact, trained(short(**changes), given), atol=1e-4)


def test_laplace_noise_clips_the_l1_norm() -> None:
    made, model = short(noise=FloatLaplace(), delta=0, clip=0.1, batch=60, records=60), linear()
    with known(model, data(), made) as training:
        training.step(next(training.batches()), losses_of(model))
    gradients = [by_hand(linear(), data(), [place], 1e9) for place in range(60)]
    clipped = [g * min(1.0, 0.1 / float(g.abs().sum())) for g in gradients]
    assert torch.allclose(weights(model), -torch.stack(clipped).sum(0) / 60, atol=1e-5)


# What is said


def test_a_report_says_what_was_done_and_nothing_private() -> None:
    made, model = short(multiplier=2), linear()
    with run(model, sgd(model), data(), made, payer=book(), name="wages, third try") as training:
        assert training.report().curve() == ()
        for batch in training.batches():
            training.step(batch, losses_of(model))
            if batch.step == 4:
                break
        report = training.report()
    told = repr(report)
    assert "wages, third try" in told
    assert "4 of 6 steps made, 4 taken" in told
    assert "INSECURE" not in told
    assert "not covered: float noise" in told
    assert report.epsilon == made.epsilon_after(4) < made.epsilon
    assert report.curve()[-1] == (4, report.epsilon)
    assert "NOT PRIVATE" in repr(training.not_private)
    with known(model, data(), made) as insecure:
        assert repr(insecure.report()).startswith("INSECURE")
    assert repr(training) == "TrainingRun(receipt 1, 4 steps taken)"


def test_what_is_not_private_is_right() -> None:
    model = linear()
    with known(model, data(), short(batch=60, clip=0.8)) as training:
        assert training.not_private is None
        training.step(next(training.batches()), losses_of(model))
        seen = training.not_private
    assert seen is not None
    norms = [float(by_hand(linear(), data(), [place], 1e9).norm()) for place in range(60)]
    assert (seen.step, seen.examples) == (1, 60)
    assert abs(seen.loss - 0.6931) < 1e-3
    assert seen.clipped == pytest.approx(sum(norm > 0.8 for norm in norms) / 60)


def test_a_door_of_known_bits_is_marked() -> None:
    ledger, model = book(), linear()
    with run_through(Door(ledger, QuickBits(1), None), model, sgd(model), data(), short()):
        pass
    assert ledger.history()[1].is_insecure
