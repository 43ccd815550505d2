"""Compiles our closed values to Ibis expressions, all of them total and row-wise.

A value becomes an expression that is NULL or within its declared range, never NaN, and that no row
can make fail: casts are ``try_cast``, comparisons with NULL are unknown, and clamping comes before
every cast that could overflow. A condition becomes a pair of truth values that are never NULL:
whether it is known to hold, and whether it is known not to hold.
"""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import ibis
import ibis.expr.types as ir

from discreet.query._columns import ColumnType, KeyValue
from discreet.query._conversion import ENGINE_TYPES, beyond, clamped, converted, outcomes
from discreet.query._declaration import Declaration
from discreet.query._grid import SumGrid
from discreet.query._inference import ScalarFacts, column_of, infer
from discreet.query._numbering import comparable
from discreet.query._plan import ColumnOutcome, Outcome, SumOf
from discreet.query._query import (
    Arithmetic,
    Both,
    ColumnRef,
    Comparison,
    Condition,
    Either,
    Holds,
    IsNull,
    Literal,
    Membership,
    Negation,
    Operator,
    Relation,
    Scalar,
)

_ARITHMETIC: dict[Operator, Callable[[Any, Any], Any]] = {
    Operator.ADD: operator.add,
    Operator.SUBTRACT: operator.sub,
    Operator.MULTIPLY: operator.mul,
    Operator.DIVIDE: operator.truediv,
}
_RELATIONS: dict[Relation, Callable[[Any, Any], Any]] = {
    Relation.EQUAL: operator.eq,
    Relation.UNEQUAL: operator.ne,
    Relation.LESS: operator.lt,
    Relation.AT_MOST: operator.le,
    Relation.GREATER: operator.gt,
    Relation.AT_LEAST: operator.ge,
}
_TURNED = {
    Relation.EQUAL: Relation.EQUAL,
    Relation.UNEQUAL: Relation.UNEQUAL,
    Relation.LESS: Relation.GREATER,
    Relation.AT_MOST: Relation.AT_LEAST,
    Relation.GREATER: Relation.LESS,
    Relation.AT_LEAST: Relation.AT_MOST,
}
_INT64 = 2**63
_FALSE, _TRUE = ibis.literal(value=False), ibis.literal(value=True)


@dataclass(frozen=True, slots=True)
class Compiler:
    """Compiles the expressions of one table."""

    table: ir.Table
    declaration: Declaration

    def column(self, name: str) -> ir.Value:
        """The column as declared: converted to its type, clamped, with NaN and NULL replaced."""
        column = column_of(name, self.declaration)
        value = converted(self.table[name], column)
        if column.null is None:
            return value
        return ibis.coalesce(value, _constant(column.null, column.type))

    def scalar(self, scalar: Scalar) -> ir.Value:
        """The value, or NULL; never NaN, and within the range that `infer` derives."""
        value, fact = self._computed(scalar), self.infer(scalar)
        if not isinstance(scalar, Arithmetic) or fact.type is not ColumnType.NUMBER:
            return value
        # the range was derived in exact fractions; floats round, and can leave it by far
        ends = (ibis.literal(float(end), "float64") for end in _ends(fact))
        return clamped(ibis.ifelse(value.isnan(), ibis.null("float64"), value), *ends)

    def _computed(self, scalar: Scalar) -> ir.Value:
        match scalar:
            case ColumnRef(name):
                return self.column(name)
            case Literal(value):
                return _constant(value, self.infer(scalar).type)
            case Arithmetic(symbol, left, right):
                fact = self.infer(scalar)
                if fact.lower is not None and fact.lower == fact.upper and not fact.can_be_null:
                    return _constant(
                        fact.lower, fact.type
                    )  # some engines compute constants in 32 bits
                one, other = (
                    self._computed(side).cast(ENGINE_TYPES[fact.type]) for side in (left, right)
                )
                return _ARITHMETIC[symbol](one, other)

    def infer(self, scalar: Scalar) -> ScalarFacts:
        """The facts that hold for the value."""
        return infer(scalar, self.declaration)

    def holds(self, condition: Condition) -> ir.BooleanValue:
        """Whether the condition is known to hold: SQL's WHERE."""
        return self._known(condition)[0]

    def _known(self, condition: Condition) -> tuple[Any, Any]:  # Any: Ibis' boolean expressions
        match condition:
            case Comparison(relation, left, right):
                return _decided(self._compared(relation, left, right))
            case Membership(value, options):
                return _decided(self._is_one_of(value, options))
            case Holds(column):
                return _decided(self.column(column.name))
            case IsNull(value):
                missing = self.scalar(value).isnull()
                return missing, ~missing
            case Negation(inner):
                true, false = self._known(inner)
                return false, true
            case Both(one, other):
                (true, false), (also_true, also_false) = self._known(one), self._known(other)
                return true & also_true, false | also_false
            case Either(one, other):
                (true, false), (also_true, also_false) = self._known(one), self._known(other)
                return true | also_true, false & also_false

    def _compared(self, relation: Relation, left: Scalar, right: Scalar) -> ir.BooleanValue:
        """SQL's comparison. A 64-bit integer is compared exactly with a literal that is none."""
        if isinstance(left, Literal) and not isinstance(right, Literal):
            left, right, relation = right, left, _TURNED[relation]
        if not (isinstance(right, Literal) and self._is_integer_and_not(left, right)):
            one, other = (comparable(self.scalar(side)) for side in (left, right))
            return _RELATIONS[relation](one, other)
        value = self.scalar(left)
        holds = _of_whole(value, relation, cast(Fraction, right.value))
        return ibis.ifelse(value.isnull(), ibis.null("boolean"), holds)

    def _is_one_of(self, scalar: Scalar, options: tuple[Literal, ...]) -> ir.BooleanValue:
        value = self.scalar(scalar)
        equal = [option for option in options if not self._is_integer_and_not(scalar, option)]
        if equal:
            return comparable(value).isin([comparable(self.scalar(option)) for option in equal])
        return ibis.ifelse(value.isnull(), ibis.null("boolean"), _FALSE)

    def _is_integer_and_not(self, scalar: Scalar, literal: Literal) -> bool:
        """Whether the scalar is a 64-bit integer, and the literal a number that is not."""
        kinds = self.infer(scalar).type, self.infer(literal).type
        return kinds == (ColumnType.INTEGER, ColumnType.NUMBER)

    def addend(self, one: SumOf) -> ir.IntegerValue:
        """A row's addend to the sum: an integer within its ends, 0 where the argument is NULL."""
        if one.argument is None:
            return ibis.literal(1, "int64")
        if isinstance(one.argument, ColumnOutcome):
            return self._outcome(one.argument).cast("int64")
        if one.grid is None:
            value = self.scalar(one.argument)
            return value.notnull().ifelse(ibis.literal(1, "int64"), ibis.literal(0, "int64"))
        point = self.point(one.argument, one.grid)
        if one.is_squared:
            point = clamped(point * point - one.shift, *one.ends)
        return ibis.coalesce(point, ibis.literal(0, "int64"))

    def point(self, argument: Scalar, grid: SumGrid) -> ir.IntegerValue:
        """The argument in steps of the grid from its centre, within its ends; NULL stays NULL."""
        value = self.scalar(argument)
        if grid.exponent == 0 and self.infer(argument).type is ColumnType.INTEGER:
            steps = value
        else:  # clamped to its range, scaled and rounded it fits 64 bits
            steps = (
                (value.cast("float64") * ibis.literal(2.0**grid.exponent, "float64"))
                .round()
                .cast("int64")
            )
        return clamped(steps, grid.lower + grid.center, grid.upper + grid.center) - grid.center

    def _outcome(self, one: ColumnOutcome) -> ir.BooleanValue:
        column, raw = column_of(one.column, self.declaration), self.table[one.column]
        lost, held = outcomes(raw, column)
        match one.outcome:
            case Outcome.THERE:
                return lost | held
            case Outcome.LOST:
                return lost
        below, above = beyond(raw, column)
        return below if one.outcome is Outcome.BELOW else above


def _constant(value: KeyValue | Fraction, kind: ColumnType) -> ir.Value:
    if (
        kind is ColumnType.INTEGER
        and isinstance(value, int | Fraction)
        and -_INT64 <= value < _INT64
    ):
        return ibis.literal(int(value), "int64")
    if isinstance(value, int | Fraction) and not isinstance(value, bool):
        return ibis.literal(float(value), "float64")
    return ibis.literal(value, ENGINE_TYPES[kind])


def _of_whole(value: Any, relation: Relation, number: Fraction) -> ir.BooleanValue:
    """Whether a 64-bit integer is in this relation to a number that is none: it is less than the
    number if and only if it is at most the number's floor."""
    if relation in (Relation.EQUAL, Relation.UNEQUAL):
        return _TRUE if relation is Relation.UNEQUAL else _FALSE
    is_below = relation in (Relation.LESS, Relation.AT_MOST)
    if not -_INT64 <= math.floor(number) < _INT64 - 1:
        return _TRUE if (number > 0) is is_below else _FALSE
    below = value <= ibis.literal(math.floor(number), "int64")
    return below if is_below else ~below


def _ends(fact: ScalarFacts) -> tuple[Fraction, Fraction]:
    assert fact.lower is not None and fact.upper is not None  # noqa: PT018  # arithmetic has both
    return fact.lower, fact.upper


def _decided(answer: Any) -> tuple[Any, Any]:  # Any: a boolean expression that may be NULL
    return ibis.coalesce(answer, _FALSE), ibis.coalesce(~answer, _FALSE)
