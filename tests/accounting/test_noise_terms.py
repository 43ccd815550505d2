"""Terms of noise and selection, each against sums over the outcomes of a real mechanism."""

import math
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import arb

from discreet._exact import precision
from discreet.accounting import (
    BoundedRange,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PoissonSampled,
    PrivacyLoss,
    Pure,
    RandomizedResponse,
    ReportNoisyMax,
    SparseVector,
    Term,
    Threshold,
    _bounds,
)
from discreet.accounting._bounds import known
from discreet.accounting.pld._dominating_pairs import Side
from discreet.accounting.terms._gaussian import NormalSums
from discreet.errors import InvalidArgument, NoBound, WrongUnit
from tests.accounting import reference
from tests.tables import one_in

ORDERS = [Fraction(1001, 1000), Fraction(3, 2), Fraction(2), Fraction(17)]
REACH = 80  # of noise that is enumerated


def profile(term: Term, side: Side, epsilon: float) -> float:
    """The delta at this epsilon of the term's atoms."""
    found = 0.0
    for pair in known(term.pairs(side)):
        atoms = pair.atoms
        over = np.maximum(-np.expm1(np.minimum(epsilon - atoms.loss, 0.0)), 0.0)
        found = max(found, float(atoms.p[atoms.p > 0] @ over[atoms.p > 0]))
    return found


def assert_close(law: reference.Law, term: Term, epsilon: float, near: float) -> None:
    """From both sides, the term's atoms are on theirs, and as near as that to the law."""

    def real(epsilon: float) -> float:
        return float(reference.hockey_stick(law, reference.exact(Fraction(epsilon))))

    assert profile(term, Side.UPPER, epsilon) >= real(epsilon) * (1 - 1e-12)
    assert profile(term, Side.LOWER, epsilon) <= real(epsilon) * (1 + 1e-12)
    assert profile(term, Side.UPPER, epsilon) <= real(epsilon - near) * (1 + 1e-9) + 1e-80
    assert profile(term, Side.LOWER, epsilon) >= real(epsilon + near) * (1 - 1e-9) - 1e-80


def renyi(term: Term, order: Fraction) -> arb:
    return known(_bounds.renyi(1 * term, order))


class TestLaplace:
    @pytest.mark.parametrize("order", ORDERS)
    @pytest.mark.parametrize("multiplier", [Fraction(1, 3), Fraction(1), Fraction(20)])
    def test_renyi_is_the_limit_of_discrete_noise(
        self, multiplier: Fraction, order: Fraction
    ) -> None:
        with precision(300):
            fine = renyi(DiscreteLaplace(10**12 * multiplier, 10**12), order)
            assert abs(fine / renyi(Laplace(multiplier), order) - 1) < 1e-11

    @pytest.mark.parametrize("delta", [1e-2, 1e-6])
    @pytest.mark.parametrize("multiplier", [0.1, 1, 30])
    def test_one_draw(self, multiplier: float, delta: float) -> None:
        """delta = 1 - e^((epsilon - 1/multiplier) / 2)."""
        real = max(0.0, 1 / multiplier + 2 * math.log1p(-delta))
        interval = (1 * Laplace(multiplier)).interval(delta)
        assert interval.lower <= real * (1 + 1e-12)
        assert interval.upper >= real * (1 - 1e-12)
        assert interval.upper <= real * 1.001 + 1e-12

    def test_many_draws_are_the_limit_of_discrete_noise(self) -> None:
        found, fine = (
            (40 * Laplace(3)).interval(1e-6),
            (40 * DiscreteLaplace(900, 300)).interval(1e-6),
        )
        assert found.lower <= fine.upper * 1.0001
        assert fine.lower <= found.upper * 1.0001

    @pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(1, 4), Fraction(9, 10)])
    def test_several_moves_never_leak_more_than_one(self, epsilon: Fraction) -> None:
        for parts in [(2, 2), (2, 4, 4), (2,) * 5]:
            moves = PrivacyLoss.of(*(Laplace(part) for part in parts))
            whole = sum(1 / part for part in parts)
            with precision(reference.BITS):
                real = reference.delta(moves, epsilon)
            assert float(real) <= -math.expm1(min(0.0, (float(epsilon) - whole) / 2)) + 1e-15


class TestDiscreteLaplace:
    @pytest.mark.parametrize(
        ("scale", "sensitivity"), [(2, 1), (0.3, 2), (50, 40), (700, 3000), (30, 5000), (9, 1026)]
    )
    def test_atoms_agree_with_the_exact_law(self, scale: float, sensitivity: int) -> None:
        term = DiscreteLaplace(scale, sensitivity)
        with precision(reference.BITS):
            law = reference.Law(reference.discrete_laplace(term.scale, sensitivity), arb(0))
            largest = sensitivity / scale
            for share in (-0.5, 0.0, 0.3, 0.9, 0.999):
                assert_close(law, term, share * largest, 1e-3 * largest)

    @pytest.mark.parametrize("size", [10**9, 10**30])
    def test_large_scales_are_nearly_continuous(self, size: int) -> None:
        for epsilon in (0.0, 0.5, 0.99):
            real = -math.expm1((epsilon - 1) / 2)
            for side in Side:
                delta = profile(DiscreteLaplace(size, size), side, epsilon)
                assert delta == pytest.approx(real, rel=1e-3)

    def test_hardly_any_noise(self) -> None:
        assert (1 * DiscreteLaplace(1e-300, 5)).delta(10) == 1
        with pytest.raises(NoBound, match="hides nothing"):
            known(DiscreteLaplace(1e-7, 3).pairs(Side.UPPER))


class TestDiscreteGaussian:
    @pytest.mark.parametrize("stddev", one_in(2, [0.3, 1, 31, 5, 33, 250, 90]))
    @pytest.mark.parametrize("sensitivity", one_in(2, [1, 4, 300]))
    def test_atoms_agree_with_the_exact_law(self, stddev: float, sensitivity: int) -> None:
        term = DiscreteGaussian(stddev, sensitivity)
        mu = sensitivity / stddev
        with precision(reference.BITS):
            law = reference.Law(reference.discrete_gaussian(term.stddev, sensitivity), arb(0))
            for spread in (-1.0, 0.0, 1.0, 6.0):
                assert_close(law, term, mu * mu / 2 + spread * mu, 1e-3 * mu)

    @pytest.mark.parametrize("stddev", [Fraction(33), Fraction(101, 2), Fraction(400)])
    def test_sums_are_what_they_are_by_adding(self, stddev: Fraction) -> None:
        edges = [-700, -650, -35, -34, 20, 21, 22, 200, 900]
        with precision(300):
            sums = NormalSums(stddev)
            found = list(sums.of_groups(edges))
            for place, ball_ in enumerate(found):
                plain = sum(map(sums.weight, range(edges[place], edges[place + 1])), arb(0))
                assert ball_.overlaps(plain)
            reach = int(40 * stddev)
            whole = sum(map(sums.weight, range(-reach, reach + 1)), arb(0))
            assert sums.total().overlaps(whole + sums.beyond(reach))
            assert abs(sums.total() - whole) < whole * 1e-70

    def test_discrete_gaussian_is_not_dominated_by_normal_noise(self) -> None:
        """Its delta is larger by these factors; for small steps it is close."""
        for epsilon, factor in ((4.2925, 1.82377), (7.3685, 2.8286)):
            ours, theirs = (
                (1 * DiscreteGaussian(1)).delta(epsilon),
                (1 * Gaussian(1)).delta(epsilon),
            )
            assert ours / theirs == pytest.approx(factor, rel=1e-2)
        found, normal = (50 * DiscreteGaussian(10**6, 10**6)).epsilon(1e-6), 50 * Gaussian(1)
        assert found == pytest.approx(normal.epsilon(1e-6), rel=1e-3)

    @pytest.mark.parametrize("order", ORDERS)
    def test_renyi_by_summing(self, order: Fraction) -> None:
        """Met with equality where order times the sensitivity is whole."""
        for stddev, shift in ((Fraction(1, 2), 1), (Fraction(1), 2), (Fraction(7), 3)):
            with precision(reference.BITS):
                real = reference.renyi(reference.discrete_gaussian(stddev, shift), order)
                bound = renyi(DiscreteGaussian(stddev, shift), order)
                assert real <= bound + arb(10) ** -60
                if (order * shift).denominator == 1 and order * shift < 10 * stddev:
                    assert abs(real - bound) < arb(10) ** -12

    @pytest.mark.parametrize("epsilon", [0.1, 0.7, 2.0])
    def test_several_moves_never_leak_more_than_one(self, epsilon: float) -> None:
        for parts in [(1, 1), (1, 2), (1, 1, 1)]:
            moves = PrivacyLoss.of(*(DiscreteGaussian(1.5, part) for part in parts))
            with precision(reference.BITS):
                real = float(reference.delta(moves, Fraction(epsilon)))
            assert real <= profile(DiscreteGaussian(1.5, sum(parts)), Side.UPPER, epsilon) + 1e-12

    def test_no_noise_worth_the_name(self) -> None:
        with pytest.raises(NoBound, match="hides nothing"):
            known(DiscreteGaussian(1e-7, 40).pairs(Side.UPPER))


class TestBoundedRange:
    @staticmethod
    def two_points(eta: float, low: float) -> list[tuple[float, float]]:
        """Losses that are eta apart: P, and the loss."""
        share = (math.exp(eta) - math.exp(eta + low)) / math.expm1(eta)
        return [(share, eta + low), (1 - share, low)]

    @pytest.mark.parametrize("eta", [0.01, 0.5, 4.0])
    @pytest.mark.parametrize("order", [1.1, 2.0, 30.0])
    def test_renyi_is_that_of_the_worst_interval(self, eta: float, order: float) -> None:
        found = 0.0
        for low in np.linspace(-eta, 0, 4001):
            points = self.two_points(eta, float(low))
            moment = sum(p * math.exp((order - 1) * loss) for p, loss in points)
            found = max(found, math.log(moment) / (order - 1))
        with precision(256):
            assert float(renyi(BoundedRange(eta), Fraction(order))) == pytest.approx(
                found, rel=1e-5
            )

    @pytest.mark.parametrize("eta", [0.1, 1.0, 5.0])
    def test_the_pair_is_the_worst_interval_at_each_epsilon(self, eta: float) -> None:
        for epsilon in np.linspace(0, eta, 11)[:-1]:
            worst = max(
                sum(p * max(0.0, -math.expm1(epsilon - loss)) for p, loss in points)
                for points in (self.two_points(eta, float(x)) for x in np.linspace(-eta, 0, 2001))
            )
            found = (1 * BoundedRange(eta)).explain(worst).figures["privacy loss distribution"]
            assert found == pytest.approx(epsilon, rel=2e-3, abs=2e-3 * eta)

    def test_bounded_range_lies_between_half_and_pure(self) -> None:
        for count in (1, 20):
            found = count * BoundedRange(0.4)
            assert found.epsilon(1e-6) < (count * Pure(0.4)).epsilon(1e-6)
            assert found.interval(1e-6).lower > (count * Pure(0.2)).interval(1e-6).lower * 0.999
        assert (1 * BoundedRange(0)).epsilon() == (1 * BoundedRange(0)).delta(0) == 0

    def test_gumbel_noise_has_it_and_others_have_not(self) -> None:
        """Two scores, equal and then apart: odds e^x for the exponential mechanism; half of
        e^-x for permute-and-flip."""
        x = 0.3
        odds = math.exp(x)
        gumbel = (math.log(odds / (1 + odds) * 2), math.log(1 / (1 + odds) * 2))
        flip = (math.log(2 - math.exp(-x)), -x)
        assert gumbel[0] - gumbel[1] == pytest.approx(x)
        assert flip[0] - flip[1] > 1.5 * x


def discrete_laplace(scale: float) -> dict[int, float]:
    ratio = math.exp(-1 / scale)
    return {x: (1 - ratio) / (1 + ratio) * ratio ** abs(x) for x in range(-REACH, REACH + 1)}


def geometric(scale: float) -> dict[int, float]:
    ratio = math.exp(-1 / scale)
    return {x: (1 - ratio) * ratio**x for x in range(2 * REACH)}


Story = tuple[bool, ...]


def stories(answers: tuple[int, ...], hits: int, scales: tuple[float, float]) -> dict[Story, float]:
    """How probable each sequence of above and below is, for a threshold of 0."""
    noise = sorted(discrete_laplace(scales[1]).items())
    tails = {x: sum(p for y, p in noise if y >= x) for x in range(-2 * REACH, 2 * REACH + 1)}
    found: dict[Story, float] = defaultdict(float)
    for rho, weight in discrete_laplace(scales[0]).items():
        for story in product((False, True), repeat=len(answers)):
            seen: list[bool] = []
            p = weight
            for answer, is_above in zip(answers, story, strict=True):
                if sum(seen) < hits:
                    above = tails[rho - answer]
                    p *= above if is_above else 1 - above
                    seen.append(is_above)
            if len(seen) == len(answers) or sum(story) == sum(seen):
                found[tuple(seen)] += p / 2 ** (len(answers) - len(seen))
    return found


class TestSparseVector:
    @pytest.mark.parametrize("hits", [1, 2])
    @pytest.mark.parametrize("monotone", [False, True])
    def test_no_story_tells_more(self, hits: int, monotone: bool) -> None:
        scales = (3.0, 4.0)
        bound = float(SparseVector(*scales, hits, monotone=monotone).approximate()[0])
        moves = product((0, 1) if monotone else (-1, 0, 1), repeat=3)
        ours = stories((0, 0, 0), hits, scales)
        worst = 0.0
        for move in moves:
            theirs = stories(move, hits, scales)
            worst = max(worst, *(abs(math.log(ours[s] / theirs[s])) for s in ours))
        assert bound / 3 < worst <= bound

    def test_epsilon_by_the_formula(self) -> None:
        assert SparseVector(2, 8, 3, sensitivity=2).approximate() == (Fraction(5, 2), Fraction(0))
        assert SparseVector(2, 8, 3, monotone=True).approximate() == (Fraction(7, 8), Fraction(0))
        assert SparseVector(2, 8, 3).for_group(2) == SparseVector(2, 8, 3, sensitivity=2)

    @pytest.mark.parametrize("monotone", [1, None, "yes"])
    def test_a_fact_is_true_or_false(self, monotone: bool) -> None:
        with pytest.raises(InvalidArgument, match=r"^monotone = "):
            SparseVector(1, 1, 1, monotone=monotone)
        with pytest.raises(InvalidArgument, match=r"^monotone = "):
            ReportNoisyMax(1, monotone=monotone)

    @pytest.mark.parametrize("bad", [0, -1, 1.5, math.nan, True, "2"])
    def test_hits_are_counted(self, bad: int) -> None:
        with pytest.raises(InvalidArgument, match=r"^hits = "):
            SparseVector(1, 1, bad)

    def test_nothing_is_known_from_below(self) -> None:
        assert (1 * SparseVector(4, 4, 1)).interval(1e-6).lower == 0


def winners(scores: tuple[int, ...], noise: dict[int, float]) -> Iterator[float]:
    """The probability that each score is the largest; the first one wins a tie."""
    for winner, score in enumerate(scores):
        found = 0.0
        for own, weight in noise.items():
            lose = [
                sum(p for x, p in noise.items() if x + rival + (other < winner) <= own + score)
                for other, rival in enumerate(scores)
                if other != winner
            ]
            found += weight * math.prod(lose)
        yield found


class TestReportNoisyMax:
    @pytest.mark.parametrize("kind", [discrete_laplace, geometric])
    @pytest.mark.parametrize("monotone", [False, True])
    def test_no_winner_tells_more(self, kind: object, monotone: bool) -> None:
        noise = (geometric if kind is geometric else discrete_laplace)(3.0)
        bound = float(ReportNoisyMax(3, monotone=monotone).approximate()[0])
        ours = list(winners((0, 0, 1), noise))
        worst = 0.0
        for move in product((0, 1) if monotone else (-1, 0, 1), repeat=3):
            theirs = winners((move[0], move[1], 1 + move[2]), noise)
            worst = max(worst, *(abs(math.log(p / q)) for p, q in zip(ours, theirs, strict=True)))
        assert bound / 2 < worst <= bound * (1 + 1e-9)

    def test_permute_and_flip_reaches_its_epsilon(self) -> None:
        interval = (1 * ReportNoisyMax(4)).interval(1e-9)
        assert interval.upper - interval.lower < 1e-3 * interval.upper
        assert (1 * ReportNoisyMax(4)).epsilon() == 0.5
        assert (1 * ReportNoisyMax(4, monotone=True)).epsilon() == 0.25


class TestThreshold:
    @pytest.mark.parametrize("keys", [1, 3])
    def test_a_lonely_key_leaks_with_the_stated_probability(self, keys: int) -> None:
        noise = discrete_laplace(3.0)
        each = sum(p for x, p in noise.items() if 1 + x >= 20)
        term = Threshold.discrete_laplace(scale=3, threshold=20, keys=keys)
        assert float(term.leak_probability) == pytest.approx(1 - (1 - each) ** keys, rel=1e-8)
        assert term.privacy_loss == 1 * DiscreteLaplace(3, keys)

    def test_rounded_noise(self) -> None:
        """1 + round(Z) reaches 30 if Z does 28.5."""
        term = Threshold.rounded_gaussian(stddev=5, threshold=30, keys=4)
        each = math.erfc(28.5 / 5 / math.sqrt(2)) / 2
        assert float(term.leak_probability) == pytest.approx(4 * each, rel=1e-6)
        assert term.privacy_loss == 1 * Gaussian(2.5)
        ((three, _),) = Threshold.rounded_gaussian(
            stddev=5, threshold=30, keys=3
        ).privacy_loss.terms
        assert isinstance(three, Gaussian)
        assert three.multiplier**2 <= Fraction(25, 3)

    @pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.6, 1.0])
    def test_a_release_of_two_keys(self, epsilon: float) -> None:
        """One that many share, and one that the unit has alone: what is shown, and its count."""
        noise, others, limit = discrete_laplace(2.0), 9, 6
        term = Threshold.discrete_laplace(scale=2, threshold=limit, keys=2)

        def shown(count: int) -> dict[int | None, float]:
            shown_law: dict[int | None, float] = defaultdict(float)
            for x, p in noise.items():
                shown_law[count + x if count and count + x >= limit else None] += p
            return shown_law

        ours = {(a, b): p * q for a, p in shown(others + 1).items() for b, q in shown(1).items()}
        theirs = {(a, b): p * q for a, p in shown(others).items() for b, q in shown(0).items()}
        for one, other in ((ours, theirs), (theirs, ours)):
            leaked = sum(
                max(0.0, p - math.exp(epsilon) * other.get(s, 0.0)) for s, p in one.items()
            )
            assert leaked <= (1 * term).delta(epsilon) + 1e-12

    def test_leaks_and_noise_add_up(self) -> None:
        term = Threshold(Gaussian(2), 1e-3)
        assert _bounds.failure_probability(3 * term) == Fraction(3, 1000)
        assert known(_bounds.zcdp(1 * term)) == Fraction(1, 8)
        alone = (1 * Gaussian(2)).delta(1)
        assert (1 * term).delta(1) == pytest.approx(1e-3 + 0.999 * alone, rel=2e-3)
        assert Threshold(Pure(1), 0.01).approximate() == (Fraction(1), Fraction(1, 100))
        assert (1 * Threshold(Pure(1), 0)).epsilon(1e-6) == pytest.approx(1, rel=1e-4)

    def test_a_sample_is_taken_around_it(self) -> None:
        with pytest.raises(WrongUnit, match="a sample is taken around"):
            Threshold(PoissonSampled(Gaussian(1), 0.1), 0.01)
        with pytest.raises(WrongUnit):
            Threshold(RandomizedResponse(1), 0.01)
        sampled = PoissonSampled(Threshold(Gaussian(1), 1e-9), 0.1)
        plain = PoissonSampled(Gaussian(1), 0.1)
        assert (9 * sampled).epsilon(1e-6) == pytest.approx((9 * plain).epsilon(1e-6), rel=5e-3)

    @pytest.mark.parametrize("bad", [1, 0, -3, 2.5, math.nan, True])
    def test_a_threshold_is_whole_and_above_one(self, bad: int) -> None:
        with pytest.raises(InvalidArgument, match=r"^threshold = "):
            Threshold.discrete_laplace(scale=1, threshold=bad, keys=1)
        with pytest.raises(InvalidArgument, match=r"^threshold = "):
            Threshold.rounded_gaussian(stddev=1, threshold=bad, keys=1)
