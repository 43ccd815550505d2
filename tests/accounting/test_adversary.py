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
)
from discreet.exact import float_up, fraction, precision
from discreet.payment import Limit
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
        best = max(p - grown * q, 0.0)
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

    cuts = [-math.inf, -2, -1, 0, 1, 2, 3, 4, math.inf]
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
    x = fraction(round(epsilon + math.log(order / (order - 1)), 9))
    with precision(reference.BITS):
        a = reference.exact(order)
        divergence = reference.renyi(reference.law_of_term(Pure(x)).finite, Fraction(order))
        constant = (a - 1) ** (a - 1) / a**a
        share = constant * ((a - 1) * (divergence - reference.exact(fraction(epsilon)))).exp()
        delta = float_up(share + arb(10) ** -15)
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
        menu: list[Term] = [Pure(0.25), Pure(0.55), Approximate(0, 0.1)]
        assert worst(by_filter(greedy), menu, 0.5) > 1.2 * 0.1

    def test_leaks_that_nobody_counts(self) -> None:
        filter_ = Filter.for_limit(Limit(0.5, 0.05))

        def after(state: Hashable, loss: PrivacyLoss) -> Hashable:
            assert isinstance(state, Spent)
            spent = filter_.add(state, loss)
            return Spent(0, spent.pure, spent.orders)

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
