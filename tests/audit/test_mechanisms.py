"""Each mechanism of the library as a black box: its outputs against its price.

The registry has an attack for each, with a share of the noise that must be refuted.
"""

import itertools
from fractions import Fraction
from typing import Any

import pytest

from discreet.audit import BlackBoxResult, black_box
from tests.mechanisms.attack import Attack, asked
from tests.mechanisms.registry import CASES
from tests.noise.fit import QuickBits

SAMPLES = 2500


def audited(attack: Attack, noise: Fraction) -> BlackBoxResult:
    mechanism = attack.make(noise)
    seeds = itertools.count()

    def draw(value: Any, count: int) -> list[Any]:  # Any: each mechanism's own
        bits = QuickBits(next(seeds))
        if hasattr(mechanism, "begin"):
            return [asked(mechanism.begin(bits), value) for _ in range(count)]
        bounded = attack.of(value)
        computed = bounded.checked(bounded.compute())
        return [attack.sees(mechanism.sample(computed, bits)) for _ in range(count)]

    return black_box(draw, [(attack.one, attack.other)], attack.charged(), samples=SAMPLES)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_outputs_stay_within_the_price(name: str) -> None:
    """A right mechanism is accused with probability 1e-9."""
    attack = CASES[name].attack
    assert not audited(attack, Fraction(1)).is_refuted
    assert audited(attack, attack.less).is_refuted
