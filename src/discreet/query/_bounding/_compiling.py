"""Compiles our closed values to Ibis expressions, all of them total and row-wise.

A value becomes an expression that is NULL or within its declared range, never NaN, and that no row
can make fail: casts are ``try_cast``, comparisons with NULL are unknown, and clamping comes before
every cast that could overflow. A condition becomes a pair of truth values that are never NULL:
whether it is known to hold, and whether it is known not to hold.
"""

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, cast

import ibis
import ibis.expr.types as ir

from discreet.query._bounding._numbering import comparable
from discreet.query._bounding._stages import StagedValue, Stages, combined, constant_term
from discreet.query._engines._conversion import ENGINE_TYPES, beyond, clamped, converted, outcomes
from discreet.query._engines._engine import valid_text
from discreet.query._estimates._grid import SumGrid
from discreet.query._expressions._expressions import (
    Arithmetic,
    Both,
    Branch,
    Case,
    ColumnRef,
    Comparison,
    Condition,
    Either,
    FunctionCall,
    Holds,
    IsNull,
    Literal,
    Measure,
    Membership,
    Negation,
    Operator,
    Relation,
    Scalar,
    Truth,
)
from discreet.query._expressions._inference import column_of, infer
from discreet.query._facts._columns import Column, ColumnType, KeyValue
from discreet.query._facts._declaration import Declaration
from discreet.query._functions._functions import FUNCTIONS
from discreet.query._functions._scalar_rules import NUMERIC, TEXTS, Parameter, ScalarFacts
from discreet.query._plan._sums import ColumnOutcome, SumOf, ValueOutcome

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


@dataclass(slots=True)
class Compiler:
    """Compiles the expressions of one question to terms, and selects them from a table."""

    declaration: Declaration
    _stages: Stages = field(default_factory=Stages)
    _known: dict[object, StagedValue] = field(default_factory=dict)

    def select(
        self, table: ir.Table, terms: Mapping[str, StagedValue], where: Condition | None = None
    ) -> ir.Table:
        """The terms as columns, for the rows in which the condition is known to hold."""
        return self._stages.select(table, terms, None if where is None else self.holds(where))

    def raw(self, name: str, meaning: Callable[[Any], Any]) -> StagedValue:  # Any: Ibis expressions
        """An expression of an undeclared column, such as the id."""
        return self.of_rows(lambda table: meaning(table[name]))

    def of_rows(self, meaning: Callable[[ir.Table], Any]) -> StagedValue:  # Any: Ibis expressions
        """An expression of undeclared columns of the rows."""
        return self._stages.keep(StagedValue(0, meaning))

    def scalar(self, scalar: Scalar) -> StagedValue:
        """The value, or NULL; never NaN, and within the range that `infer` derives."""
        if scalar not in self._known:
            self._known[scalar] = self._value(scalar)
        return self._known[scalar]

    def holds(self, condition: Condition) -> StagedValue:
        """Whether the condition is known to hold: SQL's WHERE."""
        return self._decided(condition)[0]

    def infer(self, scalar: Scalar) -> ScalarFacts:
        """The facts that hold for the value."""
        return infer(scalar, self.declaration)

    # --- values ---

    def _value(self, scalar: Scalar) -> StagedValue:
        fact = self.infer(scalar)
        assert not isinstance(scalar, Measure)  # which `infer` refuses
        match scalar:
            case ColumnRef(name):
                return self.raw(name, lambda raw: _declared(raw, self._column(name)))
            case Literal(value):
                return constant_term(_constant(value, fact.type))
            case Arithmetic():
                made = self._computed(scalar)
                if fact.type is not ColumnType.NUMBER:
                    return self._stages.keep(made)
            case FunctionCall():
                made = self._called(scalar, fact)
            case Case(branches, otherwise):
                made = self._chosen(branches, otherwise, fact)
            case Truth(condition):
                true, false = self._decided(condition)
                return self._stages.keep(combined(_truth, true, false))
        if fact.type not in NUMERIC:
            return self._stages.keep(made)
        # ranges were derived in exact fractions; floats round, and can leave them by far
        plain = self._stages.keep(combined(lambda value: _without_nan(value, fact), made))
        if fact.lower is None and fact.upper is None:
            return plain
        return self._stages.keep(combined(lambda value: _within(value, fact), plain))

    def _computed(self, scalar: Scalar) -> StagedValue:
        """Arithmetic without a clamp at each operation; its facts bound what it can reach."""
        if not isinstance(scalar, Arithmetic):
            return self.scalar(scalar)
        fact = self.infer(scalar)
        if fact.lower is not None and fact.lower == fact.upper and not fact.can_be_null:
            return constant_term(
                _constant(fact.lower, fact.type)
            )  # some engines compute it in 32 bits
        sides = [self._computed(side) for side in (scalar.left, scalar.right)]
        if self.infer(scalar.left).type is ColumnType.DATE:
            return combined(lambda end, start: end.delta(start, unit="day").cast("int64"), *sides)
        kind, operation = ENGINE_TYPES[fact.type], _ARITHMETIC[scalar.operator]
        return combined(lambda one, other: operation(one.cast(kind), other.cast(kind)), *sides)

    def _called(self, call: FunctionCall, fact: ScalarFacts) -> StagedValue:
        rule = FUNCTIONS[call.function]
        arguments = [
            self._argument(argument, rule.argument(place))
            for place, argument in enumerate(call.arguments)
        ]
        return combined(lambda *values: rule.meaning(fact, *values), *arguments)

    def _argument(self, scalar: Scalar, taken: Parameter) -> StagedValue:
        if taken.is_constant and isinstance(scalar, Literal):
            return constant_term(scalar.value)
        if taken.types != TEXTS.types:
            return self.scalar(scalar)
        if ("valid", scalar) not in self._known:
            valid = combined(valid_text, self.scalar(scalar))
            self._known["valid", scalar] = self._stages.keep(valid)
        return self._known["valid", scalar]

    def _chosen(
        self, branches: tuple[Branch, ...], otherwise: Scalar | None, fact: ScalarFacts
    ) -> StagedValue:
        kind = ENGINE_TYPES[fact.type]

        def result(value: Scalar | None) -> StagedValue:
            if value is None:
                return constant_term(ibis.null(kind))
            return combined(lambda found: found.cast(kind), self.scalar(value))

        conditions = [self.holds(branch.condition) for branch in branches]
        return combined(
            _first,
            result(otherwise),
            *(
                term
                for condition, branch in zip(conditions, branches, strict=True)
                for term in (condition, result(branch.value))
            ),
        )

    def _column(self, name: str) -> Column:
        return column_of(name, self.declaration)

    # --- conditions ---

    def _decided(self, condition: Condition) -> tuple[StagedValue, StagedValue]:
        """Whether the condition is known to hold, and whether it is known not to hold."""
        match condition:
            case Comparison(relation, left, right):
                return self._known_or_not(self._compared(relation, left, right))
            case Membership(value, options):
                return self._known_or_not(self._is_one_of(value, options))
            case Holds(value):
                return self._known_or_not(self.scalar(value))
            case IsNull(value):
                term = self.scalar(value)
                return combined(lambda v: v.isnull(), term), combined(lambda v: v.notnull(), term)
            case Negation(inner):
                true, false = self._decided(inner)
                return false, true
            case Both(one, other):
                (true, false), (also_true, also_false) = self._decided(one), self._decided(other)
                return _all(true, also_true), _any(false, also_false)
            case Either(one, other):
                (true, false), (also_true, also_false) = self._decided(one), self._decided(other)
                return _any(true, also_true), _all(false, also_false)

    def _known_or_not(self, answer: StagedValue) -> tuple[StagedValue, StagedValue]:
        """For a truth value that may be NULL."""
        return (
            combined(lambda known: ibis.coalesce(known, _FALSE), answer),
            combined(lambda known: ibis.coalesce(~known, _FALSE), answer),
        )

    def _compared(self, relation: Relation, left: Scalar, right: Scalar) -> StagedValue:
        """SQL's comparison. A 64-bit integer is compared exactly with a literal that is none."""
        if isinstance(left, Literal) and not isinstance(right, Literal):
            left, right, relation = right, left, _TURNED[relation]
        if not (isinstance(right, Literal) and self._is_integer_and_not(left, right)):
            related = _RELATIONS[relation]
            return combined(
                lambda one, other: related(comparable(one), comparable(other)),
                self.scalar(left),
                self.scalar(right),
            )
        number = cast(Fraction, right.value)
        return combined(
            lambda value: ibis.ifelse(
                value.isnull(), ibis.null("boolean"), _of_whole(value, relation, number)
            ),
            self.scalar(left),
        )

    def _is_one_of(self, scalar: Scalar, options: tuple[Literal, ...]) -> StagedValue:
        equal = [option for option in options if not self._is_integer_and_not(scalar, option)]
        if not equal:
            return combined(
                lambda value: ibis.ifelse(value.isnull(), ibis.null("boolean"), _FALSE),
                self.scalar(scalar),
            )
        return combined(
            lambda value, *others: comparable(value).isin([comparable(one) for one in others]),
            self.scalar(scalar),
            *(self.scalar(option) for option in equal),
        )

    def _is_integer_and_not(self, scalar: Scalar, literal: Literal) -> bool:
        """Whether the scalar is a 64-bit integer, and the literal a number that is not."""
        kinds = self.infer(scalar).type, self.infer(literal).type
        return kinds == (ColumnType.INTEGER, ColumnType.NUMBER)

    # --- sums ---

    def addend(self, one: SumOf) -> StagedValue:
        """A row's addend to the sum: an integer within its ends, 0 where the argument is NULL."""
        zero, unit = ibis.literal(0, "int64"), ibis.literal(1, "int64")
        if one.argument is None:
            return constant_term(unit)
        if isinstance(one.argument, ColumnOutcome):
            return self._outcome(one.argument)
        if one.grid is None:
            value = self.scalar(one.argument)
            return combined(lambda value: value.notnull().ifelse(unit, zero), value)
        moved = self.point(one.argument, one.grid)
        if one.times is not None:
            other = self.point(one.times.argument, one.times.grid)
            product = self._stages.keep(combined(operator.mul, moved, other))
            moved = combined(lambda n: clamped(n, *one.ends), product)
        if one.is_squared:
            squared = self._stages.keep(combined(lambda n: n * n - one.shift, moved))
            moved = combined(lambda n: clamped(n, *one.ends), squared)
        return combined(lambda n: ibis.coalesce(n, zero), moved)

    def point(self, argument: Scalar, grid: SumGrid) -> StagedValue:
        """The argument in steps of the grid from its centre, within its ends; NULL stays NULL."""
        if (argument, grid) in self._known:
            return self._known[argument, grid]
        steps = self.scalar(argument)
        if grid.exponent != 0 or self.infer(argument).type is not ColumnType.INTEGER:
            # clamped to its range, scaled and rounded it fits 64 bits
            scale = ibis.literal(2.0**grid.exponent * 10.0**grid.decimals, "float64")
            scaled = combined(
                lambda value: (value.cast("float64") * scale).round().cast("int64"), steps
            )
            steps = self._stages.keep(scaled)
        ends = grid.lower + grid.center, grid.upper + grid.center
        moved = combined(lambda n: clamped(n, *ends), steps)
        if grid.center:
            moved = combined(lambda n: n - grid.center, moved)
        self._known[argument, grid] = self._stages.keep(moved)
        return self._known[argument, grid]

    def _outcome(self, one: ColumnOutcome) -> StagedValue:
        column = self._column(one.column)

        def meaning(raw: Any) -> Any:  # Any: Ibis expressions
            lost, held = outcomes(raw, column)
            match one.outcome:
                case ValueOutcome.THERE:
                    return (lost | held).cast("int64")
                case ValueOutcome.LOST:
                    return lost.cast("int64")
            below, above = beyond(raw, column)
            return (below if one.outcome is ValueOutcome.BELOW else above).cast("int64")

        return self.raw(one.column, meaning)


def _declared(raw: Any, column: Column) -> Any:  # Any: Ibis expressions
    """The column as declared: converted to its type, clamped, with NaN and NULL replaced."""
    value = converted(raw, column)
    if column.null is None:
        return value
    return ibis.coalesce(value, _constant(column.null, column.type))


def _without_nan(value: Any, fact: ScalarFacts) -> Any:  # Any: Ibis expressions
    typed = value.cast(ENGINE_TYPES[fact.type])
    if fact.type is ColumnType.INTEGER:
        return typed
    return ibis.ifelse(typed.isnan(), ibis.null("float64"), typed)


def _within(value: Any, fact: ScalarFacts) -> Any:  # Any: Ibis expressions
    """The value moved into its range, or to the one end that it has."""
    lower, upper = (
        value if end is None else _constant(end, fact.type) for end in (fact.lower, fact.upper)
    )
    return clamped(value, lower, upper)


def _first(otherwise: Any, *branches: Any) -> Any:  # Any: Ibis expressions
    pairs = zip(branches[::2], branches[1::2], strict=True)
    return ibis.cases(*pairs, else_=otherwise)


def _truth(true: Any, false: Any) -> Any:  # Any: Ibis expressions
    return ibis.ifelse(true, _TRUE, ibis.ifelse(false, _FALSE, ibis.null("boolean")))


def _all(one: StagedValue, other: StagedValue) -> StagedValue:
    return combined(operator.and_, one, other)


def _any(one: StagedValue, other: StagedValue) -> StagedValue:
    return combined(operator.or_, one, other)


def _constant(value: KeyValue | Fraction, kind: ColumnType) -> ir.Value:
    """The constant in the engine's type. A number is cast from its digits, since engines take plain
    digits for decimals or for integers of 32 bits, and compute in these."""
    if (
        kind is ColumnType.INTEGER
        and isinstance(value, int | Fraction)
        and -_INT64 <= value < _INT64
    ):
        return ibis.literal(str(int(value))).cast("int64")
    if isinstance(value, int | Fraction) and not isinstance(value, bool):
        return ibis.literal(repr(float(value))).cast("float64")
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
