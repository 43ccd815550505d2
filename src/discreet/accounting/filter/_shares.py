"""The shares of a limit's delta for failures, squares and orders, and their defaults.

The default serves all kinds of charges. The shares for training give nearly all of delta to
squares, which give the tightest cost of training runs and Gaussian noise. The shares for failures
give half of delta to charges that fail with a small probability, such as private keys. If epsilon
is large and delta small, the default also gives failures a large share.

The shares must add up to at most the limit's delta: a strategy may spend the failures in nearly all
transcripts, and the squares in the few transcripts in which they matter.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from discreet._budget import Limit
from discreet._exact import ball, decimal_down, decimal_up, lower_fraction, precision
from discreet.accounting._renyi import log_conversion
from discreet.accounting.filter._domination import largest_square

_BITS = 256
_LARGEST_EPSILON = 10**6  # squares are counted under limits up to here
_WHOLE = 220  # the epsilon * ln(1/delta) at which the formula for failures would give all of delta


@dataclass(frozen=True, slots=True)
class Squares:
    """How a filter counts squares of mu: at this share of delta. A part ``floor`` of the largest
    sum of squares stays unspent, which makes small pure charges cheaper."""

    share: Fraction
    floor: Fraction


@dataclass(frozen=True, slots=True)
class Shares:
    """Parts of delta for failures, for squares and for orders, and the part of the squares that
    stays unspent. An order is given as (order - 1) / (best order - 1)."""

    failures: Fraction
    squares: Fraction
    floor: Fraction
    orders: tuple[tuple[int, Fraction], ...]

    def towards(self, other: "Shares", weight: Fraction) -> "Shares":
        """The mean of these shares and the other ones, with this weight for the others; both have
        the same orders."""

        def between(one: Fraction, two: Fraction) -> Fraction:
            return one + weight * (two - one)

        pairs = zip(self.orders, other.orders, strict=True)
        return Shares(
            between(self.failures, other.failures),
            between(self.squares, other.squares),
            between(self.floor, other.floor),
            tuple((times, between(one, two)) for (times, one), (_, two) in pairs),
        )

    def of_failures(self, limit: Limit) -> Fraction:
        """The part of this limit's delta for failures."""
        return limit.delta * self.failures

    def of_orders(self, limit: Limit) -> tuple[tuple[Fraction, Fraction], ...]:
        """Each order with its part of this limit's delta."""
        best = _best_order(limit)
        return tuple((1 + (best - 1) * times, limit.delta * part) for times, part in self.orders)

    def of_squares(self, limit: Limit) -> Squares | None:
        """The counting of squares; none if epsilon is too large to be useful."""
        if limit.epsilon > _LARGEST_EPSILON:
            return None
        share = limit.delta * self.squares
        floor = decimal_up(largest_square(limit.epsilon, share) * self.floor, digits=3)
        return Squares(share, floor)


FOR_SMALL_LIMITS = Shares(
    failures=Fraction(10, 100),
    squares=Fraction(42, 100),
    floor=Fraction(1, 100),
    orders=(
        (1, Fraction(35, 100)),
        (2, Fraction(5, 100)),  # this order and larger ones serve
        (4, Fraction(3, 100)),  # after large pure charges
        (10, Fraction(3, 100)),
        (30, Fraction(2, 100)),
    ),
)
FOR_TRAINING = Shares(
    failures=Fraction(10, 100),
    squares=Fraction(88, 100),
    floor=Fraction(1, 200),
    orders=((1, Fraction(2, 100)),),
)

FOR_FAILURES = Shares(
    failures=Fraction(50, 100),
    squares=Fraction(26, 100),
    floor=Fraction(1, 100),
    orders=(
        (1, Fraction(20, 100)),
        (2, Fraction(2, 100)),
        (4, Fraction(1, 100)),
        (10, Fraction(1, 200)),
        (30, Fraction(1, 200)),
    ),
)


def usual(limit: Limit) -> Shares:
    """The default shares. The part for failures is epsilon * ln(1/delta) / 220, at least 10 % and
    at most 50 %; with it the other parts go from those of `FOR_SMALL_LIMITS` to `FOR_FAILURES`.

    Under a large epsilon many charges fit, so their failures run out first. The smaller delta is,
    the less the other sums lose if a part of it is taken from them.
    """
    least, most = FOR_SMALL_LIMITS.failures, FOR_FAILURES.failures
    with precision(_BITS):
        part = lower_fraction(-ball(limit.delta).log() * ball(limit.epsilon)) / _WHOLE
    part = least if part <= least else min(decimal_down(part, digits=3), most)
    return FOR_SMALL_LIMITS.towards(FOR_FAILURES, (part - least) / (most - least))


def room(order: Fraction, share: Fraction) -> Fraction:
    """ln(share / c) / (order - 1), rounded down: how far a Renyi sum may exceed epsilon."""
    return lower_fraction((ball(share).log() - log_conversion(order)) / ball(order - 1))


@lru_cache(maxsize=64)  # hundreds of logarithms; most ledgers have one of few limits
def _best_order(limit: Limit) -> Fraction:
    """The order at which zCDP charges of the largest total rho fit: bound / order is largest."""
    half = limit.delta / 2
    with precision(_BITS):
        steps = (decimal_up(Fraction(10 ** (step / 20)), digits=3) for step in range(-80, 181))
        orders = (1 + step for step in steps)
        return max(orders, key=lambda order: (limit.epsilon + room(order, half)) / order)
