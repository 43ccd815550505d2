"""A step is the clipped sum over a batch that nobody sees, with noise, over a public divisor."""

import re
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from discreet._unit import Change, Unit
from discreet.errors import InvalidArgument, Refused
from discreet.train._plans._noise import ExactGaussian, FloatLaplace
from discreet.train._plans._plan import Stage
from discreet.train._plans._sampling import (
    AllocatedBatches,
    ShuffledBatches,
    TruncatedPoissonSampling,
    WithoutReplacement,
)
from discreet.train._run import run
from tests.bad_values import BadValue
from tests.mechanisms.kit import FakePayer
from tests.train.steps import (
    Guarded,
    Replaceable,
    book,
    by_hand,
    data,
    known,
    linear,
    losses_of,
    of_persons,
    pair_losses,
    pairs,
    sgd,
    short,
    trained,
    weights,
)

REPLACED = Unit.ROW.with_change(Change.REPLACE)
PERSON = Unit("person")


def test_a_model_or_loss_that_mixes_examples_is_refused_before_it_sees_any() -> None:
    given, made, seen = data(), short(), list[Tensor]()

    def contrasting(part: Any) -> Tensor:
        seen.append(part.x)
        found: Tensor = model(part.x)[:, 0]
        return (found - found.mean()) ** 2

    model = linear()  # all 0, where these gradients are 0 too
    losses = Replaceable(losses_of(model))
    with (
        known(model, given, made, losses=losses) as training,
        pytest.raises(Refused, match="loss of one example depends on others"),
    ):
        losses.step(training, contrasting)
    assert not any((given["x"] == row).all(1).any() for part in seen for row in part)
    assert not weights(model).any()
    mixing = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 1)).eval()
    losses = Replaceable(losses_of(mixing))
    with (
        known(mixing, given, made, losses=losses) as training,
        pytest.raises(Refused, match="BatchNorm1d"),
    ):
        losses.step(training, losses_of(mixing.train()))


@pytest.mark.parametrize("clip", [0.3, 100.0])
def test_a_step_is_the_clipped_sum_over_the_public_batch(clip: float) -> None:
    given, made, model = data(), short(clip=clip), linear()
    expected = linear()
    with known(model, given, made) as training:
        for ticket in training.batches():
            places = training._places.tolist()
            moved = by_hand(expected, given, places, clip) / 20
            training.step(ticket)
            with torch.no_grad():
                expected.weight -= moved[:3]  # type: ignore[operator]
                expected.bias -= moved[3:]  # type: ignore[operator]
            assert torch.allclose(weights(model), weights(expected), atol=1e-5)
    assert weights(model).norm() > 0.1


@pytest.mark.parametrize("physical", [1, 7, 19])
def test_splitting_changes_nothing(physical: int) -> None:
    """Noise is added once, however the batch is split."""
    made = short(multiplier=1)
    assert torch.allclose(
        trained(made, data(), physical=physical), trained(made, data()), atol=1e-5
    )


def test_a_model_that_is_moved_meanwhile_goes_on() -> None:
    """Its optimizer has the same parameters, wherever and in whatever precision they are now."""
    made, model = short(multiplier=1), linear()

    def losses(part: Any) -> Tensor:
        dtype = next(model.parameters()).dtype
        return losses_of(model)(part._replace(x=part.x.to(dtype), y=part.y.to(dtype)))

    with known(model, data(), made, losses=losses) as training:
        for ticket in training.batches():
            if ticket.step == 3:
                model.double()
            training.step(ticket)
    found = weights(model)
    assert found.dtype == torch.float64
    assert torch.allclose(found.float(), trained(made, data()), atol=1e-5)


def test_running_out_of_memory_changes_nothing() -> None:
    made, model, sizes = short(multiplier=1), linear(), []

    def hungry(part: Any) -> Tensor:
        sizes.append(len(part.x))
        if len(part.x) > 3:
            kind = torch.OutOfMemoryError if len(sizes) % 2 else RuntimeError
            raise kind("DefaultCPUAllocator: can't allocate memory")
        return losses_of(model)(part)

    with known(model, data(), made, losses=hungry) as training:
        for ticket in training.batches():
            training.step(ticket)
    assert torch.allclose(weights(model), trained(made, data()), atol=1e-5)
    assert max(sizes) > 3 >= sizes[-1]


def test_an_example_that_does_not_fit_alone_ends_the_step() -> None:
    model = linear()

    def hungry(_: Any) -> Tensor:
        raise torch.OutOfMemoryError

    losses = Replaceable(losses_of(model))
    with (
        known(model, data(), short(), losses=losses) as training,
        pytest.raises(torch.OutOfMemoryError),
    ):
        losses.step(training, hungry)
    assert training._size.rows == 1


def test_an_empty_batch_is_a_step() -> None:
    made, model, calls = short(multiplier=1, records=10**9, batch=1), linear(), list[Any]()

    def noted(part: Any) -> Tensor:
        calls.append(part)
        return losses_of(model)(part)

    with known(model, data(), made, losses=noted) as training:
        calls.clear()  # those of the check before the charge
        for ticket in training.batches():
            before = weights(model)
            training.step(ticket)
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
        for ticket in training.batches():
            sizes.append(training._places.size)
            training.step(ticket)
        assert training.report().done == 40
        told = re.sub(r"\([0-9a-f]{12}\)", "", repr(training.report()))
    assert abs(sum(sizes) / 40 - rows / 3) < 3
    with known(model, data(60), made) as other:
        for ticket in other.batches():
            other.step(ticket)
        assert re.sub(r"\([0-9a-f]{12}\)", "", repr(other.report())) == told


@pytest.mark.parametrize("sampling", [WithoutReplacement(), ShuffledBatches()])
def test_where_the_size_is_public_it_must_be_right_before_it_is_paid(sampling: BadValue) -> None:
    for unit, given, found in ((Unit.ROW, data(), 60), (PERSON, of_persons(), 12)):
        payer, model = FakePayer(), linear()
        facts = {"sampling": sampling, "unit": unit.with_change(Change.REPLACE), "batch": 5}
        more: BadValue = {"losses": losses_of(model), "payer": payer}
        with (
            pytest.raises(InvalidArgument, match=f"but the data have {found}"),
            run(model, sgd(model), given, short(**facts, records=found + 1), **more),
        ):
            raise AssertionError
        assert not payer.events
        with run(model, sgd(model), given, short(**facts, records=found), **more):
            assert len(payer.charges) == 1


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_an_example_that_is_not_finite_counts_as_zero(wrong: float) -> None:
    given = data()
    given["x"][7] = wrong
    made = short(batch=60)
    model = linear()
    with known(model, given, made) as training:
        training.step(next(training.batches()))
    rest = [place for place in range(60) if place != 7]
    assert torch.allclose(weights(model), -by_hand(linear(), data(), rest, 1.0) / 60, atol=1e-5)


def test_gradients_from_elsewhere_are_dropped() -> None:
    model, made = linear(), short(batch=60)
    with known(model, data(), made) as training:
        steps = training.batches()
        ticket = next(steps)
        for parameter in model.parameters():
            parameter.grad = torch.full_like(parameter, 1e6)
        training.step(ticket)
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
    own = pair_losses(model)
    with known(model, Guarded(payer), made, losses=own, like=pairs()) as training:
        for ticket in training.batches():
            training.step(ticket)
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
def test_every_sampling_runs_all_its_steps(sampling: BadValue, unit: Unit) -> None:
    made, model, sizes = short(sampling=sampling, unit=unit, batch=17, steps=9), linear(), []
    with known(model, data(), made) as training:
        for ticket in training.batches():
            sizes.append(training._places.size)
            training.step(ticket)
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
        for ticket, (clip, divisor) in zip(
            training.batches(), [(0.1, 20), (0.1, 20), (50, 60), (50, 60), (1, 20)], strict=True
        ):
            moved = by_hand(model, data(), training._places.tolist(), clip) / divisor
            before = weights(model)
            training.step(ticket)
            assert torch.allclose(before - weights(model), moved, atol=2e-5)


def test_nothing_seeds_a_run() -> None:
    made, found = short(multiplier=1), []
    for _ in range(2):
        torch.manual_seed(5)
        np.random.seed(5)
        model = linear()
        with run(
            model, sgd(model), data(), made, losses=losses_of(model), payer=book()
        ) as training:
            for ticket in training.batches():
                training.step(ticket)
        found.append(weights(model))
    assert (found[0] != found[1]).all()


# Other noise


def test_exact_noise_comes_out_on_its_grid() -> None:
    made, model = short(noise=ExactGaussian(10), batch=64, records=64, multiplier=1), linear()
    with known(model, data(), made) as training:
        for ticket in training.batches():
            training.step(ticket)
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
        training.step(next(training.batches()))
    gradients = [by_hand(linear(), data(), [place], 1e9) for place in range(60)]
    clipped = [g * min(1.0, 0.1 / float(g.abs().sum())) for g in gradients]
    assert torch.allclose(weights(model), -torch.stack(clipped).sum(0) / 60, atol=1e-5)
