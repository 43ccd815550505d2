"""Normal laws that dominate: what a charge costs where squares of mu are added up.

A pair of laws dominates another if it is at least as easy to tell apart at every threshold, so
that no test gains by the other one. For two pairs told apart by a bit and a normal value this is
decided at the threshold 1 alone, which gives closed forms. The proofs are in
docs/proofs/filter.md, under "Squares".
"""

from fractions import Fraction
from functools import lru_cache

from discreet.accounting.analytic import gaussian_epsilon, gaussian_multiplier, gaussian_rest
from discreet.errors import NoBound
from discreet.exact import ball, precision, upper_fraction

_BITS = 256
_LARGEST_EPSILON = 1000  # of what is above, the square would be larger than of any use
_LARGEST_SQUARE = Fraction(10) ** 12


@lru_cache(maxsize=1024)
def square_of_pure(epsilon: Fraction, floor: Fraction) -> Fraction:
    """A square of mu, rounded up, that an epsilon-differentially private answer may be counted
    as, given that mu squared of at least ``floor`` stays unspent.

    The worst such answer is one bit told with odds e^epsilon to 1. Together with a normal value
    of mu squared ``floor`` it is dominated by a normal value of mu squared ``floor`` + m if and
    only if the former's total variation T is at most the latter's, 2 Phi(sqrt(floor + m) / 2) - 1.
    With ``floor`` 0, T is tanh(epsilon / 2) (Dong, Roth and Su 2022, Section 2 has the pair).
    """
    if epsilon == 0:
        return Fraction(0)
    if epsilon > _LARGEST_EPSILON:
        raise NoBound(f"an epsilon above {_LARGEST_EPSILON} is too much to be counted as Gaussian")
    with precision(_BITS):
        shared = 2 * gaussian_rest(floor, epsilon) / (1 + ball(epsilon).exp())  # 1 - T
        square = 8 * shared.erfcinv() ** 2 - ball(floor)
        if not square.is_finite():
            raise NoBound(f"such a floor is too much for numbers of {_BITS} bits")
        return max(Fraction(0), upper_fraction(square))


@lru_cache(maxsize=256)
def largest_square(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest square of mu, rounded down, at which normal noise is (epsilon, delta)-private
    (Balle and Wang 2018, Theorem 8)."""
    return 1 / gaussian_multiplier(epsilon, delta) ** 2


def epsilon_of_square(square: Fraction, delta: Fraction) -> Fraction | None:
    """The epsilon, rounded up, that normal noise of this mu squared has at this delta; ``None``
    if the square is beyond all use."""
    return None if square > _LARGEST_SQUARE else gaussian_epsilon(square, delta)
