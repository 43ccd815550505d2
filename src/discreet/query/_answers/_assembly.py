"""Assembles an answer's columns from noisy sums: estimates, totals, outputs, chosen rows."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from discreet._arrays import FloatArray
from discreet.query._answers._empty_groups import can_be_null
from discreet.query._answers._forecast import law, level_noise, linear_sources
from discreet.query._answers._ranges import cut, most_distinct
from discreet.query._answers._totals import GroupingLevel, TotalKey, grouping_levels
from discreet.query._estimates._enclosed import Enclosed, enclosed, points
from discreet.query._estimates._estimates import Estimates, Numbers
from discreet.query._expressions._aggregates import ESTIMATORS
from discreet.query._expressions._expressions import Aggregate, Measure, Scalar
from discreet.query._expressions._inference import infer
from discreet.query._expressions._query import column_names
from discreet.query._facts._columns import ColumnType, KeyValue
from discreet.query._outputs._chosen_rows import AnswerRows, chosen_places
from discreet.query._outputs._evaluation import evaluate
from discreet.query._outputs._output_types import OutputTypes
from discreet.query._outputs._outputs import (
    linear_form,
    linear_half_width,
    noisy_core,
    noisy_parts,
    one_law_half_width,
)
from discreet.query._outputs._post_processing import is_positive, measure, measures_in
from discreet.query._outputs._quantile_order import in_order, level_of, of_one_value
from discreet.query._plan._plan import Plan
from discreet.query._plan._price import PricedPlan

_ARROW = {
    ColumnType.BOOLEAN: pa.bool_(),
    ColumnType.DATE: pa.date32(),
    ColumnType.INTEGER: pa.int64(),
    ColumnType.TEXT: pa.string(),
}
_INT64 = 2.0**63
_EXACT = 2.0**53  # the integers below it are floats


def columns(
    priced: PricedPlan,
    noisy: Mapping[str, Any],  # Any: an array for each part of the plan
    confidence: Fraction,
) -> dict[str, pa.Array]:
    """The answer's columns by name, from the noisy sums alone."""
    query, declaration = priced.plan.query, priced.plan.declaration
    levels = [
        _NumbersOfLevel(priced, level, confidence) for level in grouping_levels(priced.plan, noisy)
    ]
    # 1. all rows: of each grouping set, then of all in the order of their keys
    groups = [group for level in levels for group in level.level.groups]
    keys: dict[Scalar, list[Any]] = {  # Any: values of one type, or None
        key.value: [group[index] for group in groups] for index, key in enumerate(query.named_keys)
    }
    every = AnswerRows(keys, partial(_numbers, levels), len(groups))
    # 2. the chosen rows; the types of columns do not depend on them
    order = _order_of_keys(priced.plan.groups, groups) if query.after.sets else range(len(groups))
    places = chosen_places(query.after, every, order)
    taken = None if places == [*range(len(groups))] else pa.array(places, pa.int64())
    # 3. the columns that are shown
    arrays: dict[str, pa.Array] = {}
    for key in query.named_keys:
        kind = _ARROW[infer(key.value, declaration).type]
        arrays[key.name] = _at_places(pa.array(keys[key.value], kind), taken)
    aggregates = {one.name: one for one in query.aggregates}
    outputs = {one.name: one.value for one in query.after.outputs}
    types = OutputTypes(declaration, keys)
    for name in query.columns:
        if name in aggregates:
            one = aggregates[name]
            found = _joined([level.estimates(one, confidence) for level in levels])
            is_key = ESTIMATORS[one.function].is_key
            made = _of_mode(one, priced.plan, found) if is_key else _of_numbers(found)
        elif (kind := types.of(outputs[name])) is not ColumnType.NUMBER:
            made = _without_interval(pa.array(every.values(outputs[name]), _ARROW[kind]))
        else:
            made = _of_numbers(_joined([_plain(level.output(outputs[name])) for level in levels]))
        arrays |= zip(column_names(name), (_at_places(array, taken) for array in made), strict=True)
    return arrays


def _at_places(array: pa.Array, places: pa.Array | None) -> pa.Array:
    """The values at these places, or all. Arrow loads all its functions to take some."""
    return array if places is None else array.take(places)


@dataclass(frozen=True, slots=True)
class _NumbersOfLevel:
    """The numbers of one grouping set's rows."""

    priced: PricedPlan
    level: GroupingLevel
    confidence: Fraction
    _found: dict[tuple[Measure, Fraction], Estimates] = field(default_factory=dict)

    def estimates(self, aggregate: Aggregate, confidence: Fraction) -> Estimates:
        """An aggregate's values, with intervals at this confidence."""
        known = measure(aggregate), confidence
        if known not in self._found:
            self._found[known] = self._estimated(aggregate, confidence)
        return self._found[known]

    def _estimated(self, aggregate: Aggregate, confidence: Fraction) -> Estimates:
        if not ESTIMATORS[aggregate.function].is_in_ranks:
            return self._alone(aggregate, confidence)
        levels = of_one_value(aggregate, self.priced.plan.query.aggregates)
        place = [level_of(one) for one in levels].index(level_of(aggregate))
        return in_order([self._alone(one, confidence) for one in levels], place)

    def _alone(self, aggregate: Aggregate, confidence: Fraction) -> Estimates:
        """The estimates from the aggregate's own noisy numbers."""
        sources, estimator = self._sources[measure(aggregate)], ESTIMATORS[aggregate.function]
        numbers = [self.level.noisy[one] for one in sources]
        steps: Any  # as the estimator has them
        if estimator.is_in_ranks:
            steps = numbers[0].tolist()
        else:
            steps = _whole(map(_by_group, numbers) if estimator.is_key else numbers)
        noise = law(self.priced, sources, self.level.summed)
        found = estimator.estimate(noise, steps, confidence)
        most = most_distinct(aggregate, self.priced.plan.facts)
        return found if most is None else cut(found, most)

    def output(self, value: Scalar) -> Enclosed:
        """A value that is computed from numbers, with its interval."""
        rows, core = len(self.level.groups), noisy_core(value)
        known = self._linear(core)
        level = 1 - (1 - self.confidence) / noisy_parts(value)

        def leaf(inner: Scalar) -> Enclosed | None:
            is_core = known is not None and inner == core
            return known if is_core else self._leaf(inner, confidence=level)

        found = evaluate(value, leaf, rows, self._keys)
        if not measures_in([value]):  # of keys alone
            return Enclosed(found.values, found.values, found.values)
        return found

    def _linear(self, value: Scalar) -> Enclosed | None:
        """A linear form of noisy sums, if the law of its noise is known."""
        form = linear_form(value, linear_sources(self.priced.plan))
        if form is None:
            return None
        noise = level_noise(self.priced, form.terms, self.level.summed)
        half = linear_half_width(form, noise, self.confidence)
        if half is None:
            return None
        exact = evaluate(value, self._point, len(self.level.groups))
        low, high = exact.low - half, exact.high + half
        return Enclosed(exact.values, np.nextafter(low, -np.inf), np.nextafter(high, np.inf))

    @property
    def _keys(self) -> dict[Scalar, list[KeyValue | None]]:
        named = enumerate(self.priced.plan.query.named_keys)
        return {key.value: [group[place] for group in self.level.groups] for place, key in named}

    @property
    def _sources(self) -> dict[Measure, tuple[str, ...]]:
        plan = self.priced.plan
        return dict(zip(map(measure, plan.query.aggregates), plan.sources, strict=True))

    def _point(self, value: Scalar) -> Enclosed | None:
        """A noisy number itself."""
        if not isinstance(value, Measure):
            return None
        found = self.estimates(value.aggregate, self.confidence)
        return points(_real(found.values))

    def _leaf(self, value: Scalar, confidence: Fraction) -> Enclosed | None:
        """A key, or an aggregate with its interval, within what is known of it without asking."""
        for index, key in enumerate(self.priced.plan.query.named_keys):
            if key.value == value:
                return points(_real([group[index] for group in self.level.groups]))  # type: ignore[misc]  # numbers
        if not isinstance(value, Measure):
            return None
        if value.is_share:
            return self._share(value, confidence)
        found = self.estimates(value.aggregate, confidence)
        low, high = _ends(found.low).low, _ends(found.high).high
        if all(isinstance(one, int) for one in found.values):  # which are cut off there
            low, high = (
                np.where(low <= -_INT64, -np.inf, low),
                np.where(high >= _INT64, np.inf, high),
            )
        if is_positive(value.aggregate, self.priced.plan.facts):
            low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)
        nulls = can_be_null(value.aggregate, low, high, self.priced.plan.facts)
        values = _real(found.values)
        return enclosed(values, low, high, nulls | np.isnan(values))

    def _share(self, value: Measure, confidence: Fraction) -> Enclosed:
        """A group's share of all. It increases with the group's number, and decreases with the sum
        of the others: the interval of each fails with at most half of the risk."""
        (source,) = self._sources[Measure(value.aggregate)]
        (noise,) = level_noise(self.priced, [source], 1).values()
        plan, half = self.priced.plan, 1 - (1 - confidence) / 2
        others = len(plan.groups) - 1
        steps = [int(step) for step in self.level.noisy[source]]
        whole = sum(steps)
        own, rest = _real(steps), _real([whole - step for step in steps])
        wide = float(noise.error(half))
        far = float(one_law_half_width(noise, others, half)) if others else 0.0
        least, most = np.maximum(own - wide, 0.0), np.maximum(own + wide, 0.0)
        low_rest, high_rest = np.maximum(rest - far, 0.0), np.maximum(rest + far, 0.0)
        with np.errstate(all="ignore"):  # a warning would depend on the noise
            low = np.nan_to_num(least / (least + high_rest), nan=0.0) * (1 - _ROUNDING)
            high = np.nan_to_num(most / (most + low_rest), nan=1.0) * (1 + _ROUNDING)
        share = own / whole if whole > 0 else np.full_like(own, np.nan)
        return enclosed(share, low, np.minimum(high, 1.0), (least <= 0) & (low_rest <= 0))


_ROUNDING = 1e-12


def _numbers(levels: Sequence[_NumbersOfLevel], value: Scalar) -> FloatArray:
    return np.concatenate([level.output(value).values for level in levels])


def _order_of_keys(finest: Sequence[TotalKey], groups: Sequence[TotalKey]) -> list[int]:
    """The places of the rows in the order of their keys, totals after what they add up."""
    ranks: list[dict[KeyValue | None, int]] = [{} for _ in groups[0]]
    for group in finest:
        for key, rank in zip(group, ranks, strict=True):
            rank.setdefault(key, len(rank))
    last = len(finest)

    def place(number: int) -> list[int]:
        pairs = zip(groups[number], ranks, strict=True)
        return [last if key is None else rank[key] for key, rank in pairs]

    return sorted(range(len(groups)), key=place)


def _joined(found: Sequence[Estimates]) -> Estimates:
    if len(found) == 1:
        return found[0]
    return Estimates(
        [number for one in found for number in one.values],
        [number for one in found for number in one.low],
        [number for one in found for number in one.high],
        [number for one in found for number in one.errors],
    )


def _by_group(chosen: Any) -> list[Any]:  # Any: the number of a key, or of one for each group
    """The choice in each group."""
    return list(chosen.values()) if isinstance(chosen, Mapping) else [chosen]


def _whole(numbers: Iterable[Any]) -> list[list[int]]:  # Any: arrays or lists of integers
    return [[int(step) for step in steps] for steps in numbers]


def _real(numbers: Numbers) -> FloatArray:
    return np.array([math.nan if number is None else number for number in numbers], dtype=float)


def _ends(numbers: Numbers) -> Enclosed:
    """Ends of intervals; whole numbers are as they are."""
    found = _real(numbers)
    is_whole = all(isinstance(number, int) for number in numbers)
    is_exact = is_whole and bool(np.all(np.abs(found) < _EXACT))
    return points(found, is_exact=is_exact)


def _of_numbers(found: Estimates) -> tuple[pa.Array, ...]:
    return tuple(_arrow(one) for one in (found.values, found.low, found.high, found.errors))


def _of_mode(aggregate: Aggregate, plan: Plan, found: Estimates) -> tuple[pa.Array, ...]:
    """The key, no interval, and the error in rows."""
    (argument,) = aggregate.arguments
    (keys,) = (one.keys for one in plan.key_counts if one.argument == argument)
    kind = infer(argument, plan.declaration).type
    chosen = pa.array([keys[int(number or 0)] for number in found.values], _ARROW[kind])
    return *_without_interval(chosen)[:3], pa.array(found.errors, pa.int64())


def _without_interval(values: pa.Array) -> tuple[pa.Array, ...]:
    """The columns of a value that is no number: an interval and an error without values."""
    ends = pa.nulls(len(values), values.type)
    return values, ends, ends, pa.nulls(len(values), pa.float64())


def _plain(found: Enclosed) -> Estimates:
    """The number and its interval; an end that is open is None."""
    errors = (found.high - found.low) / 2
    return Estimates(*(_listed(one) for one in (found.values, found.low, found.high, errors)))


def _listed(numbers: FloatArray) -> list[float | None]:
    return [one if math.isfinite(one) else None for one in numbers.tolist()]


def _arrow(numbers: Numbers) -> pa.Array:
    is_whole = all(isinstance(number, int) for number in numbers)
    return pa.array(numbers, pa.int64() if is_whole else pa.float64())
