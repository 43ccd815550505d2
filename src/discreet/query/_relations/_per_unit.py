"""Aggregates of the rows of each unit, one row for each: ``SELECT customer, SUM(x) ... GROUP BY
customer`` in FROM.

Their bounds follow from the source's caps and bounds: a sum or a count is moved to the nearest
value that a unit within the cap on rows can have. A unit's values depend on its own rows, in no
order: sums are of whole numbers on a public grid, and become floats when they are clamped, which
floats hold exactly.
"""

import datetime
from fractions import Fraction
from math import ceil, floor
from typing import Any

import ibis

from discreet.errors import InvalidArgument, QueryRefused
from discreet.query._bounding._compiling import Compiler
from discreet.query._bounding._stages import StagedValue, combined, constant_term
from discreet.query._engines._conversion import clamped
from discreet.query._estimates._grid import SumGrid
from discreet.query._expressions._aggregates import AggregateFunction
from discreet.query._expressions._expression_text import aggregate_text
from discreet.query._expressions._expressions import Aggregate
from discreet.query._expressions._inference import infer
from discreet.query._facts._columns import Column, ColumnType
from discreet.query._facts._declaration import Declaration
from discreet.query._functions._scalar_rules import ScalarFacts
from discreet.query._plan._sum_grids import total_grid

_COUNT, _SUM, _AVG = AggregateFunction.COUNT, AggregateFunction.SUM, AggregateFunction.AVG
_LEAST, _MOST = AggregateFunction.MIN, AggregateFunction.MAX
OF_UNITS = (_COUNT, _SUM, _AVG, _LEAST, _MOST)
"""The aggregates that a query in FROM may have for each unit."""


def column_of_total(one: Aggregate, source: Declaration) -> Column:
    """The public facts of an aggregate of each unit's rows; refused if it has no rule."""
    if one.function not in OF_UNITS or one.second is not None or one.level is not None:
        listed = ", ".join(function.value for function in OF_UNITS)
        raise QueryRefused(f"{aggregate_text(one)} in FROM: for each unit there are {listed}")
    if one.argument is None:
        if one.function is not _COUNT:
            raise QueryRefused(f"{one.function.value} in FROM needs a column or an expression")
        return Column.integer(0, source.caps.rows)
    fact = infer(one.argument, source)
    if one.function is _COUNT:
        return Column.integer(0, source.caps.rows)
    is_day = fact.type is ColumnType.DATE and one.function in (_LEAST, _MOST)
    if not (fact.type.is_numeric or is_day) or fact.lower is None or fact.upper is None:
        raise QueryRefused(
            f"{aggregate_text(one)} in FROM needs numbers within bounds; MIN and MAX also take days"
        )
    try:
        return _bounded(one, fact, source)
    except InvalidArgument as cause:
        raise QueryRefused(f"{aggregate_text(one)} in FROM: {cause}") from None


def _bounded(one: Aggregate, fact: ScalarFacts, source: Declaration) -> Column:
    lower, upper = _ends(fact)
    if one.function is _AVG:
        return Column.number(lower, upper)
    if one.function is _SUM:
        lower, upper = _of_rows(lower, source), _of_rows(upper, source)
        lower, upper = min(lower, _ends(fact)[0]), max(upper, _ends(fact)[1])
        assert one.argument is not None  # `column_of_total` refuses it
        if not _is_whole(fact, total_grid(one.argument, source)):
            return Column.number(lower, upper)
    if fact.type is ColumnType.NUMBER:
        return Column.number(lower, upper)
    low, high = floor(lower), ceil(upper)
    if fact.type is ColumnType.DATE:
        return Column.date(datetime.date.fromordinal(low), datetime.date.fromordinal(high))
    return Column.integer(low, high)


def addend_of_unit(one: Aggregate, compiler: Compiler) -> StagedValue:
    """The value of each row that an aggregate takes, or NULL."""
    if one.argument is None:
        return constant_term(ibis.literal(1, "int64"))
    value = compiler.scalar(one.argument)
    if one.function is _COUNT:
        return combined(lambda found: ibis.ifelse(found.isnull(), ibis.null("int64"), 1), value)
    if one.function in (_SUM, _AVG):
        return compiler.point(one.argument, total_grid(one.argument, compiler.declaration))
    if compiler.infer(one.argument).type is ColumnType.NUMBER:
        return combined(lambda found: found + 0.0, value)  # -0.0 and 0.0 are one value
    return value


def total(one: Aggregate, compiler: Compiler, values: Any) -> Any:  # Any: Ibis expressions
    """The aggregate of a unit's values, within the bounds of `column_of_total`."""
    source = compiler.declaration
    if one.function is _LEAST:
        return values.min()
    if one.function is _MOST:
        return values.max()
    if one.function is _COUNT or one.argument is None:
        return ibis.least(values.count(), source.caps.rows).cast("int64")
    grid, fact = total_grid(one.argument, source), compiler.infer(one.argument)
    found = values.sum().cast("decimal(38, 0)")
    if one.function is _AVG:
        mean = found.cast("float64") / values.count().cast("float64") * float(grid.step)
        ends = (ibis.literal(float(end), "float64") for end in _ends(fact))
        return clamped(mean, *ends)
    rows = source.caps.rows
    least, most = min(grid.lower, rows * grid.lower), max(grid.upper, rows * grid.upper)
    whole = clamped(found, *(ibis.literal(end, "decimal(38, 0)") for end in (least, most)))
    whole = whole.cast("int64")
    if _is_whole(fact, grid):
        return whole
    return whole.cast("float64") * float(grid.step)


def _ends(fact: ScalarFacts) -> tuple[Fraction, Fraction]:
    assert fact.lower is not None  # its callers check
    assert fact.upper is not None  # the same
    if fact.lower == fact.upper:  # a column's bounds are two
        return fact.lower, fact.upper + 1
    return fact.lower, fact.upper


def _of_rows(end: Fraction, source: Declaration) -> Fraction:
    return end * source.caps.rows


def _is_whole(fact: ScalarFacts, grid: SumGrid) -> bool:
    return fact.type is ColumnType.INTEGER and grid.exponent == 0
