"""Samples drawn one unit at a time from the whole population."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from flint import arb

from discreet import _checks
from discreet._exact import ball, decimal_up, precision, upper_fraction
from discreet._unit import Change
from discreet.accounting import _knowledge
from discreet.accounting._loss import PrivacyLoss, Term, inner_loss
from discreet.accounting._one_bit import as_one_bit
from discreet.accounting._sampling import (
    EVERYTHING,
    amplified,
    exchanged,
    serving_both,
    whole_pairs,
)
from discreet.accounting.pld._dominating_pairs import Pair, Side, one_of
from discreet.errors import NoBound

_BITS = 256
_NOTHING = Fraction(1, 2**80)
_FINENESS = 64  # of how often a unit is drawn, where that is often


@dataclass(frozen=True, slots=True, init=False, repr=False)
class SampledWithReplacement(Term):
    """Everything that is computed from ``sample`` draws, each of one of the ``population`` units,
    all as likely and whatever was drawn before; a count of it means as many fresh samples.

    ``privacy_loss`` is what it costs to replace one of the drawn units; one that was drawn several
    times is replaced as often, which costs `PrivacyLoss.for_group`. Neighbours replace a unit, so
    the size of the population is public.

    >>> from discreet.accounting import Gaussian
    >>> step = SampledWithReplacement(Gaussian(4.0), sample=10, population=10_000)
    >>> (100 * step).epsilon(delta=1e-6) < (100 * Gaussian(4.0)).epsilon(delta=1e-6) / 10
    True
    """

    change: ClassVar[Change] = Change.REPLACE

    privacy_loss: PrivacyLoss
    sample: Fraction
    population: Fraction

    def __init__(self, privacy_loss: PrivacyLoss | Term, sample: int, population: int) -> None:
        """Keep the sizes; the privacy loss speaks of replaced units, or of no relation."""
        object.__setattr__(self, "privacy_loss", inner_loss(privacy_loss, self.change))
        object.__setattr__(self, "sample", Fraction(_checks.positive_count(sample=sample)))
        whole = _checks.positive_count(population=population)
        object.__setattr__(self, "population", Fraction(whole))

    def pairs(self, side: Side) -> tuple[Pair, ...]:
        """From above, one pair for both orders: it is told how often the unit was drawn (Balle,
        Barthe and Gaboardi 2018, Theorem 10). From below that of an answer to which a unit counts
        once, however often it was drawn."""
        return _pairs(self, side)

    def approximate(self) -> tuple[Fraction, Fraction]:
        """With a the bound ln(1 + (e^epsilon - 1) / population) for a single draw: sample times
        a, and delta (e^(sample a) - 1) / (e^epsilon - 1), as draws may be exchanged one by one."""
        epsilon, delta = _knowledge.approximate(self.privacy_loss)
        whole = self.sample * amplified(epsilon, 1 / self.population)
        if not delta:
            return whole, delta
        with precision(_BITS):
            grown = ball(self.sample / self.population)
            if epsilon:
                grown = ball(whole).expm1() / ball(epsilon).expm1()
            total = ball(delta) * grown
            if not total < 1:
                raise NoBound(f"{self!r} leaves no guarantee of one epsilon and delta")
            return whole, decimal_up(upper_fraction(total), digits=12)

    def leak(self) -> Fraction:
        """That the unit is drawn too often to be counted, or that one of its draws leaks; more
        draws are taken to leak no less."""
        drawn, most = _drawn(self), Fraction(0)
        with precision(_BITS):
            total = drawn.rest
            for group, ways in drawn.groups:
                most = max(most, _knowledge.leak(group))
                total += ways * ball(most)
            found = upper_fraction(total)
        with suppress(NoBound):  # a leak that is nearly as large makes for a simple Renyi bound
            _, delta = self.approximate()
            found = max(found, delta) if delta <= 2 * found else found
        return min(decimal_up(found, digits=12), Fraction(1)) if found else found

    def zcdp(self) -> Fraction:
        """That of the most draws that are counted."""
        return max(_knowledge.zcdp(group) for group, _ in _drawn(self).groups)

    def renyi(self, order: Fraction) -> arb:
        """The moments' mean, as if it were told how often the unit was drawn."""
        drawn, power, total, most = _drawn(self), ball(order - 1), arb(0), arb(0)
        for group, ways in drawn.groups:
            most = most.max(_knowledge.renyi(group, order))
            total += ways * (power * most).expm1()
        return as_one_bit(self, order, (total / (1 - drawn.rest)).log1p() / power)


@dataclass(frozen=True, slots=True)
class _Drawn:
    """What a unit's draws cost together, if there is one at least: each loss with its probability,
    and a bound on the probability of more draws, or of so many that nothing is known of them."""

    groups: tuple[tuple[PrivacyLoss, arb], ...]
    rest: arb


@lru_cache(maxsize=64)
def _drawn(term: SampledWithReplacement) -> _Drawn:
    groups, rest = [], arb(0)
    with precision(_BITS):
        for times, ways in _numbers(int(term.sample), int(term.population)):
            if group := _group(term.privacy_loss, times):
                groups.append((group, ways))
            else:
                rest += ways
    return _Drawn(tuple(groups), rest)


def _group(loss: PrivacyLoss, times: int) -> PrivacyLoss | None:
    """What so many draws of one unit cost, if that is known."""
    try:
        return _knowledge.for_group(loss, times) if times else None
    except NoBound:
        return None


@lru_cache(maxsize=16)
def _pairs(term: SampledWithReplacement, side: Side) -> tuple[Pair, ...]:
    drawn = _drawn(term)
    with precision(_BITS):
        ever = upper_fraction(1 - (1 - ball(1 / term.population)) ** int(term.sample))
        if side is Side.LOWER:
            return exchanged(whole_pairs(term.privacy_loss, side), ever, side)
        weighted, rest = _weighted(drawn, side)
        weighted.append((rest, EVERYTHING))
        told = [(float(ways / ball(ever)), pair) for ways, pair in weighted if ways > 0]
    return exchanged([one_of(told)], min(ever, Fraction(1)), side)


def _weighted(drawn: _Drawn, side: Side) -> tuple[list[tuple[arb, Pair]], arb]:
    """Pairs with the probabilities of so many draws; and that of those whose losses, larger ones,
    are too large for a grid."""
    found: list[tuple[arb, Pair]] = []
    rest = drawn.rest
    for group, ways in drawn.groups:
        try:
            found.append((ways, serving_both(whole_pairs(group, side))))
        except NoBound:
            if not found:
                raise
            rest += ways
    return found, rest


def _numbers(most: int, units: int) -> Iterator[tuple[int, arb]]:
    """Numbers of draws, rounded up to fewer different ones where there are many, and their
    probabilities; 0 stands for all others, which are next to never drawn."""
    if units == 1:
        yield most, arb(1)
        return
    nothing = ball(_NOTHING)
    mass, block, stop = (1 - ball(Fraction(1, units))) ** most, arb(0), 1
    for times in range(1, most + 1):
        mass *= ball(Fraction(most - times + 1, times * (units - 1)))
        block += mass
        if times < min(stop, most) or not block > nothing:
            continue
        yield times, block
        block, stop = arb(0), times + max(1, times // _FINENESS)
        ratio = ball(Fraction(most - times, (times + 1) * (units - 1)))  # and falling
        if ratio < 1 and mass * ratio < nothing * (1 - ratio):
            yield 0, mass * ratio / (1 - ratio)
            return
    yield 0, block
