"""Reads the aggregates of an SQL text: their values, levels, and WITHIN GROUP."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from discreet.errors import InvalidArgument
from discreet.query._expressions._aggregates import ESTIMATORS, SPELLINGS, AggregateFunction
from discreet.query._expressions._expressions import Aggregate, Scalar
from discreet.query._expressions._levels import level_names
from discreet.query._sql._leaves import are_id, bare, own_name, read_number
from discreet.query._sql._tree_reader import TreeReader

_ORDERED = "write PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY wage), or QUANTILE(wage, 0.9)"
_IN_ORDER = {"PERCENTILE_CONT", "PERCENTILE_DISC"}


@dataclass(frozen=True, slots=True)
class AskedAggregate:
    """An aggregate without a name."""

    function: AggregateFunction
    values: tuple[Scalar, ...]
    level: Fraction | None = None

    def named(self, name: str) -> Aggregate:
        argument, second = (*self.values, None, None)[:2]
        return Aggregate(self.function, argument, name, self.level, second)


def read_aggregate(node: exp.Expr, reader: TreeReader) -> AskedAggregate:
    """The one aggregate that a node is."""
    found = _asked(node, reader)
    if len(found) > 1:
        raise reader.refused(node, "several levels are columns of SELECT; name one level here")
    return found[0]


def read_columns(node: exp.Expr, reader: TreeReader) -> list[tuple[AskedAggregate, str]]:
    """The aggregates that an item of SELECT is, each with the name that it has without an alias.
    Of several levels there is one for each, called as `level_names` says."""
    found = _asked(node, reader)
    own = "".join(_names_of_columns(node, reader))
    if len(found) == 1:
        (one,) = found
        return [(one, one.function.value.lower() + own * bool(one.values))]
    return list(
        zip(found, names_of_levels(node, own[1:] or "quantile", found, reader), strict=True)
    )


def names_of_levels(
    node: exp.Expr, name: str, found: Sequence[AskedAggregate], reader: TreeReader
) -> list[str]:
    """The names of the columns of several levels."""
    levels = [one.level for one in found if one.level is not None]
    try:
        return list(level_names(name, levels))
    except InvalidArgument:
        raise reader.refused(
            node, "give levels above 0 and below 1, each once, and of at most 6 digits"
        ) from None


def _names_of_columns(node: exp.Expr, reader: TreeReader) -> list[str]:
    """The ending of an aggregate's name: those of the columns that it is of."""
    if isinstance(node, exp.WithinGroup):
        written = [one.this for one in node.expression.expressions]
    else:
        first = node.expressions[0]
        written = first.expressions if isinstance(first, exp.Distinct) else node.expressions
    columns = (value for value in map(bare, written) if isinstance(value, exp.Column))
    return [f"_{own_name(column, reader).lower()}" for column in columns]


def _asked(node: exp.Expr, reader: TreeReader) -> list[AskedAggregate]:
    """The aggregates that a node is: one for each of its levels, or one."""
    if isinstance(node, exp.WithinGroup):
        return _within_group(node, reader)
    function, written = SPELLINGS[node.name.upper()], node.expressions
    if written and isinstance(written[0], exp.Distinct):
        return [_distinct(function, node, reader)]
    nodes, levels = _arguments(function, node, reader)
    counts = AggregateFunction.COUNT, AggregateFunction.COUNT_UNITS
    is_of_rows = function in counts and isinstance(nodes[0], exp.Star)
    values = () if is_of_rows else tuple(reader.scalar(value) for value in nodes)
    return [AskedAggregate(function, values, level) for level in levels]


def _within_group(node: exp.Expr, reader: TreeReader) -> list[AskedAggregate]:
    """PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x): the quantile, from the other end for DESC.
    MODE() has no level."""
    call, keys = node.this, node.expression.expressions
    if call.name.upper() == "MODE" and not call.expressions and len(keys) == 1:
        return [AskedAggregate(AggregateFunction.MODE, (reader.scalar(bare(keys[0].this)),))]
    levels = _levels(call.expressions[0], reader) if len(call.expressions) == 1 else None
    if call.name.upper() not in _IN_ORDER or levels is None or len(keys) != 1:
        raise reader.refused(node, _ORDERED)
    is_descending = keys[0].args["desc"] == "DESC"
    values = (reader.scalar(bare(keys[0].this)),)
    return [
        AskedAggregate(AggregateFunction.QUANTILE, values, 1 - one if is_descending else one)
        for one in levels
    ]


def _distinct(function: AggregateFunction, node: exp.Expr, reader: TreeReader) -> AskedAggregate:
    """COUNT(DISTINCT value); of the column that identifies units it counts them."""
    values = [bare(value) for value in node.expressions[0].expressions]
    is_plain = function is AggregateFunction.COUNT and len(node.expressions) == 1
    if is_plain and values and are_id(values, reader):
        return AskedAggregate(AggregateFunction.COUNT_UNITS, ())
    if not is_plain or len(values) != 1:
        several = "; for two values write COUNT(DISTINCT x || ' ' || y)" if values[1:] else ""
        raise reader.refused(node, f"DISTINCT stands in COUNT(DISTINCT value) only{several}")
    return AskedAggregate(AggregateFunction.COUNT_DISTINCT, (reader.scalar(values[0]),))


def _arguments(
    function: AggregateFunction, node: exp.Expr, reader: TreeReader
) -> tuple[Sequence[exp.Expr], Sequence[Fraction | None]]:
    """The values that are aggregated, and the levels of a quantile."""
    estimator, name = ESTIMATORS[function], function.value
    if estimator.takes_two:
        if len(node.expressions) != 2:
            raise reader.refused(node, f"{name} takes two values, as in {name}(wage, age)")
        return node.expressions, [None]
    if not estimator.takes_level:
        if len(node.expressions) != 1:
            example = "or a *" if name.startswith("COUNT") else f"as in {name}(wage)"
            raise reader.refused(node, f"{name} takes one value, {example}")
        return node.expressions, [None]
    if len(node.expressions) == 1 and node.name.upper() in _IN_ORDER:
        raise reader.refused(node, _ORDERED)
    levels = _levels(node.expressions[1], reader) if len(node.expressions) == 2 else None
    if levels is None:
        raise reader.refused(node, f"{name} takes a value and a level, as in {name}(wage, 0.9)")
    return node.expressions[:1], levels


def _levels(node: exp.Expr, reader: TreeReader) -> list[Fraction] | None:
    """One level, or those of a list; ``None`` for anything else."""
    nodes = node.expressions if isinstance(node, exp.Array) else [node]
    levels = [_level(one, reader) for one in nodes]
    found = [level for level in levels if level is not None]
    return found if found and len(found) == len(levels) else None


def _level(node: exp.Expr, reader: TreeReader) -> Fraction | None:
    """A number, or the quotient of two; ``None`` for anything else."""
    node = bare(node)
    if isinstance(node, exp.Div):
        sides = _level(node.this, reader), _level(node.expression, reader)
        return sides[0] / sides[1] if sides[0] is not None and sides[1] else None
    is_number = isinstance(node, exp.Literal) and not node.is_string
    return read_number(node, reader) if is_number else None
