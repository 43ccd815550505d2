"""Samples drawn one unit at a time from the whole population."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from flint import arb

from discreet import checks
from discreet.accounting import knowledge
from discreet.accounting.distribution import joined
from discreet.accounting.loss import PrivacyLoss, Term, inner_loss
from discreet.accounting.pairs import Atoms, Pair, Side, one_of
from discreet.accounting.terms.sampled_without_replacement import (
    amplified,
    as_one_bit,
    exchanged,
    serving_both,
)
from discreet.errors import NoBound
from discreet.exact import ball, decimal_up, precision, upper_fraction
from discreet.unit import Change

_BITS = 256
_NOTHING = Fraction(1, 2**80)
_FINENESS = 64  # of how often a unit is drawn, where that is often

_TOLD = Pair(Atoms.of((float("inf"), 1.0, 0.0), (-float("inf"), 0.0, 1.0)))


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
        object.__setattr__(self, "sample", Fraction(checks.positive_count(sample=sample)))
        whole = checks.positive_count(population=population)
        object.__setattr__(self, "population", Fraction(whole))

    def pairs(self, side: Side) -> tuple[Pair, ...]:
        """From above, one pair for both orders: it is told how often the unit was drawn (Balle,
        Barthe and Gaboardi 2018, Theorem 10). From below that of an answer to which a unit counts
        once, however often it was drawn."""
        with precision(_BITS):
            drawn = upper_fraction(1 - (1 - ball(1 / self.population)) ** int(self.sample))
            if side is Side.LOWER:
                once = knowledge.pairs(self.privacy_loss, side)
                return exchanged([joined(order, side) for order in once], drawn, side)
            groups, rest = self._draws()
            weighted = [
                (float(ways / ball(drawn)), self._group_pair(times)) for times, ways in groups
            ]
            if rest > 0:
                weighted.append((float(rest / ball(drawn)), _TOLD))
        return exchanged([one_of(weighted)], min(drawn, Fraction(1)), side)

    def approximate(self) -> tuple[Fraction, Fraction]:
        """With a the bound ln(1 + (e^epsilon - 1) / population) for a single draw: sample times
        a, and delta (e^(sample a) - 1) / (e^epsilon - 1), as draws may be exchanged one by one."""
        epsilon, delta = knowledge.approximate(self.privacy_loss)
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
        with precision(_BITS):
            groups, total = self._draws()
            most = Fraction(0)
            for times, ways in groups:
                most = max(most, knowledge.leak(self._group(times)))
                total += ways * ball(most)
            found = upper_fraction(total)
        with suppress(NoBound):  # a leak that is nearly as large makes for a simple Renyi bound
            _, delta = self.approximate()
            found = max(found, delta) if delta <= 2 * found else found
        return min(decimal_up(found, digits=12), Fraction(1)) if found else found

    def zcdp(self) -> Fraction:
        """That of the most draws that are counted."""
        with precision(_BITS):
            groups, _ = self._draws()
        return max(knowledge.zcdp(self._group(times)) for times, _ in groups)

    def renyi(self, order: Fraction) -> arb:
        """The moments' mean, as if it were told how often the unit was drawn."""
        groups, rest = self._draws()
        power, total, most = ball(order - 1), arb(0), arb(0)
        for times, ways in groups:
            most = most.max(knowledge.renyi(self._group(times), order))
            total += ways * (power * most).expm1()
        return as_one_bit(self, order, (total / (1 - rest)).log1p() / power)

    def _draws(self) -> tuple[list[tuple[int, arb]], arb]:
        """How often the unit may be drawn, at least once, each with its probability, rounded up to
        fewer different numbers where there are many; and a bound on that of still more draws, or
        of so many that nothing is known of what they cost."""
        groups: list[tuple[int, arb]] = []
        rest = arb(0)
        for times, ways in self._blocks():
            if times and self._is_known(times):
                groups.append((times, ways))
            else:
                rest += ways
        return groups, rest

    def _is_known(self, times: int) -> bool:
        try:
            self._group(times)
        except NoBound:
            return False
        return True

    def _blocks(self) -> Iterator[tuple[int, arb]]:
        """Numbers of draws, rounded up, and their probabilities; 0 stands for all others, which
        are next to never drawn."""
        most, units = int(self.sample), int(self.population)
        if units == 1:
            yield most, arb(1)
            return
        nothing = ball(_NOTHING)
        mass, block, stop = (1 - ball(1 / self.population)) ** most, arb(0), 1
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

    def _group(self, times: int) -> PrivacyLoss:
        return knowledge.for_group(self.privacy_loss, times) if times > 1 else self.privacy_loss

    def _group_pair(self, times: int) -> Pair:
        orders = knowledge.pairs(self._group(times), Side.UPPER)
        return joined(serving_both(orders), Side.UPPER)
