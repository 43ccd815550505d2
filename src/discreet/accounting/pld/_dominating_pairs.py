"""Dominating pairs: the two worst laws of an answer on neighbouring tables, by their losses.

A pair (P, Q) is described by the law of the privacy loss ln(p/q): by atoms, which are single
losses, and by smooth pieces. Functions from pairs to pairs describe rows that are sampled,
neighbours that change sides, and a draw of one of several pairs. The law of a single loss needs
neither tilt, grid nor transform.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

import numpy as np
from flint import arb

from discreet._arrays import FloatArray
from discreet._exact import ball, precision
from discreet.accounting.pld._continuous import (
    ROUND,
    GaussianLoss,
    LaplaceLoss,
    Piece,
    Scaled,
    Subsampled,
    Swapped,
    Symmetrized,
    subsampled_loss,
    takes_rows,
)

ATOM = 256 * ROUND  # bound on the relative error of an atom's numbers, their sums and quotients
_LARGEST_LOSS = 10**6
LEAST_RATE = Fraction(1, 10**100)  # of `sampled`, so that e^loss / rate is a number
_TAIL_OF_GRID = 1e-280  # probability beyond the losses between which an epsilon is looked for
_SECTIONS = 16  # of a bracket, where many numbers take little longer than one
_ROUNDS = 60
_SECTION_TOLERANCE = 1e-10  # relative width at which a bracket is narrow enough
_LARGEST_POWER = 600.0  # its exponential is a number, and times 1e-300 below 1e-39

_Atom = tuple[float, float, float]


class Side(Enum):
    """The kind of bound that a pair is for. An upper bound needs a pair that dominates every
    mechanism within the term. A lower bound needs a pair that some mechanism attains."""

    UPPER = "upper"
    LOWER = "lower"


def sign_of(side: Side) -> int:
    """The direction in which rounding errors are moved: 1 from above, -1 from below."""
    return 1 if side is Side.UPPER else -1


@dataclass(frozen=True, slots=True)
class Atoms:
    """Single losses with their probabilities under P and under Q. Relative errors are at most
    2^-46; those of losses are relative to the largest finite one."""

    loss: FloatArray
    p: FloatArray
    q: FloatArray

    @staticmethod
    def of(*atoms: tuple[float, float, float]) -> "Atoms":
        """Atoms from triples of a loss and its probabilities under P and under Q."""
        table = np.array(atoms, dtype=np.float64).reshape(-1, 3)
        return Atoms(table[:, 0], table[:, 1], table[:, 2])


_NO_ATOMS = Atoms.of()


@dataclass(frozen=True, slots=True)
class Pair:
    """Atoms and pieces that together have probability 1 under both laws. All atoms' finite losses
    are multiples of ``lattice``, where it is known."""

    atoms: Atoms = _NO_ATOMS
    pieces: tuple[Piece, ...] = ()
    lattice: Fraction | None = None


def nothing() -> Pair:
    """Two laws that are equal."""
    return Pair(Atoms.of((0.0, 1.0, 1.0)))


def tells_nothing(pair: Pair) -> bool:
    """Whether the two laws are equal."""
    return not pair.pieces and not pair.atoms.loss.any()


def normal(mu_squared: Fraction) -> Pair | None:
    """Two normal laws of variance 1, their means mu apart; ``None`` if too far for a grid."""
    if mu_squared > _LARGEST_LOSS:
        return None
    if not mu_squared:
        return nothing()
    with precision(128):
        return Pair(pieces=(GaussianLoss(float(ball(mu_squared).sqrt().mid())),))


def randomized_response(
    epsilon: Fraction, failure: Fraction = Fraction(0), others: int = 0
) -> Pair | None:
    """One of 2 + others values, reported truly with odds e^epsilon to 1 against each other value,
    or, with probability ``failure``, for sure; ``None`` if epsilon is too large for a grid."""
    if epsilon > _LARGEST_LOSS:
        return None
    eps = float(epsilon)
    all_odds = 1 + (1 + others) * math.exp(-eps)
    true, false = float(1 - failure) / all_odds, float(1 - failure) * math.exp(-eps) / all_odds
    atoms = [(eps, true, false), (-eps, false, true)]
    if others:
        atoms.append((0.0, others * false, others * false))
    if failure:
        atoms += [(math.inf, float(failure), 0.0), (-math.inf, 0.0, float(failure))]
    return Pair(Atoms.of(*atoms), lattice=epsilon or None)


def laplace(epsilon: Fraction) -> Pair:
    """Two Laplace laws, their centres epsilon scales apart: half of the outcomes lie beyond each
    centre, and there the loss is constant."""
    eps = float(epsilon)
    low = math.exp(-eps) / 2
    return Pair(Atoms.of((eps, 0.5, low), (-eps, low, 0.5)), (LaplaceLoss(eps, 0.5),), epsilon)


def bounded_range(width: Fraction) -> Pair:
    """The worst of all pairs whose losses lie in some interval of this width: their joint privacy
    profile (1 - e^((epsilon - width)/2))^2 / (1 - e^-width)."""
    return Pair(pieces=(LaplaceLoss(float(width), -1 / math.expm1(-float(width))),))


def sampled(pair: Pair, rate: Fraction) -> Pair:
    """((1 - rate) Q + rate P, Q): the unit is in the sample with this probability, at least
    `LEAST_RATE`."""
    assert rate >= LEAST_RATE
    share, other, atoms = float(rate), float(1 - rate), pair.atoms
    pieces = tuple(Subsampled(piece, share) for piece in pair.pieces)
    if not len(atoms.loss):
        return Pair(pieces=pieces)
    mixed = Atoms(
        subsampled_loss(atoms.loss, share, other), other * atoms.q + share * atoms.p, atoms.q
    )
    return Pair(mixed, pieces)


def reverse(pair: Pair) -> Pair:
    """(Q, P)."""
    atoms = (
        Atoms(-pair.atoms.loss, pair.atoms.q, pair.atoms.p) if len(pair.atoms.loss) else _NO_ATOMS
    )
    return Pair(atoms, tuple(Swapped(piece) for piece in pair.pieces), pair.lattice)


def one_of(pairs: Sequence[tuple[float, Pair]]) -> Pair:
    """One of the pairs, drawn at random and made known. The relative errors of the probabilities
    are at most 2^-48."""
    atoms = Atoms(
        np.concatenate([pair.atoms.loss for _, pair in pairs]),
        np.concatenate([weight * pair.atoms.p for weight, pair in pairs]),
        np.concatenate([weight * pair.atoms.q for weight, pair in pairs]),
    )
    pieces = (Scaled(piece, weight) for weight, pair in pairs for piece in pair.pieces)
    return Pair(atoms, tuple(pieces))


def symmetric(pair: Pair) -> Pair:
    """The pair whose losses above 0 are these, and those below 0 their mirror image: it dominates
    where either direction has this privacy profile from epsilon 0 up."""
    atoms = pair.atoms
    above = atoms.loss > 0
    loss, p, q = atoms.loss[above], atoms.p[above], atoms.q[above]
    pieces = tuple(Symmetrized(piece) for piece in pair.pieces)
    folded = Atoms(np.append(loss, -loss), np.append(p, q), np.append(q, p))
    rest = _missing(folded, pieces)
    at_zero = Atoms(
        np.append(folded.loss, 0.0), np.append(folded.p, rest), np.append(folded.q, rest)
    )
    return Pair(at_zero, pieces)


def _missing(atoms: Atoms, pieces: Sequence[Piece]) -> float:
    """An upper bound on the probability that is missing to 1."""
    least = float(atoms.p.sum()) * (1 - 128 * ROUND)
    for piece in pieces:
        whole = piece.masses(np.array([]), np.array([]))
        least += float((whole.p - whole.p_radius).sum()) * (1 - 128 * ROUND)
    return max(0.0, 1 - least)


def highest(pair: Pair) -> float:
    """The largest loss of the pair's atoms; -infinity without atoms."""
    return float(pair.atoms.loss[pair.atoms.p > 0].max(initial=-math.inf))


# Groups of outcomes as atoms. From above, a group's probability is divided between its two ends, so
# that both laws keep their total probability. From below, a group is one outcome. See
# docs/proofs/terms.md.


@dataclass(frozen=True, slots=True)
class Group:
    """Outcomes whose losses lie from ``low`` to ``high``, with balls around their probabilities
    under P and under Q."""

    low: Fraction
    high: Fraction
    p: arb
    q: arb

    @property
    def is_of_one_loss(self) -> bool:
        return self.low is self.high or self.low == self.high  # fractions compare slowly


def coarsen(groups: Iterable[Group], side: Side) -> Atoms:
    """The groups as atoms, inside a `precision` block. Errors are moved to the requested side."""
    of_group = _ends if side is Side.UPPER else _merged
    return Atoms.of(*(atom for group in groups for atom in of_group(group)))


def _ends(group: Group) -> Iterator[_Atom]:
    """(p - q e^low) / (1 - e^(low - high)) at the high end, the rest of p at the low one."""
    if group.is_of_one_loss:
        yield float(group.high), _up(group.p), _up(group.p * (-ball(group.high)).exp())
        return
    low, high = ball(group.low), ball(group.high)
    moved = (group.p - group.q * low.exp()) / -(low - high).expm1()
    up = moved.max(arb(0)).min(group.p).upper()
    rest = (group.p - up).max(arb(0)).upper()
    yield float(group.high), _up(up), _up(up * (-high).exp())
    yield float(group.low), _up(rest), _up(rest * (-low).exp())


def _merged(group: Group) -> Iterator[_Atom]:
    """One outcome with the loss ln(p/q)."""
    if not (group.p > 0 and group.q > 0):
        return
    loss = ball(group.high) if group.is_of_one_loss else (group.p / group.q).log().lower()
    p = group.p.lower()
    yield float(loss.mid()), float(p), float((p * (-loss).exp()).mid())


def _up(number: arb) -> float:
    return float(number.upper())


# The law of a single loss. All numbers are probabilities, so no digits cancel: each mass has a
# small relative error, however small it is.


@dataclass(frozen=True, slots=True)
class UncomposedPld:
    """Law of one loss, as a bound from one side.

    ``loss`` rises and has the probabilities ``mass``; both are moved to that side by their rounding
    errors. ``infinite`` is the mass at infinity, and ``pieces`` are the smooth parts.
    """

    side: Side
    loss: FloatArray
    mass: FloatArray
    infinite: float
    pieces: tuple[Piece, ...] = ()

    @staticmethod
    def of_pair(pair: Pair, side: Side) -> "UncomposedPld":
        """The law of a pair's loss, its pieces as they are."""
        atoms, sign = pair.atoms, sign_of(side)
        is_finite = np.isfinite(atoms.loss) & (atoms.p > 0)
        loss, mass = atoms.loss[is_finite], atoms.p[is_finite]
        order = np.argsort(loss)
        moved = sign * ATOM * float(np.abs(loss).max(initial=0.0))
        infinite = float(atoms.p[atoms.loss == np.inf].sum()) * (1 + sign * ATOM)
        mass = mass[order] * (1 + sign * ATOM)
        return UncomposedPld(side, loss[order] + moved, mass, infinite, pair.pieces)

    def epsilon(self, delta: float) -> float:
        """The epsilon at which the bound on delta equals ``delta``. From above, it is infinite if
        the mass at infinity alone exceeds ``delta``."""
        left = (delta - self.infinite) * (1 - self._relative_error)
        if left <= 0:
            return math.inf if self.side is Side.UPPER else max(0.0, self._largest())
        if self._finite(0.0) <= left:
            return 0.0
        if self.pieces:
            return self._by_sections(left)
        place = bisect_left(self.loss, True, key=lambda loss: self._finite(float(loss)) <= left)
        loss = float(self.loss[place])
        above, behind = self.mass[place:], loss - self.loss[place:]
        share = (left - self._finite(loss)) / float((above * np.exp(behind)).sum())
        before = max(0.0, float(self.loss[place - 1])) if place else 0.0
        return max(before, loss + math.log1p(-share)) if share < 1 else before

    def delta(self, epsilon: float) -> float:
        """The bound on delta at this epsilon."""
        return float(self.deltas(np.array([epsilon]))[0])

    def deltas(self, epsilons: FloatArray) -> FloatArray:
        """`delta` at each epsilon; hundreds take little longer than one."""
        found = (self._finite_at(epsilons) + self.infinite) * (1 + self._relative_error)
        return np.clip(found, 0.0, 1.0)

    def _by_sections(self, left: float) -> float:
        """An epsilon near which the finite losses' delta falls to ``left``: the end of the bracket
        that suits the side."""
        low, high = 0.0, max(self._largest(), 1.0)
        while self._finite(high) > left:
            low, high = high, 2 * high
            if high > _LARGEST_POWER:
                return math.inf if self.side is Side.UPPER else low
        parts = _SECTIONS if all(map(takes_rows, self.pieces)) else 2
        for _ in range(_ROUNDS):
            edges = np.linspace(low, high, parts + 1)
            is_above = self._finite_at(edges[1:-1]) > left
            place = int(np.argmin(np.append(is_above, False)))
            low, high = edges[place : place + 2].tolist()
            if high - low <= _SECTION_TOLERANCE * high:
                break
        return high if self.side is Side.UPPER else low

    def _largest(self) -> float:
        """About the largest loss."""
        grids = (float(piece.coarse_grid(_TAIL_OF_GRID)[-1]) for piece in self.pieces)
        return max([float(self.loss.max(initial=0.0)), *grids])

    def _finite(self, epsilon: float) -> float:
        """Delta of the finite losses."""
        return float(self._finite_at(np.array([epsilon]))[0])

    def _finite_at(self, epsilons: FloatArray) -> FloatArray:
        found = np.array([self._of_atoms(epsilon) for epsilon in epsilons.tolist()])
        for piece in self.pieces:
            found += self._of_piece(piece, epsilons)
        return found

    def _of_atoms(self, epsilon: float) -> float:
        above = int(np.searchsorted(self.loss, epsilon, side="right"))
        return float((self.mass[above:] * -np.expm1(epsilon - self.loss[above:])).sum())

    def _of_piece(self, piece: Piece, epsilons: FloatArray) -> FloatArray:
        """p - q e^epsilon of the outcomes whose loss is above epsilon, for each epsilon."""
        if len(epsilons) > 1 and not takes_rows(piece):
            each = [self._of_piece(piece, epsilons[n : n + 1]) for n in range(len(epsilons))]
            return np.concatenate(each)
        edges = np.minimum(epsilons, _LARGEST_POWER)
        rows = edges[:, np.newaxis] if len(edges) > 1 else edges  # (epsilon, 1) or (1,)
        cells = piece.masses(rows, np.zeros_like(rows))
        gap, q = cells.gap[..., -1], cells.q[..., -1]
        rise = np.array([math.expm1(edge) for edge in edges.tolist()])
        error = cells.gap_radius[..., -1] + rise * cells.q_radius[..., -1]
        error += 8 * ROUND * (np.abs(gap) + rise * q)
        found = np.maximum(0.0, gap - rise * q + sign_of(self.side) * error)
        return np.where(epsilons > _LARGEST_POWER, float(self.side is Side.UPPER), found)

    @property
    def _relative_error(self) -> float:
        """Relative error of a sum of all masses, with the sign of the side."""
        return sign_of(self.side) * 2 * ROUND * (len(self.loss) + 16)
