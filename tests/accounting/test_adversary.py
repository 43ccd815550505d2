"""An adversary who sees every answer before choosing the next charge, searched exhaustively.

The adversary wants a large sum of (p - e^epsilon q)+ over all transcripts, p and q being their
probabilities on two neighbours. It adds over transcripts, so that the best of *all* adaptive
strategies follows backwards: at each point the best of stopping and of each charge that the rule
admits. The sound filter must keep it within delta, in both directions. Unsound rules that look
alike are broken by the same search: see `test_unsound_rules`.
"""

import math
from fractions import Fraction
from itertools import product

import pytest
from flint import arb

from discreet._budget import Limit, MuLimit, RenyiLimit, RhoLimit
from discreet._exact import float_up, precision
from discreet.accounting import (
    Approximate,
    DiscreteLaplace,
    Filter,
    Gaussian,
    PrivacyLoss,
    Pure,
    Term,
    Zcdp,
)
from discreet.accounting.filter._domination import largest_square
from tests.accounting import reference
from tests.accounting.strategies import (
    DEPTH,
    SQUARES,
    TOLERANCE,
    answers_of,
    bit_within,
    by_filter,
    filled,
    multiplier_of,
    only_squares,
    worst,
    worst_divergence,
)

LIMITS = [Limit(0.5, 0.05), Limit(0.5, 0.1), Limit(1, 0.05), Limit(1, 0.01), Limit(2, 0.2)]


def menus(limit: Limit) -> dict[str, list[Term]]:
    e, d = limit.epsilon, limit.delta
    return {
        "bits": [Pure(e / 8), Pure(e / 4), Pure(e / 2), Pure(e)],
        "bits, a little more": [Pure(e / 3), Pure(e / 2), Pure(e * Fraction(11, 10))],
        "failures": [Pure(e / 3), Approximate(0, d / 10), Approximate(e / 2, d / 20)],
        "failures and all": [
            Pure(e / 4),
            Pure(e / 2),
            Approximate(0, d),
            Approximate(e / 4, d / 10),
        ],
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
    delta = worst(rule, menus(limit)[name], float(limit.epsilon), depth, back=back)
    assert delta <= float(limit.delta) + TOLERANCE


@pytest.mark.parametrize("back", [False, True], ids=["forth", "back"])
@pytest.mark.parametrize("limit", LIMITS, ids=repr)
def test_a_first_charge_alone_leaves_no_room(limit: Limit, back: bool) -> None:
    """Beyond every sum, one bit may take all of delta, and smaller ones leave some of epsilon."""
    e, d = float(limit.epsilon), float(limit.delta)
    full = math.floor(1e6 * math.log((math.exp(e) + d) / (1 - d))) / 1e6
    large = 0.2 * e + 0.8 * full
    menu: list[Term] = [Pure(full), Pure(large), Pure(e / 20), Approximate(0, d / 20)]
    filter_ = Filter.for_limit(limit)
    assert filter_.add(filter_.start, PrivacyLoss.of(Pure(large))).alone is not None
    delta = worst(by_filter(filter_), menu, e, 3, back=back)
    assert 0.99 * d < delta <= d + TOLERANCE


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("order", [4, 8, 20, 60])
def test_one_order_leaves_no_room(epsilon: float, order: int) -> None:
    """At the loss epsilon + ln(a / (a-1)) the conversion holds with equality: one bit reported
    with these odds fills the filter, and takes all of delta but the part of its other answer."""
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
def test_a_pure_limit_failures_nothing(epsilon: float) -> None:
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


def squares_menus(limit: Limit) -> dict[str, list[Term]]:
    """Charges that fill the squares of this limit in one, two, three or many steps."""
    full = float(largest_square(limit.epsilon, limit.delta))
    bits = {part: bit_within(full * part) for part in (0.95, 0.45, 0.3, 0.1)}
    normal = {part: Gaussian(1 / math.sqrt(full * part)) for part in (0.98, 0.5, 0.25, 0.1)}
    return {
        "bits": [Pure(bits[0.95]), Pure(bits[0.45]), Pure(bits[0.3]), Pure(bits[0.1])],
        "normal": [normal[0.98], normal[0.5], normal[0.25]],
        "both": [normal[0.5], normal[0.1], Pure(bits[0.45]), Pure(bits[0.1])],
        "with failures": [normal[0.25], Pure(bits[0.3]), Approximate(bits[0.1], limit.delta / 9)],
    }


class TestSquares:
    """The exact law of normal noise, as a filter: alone with all of delta it leaves no room."""

    @pytest.mark.parametrize("back", [False, True], ids=["forth", "back"])
    @pytest.mark.parametrize("part", [0, 0.02, 0.3])
    @pytest.mark.parametrize("limit", SQUARES, ids=repr)
    def test_no_strategy_exceeds_them(self, limit: Limit, part: float, back: bool) -> None:
        rule = by_filter(only_squares(limit, part))
        for name, menu in squares_menus(limit).items():
            depth = 2 if name == "normal" else 3
            delta = worst(rule, menu, float(limit.epsilon), depth, back=back)
            assert delta <= float(limit.delta) + TOLERANCE

    @pytest.mark.parametrize("limit", SQUARES, ids=repr)
    def test_squares_leave_no_room(self, limit: Limit) -> None:
        """One normal value, rounded to steps of one half, takes nearly all of delta."""
        full = largest_square(limit.epsilon, limit.delta)
        one = Gaussian(multiplier_of(full * Fraction(999, 1000)))
        delta = worst(by_filter(only_squares(limit, 0)), [one], float(limit.epsilon), 1)
        assert 0.92 * float(limit.delta) < delta <= float(limit.delta) + TOLERANCE

    @pytest.mark.parametrize("limit", SQUARES, ids=repr)
    def test_many_bits_near_it(self, limit: Limit) -> None:
        """Twelve bits, each chosen of two kinds with all earlier answers in view."""
        full = float(largest_square(limit.epsilon, limit.delta))
        menu: list[Term] = [Pure(bit_within(full / 14)), Pure(bit_within(full / 7))]
        delta = worst(by_filter(only_squares(limit, 0.1)), menu, float(limit.epsilon), 12)
        assert 0.35 * float(limit.delta) < delta <= float(limit.delta) + TOLERANCE


class TestOtherLimits:
    """Limits in rho, mu and Renyi divergences hold in their own measure."""

    MENU = (Pure(0.3), Pure(0.7), DiscreteLaplace(4, 2), Gaussian(3), Zcdp(0.1), Pure(0.05))

    @pytest.mark.parametrize("back", [False, True], ids=["forth", "back"])
    @pytest.mark.parametrize("rho", [0.05, 0.3])
    def test_rho(self, rho: float, back: bool) -> None:
        rule = by_filter(Filter.for_limit(RhoLimit(rho)))
        for order in (1.5, 2, 5, 20):
            divergence = worst_divergence(rule, list(self.MENU), order, 3, back=back)
            assert divergence <= rho * order + TOLERANCE

    @pytest.mark.parametrize("back", [False, True], ids=["forth", "back"])
    @pytest.mark.parametrize("mu", [0.3, 0.9])
    def test_mu(self, mu: float, back: bool) -> None:
        """No easier to tell apart than two normal laws, at any threshold."""
        rule = by_filter(Filter.for_limit(MuLimit(mu)))
        menu: list[Term] = [term for term in self.MENU if not isinstance(term, Zcdp)]
        for epsilon in (-1, -0.3, 0, 0.1, 0.5, 1, 2):
            delta = worst(rule, menu, epsilon, 3, back=back)
            ends = (mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu)
            first, second = (math.erfc(-end / math.sqrt(2)) / 2 for end in ends)
            assert delta <= first - math.exp(epsilon) * second + TOLERANCE

    @pytest.mark.parametrize("back", [False, True], ids=["forth", "back"])
    def test_a_renyi_curve(self, back: bool) -> None:
        limit = RenyiLimit({2: 0.1, 5: 0.3, 20: 0.6})
        for order, bound in limit.bounds:
            rule = by_filter(Filter.for_limit(limit))
            divergence = worst_divergence(rule, list(self.MENU), float(order), 3, back=back)
            assert divergence <= float(bound) + TOLERANCE

    def test_one_order_of_a_curve_can_be_reached(self) -> None:
        bit = Pure(0.4)
        with precision(reference.BITS):
            finite_law = reference.law_of_term(bit).finite
            bound = float_up(2 * reference.renyi(finite_law, Fraction(5)) + arb(10) ** -15)
        rule = by_filter(Filter.for_limit(RenyiLimit({5: bound})))
        assert worst_divergence(rule, [bit, Pure(0.1)], 5) == pytest.approx(bound, rel=1e-9)


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
