"""Bounds of each term, against the law of its worst mechanism."""

import math
import pkgutil
from contextlib import suppress
from fractions import Fraction
from importlib import import_module
from itertools import pairwise

import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from discreet._exact import ball, lower_fraction, precision, upper_fraction
from discreet._unit import Change, Unit
from discreet.accounting import (
    Approximate,
    DiscreteLaplace,
    Gaussian,
    PrivacyLoss,
    Pure,
    RandomizedResponse,
    Term,
    Zcdp,
    _bounds,
    terms,
)
from discreet.accounting._bounds import Unknown, known
from discreet.errors import InvalidArgument, NoBound, WrongUnit
from tests.accounting import reference
from tests.accounting.examples import ALL_TERMS, KINDS, instances

ORDERS = [Fraction(10**6 + 1, 10**6), Fraction(11, 10), Fraction(2), Fraction(9, 2), Fraction(64)]
SCALES = [Fraction(1, 10), Fraction(1), Fraction(7, 3), Fraction(50)]
SHIFTS = [1, 2, 3, 10]
ATTAINED = {"Approximate", "DiscreteLaplace", "Gaussian", "Pure", "RandomizedResponse", "Zcdp"}


def renyi(term: Term, order: Fraction) -> arb:
    with precision(reference.BITS):
        return known(_bounds.renyi(1 * term, order))


class TestTable:
    """Grows by itself with `terms.__all__`."""

    def test_all_kinds_are_tried(self) -> None:
        assert all(instances(kind) for kind in KINDS)

    def test_each_term_of_each_file_is_listed(self) -> None:
        """A class from which no other term derives is a term, not a base of terms."""
        modules = [
            import_module(f"{terms.__name__}.{module.name}")
            for module in pkgutil.iter_modules(terms.__path__)
        ]
        classes = {
            one
            for module in modules
            for one in vars(module).values()
            if isinstance(one, type) and issubclass(one, Term) and one is not Term
        }
        bases = {base for one in classes for base in one.__mro__[1:]}
        assert classes - bases == set(KINDS)

    def test_all_kinds_have_a_reference(self) -> None:
        assert set(terms.__all__) == reference.HAS_REFERENCE | reference.IS_ENUMERATED

    @pytest.mark.parametrize("term", ALL_TERMS, ids=repr)
    def test_something_is_known_of_each(self, term: Term) -> None:
        curve = _bounds.renyi_curve(1 * term)
        assert not isinstance(curve, Unknown)

    @pytest.mark.parametrize("term", ALL_TERMS, ids=repr)
    @pytest.mark.parametrize("count", [1, 30])
    def test_no_theorem_says_less(self, term: Term, count: int) -> None:
        """Of what is attained, by more than the tolerance."""
        room = 1.001 if term.is_attained else 1 + 1e-9
        for delta in (1e-3, 1e-10):
            loss = count * term
            least = loss.explain(delta).epsilon
            assert loss.epsilon(delta) <= least * room or least == math.inf
        worst = loss.delta(loss.epsilon(1e-3)) if least < math.inf else 0
        assert worst <= 1e-3 * 1.01

    @pytest.mark.parametrize("term", [one for one in ALL_TERMS if one.is_attained], ids=repr)
    def test_attained_terms_have_two_close_ends(self, term: Term) -> None:
        """Where its losses fit onto a grid; of sums that are sampled only one part is known."""
        inner = getattr(term, "privacy_loss", PrivacyLoss())
        for delta in (1e-3, 1e-6):
            loss = 30 * term
            if "privacy loss distribution" in loss.explain(delta).figures and len(inner.terms) < 2:
                assert not loss.interval(delta).is_wide

    @pytest.mark.parametrize("term", ALL_TERMS, ids=repr)
    def test_renyi_divergences_rise_with_the_order(self, term: Term) -> None:
        with precision(reference.BITS):
            curve = [renyi(term, order) for order in ORDERS]
            ends = [(lower_fraction(found), upper_fraction(found)) for found in curve]
            assert ends[0][1] >= 0
            assert all(lower[0] <= higher[1] for lower, higher in pairwise(ends))

    @pytest.mark.parametrize("term", ALL_TERMS, ids=repr)
    def test_renyi_stays_below_pure_and_zcdp(self, term: Term) -> None:
        for order in ORDERS:
            with precision(reference.BITS):
                found = lower_fraction(renyi(term, order))
                with suppress(NoBound):
                    assert found <= known(_bounds.approximate(1 * term))[0]
                with suppress(NoBound):
                    assert found <= known(_bounds.zcdp(1 * term)) * order

    @pytest.mark.parametrize("term", ALL_TERMS, ids=repr)
    def test_renyi_is_never_below_the_mechanism(self, term: Term) -> None:
        with precision(reference.BITS):
            for law in reference.laws_of_term(term):
                if _bounds.failure_probability(1 * term) and not law.infinite > 0:
                    continue  # a failure doesn't show at this order
                for order in ORDERS:
                    finite_law = {ratio: p / (1 - law.infinite) for ratio, p in law.finite.items()}
                    beside = reference.exact(law.mu_squared * order / 2)
                    real = reference.renyi(finite_law, order) + beside
                    assert upper_fraction(renyi(term, order)) >= lower_fraction(real)
                    if type(term).__name__ in ATTAINED:  # and no worse than it
                        assert abs(renyi(term, order) - real) < arb(2) ** -200

    @pytest.mark.parametrize("term", ALL_TERMS, ids=repr)
    def test_epsilon_and_delta_hold_for_the_mechanism(self, term: Term) -> None:
        try:
            epsilon, delta = known(_bounds.approximate(1 * term))
        except NoBound:
            pytest.skip("no fixed epsilon")
        with precision(reference.BITS):
            assert reference.delta(PrivacyLoss.of(term), epsilon) - ball(delta) < 1e-100

    @pytest.mark.parametrize("term", ALL_TERMS, ids=repr)
    def test_a_failure_is_said(self, term: Term) -> None:
        with precision(reference.BITS):
            for law in reference.laws_of_term(term):
                said = ball(_bounds.failure_probability(PrivacyLoss.of(term)))
                assert law.infinite - said <= arb(2) ** -200


class TestGaussian:
    @pytest.mark.parametrize("multiplier", [Fraction(1, 2), Fraction(1), Fraction(5)])
    @pytest.mark.parametrize("order", ORDERS[1:4])
    def test_renyi_by_the_trapezoid_rule(self, multiplier: Fraction, order: Fraction) -> None:
        """The integral of p^a q^(1-a), p normal around 1 and q around 0; the rule is exact to
        far below 1e-25 for such functions."""
        with precision(reference.BITS):
            a, variance = ball(order), ball(multiplier**2)
            step, middle = ball(multiplier / 8), a  # the integrand peaks at a
            total = arb(0)
            for k in range(-200, 201):
                x = middle + k * step
                total += (-(a * (x - 1) ** 2 + (1 - a) * x**2) / (2 * variance)).exp()
            total *= step / (2 * arb.pi() * variance).sqrt()
            assert abs(total.log() / (a - 1) - renyi(Gaussian(multiplier), order)) < 1e-25

    def test_closed_forms(self) -> None:
        term = Gaussian(4)
        assert (term.mu_squared(), term.zcdp()) == (Fraction(1, 16), Fraction(1, 32))


class TestPure:
    @given(st.fractions(0, 20, max_denominator=1000), st.integers(2, 12))
    def test_renyi_in_fractions(self, epsilon: Fraction, order: int) -> None:
        """With odds w to 1 the moment is (w^(2a-1) + 1) / (w^(a-1) (w + 1)), for whole a."""
        with precision(reference.BITS):
            w = reference.exact(epsilon).exp()
            moment = (w ** (2 * order - 1) + 1) / (w ** (order - 1) * (w + 1))
            real = moment.log() / (order - 1)
            assert abs(renyi(Pure(epsilon), Fraction(order)) - real) < arb(2) ** -200

    @given(
        st.fractions(0, 3, max_denominator=50).filter(bool),
        st.fractions(0, 1).filter(lambda p: 0 < p < 1),
        st.sampled_from(ORDERS),
    )
    def test_no_other_bit_does_worse(
        self, epsilon: Fraction, share: Fraction, order: Fraction
    ) -> None:
        """Bits reported with probabilities x and y, as far apart as epsilon allows."""
        with precision(reference.BITS):
            w = reference.exact(epsilon).exp()
            x = reference.exact(share)
            for y in (x / w, 1 - (1 - x) * w, x * w, 1 - (1 - x) / w):
                if not (0 < y < 1):
                    continue
                odds = (x / y, y / x, (1 - x) / (1 - y), (1 - y) / (1 - x))
                if any(one > w for one in odds):
                    continue
                a = reference.exact(order)
                moment = x**a * y ** (1 - a) + (1 - x) ** a * (1 - y) ** (1 - a)
                assert moment.log() / (a - 1) <= renyi(Pure(epsilon), order) + arb(2) ** -200

    def test_huge_and_tiny(self) -> None:
        for epsilon in (Fraction(1, 10**30), Fraction(10**6)):
            for order in (1 + Fraction(1, 10**9), Fraction(10**20)):
                with precision(256):
                    ball_ = Pure(epsilon).renyi(order)
                    assert 0 <= upper_fraction(ball_) <= epsilon * (1 + Fraction(1, 10**30))
                    assert upper_fraction(ball_) <= epsilon**2 * order / 2 * (
                        1 + Fraction(1, 10**6)
                    )

    def test_nothing_costs_nothing(self) -> None:
        assert Pure(0).approximate() == (Fraction(0), Fraction(0))
        assert abs(renyi(Pure(0), Fraction(3))) < arb(2) ** -200


class TestDiscreteLaplace:
    @pytest.mark.parametrize("scale", SCALES)
    @pytest.mark.parametrize("shift", SHIFTS)
    @pytest.mark.parametrize("order", ORDERS[1:])
    def test_renyi_by_summing_over_the_line(
        self, scale: Fraction, shift: int, order: Fraction
    ) -> None:
        """Term by term between -N and N + shift; beyond, both masses fall by a factor a step."""
        with precision(reference.BITS):
            a, inverse = ball(order), ball(1 / scale)
            ratio = (-inverse).exp()
            norm = (1 - ratio) / (1 + ratio)
            reach = int(60 * scale) + 60
            moment = arb(0)
            for x in range(-reach, shift + reach + 1):
                moment += norm * (-inverse * (a * abs(x) + (1 - a) * abs(x - shift))).exp()
            left = (-inverse * (reach + 1)).exp() * ((a - 1) * shift * inverse).exp()
            real = moment.log() / (a - 1)
            slack = 4 * left / moment / (a - 1) + arb(2) ** -200
            assert abs(real - renyi(DiscreteLaplace(scale, shift), order)) < slack

    @pytest.mark.parametrize("scale", SCALES)
    @pytest.mark.parametrize("order", ORDERS[1:])
    def test_several_moves_never_cost_more_than_one(self, scale: Fraction, order: Fraction) -> None:
        def cost(shift: int) -> arb:
            return renyi(DiscreteLaplace(scale, shift), order)

        slack = arb(2) ** -200
        with precision(reference.BITS):
            for parts in [(1, 1), (1, 2), (2, 3), (1, 1, 1), (5, 1, 4), (1,) * 10]:
                assert sum(map(cost, parts), arb(0)) <= cost(sum(parts)) + slack
            for shift in range(1, 12):  # convex
                assert 2 * cost(shift + 1) <= cost(shift) + cost(shift + 2) + slack

    @pytest.mark.parametrize("scale", [Fraction(1), Fraction(7, 3)])
    @pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1, 2), Fraction(1)])
    def test_several_moves_never_failure_more_than_one(
        self, scale: Fraction, epsilon: Fraction
    ) -> None:
        """The whole profile, not only the Renyi divergence: one coordinate's is the worst."""
        for parts in [(1, 1), (1, 2), (1, 1, 1)]:
            moves = PrivacyLoss.of(*(DiscreteLaplace(scale, part) for part in parts))
            whole = PrivacyLoss.of(DiscreteLaplace(scale, sum(parts)))
            real, bound = reference.delta(moves, epsilon), reference.delta(whole, epsilon)
            assert real <= bound + arb(2) ** -100

    @pytest.mark.parametrize("scale", SCALES[1:])
    @pytest.mark.parametrize("shift", SHIFTS)
    @pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(1, 50), Fraction(1, 3), Fraction(1)])
    def test_directions_have_the_same_law(
        self, scale: Fraction, shift: int, epsilon: Fraction
    ) -> None:
        """Outcome by outcome: the noise around 0 and around the shift, either one first."""
        reach = int(150 * scale) + shift
        with precision(reference.BITS):
            ratio = (-1 / ball(scale)).exp()
            mass = {x: (1 - ratio) / (1 + ratio) * ratio ** abs(x) for x in range(2 * reach)}
            grown = ball(epsilon).exp()
            forth = back = arb(0)
            for x in range(-reach, reach + 1):
                p, q = mass[abs(x)], mass[abs(x - shift)]
                forth += max(p - grown * q, arb(0))
                back += max(q - grown * p, arb(0))
            law = reference.delta(PrivacyLoss.of(DiscreteLaplace(scale, shift)), epsilon)
            assert abs(forth - law) < 1e-40
            assert abs(back - law) < 1e-40

    def test_extremes(self) -> None:
        for scale in (Fraction(1, 10**6), Fraction(10**6), Fraction(10**12)):
            for shift in (1, 10**6):
                for order in (1 + Fraction(1, 10**9), Fraction(10**20)):
                    with precision(256):
                        upper = upper_fraction(DiscreteLaplace(scale, shift).renyi(order))
                    assert 0 < upper <= shift / scale * (1 + Fraction(1, 10**30))


class TestApproximate:
    def test_without_a_failure_it_is_pure(self) -> None:
        for order in ORDERS:
            assert renyi(Approximate(0.5, 0), order).overlaps(renyi(Pure(0.5), order))
        assert Approximate(0.5, 0).approximate() == Pure(0.5).approximate()

    def test_says_its_failure(self) -> None:
        assert _bounds.failure_probability(
            3 * Approximate(1, 1e-6) + 2 * Approximate(0, 0.1) + Pure(1)
        ) == (Fraction(3, 10**6) + Fraction(2, 10))


class TestZcdp:
    def test_is_its_own_definition(self) -> None:
        for order in ORDERS:
            assert renyi(Zcdp(0.1), order).overlaps(reference.exact(order / 10))
        assert Zcdp(0.1).zcdp() == Fraction(1, 10)


class TestRandomizedResponse:
    @pytest.mark.parametrize("categories", [2, 3, 10, 1000])
    @pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(1, 3), Fraction(4)])
    def test_renyi_is_that_of_the_outcomes(self, epsilon: Fraction, categories: int) -> None:
        term = RandomizedResponse(epsilon, categories)
        with precision(reference.BITS):
            law = reference.law_of_term(term)
            assert abs(sum(law.finite.values(), arb(0)) - 1) < arb(2) ** -300
            for order in ORDERS:
                real = reference.renyi(law.finite, order)
                assert abs(term.renyi(order) - real) < arb(2) ** -200

    def test_two_categories_are_the_worst_pure_mechanism(self) -> None:
        for order in ORDERS:
            with precision(reference.BITS):
                two, any_one = RandomizedResponse(0.7).renyi(order), Pure(0.7).renyi(order)
                assert abs(two - any_one) < arb(2) ** -300
                assert RandomizedResponse(0.7, 3).renyi(order) < any_one

    def test_a_hundred_tenths(self) -> None:
        """Counted a hundred times: the exact epsilon at 1e-5 is 4.3067 (by summation of the
        binomial tails), which no bound is below, and one of 0.1 would be false."""
        epsilon = (100 * RandomizedResponse(0.1)).epsilon(1e-5)
        assert 4.3067 <= epsilon <= 4.31
        with precision(reference.BITS):
            exact = reference.delta(100 * RandomizedResponse(0.1), Fraction("4.3067"))
            assert arb("1e-5") < exact < arb("1.01e-5")

    def test_units_that_come_or_go_are_refused(self) -> None:
        person = Unit("person")
        with pytest.raises(WrongUnit, match=r"declare it with Change\.REPLACE"):
            (1 * RandomizedResponse(1)).for_unit(person)
        with pytest.raises(WrongUnit):
            PrivacyLoss.of(Pure(1), unit=person) + RandomizedResponse(1)
        exchanged = person.with_change(Change.REPLACE)
        assert (1 * RandomizedResponse(1)).for_unit(exchanged).unit == exchanged

    @pytest.mark.parametrize("categories", [1, 0, -3, 2.5, True, math.nan, "3"])
    def test_bad_categories_are_refused_by_name(self, categories: int) -> None:
        with pytest.raises(InvalidArgument, match=r"^categories = "):
            RandomizedResponse(1, categories)
