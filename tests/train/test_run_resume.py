"""Steps are counted where a crash can't reach them, and a resumed run makes none twice."""

from pathlib import Path
from typing import Any

import pytest
import torch

from discreet.errors import InvalidArgument
from discreet.ledger import Kind, Ledger
from discreet.train._plans._plan import TrainingPlan
from discreet.train._plans._sampling import AllocatedBatches
from discreet.train._run import run
from tests.bad_values import BadValue
from tests.mechanisms.kit import FakePayer
from tests.train.steps import book, data, linear, losses_of, sgd, short, weights


def begun(path: Path, made: TrainingPlan, steps: int) -> dict[str, Any]:
    """A run that is left after some steps; its checkpoint is of one step before."""
    model = linear()
    ledger = Ledger.open(path)
    with run(model, sgd(model), data(), made, losses=losses_of(model), payer=ledger) as training:
        for ticket in training.batches():
            if ticket.step == steps:
                kept = training.checkpoint()
            training.step(ticket)
            if ticket.step == steps:
                return kept
    raise AssertionError


def test_a_resumed_run_is_charged_once_and_redoes_no_step(path: Path, tmp_path: Path) -> None:
    made = short(multiplier=1)
    torch.save(begun(path, made, 3), tmp_path / "kept.pt")
    kept = torch.load(tmp_path / "kept.pt", weights_only=True)
    model, ledger, taken = linear(), Ledger.open(path), []
    with run(
        model, sgd(model), data(), made, losses=losses_of(model), payer=ledger, resume=kept
    ) as training:
        assert torch.equal(weights(model)[:3], kept["model"]["weight"][0])
        for ticket in training.batches():
            taken.append(ticket.step)
            training.step(ticket)
        assert training.report().taken == 6
        assert training.report().done == 3
    assert taken == [4, 5, 6]
    assert [entry.kind for entry in ledger.history()].count(Kind.CHARGE) == 1
    with run(
        model, sgd(model), data(), made, losses=losses_of(model), payer=ledger, resume=kept
    ) as training:
        assert list(training.batches()) == []
    ledger.verify()


def test_no_draw_is_made_twice_and_no_key_is_stored(path: Path) -> None:
    """Two runs that go on from one checkpoint have batches and noise of their own."""
    made, found = short(multiplier=1, steps=30), []
    kept = begun(path, made, 3)
    assert set(kept) == {"plan", "receipt", "norms", "model", "optimizer"}
    for _ in range(2):
        model, places, ledger = linear(), list[list[int]](), Ledger.open(path)
        with run(
            model, sgd(model), data(), made, losses=losses_of(model), payer=ledger, resume=kept
        ) as training:
            for ticket in training.batches():
                places.append(training._places.tolist())
                training.step(ticket)
                if len(places) == 10:
                    break
        found.append((places, weights(model)))
    (first, one), (second, other) = found
    assert not any(some in second for some in first)
    assert not torch.equal(one, other)


def test_steps_are_counted_before_they_are_drawn(path: Path) -> None:
    """In blocks of a hundredth of all: what a crash may cost."""
    made, model, ledger = short(steps=300), linear(), Ledger.open(path)
    with run(model, sgd(model), data(), made, losses=losses_of(model), payer=ledger) as training:
        assert ledger.reserved(training.receipt) == 0
        steps = training.batches()
        for step in range(7):
            ticket = next(steps)
            assert ledger.reserved(training.receipt) == 3 * (step // 3 + 1)
            training.step(ticket)
        kept = training.checkpoint()
    with run(
        model, sgd(model), data(), made, losses=losses_of(model), payer=ledger, resume=kept
    ) as training:
        assert next(training.batches()).step == 10


def test_an_epoch_that_is_left_is_not_gone_on_with(path: Path) -> None:
    """Its draws are lost, and with others a unit might be in it twice."""
    made = short(sampling=AllocatedBatches(), steps=9)  # three epochs of three
    kept, model = begun(path, made, 4), linear()
    made_steps = []
    with run(
        model,
        sgd(model),
        data(),
        made,
        losses=losses_of(model),
        payer=Ledger.open(path),
        resume=kept,
    ) as training:
        for ticket in training.batches():
            made_steps.append(ticket.step)
            training.step(ticket)
    assert made_steps == [7, 8, 9]


def test_a_resumed_run_is_refused_another_plan_payer_or_receipt(path: Path) -> None:
    made, model = short(multiplier=1), linear()
    kept, ledger = begun(path, made, 2), Ledger.open(path)
    told: list[tuple[BadValue, BadValue, BadValue]] = [
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
            run(
                model, sgd(model), data(), other, losses=losses_of(model), payer=payer, resume=given
            ),
        ):
            raise AssertionError
    forged = {**kept, "plan": short(multiplier=1e-9).digest}
    cheap = short(multiplier=1e-9)
    with (
        run(
            model, sgd(model), data(), cheap, losses=losses_of(model), payer=ledger, resume=forged
        ) as training,
        pytest.raises(InvalidArgument, match="paid for something else"),
    ):
        next(training.batches())
