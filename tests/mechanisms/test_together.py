"""Several parts at once: their privacy losses add up, and each has its own noise."""

from collections.abc import Mapping

import numpy as np
import pytest

from discreet.audit import SeededBits, ZeroNoiseBits
from discreet.errors import InvalidArgument
from discreet.mechanisms import (
    Bounded,
    DiscreteLaplace,
    Gaussian,
    Mechanism,
    Part,
    Sensitivity,
    Together,
    Value,
)
from tests.bad_values import BadValue
from tests.mechanisms.kit import PERSON, number

PARTS = (
    Part("people", (), Sensitivity(l1=1)),
    Part("pay", (2,), Sensitivity(l1=30, linf=15)),
)
MECHANISMS: dict[str, Mechanism[Value, Value]] = {"pay": Gaussian(60), "people": DiscreteLaplace(4)}


def both() -> Bounded[Mapping[str, Value]]:
    return Bounded.together(
        lambda: {"people": 41, "pay": np.array([100, 200])}, parts=PARTS, unit=PERSON, name="both"
    )


def test_the_privacy_loss_is_the_sum() -> None:
    alone = {part.name: both().only(part.name) for part in PARTS}
    total = Together(MECHANISMS).privacy_loss(both())
    assert total == Gaussian(60).privacy_loss(alone["pay"]) + DiscreteLaplace(4).privacy_loss(
        alone["people"]
    )
    assert total.unit == PERSON
    same = Together({"people": DiscreteLaplace(4), "pay": DiscreteLaplace(120)})
    assert same.privacy_loss(both()).epsilon() == 0.25 + 0.25


@pytest.mark.parametrize(
    "mechanisms",
    [
        {"people": DiscreteLaplace(4)},
        {**MECHANISMS, "more": Gaussian(1)},
        {"people": DiscreteLaplace(4), "Pay": Gaussian(60)},
    ],
)
def test_each_part_needs_exactly_one(mechanisms: BadValue) -> None:
    with pytest.raises(InvalidArgument, match=r"'both' has the parts \['pay', 'people'\]"):
        Together(mechanisms).privacy_loss(both())


def test_a_single_number_has_no_parts() -> None:
    with pytest.raises(InvalidArgument, match="give one for each"):
        Together({"people": DiscreteLaplace(4)}).privacy_loss(number())  # type: ignore[arg-type]


def test_each_part_gets_its_own_noise_in_the_order_of_the_parts() -> None:
    value = both().checked(both().compute())
    one, other = SeededBits(9), SeededBits(9)
    noisy = Together(MECHANISMS).sample(value, one)
    assert list(noisy) == ["people", "pay"]
    assert noisy["people"] == DiscreteLaplace(4).sample(41, other)
    assert np.array_equal(noisy["pay"], Gaussian(60).sample(np.array([100, 200]), other))
    silent = Together(MECHANISMS).sample(value, ZeroNoiseBits())
    assert silent["people"] == 41


def test_the_order_of_the_mechanisms_changes_nothing() -> None:
    value = both().checked(both().compute())
    turned = dict(reversed(MECHANISMS.items()))
    assert Together(MECHANISMS) == Together(turned)
    assert repr(Together(MECHANISMS)) == repr(Together(turned))  # what a request id stands for
    one, other = (Together(m).sample(value, SeededBits(9)) for m in (MECHANISMS, turned))
    assert list(one) == list(other)
    assert one["people"] == other["people"]


def test_nobody_alters_it_between_the_price_and_the_draw() -> None:
    given = dict(MECHANISMS)
    together = Together(given)
    loss = together.privacy_loss(both())
    given["people"] = DiscreteLaplace(1)
    assert together.privacy_loss(both()) == loss
    assert together.mechanisms["people"] == DiscreteLaplace(4)
