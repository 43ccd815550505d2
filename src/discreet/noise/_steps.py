"""Step laws: the outcome is the number of thresholds that U has reached.

A threshold is a rational, compared exactly, or a real number given by balls. Many draws use
thresholds to 64 bits: a word into which a threshold may fall stays open.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from flint import arb

from discreet._bisection import decided_whole
from discreet._exact import ball, lower_fraction, precision, upper_fraction
from discreet.noise._bits import Words
from discreet.noise._inversion import Inverted, Resolved, aligned

_SPARE_BITS = 64
_BITS = 160
_LARGEST = (1 << 64) - 1
_FEW = 1 << 14


class StepLaw(Protocol):
    """A law given by its thresholds."""

    @property
    def steps(self) -> int:
        """The number of thresholds."""

    def threshold(self, step: int) -> Fraction | arb:
        """The threshold in [0, 1] of this step, from 0 on: exact, or a ball at the precision in
        force. Thresholds do not decrease."""


@dataclass(frozen=True, slots=True)
class Edges:
    """The first and the last 64-bit word into which each threshold may fall."""

    first: Words
    last: Words


class EdgedLaw(StepLaw, Protocol):
    """A step law that stores its thresholds to 64 bits."""

    def edges(self) -> Edges:
        """The thresholds to 64 bits."""


class StepsResolved:
    """A `StepLaw` as a function of U."""

    __slots__ = ()

    def resolve(self: StepLaw, numerator: int, size: int) -> int | None:
        """The outcome, if the digits of U decide it."""
        return resolve(self, numerator, size)


class Stepped(StepsResolved, Inverted):
    """Draws of an `EdgedLaw`."""

    __slots__ = ()

    @property
    def is_narrow(self: StepLaw) -> bool:
        """Whether it has few outcomes."""
        return self.steps <= _FEW

    def resolve_many(self: EdgedLaw, numerators: Words, size: int) -> Resolved:
        """Outcomes, and the indices of those that 64 bits do not decide."""
        return resolve_many(self.edges(), numerators, size)


def resolve(law: StepLaw, numerator: int, size: int) -> int | None:
    """The number of thresholds that U has reached, if it is the same for all U in
    [numerator, numerator + 1) / 2^size."""
    with precision(size + _SPARE_BITS):
        return decided_whole(
            lambda step: _is_beyond(law.threshold(step), numerator, size), -1, law.steps
        )


def resolve_many(edges: Edges, numerators: Words, size: int) -> Resolved:
    """`resolve` for many numerators, with thresholds to 64 bits."""
    low = aligned(numerators, size)
    reached = np.searchsorted(edges.first, low, side="right")
    is_open = np.zeros(low.size, dtype=bool)
    if edges.last.size:
        is_open = (reached > 0) & (low <= edges.last[reached - 1])
    if size < 64:
        high = low | np.uint64((1 << 64 - size) - 1)
        is_open |= reached != np.searchsorted(edges.first, high, side="right")
    return reached.astype(np.int64, copy=False), np.flatnonzero(is_open)


def _is_beyond(threshold: Fraction | arb, numerator: int, size: int) -> bool | None:
    """False if all U in the interval reach the threshold, True if none does, `None` otherwise."""
    if isinstance(threshold, Fraction):
        scaled = threshold.numerator << size
        if scaled <= numerator * threshold.denominator:
            return False
        return True if scaled >= (numerator + 1) * threshold.denominator else None
    if threshold <= ball(Fraction(numerator, 1 << size)):
        return False
    return True if threshold >= ball(Fraction(numerator + 1, 1 << size)) else None


def edges(law: StepLaw) -> Edges:
    """The law's thresholds to 64 bits."""
    with precision(_BITS):
        found = [_edge(law.threshold(step)) for step in range(law.steps)]
    inside = [edge for edge in found if edge[0] <= _LARGEST]  # no U reaches 1
    array = np.array(inside, dtype=np.uint64).reshape(-1, 2)
    last = np.maximum.accumulate(array[:, 1])  # where balls differ in size
    return Edges(np.ascontiguousarray(array[:, 0]), last)


def _edge(threshold: Fraction | arb) -> tuple[int, int]:
    """The first and last open word of a threshold. One that is a multiple of 2^-64 leaves no word
    open, except word 0."""
    if isinstance(threshold, Fraction):
        word, rest = divmod(threshold.numerator << 64, threshold.denominator)
        return (word, word) if rest else (word, max(0, word - 1))
    scaled = threshold * 2**64
    alone = scaled.floor().unique_fmpz()
    if alone is not None:
        return int(alone), int(alone)
    return max(0, int(lower_fraction(scaled))), min(_LARGEST, int(upper_fraction(scaled)))
