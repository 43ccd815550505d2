"""The filter at its borders: what fits exactly is admitted, one whole unit more is not."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet._budget import AnyLimit, Limit, MuLimit, RenyiLimit, RhoLimit
from discreet._exact import lower_fraction, precision, upper_fraction
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
    _bounds,
)
from discreet.accounting._bounds import known
from discreet.accounting.filter import _sums
from discreet.accounting.filter._domination import square_of_pure
from discreet.accounting.filter._sums import (
    EXHAUSTED,
    FAILURE_RESOLUTION,
    RESOLUTION,
    SQUARES,
    Squares,
)
from discreet.errors import InvalidArgument, NoBound
from tests.accounting import reference
from tests.accounting.examples import ALL_TERMS, some_loss
from tests.accounting.limits import (
    LIMITS,
    OTHER_LIMITS,
    USUAL,
    beyond,
    fits,
    made,
    orders_of,
)


class TestBorders:
    @pytest.mark.parametrize("limit", LIMITS, ids=repr)
    def test_one_sum_within_its_bound_is_enough(self, limit: Limit) -> None:
        filter_ = made(limit)
        outside = beyond(filter_)
        assert not filter_.admits(outside)
        for place, total in enumerate(outside.sums):
            sums = (*outside.sums[:place], total - 1, *outside.sums[place + 1 :])
            assert filter_.admits(replace(outside, sums=sums))

    @pytest.mark.parametrize("limit", LIMITS, ids=repr)
    def test_failures_have_a_share_of_their_own(self, limit: Limit) -> None:
        filter_ = made(limit)
        full = replace(filter_.start, failures=filter_.failure_bound)
        assert filter_.admits(full)
        assert not filter_.admits(replace(full, failures=full.failures + 1))
        assert filter_.failure_bound * FAILURE_RESOLUTION <= filter_.failures <= limit.delta

    @pytest.mark.parametrize("limit", LIMITS, ids=repr)
    def test_bounds_are_the_formula_rounded_down(self, limit: Limit) -> None:
        """epsilon + ln(share a^a / (a-1)^(a-1)) / (a - 1), at far more digits."""
        filter_ = made(limit)
        assert filter_.bounds[0] == limit.epsilon / RESOLUTION
        for bound, (order, share) in zip(filter_.bounds[2:], filter_.shares, strict=True):
            with precision(1000):
                a = reference.exact(order)
                inside = reference.exact(share) * a**a / (a - 1) ** (a - 1)
                real = (reference.exact(limit.epsilon) + inside.log() / (a - 1)) * 10**18
                assert bound <= upper_fraction(real)
                assert bound + 1 > lower_fraction(real)

    @pytest.mark.parametrize("limit", [limit for limit in LIMITS if limit.delta], ids=repr)
    def test_squares_reach_what_their_share_allows(self, limit: Limit) -> None:
        """By the exact law, at far more digits; the floor stays unspent."""
        filter_ = made(limit)
        squares = filter_.squares
        assert squares is not None
        full = filter_.bounds[1] * RESOLUTION + squares.floor
        above = full * (1 + Fraction(1, 10**12)) + 3 * RESOLUTION
        for square, is_within in ((full, True), (above, False)):
            with precision(reference.BITS):
                multiplier = lower_fraction(1 / reference.exact(square).sqrt())
                leaked = reference.delta(1 * Gaussian(multiplier), limit.epsilon)
                margin = 1 - Fraction(1, 10**40)
                assert (lower_fraction(leaked) * margin <= squares.share) == is_within
        assert squares.floor == pytest.approx(full * Fraction(1, 100), rel=0.01)

    def test_a_ball_around_a_whole_number_rounds_down(self) -> None:
        """The share 1/4 at order 2 leaves exactly epsilon; the ball doesn't know that."""
        filter_ = Filter(Limit(1, 0.5), Fraction(0), ((Fraction(2), Fraction(1, 4)),))
        assert filter_.bounds == (10**18, 10**18 - 1)

    def test_ten_tenths_are_one(self) -> None:
        tenths = [Pure(0.1)] * 10
        assert fits(Limit(1), *tenths)
        assert fits(Limit(1), 10 * Pure(0.1))
        assert not fits(Limit(1), *tenths, Pure(1e-18))
        assert not fits(Limit(Fraction(999_999_999_999_999_999, 10**18)), *tenths)

    def test_a_charge_below_the_unit_counts_as_one_unit(self) -> None:
        assert not fits(Limit(1), Pure(1), Pure(1e-300))
        assert fits(Limit(Fraction(1) + RESOLUTION), Pure(1), Pure(1e-300))

    def test_a_limit_below_the_unit_rounds_down(self) -> None:
        assert not fits(Limit(Fraction(3, 2) * RESOLUTION), Pure(Fraction(3, 2) * RESOLUTION))
        assert fits(Limit(Fraction(3, 2) * RESOLUTION), Pure(RESOLUTION))

    def test_nothing_fits_everywhere(self) -> None:
        for limit in LIMITS:
            assert fits(limit)
            assert fits(limit, PrivacyLoss())
            assert fits(limit, Pure(0))


def test_a_limit_is_shared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ledgers in memory are often made for one limit again, and the search takes 10 ms."""
    limit, searched = Limit(epsilon=1.2345, delta=1e-7), list[Fraction]()

    def counted(order: Fraction, share: Fraction) -> Fraction:
        searched.append(order)
        return _shares_room(order, share)

    _shares_room = _sums.room
    monkeypatch.setattr(_sums, "room", counted)
    first = Filter.for_limit(limit)
    assert searched
    searched.clear()
    assert Filter.for_limit(limit) == first
    assert searched == []


class TestSums:
    @pytest.mark.parametrize("term", ALL_TERMS, ids=repr)
    def test_charges_round_up(self, term: Term) -> None:
        filter_ = made(USUAL)
        spent = filter_.add(filter_.start, 3 * term)
        failures = _bounds.failure_probability(3 * term)
        assert spent.failures * FAILURE_RESOLUTION >= failures
        with precision(reference.BITS):
            for total, order in orders_of(filter_, spent):
                divergence = known(_bounds.renyi(3 * term, order))
                if not divergence.is_finite():
                    continue  # counted as the whole sum
                in_units = divergence * 10**18
                assert total <= upper_fraction(in_units) + 1
            for law in reference.laws_of_term(term):
                if failures and not law.infinite > 0:
                    continue  # a failure doesn't show at this order
                finite_law = {ratio: p / (1 - law.infinite) for ratio, p in law.finite.items()}
                for total, order in orders_of(filter_, spent):
                    beside = reference.exact(law.mu_squared * order / 2)
                    in_units = 3 * (reference.renyi(finite_law, order) + beside) * 10**18
                    assert total > lower_fraction(in_units) - Fraction(1, 10**6)

    def test_gaussian_sums_are_known_exactly(self) -> None:
        filter_ = made(USUAL)
        spent = filter_.add(filter_.start, 3 * Gaussian(4) + 5 * Zcdp(0.1))
        for total, order in orders_of(filter_, spent):
            real = (Fraction(3, 32) + Fraction(1, 2)) * order / RESOLUTION
            assert total in (math.ceil(real), math.ceil(real) + 1)  # the ball may reach beyond

    @given(some_loss(), some_loss())
    @settings(max_examples=50)
    def test_one_charge_costs_as_much_as_two(self, a: PrivacyLoss, b: PrivacyLoss) -> None:
        """Where nothing is counted with a failure, sums and failures add up, in any order."""
        usual = made(USUAL)
        for filter_, sums in (
            (replace(usual, failures=Fraction(0)), slice(None)),
            (usual, slice(SQUARES)),
            (usual, slice(SQUARES + 1, None)),
        ):
            one = filter_.add(filter_.start, a + b)
            two = filter_.add(filter_.add(filter_.start, a), b)
            turned = filter_.add(filter_.add(filter_.start, b), a)
            assert two.sums[sums] == turned.sums[sums]
            for whole, parts in zip(one.sums[sums], two.sums[sums], strict=True):
                assert whole - 1 <= parts <= whole + 2  # the ball of a sum may lie a unit higher
            if sums == slice(None):
                assert two.failures == turned.failures
                assert 0 <= two.failures - one.failures <= 1

    @given(st.lists(some_loss(), max_size=4))
    @settings(max_examples=25)
    def test_failures_and_squares_are_those_of_one_way_each(
        self, charges: list[PrivacyLoss]
    ) -> None:
        filter_ = made(USUAL)
        spent, reachable = filter_.start, {(0, 0)}
        for loss in charges:
            ways = filter_.cost(loss).ways
            spent = filter_.add(spent, loss)
            reachable = {
                (failures + way.failures, min(square + way.sums[SQUARES], EXHAUSTED))
                for failures, square in reachable
                for way in ways
            }
        assert (spent.failures, spent.sums[SQUARES]) in reachable

    @given(some_loss(), some_loss())
    @settings(max_examples=25)
    def test_sums_never_fall(self, a: PrivacyLoss, b: PrivacyLoss) -> None:
        filter_ = made(USUAL)
        before = filter_.add(filter_.start, a)
        after = filter_.add(before, b)
        assert after.failures >= before.failures
        assert all(x <= y for x, y in zip(before.sums, after.sums, strict=True))
        assert filter_.admits(before) or not filter_.admits(after)

    @pytest.mark.parametrize("loss", [1 * Gaussian(1e6), 1 * Zcdp(1e-12)], ids=repr)
    def test_a_loss_without_pure_bound_exhausts_the_pure_sum_for_good(
        self, loss: PrivacyLoss
    ) -> None:
        filter_ = made(USUAL)
        spent = filter_.add(filter_.start, loss)
        assert spent.sums[0] == EXHAUSTED
        assert filter_.admits(spent)
        assert filter_.add(spent, PrivacyLoss.of(Pure(0.1))).sums[0] == EXHAUSTED
        assert filter_.add(spent, PrivacyLoss()).sums[0] == EXHAUSTED
        assert not fits(Limit(1), loss)
        assert not fits(Limit(1e6), loss)

    def test_an_enormous_charge_exhausts_every_sum(self) -> None:
        filter_ = made(USUAL)
        spent = filter_.add(filter_.start, 10**40 * Pure(10**10))
        assert set(spent.sums) == {EXHAUSTED}
        assert filter_.reached(spent) is None
        assert filter_.add(spent, 7 * Gaussian(1)) == spent

    @pytest.mark.parametrize("epsilon", [1e21, 1e22, 1e23, 1e300])
    @pytest.mark.parametrize("delta", [0, 1e-6])
    def test_no_limit_is_so_large_that_an_exhausted_sum_fits(
        self, epsilon: float, delta: float
    ) -> None:
        filter_ = made(Limit(epsilon, delta))
        nothing_left = Spent(0, (EXHAUSTED,) * len(filter_.sums))
        assert not filter_.admits(nothing_left)
        assert filter_.reached(nothing_left) is None
        assert fits(Limit(epsilon, 0), Gaussian(1)) is False

    def test_terms_without_any_bound_are_refused(self) -> None:
        class Unknown(Term):
            __slots__ = ()

            def __repr__(self) -> str:
                return "accounting.Unknown()"

        filter_ = made(USUAL)
        with pytest.raises(NoBound, match="Renyi divergence"):
            filter_.add(filter_.start, PrivacyLoss.of(Unknown()))

    def test_approximate_terms_spend_both_failure_and_epsilon(self) -> None:
        filter_ = made(USUAL)
        spent = filter_.add(filter_.start, 2 * Approximate(0.25, 1e-9))
        bare = filter_.add(filter_.start, 2 * Pure(0.25))
        assert spent == replace(bare, failures=2 * 10**51)
        assert bare.failures == 0
        assert bare.sums[0] == 5 * 10**17

    def test_squares_count_gaussians_and_what_is_pure_apart_from_failures(self) -> None:
        filter_ = made(USUAL)
        assert filter_.squares is not None
        square = known(square_of_pure(Fraction(1, 4), filter_.squares.floor))
        for loss, expected in (
            (3 * Gaussian(4), Fraction(3, 16)),
            (3 * Pure(0.25), 3 * square),
            (3 * Approximate(0.25, 1e-9), 3 * square),
            (2 * DiscreteLaplace(8, 2) + 5 * Gaussian(10), 2 * square + Fraction(1, 20)),
        ):
            assert filter_.add(filter_.start, loss).sums[1] == math.ceil(expected / RESOLUTION)

    @pytest.mark.parametrize("loss", [1 * Zcdp(1e-12), 2 * Pure(1) + Zcdp(0)], ids=repr)
    def test_losses_without_squares_exhaust_their_sum(self, loss: PrivacyLoss) -> None:
        filter_ = made(USUAL)
        assert filter_.add(filter_.start, loss).sums[1] == EXHAUSTED

    def test_an_epsilon_whose_delta_is_no_failure_is_not_taken_for_pure(self) -> None:
        """A term's epsilon counts as pure only if its failure probability covers its delta."""

        class Careless(Term):
            __slots__ = ()

            def __repr__(self) -> str:
                return "accounting.Careless()"

            def approximate(self) -> tuple[Fraction, Fraction]:
                return Fraction(1, 10), Fraction(1, 10**9)

            def renyi(self, order: Fraction) -> arb:
                return arb(0)

        spent = made(USUAL).add(made(USUAL).start, PrivacyLoss.of(Careless()))
        assert spent.sums[:2] == (EXHAUSTED, EXHAUSTED)

    def test_failures_alone_can_end_it(self) -> None:
        assert fits(USUAL, 100 * Approximate(0, 1e-9))
        assert not fits(USUAL, Approximate(0, 1e-9), 100 * Approximate(0, 1e-9))
        assert not fits(USUAL, 100 * Approximate(0, 1e-9), Approximate(0, 1e-300))
        assert not fits(Limit(1, 0), Approximate(0, 1e-300))
        assert fits(Limit(1, 0), Approximate(1, 0))


@dataclass(frozen=True, slots=True)
class Opaque(Term):
    """Nothing is known of it."""


class TestOtherLimits:
    """Limits in rho, mu and Renyi divergences: every sum counts, and no failure is admitted."""

    @pytest.mark.parametrize(
        ("limit", "loss"),
        [
            (RhoLimit(0.5), Zcdp(0.25)),
            (RhoLimit(0.5), Pure(0.5) + Zcdp(0.125)),
            (RhoLimit(0.5), 32 * Gaussian(8)),
            (MuLimit(0.5), 8 * Gaussian(8)),
            (RenyiLimit({2: 0.5, 8: 2}), Zcdp(0.125)),
            (RenyiLimit({2: 10, 8: 2}), Zcdp(0.125)),
            (RenyiLimit({2: 0.5, 8: 100}), Zcdp(0.125)),
        ],
        ids=repr,
    )
    def test_an_exact_fit_is_admitted_and_a_hair_more_is_not(
        self, limit: AnyLimit, loss: PrivacyLoss | Term
    ) -> None:
        filter_ = made(limit)
        full = filter_.add(filter_.start, 2 * (PrivacyLoss() + loss))
        if isinstance(limit, RenyiLimit):  # the upper end of a ball may lie a unit higher
            filter_ = Filter(RenyiLimit({a: b + RESOLUTION for a, b in limit.bounds}))
        assert filter_.admits(full)
        for hair in (Gaussian(10**7), Pure(1e-7)):
            assert not filter_.admits(filter_.add(full, PrivacyLoss.of(hair)))
        reached = filter_.reached(full)
        assert reached is not None
        assert limit.most * (1 - Fraction(1, 10**15)) <= reached <= limit.most

    @pytest.mark.parametrize("limit", OTHER_LIMITS, ids=repr)
    def test_one_unit_beyond_any_bound_is_refused(self, limit: AnyLimit) -> None:
        filter_ = made(limit)
        full = Spent(0, filter_.bounds)
        assert filter_.admits(full)
        for place, total in enumerate(full.sums):
            sums = (*full.sums[:place], total + 1, *full.sums[place + 1 :])
            assert not filter_.admits(replace(full, sums=sums))
            reached = filter_.reached(replace(full, sums=sums))
            assert reached is not None
            assert reached > limit.most
        assert not filter_.admits(replace(full, failures=1))

    @pytest.mark.parametrize("limit", OTHER_LIMITS, ids=repr)
    def test_failures_never_fit(self, limit: AnyLimit) -> None:
        filter_ = made(limit)
        for term in (Approximate(0, 1e-300), Approximate(0.01, 1e-9)):
            spent = filter_.add(filter_.start, PrivacyLoss.of(term))
            assert not filter_.admits(spent)
            assert filter_.reached(spent) is None

    def test_losses_without_rho_are_refused(self) -> None:
        filter_ = made(RhoLimit(1))
        with pytest.raises(NoBound, match="no zCDP bound"):
            filter_.add(filter_.start, PrivacyLoss.of(Opaque()))

    def test_zcdp_is_no_gaussian_dp(self) -> None:
        assert not fits(MuLimit(1), Zcdp(1e-9))
        assert not fits(MuLimit(100), Pure(0.1), Zcdp(1e-9))

    @pytest.mark.parametrize("epsilon", [0.01, 0.3, 2])
    def test_pure_charges_under_mu_are_as_randomized_response(self, epsilon: float) -> None:
        """tanh(epsilon / 2) is both their total variations."""
        filter_ = made(MuLimit(1))
        mu = filter_.reached(filter_.add(filter_.start, PrivacyLoss.of(Pure(epsilon))))
        assert mu is not None
        apart = math.erf(float(mu) / (2 * math.sqrt(2)))
        assert apart == pytest.approx(math.tanh(epsilon / 2), rel=1e-12)

    @pytest.mark.parametrize("limit", OTHER_LIMITS, ids=repr)
    @pytest.mark.parametrize("before", [PrivacyLoss(), 2 * Gaussian(30), 2 * Pure(0.01)], ids=repr)
    def test_one_more_pure_charge(self, limit: AnyLimit, before: PrivacyLoss) -> None:
        filter_ = made(limit)
        spent = filter_.add(filter_.start, before)
        left = filter_.pure_left(spent)
        fits_still = filter_.admits(filter_.add(spent, PrivacyLoss.of(Pure(left))))
        assert fits_still == filter_.admits(spent)
        more = Pure(left + Fraction(1, 10**9))
        assert not filter_.admits(filter_.add(spent, PrivacyLoss.of(more)))

    @pytest.mark.parametrize("limit", OTHER_LIMITS, ids=repr)
    def test_limits_without_delta_divide_none(self, limit: AnyLimit) -> None:
        share = Fraction(1, 10**9)
        for given_ in (
            {"failures": share},
            {"shares": ((Fraction(2), share),)},
            {"squares": Squares(share, Fraction(0))},
        ):
            with pytest.raises(InvalidArgument, match="delta"):
                Filter(limit, **given_)


@pytest.mark.parametrize("part", [Fraction(1, 3), Fraction(2, 7), Fraction(1, 2)])
def test_whole_units_never_exceed_the_share_of_failures(part: Fraction) -> None:
    """The bound is the largest number of whole units that fits."""
    chosen = Filter(Limit(1, 1e-6), Fraction(1, 10**6) * part)
    assert chosen.failure_bound * FAILURE_RESOLUTION <= chosen.failures
    assert (chosen.failure_bound + 1) * FAILURE_RESOLUTION > chosen.failures
    assert chosen.admits(replace(chosen.start, failures=chosen.failure_bound))
    assert not chosen.admits(replace(chosen.start, failures=chosen.failure_bound + 1))


def test_filters_of_one_limit_are_looked_up_apart() -> None:
    """A look-up compares all filters of the same hash, so that each charge would take longer in a
    process that has seen many filters."""
    limit = Limit(1, 1e-6)
    parts = [limit.delta * Fraction(number, 200) for number in range(1, 101)]
    filters = [Filter(limit, part, ((Fraction(9), limit.delta / 2),)) for part in parts]
    assert len({hash(one) for one in filters}) == len(filters)
    for one in filters:
        same = replace(replace(one, failures=Fraction(0)), failures=one.failures)
        assert (same, hash(same)) == (one, hash(one))
