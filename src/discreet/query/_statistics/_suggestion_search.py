"""Searches for the cap on rows, and for the columns' bounds and keys, with noise."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from discreet._unit import Unit
from discreet.errors import InvalidArgument
from discreet.mechanisms import (
    Bounded,
    DiscreteLaplace,
    IntegerArray,
    Together,
    rehearse,
)
from discreet.mechanisms._bounded import tables_of
from discreet.mechanisms.quantiles import CheckedBounds
from discreet.mechanisms.thresholds import LaplaceThreshold
from discreet.query._bounding._bounding import CUT_BINS, PLACE, TIMES
from discreet.query._bounding._compiled_plan import prepare, prepare_units
from discreet.query._engines import _engine
from discreet.query._estimates._grid import SumGrid
from discreet.query._estimates._intervals import reach_in_bins
from discreet.query._expressions._aggregates import AggregateFunction
from discreet.query._expressions._expressions import Aggregate
from discreet.query._expressions._query import Query
from discreet.query._facts._columns import ONE_ROW, Caps, Column, ColumnType
from discreet.query._facts._declaration import Declaration
from discreet.query._facts._public_facts import facts_text
from discreet.query._plan._plan import plan
from discreet.query._plan._price import check_scale
from discreet.query._rows._source import TableSource, served_by
from discreet.query._statistics._hand_over import TableRows
from discreet.query._statistics._round_numbers import round_down, round_up

_ENOUGH = Fraction(95, 100)  # of the units have at most the suggested number of rows
_MOST_KEYS = 1_000
_WIDE = {
    ColumnType.INTEGER: Column.integer(-(2**50), 2**50),
    ColumnType.NUMBER: Column.number(-(2**39), 2**39),
}
_FINE = SumGrid(11, 0, -(2**50), 2**50)  # of numbers: steps of 2^-11
_BASIS = "bounded by discreet.query, from the declared caps and bounds"
_FIRST_CONTROL, _DELETE = 32, 127
_NEARLY_ALL = 0.995  # from here on it would read 100 %
_FEW = Fraction(1, 2)  # of the units: keys of fewer are not suggested
NOT_CHOSEN = "not asked for"  # the reason for a column that shares no price
HELD = "which hold at least 90 % of the values, one of each unit, at 95 % confidence"


_NO_KEYS = (
    "since keys of texts need a delta of their own: --suggest-delta 1e-6, or delta=1e-6 in Python"
)


@dataclass(frozen=True, slots=True)
class SuggestionOf:
    """The question for suggestions: of these columns, by their types, for a unit. Facts that are
    ``known`` are not asked for."""

    source: TableSource
    unit: Unit
    types: Mapping[str, ColumnType]
    known: Mapping[str, Column]
    rows: int | None = None
    chosen: tuple[str, ...] | None = None  # the columns to pay for; None for all

    def __post_init__(self) -> None:
        """Refuse a choice of columns that the table lacks, or whose facts are known."""
        for name in self.chosen or ():
            if name not in self.types or name in self.known:
                why = "its facts are declared" if name in self.known else "there is no such column"
                raise InvalidArgument(f"suggestions for {name}: {why}")
            if self.types[name] not in (*_WIDE, ColumnType.TEXT):
                kind = self.types[name].value
                raise InvalidArgument(
                    f"suggestions for {name}: it is {kind}; numbers get bounds, texts get keys"
                )

    def declaration(self, rows: int) -> Declaration:
        """The table with this cap, wide bounds of numbers and no keys of texts."""
        columns = {name: self.column(name) for name in self.types}
        caps = ONE_ROW if self.unit.column is None else Caps(rows)
        return Declaration("table", self.unit, caps, columns)

    def column(self, name: str) -> Column:
        """A column as it is known, or the widest that it can be."""
        kind = self.types[name]
        if name in self.known:
            return self.known[name]
        if kind is ColumnType.BOOLEAN:
            return Column.boolean()
        return _WIDE.get(kind) or (Column.date() if kind is ColumnType.DATE else Column.text())


def is_open(column: Column) -> bool:
    """Whether a declared column lacks bounds and keys that could be suggested."""
    is_bare = column.lower is None and column.keys is None
    return is_bare and column.type in (ColumnType.INTEGER, ColumnType.TEXT)


def chosen_columns(names: Sequence[str] | None) -> tuple[str, ...] | None:
    """The checked choice of columns; None for all."""
    if names is None:
        return None
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise InvalidArgument(f"columns = {names!r}: give a list of names")
    return tuple(dict.fromkeys(names))


def row_histogram(
    asked: SuggestionOf, epsilon: Fraction
) -> tuple[Bounded[IntegerArray], DiscreteLaplace]:
    """The number of units by their rows, in bins that double, and its noise."""
    made = plan(_counting(()), asked.declaration(1))
    with _engine.compiling(served_by(asked.source)) as compiling:
        prepare_units(made, asked.source, compiling)

    def compute() -> IntegerArray:
        with _engine.opened(served_by(asked.source)) as engine:
            (answer,) = prepare_units(made, asked.source, engine).answers(None)
        bins = np.zeros(CUT_BINS, dtype=np.int64)
        bins[answer[PLACE].to_numpy()] = answer[TIMES].to_numpy()
        return bins

    histogram = Bounded(
        compute,
        sensitivity=tables_of(asked.unit),
        unit=asked.unit,
        name="SUGGEST rows",
        shape=(CUT_BINS,),
        basis=_BASIS,
        facts=facts_text(made.declaration, (), asked.source.label),
    )
    noise = DiscreteLaplace.for_epsilon(epsilon, histogram)
    check_scale([noise])
    rehearse(noise, np.zeros(CUT_BINS, dtype=np.int64))
    return histogram, noise


def enough_for_bounds(epsilon: Fraction, unit: Unit) -> int:
    """About how many values, one of each unit, the bounds of a column need at this price."""
    values = Bounded.rows(
        lambda: np.zeros(0), columns={"values": _FINE.values}, unit=unit, name="values"
    )
    return CheckedBounds.for_epsilon(epsilon, values).enough_rows


def enough_for_cap(epsilon: Fraction, unit: Unit) -> int:
    """More units than this in one bin are needed, since noise alone could be as many."""
    bins = Bounded(
        lambda: np.zeros(CUT_BINS, dtype=np.int64),
        sensitivity=tables_of(unit),
        unit=unit,
        name="bins",
        shape=(CUT_BINS,),
    )
    return reach_in_bins(DiscreteLaplace.for_epsilon(epsilon, bins), CUT_BINS)


def cap_of(noisy: IntegerArray, noise: DiscreteLaplace) -> tuple[int, str]:
    """The least power of two below which enough units lie, by bins beyond the reach of noise."""
    reach = reach_in_bins(noise, CUT_BINS)
    units = np.where(noisy > reach, noisy, 0)
    if not units.sum():
        return 1, "too few units for this price, so the strictest cap"
    share = np.cumsum(units) / units.sum()
    enough = int(np.argmax(share >= float(_ENOUGH)))
    return 2**enough, f"{_part_of_units(share[enough])} have at most {2**enough:,}"


def _part_of_units(share: float) -> str:
    """A noisy share in words, which never says that all are in it."""
    return "nearly all units" if share >= _NEARLY_ALL else f"about {100 * share:.0f} % of units"


def _counting(keys: Sequence[str]) -> Query:
    return Query("table", (Aggregate(AggregateFunction.COUNT, None, "rows"),), tuple(keys))


@dataclass(frozen=True, slots=True)
class OpenColumns:
    """The columns whose bounds or keys are searched, and the reasons for the others."""

    asked: SuggestionOf
    numbers: tuple[str, ...]
    texts: tuple[str, ...]
    left_out: Mapping[str, str]

    @staticmethod
    def of(asked: SuggestionOf, *, with_keys: bool) -> "OpenColumns":
        can_be = {
            name: kind
            for name, kind in asked.types.items()
            if name not in asked.known and (kind is ColumnType.TEXT or kind in _WIDE)
        }
        chosen = can_be if asked.chosen is None else asked.chosen
        texts = [name for name in chosen if can_be[name] is ColumnType.TEXT]
        numbers = [name for name in chosen if can_be[name] is not ColumnType.TEXT]
        left_out = {name: NOT_CHOSEN for name in can_be if name not in chosen}
        if not with_keys:
            left_out |= dict.fromkeys(
                texts,
                _NO_KEYS,
            )
        return OpenColumns(asked, tuple(numbers), tuple(texts) if with_keys else (), left_out)

    @property
    def names(self) -> tuple[str, ...]:
        return *self.numbers, *self.texts

    def priced(
        self, rows: int, epsilon: Fraction, delta: Fraction
    ) -> tuple[Bounded[Mapping[str, Any]], Together] | None:
        """All parts as one computation with this cap, and their mechanisms; None without parts."""
        if not self.names:
            return None
        facts, source = self.asked.declaration(rows), self.asked.source
        share = epsilon / len(self.names)
        plain = plan(_counting(()), self.asked.declaration(1))  # each unit shows one of its values
        fine = {n: _FINE for n in self.numbers if self.asked.types[n] is ColumnType.NUMBER}
        bounds = {n: TableRows(plain, source).values((n,), fine) for n in self.numbers}
        keys = {n: self._keys(n, facts) for n in self.texts}
        mechanisms: dict[str, Any] = {
            _title(n): CheckedBounds.for_epsilon(share, one) for n, one in bounds.items()
        } | {
            _title(n): LaplaceThreshold.for_epsilon(share, delta / len(keys), one)
            for n, one in keys.items()
        }
        computed = bounds | keys
        together = Bounded.together(
            partial(_computed, computed),
            parts=tuple(replace(one.part, name=_title(n)) for n, one in computed.items()),
            unit=self.asked.unit,
            name=f"SUGGEST {', '.join(self.names)}",
            basis=_BASIS,
            facts=facts_text(facts, self.names, source.label),
        )
        return together, Together(mechanisms)

    def _keys(self, name: str, facts: Declaration) -> Bounded[Any]:  # Any: counts under keys
        """The counts of a text column's values, by units or rows. A unit counts under one of its
        values, which a public hash chooses, so that its number of values adds no noise."""
        if facts.unit.column is not None:
            facts = replace(facts, caps=replace(facts.caps, groups=1))
        function = AggregateFunction.COUNT if facts.unit.column is None else _UNITS
        query = Query("table", (Aggregate(function, None, "n"),), (name,))
        made = plan(query, facts)
        with _engine.compiling(served_by(self.asked.source)) as compiling:
            prepare(made, self.asked.source, compiling)

        def compute() -> Mapping[str, Any]:
            with _engine.opened(served_by(self.asked.source)) as engine:
                return prepare(made, self.asked.source, engine).compute(None)

        return made.bounded(compute, self.asked.source.label).only(made.deciding.name)

    def read(
        self, values: Mapping[str, Any], noise: Together | None, units: int | None
    ) -> tuple[dict[str, Column], dict[str, str], dict[str, str]]:
        """The columns as they can be declared, what was found of them, and the reasons for the
        others. ``units`` is the noisy number of units, where it is known."""
        made, found, left_out = dict(self.asked.known), dict[str, str](), dict(self.left_out)
        for name, kind in self.asked.types.items():
            if name in self.numbers:
                ends = values[_title(name)]
                search = noise.mechanisms[_title(name)] if noise is not None else None
                assert isinstance(search, CheckedBounds)
                if reason := _unfit(self.asked.column(name), ends, search):
                    left_out[name] = reason
                    continue
                column = _bounded(kind, *ends)
                made[name], found[name] = column, f"{column.range_in_words}, {HELD}"
            elif name in self.texts:
                keys, said = _keys_of(values[_title(name)], units)
                if keys:
                    made[name], found[name] = Column.text(keys=sorted(keys)), said
                else:
                    made[name], left_out[name] = Column.text(), said
            elif name not in made and not (name in left_out and kind in _WIDE):
                made[name] = self.asked.column(name)
        return {name: made[name] for name in self.asked.types if name in made}, found, left_out


_UNITS = AggregateFunction.COUNT_UNITS


def _computed(parts: Mapping[str, Bounded[Any]]) -> Mapping[str, Any]:  # Any: rows or counts
    return {_title(name): one.compute() for name, one in parts.items()}


def _title(name: str) -> str:
    return f"column {name}"


def _unfit(widest: Column, ends: tuple[float, float] | None, search: CheckedBounds) -> str:
    """Why these ends are no bounds of the values; empty if they are. The outermost bins of the
    search hold nothing but its own ends, and what was clamped to them."""
    if ends is None:
        return (
            f"too few rows for this price, which needs about {search.enough_rows:,}; pay more, or "
            "for fewer columns"
        )
    if ends[0] == widest.lower or ends[1] == widest.upper:
        return (
            f"some values lie beyond {widest.range_in_words}, where the search ends, so declare "
            "bounds that you know"
        )
    return ""


def _bounded(kind: ColumnType, lowest: float, highest: float) -> Column:
    """The column with these bounds, moved outwards to round numbers. An end of a bin of numbers is
    first moved to the power of two."""
    low, high = Fraction(lowest), Fraction(highest)
    if kind is ColumnType.INTEGER:
        low, high = round_down(low), round_up(high)
        return Column.integer(int(low), int(max(high, low + 1)))
    step = _FINE.step
    low, high = (low - step if low < 0 else low), (high + step if high > 0 else high)
    low, high = round_down(low), round_up(high)
    return Column.number(low, max(high, low + 1))


def _keys_of(counts: Mapping[Any, int], units: int | None) -> tuple[list[str], str]:
    """The released texts, the most frequent ones, without those that hold control characters; and
    what to say of them. Keys of too few units are none."""
    ordered = sorted(counts, key=lambda key: -counts[key])
    plain = [key for key in ordered if _is_plain(str(key[1]))][:_MOST_KEYS]
    if not plain:
        return [], "no key has enough units for this price"
    number = f"{len(plain):,} {'key' if len(plain) == 1 else 'keys'}"
    if units is None:
        return [str(key[1]) for key in plain], number
    held = sum(counts[key] + 1 for key in plain)  # keys are counted without one unit
    share = min(Fraction(held, max(units, 1)), Fraction(1))
    of_units = _part_of_units(float(share))
    if share < _FEW:
        return [], f"{number} for {of_units} only at this price; pay more, or for fewer columns"
    return [str(key[1]) for key in plain], f"{number} for {of_units}"


def _is_plain(text: str) -> bool:
    return all(ord(c) >= _FIRST_CONTROL and ord(c) != _DELETE for c in text)
