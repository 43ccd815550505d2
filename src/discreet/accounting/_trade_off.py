"""The trade-off between the two errors of any test, which bounds any attack.

A test guesses whether one unit was in the data. Its type I error is to claim a unit that was not
there, and its type II error is to miss one that was. A trade-off function bounds the type II error
from below, given the type I error (Dong, Roth and Su 2022).
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet import _checks, _html
from discreet._arrays import FloatArray
from discreet._exact import Number
from discreet.accounting._bounds import Sum
from discreet.accounting._profile import profile
from discreet.errors import InvalidArgument

_ROUND = 2.0**-48  # bound on the relative rounding error of the last steps
_LARGEST = 700.0  # whose exponential is still a float
_ROWS = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5)
_DIGITS = 4


@dataclass(frozen=True, slots=True, repr=False)
class TradeOff:
    """For each type I error, the least type II error of any attack, rounded down.

    It holds for every attacker, whatever they know of the other units, and in either order of the
    neighbours: ``type_two`` is its own inverse. It is made from ``epsilons`` and ``deltas``.
    ``advantage`` is the largest difference of a test's true and false positive rates.

    >>> from discreet.accounting import Gaussian
    >>> errors = (1 * Gaussian(1)).trade_off()
    >>> print(errors)
    type I error   type II error
           0.001          0.9816
            0.01          0.9076
            0.05          0.7404
             0.1          0.6107
            0.25          0.3722
             0.5          0.1585
    >>> round(errors.advantage, 6)
    0.382925
    """

    epsilons: tuple[float, ...]
    deltas: tuple[float, ...]

    @property
    def advantage(self) -> float:
        """The largest amount, rounded up, by which 1 exceeds the sum of the two errors."""
        return self.deltas[0]

    def type_two(self, type_one: Number) -> float:
        """The least type II error, rounded down, of a test with this type I error or less."""
        given = _checks.not_negative(type_one=type_one)
        if given > 1:
            raise InvalidArgument(f"type_one = {type_one}: give a probability, from 0 to 1")
        above = float(given)
        if Fraction(above) < given:
            above = math.nextafter(above, 1.0)
        return float(self._least(np.array([above]))[0])

    def curve(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Type I errors at which the bound bends, in order, and the type II errors there."""
        slopes = np.exp(np.minimum(self.epsilons, _LARGEST))
        with np.errstate(divide="ignore", invalid="ignore"):
            bends = -np.diff(self.deltas) / np.diff(slopes)
        bends = bends[(bends > 0) & (bends < 1)]
        mirrored = self._least(bends)
        ones = np.unique(np.concatenate([[0.0, 1.0, 1 - self.deltas[-1]], bends, mirrored]))
        return tuple(ones.tolist()), tuple(self._least(ones).tolist())

    def table(self) -> list[tuple[float, float]]:
        """A few type I errors with their type II errors."""
        return [(one, self.type_two(one)) for one in _ROWS]

    def _least(self, type_one: FloatArray) -> FloatArray:
        """The largest of the lines that each (epsilon, delta) puts below the errors (Wasserman and
        Zhou 2010; Dong, Roth and Su 2022, Proposition 2.5), in both directions."""
        delta = np.array(self.deltas)[:, None]  # (epsilon, type I error)
        epsilon = np.array(self.epsilons)[:, None]
        power = np.where(delta > 0, np.nextafter(1 - delta, 0.0), 1.0)
        odds = np.where(epsilon < _LARGEST, np.exp(np.minimum(epsilon, _LARGEST)), np.inf)
        with np.errstate(invalid="ignore"):
            lost = np.where(type_one > 0, odds * type_one * (1 + _ROUND), 0.0)
        steep = np.where(lost > 0, np.nextafter(power - lost, -1.0), power)
        rest = np.where(type_one > 0, np.nextafter(power - type_one, -1.0), power)
        flat = np.exp(-epsilon) * rest * np.where(epsilon > 0, 1 - _ROUND, 1.0)
        return np.asarray(np.maximum(np.maximum(steep, flat).max(axis=0), 0.0))

    def __repr__(self) -> str:
        """Its advantage alone: the numbers are many."""
        return f"TradeOff(advantage {self.advantage:.4g})"

    def __str__(self) -> str:
        """One line a type I error, for a few of them."""
        rows = [f"{'type I error':>12}{'type II error':>16}"]
        rows += [f"{one:>12g}{_html.down(two, _DIGITS):>16}" for one, two in self.table()]
        return "\n".join(rows)

    def _repr_html_(self) -> str:
        rows = [(f"{one:g}", _html.down(two, _DIGITS)) for one, two in self.table()]
        return _html.table("Trade-off of errors", ("type I error", "least type II error"), rows)


def trade_off(loss: Sum) -> TradeOff:
    """The errors that the loss leaves to any test, by its privacy profile."""
    known = profile(loss)
    return TradeOff(known.epsilons, known.deltas)
