"""Every mechanism as a black box: what it draws for two neighbours, against what it charges.

The law of each is attacked by exact sums in its own test. This is the same question once more, of
the whole way from the data to what is shown, and asked of each mechanism by its name.
"""

from fractions import Fraction

import pytest

from tests.mechanisms.attack import refuted
from tests.mechanisms.registry import CASES


@pytest.mark.parametrize("name", CASES)
def test_noise_agrees_with_its_charge(name: str) -> None:
    attack = CASES[name].attack
    assert not refuted(attack, Fraction(1))
    assert refuted(attack, attack.less)
