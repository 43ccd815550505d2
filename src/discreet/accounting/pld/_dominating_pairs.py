"""Dominating pairs: the two worst laws of an answer on neighbouring tables, by their losses.

A pair (P, Q) is described by the law of the privacy loss ln(p/q): by atoms, which are single
losses, and by smooth pieces. Functions from pairs to pairs describe rows that are sampled,
neighbours that change sides, and a draw of one of several pairs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

import numpy as np

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
)
from discreet.errors import NoBound

ATOM = 256 * ROUND  # bound on the relative error of an atom's numbers, their sums and quotients
_LARGEST_LOSS = 10**6
_LEAST_RATE = Fraction(1, 10**100)  # so that e^loss / rate is a number


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


def normal(mu_squared: Fraction) -> Pair:
    """Two normal laws of variance 1, their means mu apart."""
    if mu_squared > _LARGEST_LOSS:
        raise NoBound("its losses are too large for a grid")
    if not mu_squared:
        return nothing()
    with precision(128):
        return Pair(pieces=(GaussianLoss(float(ball(mu_squared).sqrt().mid())),))


def randomized_response(
    epsilon: Fraction, failure: Fraction = Fraction(0), others: int = 0
) -> Pair:
    """One of 2 + others values, reported truly with odds e^epsilon to 1 against each other value,
    or, with probability ``failure``, for sure."""
    if epsilon > _LARGEST_LOSS:
        raise NoBound("its losses are too large for a grid")
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
    """((1 - rate) Q + rate P, Q): the unit is in the sample with this probability."""
    if rate < _LEAST_RATE:
        raise NoBound("its rate is too small for a grid")
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
