"""Notes on the numbers of one answer: the edges of bins, counts below 0, and missing numbers."""

from collections.abc import Iterator
from fractions import Fraction

import pyarrow as pa

from discreet._exact import shown
from discreet.query._expressions._aggregates import AggregateFunction
from discreet.query._expressions._expressions import FunctionCall
from discreet.query._expressions._inference import infer
from discreet.query._expressions._query import GroupKey, Query
from discreet.query._facts._declaration import Declaration
from discreet.query._functions._scalar_rules import ScalarFunction

_COUNTS = (
    AggregateFunction.COUNT,
    AggregateFunction.COUNT_DISTINCT,
    AggregateFunction.COUNT_UNITS,
)


def number_notes(query: Query, table: pa.Table, declaration: Declaration) -> Iterator[str]:
    """Notes for people who read this table for the first time. They follow from the question and
    the noisy numbers, and cost nothing."""
    yield from (text for key in query.named_keys if (text := _bins(key, declaration)))
    shown_here = [one for one in query.aggregates if one.name in query.columns]
    counts = [one.name for one in shown_here if one.function in _COUNTS]
    if below := [name for name in counts if _reaches_below_0(table[f"{name}_low"])]:
        yield (
            f"no true count is below 0: where {_listed(below)} or an end of the interval is, noise "
            "alone did that"
        )
    others = [one.name for one in shown_here if one.name not in counts]
    if missing := [name for name in others if table[name].null_count]:
        yield (
            f"{_listed(missing)} has no number where too few rows are left to tell one from noise"
        )


def _bins(key: GroupKey, declaration: Declaration) -> str:
    """The edges of the bins that WIDTH_BUCKET numbers; empty for other keys."""
    call = key.value
    if not isinstance(call, FunctionCall) or call.function is not ScalarFunction.WIDTH_BUCKET:
        return ""
    low, high, bins = (infer(one, declaration).constant for one in call.arguments[1:])
    if not (
        isinstance(low, Fraction) and isinstance(high, Fraction) and isinstance(bins, Fraction)
    ):
        return ""
    edges = f"in {key.name}, bin 1 begins at {shown(low)}"
    if bins > 1:
        edges += f", bin 2 at {shown(low + (high - low) / bins)}"
    return (
        f"{edges}, and bin {shown(bins)} ends before {shown(high)}: smaller values are in bin 0, "
        f"larger ones in bin {shown(bins + 1)}"
    )


def _reaches_below_0(low: pa.ChunkedArray) -> bool:
    return bool((low.to_numpy() < 0).any())  # a missing number is NaN there


def _listed(names: list[str]) -> str:
    return " or ".join(names)
