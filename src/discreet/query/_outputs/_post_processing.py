"""Checks what a query does with its noisy numbers, and completes it.

Whatever is computed from released numbers alone costs nothing. It is made from keys, aggregates,
literals and arithmetic; no part of it meets a row.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

from discreet.errors import QueryRefused
from discreet.query._estimates._estimates import SumKind
from discreet.query._expressions._aggregates import ESTIMATORS, AggregateFunction
from discreet.query._expressions._expression_text import aggregate_text, scalar_text
from discreet.query._expressions._expressions import (
    Aggregate,
    Arithmetic,
    ColumnRef,
    Condition,
    Literal,
    Measure,
    Scalar,
    parts_of,
)
from discreet.query._expressions._inference import infer
from discreet.query._expressions._keys import public_keys
from discreet.query._expressions._query import GroupKey, PostProcessing, Query, SortKey
from discreet.query._facts._declaration import Declaration
from discreet.query._outputs._output_types import OutputTypes

MOST_SETS = 64
_LARGEST_PLACE = 2**62
_OF_OTHERS = {SumKind.UNITS, SumKind.DISTINCT}  # whose totals are no sums of groups


def measure(aggregate: Aggregate, *, is_share: bool = False) -> Measure:
    """The number of an aggregate, whatever it is called."""
    return Measure(replace(aggregate, name=""), is_share)


def measures_in(parts: Iterable[Scalar | Condition]) -> list[Measure]:
    """The aggregates in values and conditions, each once, in order."""
    return list(dict.fromkeys(chain.from_iterable(map(_measures, parts))))


def _measures(part: Scalar | Condition) -> Iterator[Measure]:
    if isinstance(part, Measure):
        yield part
        return
    for inner in parts_of(part):
        yield from _measures(inner)


def most_parts(query: Query, of: Collection[Measure]) -> int:
    """The largest number of aggregates that share the risk of an output with one of these; 1 if
    none does."""
    used = (measures_in([one.value]) for one in query.after.outputs)
    return max((len(one) for one in used if not set(of).isdisjoint(one)), default=1)


def completed(query: Query) -> Query:
    """The query with each aggregate that its outputs, conditions and order use. Those that the
    answer does not show come last; each is named by its text in SQL."""
    columns, after = query.columns, query.after
    shown = [one for one in query.aggregates if one.name in columns]
    if not shown and not after.outputs:
        return replace(query, aggregates=(), after=replace(after, shown=()))
    known = {measure(one) for one in shown}
    used = dict.fromkeys(replace(one, is_share=False) for one in measures_in(after.parts))
    hidden = [
        replace(one.aggregate, name=aggregate_text(one.aggregate))
        for one in used
        if one not in known
    ]
    every = (*(one.name for one in shown), *(one.name for one in after.outputs))
    is_plain = not hidden and columns == every
    return replace(
        query,
        aggregates=(*shown, *hidden),
        after=replace(after, shown=() if is_plain else columns),
    )


def with_sets(query: Query, sets: Iterable[Iterable[str]]) -> Query:
    """The query with totals: for each of these sets of keys, rows for the combinations of its
    values. The keys stand in the order in which the sets name them."""
    made = tuple(tuple(dict.fromkeys(one)) for one in sets)
    named = list(dict.fromkeys(chain.from_iterable(made)))
    keys = {key.name: short for key, short in zip(query.named_keys, query.keys, strict=True)}
    unknown = sorted(set(named) ^ set(keys))
    if unknown:
        raise QueryRefused(
            f"GROUPING SETS: {unknown[0]!r} is a key of the groups or of the sets, but not of "
            "both; there is no group without its keys"
        )
    is_plain = made in ((), (tuple(named),))
    after = replace(query.after, sets=() if is_plain else made)
    return replace(query, keys=tuple(keys[name] for name in named), after=after)


def after_in_words(query: Query) -> tuple[str, ...]:
    """Notes for the reader of an answer: how its totals, columns and rows follow from noise."""
    after, said = query.after, []
    if after.sets:
        said.append(
            "totals are sums of the groups' noisy numbers: their noise grows with the number of "
            "groups, rows that are in no group are not in them, and a unit counts in them for what "
            "its caps allow in all groups together"
        )
    if any(len(measures_in([one.value])) > 1 for one in after.outputs):
        said.append(
            "the interval of a computed column follows from those of its parts at a confidence at "
            "which all hold together; an end that they leave open is NULL"
        )
    if any(not _is_arithmetic(one.value) for one in after.outputs):
        said.append(
            "the interval of a function or CASE holds all results that the intervals of its parts "
            "allow; a text, date or truth value that noisy numbers decide has none"
        )
    if any(one.is_share for one in measures_in(after.parts)):
        said.append("shares are of the sum over all groups of the question")
    is_sorted_by_noise = any(measures_in([key.value]) for key in after.order)
    having = () if after.having is None else (after.having,)
    if after.chooses_rows and (is_sorted_by_noise or measures_in(having)):
        said.append(
            "rows are chosen by noisy numbers: of a row that was chosen for being large or small, "
            "the interval holds less often than it says"
        )
    if is_sorted_by_noise:
        said.append("rows are sorted by noisy numbers, so the true order may differ")
    return tuple(said)


def _is_arithmetic(value: Scalar | Condition) -> bool:
    if isinstance(value, Measure | ColumnRef | Literal):
        return True
    return isinstance(value, Arithmetic) and all(map(_is_arithmetic, parts_of(value)))


# --- checks ---


def check_post_processing(query: Query, declaration: Declaration) -> None:
    """Refuse post-processing that has no rule. Aggregates and keys are checked before."""
    if query.after == PostProcessing():
        return
    checked = _Check(query, declaration, {key.value: key for key in query.named_keys})
    checked.columns()
    checked.sets()
    for one in measures_in(query.after.parts):
        checked.measure(one)
    for output in query.after.outputs:
        checked.output(output.value)
    if query.after.having is not None:
        checked.types.check(query.after.having)
    for key in query.after.order:
        checked.sort_key(key)
    for name, place in (("LIMIT", query.after.limit), ("OFFSET", query.after.offset)):
        is_count = type(place) is int and 0 <= place <= _LARGEST_PLACE
        if place is not None and not is_count:
            raise QueryRefused(f"{name} {place!r}: give a whole number, 0 or more")


@dataclass(frozen=True, slots=True)
class _Check:
    query: Query
    declaration: Declaration
    keys: dict[Scalar, GroupKey]

    @property
    def types(self) -> OutputTypes:
        """The types of what is computed."""
        return OutputTypes(self.declaration, self.keys)

    @property
    def _is_private(self) -> bool:
        return any(public_keys(key.value, self.declaration) is None for key in self.keys.values())

    def columns(self) -> None:
        shown = self.query.after.shown
        known = {one.name for one in self.query.numbers}
        if len(set(shown)) < len(shown) or not set(shown) <= known:
            raise QueryRefused(f"the answer has the columns {', '.join(sorted(known))}, each once")

    def sets(self) -> None:
        # 1. number and names of the sets
        sets = self.query.after.sets
        if not sets:
            return
        if len(sets) > MOST_SETS:
            raise QueryRefused(
                f"GROUP BY has {len(sets):,} grouping sets; it may have {MOST_SETS}: name the "
                "totals that you need, as GROUPING SETS ((a, b), (a), ())"
            )
        if self._is_private:
            raise QueryRefused(
                "ROLLUP, CUBE and GROUPING SETS: groups without declared keys are not all shown, "
                "so totals would leave some out; declare the keys, or ask for totals by themselves"
            )
        if len({frozenset(one) for one in sets}) < len(sets):
            raise QueryRefused("GROUPING SETS: name each set once")
        if tuple(dict.fromkeys(chain.from_iterable(sets))) != self.query.key_names:
            raise QueryRefused("GROUPING SETS: the sets name the keys, in their order")
        # 2. what the groups do not add up to
        for one in self.query.aggregates:
            needs = ESTIMATORS[one.function].needs
            if not needs or not _OF_OTHERS.isdisjoint(needs):
                raise QueryRefused(
                    f"{aggregate_text(one)}: its totals are not sums of the groups' numbers; ask "
                    "for them by themselves, with fewer keys"
                )
        shares = [one for one in measures_in(self.query.after.parts) if one.is_share]
        if shares:
            raise QueryRefused(
                f"{scalar_text(shares[0])}: a share is of all groups, and totals are none of "
                "them; ask for shares without ROLLUP, CUBE and GROUPING SETS"
            )

    def output(self, value: Scalar) -> None:
        """An output: computed from at least one aggregate or key, and no key itself."""
        if value in self.keys or isinstance(value, ColumnRef):
            raise QueryRefused(
                f"{scalar_text(value)}: a column of the answer is a key, or is computed from "
                "aggregates and keys"
            )
        self.types.of(value)
        if not (measures_in([value]) or has_key(value, self.keys)):
            raise QueryRefused(f"{scalar_text(value)}: it is the same for all rows")

    def sort_key(self, key: SortKey) -> None:
        self.types.of(key.value)
        if not (measures_in([key.value]) or has_key(key.value, self.keys)):
            raise QueryRefused(
                f"ORDER BY {scalar_text(key.value)}: give keys, aggregates, names or places of "
                "columns in SELECT"
            )

    def measure(self, value: Measure) -> None:
        aggregate = value.aggregate
        if all(measure(one) != Measure(aggregate) for one in self.query.aggregates):
            raise QueryRefused(f"{scalar_text(value)}: the question doesn't ask for it")
        if ESTIMATORS[aggregate.function].is_key:
            raise QueryRefused(
                f"{aggregate_text(aggregate)} is a key, not a number: it is a column of SELECT by "
                "itself, and is not in HAVING, ORDER BY or a computed column"
            )
        if not value.is_share:
            return
        function = aggregate.function
        is_additive = function in (AggregateFunction.COUNT, AggregateFunction.SUM)
        if self._is_private:
            raise QueryRefused(
                f"{scalar_text(value)}: groups without declared keys are not all shown, so their "
                "sum is not known; declare the keys"
            )
        if not is_additive or not self.query.keys:
            raise QueryRefused(
                f"{scalar_text(value)}: there are shares of COUNT and SUM, of the sum over all "
                "groups; name GROUP BY keys"
            )
        if function is AggregateFunction.SUM and not is_positive(aggregate, self.declaration):
            raise QueryRefused(
                f"{scalar_text(value)}: a share is of numbers that are 0 or more, and its values "
                "may be negative; name GREATEST(x, 0)"
            )


def is_positive(aggregate: Aggregate, declaration: Declaration) -> bool:
    """Whether the aggregate is 0 or more whatever the rows are, by declared facts."""
    match aggregate.function:
        case AggregateFunction.COUNT | AggregateFunction.COUNT_UNITS:
            return True
        case AggregateFunction.SUM:
            assert aggregate.argument is not None  # ensured by the plan
            lower = infer(aggregate.argument, declaration).lower
            return lower is not None and lower >= 0
    return aggregate.function is AggregateFunction.COUNT_DISTINCT


def has_key(value: Scalar | Condition, keys: Collection[Scalar]) -> bool:
    """Whether a key stands in it, outside of aggregates."""
    if isinstance(value, Measure):
        return False
    if isinstance(value, Scalar) and value in keys:
        return True
    return any(has_key(part, keys) for part in parts_of(value))
