"""``discreet price`` tells what accesses cost, and what a target allows; it reads nothing."""

import json
from pathlib import Path

import pytest

from discreet._budget import Limit
from discreet._unit import Unit
from discreet.accounting import Gaussian, PrivacyLoss, Pure, parse
from discreet.errors import BudgetExceeded
from discreet.ledger import Ledger
from tests.cli.kit import Run

STEPS = ("price", "steps * Gaussian(8)", "--find", "steps", "--epsilon", "3", "--delta", "1e-5")


def test_a_price_is_shown_for_each_theorem(run: Run) -> None:
    ended = run("price", "1000 * Gaussian(40) + Pure(0.1)", "--delta", "1e-5")
    assert ended.code == 0
    assert ended.err == ""
    loss = 1000 * Gaussian(40) + Pure(0.1)
    assert ended.out == f"{loss.explain(1e-5)}\n{loss.interval(1e-5)}\n"
    assert "<- best" in ended.out


def test_without_delta_the_price_is_pure(run: Run) -> None:
    assert "0.3 " in run("price", "3 * Pure(0.1)").out.splitlines()[1]


def test_a_printed_loss_can_be_priced(run: Run) -> None:
    loss = 3 * Pure(0.1) + Gaussian(4)
    facts = json.loads(run("price", repr(loss), "--delta", "1e-6", "--json").out)
    assert PrivacyLoss.from_json(json.dumps(facts["privacy_loss"])) == loss
    assert facts["epsilon"] == loss.epsilon(1e-6) == min(facts["theorems"].values())
    assert facts["delta"] == 1e-6


def test_delta_at_an_epsilon(run: Run) -> None:
    ended = run("price", "3 * Gaussian(4)", "--epsilon", "2.5")
    assert ended.code == 0
    name, value = ended.out.split(": ")
    assert name == "delta at epsilon = 2.5"
    delta = (3 * Gaussian(4)).delta(2.5)
    assert delta <= float(value) <= delta * 1.00001
    facts = json.loads(run("price", "3 * Gaussian(4)", "--epsilon", "2.5", "--json").out)
    assert facts["at_epsilon"] == {"epsilon": 2.5, "delta": delta}
    assert facts["epsilon"] is None
    both = run("price", "3 * Gaussian(4)", "--epsilon", "2.5", "--delta", "1e-6").out
    assert both.startswith("epsilon at delta = 1e-06\n")
    assert both.endswith(ended.out)
    assert run("price", "Pure(1)", "--epsilon", "1").out.endswith("delta at epsilon = 1: 0\n")


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_no_bound_at_this_delta_is_a_refusal(run: Run, form: tuple[str, ...]) -> None:
    ended = run("price", "3 * Gaussian(4)", *form)
    assert ended.code == 3
    assert "no theorem bounds its epsilon at delta = 0: give a larger delta" in ended.err
    assert "Infinity" not in ended.out


def test_the_least_noise_is_found(run: Run) -> None:
    expression = "1000 * Gaussian(sigma)"
    ended = run("price", expression, "--find", "sigma", "--epsilon", "3", "--delta", "1e-5")
    assert ended.code == 0
    name, equals, sigma = ended.out.split()
    assert (name, equals) == ("sigma", "=")
    assert 2.997 <= parse(expression.replace("sigma", sigma)).epsilon(1e-5) <= 3
    assert "the smallest value that fits: it costs ε = 2.99" in ended.err
    assert "δ = 1e-05, of at most ε = 3" in ended.err


def test_the_most_steps_are_found(run: Run) -> None:
    ended = run(*STEPS)
    assert ended.out == "steps = 33\n"
    assert "the largest value that fits" in ended.err
    facts = json.loads(run(*STEPS, "--json").out)
    loss = 33 * Gaussian(8)
    assert facts.pop("privacy_loss") == json.loads(loss.to_json())
    assert facts == {
        "name": "steps",
        "value": 33,
        "epsilon": loss.epsilon(1e-5),
        "delta": 1e-5,
        "is_least": False,
        "admitted_one_by_one": 29,
    }


def test_a_ledger_that_is_asked_one_by_one_admits_what_is_said(run: Run) -> None:
    """The forecast is what a ledger does, and is not what fits if fixed beforehand."""
    ended = run(*STEPS)
    ledger = Ledger.in_memory(unit=Unit.ROW, limit=Limit(3, 1e-5))
    admitted = 0
    while True:
        assert ledger.count_left(Gaussian(8)) == max(0, ledger.count_left(1 * Gaussian(8)))
        try:
            ledger.charge(Gaussian(8), purpose="a step", by="ana")
        except BudgetExceeded:
            break
        admitted += 1
    assert 28 <= admitted < 33
    assert f"admits {admitted} of them" in ended.err
    assert (
        "one by one"
        not in run("price", "n * Pure(1) + Pure(0.1)", "--find", "n", "--epsilon", "3").err
    )


def test_a_parameter_may_have_to_be_whole(run: Run) -> None:
    asked = ("price", "DiscreteLaplace(10, d)", "--find", "d", "--epsilon", "0.75")
    ended = run(*asked)
    assert ended.code == 0
    assert ended.out == "d = 7\n"


def test_nothing_fits(run: Run) -> None:
    ended = run("price", "n * Pure(4)", "--find", "n", "--epsilon", "3")
    assert ended.code == 3
    assert "n: no value fits; even 1 costs epsilon = 4" in ended.message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("Gausian(4)",), "no term 'Gausian' (did you mean Gaussian?)"),
        (("Gaussian(4",), "this parenthesis isn't closed Gaussian(4 ^"),
        (("",), "the expression is empty"),
        (("n * Gaussian(s)",), "n, s: give a number in its place, or find it by --find n"),
        (("n * Gaussian(s)", "--find", "n", "--epsilon", "1"), "s: give a number in its place"),
        (("n * Pure(1)", "--find", "m", "--epsilon", "1"), "has no m; it has n"),
        (("2 * Pure(1)", "--find", "n", "--epsilon", "1"), "write the name in place of a number"),
        (("n * Pure(1)", "--find", "n"), "--find needs a target"),
        (("2 * Pure(1)", "--delta", "1"), "give a number from 0 up to"),
        (("2 * Pure(1)", "--epsilon", "0"), "give a finite number above 0"),
    ],
)
def test_an_error_describes_a_mistake(run: Run, arguments: tuple[str, ...], message: str) -> None:
    ended = run("price", *arguments)
    assert ended.code == 2
    assert ended.out == ""
    assert message in ended.message


def test_no_file_is_read_or_made(run: Run) -> None:
    before = sorted(Path().iterdir())
    run(*STEPS)
    run("price", "what is this")
    assert sorted(Path().iterdir()) == before
