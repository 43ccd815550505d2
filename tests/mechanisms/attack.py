"""An attack on a mechanism as a black box: what it draws for two neighbours, against its price."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.accounting import PrivacyLoss
from discreet.audit import black_box
from discreet.mechanisms import Bounded, DiscreteLaplace, Grid, Sensitivity
from discreet.mechanisms.framework import proposed
from discreet.mechanisms.thresholds import sets_of_keys
from discreet.mechanisms.thresholds._keys_first import SumsPart
from discreet.mechanisms.tuning import Scored
from tests.mechanisms.kit import PERSON
from tests.noise.fit import QuickBits

SAMPLES = 700  # of each value; 500 refute too little noise, too

GRID = Grid(0, 1)
PAIR = Sensitivity(linf=1, length=2)
HALF, EIGHTH = Fraction(1, 2), Fraction(1, 8)
AB, APART = ["a", "b"], ([0, 1], [1, 0])
WIDE, MOST, FEW = Grid(0, 28000), [27500.0], [27500.0, 28000.0]

Some = Any  # Any: each mechanism's own values and outcomes


@dataclass(frozen=True)
class Attack:
    """Two neighbouring values, and a function that builds the mechanism with a share of its noise.

    With the whole noise the attack must fail; with the share ``less`` it must succeed.
    """

    of: Callable[[Some], Bounded[Some]]
    one: Some
    other: Some
    make: Callable[[Fraction], Some]
    less: Fraction = HALF
    sees: Callable[[Some], Some] = lambda outcome: outcome

    def charged(self) -> PrivacyLoss:
        mechanism = self.make(Fraction(1))
        if hasattr(mechanism, "begin"):
            mechanism.check(self.of(self.one[0]))
            loss = mechanism.privacy_loss(PERSON)
        else:
            loss = mechanism.privacy_loss(self.of(self.one))
        assert isinstance(loss, PrivacyLoss)
        return loss

    def draw(self, noise: Fraction) -> Callable[[Some], Some]:
        """The mechanism as a function of a value, with this share of its noise."""
        mechanism, bits = self.make(noise), QuickBits(0)
        if hasattr(mechanism, "begin"):
            return lambda value: asked(mechanism.begin(bits), value)

        def one_outcome(value: Some) -> Some:
            bounded = self.of(value)
            return self.sees(mechanism.sample(bounded.checked(bounded.compute()), bits))

        return one_outcome


def asked(answer: Callable[[Some], tuple[Some, bool]], values: list[int]) -> tuple[Some, ...]:
    found = []
    for value in values:
        given, goes_on = answer(value)
        found.append(given)
        if not goes_on:
            break
    return tuple(found)


def side(outcome: Some) -> tuple[float, ...]:
    """On which side of the first row each number lies."""
    return tuple(np.sign(np.atleast_1d(outcome) - MOST[0]).tolist())


def refuted(attack: Attack, noise: Fraction) -> bool:
    """Whether an audit refutes the price of the whole noise; wrongly with a chance of 10^-9."""
    pairs = [(attack.one, attack.other)]
    return black_box(attack.draw(noise), pairs, attack.charged(), samples=SAMPLES).is_refuted


# Computations of a given value


def number(value: int) -> Bounded[Some]:
    return Bounded(lambda: value, sensitivity=1, unit=PERSON, name="number")


def real(value: float) -> Bounded[Some]:
    return Bounded.real(lambda: value, sensitivity=1, step=0.5, unit=PERSON, name="real")


def pair(value: list[int]) -> Bounded[Some]:
    return Bounded(lambda: np.array(value), sensitivity=PAIR, unit=PERSON, name="pair", shape=(2,))


def groups(value: list[list[int]]) -> Bounded[Some]:
    sensitivity = Sensitivity(linf=1, length=4)
    return Bounded(
        lambda: np.array(value), sensitivity=sensitivity, unit=PERSON, name="g", shape=(2, 2)
    )


def rows(value: list[float]) -> Bounded[Some]:
    return Bounded.rows(lambda: np.array(value), columns={"x": GRID}, unit=PERSON, name="rows")


def wide(value: list[float]) -> Bounded[Some]:
    return Bounded.rows(lambda: np.array(value), columns={"x": WIDE}, unit=PERSON, name="rows")


def keys(value: Some) -> Bounded[Some]:
    return Bounded.keys(lambda: value, per_unit=1, unit=PERSON, name="keys")


def keys_and_sums(value: tuple[Some, Some]) -> Bounded[Some]:
    parts = (keys({}).part, SumsPart("sums", Sensitivity(l1=1, linf=1)))
    return Bounded.together(
        lambda: dict(zip(("keys", "sums"), value, strict=True)),
        parts=parts,
        unit=PERSON,
        name="both",
    )


def sets(value: Some) -> Bounded[Some]:
    return sets_of_keys(lambda: value, per_unit=1, unit=PERSON, name="sets")


def blocks(value: list[int]) -> Bounded[Some]:
    sensitivity = Sensitivity(l0=1, linf=1)
    return Bounded(
        lambda: np.array(value), sensitivity=sensitivity, unit=PERSON, name="blocks", shape=(3,)
    )


def proven(value: tuple[int, int]) -> Bounded[Some]:
    return proposed(lambda: value, bound=4, unit=PERSON, name="tested")


def both(value: tuple[int, int]) -> Bounded[Some]:
    parts = tuple(
        Bounded(lambda: 0, sensitivity=1, unit=PERSON, name=name).parts[0] for name in "ab"
    )
    return Bounded.together(
        lambda: dict(zip("ab", value, strict=True)), parts=parts, unit=PERSON, name="both"
    )


def run(noise: Fraction) -> Scored[int, int]:
    each = DiscreteLaplace(2 * noise)
    return Scored(each, lambda n, given: given - n, each, 1)
