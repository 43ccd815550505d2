"""A report says what was done, and nothing private."""

import pytest

from discreet.train._run import run
from tests.train.steps import book, by_hand, data, known, linear, losses_of, sgd, short


def test_a_report_says_what_was_done_and_nothing_private() -> None:
    made, model = short(multiplier=2), linear()
    with run(
        model,
        sgd(model),
        data(),
        made,
        losses=losses_of(model),
        payer=book(),
        name="wages, third try",
    ) as training:
        assert training.report().curve() == ()
        for ticket in training.batches():
            training.step(ticket)
            if ticket.step == 4:
                break
        report = training.report()
    told = repr(report)
    assert "wages, third try" in told
    assert "4 of 6 steps changed the model, 4 taken" in told
    assert "INSECURE" not in told
    assert "not covered: float noise" in told
    assert report.epsilon == made.epsilon_after(4) < made.epsilon
    assert report.curve()[-1] == (4, report.epsilon)
    assert "NOT PRIVATE" in repr(training.not_private)
    with known(model, data(), made) as insecure:
        assert repr(insecure.report()).startswith("INSECURE")
    assert repr(training) == "TrainingRun(receipt 1, 4 steps taken)"


def test_the_report_on_public_data_is_right() -> None:
    model = linear()
    with known(model, data(), short(batch=60, clip=0.8)) as training:
        assert training.not_private is None
        training.step(next(training.batches()))
        seen = training.not_private
    assert seen is not None
    norms = [float(by_hand(linear(), data(), [place], 1e9).norm()) for place in range(60)]
    assert (seen.step, seen.examples) == (1, 60)
    assert abs(seen.loss - 0.6931) < 1e-3
    assert seen.clipped == pytest.approx(sum(norm > 0.8 for norm in norms) / 60)
