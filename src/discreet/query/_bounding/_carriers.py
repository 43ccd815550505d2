"""Finds the sums of a plan that follow from others, so that fewer are added up in each cell."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from discreet.query._expressions._inference import infer
from discreet.query._plan._plan import Plan
from discreet.query._plan._sums import ColumnOutcome, SumOf

SMALL_BITS = 31  # of an addend; 2^31 of them, or of such constants, fit 64 bits


@dataclass(frozen=True, slots=True)
class CarriedSum:
    """A sum as that of the carrier of this number, plus a constant for each row with a value. Of
    these rows the carrier ``count`` is the number, or all rows if that is ``None``."""

    carrier: int
    constant: int = 0
    count: int | None = None

    def total(self, sums: Sequence[Any], rows: Any) -> Any:  # Any: arrays, or Ibis expressions
        """The sum in each cell, from the carriers' sums and the number of rows there."""
        own = sums[self.carrier]
        if self.constant == 0:
            return own
        return own + self.constant * (rows if self.count is None else sums[self.count])


def carried_sums(plan: Plan) -> tuple[tuple[SumOf, ...], tuple[CarriedSum | None, ...]]:
    """The carriers, which are added up, and how each sum of the plan with an argument follows from
    them."""
    carriers: list[SumOf] = []
    found = tuple(_carried(one, plan, carriers) for one in plan.sums_of_rows)
    return tuple(carriers), found


def is_small(ends: tuple[int, int]) -> bool:
    """Whether addends between these ends have 32 bits."""
    return all(abs(end) < 2**SMALL_BITS for end in ends)


def _carried(one: SumOf, plan: Plan, carriers: list[SumOf]) -> CarriedSum | None:
    """How a sum follows from a carrier, which may join the others. An average's centred sum is a
    sum of the same points, less their middle for each."""
    if one.argument is None:
        return None
    for number, other in enumerate(carriers):
        if one == other:
            return CarriedSum(number)
        if not _have_same_points(one, other):
            continue
        assert one.grid is not None and other.grid is not None  # noqa: PT018  # they have points
        assert not isinstance(one.argument, ColumnOutcome | None)
        constant = other.grid.center - one.grid.center
        if not infer(one.argument, plan.declaration).can_be_null:
            return CarriedSum(number, constant)
        counts = [s for s in plan.sums_of_rows if s.grid is None and s.argument == one.argument]
        if counts:
            count = _carried(counts[0], plan, carriers)
            assert count is not None  # it has an argument
            return CarriedSum(number, constant, count.carrier)
    carriers.append(one)
    return CarriedSum(len(carriers) - 1)


def _have_same_points(one: SumOf, other: SumOf) -> bool:
    """Whether the addends of both are the same points of one grid, from two centres."""
    if one.grid is None or other.grid is None or one.argument != other.argument:
        return False
    if any(s.is_squared or s.times is not None or not is_small(s.ends) for s in (one, other)):
        return False
    facts = [
        (grid.exponent, grid.decimals, grid.lower + grid.center, grid.upper + grid.center)
        for grid in (one.grid, other.grid)
    ]
    return facts[0] == facts[1]
