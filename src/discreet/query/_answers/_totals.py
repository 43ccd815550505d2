"""Totals of ROLLUP, CUBE and GROUPING SETS: sums of the groups' noisy numbers.

They cost nothing, and agree with the groups: those of a total add up to it. The noise of a total is
the sum of the noises of its groups, so a total over many groups errs more than the same number
asked by itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from discreet.query._expressions._query import Query
from discreet.query._facts._columns import KeyValue
from discreet.query._plan._plan import Plan

TotalKey = tuple[KeyValue | None, ...]


@dataclass(frozen=True, slots=True)
class GroupingLevel:
    """The rows of one grouping set: their keys, ``None`` where they are totals over a key, and the
    noisy numbers of each part. Each row is the sum of this many groups."""

    groups: Sequence[TotalKey]
    noisy: Mapping[str, Any]  # Any: an array for each part of the plan
    summed: int


def grouping_levels(plan: Plan, noisy: Mapping[str, Any]) -> list[GroupingLevel]:  # Any: as above
    """The rows of each grouping set."""
    sizes = groups_in_each(plan)
    sets = plan.query.after.sets
    if not sets:
        return [GroupingLevel(plan.groups, noisy, 1)]
    return [_level(plan, one, noisy, count) for one, count in zip(sets, sizes, strict=True)]


def groups_in_each(plan: Plan) -> list[int]:
    """The number of groups that a row of each grouping set adds up."""
    if not plan.query.after.sets:
        return [1]
    sizes = {name: len(keys) for name, keys in plan.listed_keys.items()}
    return [
        prod(size for name, size in sizes.items() if name not in one)
        for one in plan.query.after.sets
    ]


def sets_in_words(query: Query) -> list[str]:
    """The names of the totals of each grouping set, empty for that of all keys."""
    if not query.after.sets:
        return [""]
    every = query.key_names
    return [
        "" if set(one) == set(every) else f"totals by {', '.join(one)}" if one else "the total"
        for one in query.after.sets
    ]


def _level(
    plan: Plan, names: Sequence[str], noisy: Mapping[str, Any], summed: int
) -> GroupingLevel:  # Any: as above
    kept = [name in names for name in plan.query.key_names]
    if all(kept):
        return GroupingLevel(plan.groups, noisy, 1)
    found: dict[TotalKey, int] = {}
    labels = (
        tuple(key if is_kept else None for key, is_kept in zip(group, kept, strict=True))
        for group in plan.groups
    )
    places = [found.setdefault(label, len(found)) for label in labels]
    totals = {name: _added(values, places, len(found)) for name, values in noisy.items()}
    return GroupingLevel(list(found), totals, summed)


def _added(values: Any, places: Sequence[int], count: int) -> Any:  # Any: arrays of integers
    totals = np.full(count, 0, dtype=object)
    for place, value in zip(places, values, strict=True):
        totals[place] += int(value)
    return totals
