"""The statement of a release: every mechanism has one, and additive ones give their loss again."""

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest

from discreet import Change, Ledger, Limit, Unit
from discreet.accounting import PrivacyLoss
from discreet.ledger import check_receipt
from discreet.mechanisms import (
    Bounded,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Part,
    Sensitivity,
    Together,
    release,
    stated_loss,
)
from discreet.mechanisms._statement import statement_of
from tests.mechanisms.registry import CASES

UNITS = [Unit("person"), Unit.ROW, Unit("Straße 7", Change.REPLACE)]
NOISE = [
    DiscreteLaplace(Fraction(7, 3)),
    Gaussian(Fraction(12345678901, 1000)),
    DiscreteGaussian(0.1),
    DiscreteLaplace(10**300),
]
SENSITIVITIES = [
    Sensitivity(l1=1),
    Sensitivity(l1=9, l2_squared=20, linf=3),
    Sensitivity(l1=10**40, linf=10**30),
]


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("noise", NOISE, ids=repr)
@pytest.mark.parametrize("bounds", SENSITIVITIES, ids=repr)
def test_the_privacy_loss_follows_from_the_statement(
    unit: Unit, noise: Any, bounds: Sensitivity
) -> None:
    single = Bounded(lambda: [1, 2], sensitivity=bounds, unit=unit, name="x", shape=(2,))
    joint = Bounded.together(
        dict, parts=(Part("a", (2,), bounds), Part("b", (), bounds)), unit=unit, name="both"
    )
    both = Together({"a": noise, "b": DiscreteLaplace(5)})
    pairs: list[tuple[Bounded[Any], Any]] = [(single, noise), (joint, both)]
    for bounded, mechanism in pairs:
        stated = json.loads(statement_of(bounded, mechanism))
        loss: PrivacyLoss = mechanism.privacy_loss(bounded)
        assert stated_loss(stated) == loss.for_unit(unit)


def test_another_scale_gives_another_loss() -> None:
    bounded = Bounded(lambda: 1, sensitivity=1, unit=Unit.ROW, name="x")
    stated = json.loads(statement_of(bounded, DiscreteLaplace(2)))
    stated["mechanism"]["scale"] = "4"
    assert stated_loss(stated) == DiscreteLaplace(4).privacy_loss(bounded).for_unit(Unit.ROW)


@pytest.mark.parametrize(
    "stated", [None, {}, [], {"unit": {}}, {"unit": {"column": None, "change": "x"}, "parts": 3}]
)
def test_other_statements_give_no_loss(stated: Any) -> None:
    assert stated_loss(stated) is None


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_mechanism_has_a_statement(case: Any) -> None:
    """It names the mechanism, and depends on its arguments only."""
    bounded = Bounded(lambda: 1, sensitivity=1, unit=Unit.ROW, name="x")
    mechanism = case.kind(**case.given)
    texts = {statement_of(bounded, one) for one in (mechanism, case.kind(**case.given))}
    (text,) = texts
    assert json.loads(text)["mechanism"]["kind"] == case.kind.__name__
    assert " at 0x" not in text


@dataclass(frozen=True)
class Foreign:
    """A mechanism from elsewhere, with rows in a field that its printed form leaves out."""

    rows: tuple[int, ...]

    def privacy_loss(self, bounded: Any) -> PrivacyLoss:
        return DiscreteLaplace(2).privacy_loss(bounded)

    def sample(self, value: Any, bits: Any) -> Any:
        return DiscreteLaplace(2).sample(value, bits)

    def __repr__(self) -> str:
        return "Foreign(a public text)"


def test_the_fields_of_other_mechanisms_stay_private() -> None:
    bounded = Bounded.together(
        dict, parts=(Part("a", (), SENSITIVITIES[0]),), unit=Unit.ROW, name="x"
    )
    single = Bounded(lambda: 1, sensitivity=1, unit=Unit.ROW, name="x")
    foreign = Foreign((4711, 4712))
    for each, mechanism in ((single, foreign), (bounded, Together({"a": foreign}))):
        text = statement_of(each, mechanism)
        assert "4711" not in text
        assert "Foreign(a public text)" in text


@pytest.mark.parametrize(
    "facts", ["", "plain", '{"caps": {"rows": 3}}', "[1]", '{"x": NaN}', "[" * 9000]
)
def test_any_text_of_facts_is_stated(facts: str) -> None:
    ledger = Ledger.in_memory(unit=Unit("person"), limit=Limit(2))
    bounded = Bounded(lambda: 1, sensitivity=1, unit=Unit("person"), name="x", facts=facts)
    text = release(bounded, DiscreteLaplace(2), ledger).receipt.to_json()
    stated = check_receipt(text, ledger).facts["statement"]["assumptions"]
    assert stated == (json.loads(facts) if facts.startswith('{"caps') else facts)
