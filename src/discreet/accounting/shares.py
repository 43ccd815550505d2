"""How a filter shares its limit's delta among leaks, squares and orders, unless one is told.

The default serves all kinds of charges. The shares for training give nearly everything to squares,
which count training runs and normal noise best; those for leaks give half to charges that fail with
a small probability, such as private keys. Shares have to add up: a strategy can spend leaks in
nearly all transcripts, and squares in the few in which they matter.
"""

from dataclasses import dataclass
from fractions import Fraction

from discreet.accounting.domination import largest_square
from discreet.accounting.theorems import log_conversion
from discreet.exact import ball, decimal_up, lower_fraction, precision
from discreet.payment import Limit

_BITS = 256
_LARGEST_EPSILON = 10**6  # squares are counted under limits up to here


@dataclass(frozen=True, slots=True)
class Squares:
    """How a filter counts squares of mu: at this share of delta. Of what the squares could add
    up to, ``floor`` stays unspent, which makes small pure charges cheaper. ``beside_leaks`` says
    whether charges that are neither pure nor Gaussian are counted beside a leak; ledgers of
    earlier versions don't."""

    share: Fraction
    floor: Fraction
    beside_leaks: bool = False


@dataclass(frozen=True, slots=True)
class Shares:
    """Parts of delta for leaks, for squares and for orders; of the squares, the part that stays
    unspent. An order is given by how many times as far above 1 it lies as the best one."""

    leak: Fraction
    squares: Fraction
    floor: Fraction
    orders: tuple[tuple[int, Fraction], ...]

    def of_leaks(self, limit: Limit) -> Fraction:
        """The share of delta for leaks."""
        return limit.delta * self.leak

    def of_orders(self, limit: Limit) -> tuple[tuple[Fraction, Fraction], ...]:
        """Each order with its share of delta."""
        best = _best_order(limit)
        return tuple((1 + (best - 1) * times, limit.delta * part) for times, part in self.orders)

    def of_squares(self, limit: Limit) -> Squares | None:
        """How squares are counted; not at all under limits that are beyond all use."""
        if limit.epsilon > _LARGEST_EPSILON:
            return None
        share = limit.delta * self.squares
        floor = decimal_up(largest_square(limit.epsilon, share) * self.floor, digits=3)
        return Squares(share, floor, beside_leaks=True)


USUAL = Shares(
    leak=Fraction(10, 100),
    squares=Fraction(42, 100),
    floor=Fraction(1, 100),
    orders=(
        (1, Fraction(35, 100)),
        (2, Fraction(5, 100)),  # this one and those above are for what is left
        (4, Fraction(3, 100)),  # after large pure charges
        (10, Fraction(3, 100)),
        (30, Fraction(2, 100)),
    ),
)
FOR_TRAINING = Shares(
    leak=Fraction(10, 100),
    squares=Fraction(88, 100),
    floor=Fraction(1, 200),
    orders=((1, Fraction(2, 100)),),
)

FOR_LEAKS = Shares(
    leak=Fraction(50, 100),
    squares=Fraction(30, 100),
    floor=Fraction(1, 100),
    orders=((1, Fraction(16, 100)), (2, Fraction(2, 100)), (10, Fraction(2, 100))),
)


def room(order: Fraction, share: Fraction) -> Fraction:
    """ln(share / c) / (order - 1), rounded down: what a Renyi sum may lie above epsilon."""
    return lower_fraction((ball(share).log() - log_conversion(order)) / ball(order - 1))


def _best_order(limit: Limit) -> Fraction:
    """The order at which rho-zCDP charges of the largest total rho fit: it has the largest
    bound / order."""
    half = limit.delta / 2
    with precision(_BITS):
        steps = (decimal_up(Fraction(10 ** (step / 20)), digits=3) for step in range(-80, 181))
        orders = (1 + step for step in steps)
        return max(orders, key=lambda order: (limit.epsilon + room(order, half)) / order)
