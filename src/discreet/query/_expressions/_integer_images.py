"""The values that an expression of whole numbers can have: the image of its parts' values.

``FLOOR(x / 10) * 10`` has only multiples of 10, and ``x - x % 10`` too. Whole-number arithmetic is
exact in each engine, so it is computed here for all values of its parts at once. A part is what is
not such arithmetic itself: a column, or a function such as ``FLOOR(x / 10)``. A part that stands in
several places has one value in all of them.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from discreet._arrays import IndexArray
from discreet.query._expressions._expressions import (
    Arithmetic,
    FunctionCall,
    Literal,
    Operator,
    Scalar,
)
from discreet.query._expressions._inference import infer
from discreet.query._facts._columns import ColumnType
from discreet.query._facts._declaration import Declaration
from discreet.query._functions._scalar_rules import ScalarFunction

_SAME = {ScalarFunction.FLOOR, ScalarFunction.CEIL}  # of whole numbers
_OPERATORS = {
    Operator.ADD: np.add,
    Operator.SUBTRACT: np.subtract,
    Operator.MULTIPLY: np.multiply,
}


def integer_image(
    scalar: Scalar,
    facts: Declaration,
    values_of: Callable[[Scalar], Sequence[int] | None],
    most: int,
) -> list[int] | None:
    """All values of a whole-number expression besides NULL, in order; ``values_of`` gives those of
    a part. None if the values of a part are not known, if their combinations are more than
    ``most``, or if the expression is a part itself."""
    if not _is_computed(scalar, facts):
        return None
    values: dict[Scalar, Sequence[int]] = {}
    for part in _parts(scalar, facts):
        found = values_of(part)
        if found is None:
            return None
        values[part] = found
    if math.prod(map(len, values.values())) > most:
        return None
    grids = np.meshgrid(*(np.asarray(one, np.int64) for one in values.values()), indexing="ij")
    given = dict(zip(values, grids, strict=True))
    return [int(value) for value in np.unique(_computed(scalar, facts, given))]


def _is_computed(scalar: Scalar, facts: Declaration) -> bool:
    """Whether the expression is exact arithmetic of whole numbers, of at most 63 bits."""
    if isinstance(scalar, Literal) or infer(scalar, facts).type is not ColumnType.INTEGER:
        return False
    match scalar:
        case Arithmetic(operator, left, right):
            return operator in _OPERATORS and _are_whole((left, right), facts)
        case FunctionCall(ScalarFunction.MOD, (value, Literal() as divisor)):
            return _are_whole((value, divisor), facts) and divisor.value != 0
        case FunctionCall(ScalarFunction.ABS, (value,)):
            return _are_whole((value,), facts)
        case FunctionCall(function, (value,)):
            return function in _SAME and _are_whole((value,), facts)
    return False


def _are_whole(scalars: Sequence[Scalar], facts: Declaration) -> bool:
    return all(infer(one, facts).type is ColumnType.INTEGER for one in scalars)


def _parts(scalar: Scalar, facts: Declaration) -> list[Scalar]:
    """The parts of an expression, each once. Literals are none."""
    if isinstance(scalar, Literal):
        return []
    if not _is_computed(scalar, facts):
        return [scalar]
    inner = [part for one in _arguments(scalar) for part in _parts(one, facts)]
    return list(dict.fromkeys(inner))


def _arguments(scalar: Scalar) -> tuple[Scalar, ...]:
    if isinstance(scalar, Arithmetic):
        return scalar.left, scalar.right
    assert isinstance(scalar, FunctionCall)  # nothing else is computed
    return scalar.arguments


def _computed(scalar: Scalar, facts: Declaration, given: Mapping[Scalar, IndexArray]) -> IndexArray:
    """The values of an expression for each combination of its parts' values."""
    if scalar in given:
        return given[scalar]
    if isinstance(scalar, Literal):
        assert not isinstance(scalar.value, str)  # it is a whole number
        return np.asarray(scalar.value, np.int64)
    values = [_computed(one, facts, given) for one in _arguments(scalar)]
    if isinstance(scalar, Arithmetic):
        return np.asarray(_OPERATORS[scalar.operator](*values))
    assert isinstance(scalar, FunctionCall)
    if scalar.function is ScalarFunction.MOD:
        return np.asarray(np.fmod(*values))  # with the sign of the dividend
    return np.asarray(np.abs(values[0])) if scalar.function is ScalarFunction.ABS else values[0]
