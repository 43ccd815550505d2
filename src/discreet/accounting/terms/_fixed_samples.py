"""Samples of a fixed size, with and without replacement."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from flint import arb

from discreet._exact import ball, decimal_up, precision, upper_fraction
from discreet._fields import PositiveCount, frozen
from discreet._unit import Change
from discreet.accounting import _bounds
from discreet.accounting._bounds import Unknown, known
from discreet.accounting._loss import PrivacyLoss, Term, group_loss
from discreet.accounting._pairs import whole_pairs
from discreet.accounting._renyi import at_most_pure, between_whole_orders
from discreet.accounting.pld._dominating_pairs import Pair, Side, one_of
from discreet.accounting.terms._around_loss import (
    EVERYTHING,
    AroundLoss,
    ReplaceLoss,
    amplified,
    amplified_parts,
    exchanged,
    for_both_directions,
    revealed_draw,
)
from discreet.errors import InvalidArgument

_HIGHEST_ORDER = 256
_BITS = 256
_NEGLIGIBLE = Fraction(1, 2**80)
_FINENESS = 64  # numbers of draws above it are rounded up to steps of one part in 64
_IGNORED = Unknown("a number of draws with a negligible probability")


@frozen
class SampledWithoutReplacement(AroundLoss):
    """Everything that is computed from one sample of exactly ``sample`` of the ``population``
    units. All samples of this size are equally likely. A count of n for this term means n fresh
    samples.

    ``privacy_loss`` is the privacy loss of replacing one unit of the sample by another.
    Neighbours replace a unit, so the size of the population is public.

    >>> from discreet.accounting import Gaussian
    >>> step = SampledWithoutReplacement(Gaussian(2.0), sample=10, population=1000)
    >>> round((1000 * step).epsilon(delta=1e-5), 2)
    0.72
    """

    change: ClassVar[Change] = Change.REPLACE

    privacy_loss: ReplaceLoss
    sample: PositiveCount
    population: PositiveCount

    def __post_init__(self) -> None:
        if self.sample > self.population:
            raise InvalidArgument(
                f"sample = {self.sample}: give at most the population, {self.population}"
            )

    @property
    def rate(self) -> Fraction:
        """The probability with which a unit is in the sample."""
        return Fraction(self.sample, self.population)

    def pairs(self, side: Side) -> tuple[Pair, ...] | Unknown:
        """From above, one pair for both directions. Its losses above 0 are those of ((1 - rate) Q +
        rate P, Q). From below, this pair and its reverse: a sum attains both if all units but one
        are alike (docs/proofs/terms.md)."""
        inner = whole_pairs(self.privacy_loss, side)
        if isinstance(inner, Unknown) or self.rate == 1:
            return inner
        return exchanged(inner, self.rate, side)

    def approximate(self) -> tuple[Fraction, Fraction] | Unknown:
        """(ln(1 + rate (e^epsilon - 1)), rate delta) (Balle, Barthe and Gaboardi 2018, Theorem
        9)."""
        return amplified_parts(self.privacy_loss, self.rate)

    def failure_probability(self) -> Fraction:
        """rate times the failure probability inside: the draw may be revealed."""
        return self.rate * _bounds.failure_probability(self.privacy_loss)

    def renyi(self, order: Fraction) -> arb | Unknown:
        """The smaller of two bounds, both derived in docs/proofs/terms.md. The first one assumes
        that the sample is revealed. The second one, for losses that never fail, is a binomial sum
        after Wang, Balle and Kasiviswanathan (2019, Theorem 9), between whole orders."""
        plain = _bounds.renyi(self.privacy_loss, order)
        if isinstance(plain, Unknown) or self.rate == 1:
            return plain
        revealed = revealed_draw(self.rate, order, plain).min(plain)
        found = at_most_pure(self, order, revealed)
        if order > _HIGHEST_ORDER or _bounds.failure_probability(self.privacy_loss):
            return found
        return between_whole_orders(order, self._log_moment).min(found)

    def _log_moment(self, order: int) -> arb:
        """ln of a bound on the mean, under Q, of the ratio p/q to this whole power."""
        rate, total = ball(self.rate), arb(0)
        for n in range(2, order + 1):
            growth = (n - 1) * known(_bounds.renyi(self.privacy_loss, Fraction(n)))
            moment = 2 * growth.exp()
            if n == 2:
                moment = moment.min(4 * growth.expm1())
            total += math.comb(order, n) * rate**n * moment
        return total.log1p()


@frozen
class SampledWithReplacement(Term):
    """Everything that is computed from ``sample`` independent draws, each of one of the
    ``population`` units with equal probability. A count of n for this term means n fresh samples.

    ``privacy_loss`` is the privacy loss of replacing one drawn unit. A unit that is drawn several
    times is replaced in each place, which costs `PrivacyLoss.for_group`. Neighbours replace a unit,
    so the size of the population is public.

    >>> from discreet.accounting import Gaussian
    >>> step = SampledWithReplacement(Gaussian(4.0), sample=10, population=10_000)
    >>> (100 * step).epsilon(delta=1e-6) < (100 * Gaussian(4.0)).epsilon(delta=1e-6) / 10
    True
    """

    change: ClassVar[Change] = Change.REPLACE

    privacy_loss: ReplaceLoss
    sample: PositiveCount
    population: PositiveCount

    def pairs(self, side: Side) -> tuple[Pair, ...] | Unknown:
        """From above, one pair for both directions, as if the number of draws of the unit were
        revealed (Balle, Barthe and Gaboardi 2018, Theorem 10). From below, the pair of an answer in
        which a unit counts once, however often it was drawn."""
        return _pairs(self, side)

    def approximate(self) -> tuple[Fraction, Fraction] | Unknown:
        """A single draw has epsilon a = ln(1 + (e^epsilon - 1) / population). The draws are
        exchanged one by one, which gives sample * a, and delta (e^(sample a) - 1) / (e^epsilon -
        1)."""
        inner = _bounds.approximate(self.privacy_loss)
        if isinstance(inner, Unknown):
            return inner
        epsilon, delta = inner
        whole = self.sample * amplified(epsilon, Fraction(1, self.population))
        if not delta:
            return whole, delta
        with precision(_BITS):
            grown = ball(Fraction(self.sample, self.population))
            if epsilon:
                grown = ball(whole).expm1() / ball(epsilon).expm1()
            total = ball(delta) * grown
            if not total < 1:
                return Unknown(f"{self!r} leaves no guarantee of one epsilon and delta")
            return whole, decimal_up(upper_fraction(total), digits=12)

    def failure_probability(self) -> Fraction:
        """The probability that the unit is drawn more often than is counted, or that its draws
        fail. More draws are assumed to fail at least as often as fewer."""
        drawn, most = _draw_counts(self), Fraction(0)
        with precision(_BITS):
            total = drawn.rest
            for group, chance in drawn.groups:
                most = max(most, _bounds.failure_probability(group))
                total += chance * ball(most)
            found = upper_fraction(total)
        # `at_most_pure` needs a failure probability of at least delta: raise it to delta, if that
        # at most doubles it.
        whole = self.approximate()
        if not isinstance(whole, Unknown) and whole[1] <= 2 * found:
            found = max(found, whole[1])
        return min(decimal_up(found, digits=12), Fraction(1)) if found else found

    def zcdp(self) -> Fraction | Unknown:
        """The largest rho among the counted numbers of draws."""
        most = Fraction(0)
        for group, _ in _draw_counts(self).groups:
            rho = _bounds.zcdp(group)
            if isinstance(rho, Unknown):
                return rho
            most = max(most, rho)
        return most

    def renyi(self, order: Fraction) -> arb | Unknown:
        """The mean of the moments, as if the number of draws of the unit were revealed."""
        drawn, power, total, most = _draw_counts(self), ball(order - 1), arb(0), arb(0)
        for group, chance in drawn.groups:
            divergence = _bounds.renyi(group, order)
            if isinstance(divergence, Unknown):
                return divergence
            most = most.max(divergence)
            total += chance * (power * most).expm1()
        return at_most_pure(self, order, (total / (1 - drawn.rest)).log1p() / power)


@dataclass(frozen=True, slots=True)
class _DrawCounts:
    """The privacy loss of all draws of a unit together, if it is drawn: ``groups`` holds a loss for
    each number of draws, with its probability. ``rest`` is a bound on the probability of all other
    numbers of draws: too many, or without a bound on their loss."""

    groups: tuple[tuple[PrivacyLoss, arb], ...]
    rest: arb


@lru_cache(maxsize=64)
def _draw_counts(term: SampledWithReplacement) -> _DrawCounts:
    groups, rest = [], arb(0)
    with precision(_BITS):
        for times, chance in _chances_of_counts(term.sample, term.population):
            group = group_loss(term.privacy_loss, times) if times else _IGNORED
            if isinstance(group, Unknown):
                rest += chance
            else:
                groups.append((group, chance))
    return _DrawCounts(tuple(groups), rest)


@lru_cache(maxsize=16)
def _pairs(term: SampledWithReplacement, side: Side) -> tuple[Pair, ...] | Unknown:
    drawn = _draw_counts(term)
    with precision(_BITS):
        chance_of_any = upper_fraction(1 - (1 - ball(Fraction(1, term.population))) ** term.sample)
        if side is Side.LOWER:
            inner = whole_pairs(term.privacy_loss, side)
            return inner if isinstance(inner, Unknown) else exchanged(inner, chance_of_any, side)
        weighted = _weighted(drawn, side)
        if isinstance(weighted, Unknown):
            return weighted
        revealed = [
            (float(chance / ball(chance_of_any)), pair) for chance, pair in weighted if chance > 0
        ]
    return exchanged([one_of(revealed)], min(chance_of_any, Fraction(1)), side)


def _weighted(drawn: _DrawCounts, side: Side) -> list[tuple[arb, Pair]] | Unknown:
    """A pair for each number of draws, with its probability. A number of draws whose losses are
    too large for a grid counts as revealing everything."""
    found: list[tuple[arb, Pair]] = []
    rest = drawn.rest
    for group, chance in drawn.groups:
        both = whole_pairs(group, side)
        pair = both if isinstance(both, Unknown) else for_both_directions(both)
        if not isinstance(pair, Unknown):
            found.append((chance, pair))
        elif found:
            rest += chance
        else:
            return pair
    return [*found, (rest, EVERYTHING)]


def _chances_of_counts(draws: int, units: int) -> Iterator[tuple[int, arb]]:
    """Numbers of draws with their probabilities. Large numbers are rounded up to a few. The
    number 0 stands for all numbers whose probability is negligible."""
    if units == 1:
        yield draws, arb(1)
        return
    nothing = ball(_NEGLIGIBLE)
    mass, block, stop = (1 - ball(Fraction(1, units))) ** draws, arb(0), 1
    for times in range(1, draws + 1):
        mass *= ball(Fraction(draws - times + 1, times * (units - 1)))
        block += mass
        if times < min(stop, draws) or not block > nothing:
            continue
        yield times, block
        block, stop = arb(0), times + max(1, times // _FINENESS)
        ratio = ball(Fraction(draws - times, (times + 1) * (units - 1)))  # it falls with times
        if ratio < 1 and mass * ratio < nothing * (1 - ratio):
            yield 0, mass * ratio / (1 - ratio)
            return
    yield 0, block
