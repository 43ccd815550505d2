"""The exact privacy of a finite mechanism, from the probabilities of its outcomes.

For two laws P and Q of the outcomes, delta at epsilon is the sum of (p - e^epsilon q)+ (Dwork and
Roth 2014, Section 3.5.1). As a function of e^epsilon it is a convex chain of lines, whose corners
are the ratios p / q. All of it is computed in fractions; only logarithms and exponentials are
rounded, in the stated direction.
"""

import json
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet import _checks, _html
from discreet._exact import (
    Number,
    ball,
    float_down,
    float_up,
    fraction,
    lower_fraction,
    precision,
    shown,
    upper_fraction,
)
from discreet.accounting import Interval, PrivacyLoss, Term
from discreet.accounting._profile import Profile, TradeOff
from discreet.audit._black_box import claimed_loss
from discreet.audit._neighbours import checked_pairs
from discreet.errors import InvalidArgument

Probabilities = Mapping[Hashable, Number]

_BITS = 192
_FARTHEST = Fraction(10_000)  # for a larger epsilon, delta is taken at this one
_NEXT = 1e-15  # relative distance of neighbouring floats
_AS_CLAIMED = 1 + 1e-14  # math.log(2) is the float nearest to the logarithm, and may be below it
_SHOWN = 8
_EXAMPLE = "[({'yes': 0.75, 'no': 0.25}, {'yes': 0.25, 'no': 0.75})]"


@dataclass(frozen=True, slots=True)
class WorstEvent:
    """The outcomes that tell two datasets apart best.

    ``pair`` is the place of their pair of laws. ``likely`` is the probability of these outcomes
    under one law, and ``unlikely`` under the other one; ``is_first`` says that the first law of
    the pair makes them likely.
    """

    outcomes: tuple[Hashable, ...]
    likely: Fraction
    unlikely: Fraction
    pair: int
    is_first: bool


@dataclass(frozen=True, slots=True)
class _RankedOutcomes:
    """Outcomes with their probabilities under two laws, the largest ratio first."""

    outcomes: tuple[Hashable, ...]
    probabilities: tuple[tuple[Fraction, Fraction], ...]
    pair: int
    is_first: bool

    def delta(self, factor: Fraction) -> Fraction:
        """The sum of (p - factor q)+."""
        return sum((max(p - factor * q, Fraction(0)) for p, q in self.probabilities), Fraction(0))

    def worst(self, delta: Fraction) -> tuple[Fraction | None, WorstEvent]:
        """The smallest factor of at least 1 with this delta, and the event that needs it; ``None``
        if there is no factor.

        Delta is the largest of the lines p(E) - factor q(E), where E runs through the events that
        hold the outcomes of the largest ratios.
        """
        likely = unlikely = Fraction(0)
        best: tuple[Fraction, int, Fraction, Fraction] = Fraction(0), 0, likely, unlikely
        for count, (p, q) in enumerate(self.probabilities, start=1):
            likely, unlikely = likely + p, unlikely + q
            if unlikely:
                best = max(best, ((likely - delta) / unlikely, count, likely, unlikely))
            elif likely > delta:
                return None, self._event(count, likely, unlikely)
        return max(best[0], Fraction(1)), self._event(*best[1:])

    def corners(self) -> set[Fraction]:
        """The factors above 1 where delta, as a function of the factor, bends."""
        return {p / q for p, q in self.probabilities if p > q > 0}

    def _event(self, count: int, likely: Fraction, unlikely: Fraction) -> WorstEvent:
        return WorstEvent(self.outcomes[:count], likely, unlikely, self.pair, self.is_first)


@dataclass(frozen=True, slots=True, repr=False)
class ExactPrivacy:
    """The privacy of a finite mechanism on the given pairs of neighbours, in both directions.

    ``claim`` is the claimed privacy loss, or ``None``.

    >>> truth, lie = Fraction(3, 4), Fraction(1, 4)
    >>> exact([({"yes": truth, "no": lie}, {"yes": lie, "no": truth})])
    exact privacy of 1 pair
      epsilon at delta 0: 1.09862 (e^epsilon = 3)
      worst event: 'yes', of probability 3/4 against 1/4 (pair 0)
    """

    directions: tuple[_RankedOutcomes, ...]
    claim: PrivacyLoss | None = None

    _repr_html_ = _html.shown

    @property
    def is_refuted(self) -> bool:
        """Whether this mechanism loses more than its claim, as `exceeds` says; or False."""
        return self.claim is not None and self.exceeds(self.claim)

    def factor(self, delta: Number = 0) -> Fraction | None:
        """The smallest e^epsilon at this delta, exactly; ``None`` if no epsilon is enough."""
        return self._worst(delta)[0]

    def worst_event(self, delta: Number = 0) -> WorstEvent:
        """An event that needs the largest epsilon at this delta."""
        return self._worst(delta)[1]

    def epsilon(self, delta: Number = 0) -> float:
        """The smallest epsilon at this delta, rounded up."""
        return self.interval(delta).upper

    def interval(self, delta: Number = 0) -> Interval:
        """The smallest epsilon at this delta, rounded down and rounded up."""
        factor = self.factor(delta)
        if factor is None:
            return Interval(math.inf, math.inf, 0.0)
        with precision(_BITS):
            logarithm = ball(factor).log()
            ends = float_down(logarithm), float_up(logarithm)
        return Interval(max(0.0, ends[0]), max(0.0, ends[1]), _NEXT)

    def delta(self, epsilon: Number) -> float:
        """The smallest delta at this epsilon, rounded up."""
        return float_up(self._delta(_checks.not_negative(epsilon=epsilon), is_upper=True))

    def profile(self) -> Profile:
        """Delta for each epsilon, rounded up."""
        corners = sorted({Fraction(1)}.union(*(each.corners() for each in self.directions)))
        with precision(_BITS):
            epsilons = sorted({float_down(ball(corner).log()) for corner in corners if corner > 1})
        points = [0.0, *(one for one in epsilons if one > 0)]
        deltas = [self.delta(one) for one in points]
        return Profile(tuple(points), tuple(deltas))

    def trade_off(self) -> TradeOff:
        """The least type II error of a test for each type I error, rounded down."""
        found = self.profile()
        return TradeOff(found.epsilons, found.deltas)

    def exceeds(self, claim: PrivacyLoss | Term) -> bool:
        """Whether this mechanism loses more than the claim, at some epsilon, by more than 1e-14 of
        the claimed epsilon or delta. A claim of ``math.log(2)`` thus means the logarithm."""
        claimed = PrivacyLoss.of(claim) if isinstance(claim, Term) else claim
        if self.interval().lower > claimed.epsilon() * _AS_CLAIMED:
            return True
        # Between two points of either profile, both deltas are lines in e^epsilon
        known = claimed.profile()
        points = {*known.epsilons, *self.profile().epsilons}
        return any(
            self._delta(fraction(one * _AS_CLAIMED), is_upper=False)
            > fraction(known.delta(one) * _AS_CLAIMED)
            for one in points
        )

    def to_json(self) -> str:
        """Epsilon, the worst event and the verdict as JSON. An infinite number is null."""
        factor, event = self._worst(0)
        claimed = None if self.claim is None else json.loads(self.claim.to_json())
        return json.dumps(
            {
                "is_refuted": self.is_refuted,
                "claim": claimed,
                "epsilon": None if factor is None else self.epsilon(),
                "factor": None if factor is None else str(factor),
                "worst_event": {
                    "outcomes": [repr(one) for one in event.outcomes],
                    "likely": str(event.likely),
                    "unlikely": str(event.unlikely),
                    "pair": event.pair,
                },
            },
            indent=2,
        )

    def _worst(self, delta: Number) -> tuple[Fraction | None, WorstEvent]:
        level = _checks.delta(delta=delta)
        found = [each.worst(level) for each in self.directions]
        return max(found, key=lambda one: math.inf if one[0] is None else one[0])

    def _delta(self, epsilon: Fraction, *, is_upper: bool) -> Fraction:
        with precision(_BITS):
            power = ball(min(epsilon, _FARTHEST)).exp()
            factor = lower_fraction(power) if is_upper else upper_fraction(power)
        if epsilon > _FARTHEST and not is_upper:
            return Fraction(0)
        return max(each.delta(factor) for each in self.directions)

    def __repr__(self) -> str:
        """Epsilon and the worst event in words."""
        factor, event = self._worst(0)
        pairs = len({each.pair for each in self.directions})
        shown_outcomes = ", ".join(map(repr, event.outcomes[:_SHOWN]))
        more = ", …" if len(event.outcomes) > _SHOWN else ""
        needed = "infinite" if factor is None else f"{_html.up(self.epsilon())}"
        exactly = "" if factor is None else f" (e^epsilon = {shown(factor)})"
        verdict = ""
        if self.claim is not None:
            verdict = f"{'REFUTED' if self.is_refuted else 'not refuted'}: claim {self.claim!s}\n"
        return (
            f"{verdict}exact privacy of {pairs} pair{'s' * (pairs > 1)}\n"
            f"  epsilon at delta 0: {needed}{exactly}\n"
            f"  worst event: {shown_outcomes}{more}, of probability {event.likely} against "
            f"{event.unlikely} (pair {event.pair})"
        )


def exact(
    pairs: Sequence[tuple[Probabilities, Probabilities]],
    claim: PrivacyLoss | Term | Number | None = None,
    *,
    delta: Number = 0,
) -> ExactPrivacy:
    """The privacy of a mechanism with finitely many outcomes, computed exactly.

    Each pair has the laws of the mechanism on two neighbouring datasets, as mappings from outcomes
    to probabilities. An outcome must be equal to itself, so it can't be NaN. A probability that is
    a float means its shortest decimal; those of one law must sum to 1 exactly, so give fractions
    such as ``Fraction(1, 3)`` where decimals don't. ``claim`` is a privacy loss, or an epsilon at
    ``delta``; the result then says whether it is refuted.

    Guarantee: with all pairs of neighbours among ``pairs``, the mechanism is (epsilon, delta)-DP
    for the epsilons and deltas given here, and for no smaller ones apart from the last rounding.
    """
    known = [(_law(one), _law(other)) for one, other in checked_pairs(pairs, _EXAMPLE)]
    directions = []
    for place, (one, other) in enumerate(known):
        directions += [_direction(one, other, place, is_first=True)]
        directions += [_direction(other, one, place, is_first=False)]
    claimed = None if claim is None and not delta else claimed_loss(claim, delta)
    return ExactPrivacy(tuple(directions), claimed)


def _law(law: Probabilities) -> dict[Hashable, Fraction]:
    if not isinstance(law, Mapping):
        raise InvalidArgument(
            f"a law is of type {type(law).__name__}: give a mapping from outcomes to probabilities"
        )
    if any(map(_has_nan, law)):
        raise InvalidArgument(
            "an outcome is NaN, which is equal to no other one: name it by a text, such as 'NaN'"
        )
    found = {
        outcome: _checks.not_negative(probability=probability)
        for outcome, probability in law.items()
    }
    if (total := sum(found.values(), Fraction(0))) != 1:
        raise InvalidArgument(
            f"the probabilities of a law sum to {shown(total)}: they must sum "
            "to 1 exactly; give fractions, such as Fraction(1, 3)"
        )
    return found


def _has_nan(outcome: Hashable) -> bool:
    """Whether an outcome or a part of it differs from itself."""
    if isinstance(outcome, tuple | frozenset):
        return any(map(_has_nan, outcome))
    return bool(outcome != outcome)  # noqa: PLR0124  # true for NaN only


def _direction(
    likely: dict[Hashable, Fraction],
    unlikely: dict[Hashable, Fraction],
    pair: int,
    *,
    is_first: bool,
) -> _RankedOutcomes:
    """The outcomes of the first law, the largest ratio first."""
    table = [(outcome, p, unlikely.get(outcome, Fraction(0))) for outcome, p in likely.items() if p]
    table.sort(key=lambda row: row[2] / row[1])
    outcomes = tuple(outcome for outcome, _, _ in table)
    return _RankedOutcomes(outcomes, tuple((p, q) for _, p, q in table), pair, is_first)
