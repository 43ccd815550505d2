"""From our closed values to Ibis expressions, every one of them total and row-wise.

A value is compiled to an expression that is NULL or within its declared range, never NaN, and
that no row can make fail: casts are tried, comparisons with NULL become "not known", and clamping
comes before every cast that could overflow. A condition is compiled to a pair of truth values
that are never NULL: whether it is known to hold, and whether it is known not to.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import ibis
import ibis.expr.types as ir

from discreet.query.columns import ColumnType, Key
from discreet.query.conversion import ENGINE_TYPES, clamped, converted
from discreet.query.declaration import Declaration
from discreet.query.meaning import Meaning, column_of, meaning
from discreet.query.plan import SumOf
from discreet.query.query import (
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
_INT64 = 2**63


@dataclass(frozen=True, slots=True)
class Compiler:
    """Compiles the expressions of one table."""

    table: ir.Table
    declaration: Declaration

    def column(self, name: str) -> ir.Value:
        """The column as it is declared: of its type, clamped, NaN and NULL replaced."""
        column = column_of(name, self.declaration)
        value = converted(self.table[name], column)
        if column.null is None:
            return value
        return ibis.coalesce(value, _constant(column.null, column.type))

    def scalar(self, scalar: Scalar) -> ir.Value:
        """The value, or NULL; within the range that `meaning` derives, but for rounding."""
        match scalar:
            case ColumnRef(name):
                return self.column(name)
            case Literal(value):
                return _constant(value, self.meaning(scalar).type)
            case Arithmetic(symbol, left, right):
                fact = self.meaning(scalar)
                if fact.lower is not None and fact.lower == fact.upper and not fact.can_be_null:
                    return _constant(fact.lower, fact.type)  # engines compute constants in 32 bits
                one, other = (
                    self.scalar(side).cast(ENGINE_TYPES[fact.type]) for side in (left, right)
                )
                return _ARITHMETIC[symbol](one, other)

    def meaning(self, scalar: Scalar) -> Meaning:
        """The facts that hold for the value."""
        return meaning(scalar, self.declaration)

    def holds(self, condition: Condition) -> ir.BooleanValue:
        """Whether the condition is known to hold: SQL's WHERE."""
        return self._known(condition)[0]

    def _known(self, condition: Condition) -> tuple[Any, Any]:  # Any: Ibis' boolean expressions
        match condition:
            case Comparison(relation, left, right):
                return _decided(_RELATIONS[relation](self.scalar(left), self.scalar(right)))
            case Membership(value, options):
                return _decided(
                    self.scalar(value).isin([self.scalar(option) for option in options])
                )
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

    def addend(self, one: SumOf) -> ir.IntegerValue:
        """What a row adds to the sum: an integer within its ends, 0 where the argument is NULL."""
        if one.argument is None:
            return ibis.literal(1, "int64")
        value = self.scalar(one.argument)
        if one.grid is None:
            return value.notnull().ifelse(ibis.literal(1, "int64"), ibis.literal(0, "int64"))
        if one.grid.exponent == 0 and self.meaning(one.argument).type is ColumnType.INTEGER:
            steps = value
        else:  # the value lies in its range, so scaled and rounded it fits 64 bits
            steps = (
                (value.cast("float64") * ibis.literal(2.0**one.grid.exponent, "float64"))
                .round()
                .cast("int64")
            )
        moved = (
            clamped(steps, one.grid.lower + one.grid.center, one.grid.upper + one.grid.center)
            - one.grid.center
        )
        return ibis.coalesce(moved, ibis.literal(0, "int64"))


def _constant(value: Key | Fraction, kind: ColumnType) -> ir.Value:
    if (
        kind is ColumnType.INTEGER
        and isinstance(value, int | Fraction)
        and -_INT64 <= value < _INT64
    ):
        return ibis.literal(int(value), "int64")
    if isinstance(value, int | Fraction) and not isinstance(value, bool):
        return ibis.literal(float(value), "float64")
    return ibis.literal(value, ENGINE_TYPES[kind])


def _decided(answer: Any) -> tuple[Any, Any]:  # Any: a boolean expression that may be NULL
    unknown = ibis.literal(value=False)
    return ibis.coalesce(answer, unknown), ibis.coalesce(~answer, unknown)
