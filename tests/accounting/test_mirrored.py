"""Which terms are mirrored, why a Poisson sample depends on it, and how `renyi` treats the others.

The sum for a removed unit bounds an added unit only if exchanging the neighbours mirrors the
losses of a pair whose divergences `renyi` gives. See docs/proofs/terms.md.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet._arrays import FloatArray
from discreet._exact import precision, upper_fraction
from discreet.accounting import (
    BoundedRange,
    Gaussian,
    PoissonSampled,
    Pure,
    RandomAllocation,
    Shuffled,
    Term,
    Threshold,
    Zcdp,
    _bounds,
)
from discreet.accounting._bounds import known
from discreet.accounting.pld._dominating_pairs import Pair, Side, reverse
from tests.accounting.examples import ALL_TERMS

ORDERS = [Fraction(11, 10), Fraction(2), Fraction(5), Fraction(20)]
SURE = 1e-9


def only_pair(term: Term) -> Pair:
    (pair,) = known(term.pairs(Side.UPPER))
    return pair


def renyi(term: Term, order: Fraction) -> float:
    with precision(256):
        return float(upper_fraction(known(_bounds.renyi(1 * term, order))))


MIRRORED = [
    term
    for term in ALL_TERMS
    if _bounds.is_mirrored(1 * term) and renyi(term, Fraction(2)) < 30  # so that floats tell it
]


def outcomes(pair: Pair) -> tuple[FloatArray, FloatArray]:
    """Atoms of finite losses, and cells of the pieces, as if only the cell were published."""
    finite = np.isfinite(pair.atoms.loss)
    p, q = [pair.atoms.p[finite]], [pair.atoms.q[finite]]
    for piece in pair.pieces:
        look = piece.coarse_grid(1e-40)
        edges = np.linspace(look[0], look[-1], 20_001)
        seen = piece.masses(edges, np.zeros(len(edges)))
        p.append(np.maximum(seen.p - seen.p_radius, 0.0))
        q.append(seen.q + seen.q_radius)
    return np.concatenate(p), np.concatenate(q)


def divergence(pair: Pair, order: Fraction) -> float:
    """The Renyi divergence that the outcomes show, apart from infinite losses."""
    p, q = (side / side.sum() for side in outcomes(pair))
    held = (p > 1e-290) & (q > 0)
    power = float(order) * np.log(p[held]) + (1 - float(order)) * np.log(q[held])
    most = float(power.max())
    return (most + math.log(float(np.exp(power - most).sum()))) / (float(order) - 1)


def parts(term: Term) -> list[tuple[Term, int]]:
    """Terms whose pairs together are just the pair of this one, apart from failures. The pair that
    a sum's is bounded by on a grid dominates it, and is not mirrored itself."""
    if isinstance(term, Shuffled | Threshold):
        return [(one, n * m) for inner, n in term.privacy_loss.terms for one, m in parts(inner)]
    return [(term, 1)]


def exact_divergence(term: Term, order: Fraction, *, back: bool = False) -> float:
    """The divergence by the term's own pair, or with the neighbours exchanged.

    Divergences of independent answers add up.
    """
    return math.fsum(
        n * divergence(reverse(only_pair(one)) if back else only_pair(one), order)
        for one, n in parts(term)
    )


class TestTable:
    def test_the_table_has_eight_mirrored_terms(self) -> None:
        assert len({type(term) for term in MIRRORED}) >= 8

    @pytest.mark.parametrize("term", MIRRORED, ids=repr)
    def test_renyi_is_nowhere_below_that_of_the_pair(self, term: Term) -> None:
        for order in ORDERS:
            assert exact_divergence(term, order) <= renyi(term, order) * (1 + 1e-9) + SURE

    @pytest.mark.parametrize("term", MIRRORED, ids=repr)
    def test_exchanging_the_neighbours_mirrors_the_losses(self, term: Term) -> None:
        for order in ORDERS[:3]:
            there = exact_divergence(term, order)
            back = exact_divergence(term, order, back=True)
            assert there == pytest.approx(back, rel=1e-5, abs=SURE)


class TestOthers:
    @pytest.mark.parametrize("eta", [0.5, 2, 5])
    def test_a_bounded_range_tells_less_than_its_pair_has(self, eta: float) -> None:
        """The pair is the worst of all intervals at each epsilon by itself: no mechanism is."""
        term = BoundedRange(eta)
        assert divergence(only_pair(term), Fraction(5)) > 1.01 * renyi(term, Fraction(5))
        assert not _bounds.is_mirrored(1 * term)
        assert not _bounds.is_mirrored(Pure(1) + term)

    def test_those_of_two_pairs_or_none(self) -> None:
        for term in (RandomAllocation(Gaussian(1), 5), PoissonSampled(Gaussian(1), 0.5), Zcdp(1)):
            assert not _bounds.is_mirrored(1 * term)

    def test_a_threshold_is_as_its_noise_is(self) -> None:
        assert _bounds.is_mirrored(1 * Threshold(Gaussian(1), 1e-9))
        assert not _bounds.is_mirrored(1 * Threshold(BoundedRange(1), 1e-9))


class TestSamples:
    @pytest.mark.parametrize("order", [Fraction(3, 2), Fraction(5), Fraction(20)])
    @pytest.mark.parametrize("rate", [Fraction(1, 20), Fraction(2, 5)])
    @pytest.mark.parametrize("failure", [0, Fraction(1, 10**9)])
    def test_a_sample_of_a_mirrored_sum_costs_no_less_than_shown(
        self, failure: Fraction, rate: Fraction, order: Fraction
    ) -> None:
        """In both orders of the neighbours, of all outcomes of a bit beside those of a normal
        value; the pair on a grid is not mirrored, and is not used for this."""
        bit, normal = outcomes(only_pair(Pure(0.5))), outcomes(only_pair(Gaussian(3)))
        p, q = (
            np.outer(one / one.sum(), two / two.sum()).ravel()
            for one, two in zip(bit, normal, strict=True)
        )
        mixed, power = float(1 - rate) * q + float(rate) * p, float(order)
        loss = Pure(0.5) + Gaussian(3)
        divergence = renyi(
            PoissonSampled(Threshold(loss, failure) if failure else loss, rate), order
        )
        for one, two in ((mixed, q), (q, mixed)):
            held = (one > 0) & (two > 0)
            log_moment = np.logaddexp.reduce(
                power * np.log(one[held]) + (1 - power) * np.log(two[held])
            )
            shown = log_moment / (power - 1)
            assert 0 < shown <= divergence * (1 + 1e-9)

    @pytest.mark.parametrize("order", [2, 5, 20])
    @pytest.mark.parametrize("rate", [0.05, 0.4])
    @pytest.mark.parametrize("eta", [0.25, 0.5])
    def test_the_sum_for_a_unit_that_goes_is_not_enough(
        self, eta: float, rate: float, order: int
    ) -> None:
        """For one that comes a bound is taken that holds for any mechanism, which is larger."""
        inner = BoundedRange(eta)
        moments = [
            math.comb(order, n)
            * (1 - rate) ** (order - n)
            * rate**n
            * math.exp((n - 1) * (renyi(inner, Fraction(n)) if n > 1 else 0.0))
            for n in range(order + 1)
        ]
        gone = min(math.log(sum(moments)) / (order - 1), renyi(inner, Fraction(order)))
        divergence = renyi(PoissonSampled(inner, rate), Fraction(order))
        assert divergence > 1.001 * gone

    @given(
        st.lists(st.tuples(st.floats(0.001, 8), st.floats(0.01, 1)), min_size=1, max_size=5),
        st.floats(0.001, 0.999),
        st.floats(1.001, 30),
    )
    def test_among_mirrored_losses_removal_costs_more(
        self, losses: list[tuple[float, float]], rate: float, order: float
    ) -> None:
        """Outcome by outcome, each loss with its mirror image."""
        size = np.array([one for one, _ in losses])
        weight = np.array([share / (1 + math.exp(-one)) for one, share in losses])
        p = np.concatenate([weight, weight * np.exp(-size)])
        q = np.concatenate([weight * np.exp(-size), weight])
        p, q = p / p.sum(), q / q.sum()
        mixed = (1 - rate) * q + rate * p
        ratio = np.log1p(rate * (p / q - 1))
        gone = math.fsum(q * np.expm1(order * ratio))
        come = math.fsum(q * np.expm1((1 - order) * ratio))
        assert math.fsum(mixed) == pytest.approx(1)
        assert come <= gone * (1 + 1e-9) + 1e-12
