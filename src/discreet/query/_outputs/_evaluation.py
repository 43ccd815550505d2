"""Evaluates values that are computed from an answer, each with an interval.

An output's risk, 1 - confidence, is shared equally by the different aggregates in it. Where none of
their intervals fails, interval arithmetic encloses the number that has no noise (Bonferroni): an
operation or function takes intervals to an interval that holds all its results, and CASE to one
that holds the results of all branches that may be taken. An end that the noise leaves open, as when
a divisor may be 0, is infinite here.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from discreet.query._estimates._enclosed import Enclosed, chosen, enclosed, hull, outward, points
from discreet.query._expressions._expressions import (
    Arithmetic,
    Both,
    Branch,
    Case,
    Comparison,
    Condition,
    Either,
    FunctionCall,
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
from discreet.query._facts._columns import KeyValue
from discreet.query._functions._scalar_rules import ScalarFunction
from discreet.query._outputs._chosen_rows import AnswerRows, true_and_false
from discreet.query._outputs._output_functions import (
    CASTS_OF_NUMBERS,
    ONE_NUMBER,
    SEVERAL_NUMBERS,
    coalesced,
)
from discreet.query._outputs._post_processing import measures_in

Truths = npt.NDArray[np.bool_]
Leaf = Callable[[Scalar], Enclosed | None]


def evaluate(
    value: Scalar,
    leaf: Leaf,
    rows: int,
    keys: Mapping[Scalar, Sequence[KeyValue | None]] | None = None,
) -> Enclosed:
    """A value with the interval that the intervals of its aggregates and keys allow."""
    return _Evaluation(leaf, rows, keys or {}).number(value)


@dataclass(frozen=True, slots=True)
class _Evaluation:
    """The intervals of leaves, and the keys of each row."""

    leaf: Leaf
    rows: int
    keys: Mapping[Scalar, Sequence[KeyValue | None]]

    @property
    def plain(self) -> AnswerRows:
        """The rows without intervals."""
        return AnswerRows(self.keys, lambda value: self.number(value).values, self.rows)

    def number(self, value: Scalar) -> Enclosed:
        if (known := self.leaf(value)) is not None:
            return known
        match value:
            case Literal(Fraction() as number):
                return same_in_rows(number, self.rows)
            case Arithmetic(operator, left, right):
                sides = self.number(left), self.number(right)
                with np.errstate(all="ignore"):  # a warning would depend on the noise
                    return _OPERATIONS[operator](*sides)
            case FunctionCall(ScalarFunction.COALESCE, arguments):
                return coalesced([self.number(one) for one in arguments])
            case FunctionCall(function, (Truth(condition),)) if function in CASTS_OF_NUMBERS:
                one, zero = Literal(Fraction(1)), Literal(Fraction(0))
                branches = Branch(condition, one), Branch(Negation(condition), zero)
                return self.number(Case(branches))
            case FunctionCall(function, (first, *others)) if function in ONE_NUMBER:
                given = [one.value for one in others if isinstance(one, Literal)]
                with np.errstate(all="ignore"):  # as above
                    return ONE_NUMBER[function](self.number(first), *given)
            case FunctionCall(function, arguments):
                return SEVERAL_NUMBERS[function]([self.number(one) for one in arguments])
            case Case(branches, otherwise):
                return self._of_case(branches, otherwise)
        raise AssertionError("checked by `check_post_processing`")

    def _of_case(self, branches: Sequence[Branch], otherwise: Scalar | None) -> Enclosed:
        """The value of the branch that is taken; the interval holds those of all branches that may
        be taken without noise."""
        found = self._branch(otherwise)
        for branch in reversed(branches):
            own, outcomes = self._branch(branch.value), self.outcomes(branch.condition)
            holds = np.array(true_and_false(branch.condition, self.plain)[0], dtype=bool)
            values = np.where(holds, own.values, found.values)
            both = hull(own, found, values=values)
            only = chosen(outcomes.can_be_true, replace(own, values=values), found)
            found = chosen(outcomes.can_be_true & outcomes.can_be_other, both, only)
        is_empty = found.low > found.high
        low, high = np.where(is_empty, -np.inf, found.low), np.where(is_empty, np.inf, found.high)
        return enclosed(found.values, low, high, found.nullable)

    def _branch(self, value: Scalar | None) -> Enclosed:
        """The number of a branch; of NULL, an interval that holds nothing."""
        if value is not None:
            return self.number(value)
        none, most = (np.full(self.rows, number) for number in (np.nan, np.inf))
        return Enclosed(none, most, -most, can_be_null=True)

    # --- conditions ---

    def outcomes(self, condition: Condition) -> "_PossibleOutcomes":
        if not measures_in([condition]):
            return _PossibleOutcomes.known(*true_and_false(condition, self.plain))
        match condition:
            case Both(one, other):
                return self.outcomes(one).both(self.outcomes(other))
            case Either(one, other):
                return self.outcomes(one).negated.both(self.outcomes(other).negated).negated
            case Negation(inner):
                return self.outcomes(inner).negated
            case Comparison(relation, left, right) if self._is_number(left):
                return _compared(relation, self.number(left), self.number(right))
            case Membership(value, options) if self._is_number(value):
                found, ends = self.number(value), [self.number(one) for one in options]
                true = [(found.low <= end.high) & (end.low <= found.high) for end in ends]
                can_be_true = np.logical_or.reduce(true)
                return _PossibleOutcomes(
                    can_be_true, np.ones(self.rows, dtype=bool), found.nullable
                )
            case IsNull(value) if self._is_number(value):
                nulls = self.number(value).nullable
                return _PossibleOutcomes(
                    nulls, np.ones(self.rows, dtype=bool), np.zeros_like(nulls)
                )
        anything = np.ones(self.rows, dtype=bool)
        return _PossibleOutcomes(anything, anything, anything)

    def _is_number(self, value: Scalar) -> bool:
        match value:
            case Measure() | Arithmetic():
                return True
            case Literal(constant):
                return isinstance(constant, Fraction)
            case FunctionCall(ScalarFunction.COALESCE, arguments):
                return self._is_number(arguments[0])
            case Case(branches, otherwise):
                values = (*(branch.value for branch in branches), otherwise)
                return self._is_number(next(one for one in values if one is not None))
        if value in self.keys:
            there = [key for key in self.keys[value] if key is not None]
            return bool(there) and all(type(key) is int for key in there)
        return isinstance(value, FunctionCall)


@dataclass(frozen=True, slots=True)
class _PossibleOutcomes:
    """The outcomes that a condition may have in each row without noise."""

    can_be_true: Truths
    can_be_false: Truths
    can_be_unknown: Truths

    @staticmethod
    def known(true: Sequence[bool], false: Sequence[bool]) -> "_PossibleOutcomes":
        holds, fails = np.array(true, dtype=bool), np.array(false, dtype=bool)
        return _PossibleOutcomes(holds, fails, ~(holds | fails))

    @property
    def can_be_other(self) -> Truths:
        """Whether it may be false or unknown."""
        return self.can_be_false | self.can_be_unknown

    @property
    def negated(self) -> "_PossibleOutcomes":
        return _PossibleOutcomes(self.can_be_false, self.can_be_true, self.can_be_unknown)

    def both(self, other: "_PossibleOutcomes") -> "_PossibleOutcomes":
        return _PossibleOutcomes(
            self.can_be_true & other.can_be_true,
            self.can_be_false | other.can_be_false,
            self.can_be_unknown | other.can_be_unknown,
        )


def _compared(relation: Relation, left: Enclosed, right: Enclosed) -> _PossibleOutcomes:
    unknown = left.nullable | right.nullable
    match relation:
        case Relation.LESS:
            return _PossibleOutcomes(left.low < right.high, left.high >= right.low, unknown)
        case Relation.AT_MOST:
            return _PossibleOutcomes(left.low <= right.high, left.high > right.low, unknown)
        case Relation.GREATER:
            return _compared(Relation.LESS, right, left)
        case Relation.AT_LEAST:
            return _compared(Relation.AT_MOST, right, left)
    equal = (left.low <= right.high) & (right.low <= left.high)
    is_fixed = (left.low == left.high) & (right.low == right.high) & equal
    found = _PossibleOutcomes(equal, ~is_fixed, unknown)
    return found if relation is Relation.EQUAL else found.negated


def same_in_rows(number: Fraction, rows: int) -> Enclosed:
    """The same number in all rows."""
    try:
        near = float(number)
    except OverflowError:
        near = math.copysign(math.inf, number)
    return points(np.full(rows, near), is_exact=near == number)


def _sum(left: Enclosed, right: Enclosed) -> Enclosed:
    low, high = left.low + right.low, left.high + right.high
    return outward(left.values + right.values, low, high, left.nullable | right.nullable)


def _difference(left: Enclosed, right: Enclosed) -> Enclosed:
    low, high = left.low - right.high, left.high - right.low
    return outward(left.values - right.values, low, high, left.nullable | right.nullable)


def _product(left: Enclosed, right: Enclosed) -> Enclosed:
    corners = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
    known = [np.where(np.isnan(one), 0.0, one) for one in corners]  # 0 times what is open is 0
    low, high = np.minimum.reduce(known), np.maximum.reduce(known)
    return outward(left.values * right.values, low, high, left.nullable | right.nullable)


def _quotient(left: Enclosed, right: Enclosed) -> Enclosed:
    """The quotient. It is open on the sides that it may reach with a divisor near 0, and on both
    where the divisor's sign is not known."""
    is_positive, is_negative = right.low >= 0, right.high <= 0
    low = np.where(is_positive, 1 / right.high, -np.inf)
    high = np.where(is_positive, 1 / np.abs(right.low), np.inf)
    low = np.where(is_negative, 1 / -np.abs(right.high), low)
    high = np.where(is_negative, 1 / right.low, high)
    is_open = is_positive == is_negative  # neither, or 0 alone
    low, high = np.where(is_open, -np.inf, low), np.where(is_open, np.inf, high)
    inverse = outward(np.zeros_like(low), low, high)
    product = _product(left, inverse)
    values = np.where(right.values == 0, np.nan, left.values / right.values)
    can_be_null = left.nullable | right.nullable | ((right.low <= 0) & (right.high >= 0))
    return outward(values, product.low, product.high, can_be_null)


_OPERATIONS: dict[Operator, Callable[[Enclosed, Enclosed], Enclosed]] = {
    Operator.ADD: _sum,
    Operator.SUBTRACT: _difference,
    Operator.MULTIPLY: _product,
    Operator.DIVIDE: _quotient,
}
