"""An adversary who sees every answer before choosing the next charge, searched exhaustively.

What he wants is a large sum of (p - e^epsilon q)+ over all transcripts, p and q being their
probabilities on two neighbours. It adds over transcripts, so that the best of *all* adaptive
strategies follows backwards: at each point the best of stopping and of each charge that the rule
admits. The sound filter must keep it within delta, in both directions. Unsound rules that look
alike are broken by the same search, which shows that it can find what there is to find.
"""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from typing import TypeVar

import pytest
from flint import arb

from discreet.accounting import (
    Approximate,
    DiscreteLaplace,
    Filter,
    Gaussian,
    PrivacyLoss,
    Pure,
    Spent,
    Term,
    Zcdp,
    knowledge,
)
from discreet.accounting.domination import largest_square, square_of_pure
from discreet.accounting.filter import Squares
from discreet.accounting.tracks import SquaresOfMu
from discreet.exact import float_up, fraction, precision, root_down
from discreet.payment import Limit, MuLimit, RenyiLimit, RhoLimit
from tests.accounting import reference

S = TypeVar("S", bound=Hashable)
Outcomes = tuple[tuple[float, float], ...]  # the probability of each answer on either neighbour
DEPTH = 4
TOLERANCE = 1e-12


@dataclass(frozen=True)
class Rule:
    """Whether the charges made so far, the last one included, are still admitted. What ``after``
    returns is all that the rule remembers of them."""

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
    """A mechanism that satisfies the term: its worst one, or for normal noise that one told in
    eight steps."""
    with precision(reference.BITS):
        law = reference.law_of_term(term)
        if law.mu_squared:
            return normal_cells(math.sqrt(law.mu_squared))
        pairs = [(float(p), float(p * (-reference.exact(r)).exp())) for r, p in law.finite.items()]
        leak = float(law.infinite)
    return (*pairs, *([(leak, 0.0), (0.0, leak)] if leak else []))


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


LIMITS = [Limit(0.5, 0.05), Limit(0.5, 0.1), Limit(1, 0.05), Limit(1, 0.01), Limit(2, 0.2)]


def menus(limit: Limit) -> dict[str, list[Term]]:
    e, d = limit.epsilon, limit.delta
    return {
        "bits": [Pure(e / 8), Pure(e / 4), Pure(e / 2), Pure(e)],
        "bits, a little more": [Pure(e / 3), Pure(e / 2), Pure(e * Fraction(11, 10))],
        "leaks": [Pure(e / 3), Approximate(0, d / 10), Approximate(e / 2, d / 20)],
        "leaks and all": [Pure(e / 4), Pure(e / 2), Approximate(0, d), Approximate(e / 4, d / 10)],
        "two-sided": [DiscreteLaplace(2 / e, 1), DiscreteLaplace(4 / e, 3), Pure(e / 2)],
        "normal": [Gaussian(2 / e), Gaussian(4 / e), Zcdp(e**2 / 50)],
        "mixed": [Gaussian(5 / e), Pure(e / 2), Approximate(e / 10, d / 10)],
    }


CASES = [(limit, name) for limit in LIMITS for name in menus(limit)]


@pytest.mark.parametrize("back", [False, True], ids=["forth", "back"])
@pytest.mark.parametrize(("limit", "name"), CASES, ids=str)
def test_no_strategy_exceeds_the_filter(limit: Limit, name: str, back: bool) -> None:
    rule = by_filter(Filter.for_limit(limit))
    depth = DEPTH if name not in ("normal", "mixed") else 3
    found = worst(rule, menus(limit)[name], float(limit.epsilon), depth, back=back)
    assert found <= float(limit.delta) + TOLERANCE


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("order", [4, 8, 20, 60])
def test_one_order_leaves_no_room(epsilon: float, order: int) -> None:
    """At the loss epsilon + ln(a / (a-1)) the conversion holds with equality: one bit told with
    these odds fills the filter, and leaks all of delta but what its other answer takes."""
    x = round(epsilon + math.log(order / (order - 1)), 9)
    delta = filled(order, epsilon, x)
    limit = Limit(epsilon, delta)
    filter_ = Filter(limit, Fraction(0), ((Fraction(order), limit.delta),))
    menu: list[Term] = [Pure(x), Pure(x / 2), Pure(x / 4), Gaussian(1)]
    found = worst(by_filter(filter_), menu, epsilon, 3)
    assert 0.9 * delta < found <= delta + TOLERANCE
    if epsilon * order > 8:
        assert found > 0.999 * delta


@pytest.mark.parametrize("epsilon", [0.5, 1, 2])
def test_a_pure_limit_leaks_nothing(epsilon: float) -> None:
    limit = Limit(epsilon)
    for menu in menus(Limit(epsilon, 0.1)).values():
        assert worst(by_filter(Filter.for_limit(limit)), menu, epsilon, 3) <= TOLERANCE


def test_filters_of_one_order_hold_too() -> None:
    """Each order by itself with all of delta: the parts of the filter, at their tightest."""
    limit = Limit(0.5, 0.1)
    for order in (Fraction(3), Fraction(8), Fraction(20), Fraction(60)):
        filter_ = Filter(limit, Fraction(0), ((order, limit.delta),))
        found = [worst(by_filter(filter_), menu, 0.5, 3) for menu in menus(limit).values()]
        assert max(found) <= 0.1 + TOLERANCE


SQUARES = [Limit(0.05, 0.2), Limit(0.5, 0.05), Limit(1, 0.01), Limit(2, 0.2)]


def only_squares(limit: Limit, part: float = 0.02) -> Filter:
    """All of delta for the squares, and this part of them never spent."""
    full = largest_square(limit.epsilon, limit.delta)
    return Filter(limit, squares=Squares(limit.delta, full * fraction(part)))


def squares_menus(limit: Limit) -> dict[str, list[Term]]:
    """Charges that fill the squares of this limit in one, two, three or many steps."""
    full = float(largest_square(limit.epsilon, limit.delta))
    bits = {part: bit_within(full * part) for part in (0.95, 0.45, 0.3, 0.1)}
    normal = {part: Gaussian(1 / math.sqrt(full * part)) for part in (0.98, 0.5, 0.25, 0.1)}
    return {
        "bits": [Pure(bits[0.95]), Pure(bits[0.45]), Pure(bits[0.3]), Pure(bits[0.1])],
        "normal": [normal[0.98], normal[0.5], normal[0.25]],
        "both": [normal[0.5], normal[0.1], Pure(bits[0.45]), Pure(bits[0.1])],
        "with leaks": [normal[0.25], Pure(bits[0.3]), Approximate(bits[0.1], limit.delta / 9)],
    }


def bit_within(most: float) -> float:
    """The largest epsilon of a bit whose square is at most this."""
    return solved(lambda x: square_of_pure(fraction(x), Fraction(0)) <= most)


def solved(is_small: Callable[[float], bool]) -> float:
    """The largest number, to 5 digits, that is small; numbers above it are not."""
    low, high = 0.0, 1.0
    while is_small(high):
        low, high = high, 2 * high
    while high - low > 1e-5 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if is_small(middle) else (low, middle)
    return float(f"{low:.5g}")


class TestSquares:
    """The exact law of normal noise, as a filter: alone with all of delta it leaves no room."""

    @pytest.mark.parametrize("back", [False, True], ids=["forth", "back"])
    @pytest.mark.parametrize("part", [0, 0.02, 0.3])
    @pytest.mark.parametrize("limit", SQUARES, ids=repr)
    def test_no_strategy_exceeds_them(self, limit: Limit, part: float, back: bool) -> None:
        rule = by_filter(only_squares(limit, part))
        for name, menu in squares_menus(limit).items():
            depth = 2 if name == "normal" else 3
            found = worst(rule, menu, float(limit.epsilon), depth, back=back)
            assert found <= float(limit.delta) + TOLERANCE

    @pytest.mark.parametrize("limit", SQUARES, ids=repr)
    def test_they_leave_no_room(self, limit: Limit) -> None:
        """One normal value, told in steps of one half, takes nearly all of delta."""
        full = largest_square(limit.epsilon, limit.delta)
        one = Gaussian(multiplier_of(full * Fraction(999, 1000)))
        found = worst(by_filter(only_squares(limit, 0)), [one], float(limit.epsilon), 1)
        assert 0.92 * float(limit.delta) < found <= float(limit.delta) + TOLERANCE

    @pytest.mark.parametrize("limit", SQUARES, ids=repr)
    def test_many_bits_near_it(self, limit: Limit) -> None:
        """Twelve bits, each chosen of two kinds with all earlier answers in view."""
        full = float(largest_square(limit.epsilon, limit.delta))
        menu: list[Term] = [Pure(bit_within(full / 14)), Pure(bit_within(full / 7))]
        found = worst(by_filter(only_squares(limit, 0.1)), menu, float(limit.epsilon), 12)
        assert 0.35 * float(limit.delta) < found <= float(limit.delta) + TOLERANCE

    def test_counting_a_bit_as_its_epsilon_squared_is_unsound(self) -> None:
        """epsilon^2 / 2 is the bit's rho; as Gaussian it is up to pi / 2 times as much."""
        limit = Limit(0.05, 0.2)
        full = largest_square(limit.epsilon, limit.delta)

        def after(state: Hashable, loss: PrivacyLoss) -> Hashable:
            assert isinstance(state, Fraction)
            return state + 2 * knowledge.zcdp(loss)

        bit = Pure(fraction(math.floor(math.sqrt(full) * 1000) / 1000))
        rule = Rule(Fraction(0), after, lambda state: state <= full)  # type: ignore[operator]  # a fraction
        assert worst(rule, [bit], 0.05, 1) > 1.2 * 0.2
        assert worst(by_filter(only_squares(limit)), [bit], 0.05, 1) == 0

    def test_spending_the_floor_too_is_unsound(self) -> None:
        """The price of a bit is right only while the floor stays unspent."""
        limit = Limit(0.05, 0.2)
        full = largest_square(limit.epsilon, limit.delta)
        floor = full / 2
        bit = Pure(solved(lambda x: square_of_pure(fraction(x), floor) <= full))

        def after(state: Hashable, loss: PrivacyLoss) -> Hashable:
            assert isinstance(state, Fraction)
            return state + SquaresOfMu(full, floor).cost(loss)

        rule = Rule(Fraction(0), after, lambda state: state <= full)  # type: ignore[operator]  # a fraction
        assert worst(rule, [bit], 0.05, 1) > 1.05 * 0.2

    @pytest.mark.parametrize("limit", SQUARES, ids=repr)
    def test_a_doubled_share_is_unsound(self, limit: Limit) -> None:
        twice = 2 * limit.delta
        one = Gaussian(multiplier_of(largest_square(limit.epsilon, twice) * Fraction(999, 1000)))
        rule = by_filter(unchecked(limit, Fraction(0), (), Squares(twice, Fraction(0))))
        assert worst(rule, [one], float(limit.epsilon), 1) > 1.8 * float(limit.delta)

    def test_all_of_delta_for_squares_and_again_for_leaks_is_unsound(self) -> None:
        limit = Limit(0.5, 0.05)
        greedy = unchecked(limit, limit.delta, (), Squares(limit.delta, Fraction(0)))
        full = largest_square(limit.epsilon, limit.delta)
        one = Gaussian(multiplier_of(full * Fraction(999, 1000)))
        found = worst(by_filter(greedy), [one, Approximate(0, 0.05)], 0.5, 2)
        assert found > 1.8 * 0.05

    def test_all_of_delta_for_squares_and_again_for_an_order_is_unsound(self) -> None:
        """Two tracks, each right alone. After one bit the strategy goes on along the one that the
        answer favours: with the bit that fills the order, or with the normal value that fills
        the squares."""
        order, first, second = 60, 0.0254, 0.491407
        limit = Limit(0.5, filled(order, 0.5, first, second))
        full = largest_square(limit.epsilon, limit.delta)
        left = (full - square_of_pure(fraction(first), Fraction(0))) * Fraction(999, 1000)
        menu: list[Term] = [Pure(first), Pure(second), Gaussian(multiplier_of(left))]
        shares, squares = ((Fraction(order), limit.delta),), Squares(limit.delta, Fraction(0))
        greedy = unchecked(limit, Fraction(0), shares, squares)
        assert worst(by_filter(greedy), menu, 0.5, 2) > 1.3 * float(limit.delta)
        for sound in (Filter(limit, shares=shares), Filter(limit, squares=squares)):
            found = worst(by_filter(sound), menu, 0.5, 3)
            assert found <= float(limit.delta) + TOLERANCE


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


def unchecked(
    limit: Limit, leak: Fraction, shares: tuple[tuple[Fraction, Fraction], ...], squares: Squares
) -> Filter:
    """A filter that shares out more delta than there is."""
    filter_ = object.__new__(Filter)
    values = {"limit": limit, "leak": leak, "shares": shares, "squares": squares}
    for name, value in values.items():
        object.__setattr__(filter_, name, value)
    return filter_


class TestOtherLimits:
    """Limits in rho, mu and Renyi divergences hold in their own measure."""

    MENU = (Pure(0.3), Pure(0.7), DiscreteLaplace(4, 2), Gaussian(3), Zcdp(0.1), Pure(0.05))

    @pytest.mark.parametrize("back", [False, True], ids=["forth", "back"])
    @pytest.mark.parametrize("rho", [0.05, 0.3])
    def test_rho(self, rho: float, back: bool) -> None:
        rule = by_filter(Filter.for_limit(RhoLimit(rho)))
        for order in (1.5, 2, 5, 20):
            found = worst_divergence(rule, list(self.MENU), order, 3, back=back)
            assert found <= rho * order + TOLERANCE

    @pytest.mark.parametrize("back", [False, True], ids=["forth", "back"])
    @pytest.mark.parametrize("mu", [0.3, 0.9])
    def test_mu(self, mu: float, back: bool) -> None:
        """No easier to tell apart than two normal laws, at any threshold."""
        rule = by_filter(Filter.for_limit(MuLimit(mu)))
        menu: list[Term] = [term for term in self.MENU if not isinstance(term, Zcdp)]
        for epsilon in (-1, -0.3, 0, 0.1, 0.5, 1, 2):
            found = worst(rule, menu, epsilon, 3, back=back)
            ends = (mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu)
            first, second = (math.erfc(-end / math.sqrt(2)) / 2 for end in ends)
            assert found <= first - math.exp(epsilon) * second + TOLERANCE

    @pytest.mark.parametrize("back", [False, True], ids=["forth", "back"])
    def test_a_renyi_curve(self, back: bool) -> None:
        limit = RenyiLimit({2: 0.1, 5: 0.3, 20: 0.6})
        for order, bound in limit.bounds:
            rule = by_filter(Filter.for_limit(limit))
            found = worst_divergence(rule, list(self.MENU), float(order), 3, back=back)
            assert found <= float(bound) + TOLERANCE

    def test_one_order_of_a_curve_can_be_reached(self) -> None:
        bit = Pure(0.4)
        with precision(reference.BITS):
            told = reference.law_of_term(bit).finite
            bound = float_up(2 * reference.renyi(told, Fraction(5)) + arb(10) ** -15)
        rule = by_filter(Filter.for_limit(RenyiLimit({5: bound})))
        assert worst_divergence(rule, [bit, Pure(0.1)], 5) == pytest.approx(bound, rel=1e-9)

    def test_mu_with_bits_at_their_epsilon_is_unsound(self) -> None:
        def after(state: Hashable, loss: PrivacyLoss) -> Hashable:
            assert isinstance(state, Fraction)
            return state + 2 * knowledge.zcdp(loss)

        rule = Rule(Fraction(0), after, lambda state: state <= Fraction(1, 4))  # type: ignore[operator]  # a fraction
        allowed = math.erf(0.5 / (2 * math.sqrt(2)))
        assert worst(rule, [Pure(0.5)], 0.0, 1) > 1.2 * allowed

    def test_a_curve_of_which_one_order_is_enough_is_unsound(self) -> None:
        """What is right for the orders of an (epsilon, delta) limit is wrong here."""
        limit = RenyiLimit({2: 0.1, 20: 0.2})
        filter_ = Filter.for_limit(limit)

        def admits(state: Hashable) -> bool:
            assert isinstance(state, Spent)
            pairs = zip(state.sums, filter_.bounds, strict=True)
            return any(total <= bound for total, bound in pairs)

        rule = Rule(filter_.start, by_filter(filter_).after, admits)
        assert worst_divergence(rule, [Pure(0.2)], 20) > 1.5 * 0.2


class TestUnsoundRules:
    """Each was once somebody's accountant; the adversary gets more than delta out of it."""

    def test_the_exact_delta_of_the_sum(self) -> None:
        """Even exact accounting of what happened, as if it had been fixed beforehand."""

        def admits(loss: PrivacyLoss) -> bool:
            return float(reference.delta(loss, Fraction(1))) <= 0.05 + TOLERANCE

        menu: list[Term] = [Pure(0.25), Pure(0.5), Approximate(0, 0.025)]
        assert worst(by_sum(admits), menu, 1.0) > 1.6 * 0.05

    def test_the_best_theorem_with_the_whole_delta(self) -> None:
        """What `PrivacyLoss.epsilon` is for, and what it is not for."""

        def admits(loss: PrivacyLoss) -> bool:
            return loss.epsilon(0.05) <= 0.5

        menu: list[Term] = [Pure(0.25), Pure(0.5), Approximate(0, 0.05)]
        assert worst(by_sum(admits), menu, 0.5) > 1.4 * 0.05
        assert worst(by_filter(Filter.for_limit(Limit(0.5, 0.05))), menu, 0.5) < 0.05

    def test_the_whole_delta_for_leaks_and_again_for_each_order(self) -> None:
        limit = Limit(0.5, 0.1)
        filter_ = Filter.for_limit(limit)
        greedy = object.__new__(Filter)
        object.__setattr__(greedy, "limit", limit)
        object.__setattr__(greedy, "leak", limit.delta)
        shares = tuple((order, limit.delta) for order, _ in filter_.shares)
        object.__setattr__(greedy, "shares", shares)
        object.__setattr__(greedy, "squares", filter_.squares)
        menu: list[Term] = [Pure(0.25), Pure(0.55), Approximate(0, 0.1)]
        assert worst(by_filter(greedy), menu, 0.5) > 1.2 * 0.1

    def test_leaks_that_nobody_counts(self) -> None:
        filter_ = Filter.for_limit(Limit(0.5, 0.05))

        def after(state: Hashable, loss: PrivacyLoss) -> Hashable:
            assert isinstance(state, Spent)
            spent = filter_.add(state, loss)
            return Spent(0, spent.sums)

        rule = Rule(filter_.start, after, by_filter(filter_).admits)
        assert worst(rule, [Pure(0.25), Approximate(0, 0.03)], 0.5) > 2 * 0.05

    def test_charges_counted_after_the_answer(self) -> None:
        """Look first, pay later: the charge that crosses the limit is made all the same."""
        filter_ = Filter.for_limit(Limit(0.5, 0.05))
        honest = by_filter(filter_)

        def after(state: Hashable, loss: PrivacyLoss) -> Hashable:
            assert isinstance(state, tuple)
            return (state[1], honest.after(state[1], loss))

        rule = Rule((filter_.start, filter_.start), after, lambda state: honest.admits(state[0]))  # type: ignore[index]  # a pair
        assert worst(rule, [Pure(0.25), Pure(0.5)], 0.5) > 2 * 0.05


def test_the_search_is_what_trying_every_strategy_gives() -> None:
    """Two charges: every first choice, and every map from its answer to a second choice."""
    menu: list[Term] = [Pure(0.25), Pure(0.5), Approximate(0.1, 0.02)]
    filter_ = Filter.for_limit(Limit(0.5, 0.3))
    rule = by_filter(filter_)
    grown = math.exp(0.5)
    best = 0.0
    for first in (None, *menu):
        answers = answers_of(first) if first else ((1.0, 1.0),)
        spent = filter_.add(filter_.start, PrivacyLoss.of(*([first] if first else [])))
        for plan in product((None, *menu), repeat=len(answers)):
            total = 0.0
            for (p, q), second in zip(answers, plan, strict=True):
                more = PrivacyLoss.of(*([second] if second else []))
                if not filter_.admits(filter_.add(spent, more)):
                    break
                then = answers_of(second) if second else ((1.0, 1.0),)
                total += sum(max(p * x - grown * q * y, 0.0) for x, y in then)
            else:
                best = max(best, total)
    assert worst(rule, menu, 0.5, 2) == pytest.approx(best, rel=1e-12)
    assert best > 0.01


def test_every_mechanism_of_the_menus_satisfies_its_term() -> None:
    for limit, name in CASES:
        for term in menus(limit)[name]:
            outcomes = answers_of(term)
            assert sum(p for p, _ in outcomes) == pytest.approx(1, abs=1e-14)
            assert sum(q for _, q in outcomes) == pytest.approx(1, abs=1e-14)
            for epsilon in (0.0, 0.5):
                leaked = sum(max(p - math.exp(epsilon) * q, 0.0) for p, q in outcomes)
                assert leaked <= (1 * term).delta(epsilon) + TOLERANCE
