"""A run is paid first, makes each step once, and leaves nothing of a step that failed."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

from discreet._budget import Limit
from discreet._unit import Unit
from discreet.errors import (
    BudgetExceeded,
    InvalidArgument,
    Refused,
    SessionEnded,
    WrongUnit,
)
from discreet.ledger import Ledger, check_receipt
from discreet.mechanisms import Door
from discreet.train._batches._collated import Collated
from discreet.train._batches._units import Units
from discreet.train._run import run, run_through
from discreet.train._step_ticket import StepTicket
from tests.bad_values import BadValue
from tests.mechanisms.kit import FakePayer
from tests.noise.fit import QuickBits
from tests.train.steps import (
    Guarded,
    Replaceable,
    book,
    by_hand,
    data,
    known,
    linear,
    losses_of,
    pair_losses,
    pairs,
    sgd,
    short,
    weights,
)

PERSON = Unit("person")


# Paid first


def test_the_whole_plan_is_paid_before_anything_is_read() -> None:
    payer, model, made = FakePayer(), linear(), short()
    with run(
        model,
        sgd(model),
        Guarded(payer),
        made,
        losses=pair_losses(model),
        like=pairs(),
        payer=payer,
        by="ana",
    ) as training:
        assert payer.charges == [made.privacy_loss]
        assert (training.receipt.by, training.receipt.is_insecure) == ("ana", False)
        for ticket in training.batches():
            training.step(ticket)
    assert payer.events == ["charge"]


def test_the_receipt_states_the_plan_and_what_it_assumes() -> None:
    ledger, model, made = book(), linear(), short()
    with run(
        model,
        sgd(model),
        pairs(),
        made,
        losses=pair_losses(model),
        like=pairs(),
        payer=ledger,
        name="a line",
    ) as training:
        text = training.receipt.to_json()
    stated = check_receipt(text, ledger).facts["statement"]
    assert (stated["question"], stated["mechanism"]["kind"]) == ("a line", "TrainingPlan")
    assert stated["mechanism"]["records"] == made.records
    for words in (*made.assumptions, *made.gaps):
        assert words in stated["assumptions"]


def test_unpaid_data_are_not_read() -> None:
    model = linear()
    with (
        pytest.raises(BudgetExceeded),
        run(
            model,
            sgd(model),
            Guarded(None),
            short(),
            losses=pair_losses(model),
            like=pairs(),
            payer=FakePayer(refuses=True),
        ),
    ):
        raise AssertionError
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(1, 1e-5))
    with (
        pytest.raises(WrongUnit),
        run(
            model,
            sgd(model),
            Guarded(None),
            short(),
            losses=pair_losses(model),
            like=pairs(),
            payer=ledger,
        ),
    ):
        raise AssertionError
    assert len(ledger.history()) == 1


def lbfgs(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.LBFGS(model.parameters())


def weighted() -> DataLoader[Any]:
    """Whose batches are drawn by weights, which no plan prices."""
    inner: TensorDataset = TensorDataset(*data().values())
    return DataLoader(inner, batch_size=20, sampler=WeightedRandomSampler([0.5] * 60, 60))


def of_a_part(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD([*model.parameters()][:1], lr=1)


def foreign(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD([*model.parameters(), nn.Parameter(torch.zeros(1))], lr=1)


@pytest.mark.parametrize(
    ("make", "given", "changes", "told"),
    [
        (lbfgs, data(), {}, "LBFGS"),
        (foreign, data(), {}, "parameters that the model hasn't"),
        (of_a_part, data(), {}, "it hasn't 'bias', which requires a gradient"),
        (sgd, weighted(), {}, "samplers and loaders have no place"),
        (sgd, 5, {}, "train_set is a int"),
        (sgd, {}, {}, "train_set is a dict"),
        (sgd, {"my x": torch.zeros(60, 3)}, {}, "'my x' can't be the name of a field"),
        (sgd, {"class": torch.zeros(60, 3)}, {}, "'class' can't be the name of a field"),
        (sgd, {"x": torch.zeros(60, 3), "y": torch.zeros(59)}, {}, "'y' are not of one length"),
        (sgd, (torch.zeros(60, 3), torch.zeros(59)), {}, "not of one length"),
        (sgd, {"x": torch.zeros(60, 3), "y": torch.tensor(1)}, {}, "'y' is a Tensor"),
        (sgd, {"x": torch.zeros(60, 3), "y": 3}, {}, "'y' is a int"),
        (lambda _: "adam", data(), {}, "optimizer = 'adam'"),
        (
            sgd,
            Units(data(), torch.zeros(60, 2), column="person", most=1),
            {"unit": PERSON},
            "ids:",
        ),
        (lambda _: torch.optim.Adam, data(), {}, "optimizer = .*Adam.*one that is made"),
        (sgd, iter([1]), {}, "samplers and loaders"),
        (sgd, data(), {"unit": PERSON}, "Units"),
        (sgd, Units(data(), [0] * 60, column="person", most=1), {}, "Unit.ROW"),
        (sgd, Units(data(), [0] * 60, column="house", most=1), {"unit": PERSON}, "column"),
        (
            sgd,
            Units(data(), [0] * 59, column="person", most=1),
            {"unit": PERSON},
            "'ids' are not",
        ),
    ],
)
def test_impossible_runs_are_refused_before_payment(
    make: Callable[[nn.Module], torch.optim.Optimizer],
    given: BadValue,
    changes: dict[str, BadValue],
    told: str,
) -> None:
    payer, model = FakePayer(), linear()
    with (
        pytest.raises(InvalidArgument, match=told),
        run(model, make(model), given, short(**changes), losses=losses_of(model), payer=payer),
    ):
        raise AssertionError
    frozen = linear().requires_grad_(False)
    with (
        pytest.raises(InvalidArgument),
        run(frozen, sgd(model), data(), short(), losses=losses_of(frozen), payer=payer),
    ):
        raise AssertionError
    with (
        pytest.raises(InvalidArgument, match="model is a str"),
        run("resnet", sgd(model), data(), short(), losses=losses_of(linear()), payer=payer),  # type: ignore[arg-type]
    ):
        raise AssertionError
    lazy = nn.LazyLinear(1)
    with (
        pytest.raises(InvalidArgument, match="'weight' has no shape yet"),
        run(lazy, sgd(lazy), data(), short(), losses=losses_of(lazy), payer=payer),
    ):
        raise AssertionError
    turned = nn.Linear(3, 1)
    turned.weight = nn.Parameter(turned.weight.detach().to(torch.complex64))
    with (
        pytest.raises(InvalidArgument, match=r"'weight' is complex.*two real"),
        run(turned, sgd(turned), data(), short(), losses=losses_of(turned), payer=payer),
    ):
        raise AssertionError
    with (
        pytest.raises(InvalidArgument),
        run(model, sgd(model), data(), 3, losses=losses_of(model), payer=payer),  # type: ignore[arg-type]
    ):
        raise AssertionError
    assert not payer.events


def test_a_door_of_known_bits_is_marked() -> None:
    ledger, model = book(), linear()
    door, losses = Door(ledger, QuickBits(1), None), losses_of(model)
    with run_through(door, model, sgd(model), data(), short(), losses=losses):
        pass
    assert ledger.history()[1].is_insecure


# Each step once, in its turn


def test_a_step_that_is_passed_over_is_refused() -> None:
    model = linear()
    with known(model, data(), short()) as training:
        steps = training.batches()
        next(steps)
        with pytest.raises(Refused, match="step 1 was skipped"):
            next(steps)


def test_a_layer_that_is_put_in_meanwhile_would_never_learn() -> None:
    model = nn.Sequential(linear())
    with known(model, data(), short()) as training:
        batches = training.batches()
        training.step(next(batches))
        model[0] = linear()
        with pytest.raises(InvalidArgument, match="parameters that the model hasn't"):
            training.step(next(batches))


def test_a_step_is_made_once() -> None:
    model = linear()
    with known(model, data(), short()) as training:
        steps = training.batches()
        first = next(steps)
        training.step(first)
        with pytest.raises(Refused, match="is over"):
            training.step(first)
        second = next(steps)
        with pytest.raises(Refused, match="is over"):
            training.step(first)
        with pytest.raises(Refused, match="is over"):
            training.step(StepTicket(second.step))
        training.step(second)
        assert training.report().done == 2


def test_steps_stop_where_the_plan_does() -> None:
    model = linear()
    with known(model, data(), short()) as training:
        assert len([training.step(ticket) for ticket in training.batches()]) == 6  # type: ignore[func-returns-value]
        assert list(training.batches()) == []
        assert training.report().done == training.report().taken == 6
    with pytest.raises(SessionEnded):
        next(training.batches())
    with known(model, data(), short()) as training:
        ticket = next(training.batches())
    with pytest.raises(Refused):
        training.step(ticket)


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

    losses = Replaceable(losses_of(model))
    with known(model, data(), made, losses=losses) as training:
        training._size.rows = 5
        losses.now = failing
        with pytest.raises(Refused if failure is ValueError else failure):
            training.step(next(training.batches()))
        assert not weights(model).any()
        assert all(parameter.grad is None for parameter in model.parameters())
        ticket = next(training.batches())
        places = training._places.tolist()
        training.step(ticket)
        expected = -by_hand(linear(), data(), places, 1.0) / 20
        assert torch.allclose(weights(model), expected, atol=1e-5)
        assert (training.report().done, training.report().taken) == (1, 2)


def test_leaving_a_loop_early_leaves_nothing() -> None:
    model = linear()
    with known(model, data(), short()) as training:
        old = next(training.batches())
        for ticket in training.batches():
            assert ticket.step == 2
            with pytest.raises(Refused):
                training.step(old)
            places = training._places.tolist()
            training.step(ticket)
            expected = -by_hand(linear(), data(), places, 1.0) / 20
            assert torch.allclose(weights(model), expected, atol=1e-5)
            break


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda part: part.y.mean(), "reduction='none'"),
        (lambda part: part.y[:, None], "each example's own"),
        (lambda _: 3.0, "returned float: "),
        (lambda part: part.y.long(), "returned torch.int64: "),
        (lambda part: part.y.float(), "depend on nothing that is trained"),
    ],
)
def test_losses_that_are_not_of_examples_are_refused(
    wrong: Callable[[Any], Tensor], told: str
) -> None:
    model = linear()
    losses = Replaceable(losses_of(model))
    with (
        known(model, data(), short(batch=60), losses=losses) as training,
        pytest.raises(InvalidArgument, match=told),
    ):
        losses.step(training, wrong)


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
def test_state_that_a_model_stores_is_put_back_and_refused(anew: bool) -> None:
    model = Keeps(anew=anew).eval()
    with known(model, data(), short(batch=60)) as training:
        model.train()
        for ticket in training.batches():
            with pytest.raises(Refused, match=r"Keeps\.mean was written"):
                training.step(ticket)
            assert not model.mean.any()
            assert not weights(model).any()
            if ticket.step == 3:
                break
        model.eval()
        model.mean.fill_(7)  # by the user, between steps
        training.step(next(training.batches()))
        assert (model.mean == 7).all()
        assert weights(model).any()


def test_writes_of_a_failing_step_are_put_back() -> None:
    model = Keeps(anew=False)

    def failing(part: Any) -> Tensor:
        model(part.x)
        raise ValueError

    losses = Replaceable(losses_of(model.layer))
    with known(model, data(), short(batch=60), losses=losses) as training:
        losses.now = failing
        with pytest.raises(Refused):
            training.step(next(training.batches()))
        assert not model.mean.any()


# Texts of different lengths


class Words(nn.Module):
    """A number for each text: the mean of its words' numbers, with or without what fills it up."""

    def __init__(self, *, is_masked: bool) -> None:
        super().__init__()
        self.numbers, self.is_masked = nn.Embedding(4, 1), is_masked

    def forward(self, part: dict[str, Tensor]) -> Tensor:
        words = part["words"]
        kept = (words != 3) if self.is_masked else torch.ones_like(words)
        found: Tensor = (self.numbers(words)[..., 0] * kept).sum(1) / kept.sum(1)
        return found


@pytest.mark.parametrize("is_masked", [True, False])
def test_how_far_an_example_is_filled_up_must_not_matter(*, is_masked: bool) -> None:
    texts = [[number % 3] * (2 + number % 5) for number in range(60)]
    given = Collated(texts, lambda items: {"words": torch.tensor(items)}, pads={"words": 3})
    model, like = Words(is_masked=is_masked), [[number % 3] * 4 for number in range(5)]

    def losses(part: Any) -> Tensor:
        found: Tensor = model(part).square()
        return found

    refused = nullcontext() if is_masked else pytest.raises(Refused, match="padded")
    with refused, known(model, given, short(steps=2), losses=losses, like=like) as training:
        for ticket in training.batches():
            training.step(ticket)
