"""Samples, against every outcome on small tables.

Upper bounds are nowhere below what a mechanism does, lower ones nowhere above what one of them
does; and the tables are hard enough: if a term were priced as one that samples less, some of them
would show it.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from discreet._arrays import FloatArray
from discreet._exact import precision, upper_fraction
from discreet._unit import Change
from discreet.accounting import (
    Approximate,
    DiscreteLaplace,
    Gaussian,
    PoissonSampled,
    PrivacyLoss,
    Pure,
    RandomAllocation,
    RandomizedResponse,
    SampledWithoutReplacement,
    SampledWithReplacement,
    Shuffled,
    ShuffledReports,
    Term,
    TruncatedPoisson,
    Zcdp,
)
from discreet.accounting._bounds import known
from discreet.accounting.pld._dominating_pairs import Pair, Side
from discreet.accounting.terms._around_loss import binomial_tail
from discreet.accounting.terms._fixed_samples import _draw_counts
from discreet.errors import InvalidArgument, NoBound, WrongUnit
from tests.accounting.enumerated import (
    ABSENT,
    Noise,
    discrete_laplace,
    gaussian,
    law,
    neighbours,
    truncated_poisson,
    with_replacement,
    without_replacement,
)
from tests.accounting.holding import (
    assert_attained,
    assert_holds,
    is_caught,
    shown,
)
from tests.tables import one_in

NOISES: list[tuple[Term, Noise]] = [
    (Gaussian(1), gaussian(1.0)),
    (Gaussian(3), gaussian(3.0)),
    (DiscreteLaplace(1.5), discrete_laplace(1.5)),
]
REPLACED = [(1.0, 0.0)]
GONE = [(1.0, ABSENT), (-1.0, ABSENT)]


@pytest.mark.parametrize(("inner", "noise"), NOISES, ids=shown)
class TestSampledWithoutReplacement:
    @pytest.mark.parametrize(
        ("sample", "units"), one_in(2, [(1, 2), (1, 4), (2, 4), (3, 4), (3, 3), (2, 5)])
    )
    def test_every_sample(self, inner: Term, noise: Noise, sample: int, units: int) -> None:
        term = SampledWithoutReplacement(inner, sample, units)
        tables = neighbours(units, (0.0, 1.0), REPLACED)
        laws = [law(without_replacement(sample), noise, *pair) for pair in tables]
        assert_holds(term, laws)
        assert_attained(term, laws, slack=2e-3)  # cells are wide
        if units == 4:
            assert is_caught(SampledWithoutReplacement(inner, sample, 2 * units), laws)


@pytest.mark.parametrize("multiplier", [0.7, 1.0, 1.5, 2.0])
@pytest.mark.parametrize("population", [100, 10_000])
def test_a_rare_draw_among_three_laws_as_far_from_each_other(
    multiplier: float, population: int
) -> None:
    """The one who is drawn instead may be as far from both neighbours as they are from each other:
    the chi-square is larger than from rate^2 (e^epsilon(2) - 1), which two laws would have."""
    axis = np.arange(-12 * multiplier - 1, 12 * multiplier + 2, multiplier / 8)
    x, y = np.meshgrid(axis, axis)

    def density(at: float, beside: float) -> FloatArray:
        return np.asarray(np.exp(-((x - at) ** 2 + (y - beside) ** 2) / (2 * multiplier**2)))

    first, second, others = density(0, 0), density(1, 0), density(0.5, math.sqrt(0.75))
    cell = 1 / first.sum()
    mixed = others + (second - others) / population
    apart = float(((first - second) ** 2 / mixed).sum() * cell) / population**2
    term = SampledWithoutReplacement(Gaussian(multiplier), 1, population)
    with precision(256):
        stated = float(upper_fraction(known(term.renyi(Fraction(2)))))
    assert math.log1p(math.expm1(multiplier**-2) / population**2) < math.log1p(apart) <= stated


@pytest.mark.parametrize("inner", [Gaussian(1), Approximate(3, 0.01), Pure(300)], ids=shown)
@pytest.mark.parametrize(("sample", "population"), [(10, 10), (1, 1000), (300, 100_000)])
def test_all_numbers_of_draws_are_counted(inner: Term, sample: int, population: int) -> None:
    """Also those for which a group's loss has no bound: they count as revealed."""
    drawn = _draw_counts(SampledWithReplacement(inner, sample, population))
    with precision(256):
        counted = upper_fraction(sum((ways for _, ways in drawn.groups), drawn.rest))
    assert counted >= 1 - (1 - Fraction(1, population)) ** sample


@pytest.mark.parametrize(("inner", "noise"), NOISES, ids=shown)
class TestSampledWithReplacement:
    @pytest.mark.parametrize(
        ("sample", "units"), one_in(2, [(2, 1), (1, 1), (1, 3), (2, 2), (4, 3), (3, 3)])
    )
    def test_every_sample(self, inner: Term, noise: Noise, sample: int, units: int) -> None:
        term = SampledWithReplacement(inner, sample, units)
        tables = neighbours(units, (0.0, 1.0), REPLACED)
        laws = [law(with_replacement(sample), noise, *pair) for pair in tables]
        assert_holds(term, laws)
        assert_attained(term, laws, slack=2e-3)
        if units == 3 and isinstance(inner, Gaussian):
            assert is_caught(SampledWithReplacement(inner, sample, 2 * units), laws)


def test_a_unit_that_is_drawn_more_often_than_a_grid_can_hold() -> None:
    """Its many draws count as if they revealed everything; other theorems still bound them."""
    often = SampledWithReplacement(Pure(0.1) + Gaussian(4), sample=10_000, population=100)
    interval = (100 * often).interval(1e-6)
    assert 0 < interval.lower < interval.upper < math.inf
    assert interval.is_wide
    rarely = SampledWithReplacement(Pure(0.1) + Gaussian(4), sample=100, population=10_000)
    assert not (100 * rarely).interval(1e-6).upper > (100 * (Pure(0.1) + Gaussian(4))).epsilon(1e-6)


@pytest.mark.parametrize(("inner", "noise"), NOISES, ids=shown)
class TestTruncatedPoisson:
    @pytest.mark.parametrize(
        ("most", "units"), one_in(2, [(1, 1), (1, 2), (1, 3), (3, 3), (2, 4), (2, 3)])
    )
    @pytest.mark.parametrize("rate", [0.3, 0.8])
    def test_every_sample(
        self, inner: Term, noise: Noise, rate: float, most: int, units: int
    ) -> None:
        """The unit that goes stands at any place in the order of the priorities."""
        term = TruncatedPoisson(inner, rate, most, units)
        tables = neighbours(units, (-1.0, 1.0), GONE)
        laws = [law(truncated_poisson(rate, most), noise, *pair) for pair in tables]
        assert_holds(term, laws)
        alone = [law(truncated_poisson(rate, most), noise, (1.0,), (ABSENT,))]
        assert_attained(term, alone, slack=2e-3)
        if isinstance(inner, Gaussian):
            assert is_caught(TruncatedPoisson(inner, rate / 2, most, units), laws)

    def test_a_full_batch_is_dearer_than_plain_sampling(self, inner: Term, noise: Noise) -> None:
        """Poisson sampling's own price would be false: one that comes pushes another one out."""
        tables = neighbours(3, (-1.0, 1.0), GONE)
        laws = [law(truncated_poisson(0.8, 1), noise, *pair) for pair in tables]
        assert is_caught(PoissonSampled(inner, 0.8), laws)


class TestBinomialTail:
    @pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1, 2), Fraction(99, 100)])
    @pytest.mark.parametrize("trials", [0, 1, 5, 40])
    def test_is_the_sum(self, trials: int, rate: Fraction) -> None:
        for least in range(1, trials + 3):
            exact = sum(
                (
                    math.comb(trials, n) * rate**n * (1 - rate) ** (trials - n)
                    for n in range(least, trials + 1)
                ),
                Fraction(0),
            )
            tail = binomial_tail(trials, rate, least)
            assert exact <= tail
            assert tail == 1 or tail <= exact * (1 + Fraction(1, 2**100))

    def test_large_numbers(self) -> None:
        tail = binomial_tail(10**9, Fraction(1, 1000), 10**6 + 5 * 10**3)
        assert 2.5e-7 < tail < 3.5e-7  # the normal law's is 2.9e-7
        assert binomial_tail(10**6, Fraction(1), 10) == 1
        assert binomial_tail(10**6, Fraction(0), 10) == 0


class TestBadInput:
    @pytest.mark.parametrize("sample", [0, -1, 1.5, True, math.nan, "3"])
    def test_sizes_are_whole_numbers(self, sample: int) -> None:
        for kind in (SampledWithoutReplacement, SampledWithReplacement):
            with pytest.raises(InvalidArgument, match=r"^sample = "):
                kind(Gaussian(1), sample, 10)
            with pytest.raises(InvalidArgument, match=r"^population = "):
                kind(Gaussian(1), 1, sample)
        with pytest.raises(InvalidArgument, match=r"^most = "):
            TruncatedPoisson(Gaussian(1), 0.1, sample, 10)
        with pytest.raises(InvalidArgument, match=r"^records = "):
            TruncatedPoisson(Gaussian(1), 0.1, 10, sample)
        with pytest.raises(InvalidArgument, match=r"^steps = "):
            RandomAllocation(Gaussian(1), sample)
        with pytest.raises(InvalidArgument, match=r"^reports = "):
            ShuffledReports(1, sample)

    def test_samples_within_the_population(self) -> None:
        with pytest.raises(InvalidArgument, match=r"^sample = 11: give at most the population, 10"):
            SampledWithoutReplacement(Gaussian(1), 11, 10)
        assert SampledWithReplacement(Gaussian(1), 11, 10).sample == 11

    @pytest.mark.parametrize("rate", [-0.1, 1.1, math.nan, math.inf])
    def test_rates(self, rate: float) -> None:
        with pytest.raises(InvalidArgument, match=r"^rate = "):
            TruncatedPoisson(Gaussian(1), rate, 5, 10)

    def test_epsilons(self) -> None:
        with pytest.raises(InvalidArgument, match=r"^epsilon = "):
            ShuffledReports(-1, 10)

    def test_losses_of_other_relations(self) -> None:
        come, exchanged = PoissonSampled(Gaussian(1), 0.1), RandomizedResponse(1)
        for refused in (
            lambda: SampledWithoutReplacement(come, 1, 2),
            lambda: SampledWithReplacement(come, 1, 2),
            lambda: Shuffled(come),
            lambda: TruncatedPoisson(exchanged, 0.1, 1, 2),
            lambda: RandomAllocation(exchanged, 2),
            lambda: PoissonSampled(ShuffledReports(1, 10), 0.1),
        ):
            with pytest.raises(WrongUnit):
                refused()
        assert Shuffled(exchanged).change is Change.REPLACE

    def test_losses_that_know_no_groups(self) -> None:
        with pytest.raises(NoBound, match="group"):
            (1 * TruncatedPoisson(PoissonSampled(Gaussian(1), 0.1), 0.5, 1, 10)).renyi(2)
        assert (
            TruncatedPoisson(PoissonSampled(Gaussian(1), 0.1), 0.5, 10, 10).failure_probability()
            == 0
        )

    def test_laws_that_differ_by_the_order_serve_no_replaced_unit(self) -> None:
        inner = SampledWithoutReplacement(_OneSided(), 1, 2)
        with pytest.raises(NoBound, match="both orders"):
            known(inner.pairs(Side.UPPER))


@dataclass(frozen=True, slots=True, repr=False)
class _OneSided(Term):
    """A term of no relation whose pairs differ."""

    def pairs(self, side: Side) -> tuple[Pair, ...]:
        return known(PoissonSampled(Gaussian(1), 0.5).pairs(side))


class TestZcdpOnly:
    def test_terms_of_which_no_pair_is_known(self) -> None:
        for term in (
            SampledWithoutReplacement(Zcdp(0.1), 1, 10),
            Shuffled(Zcdp(0.1)),
            RandomAllocation(Zcdp(0.1), 10),
        ):
            assert term.zcdp() == Fraction(1, 10)
            assert (1 * term).epsilon(1e-5) <= (1 * Zcdp(0.1)).epsilon(1e-5) * 1.000001

    def test_a_sum_is_sampled_as_one(self) -> None:
        both = Pure(0.5) + Pure(0.25)
        assert isinstance(both, PrivacyLoss)
        for term in (
            SampledWithoutReplacement(both, 1, 10),
            SampledWithReplacement(both, 1, 10),
            RandomAllocation(both, 10),
        ):
            assert (1 * term).epsilon(1e-3) < 0.75
