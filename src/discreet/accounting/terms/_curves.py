"""Bounds that come from elsewhere: Renyi curves, privacy profiles, privacy loss distributions."""

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
from flint import arb

from discreet import _checks
from discreet._exact import (
    Number,
    ball,
    decimal_up,
    float_down,
    float_up,
    fraction,
    precision,
    shown,
    upper_fraction,
)
from discreet._fields import Converted, field, frozen, optional
from discreet._unit import Change
from discreet.accounting._bounds import Unknown
from discreet.accounting._loss import PrivacyLoss, Term, change_of
from discreet.accounting._pairs import lower_hull, pair_of_profile, pair_through
from discreet.accounting._renyi import at_most_pure, infinite_probability, log_moment
from discreet.accounting.pld._dominating_pairs import Atoms, Pair, Side
from discreet.errors import InvalidArgument, NoBound, WrongUnit

_BITS = 256
_DIGITS = 15
_MOST_POINTS = 100_000
_LEAST_ORDER = Fraction(101, 100)
_NEARLY_ALL = 1 - Fraction(1, 2**40)
_LARGEST_LOSS = 500

CurvePoints = tuple[tuple[Fraction, Fraction], ...]
GivenPoints = Mapping[Any, Number] | Iterable[tuple[Number, Number]]  # Any: keys are invariant


def _points(name: str, given: object) -> list[tuple[object, object]]:
    entries = given.items() if isinstance(given, Mapping) else given
    if isinstance(given, str | bytes) or not isinstance(entries, Iterable):
        raise InvalidArgument(f"{name}: give a mapping from number to number, or a list of pairs")
    pairs: list[tuple[object, object]] = []
    for entry in entries:
        match entry:
            case (first, second) if len(pairs) < _MOST_POINTS:
                pairs.append((first, second))
            case _:
                raise InvalidArgument(f"{name}: give from 1 to {_MOST_POINTS} pairs of numbers")
    if not pairs:
        raise InvalidArgument(f"{name}: give one pair of numbers at least")
    return pairs


def _rising(name: str, points: Iterable[tuple[Fraction, Fraction]]) -> CurvePoints:
    ordered = tuple(sorted(points))
    for (one, _), (other, _) in pairwise(ordered):
        if one == other:
            raise InvalidArgument(
                f"{name}: the first number {shown(one)} stands twice; give each once"
            )
    return ordered


def _renyi_points(**named: object) -> CurvePoints:
    """Orders above 1, each with a divergence of at least 0."""
    ((name, given),) = named.items()
    points = []
    for order, divergence in _points(name, given):
        exact = _checks.positive(order=order)
        if exact <= 1:
            raise InvalidArgument(f"{name}: order = {order}: give orders above 1")
        points.append((exact, _checks.not_negative(divergence=divergence)))
    return _rising(name, points)


def _profile_points(**named: object) -> CurvePoints:
    """Epsilons of at least 0, each with a delta."""
    ((name, given),) = named.items()
    points = []
    for epsilon, delta in _points(name, given):
        exact = _checks.not_negative(delta=delta)
        if exact > 1:
            raise InvalidArgument(f"{name}: delta = {delta}: give numbers from 0 to 1")
        level = _checks.not_negative(epsilon=epsilon)
        if level > _LARGEST_LOSS:
            raise InvalidArgument(f"{name}: epsilon = {epsilon}: give at most {_LARGEST_LOSS}")
        points.append((level, exact))
    return _rising(name, points)


def _loss_points(**named: object) -> CurvePoints:
    """Losses with their probabilities, whose sum is at most 1 under both laws."""
    ((name, given),) = named.items()
    points = []
    for loss, probability in _points(name, given):
        exact = _checks.finite(loss=loss)
        if abs(exact) > _LARGEST_LOSS:
            raise InvalidArgument(
                f"{name}: loss = {loss}: give losses from -{_LARGEST_LOSS} to {_LARGEST_LOSS}, "
                "and leave larger ones out: what is missing counts as infinite"
            )
        points.append((exact, _checks.positive(probability=probability)))
    whole = sum(probability for _, probability in points)
    with precision(_BITS):
        other = sum((ball(p) * (-ball(loss)).exp() for loss, p in points), arb(0))
        is_law = whole <= 1 and not other > 1
    if not is_law:
        raise InvalidArgument(f"{name}: the probabilities add up to more than 1 under P or Q")
    return _rising(name, points)


def _change(**named: object) -> Change:
    ((name, given),) = named.items()
    if not isinstance(given, Change):
        raise InvalidArgument(
            f"{name} = {given!r}: give Change.ADD_REMOVE, Change.REPLACE or nothing"
        )
    return given


@frozen
class RenyiCurve(Term):
    """Anything whose Renyi divergences are bounded by this curve, in both directions (Mironov
    2017); ``curve`` maps orders above 1 to divergences.

    (order - 1) times the divergence is convex in the order, so between two orders its chord is a
    bound. Above the largest order nothing is known.

    >>> curve = RenyiCurve({2: 0.1, 8: 0.5, 32: 3})
    >>> (10 * curve).renyi(4) <= 5
    True
    >>> round((10 * curve).epsilon(1e-6), 2)
    6.54
    """

    curve: Annotated[Converted[CurvePoints, GivenPoints], _renyi_points]

    def renyi(self, order: Fraction) -> arb | Unknown:
        """The bound by the chords, or by a larger order, whose divergence is no smaller."""
        found = [divergence for known, divergence in self.curve if known >= order]
        for (low, less), (high, more) in pairwise(self.curve):
            if low <= order <= high:
                share = (order - low) / (high - low)
                moment = (1 - share) * (low - 1) * less + share * (high - 1) * more
                found.append(moment / (order - 1))
        if not found:
            return arb("inf")
        return ball(min(found))


class _UpperPair(Term):
    """A term with one dominating pair for both directions. No mechanism is known to attain
    it."""

    __slots__ = ()

    def failure_probability(self) -> Fraction:
        """The probability of an infinite loss."""
        return _failure(self._pair)

    def pairs(self, side: Side) -> tuple[Pair, ...] | Unknown:
        """The pair; none from below."""
        if side is Side.LOWER:
            return Unknown(f"no pair is known that {self!r} attains")
        return (self._pair,)

    @property
    def _pair(self) -> Pair:
        raise NotImplementedError


@frozen
class ProfileCurve(_UpperPair):
    """Anything that is (epsilon, delta)-differentially private for each pair of numbers on this
    curve; ``curve`` maps epsilons to deltas.

    `PrivacyLoss.profile` returns a profile with such points, and `from_trade_off` makes a curve
    from the errors of tests.

    >>> curve = ProfileCurve({0: 0.1, 1: 1e-3, 2: 1e-7})
    >>> round((1 * curve).epsilon(1e-3), 6)
    1.0
    """

    curve: Annotated[Converted[CurvePoints, GivenPoints], _profile_points]

    @staticmethod
    def from_trade_off(errors: GivenPoints) -> "ProfileCurve":
        """The profile of a trade-off function (Dong, Roth and Su 2022, Proposition 2.12), in both
        orders of the neighbours. ``errors`` maps type I errors to type II errors; no test may have
        errors below the lower hull of these points. Points on a curved function don't suffice,
        since its chords lie above it: give the corners of a polygon below it, as `TradeOff.curve`
        does.

        >>> ProfileCurve.from_trade_off({0: 1, 0.25: 0.25, 1: 0}).approximate()[1]
        Fraction(0, 1)
        """
        points = _rising("errors", ((_part(a), _part(b)) for a, b in _points("errors", errors)))
        curve: dict[Fraction, Fraction] = {}
        for (one, more), (other, less) in pairwise(_lower_hull(points)):
            # the line type II = power - slope * type I
            slope = (more - less) / (other - one)
            if slope <= 0:
                continue
            power = more + slope * one
            odds, delta = (slope, 1 - power) if slope >= 1 else (1 / slope, 1 - power / slope)
            with precision(_BITS):
                epsilon = upper_fraction(ball(odds).log()) if odds > 1 else Fraction(0)
            epsilon = decimal_up(epsilon, _DIGITS) if epsilon else epsilon
            if epsilon <= _LARGEST_LOSS:
                curve[epsilon] = max(delta, curve.get(epsilon, Fraction(0)))
        return ProfileCurve(curve or {0: 1})

    def approximate(self) -> tuple[Fraction, Fraction]:
        """The point with the smallest delta, and the smallest epsilon among those."""
        delta, epsilon = min((delta, epsilon) for epsilon, delta in self.curve)
        return epsilon, delta

    def renyi(self, order: Fraction) -> arb:
        """The divergence of the pair, given that its losses are finite; or that of randomized
        response at the epsilon of the smallest delta, if that is less."""
        return at_most_pure(self, order, _renyi_of_atoms(self._pair, order))

    @property
    def _pair(self) -> Pair:
        return _pair_of_points(self.curve)


@frozen
class LossDistribution(_UpperPair):
    """Anything that one discrete privacy loss distribution dominates, in both directions:
    ``losses`` maps losses ln(p/q) to their probabilities under P. The rest up to 1 is the
    probability of an infinite loss.

    Such a term composes a pessimistic distribution that was made elsewhere with other terms. `of`
    makes one from a privacy loss. ``change`` is the relation between neighbours; ``None`` means
    that the distribution holds for any.

    >>> bit = LossDistribution({1: 0.731, -1: 0.2689})
    >>> 0.99 < (1 * bit).epsilon(0.001) < 1.01
    True
    """

    losses: Annotated[Converted[CurvePoints, GivenPoints], _loss_points]
    change: Annotated[Change | None, optional(_change)] = field(default=None)  # type: ignore[misc]  # each has its own

    @staticmethod
    def of(loss: PrivacyLoss | Term) -> "LossDistribution":
        """The distribution with the privacy profile of this loss, at 241 epsilons, for the same
        relation between neighbours. A loss with a unit is refused, since a term has none.

        >>> from discreet.accounting import Laplace
        >>> exported = LossDistribution.of(3 * Laplace(2))
        >>> (1 * exported).epsilon(1e-3) <= 1.01 * (3 * Laplace(2)).epsilon(1e-3)
        True
        """
        whole = PrivacyLoss() + loss
        if whole.unit is not None:
            raise WrongUnit("a term has no unit of its own: export the loss without its unit")
        profile = whole.profile()
        top = min(fraction(profile.epsilons[-1]), Fraction(_LARGEST_LOSS))
        pair = pair_of_profile(lambda at: [fraction(profile.delta(one)) for one in at], top)
        finite = np.isfinite(pair.atoms.loss) & (pair.atoms.p > 0)
        both = zip(pair.atoms.loss[finite].tolist(), pair.atoms.p[finite].tolist(), strict=True)
        # a small part of each mass goes to the infinite loss, so that the sum is at most 1
        masses = [(fraction(one), fraction(p) * _NEARLY_ALL) for one, p in both]
        if not masses:
            raise NoBound("this privacy loss has a delta of 1 at every epsilon")
        return LossDistribution(masses, change_of(whole))

    def renyi(self, order: Fraction) -> arb:
        """The divergence of the finite losses, which is at most the largest of them."""
        largest = max(loss for loss, _ in self.losses)
        return _renyi_of_atoms(self._pair, order).min(ball(max(largest, Fraction(0))))

    @property
    def _pair(self) -> Pair:
        return _pair_of_losses(self.losses)


@lru_cache(maxsize=64)
def _pair_of_points(curve: CurvePoints) -> Pair:
    points, least = [], Fraction(1)
    with precision(_BITS):
        for epsilon, delta in curve:
            least = min(least, delta)
            points.append((upper_fraction(ball(epsilon).exp()) if epsilon else Fraction(1), least))
    return pair_through(points)


@lru_cache(maxsize=64)
def _pair_of_losses(losses: CurvePoints) -> Pair:
    with precision(_BITS):
        others = [ball(p) * (-ball(loss)).exp() for loss, p in losses]
        q = [float(one.mid()) for one in others]
        rest = float((1 - sum(others, arb(0))).upper())
    p = [float(probability) for _, probability in losses]
    infinite = float_up(1 - sum((probability for _, probability in losses), Fraction(0)))
    atoms = zip((float(loss) for loss, _ in losses), p, q, strict=True)
    return Pair(Atoms.of(*atoms, (math.inf, infinite, 0.0), (-math.inf, 0.0, max(rest, 0.0))))


def _failure(pair: Pair) -> Fraction:
    return min(infinite_probability(pair), Fraction(1))


def _renyi_of_atoms(pair: Pair, order: Fraction) -> arb:
    """The divergence of the pair, given that no loss is infinite. Near order 1 the divergence of a
    larger order serves, for which floats give a closer bound."""
    failure, sharp = _failure(pair), max(order, _LEAST_ORDER)
    if failure == 1:
        return arb(0)  # no loss is finite
    atoms = pair.atoms
    finite = atoms.loss < np.inf
    p = atoms.p[finite] / float_down(1 - failure)
    rest = Pair(Atoms(atoms.loss[finite], p, atoms.q[finite]))
    return ball(log_moment(rest, sharp)) / ball(sharp - 1)


def _lower_hull(points: CurvePoints) -> list[tuple[Fraction, Fraction]]:
    """The lower hull of points on a falling function from [0, 1] to [0, 1]."""
    zero, one = Fraction(0), Fraction(1)
    first = [] if points[0][0] == 0 else [(zero, points[0][1])]
    last = [] if points[-1][0] == 1 else [(one, zero)]
    every = [*first, *points, *last]
    return [every[place] for place in lower_hull(every)]


def _part(number: object) -> Fraction:
    exact = _checks.not_negative(error=number)
    if exact > 1:
        raise InvalidArgument(f"error = {number}: give probabilities, from 0 to 1")
    return exact
