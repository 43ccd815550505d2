"""The integer grids on which values are summed, chosen from public bounds and caps alone."""

from fractions import Fraction

from discreet.errors import QueryRefused
from discreet.query._estimates._grid import SumGrid
from discreet.query._expressions._expression_text import scalar_text
from discreet.query._expressions._expressions import Scalar
from discreet.query._expressions._inference import bounds_of, infer
from discreet.query._facts._columns import Caps, ColumnType
from discreet.query._facts._declaration import Declaration

_WORD_BITS = 60  # of a unit's total in a group
_PRODUCT_BITS = 76  # of a value times both caps; 2^50 rows of it fit into the engine's 128
_GRID_BITS = 30
_VALUE_BITS = 50  # of a value in a row, which a float holds exactly
_LEAST_GRID_BITS = 10
_LEAST_STEPS = 2**10  # of a range that is far from 0
_TOO_LARGE = "the declared caps are too large to sum in 64 bits; declare fewer rows per unit"
_FURTHEST = 900  # of a grid's exponent: a float holds 2^1000


def value_grid(argument: Scalar, declaration: Declaration) -> SumGrid:
    """The public grid of an argument in single rows."""
    return grid_for(argument, declaration, _VALUE_BITS, is_decimal=False)


def total_grid(argument: Scalar, declaration: Declaration) -> SumGrid:
    """The public grid of an argument, on which a unit's total within the caps fits into a float."""
    return grid_for(argument, declaration, _VALUE_BITS - _bits(Fraction(declaration.caps.rows)))


def room_of_addend(caps: Caps, groups: int) -> int:
    """The bits that the caps leave for the addend of one row."""
    in_group, in_all = (_bits(Fraction(n)) for n in (caps.rows_per_group, caps.of_rows(groups)))
    return min(_WORD_BITS - in_group, _PRODUCT_BITS - in_group - in_all)


def grid_for(
    argument: Scalar, declaration: Declaration, room: int, *, is_decimal: bool = True
) -> SumGrid:
    """The public grid of an argument, whose points fit into this many bits. Integers and exact
    decimals stay as they are if they fit; other numbers get about 30 bits, or as many as fit."""
    if room < _LEAST_GRID_BITS:
        raise QueryRefused(_TOO_LARGE)
    fact = infer(argument, declaration)
    lower, upper = bounds_of(argument, fact)
    # 1. exact decimals
    if is_decimal and fact.decimals is not None:
        scale = 10**fact.decimals
        ends = int(-(-lower * scale // 1)), int(upper * scale // 1)
        if max(map(abs, ends)) <= 2**room and ends[0] <= ends[1]:
            return SumGrid(0, 0, *ends, fact.decimals)
    # 2. integers, or binary fractions
    magnitude = _bits(max(abs(lower), abs(upper)))
    exponent = (
        0
        if fact.type is ColumnType.INTEGER and magnitude <= room
        else min(_GRID_BITS, room) - magnitude
    )
    if abs(exponent) > _FURTHEST:
        raise QueryRefused(
            f"{scalar_text(argument)}: its bounds are too close to 0; declare it in smaller units"
        )
    grid = _between((lower, upper), exponent)
    # 3. few points between the bounds would make intervals wrong
    is_exact = fact.type is ColumnType.INTEGER and exponent == 0
    is_far = 2 * (upper - lower) < max(abs(lower), abs(upper))
    if is_far and not is_exact and grid.upper - grid.lower < _LEAST_STEPS:
        raise QueryRefused(
            f"{scalar_text(argument)}: its bounds are far from 0 and close together; subtract a "
            "constant that lies between them, such as x - 1000000000"
        )
    return grid


def squarable(argument: Scalar, declaration: Declaration, fine: SumGrid, room: int) -> SumGrid:
    """The centred grid, or a coarser one on which the squares of points fit into this many bits."""
    if room < 2 * _LEAST_GRID_BITS:
        raise QueryRefused(_TOO_LARGE)
    too_many = _bits(Fraction(fine.largest)) - (room // 2 - 1)  # rounding adds less than a bit
    if too_many <= 0:
        return fine
    exponent = fine.exponent + (10**fine.decimals).bit_length() - 1
    return _between(
        bounds_of(argument, infer(argument, declaration)), exponent - too_many
    ).centred()


def _between(bounds: tuple[Fraction, Fraction], exponent: int) -> SumGrid:
    scale = Fraction(2) ** exponent
    lower, upper = -(-bounds[0] * scale // 1), bounds[1] * scale // 1
    return SumGrid(exponent, 0, min(int(lower), int(upper)), max(int(lower), int(upper)))


def _bits(number: Fraction) -> int:
    """The least n with number <= 2^n."""
    n = number.numerator.bit_length() - number.denominator.bit_length()
    return n if number <= Fraction(2) ** n else n + 1
