"""The pairs of an epoch in which a unit takes part in one step, which is not revealed.

Let one step have the pair (P, Q), and let Y be its ratio p/q. The ratio of t steps, one of which
has the unit, is the mean of t independent copies of Y under Q. So we need the law of a sum of
positive numbers. It is built up by doubling: two laws of n values make one of n^2 values, which is
brought back to about n. From above, the mass of each value moves to the two ends of its cell, so
that the mean stays. From below, all masses of a cell move to their mean. The result is used for
means of convex functions, which the first step only raises and the second one only lowers. See
docs/proofs/terms.md, under RandomAllocation.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb, arb_poly

from discreet._arrays import FloatArray
from discreet._exact import ball, fraction, precision
from discreet.accounting import _bounds
from discreet.accounting._bounds import Sum, Unknown, known
from discreet.accounting._renyi import infinite_probability, log_moment
from discreet.accounting.pld._continuous import ROUND, Masses
from discreet.accounting.pld._dominating_pairs import Atoms, Pair, Side, reverse, sign_of

_BITS = 256
_TAIL_OF_EDGES = 1e-32  # probability beyond the outermost edges; the open cells hold it
_CELLS = 4096  # edges of each piece of one step
_LOWEST = -30.0  # the lowest loss of the result
_MOST = 512  # values of a law that need no rounding; a sum has about their square
_FINENESS = 0.04  # the width of a cell in ln of the odds
_FINE_ODDS = 4.0  # ln of the odds up to which cells have this width; further out they widen
_FARTHEST_ODDS = 100.0  # ln of the odds beyond which all values share a cell
_LARGEST = 300  # the largest loss, so that ratios can be added up as floats
_TOO_LARGE = Unknown(f"one step may have a privacy loss above {_LARGEST}")
_LEAST = 1e-300  # bounds a product that no normal float holds
_OUTLINE = 450  # values of each law from which the ends of cells are found
_ROUNDING = 64 * ROUND  # relative error of a few operations
_NEGLIGIBLE = 30.0  # a logarithm: e^-30 of a probability is negligible
_LARGEST_LOG = 700.0  # its exponential is a number


@dataclass(frozen=True, slots=True)
class _Sense:
    """The kind of bound on means of convex functions: from above or from below, by ``side``; of
    functions that rise (for a removed unit) or fall (for an added one), by ``is_rising``."""

    side: Side
    is_rising: bool

    @property
    def up(self) -> float:
        """1 for bounds from above, -1 for bounds from below."""
        return float(sign_of(self.side))

    @property
    def outward(self) -> float:
        """1 if values are to be rounded up, -1 if down."""
        return self.up if self.is_rising else -self.up


@dataclass(frozen=True, slots=True)
class _EpochLaw:
    """Values in rising order with their masses. ``mass_error`` is the relative error of each mass.
    ``lost`` is the part of the mean that lies at infinity."""

    value: FloatArray
    mass: FloatArray
    lost: float
    mass_error: float


def allocated(removed: Pair, added: Pair, steps: int, side: Side) -> tuple[Pair, Pair] | Unknown:
    """The pairs of the whole epoch for a removed unit and for an added one, from those of one step:
    (with the unit, without it) and (without it, with it)."""
    rising, falling = _Sense(side, True), _Sense(side, False)
    with_unit = reverse(added)
    edges, edges_added = _edges(removed), _edges(with_unit)
    if edges is None or edges_added is None:
        return _TOO_LARGE
    ratios = _total(_one(removed, edges, rising), steps, rising)
    inverses = _total(_one(with_unit, edges_added, falling), steps, falling)
    return _pair_of_ratios(ratios, steps, rising), _pair_of_inverses(inverses, steps, falling)


def _one(pair: Pair, edges_of_pieces: Sequence[FloatArray], sense: _Sense) -> _EpochLaw:
    """The law of p/q under Q. If functions rise, missing mass lies at 0. If they fall, it lies at
    infinity, where they are 0."""
    atoms, up = pair.atoms, sense.up
    finite = atoms.loss[np.isfinite(atoms.loss)]
    relative_error = 8 * _ROUNDING * (1 + float(np.abs(finite).max(initial=0.0)))
    held = atoms.loss < np.inf
    values = [np.exp(atoms.loss[held]) * (1 + sense.outward * relative_error)]
    masses = [atoms.q[held] * (1 + up * 8 * _ROUNDING)]
    lost = float(atoms.p[~held].sum()) * (1 + up * 8 * _ROUNDING)
    for piece, edges in zip(pair.pieces, edges_of_pieces, strict=True):
        cells = piece.masses(edges, np.zeros(len(edges)))
        if sense.side is Side.UPPER:
            value, mass = _at_ends(cells, np.exp(edges), sense)
            lost += float(cells.p[-1] + cells.p_radius[-1])
        else:
            value, mass = _at_means(cells, sense)
        values.append(value)
        masses.append(mass)
    value, mass = np.concatenate(values), np.concatenate(masses)
    rest = 1 - float(mass.sum()) + up * len(mass) * _ROUNDING if sense.is_rising else 0.0
    return _law(np.append(value, 0.0), np.append(mass, max(rest, 0.0)), lost, 0.0)


def _edges(pair: Pair) -> list[FloatArray] | None:
    """Fine edges of cells for each piece; ``None`` if losses are too large for floats."""
    grids = [piece.coarse_grid(_TAIL_OF_EDGES) for piece in pair.pieces]
    finite = pair.atoms.loss[np.isfinite(pair.atoms.loss)]
    largest = max([float(np.abs(loss).max(initial=0.0)) for loss in (finite, *grids)])
    if largest > _LARGEST:
        return None
    return [
        np.unique(np.interp(np.linspace(0, len(grid) - 1, _CELLS), np.arange(len(grid)), grid))
        for grid in grids
    ]


def _at_ends(cells: Masses, ends: FloatArray, sense: _Sense) -> tuple[FloatArray, FloatArray]:
    """The mass of each cell at its two ends, as a bound from above. The end at which functions are
    larger gets at least its share of q; the sum is at least q. An open cell has its mass at its one
    end, but the lowest cell has it at 0 if functions fall."""
    q, p = cells.q + cells.q_radius, cells.p + sense.up * cells.p_radius
    low, high = ends[:-1] * (1 - _ROUNDING), ends[1:] * (1 + _ROUNDING)
    whole = q[1:-1]
    if sense.is_rising:  # the upper ends decide
        right = (p[1:-1] - low * np.maximum(cells.q - cells.q_radius, 0.0)[1:-1]) / (high - low)
        right = np.clip(
            right * (1 + _ROUNDING) + _ROUNDING * whole * (high / (high - low)), 0, whole
        )
        left = whole - right
    else:
        p_low = np.maximum(cells.p - cells.p_radius, 0.0)[1:-1]
        left = (high * whole - p_low) / (high - low)
        left = np.clip(left * (1 + _ROUNDING) + _ROUNDING * whole * (high / (high - low)), 0, whole)
        right = whole - left
    lowest = ends[:1] * (1 + _ROUNDING) if sense.is_rising else np.zeros(1)
    value = np.concatenate([lowest, low, high, ends[-1:]])
    mass = np.concatenate([q[:1], left, right, q[-1:]]) * (1 + _ROUNDING)
    return value, mass


def _at_means(cells: Masses, sense: _Sense) -> tuple[FloatArray, FloatArray]:
    """The mass of each inner cell at its mean, rounded down."""
    p = np.maximum(cells.p + sense.outward * cells.p_radius, 0.0)[1:-1]
    low, high = np.maximum(cells.q - cells.q_radius, 0.0)[1:-1], (cells.q + cells.q_radius)[1:-1]
    base = low if sense.outward > 0 else high
    has_mass = low > 0
    value = p[has_mass] / base[has_mass] * (1 + sense.outward * _ROUNDING)
    return value, low[has_mass] * (1 - _ROUNDING)


def _law(value: FloatArray, mass: FloatArray, lost: float, mass_error: float) -> _EpochLaw:
    held = np.flatnonzero(mass > 0)
    order = held[np.argsort(value[held])]
    return _EpochLaw(value[order], mass[order], lost, mass_error)


def _total(one: _EpochLaw, steps: int, sense: _Sense) -> _EpochLaw:
    """The law of the sum of ``steps`` independent copies, by doubling."""
    one = _rounded(one, _ends(one), sense)
    total = one
    for digit in f"{steps:b}"[1:]:
        total = _sum(total, total, sense)
        if digit == "1":
            total = _sum(total, one, sense)
    return total


def _sum(one: _EpochLaw, other: _EpochLaw, sense: _Sense) -> _EpochLaw:
    """The law of the sum of two independent values, rounded to few values."""
    if one is other:  # each pair of values once
        first, second = np.triu_indices(len(one.value))
        mass = one.mass[first] * one.mass[second] * np.where(first == second, 1.0, 2.0)
    else:
        first, second = (place.ravel() for place in np.indices((len(one.mass), len(other.mass))))
        mass = one.mass[first] * other.mass[second]
    value = (one.value[first] + other.value[second]) * (1 + sense.outward * 4 * ROUND)
    lost = one.lost * float(other.mass.sum()) + float(one.mass.sum()) * other.lost
    lost *= 1 + sense.up * ROUND * (len(one.mass) + len(other.mass) + 16)
    if sense.side is Side.UPPER:
        mass += _LEAST  # a product may be too small for a float
    else:
        mass[mass < _LEAST] = 0.0
    mass_error = one.mass_error + other.mass_error + 8 * ROUND
    ends = _ends(_outline(one, other))
    return _rounded(_EpochLaw(value, mass, lost, mass_error), ends, sense)


def _outline(one: _EpochLaw, other: _EpochLaw) -> _EpochLaw:
    """A rough law of the sum."""
    few, many = (_merged(law) for law in (one, other))
    value = np.add.outer(few.value, many.value).ravel()
    return _law(value, np.outer(few.mass, many.mass).ravel(), 0.0, 0.0)


def _merged(law: _EpochLaw) -> _EpochLaw:
    starts = np.arange(0, len(law.mass), max(1, math.ceil(len(law.mass) / _OUTLINE)))
    mass = np.add.reduceat(law.mass, starts)
    return _EpochLaw(np.add.reduceat(law.mass * law.value, starts) / mass, mass, 0.0, 0.0)


def _ends(law: _EpochLaw) -> FloatArray:
    """Ends of cells for this law, by the odds of a smaller value under Q against a larger value
    under P, so that cells are fine in the middle and in both tails."""
    below = np.cumsum(law.mass)
    above = np.cumsum((law.mass * law.value)[::-1])[::-1]
    with np.errstate(divide="ignore"):
        odds = np.clip(np.log(below) - np.log(above), -_FARTHEST_ODDS, _FARTHEST_ODDS)
    size = np.abs(odds)
    far = _FINE_ODDS * (1 + np.log(np.maximum(size, _FINE_ODDS) / _FINE_ODDS))
    place = np.sign(odds) * np.where(size < _FINE_ODDS, size, far) / _FINENESS
    wanted = np.arange(math.ceil(place[0]), math.floor(place[-1]) + 1)
    value = np.log(np.maximum(law.value, _LEAST))
    return np.asarray(np.exp(np.interp(wanted, place, value)))


def _rounded(law: _EpochLaw, ends: FloatArray, sense: _Sense) -> _EpochLaw:
    """A bound on the law with few values."""
    if len(law.value) <= _MOST:
        return _law(law.value, law.mass, law.lost, law.mass_error)
    least, most = float(law.value.min()), float(law.value.max())
    inner = ends[(ends > least) & (ends < most)]
    ends = np.unique(np.concatenate([[least], inner, [most]]))
    cell = np.clip(np.searchsorted(ends, law.value, side="right") - 1, 0, len(ends) - 2)
    most_in_a_cell = int(np.bincount(cell).max())
    relative_error = (2 * most_in_a_cell + 8) * ROUND
    if sense.side is Side.LOWER:  # all of a cell at its mean
        whole = np.bincount(cell, law.mass).astype(np.float64)
        with np.errstate(invalid="ignore"):
            mean = np.bincount(cell, law.mass * law.value) / whole
        mean *= 1 + sense.outward * relative_error
        return _law(mean, whole, law.lost, law.mass_error + relative_error)
    low, width = ends[cell], np.diff(ends)[cell]
    share = (law.value - low) / width + sense.outward * 8 * ROUND * (1 + low / width)
    share = np.clip(share, 0.0, 1.0)
    moved = np.zeros(len(ends))
    moved += np.bincount(cell, law.mass * (1 - share), len(ends))
    moved += np.bincount(cell + 1, law.mass * share, len(ends))
    return _law(ends, moved, law.lost, law.mass_error + relative_error)


def _pair_of_ratios(law: _EpochLaw, steps: int, sense: _Sense) -> Pair:
    """The pair (P, Q), from the law of the sum of the ratios p/q under Q."""
    safe = 1 + sense.up * (law.mass_error + _ROUNDING)
    ratio, q = law.value / steps * safe, law.mass * safe
    with np.errstate(divide="ignore"):
        loss = np.log(ratio)
    return _pair(loss, ratio * q, law.lost / steps * safe, sense)


def _pair_of_inverses(law: _EpochLaw, steps: int, sense: _Sense) -> Pair:
    """The pair (Q, P), from the same law."""
    ratio = law.value / steps * (1 + sense.outward * _ROUNDING)
    mass = law.mass * (1 + sense.up * (law.mass_error + _ROUNDING))
    infinite = float(mass[ratio == 0].sum())
    return _pair(-np.log(ratio[ratio > 0]), mass[ratio > 0], infinite, sense)


def _pair(loss: FloatArray, mass: FloatArray, infinite: float, sense: _Sense) -> Pair:
    """The pair of these losses with their masses under the first law. Very low losses are raised
    from above, and left out from below."""
    if sense.side is Side.UPPER:
        loss = np.maximum(loss, _LOWEST)
    loss, mass = loss[loss >= _LOWEST], mass[loss >= _LOWEST]
    q = mass * np.exp(-loss)
    rest = max(0.0, 1 - float(q.sum()))
    return Pair(
        Atoms(
            np.concatenate([[-np.inf], loss, [np.inf]]),
            np.concatenate([[0.0], mass, [infinite]]),
            np.concatenate([[rest], q, [0.0]]),
        )
    )


# Renyi divergences, if one step never fails


@lru_cache(maxsize=4096)
def log_moment_of_mean(loss: Sum, steps: int, order: int) -> arb:
    """A bound on ln E[M^order] under Q, where M is the mean of ``steps`` ratios Y. The multinomial
    sum is the coefficient of x^order in the ``steps``-th power of the sum of E[Y^n] x^n / n!."""
    with precision(_BITS):
        moments = [
            ((n - 1) * known(_bounds.renyi(loss, Fraction(n)))).exp() for n in range(2, order + 1)
        ]
        factorials = [arb(math.factorial(n)) for n in range(order + 1)]
        both = zip([arb(1), arb(1), *moments], factorials, strict=False)
        base, power = arb_poly([one / all_ways for one, all_ways in both]), arb_poly([1])
        for digit in f"{steps:b}":
            power = arb_poly((power * power).coeffs()[: order + 1])
            if digit == "1":
                power = arb_poly((power * base).coeffs()[: order + 1])
        return (power[order] * math.factorial(order)).log() - order * arb(steps).log()


def up_to_a_loss(pair: Pair, order: Fraction, higher: Sequence[tuple[int, arb]]) -> arb:
    """A bound on the Renyi divergence of all that the pair dominates. The infinite losses of the
    pair count as a finite loss; the moments of ``higher`` powers, each with its ln, bound the
    losses above it."""
    power, infinite = float(order - 1), float(infinite_probability(pair))
    room = -math.log(infinite) if infinite else _LARGEST_LOG
    most = fraction((room - _NEGLIGIBLE - math.log(order)) / power)
    if most <= 0:
        return arb("inf")
    atoms = pair.atoms
    tangent = (float(most) + math.log(order) / power) * (1 + _ROUNDING)
    loss = np.where(atoms.loss == np.inf, tangent, atoms.loss)
    moment = ball(log_moment(Pair(Atoms(loss, atoms.p, atoms.q)), order))
    beyond = arb("inf")
    for one, grown in higher:
        beyond = beyond.min(grown - ball((one - order + 1) * most))
    return (moment + (beyond - moment).exp().log1p()) / ball(order - 1)
