"""The types of values that are computed from an answer, and the refusals of those without a rule.

A value is made of keys, aggregates, literals, arithmetic, CASE, comparisons and the functions of
`_output_functions`. Any number is a NUMBER here.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.errors import QueryRefused
from discreet.query._expressions._expression_text import condition_text, scalar_text, way_to_compare
from discreet.query._expressions._expressions import (
    Arithmetic,
    Both,
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
from discreet.query._expressions._inference import infer
from discreet.query._facts._columns import ColumnType
from discreet.query._facts._declaration import Declaration
from discreet.query._functions._functions import FUNCTIONS
from discreet.query._functions._scalar_rules import ScalarFunction
from discreet.query._outputs._output_functions import CASTS_OF_NUMBERS, LISTED, NUMBERS_OF_NUMBERS

_CLOSED = (
    "what is computed from an answer is made of keys, aggregates, literals, + - * /, comparisons, "
    f"CASE and {LISTED}"
)


@dataclass(frozen=True, slots=True)
class OutputTypes:
    """The types of values over the keys of a query. No group's numbers decide on them."""

    declaration: Declaration
    keys: Collection[Scalar]

    def of(self, value: Scalar) -> ColumnType:
        """The type of a value; `QueryRefused` if it has no rule."""
        if value in self.keys or isinstance(value, Literal):
            kind = infer(value, self.declaration).type
            return ColumnType.NUMBER if kind.is_numeric else kind
        match value:
            case Measure():
                return ColumnType.NUMBER
            case Arithmetic():
                return self._of_arithmetic(value)
            case FunctionCall():
                return self._of_call(value)
            case Case(branches, otherwise):
                for branch in branches:
                    self.check(branch.condition)
                values = [*(branch.value for branch in branches), otherwise]
                return self._common(value, [one for one in values if one is not None])
            case Truth(condition):
                self.check(condition)
                return ColumnType.BOOLEAN
            case ColumnRef(name):
                fact = infer(value, self.declaration)  # which refuses what is not declared
                number = f"AVG({scalar_text(value)})" if fact.type.is_numeric else "COUNT(*)"
                raise QueryRefused(
                    f"{name} is no key of the groups; WHERE chooses rows by it, HAVING by "
                    f"aggregates, such as {number}"
                )
        raise QueryRefused(f"{scalar_text(value)}: {_CLOSED}")

    def _of_arithmetic(self, value: Arithmetic) -> ColumnType:
        for side in (value.left, value.right):
            kind = self.of(side)
            if kind is not ColumnType.NUMBER:
                raise QueryRefused(
                    f"{scalar_text(side)} is {kind.value}: arithmetic is defined for numbers only"
                )
        if value.operator is Operator.DIVIDE and value.right == Literal(Fraction(0)):
            raise QueryRefused(f"{scalar_text(value)}: this divides by 0")
        return ColumnType.NUMBER

    def _of_call(self, call: FunctionCall) -> ColumnType:
        name, rule, given = call.function.value, FUNCTIONS[call.function], call.arguments
        known = call.function in NUMBERS_OF_NUMBERS or call.function in CASTS_OF_NUMBERS
        if not known and call.function is not ScalarFunction.COALESCE:
            raise QueryRefused(f"{scalar_text(call)}: {_CLOSED}")
        if not rule.takes_this_many(len(given)):
            raise QueryRefused(f"{scalar_text(call)}: {name} does not take {len(given)} values")
        if call.function is ScalarFunction.COALESCE:
            return self._common(call, given)
        for place, one in enumerate(given):
            kind = self.of(one)
            is_truth = kind is ColumnType.BOOLEAN and call.function in CASTS_OF_NUMBERS
            if kind is not ColumnType.NUMBER and not is_truth:
                raise QueryRefused(
                    f"{scalar_text(one)} is {kind.value}: {name} takes a number here"
                )
            if rule.argument(place).is_constant:
                self._check_constant(call, one)
        return ColumnType.NUMBER

    def _check_constant(self, call: FunctionCall, given: Scalar) -> None:
        if not isinstance(given, Literal):
            raise QueryRefused(
                f"{scalar_text(given)} is no literal: {call.function.value} takes one here"
            )
        try:  # with the constant, as over rows
            number = infer(Literal(Fraction(1, 2)), self.declaration)
            FUNCTIONS[call.function].facts([number, infer(given, self.declaration)])
        except QueryRefused as refusal:
            raise QueryRefused(f"{scalar_text(call)}: {refusal}") from None

    def _common(self, whole: Scalar, values: Sequence[Scalar]) -> ColumnType:
        kinds = {self.of(one) for one in values}
        if not kinds:
            raise QueryRefused(f"{scalar_text(whole)} is always NULL; give it a value")
        if len(kinds) > 1:
            named = ", ".join(sorted(kind.value for kind in kinds))
            raise QueryRefused(f"{scalar_text(whole)}: its values are of several types: {named}")
        return kinds.pop()

    # --- conditions ---

    def check(self, condition: Condition) -> None:
        """Refuse a condition that compares values of different types, and what is no condition."""
        if Truth(condition) in self.keys:
            return
        match condition:
            case Both(one, other) | Either(one, other):
                self.check(one)
                self.check(other)
            case Negation(inner):
                self.check(inner)
            case Comparison():
                self._comparison(condition)
            case Membership(value, options):
                if not options:
                    raise QueryRefused(f"{scalar_text(value)} IN (): give at least one value")
                for option in options:
                    self._alike(value, option)
            case IsNull(value):
                self.of(value)
            case Holds(value):
                self._truth(value)

    def _comparison(self, condition: Comparison) -> None:
        kind = self._alike(condition.left, condition.right)
        is_equality = condition.relation in (Relation.EQUAL, Relation.UNEQUAL)
        if kind is ColumnType.BOOLEAN and not is_equality:
            text = condition_text(condition)
            raise QueryRefused(f"{text}: truth values compare by = and <> only")

    def _truth(self, value: Scalar) -> None:
        if self.of(value) is not ColumnType.BOOLEAN:
            raise QueryRefused(f"{scalar_text(value)} is no condition; compare it with something")

    def _alike(self, left: Scalar, right: Scalar) -> ColumnType:
        kinds = self.of(left), self.of(right)
        if kinds[0] is not kinds[1]:
            raise QueryRefused(
                f"{scalar_text(left)} is {kinds[0].value}, {scalar_text(right)} is "
                f"{kinds[1].value}: they don't compare{way_to_compare((left, right), kinds)}"
            )
        return kinds[0]
