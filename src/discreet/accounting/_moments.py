"""Renyi divergences of pairs that consist of atoms only, apart from what is infinite."""

import math
from fractions import Fraction

import numpy as np

from discreet._exact import fraction
from discreet.accounting.pld._continuous import ROUND
from discreet.accounting.pld._dominating_pairs import ATOM, Pair
from discreet.accounting.pld._segments import log_sum


def log_moment(pair: Pair, order: Fraction) -> Fraction:
    """ln of the sum of p (p/q)^(order - 1) over the finite losses of a pair from above, rounded
    up; it is (order - 1) times the Renyi divergence of what `unbounded` leaves."""
    atoms, power = pair.atoms, float(order - 1)
    held = np.isfinite(atoms.loss) & (atoms.p > 0)
    loss, log_p = atoms.loss[held], np.log(atoms.p[held])
    found = log_sum(log_p + power * loss)
    largest = float(np.abs(loss).max(initial=0.0))
    size = power * largest + float(np.abs(log_p).max(initial=0.0))
    slack = ATOM * power * largest + ROUND * (16 * size + 4 * len(loss) + 16) + ATOM
    return max(fraction(math.nextafter(found + slack, math.inf)), Fraction(0))


def unbounded(pair: Pair) -> Fraction:
    """The probability of an infinite loss, rounded up."""
    infinite = float(pair.atoms.p[pair.atoms.loss == np.inf].sum())
    return fraction(infinite * (1 + ATOM)) if infinite else Fraction(0)
