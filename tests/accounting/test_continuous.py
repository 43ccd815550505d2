"""The probabilities of cells between losses, against balls: no radius may be too small.

The true values are computed here in another way, from tails in ball arithmetic at 1400 bits and
from exact parameters. The floats of a piece may be off by as much as its docstring allows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from flint import arb, fmpq
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from discreet._arrays import FloatArray
from discreet._exact import precision
from discreet.accounting.pld import _dominating_pairs
from discreet.accounting.pld._continuous import (
    ROUND,
    GaussianLoss,
    LaplaceLoss,
    Masses,
    Piece,
    Scaled,
    Subsampled,
    Swapped,
    Symmetrized,
    ndtr_radius,
    similarity,
    stacked,
    subsampled_loss,
)
from tests.accounting.strategies import on_grid

BITS = 1400  # masses down to 1e-300 are told apart from 1
UNSEEN = arb(10) ** -285  # below what any delta may be
NO_EDGES = (np.array([]), np.array([]))
ULPS = 2.0  # what an elementary function of NumPy may be off by, in 2^-53 of its value


def exact(number: float | Fraction | np.float64) -> arb:
    return arb(fmpq(*Fraction(number).as_integer_ratio()))


Two = tuple[arb, arb]


@dataclass(frozen=True)
class Smooth:
    """A smooth part of a law in balls: its whole probability under P and under Q, the parts of
    both above a loss, and how to build it in the library."""

    whole: Two
    above: Callable[[arb], Two]
    piece: Piece


def bell(mu_squared: Fraction) -> Smooth:
    mu, root = exact(mu_squared).sqrt(), arb(2).sqrt()

    def above(loss: arb) -> Two:
        p, q = (((loss / mu + sign * mu / 2) / root).erfc() / 2 for sign in (-1, 1))
        return p, q

    (piece,) = on_grid(_dominating_pairs.normal(mu_squared)).pieces
    return Smooth((arb(1), arb(1)), above, piece)


def ramp(width: Fraction) -> Smooth:
    """All of a law of bounded range."""
    (piece,) = _dominating_pairs.bounded_range(width).pieces
    return _ramp(width, 1 / -(-exact(width)).expm1(), piece)


def half_ramp(width: Fraction) -> Smooth:
    """The outcomes between the centres of two Laplace laws."""
    (piece,) = _dominating_pairs.laplace(width).pieces
    return _ramp(width, arb(1) / 2, piece)


def _ramp(width: Fraction, weight: arb, piece: Piece) -> Smooth:
    end = exact(width)

    def above(loss: arb) -> Two:
        if loss >= end:
            return arb(0), arb(0)
        loss = loss.max(-end)
        p = -((loss - end) / 2).expm1()
        q = ((-loss - end) / 2).exp() - (-end).exp()
        return weight * p, weight * q

    return Smooth(above(-end), above, piece)


def thin(smooth: Smooth, rate: Fraction) -> Smooth:
    share = exact(rate)

    def above(loss: arb) -> Two:
        grown = 1 + loss.expm1() / share
        p, q = smooth.above(grown.log()) if grown > 0 else smooth.whole
        return (1 - share) * q + share * p, q

    p, q = smooth.whole
    return Smooth(((1 - share) * q + share * p, q), above, Subsampled(smooth.piece, float(rate)))


def back(smooth: Smooth) -> Smooth:
    def above(loss: arb) -> Two:
        p, q = smooth.above(-loss)
        return smooth.whole[1] - q, smooth.whole[0] - p

    return Smooth((smooth.whole[1], smooth.whole[0]), above, Swapped(smooth.piece))


def weigh(smooth: Smooth, weight: Fraction) -> Smooth:
    def scaled(both: Two) -> Two:
        return exact(weight) * both[0], exact(weight) * both[1]

    piece = Scaled(smooth.piece, float(weight))
    return Smooth(scaled(smooth.whole), lambda loss: scaled(smooth.above(loss)), piece)


def fold(smooth: Smooth) -> Smooth:
    p_up, q_up = smooth.above(arb(0))

    def above(loss: arb) -> Two:
        if loss >= 0:
            return smooth.above(loss)
        p, q = smooth.above(-loss)
        return p_up + q_up - q, q_up + p_up - p

    return Smooth((p_up + q_up, p_up + q_up), above, Symmetrized(smooth.piece))


def log_uniform(least: float, most: float) -> st.SearchStrategy[Fraction]:
    logs = st.floats(np.log10(least), np.log10(most))
    return logs.map(lambda log: Fraction(f"{10.0**log:.12g}"))


rates = log_uniform(1e-9, 0.5) | log_uniform(1e-6, 0.5).map(lambda rate: 1 - rate)

WRAPPINGS: tuple[Callable[[Smooth, Fraction], Smooth], ...] = (
    thin,
    lambda smooth, _: back(smooth),
    weigh,
    lambda smooth, _: fold(smooth),
)


@st.composite
def smooths(draw: st.DrawFn, wrappings: int = 3) -> Smooth:
    with precision(BITS):
        smooth = draw(
            log_uniform(1e-8, 200).map(lambda mu: bell(mu * mu))
            | log_uniform(1e-8, 800).map(ramp)
            | log_uniform(1e-8, 800).map(half_ramp)
        )
        for _ in range(draw(st.integers(0, wrappings))):
            smooth = draw(st.sampled_from(WRAPPINGS))(smooth, draw(rates))
    return smooth


@st.composite
def edges_for(draw: st.DrawFn, piece: Piece) -> FloatArray:
    """Near where the piece lies and far off it, wide apart and hardly apart."""
    seen = piece.coarse_grid(draw(st.sampled_from([1e-3, 1e-20, 1e-280])))
    found: list[float] = []
    for _ in range(draw(st.integers(1, 4))):
        around = float(seen[draw(st.integers(0, len(seen) - 1))])
        spread = abs(float(seen[-1] - seen[0])) * 10.0 ** draw(st.integers(-14, 0))
        shifts = draw(st.lists(st.floats(-1, 1), max_size=4))
        found += [around, *(around + spread * shift for shift in shifts)]
    found += draw(st.lists(st.sampled_from([0.0, 1e-9, -1e-9, 1e-300]), max_size=2))
    return np.unique(np.array(found))


def assert_honest(smooth: Smooth, edges: FloatArray, blur: FloatArray, moved: FloatArray) -> None:
    """For edges that are off by ``moved`` times their blur."""
    masses = smooth.piece.masses(edges, blur)
    with precision(BITS):
        true = [
            exact(edge) + exact(b) * exact(m) for edge, b, m in zip(edges, blur, moved, strict=True)
        ]
        tails = [smooth.whole, *(smooth.above(edge) for edge in true), (arb(0), arb(0))]
        cells = [(a[0] - b[0], a[1] - b[1]) for a, b in pairwise(tails)]
        assert_contains(masses, cells)


def assert_contains(found: Masses, cells: Sequence[Two]) -> None:
    assert len(found.q) == len(cells)
    for place, (p, q) in enumerate(cells):
        for name, value, radius, truth in (
            ("q", found.q, found.q_radius, q),
            ("gap", found.gap, found.gap_radius, p - q),
            ("p", found.p, found.p_radius, p),
        ):
            assert not np.isnan(value[place]), (name, place)
            assert radius[place] >= 0, (name, place)
            if np.isfinite(radius[place]):
                off = abs(exact(value[place]) - truth)
                allowed = exact(radius[place]) + UNSEEN
                assert off <= allowed, (name, place, value[place], radius[place])


class TestMasses:
    @given(st.data())
    @settings(max_examples=100)
    def test_no_radius_is_too_small(self, data: st.DataObject) -> None:
        smooth = data.draw(smooths(), label="smooth")
        edges = data.draw(edges_for(smooth.piece), label="edges")
        nowhere = np.zeros(len(edges))
        assert_honest(smooth, edges, nowhere, nowhere)

    @given(st.data())
    @settings(max_examples=60)
    def test_nor_of_edges_that_are_off(self, data: st.DataObject) -> None:
        smooth = data.draw(smooths(wrappings=2), label="smooth")
        edges = data.draw(edges_for(smooth.piece), label="edges")
        gaps = np.diff(edges, prepend=edges[0] - 1, append=edges[-1] + 1)
        room = np.minimum(gaps[1:], gaps[:-1]) / 2
        share = data.draw(st.sampled_from([1e-16, 1e-12, 1e-6, 1e-2]))
        moved = [data.draw(st.floats(-1, 1)) for _ in edges]
        assert_honest(smooth, edges, np.minimum(share, room), np.array(moved))

    @given(log_uniform(1e-8, 0.5), rates, rates, st.integers(-40, -20), st.sampled_from([1, 200]))
    @settings(max_examples=80)
    def test_edges_next_to_the_lowest_loss(
        self, near: Fraction, rate: Fraction, outer: Fraction, log: int, mu: int
    ) -> None:
        """There an edge tells little about what it was before."""
        with precision(BITS):
            once = thin(bell(Fraction(mu * mu)), rate)
            lowest = (-exact(rate)).log1p() + exact(2.0**log * (1 + float(near)))
            for smooth in (once, thin(once, outer), thin(back(back(once)), outer)):
                edge = lowest if smooth is once else (exact(outer) * lowest.expm1()).log1p()
                edges = np.array([float(edge), float(edge) + 0.1])
                assert_honest(smooth, edges, np.zeros(2), np.zeros(2))

    @pytest.mark.parametrize("rate", [1 - 1e-12, 1 - 1e-14, 0.5])
    def test_widths_beyond_what_a_sample_can_tell(self, rate: float) -> None:
        with precision(BITS):
            smooth = thin(ramp(Fraction(60)), Fraction(rate))
        edges = np.linspace(-33, 33, 60)
        assert_honest(smooth, edges, np.zeros(60), np.zeros(60))
        assert np.isfinite(smooth.piece.masses(edges, np.zeros(60)).p_radius).all()

    @pytest.mark.parametrize("mu", [Fraction(1, 10**8), Fraction(1), Fraction(200)])
    def test_mass_below_the_edges_of_a_folded_sample(self, mu: Fraction) -> None:
        """Several edges have no edge before them, and are one and the same."""
        with precision(BITS):
            smooth = thin(fold(bell(mu * mu)), Fraction(1, 10))
        for last in (float(mu) / 100, float(mu), 8 * float(mu)):
            edges = np.array([-5.0, -4.0, -3.0, last])
            assert_honest(smooth, edges, np.zeros(4), np.zeros(4))

    @pytest.mark.parametrize("width", [Fraction(1, 10), Fraction(40)])
    def test_beyond_a_ramp_there_is_nothing(self, width: Fraction) -> None:
        (piece,) = _dominating_pairs.bounded_range(width).pieces
        end = float(width) * (1 + 1e-13)
        masses = piece.masses(np.array([-end, end]), np.full(2, 1e-16))
        assert masses.q.tolist()[::2] == masses.gap.tolist()[::2] == [0.0, 0.0]
        assert masses.q_radius.tolist()[::2] == masses.gap_radius.tolist()[::2] == [0.0, 0.0]

    @pytest.mark.parametrize("off", [0.0, np.inf])
    def test_infinite_edges(self, off: float) -> None:
        """Nested samplings have some that are off by infinitely much."""
        for piece in (LaplaceLoss(1.0, 0.5), GaussianLoss(1.0)):
            masses = piece.masses(np.array([-np.inf, np.inf]), np.full(2, off))
            assert masses.p.tolist() == [0.0, float(piece.masses(*NO_EDGES).p[0]), 0.0]

    @given(smooths())
    @settings(max_examples=60)
    def test_no_edges(self, smooth: Smooth) -> None:
        assert_honest(smooth, *NO_EDGES, np.array([]))

    @given(smooths(wrappings=1), st.sampled_from([1e-3, 1e-10, 1e-100]))
    @settings(max_examples=60)
    def test_a_look_leaves_out_no_more_than_it_says(self, smooth: Smooth, tail: float) -> None:
        """Looks are mere choices, but grids go no further than they do."""
        edges = smooth.piece.coarse_grid(tail)
        assert (np.diff(edges) > 0).all()
        with precision(BITS):
            p, q = smooth.above(exact(edges[-1]))
            assert p <= exact(2 * tail + 1e-12) + UNSEEN
            assert q <= exact(2 * tail + 1e-12) + UNSEEN


class TestTogether:
    """Several pieces that are alike are what each is by itself."""

    KINDS: tuple[Callable[[float], Piece], ...] = (
        GaussianLoss,
        lambda x: LaplaceLoss(x, 0.5 + x / 100),
        lambda x: Subsampled(GaussianLoss(x), x / 10),
        lambda x: Swapped(Subsampled(LaplaceLoss(x, 0.5), 1 - x / 10)),
        lambda x: Scaled(Swapped(GaussianLoss(x)), x / 5),
        lambda x: Subsampled(Scaled(Subsampled(GaussianLoss(3 * x), 0.3), 0.5), x / 100),
    )

    @pytest.mark.parametrize("kind", KINDS)
    def test_rows(self, kind: Callable[[float], Piece]) -> None:
        each = [kind(x) for x in (1.0, 1.01, 1.06)]
        whole = stacked(each)
        edges = whole.coarse_grid(1e-20)
        blur = np.linspace(0, 1e-9, len(edges))
        rows = whole.masses(edges, blur)
        for place, piece in enumerate(each):
            alone = piece.masses(edges, blur)
            for name in ("q", "gap", "q_radius", "gap_radius", "p", "p_radius"):
                assert np.array_equal(getattr(rows, name)[place], getattr(alone, name)), name

    def test_a_look_is_that_of_the_widest(self) -> None:
        whole = stacked([Subsampled(GaussianLoss(x), 0.1) for x in (1.0, 1.1)])
        assert (
            whole.coarse_grid(1e-9).tolist()
            == Subsampled(GaussianLoss(1.1), 0.1).coarse_grid(1e-9).tolist()
        )

    def test_similarity_groups_like_pairs(self) -> None:
        assert similarity(Subsampled(GaussianLoss(1.0), 0.1)) == similarity(
            Subsampled(GaussianLoss(1.01), 0.101)
        )
        one, other = Symmetrized(GaussianLoss(1.0)), Symmetrized(GaussianLoss(1.0))
        assert similarity(one) != similarity(other)
        assert similarity(GaussianLoss(1.0)) != similarity(GaussianLoss(4.0))
        assert similarity(GaussianLoss(1.0)) != similarity(Swapped(GaussianLoss(1.0)))


class TestWhatScipyMayBeOffBy:
    def test_the_normal_law(self) -> None:
        """It squares size / sqrt(2), each in floats: worst where these are near powers of 2."""
        random = np.random.default_rng(0)
        hard = [2**power * np.sqrt(2) * (1 + 1e-3 * random.random(2000)) for power in range(5)]
        found_hard = np.array([22.631927886855323, 22.663647236083435])
        sizes = np.concatenate(
            [np.linspace(0, 37, 4001), np.logspace(-300, 0, 500), found_hard, *hard]
        )
        radius, root = ndtr_radius(sizes), arb(2).sqrt()
        with precision(256):
            for size, found, allowed in zip(sizes, ndtr(-sizes), radius, strict=True):
                true = (exact(size) / root).erfc() / 2
                assert abs(exact(found) / true - 1) <= exact(allowed), size

    FUNCTIONS = (
        ("exp", np.exp, arb.exp, -700, 700),
        ("expm1", np.expm1, arb.expm1, -30, 700),
        ("expm1", np.expm1, arb.expm1, -1e-6, 1e-6),
        ("log1p", np.log1p, arb.log1p, -0.99, 2),
        ("log1p", np.log1p, arb.log1p, -1e-6, 1e-6),
        ("log1p", np.log1p, arb.log1p, 2, 1e9),
        ("log", np.log, arb.log, 1e-9, 2),
        ("sin", np.sin, arb.sin, -3, 3),
        ("cos", np.cos, arb.cos, -3, 3),
        ("sin", np.sin, arb.sin, -1e7, 1e7),
        ("cos", np.cos, arb.cos, -1e7, 1e7),
        ("arctan", lambda x: np.arctan2(x, 1.0), arb.atan, -2, 2),
    )

    @pytest.mark.parametrize(("name", "ours", "true", "low", "high"), FUNCTIONS)
    def test_elementary_functions(
        self,
        name: str,
        ours: Callable[[FloatArray], FloatArray],
        true: Callable[[arb], arb],
        low: float,
        high: float,
    ) -> None:
        """The radii take each to be right to about one unit in the last place; sine and cosine
        in absolute terms."""
        values = np.random.default_rng(0).uniform(low, high, 3000)
        with precision(256):
            for value, found in zip(values, ours(values), strict=True):
                right = true(exact(value))
                size = arb(1) if name in ("sin", "cos") else abs(right)
                assert abs(exact(found) - right) <= exact(ULPS * ROUND) * size, value


class TestThinned:
    """One loss after sampling; atoms' losses are to be right to 2^-46."""

    @given(st.floats(-60, 700), rates)
    @example(31.0, Fraction(1, 10**25))
    @example(31.0, Fraction(1, 10**17))
    @example(40.0, Fraction(1, 10**20))
    @example(-30.0, 1 - Fraction(1, 10**10))
    @example(-38.0, 1 - Fraction(1, 10**17))
    @settings(max_examples=300)
    def test_the_loss(self, loss: float, rate: Fraction) -> None:
        found = float(subsampled_loss(np.array([loss]), float(rate), float(1 - rate))[0])
        with precision(2400):
            true = (1 + exact(rate) * exact(loss).expm1()).log()
            assert abs(exact(found) - true) <= exact(2.0**-46) * abs(true) + UNSEEN


class TestConstructors:
    """The floats are right to what the docstrings say."""

    @given(log_uniform(1e-8, 800))
    @settings(max_examples=100)
    def test_ramps(self, width: Fraction) -> None:
        with precision(400):
            for smooth in (ramp(width), half_ramp(width)):
                piece = smooth.piece
                assert isinstance(piece, LaplaceLoss)
                assert isinstance(piece.width, float)
                assert isinstance(piece.weight, float)
                assert abs(exact(piece.width) / exact(width) - 1) <= exact(2.0**-50)
                true = smooth.whole[0] / -(-exact(width)).expm1()
                assert abs(exact(piece.weight) / true - 1) <= exact(2.0**-50)

    @given(log_uniform(1e-16, 40000))
    @settings(max_examples=100)
    def test_gaussian_loss_has_the_exact_mu(self, mu_squared: Fraction) -> None:
        (piece,) = on_grid(_dominating_pairs.normal(mu_squared)).pieces
        assert isinstance(piece, GaussianLoss)
        assert isinstance(piece.mu, float)
        with precision(400):
            assert abs(exact(piece.mu) / exact(mu_squared).sqrt() - 1) <= exact(2.0**-52)
