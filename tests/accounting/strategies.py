"""The best of all adaptive strategies against a rule that admits charges, searched exhaustively.

The adversary's gain adds over transcripts, so the best strategy is computed backwards: at each
point the best of stopping and of each charge that the rule admits.
"""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise

from flint import arb

from discreet._budget import Limit
from discreet._exact import ball, float_up, fraction, precision, root_down
from discreet.accounting import Filter, PrivacyLoss, Pure, Spent, Term
from discreet.accounting._bounds import known
from discreet.accounting.filter._domination import largest_square, square_of_pure
from discreet.accounting.filter._sums import Squares
from discreet.accounting.pld._continuous import Scaled
from discreet.accounting.pld._dominating_pairs import Atoms, Pair, Side, normal
from tests.accounting import reference

Outcomes = tuple[tuple[float, float], ...]  # the probability of each answer on either neighbour
DEPTH = 4
TOLERANCE = 1e-12


def on_grid(pair: Pair | None) -> Pair:
    """The pair, whose losses a grid can hold."""
    assert pair is not None
    return pair


@dataclass(frozen=True)
class Rule:
    """Whether the charges made so far, the last one included, are still admitted. The
    rule remembers nothing of them but the result of ``after``."""

    start: Hashable
    after: Callable[[Hashable, PrivacyLoss], Hashable]
    admits: Callable[[Hashable], bool]


def worst(
    rule: Rule, menu: list[Term], epsilon: float, depth: int = DEPTH, back: bool = False
) -> float:
    """The largest delta that any adaptive strategy of this many charges reaches."""
    grown = math.exp(epsilon)
    return largest(rule, menu, lambda p, q: max(p - grown * q, 0.0), depth, back=back)


def worst_divergence(
    rule: Rule, menu: list[Term], order: float, depth: int = DEPTH, back: bool = False
) -> float:
    """The largest Renyi divergence of this order that any such strategy reaches."""
    powers = largest(rule, menu, lambda p, q: q * (p / q) ** order, depth, back=back)
    return math.log(powers) / (order - 1)


def largest(
    rule: Rule,
    menu: list[Term],
    gain: Callable[[float, float], float],
    depth: int = DEPTH,
    back: bool = False,
) -> float:
    """The most that any adaptive strategy gains, summed over its transcripts; what is gained by a
    transcript of probabilities (p, q) is convex and homogeneous, so that the worst mechanism of
    each term is the worst here."""
    answers = [answers_of(term) for term in menu]
    if back:
        answers = [tuple((q, p) for p, q in outcomes) for outcomes in answers]

    @cache
    def choices(state: Hashable) -> list[tuple[Hashable, Outcomes]]:
        charged = (
            (rule.after(state, PrivacyLoss.of(term)), outcomes)
            for term, outcomes in zip(menu, answers, strict=True)
        )
        return [(after, outcomes) for after, outcomes in charged if rule.admits(after)]

    known: dict[Hashable, float] = {}

    def reached(p: float, q: float, state: Hashable, left: int) -> float:
        best = gain(p, q)
        if left == 0:
            return best
        key = (f"{p:.13e}", f"{q:.13e}", state, left)
        if key not in known:
            for after, outcomes in choices(state):
                found = sum(reached(p * x, q * y, after, left - 1) for x, y in outcomes)
                best = max(best, found)
            known[key] = best
        return known[key]

    return reached(1.0, 1.0, rule.start, depth)


@cache
def answers_of(term: Term) -> Outcomes:
    """A mechanism that satisfies the term: its worst one, or for normal noise that one rounded
    to eight steps."""
    if isinstance(term, Beside):
        return term.outcomes()
    with precision(reference.BITS):
        law = reference.law_of_term(term)
        if law.mu_squared:
            return normal_cells(math.sqrt(law.mu_squared))
        pairs = [(float(p), float(p * (-reference.exact(r)).exp())) for r, p in law.finite.items()]
        failure = float(law.infinite)
    return (*pairs, *([(failure, 0.0), (0.0, failure)] if failure else []))


def normal_cells(mu: float) -> Outcomes:
    def below(x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2

    cuts = [-math.inf, *(step / 2 for step in range(-4, 10)), math.inf]
    ends = [(below(cut - mu), below(cut)) for cut in cuts]
    return tuple((b[0] - a[0], b[1] - a[1]) for a, b in pairwise(ends))


def by_filter(filter_: Filter) -> Rule:
    def after(state: Hashable, loss: PrivacyLoss) -> Hashable:
        assert isinstance(state, Spent)
        return filter_.add(state, loss)

    def admits(state: Hashable) -> bool:
        assert isinstance(state, Spent)
        return filter_.admits(state)

    return Rule(filter_.start, after, admits)


def by_sum(admits: Callable[[PrivacyLoss], bool]) -> Rule:
    """A rule that looks at the sum of all charges as if it had been fixed beforehand."""

    def after(state: Hashable, loss: PrivacyLoss) -> Hashable:
        assert isinstance(state, PrivacyLoss)
        return state + loss

    @cache
    def decides(state: Hashable) -> bool:
        assert isinstance(state, PrivacyLoss)
        return admits(state)

    return Rule(PrivacyLoss(), after, decides)


# Limits and bits that fill them


SQUARES = [Limit(0.05, 0.2), Limit(0.5, 0.05), Limit(1, 0.01), Limit(2, 0.2)]


def only_squares(limit: Limit, part: float = 0.02) -> Filter:
    """All of delta for the squares, and this part of them never spent."""
    full = largest_square(limit.epsilon, limit.delta)
    return Filter(limit, squares=Squares(limit.delta, full * fraction(part)))


def bit_within(most: float) -> float:
    """The largest epsilon of a bit whose square is at most this."""
    return solved(lambda x: known(square_of_pure(fraction(x), Fraction(0))) <= most)


def solved(is_small: Callable[[float], bool]) -> float:
    """The largest number, to 5 digits, that is small; numbers above it are not."""
    low, high = 0.0, 1.0
    while is_small(high):
        low, high = high, 2 * high
    while high - low > 1e-5 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if is_small(middle) else (low, middle)
    return float(f"{low:.5g}")


def filled(order: int, epsilon: float, *bits: float) -> float:
    """The delta at which these bits fill a filter of this one order."""
    with precision(reference.BITS):
        a = reference.exact(order)
        laws = [reference.law_of_term(Pure(bit)).finite for bit in bits]
        total = sum((reference.renyi(law, Fraction(order)) for law in laws), arb(0))
        constant = (a - 1) ** (a - 1) / a**a
        share = constant * ((a - 1) * (total - reference.exact(fraction(epsilon)))).exp()
        return float_up(share + arb(10) ** -15)


def multiplier_of(mu_squared: Fraction) -> Fraction:
    return 1 / root_down(mu_squared)


# Charges that are counted as a normal value with a failure

_NEARLY_SURE = 8


@dataclass(frozen=True)
class Beside(Term):
    """The worst charge that is counted so: with some probability it all but tells the table, at
    odds of e^8 to 1, and otherwise it is a normal value. The odds are so large that its Renyi
    divergences are of no use; that they are finite makes it a term like others."""

    leaking: Fraction
    square: Fraction

    def renyi(self, order: Fraction) -> arb:
        """At most that of both, each for sure."""
        return ball(_NEARLY_SURE + order * self.square / 2)

    def pairs(self, side: Side) -> tuple[Pair, ...]:
        """The pair of it, for both orders of the neighbours."""
        true, false = self._shares()
        atoms = Atoms.of((_NEARLY_SURE, true, false), (-_NEARLY_SURE, false, true))
        (bell,) = on_grid(normal(self.square)).pieces
        return (Pair(atoms, (Scaled(bell, 1 - float(self.leaking)),)),)

    def outcomes(self) -> Outcomes:
        """Its answers, the normal value in steps."""
        rest = 1 - float(self.leaking)
        cells = normal_cells(math.sqrt(self.square))
        true, false = self._shares()
        return (
            *((rest * p, rest * q) for p, q in cells),
            (true, false),
            (false, true),
        )

    def _shares(self) -> tuple[float, float]:
        odds = math.exp(-_NEARLY_SURE)
        return float(self.leaking) / (1 + odds), float(self.leaking) * odds / (1 + odds)

    def __repr__(self) -> str:
        """As in a list of tests."""
        return f"Beside({float(self.leaking):.3g}, {float(self.square):.3g})"
