"""Points on a grid against their pair, in balls: above it or below at every epsilon."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from discreet._arrays import IndexArray
from discreet._exact import precision
from discreet.accounting.pld import _dominating_pairs
from discreet.accounting.pld._continuous import Scaled
from discreet.accounting.pld._discretize import (
    Cells,
    Points,
    _inscribed_polygon,
    _Outcomes,
    discretize_lower,
    discretize_upper,
)
from discreet.accounting.pld._dominating_pairs import Atoms, Pair
from tests.accounting import test_continuous as pieces
from tests.accounting.strategies import on_grid
from tests.accounting.test_continuous import Smooth, Two, exact, log_uniform, rates

BITS = 2400  # deltas down to 1e-300 are told from e^600 q
UNSEEN = arb(2) ** -600


@dataclass(frozen=True)
class Worst:
    """A pair in balls: the probabilities of single outcomes, and smooth parts."""

    atoms: tuple[Two, ...]
    smooths: tuple[Smooth, ...]
    pair: Pair

    def hockey_stick(self, epsilon: arb | None) -> arb:
        """The integral of (p - e^epsilon q)+; of p, where there is no epsilon."""
        if epsilon is None:
            return sum((p for p, _ in self.atoms), arb(0)) + sum(
                (smooth.whole[0] for smooth in self.smooths), arb(0)
            )
        x, total = epsilon.exp(), arb(0)
        for p, q in self.atoms:
            total += (p - x * q).max(arb(0))
        for smooth in self.smooths:
            p, q = smooth.above(epsilon)
            total += p - x * q
        return total


def normal(mu_squared: Fraction) -> Worst:
    return Worst((), (pieces.bell(mu_squared),), on_grid(_dominating_pairs.normal(mu_squared)))


def bounded_range(width: Fraction) -> Worst:
    return Worst((), (pieces.ramp(width),), _dominating_pairs.bounded_range(width))


def laplace(epsilon: Fraction) -> Worst:
    low = (-exact(epsilon)).exp() / 2
    atoms = (arb(1) / 2, low), (low, arb(1) / 2)
    return Worst(atoms, (pieces.half_ramp(epsilon),), _dominating_pairs.laplace(epsilon))


def randomized_response(epsilon: Fraction, leak: Fraction, others: int) -> Worst:
    odds, rest = exact(epsilon).exp(), 1 - exact(leak)
    total = odds + 1 + others
    atoms = [(rest * odds / total, rest / total), (rest / total, rest * odds / total)]
    atoms += [(rest / total, rest / total)] * others
    atoms += [(exact(leak), arb(0)), (arb(0), exact(leak))]
    pair = _dominating_pairs.randomized_response(epsilon, leak, others)
    return Worst(tuple(atoms), (), on_grid(pair))


def scattered(weights: Sequence[tuple[int, int]]) -> Worst:
    """Outcomes with any probabilities, off any grid."""
    whole_p, whole_q = (sum(weight[n] for weight in weights) for n in (0, 1))
    chances = [(Fraction(p, whole_p), Fraction(q, whole_q)) for p, q in weights]
    with precision(200):
        atoms = [
            (float((exact(p) / exact(q)).log()) if p and q else np.inf * (1 if p else -1), p, q)
            for p, q in chances
        ]
    pair = Pair(Atoms.of(*((loss, float(p), float(q)) for loss, p, q in atoms)))
    return Worst(tuple((exact(p), exact(q)) for p, q in chances), (), pair)


def sampled(worst: Worst, rate: Fraction) -> Worst:
    share = exact(rate)
    atoms = tuple(((1 - share) * q + share * p, q) for p, q in worst.atoms)
    smooths = tuple(pieces.thin(smooth, rate) for smooth in worst.smooths)
    return Worst(atoms, smooths, _dominating_pairs.sampled(worst.pair, rate))


def reverse(worst: Worst) -> Worst:
    atoms = tuple((q, p) for p, q in worst.atoms)
    return Worst(
        atoms, tuple(map(pieces.back, worst.smooths)), _dominating_pairs.reverse(worst.pair)
    )


def one_of(worsts: Sequence[Worst], share: Fraction) -> Worst:
    shares = [share, 1 - share]
    atoms = tuple(
        (exact(weight) * p, exact(weight) * q)
        for weight, worst in zip(shares, worsts, strict=True)
        for p, q in worst.atoms
    )
    smooths = tuple(
        pieces.weigh(smooth, weight)
        for weight, worst in zip(shares, worsts, strict=True)
        for smooth in worst.smooths
    )
    chances = [(float(weight), worst.pair) for weight, worst in zip(shares, worsts, strict=True)]
    return Worst(atoms, smooths, _dominating_pairs.one_of(chances))


def symmetric(worst: Worst) -> Worst:
    """Where what lies above 0 leaves room."""
    above = [(p, q) for p, q in worst.atoms if p > q]
    smooths = tuple(map(pieces.fold, worst.smooths))
    sure = sum((p + q for p, q in above), arb(0)) + sum((s.whole[0] for s in smooths), arb(0))
    assume(sure <= 1)
    rest = (1 - sure).max(arb(0))
    atoms = (*above, *((q, p) for p, q in above), (rest, rest))
    return Worst(atoms, smooths, _dominating_pairs.symmetric(worst.pair))


known_weights = st.lists(
    st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)).filter(any), min_size=2, max_size=6
).filter(lambda chances: any(p and q for p, q in chances))
simple: st.SearchStrategy[Worst] = (
    log_uniform(1e-6, 40).map(lambda mu: normal(mu * mu))
    | log_uniform(1e-6, 100).map(laplace)
    | log_uniform(1e-6, 100).map(bounded_range)
    | st.builds(
        randomized_response,
        log_uniform(1e-6, 100),
        st.just(Fraction(0)) | log_uniform(1e-9, 0.5),
        st.integers(0, 3),
    )
    | known_weights.map(scattered)
)


@st.composite
def worsts(draw: st.DrawFn) -> Worst:
    with precision(BITS):
        worst = draw(simple)
        for _ in range(draw(st.integers(0, 2))):
            match draw(st.sampled_from(["sampled", "reverse", "symmetric", "one of"])):
                case "sampled":
                    worst = sampled(worst, draw(rates))
                case "reverse":
                    worst = reverse(worst)
                case "symmetric":
                    worst = symmetric(worst)
                case _:
                    worst = one_of([worst, draw(simple)], draw(rates))
    return worst


@dataclass(frozen=True)
class Grid:
    step: float
    edges: list[IndexArray]
    epsilons: list[float]


@st.composite
def grids(draw: st.DrawFn, worst: Worst) -> Grid:
    """A step, cells of any widths where the pieces lie, and epsilons to look at."""
    looks = [piece.coarse_grid(1e-20) for piece in worst.pair.pieces]
    atoms = worst.pair.atoms.loss
    seen = np.concatenate([*looks, atoms[np.isfinite(atoms)], [0.0]])
    span = max(float(np.ptp(seen)), 1e-9)
    step = span / draw(st.integers(1, 400)) * draw(st.floats(0.5, 1.0))
    if worst.pair.lattice is not None and draw(st.booleans()):
        step = float(worst.pair.lattice) / draw(st.integers(1, 5))
    edges = [draw(indices_for(look / step)) for look in looks]
    ends = [step * float(np.abs(index).max() + 4) for index in edges]
    assume(max([float(np.abs(seen).max()) + step, *ends]) < 600)  # else nothing is computed
    points = st.floats(float(seen.min()) - 2 * step, float(seen.max()) + 2 * step)
    epsilons = draw(st.lists(points, min_size=4, max_size=12))
    epsilons += [float(i) * step * f for i in range(-2, 3) for f in (0.5, 1.0)]
    return Grid(step, edges, [epsilon for epsilon in epsilons if epsilon < 700])


@st.composite
def indices_for(
    draw: st.DrawFn, places: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> IndexArray:
    low, high = int(np.floor(places[0])), int(np.ceil(places[-1])) + 1
    low += draw(st.integers(0, (high - low) // 3))
    high -= draw(st.integers(0, (high - low) // 3))
    if draw(st.booleans()) and high - low < 300:
        return np.arange(low, high + 1, dtype=np.int64)
    inner = draw(st.lists(st.integers(low, high), max_size=30))
    return np.unique(np.array([low, high, *inner], dtype=np.int64))


def profile(points: Points, epsilon: arb | None) -> arb:
    """The same of the points."""
    total = exact(points.infinite)
    for index, mass in zip(points.index.tolist(), points.mass.tolist(), strict=True):
        loss = exact(points.offset) + index * exact(points.step)
        if epsilon is None:
            total += exact(mass)
        elif loss > epsilon:
            total -= exact(mass) * (epsilon - loss).expm1()
    return total


def epsilons_of(grid: Grid) -> list[arb | None]:
    return [None, *(exact(epsilon) for epsilon in grid.epsilons)]


def assert_fit(points: Points) -> None:
    """Numbers, and a convex profile."""
    assert np.isfinite(points.mass).all()
    assert (points.mass >= 0).all()
    assert 0 <= points.infinite < 1 + 1e-9


def upper_points(pair: Pair, grid: Grid) -> Points:
    both = zip(pair.pieces, grid.edges, strict=True)
    cells = [Cells.of(piece, index, grid.step) for piece, index in both]
    (points,) = discretize_upper(pair, cells, grid.step)
    return points


def check_raised(worst: Worst, grid: Grid) -> None:
    points = upper_points(worst.pair, grid)
    assert_fit(points)
    with precision(BITS):
        for epsilon in epsilons_of(grid):
            truth = worst.hockey_stick(epsilon)
            assert profile(points, epsilon) >= truth - UNSEEN, (epsilon, truth)


def check_lowered(worst: Worst, grid: Grid, tilt: float) -> None:
    points = discretize_lower(worst.pair, grid.edges, grid.step, tilt)
    assert_fit(points)
    with precision(BITS):
        for epsilon in epsilons_of(grid):
            truth = worst.hockey_stick(epsilon)
            assert profile(points, epsilon) <= truth + UNSEEN, (epsilon, truth)


class TestDomination:
    @given(st.data())
    @settings(max_examples=60)
    def test_raised_points_lie_above(self, data: st.DataObject) -> None:
        worst = data.draw(worsts(), label="worst")
        check_raised(worst, data.draw(grids(worst), label="grid"))

    @given(st.data(), st.sampled_from([1e-3, 0.1, 1.0, 10.0]))
    @settings(max_examples=60)
    def test_lowered_points_lie_below(self, data: st.DataObject, tilt: float) -> None:
        worst = data.draw(worsts(), label="worst")
        grid = data.draw(grids(worst), label="grid")
        check_lowered(worst, grid, tilt)

    @pytest.mark.long
    @given(st.data(), st.sampled_from([1e-3, 0.1, 1.0, 10.0]))
    @settings(max_examples=5000)
    def test_more_cases_of_upper_and_lower_grids(self, data: st.DataObject, tilt: float) -> None:
        worst = data.draw(worsts(), label="worst")
        grid = data.draw(grids(worst), label="grid")
        check_raised(worst, grid)
        check_lowered(worst, grid, tilt)

    def test_a_sample_of_nearly_all_of_a_bounded_range(self) -> None:
        with precision(BITS):
            worst = sampled(bounded_range(Fraction(60)), 1 - Fraction(1, 10**14))
        edges = np.arange(-33, 62, dtype=np.int64)
        grid = Grid(1.0, [edges], [0.0, 10.0, -20.0])
        check_raised(worst, grid)
        check_lowered(worst, grid, 0.1)

    def test_an_atom_next_to_a_point(self) -> None:
        """Taken for one on the grid, it moves by more than its own loss."""
        atoms = Atoms.of((-1e-14, 0.5, 0.5), (1e-14, 0.5, 0.5))
        with precision(BITS):
            true = [
                (exact(p), exact(p) * (-exact(loss)).exp())
                for loss, p in zip(atoms.loss, atoms.p, strict=True)
            ]
        worst = Worst(tuple(true), (), Pair(atoms))
        for tilt in (0.1, 1.0):
            check_lowered(worst, Grid(1.0, [], [0.0, -1e-15, 1e-15, 5e-15, -5e-15]), tilt)
        check_raised(worst, Grid(1.0, [], [0.0, -1e-15, 1e-15, 5e-15, -5e-15]))


class TestInscribed:
    """Outcomes of which little is sure: the polygon lies below the least that they may be."""

    @pytest.mark.parametrize("gap_radius", [0.0, 1e-4])
    @pytest.mark.parametrize("q_radius", [0.0, 1e-5])
    def test_all_radii_above_a_point_count(self, gap_radius: float, q_radius: float) -> None:
        loss = np.linspace(-0.95, 0.95, 20) + 0.02
        p = np.full(20, 0.05)
        q = p * np.exp(-loss)
        radii = np.full(20, q_radius), np.full(20, gap_radius)
        step, index = 0.1, np.arange(-12, 13)
        place, mass = _inscribed_polygon(index, step, 0.0, _Outcomes(loss, p, q, p - q, *radii))
        assert mass.sum() > 0.8
        with precision(BITS):
            fall = [(-exact(step) * at).exp() for at in place.tolist()]
            for at in index.tolist():
                x = (exact(step) * at).exp()
                seen = sum(
                    (exact(m) * (1 - x * f).max(arb(0)) for m, f in zip(mass, fall, strict=True)),
                    arb(0),
                )
                slip = exact(gap_radius) + exact(q_radius) * abs(x - 1)
                least = (
                    (exact(gap) - exact(one) * (x - 1) - slip).max(arb(0))
                    for gap, one in zip(p - q, q, strict=True)
                )
                assert seen <= sum(least, arb(0)) + UNSEEN


class TestTotals:
    @given(st.data())
    @settings(max_examples=40)
    def test_little_is_added(self, data: st.DataObject) -> None:
        worst = data.draw(simple)
        assume(all(not isinstance(piece, Scaled) for piece in worst.pair.pieces))
        grid = data.draw(grids(worst))
        above = upper_points(worst.pair, grid)
        below = discretize_lower(worst.pair, grid.edges, grid.step, 1.0)
        assert 1 - 1e-15 <= above.mass.sum() + above.infinite <= 1 + 1e-10
        assert below.mass.sum() + below.infinite <= 1


class TestAtoms:
    @given(known_weights, st.lists(rates | st.just(None), max_size=3))
    @settings(max_examples=100)
    def test_atoms_have_small_errors(
        self, chances: list[tuple[int, int]], rates: list[Fraction | None]
    ) -> None:
        """Each to 2^-46, and losses to 2^-46 of the largest one."""
        with precision(BITS):
            worst = scattered(chances)
            for rate in rates:
                worst = sampled(worst, rate) if rate else reverse(worst)
            atoms = worst.pair.atoms
            largest = exact(np.abs(atoms.loss[np.isfinite(atoms.loss)]).max(initial=0.0))
            close = exact(2.0**-46)
            for (p, q), loss, p_seen, q_seen in zip(
                worst.atoms, atoms.loss.tolist(), atoms.p, atoms.q, strict=True
            ):
                assert abs(exact(p_seen) - p) <= close * p + UNSEEN
                assert abs(exact(q_seen) - q) <= close * q + UNSEEN
                if np.isfinite(loss):
                    assert abs(exact(loss) - (p / q).log()) <= close * largest + UNSEEN
                else:
                    assert not (p > UNSEEN and q > UNSEEN)
