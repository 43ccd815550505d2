"""Samples, shuffles and allocations, against every outcome on small tables.

Upper bounds are nowhere below what a mechanism does, lower ones nowhere above what one of them
does; and the tables are hard enough: if a term were priced as one that samples less, some of them
would show it.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, permutations, product

import numpy as np
import pytest
from flint import arb, arb_poly

from discreet.accounting import (
    Approximate,
    DiscreteLaplace,
    Filter,
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
    binomial,
    knowledge,
)
from discreet.accounting.pairs import Pair, Side
from discreet.errors import InvalidArgument, NoBound, WrongUnit
from discreet.exact import ball, float_up, fraction, precision
from discreet.payment import RenyiLimit
from discreet.unit import Change
from tests.accounting.enumerated import (
    ABSENT,
    Law,
    Noise,
    allocated,
    discrete_laplace,
    gaussian,
    law,
    neighbours,
    shuffled,
    told,
    truncated_poisson,
    with_replacement,
    without_replacement,
)

EPSILONS = [0.0, 0.05, 0.2, 0.5, 1.0, 2.0]
ORDERS = [Fraction(3, 2), Fraction(2), Fraction(3), Fraction(8)]
SURE = 1e-9  # of sums of floats, and of cells far out
NOISES: list[tuple[Term, Noise]] = [
    (Gaussian(1), gaussian(1.0)),
    (Gaussian(3), gaussian(3.0)),
    (DiscreteLaplace(1.5), discrete_laplace(1.5)),
]
REPLACED = [(1.0, 0.0)]
GONE = [(1.0, ABSENT), (-1.0, ABSENT)]


def assert_holds(term: Term, laws: list[Law]) -> None:
    """No law is less private than what is stated of the term, nor are two of them."""
    for epsilon in EPSILONS:
        once, twice = (1 * term).delta(epsilon), (2 * term).delta(epsilon)
        for real in laws:
            assert real.delta(epsilon) <= once + SURE
            if len(real.p) < 100:
                assert real.and_again(real).delta(epsilon) <= twice + SURE
    if isinstance(term, knowledge.KnowsRenyi) and not knowledge.leak(1 * term):
        for order in ORDERS:
            bound = renyi(term, order)
            assert all(real.renyi(float(order)) <= bound + SURE for real in laws)


def is_caught(cheaper: Term, laws: list[Law]) -> bool:
    """Whether some law is less private than what is stated of the term."""
    return any(
        real.delta(epsilon) > (1 * cheaper).delta(epsilon) + SURE
        for epsilon in EPSILONS
        for real in laws
    )


def assert_attained(term: Term, laws: list[Law], slack: float = SURE) -> None:
    """Some law has the lower ends' epsilons."""
    for delta in (0.05, 0.002):
        lower = (1 * term).interval(delta).lower
        assert lower == 0 or max(real.delta(lower) for real in laws) >= delta - slack


def renyi(term: Term, order: Fraction) -> float:
    assert isinstance(term, knowledge.KnowsRenyi)
    with precision(256):
        return float_up(term.renyi(order))


def shown(value: object) -> str | None:
    return repr(value) if isinstance(value, Term) else None


@pytest.mark.parametrize(("inner", "noise"), NOISES, ids=shown)
class TestSampledWithoutReplacement:
    @pytest.mark.parametrize(("sample", "units"), [(1, 2), (1, 4), (2, 4), (3, 4), (3, 3), (2, 5)])
    def test_every_sample(self, inner: Term, noise: Noise, sample: int, units: int) -> None:
        term = SampledWithoutReplacement(inner, sample, units)
        tables = neighbours(units, (0.0, 1.0), REPLACED)
        laws = [law(without_replacement(sample), noise, *pair) for pair in tables]
        assert_holds(term, laws)
        assert_attained(term, laws, slack=2e-3)  # cells are wide
        if units == 4:
            assert is_caught(SampledWithoutReplacement(inner, sample, 2 * units), laws)


@pytest.mark.parametrize(("inner", "noise"), NOISES, ids=shown)
class TestSampledWithReplacement:
    @pytest.mark.parametrize(("sample", "units"), [(1, 1), (2, 1), (1, 3), (2, 2), (3, 3), (4, 3)])
    def test_every_sample(self, inner: Term, noise: Noise, sample: int, units: int) -> None:
        term = SampledWithReplacement(inner, sample, units)
        tables = neighbours(units, (0.0, 1.0), REPLACED)
        laws = [law(with_replacement(sample), noise, *pair) for pair in tables]
        assert_holds(term, laws)
        assert_attained(term, laws, slack=2e-3)
        if units == 3 and isinstance(inner, Gaussian):
            assert is_caught(SampledWithReplacement(inner, sample, 2 * units), laws)


def test_a_unit_that_is_drawn_more_often_than_a_grid_can_hold() -> None:
    """Its many draws count as if everything were told; the other theorems still know them."""
    often = SampledWithReplacement(Pure(0.1) + Gaussian(4), sample=10_000, population=100)
    found = (100 * often).interval(1e-6)
    assert 0 < found.lower < found.upper < math.inf
    assert found.is_wide
    rarely = SampledWithReplacement(Pure(0.1) + Gaussian(4), sample=100, population=10_000)
    assert not (100 * rarely).interval(1e-6).upper > (100 * (Pure(0.1) + Gaussian(4))).epsilon(1e-6)


@pytest.mark.parametrize(("inner", "noise"), NOISES, ids=shown)
class TestTruncatedPoisson:
    @pytest.mark.parametrize(("most", "units"), [(1, 1), (1, 2), (1, 3), (2, 3), (3, 3), (2, 4)])
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
            found = binomial.tail(trials, rate, least)
            assert exact <= found
            assert found == 1 or found <= exact * (1 + Fraction(1, 2**100))

    def test_large_numbers(self) -> None:
        found = binomial.tail(10**9, Fraction(1, 1000), 10**6 + 5 * 10**3)
        assert 2.5e-7 < found < 3.5e-7  # the normal law's is 2.9e-7
        assert binomial.tail(10**6, Fraction(1), 10) == 1
        assert binomial.tail(10**6, Fraction(0), 10) == 0


class TestShuffled:
    @pytest.mark.parametrize("inner", [Gaussian(2), Pure(0.5), RandomizedResponse(1, 3)], ids=repr)
    def test_costs_what_one_batch_does(self, inner: Term) -> None:
        for delta in (1e-2, 1e-6):
            found, plain = (3 * Shuffled(inner)).interval(delta), (3 * inner).interval(delta)
            assert found.upper >= plain.lower
            assert plain.upper >= found.lower
            assert found.upper <= 1.001 * plain.upper

    @pytest.mark.parametrize("others", list(product((False, True), repeat=2)))
    def test_every_order(self, others: tuple[bool, bool]) -> None:
        """Three units, one a batch, each batch's value told with odds e to 1."""

        def of(value: bool) -> Law:
            orders = list(permutations((value, *others)))
            rows = sum((told(*order, epsilon=1.0) for order in orders), np.zeros(8))
            return Law(rows / len(orders), rows / len(orders))

        assert_holds(Shuffled(Pure(1)), [Law(of(True).p, of(False).p)])

    def test_one_batch_hides_nothing(self) -> None:
        real = Law(told(True, epsilon=1.0), told(False, epsilon=1.0))
        assert is_caught(Shuffled(Pure(0.9)), [real])
        assert_attained(Shuffled(Pure(1)), [real])


class TestRandomAllocation:
    @pytest.mark.parametrize("epsilon", [0.5, 2.0])
    @pytest.mark.parametrize("steps", [1, 2, 3, 5])
    def test_every_allocation(self, steps: int, epsilon: float) -> None:
        term = RandomAllocation(Pure(epsilon), steps)
        laws = [
            Law(allocated(units + 1, steps, epsilon), allocated(units, steps, epsilon))
            for units in (0, 1, 2)
        ]
        assert_holds(term, laws)
        assert_attained(term, laws[:1])
        if steps > 1:
            assert is_caught(RandomAllocation(Pure(epsilon), 2 * steps), laws)

    @pytest.mark.parametrize("multiplier", [0.7, 2.0])
    def test_two_steps_of_normal_noise(self, multiplier: float) -> None:
        noise = gaussian(multiplier)
        with_unit, without = noise(1.0), noise(0.0)
        both = np.outer(with_unit, without) + np.outer(without, with_unit)
        real = Law(both.ravel() / 2, np.outer(without, without).ravel())
        term = RandomAllocation(Gaussian(multiplier), 2)
        assert_holds(term, [real])
        assert_attained(term, [real], slack=3e-3)
        assert is_caught(RandomAllocation(Gaussian(multiplier), 4), [real])

    @pytest.mark.parametrize("order", [2, 3, 5, 8])
    @pytest.mark.parametrize(
        ("multiplier", "steps"), [(1, 2), (1, 10), (2, 100), (Fraction(3, 2), 7)]
    )
    def test_renyi_by_the_multinomial_sum(
        self, multiplier: Fraction, steps: int, order: int
    ) -> None:
        """For a unit that goes and whole orders, the power of the mean can be multiplied out."""
        square = 1 / Fraction(multiplier) ** 2
        with precision(256):
            series = arb_poly(
                [
                    (ball(n * (n - 1) * square) / 2).exp() / math.factorial(n)
                    for n in range(order + 1)
                ]
            )
            power = arb_poly([1])
            for _ in range(steps):
                power = arb_poly((power * series).coeffs()[: order + 1])
            moment = power[order] * math.factorial(order) / arb(steps) ** order
            exact = moment.log() / (order - 1)
            found = ball(
                fraction(renyi(RandomAllocation(Gaussian(multiplier), steps), Fraction(order)))
            )
            assert found >= exact
            assert found <= exact * 1.02 + 1e-9

    @pytest.mark.parametrize("order", [Fraction(2), Fraction(5, 2), Fraction(4), Fraction(9)])
    @pytest.mark.parametrize("multiplier", [1, 2])
    def test_renyi_of_two_steps_by_the_trapezoid_rule(
        self, multiplier: int, order: Fraction
    ) -> None:
        """Both directions, with nothing left out: no leak is counted beside them."""
        term = RandomAllocation(Gaussian(multiplier), 2)
        x = np.linspace(-30.0, 45.0, 501) * multiplier
        loss = x / multiplier**2 - 1 / (2 * multiplier**2)
        law = -((x / multiplier) ** 2) / 2 - math.log(multiplier * math.sqrt(2 * math.pi))
        ratio = np.logaddexp.outer(loss, loss) - math.log(2)
        both = np.add.outer(law, law)
        exact = []
        for power in (float(order), 1 - float(order)):
            logs = both + power * ratio
            most = float(logs.max())
            total = float(np.exp(logs - most).sum()) * (x[1] - x[0]) ** 2
            exact.append((most + math.log(total)) / float(order - 1))
        assert knowledge.leak(1 * term) == 0
        assert max(exact) <= renyi(term, order) * (1 + SURE) + SURE
        assert renyi(term, order) <= min(1.001 * max(exact), renyi(Gaussian(multiplier), order))

    @pytest.mark.parametrize("inner", [Gaussian(1), DiscreteLaplace(2), Pure(1)], ids=shown)
    def test_it_leaks_no_more_than_one_step(self, inner: Term) -> None:
        """So it fits limits in which nothing may leak, for less than one step does."""
        term = RandomAllocation(inner, 20)
        assert knowledge.leak(1 * term) == 0
        filter_ = Filter.for_limit(RenyiLimit({2: 0.5, 4: 0.9}))
        spent = filter_.add(filter_.start, 1 * term)
        assert filter_.admits(spent)
        assert spent.sums < filter_.add(filter_.start, 1 * inner).sums

    @pytest.mark.parametrize(("multiplier", "steps"), [(1.0, 100), (0.5, 30), (3.0, 1000)])
    def test_by_drawing(self, multiplier: float, steps: int) -> None:
        """Both directions from draws of the mean ratio: five standard errors are a lot."""
        draws = np.random.default_rng(20260101).standard_normal((40_000, steps))
        loss = draws / multiplier - 1 / (2 * multiplier**2)
        moved = loss.copy()
        moved[:, 0] += 1 / multiplier**2
        without, with_unit = (np.log(np.exp(each).mean(axis=1)) for each in (loss, moved))
        term = RandomAllocation(Gaussian(multiplier), steps)
        for epsilon in (0.0, 0.1, 0.5):
            for (upper, lower), seen in zip(
                zip(term.pairs(Side.UPPER), term.pairs(Side.LOWER), strict=True),
                (with_unit, -without),
                strict=True,
            ):
                gains = np.maximum(-np.expm1(epsilon - seen), 0.0)
                error = 5 * float(gains.std()) / math.sqrt(len(gains)) + 1e-5
                assert hockey_stick(upper, epsilon) >= float(gains.mean()) - error
                assert hockey_stick(lower, epsilon) <= float(gains.mean()) + error
                assert hockey_stick(lower, epsilon) <= hockey_stick(upper, epsilon)

    @pytest.mark.parametrize(("multiplier", "steps", "epochs"), [(1, 100, 5), (2, 30, 1)])
    def test_is_near_poisson_sampling(self, multiplier: int, steps: int, epochs: int) -> None:
        epoch = RandomAllocation(Gaussian(multiplier), steps)
        sampled = PoissonSampled(Gaussian(multiplier), Fraction(1, steps))
        found = (epochs * epoch).interval(1e-5)
        assert found.upper <= found.lower * 1.005
        assert 0.8 < found.upper / (epochs * steps * sampled).epsilon(1e-5) < 1.05

    def test_losses_beyond_floats_leave_the_simple_bounds(self) -> None:
        tiny = RandomAllocation(Gaussian(Fraction(1, 1000)), 10)
        with pytest.raises(NoBound, match="above 300"):
            tiny.pairs(Side.UPPER)
        assert tiny.leak() == 0
        assert renyi(tiny, Fraction(2)) == renyi(Gaussian(Fraction(1, 1000)), Fraction(2))


def hockey_stick(pair: Pair, epsilon: float) -> float:
    """Of a pair of atoms only."""
    finite = np.isfinite(pair.atoms.loss)
    loss, p = pair.atoms.loss[finite], pair.atoms.p[finite]
    gains = p * np.maximum(-np.expm1(epsilon - loss), 0.0)
    return float(gains.sum() + pair.atoms.p[pair.atoms.loss == np.inf].sum())


class TestShuffledReports:
    @pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
    @pytest.mark.parametrize(("reports", "categories"), [(1, 2), (2, 2), (3, 3), (4, 2), (6, 2)])
    def test_every_report(self, reports: int, categories: int, epsilon: float) -> None:
        laws = [
            Law(
                shuffled((0, *rest), categories, epsilon), shuffled((1, *rest), categories, epsilon)
            )
            for rest in product(range(categories), repeat=reports - 1)
        ]
        term = ShuffledReports(epsilon, reports)
        assert_holds(term, laws)
        if categories == 2:
            assert_attained(term, laws)
        if reports > 1:
            assert is_caught(ShuffledReports(epsilon, 8 * reports), laws)

    @pytest.mark.parametrize(("epsilon", "reports"), [(1, 2), (0.3, 40), (3, 60), (2, 300)])
    def test_is_the_sum_over_all_numbers_of_clones(self, epsilon: float, reports: int) -> None:
        term = ShuffledReports(epsilon, reports)
        (pair,) = term.pairs(Side.UPPER)
        for share in (0.0, 0.1, 0.3, 0.6):
            exact = cloned(epsilon, reports, share * epsilon)
            assert exact * (1 - 1e-9) <= hockey_stick(pair, share * epsilon)
            assert hockey_stick(pair, share * epsilon) <= exact * (1 + 1e-6) + 1e-30

    def test_many_reports(self) -> None:
        """Blocks of numbers of clones cost next to nothing."""
        found = [(1 * ShuffledReports(1, 10**n)).epsilon(1e-6) for n in (3, 4, 5, 6, 7, 8)]
        assert all(few > 2 * many for few, many in pairwise(found))

    def test_never_above_one_report(self) -> None:
        for reports in (1, 3, 1000):
            for order in ORDERS:
                assert renyi(ShuffledReports(2, reports), order) <= renyi(Pure(2), order)
        assert (1 * ShuffledReports(0, 10)).epsilon() == 0


def cloned(epsilon: float, reports: int, at: float) -> float:
    """The hockey stick divergence, summed over the numbers of clones of either kind."""
    odds, share, total = math.exp(epsilon), math.exp(-epsilon), 0.0
    for clones in range(reports):
        ways = math.comb(reports - 1, clones) * share**clones
        ways *= (1 - share) ** (reports - 1 - clones) / 2**clones / (odds + 1)
        for ones in range(clones + 2):
            as_one = math.comb(clones, ones - 1) if ones else 0
            as_zero = math.comb(clones, ones)
            p, q = odds * as_one + as_zero, as_one + odds * as_zero
            total += ways * max(p - math.exp(at) * q, 0.0)
    return total


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
        once = SampledWithoutReplacement(Gaussian(1), 1, 2)
        with pytest.raises(NoBound, match="group"):
            (1 * TruncatedPoisson(PoissonSampled(Gaussian(1), 0.1), 0.5, 1, 10)).renyi(2)
        assert knowledge.leak(1 * SampledWithReplacement(once, 2, 4)) >= Fraction(1, 16)
        assert TruncatedPoisson(PoissonSampled(Gaussian(1), 0.1), 0.5, 10, 10).leak() == 0

    def test_laws_that_differ_by_the_order_serve_no_replaced_unit(self) -> None:
        inner = SampledWithoutReplacement(_OneSided(), 1, 2)
        with pytest.raises(NoBound, match="both orders"):
            inner.pairs(Side.UPPER)


@dataclass(frozen=True, slots=True, repr=False)
class _OneSided(Term):
    """A term of no relation whose pairs differ."""

    def pairs(self, side: Side) -> tuple[Pair, ...]:
        return PoissonSampled(Gaussian(1), 0.5).pairs(side)


class TestLeaks:
    """What is told with a small probability, when a unit is in a sample, is told more rarely."""

    INNER = Approximate(Fraction(1, 2), Fraction(1, 1000))

    def test_is_thinned(self) -> None:
        assert SampledWithoutReplacement(self.INNER, 1, 10).leak() == Fraction(1, 10_000)
        assert TruncatedPoisson(self.INNER, 0.5, 10, 10).leak() == Fraction(1, 2000)
        assert Shuffled(self.INNER).leak() == Fraction(1, 1000)
        assert Fraction(1, 1000) <= RandomAllocation(self.INNER, 10).leak() < Fraction("0.00100001")
        with_replacement = SampledWithReplacement(self.INNER, 1, 10).leak()
        assert Fraction(1, 10_000) <= with_replacement < Fraction("0.000101")

    def test_draws_beyond_what_is_known_are_a_leak(self) -> None:
        several = SampledWithReplacement(self.INNER, 40, 40)
        assert several.leak() > Fraction(1, 1000)
        assert renyi(several, Fraction(2)) > renyi(
            SampledWithoutReplacement(self.INNER, 1, 40), Fraction(2)
        )

    @pytest.mark.parametrize(
        "term",
        [
            SampledWithoutReplacement(INNER, 3, 10),
            SampledWithReplacement(INNER, 3, 10),
            TruncatedPoisson(INNER, 0.25, 3, 10),
            Shuffled(INNER),
            RandomAllocation(INNER, 10),
        ],
        ids=repr,
    )
    def test_simple_bounds_stay_above_the_distribution(self, term: Term) -> None:
        assert isinstance(term, knowledge.KnowsPairs)
        epsilon, delta = knowledge.approximate(1 * term)
        assert delta < 1
        (lower, *_) = [hockey_stick_of(pair, float(epsilon)) for pair in term.pairs(Side.LOWER)]
        assert lower <= float(delta) * (1 + 1e-9) + 1e-12


def hockey_stick_of(pair: Pair, epsilon: float) -> float:
    assert not pair.pieces
    return hockey_stick(pair, epsilon)


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
