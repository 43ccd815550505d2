"""Laws with few outcomes: a coin of a given probability, and weighted choice."""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import lcm
from typing import Annotated

import numpy as np
import numpy.typing as npt

from discreet import _checks
from discreet._exact import Number
from discreet._fields import Converted, field, frozen
from discreet.errors import InvalidArgument
from discreet.noise import _steps
from discreet.noise._bits import Bits
from discreet.noise._steps import Edges, Stepped


def _share(**named: object) -> Fraction:
    exact = _checks.not_negative(**named)
    if exact > 1:
        ((name, value),) = named.items()
        raise InvalidArgument(f"{name} = {value}: give a number from 0 to 1")
    return exact


@frozen
class BernoulliLaw(Stepped):
    """1 with this probability, a rational from 0 to 1, else 0.

    >>> from discreet.audit import SeededBits
    >>> BernoulliLaw(0.3).draws(SeededBits(4), 8)
    array([1, 0, 1, 0, 0, 0, 0, 0])
    """

    probability: Annotated[Converted[Fraction, Number], _share]

    @property
    def steps(self) -> int:
        """The number of thresholds: one."""
        return 1

    def threshold(self, _: int) -> Fraction:
        """The only threshold, 1 - p."""
        return 1 - self.probability

    def edges(self) -> Edges:
        """The threshold to 64 bits."""
        return _edges(self)


def _weights(weights: Sequence[Number]) -> tuple[Fraction, ...]:
    exact = tuple(_checks.not_negative(**{f"weights[{i}]": w}) for i, w in enumerate(weights))
    if not any(exact):
        raise InvalidArgument("weights: give at least one that lies above 0")
    return exact


@frozen
class CategoricalLaw(Stepped):
    """Index i with probability weights[i] / sum(weights); weights are rationals, 0 or above.

    >>> from discreet.audit import SeededBits
    >>> CategoricalLaw([1, 0, 0.5]).draws(SeededBits(4), 8)
    array([2, 0, 2, 0, 0, 0, 0, 0])
    """

    weights: Annotated[Converted[tuple[Fraction, ...], Sequence[Number]], _weights]
    _sums: tuple[int, ...] = field(init=False)
    _edges: Edges = field(init=False)

    def __post_init__(self) -> None:
        """Sum the weights up, and compute the thresholds to 64 bits."""
        common = lcm(*(weight.denominator for weight in self.weights))
        whole = (weight.numerator * (common // weight.denominator) for weight in self.weights)
        object.__setattr__(self, "_sums", tuple(accumulate(whole)))
        object.__setattr__(self, "_edges", _steps.edges(self))

    @property
    def steps(self) -> int:
        """The number of thresholds: one fewer than weights."""
        return len(self.weights) - 1

    def threshold(self, step: int) -> Fraction:
        """The share of the weights up to this one."""
        return Fraction(self._sums[step], self._sums[-1])

    def edges(self) -> Edges:
        """The thresholds to 64 bits."""
        return self._edges


def poisson_mask(rate: Number, count: int, bits: Bits) -> npt.NDArray[np.bool_]:
    """The mask of a Poisson sample of ``count`` records: each is in it independently, with exactly
    this rate.

    >>> from discreet.audit import SeededBits
    >>> poisson_mask(0.5, 4, SeededBits(4))
    array([ True, False,  True, False])
    """
    law = BernoulliLaw(_share(rate=rate))
    return law.draws(bits, _checks.count(count=count)).astype(np.bool_)


@lru_cache(maxsize=64)
def _edges(law: BernoulliLaw) -> Edges:
    return _steps.edges(law)
