"""Suggests the facts of a declaration from the rows, privately and for a price.

First the cap: a noisy histogram of units by their number of rows, in which each unit counts once.
Then, with that cap, one release of bounds for each column of numbers and of keys for each column of
texts. Both charges are known before the first one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from discreet import _checks
from discreet._budget import Payer, Receipt
from discreet._exact import Number, shown
from discreet._unit import Change, Unit
from discreet.accounting import PrivacyLoss, Threshold
from discreet.errors import BudgetExceeded, InvalidArgument
from discreet.mechanisms import (
    Bounded,
    DiscreteLaplace,
    Door,
    IntegerArray,
    Release,
    Together,
    rehearse,
    release_through,
)
from discreet.mechanisms.quantiles import ApproximateBounds
from discreet.mechanisms.thresholds import LaplaceThreshold
from discreet.query import _engine
from discreet.query._admission import PlannedCharge, admits_all
from discreet.query._aggregates import AggregateFunction
from discreet.query._bounding import CUT_BINS, PLACE, TIMES
from discreet.query._columns import ONE_ROW, Caps, Column, ColumnType
from discreet.query._compiled_plan import prepare, prepare_units
from discreet.query._declaration import Declaration
from discreet.query._grid import SumGrid
from discreet.query._hand_over import TableRows
from discreet.query._plan import plan
from discreet.query._price import check_scale
from discreet.query._public_facts import facts_text
from discreet.query._query import Aggregate, Query
from discreet.query._source import TableSource, check_schema, kinds, source_of

_FOR_CAP = Fraction(1, 4)  # of the price
_ENOUGH = Fraction(95, 100)  # of the units have at most the suggested number of rows
_SURE = Fraction(999, 1000)
_MOST_KEYS = 1_000
_WIDE = {
    ColumnType.INTEGER: Column.integer(-(2**50), 2**50),
    ColumnType.NUMBER: Column.number(-(2**39), 2**39),
}
_FINE = SumGrid(11, 0, -(2**50), 2**50)  # of numbers: steps of 2^-11
_BASIS = "bounded by discreet.query, from the declared caps and bounds"
_FIRST_CONTROL, _DELETE = 32, 127


@dataclass(frozen=True, slots=True, repr=False)
class Suggestion:
    """Suggested caps, bounds and keys, for an owner to read and to declare.

    They come from the rows, with noise, and were paid for. So they may be public, as any answer.
    ``rows`` is the cap, and ``about_rows`` says in words how it was found, unless it was given.
    ``columns`` has the columns that can be declared so, ``left_out`` the others with the reason.
    ``found`` says in words what was found of each column.
    """

    unit: Unit
    rows: int
    about_rows: str
    columns: Mapping[str, Column]
    found: Mapping[str, str]
    left_out: Mapping[str, str]
    epsilon: Fraction
    delta: Fraction
    releases: tuple[Release[Any], ...]  # Any: histograms, bounds and keys

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The privacy loss of both charges, for the unit."""
        losses = (one.privacy_loss for one in self.releases)
        return sum(losses, PrivacyLoss(unit=self.unit))

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """The ledger's proofs of the charges."""
        return tuple(one.receipt for one in self.releases)

    @property
    def price(self) -> str:
        """The price in words."""
        return f"epsilon {shown(self.epsilon)}" + (
            f", delta {shown(self.delta)}" if self.delta else ""
        )

    def declaration(self, name: str) -> Declaration:
        """The declaration that was suggested, under this name."""
        caps = ONE_ROW if self.unit.column is None else Caps(self.rows)
        return Declaration(name, self.unit, caps, self.columns)

    def __repr__(self) -> str:
        caps = [f"rows = {self.rows}: {self.about_rows}"] if self.about_rows else []
        columns = [f"{name}: {text}" for name, text in self.found.items()]
        others = [f"{name}: not suggested, {why}" for name, why in self.left_out.items()]
        return "\n".join([*caps, *columns, *others, f"suggested from the rows for {self.price}"])


@dataclass(frozen=True, slots=True)
class SuggestionOf:
    """The question for suggestions: of these columns, by their types, for a unit. Facts that are
    ``known`` are not asked for."""

    source: TableSource
    unit: Unit
    types: Mapping[str, ColumnType]
    known: Mapping[str, Column]
    rows: int | None = None

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


def release_suggestion(
    door: Door,
    asked: SuggestionOf,
    *,
    epsilon: Number,
    delta: Number = 0,
    by: str = "owner",
    request: str | None = None,
) -> Suggestion:
    """The suggestion for this price. It is charged twice: for the cap, and then for all columns."""
    # 1. what can be refused is refused before the first charge
    price, leak = _checks.positive(epsilon=epsilon), _checks.not_negative(delta=delta)
    if leak >= 1:
        raise InvalidArgument(f"delta = {shown(leak)}: give a number below 1")
    check_schema(asked.source, asked.types, asked.unit.column)
    needs_cap = asked.unit.column is not None and asked.rows is None
    columns = _OpenColumns.of(asked, with_keys=leak > 0)
    if not needs_cap and not columns.names:
        raise InvalidArgument(
            "nothing to suggest: there is no column of numbers without bounds, and keys of texts "
            "need a delta"
        )
    share = Fraction(0) if not needs_cap else _FOR_CAP if columns.names else Fraction(1)
    for_cap, for_columns = (request and f"{request} ({part})" for part in ("rows", "columns"))
    charges: list[PlannedCharge] = []
    if needs_cap:
        histogram, noise = _histogram(asked, share * price)
        charges.append((noise.privacy_loss(histogram), for_cap))
    usual = columns.priced(1 if needs_cap else asked.rows or 1, (1 - share) * price, leak)
    if usual is not None:
        charges.append((_at_any_cap(usual[1].privacy_loss(usual[0]), columns, leak), for_columns))
    if not admits_all(door.payer, charges, by):
        raise BudgetExceeded(
            "the ledger has too little left for the suggestions, which cost "
            f"{sum((loss for loss, _ in charges), PrivacyLoss(unit=asked.unit))}; name a smaller "
            "epsilon or delta"
        )
    # 2. the cap
    releases: list[Release[Any]] = []  # Any: as in Suggestion
    rows, about_rows = asked.rows or 1, ""
    if needs_cap:
        counted = release_through(door, histogram, noise, by=by, request=for_cap)
        releases.append(counted)
        rows, about_rows = _cap(counted.value, noise)
    # 3. all columns, with that cap
    priced = columns.priced(rows, (1 - share) * price, leak)
    values: Mapping[str, Any] = {}
    if priced is not None:
        of_columns = release_through(door, *priced, by=by, request=for_columns)
        releases.append(of_columns)
        values = of_columns.value
    made, found, left_out = columns.read(values)
    return Suggestion(
        asked.unit, rows, about_rows, made, found, left_out, price, leak, tuple(releases)
    )


def _at_any_cap(loss: PrivacyLoss, columns: "_OpenColumns", delta: Fraction) -> PrivacyLoss:
    """A loss that dominates that of the columns at any later cap, from the one at the cap 1.

    Caps are powers of two. At the same epsilon, discrete Laplace noise for a sensitivity dominates
    that for any multiple of it. The leaks of keys depend on the cap, so they are taken whole.
    """
    terms = tuple(
        (replace(term, leak_probability=delta / len(columns.texts)), count)
        if isinstance(term, Threshold)
        else (term, count)
        for term, count in loss.terms
    )
    return PrivacyLoss(terms, loss.unit)


def suggest(
    source: Any,  # Any: a path, or a pandas, Polars, Arrow or Ibis table
    *,
    unit: Unit,
    ledger: Payer[PrivacyLoss],
    epsilon: Number,
    delta: Number = 0,
    types: Mapping[str, ColumnType] | None = None,
    by: str = "owner",
    request: str | None = None,
) -> Suggestion:
    """Suggestions for a table that is not declared yet: its cap on rows, bounds of its numbers and,
    with a ``delta``, keys of its texts. They are charged to the ledger.

    ``types`` are those of the source's schema, unless given. The same ``request`` gives the same
    suggestions again, at no cost.

    >>> import discreet as dp
    >>> import pandas as pd
    >>> stays = pd.DataFrame({"patient": [n // 4 for n in range(4000)], "days": [9] * 4000})
    >>> unit = dp.Unit("patient")
    >>> ledger = dp.Ledger.in_memory(unit=unit, limit=dp.Limit(epsilon=2))
    >>> found = suggest(stays, unit=unit, ledger=ledger, epsilon=1)
    >>> found.rows, found.columns["days"].range_in_words
    (4, '8 .. 15')
    >>> table = dp.Table.declared(stays, found.declaration("stays"), ledger)
    """
    given = {} if types is None else dict(types)
    own = [] if unit.column is None else [unit.column]
    columns: Any = getattr(source, "columns", ())  # Any: of a pandas or Polars frame
    named = given or getattr(source, "column_names", columns)
    made = source_of(source, list(dict.fromkeys([*map(str, named), *own])))
    if types is None:
        known = {name: kind for name, kind in kinds(made).items() if name != unit.column}
        given = {name: kind for name, kind in known.items() if kind is not None}
    asked = SuggestionOf(made, unit, given, {})
    return release_suggestion(
        Door.secure(ledger), asked, epsilon=epsilon, delta=delta, by=by, request=request
    )


# --- the cap ---


def _histogram(
    asked: SuggestionOf, epsilon: Fraction
) -> tuple[Bounded[IntegerArray], DiscreteLaplace]:
    """The number of units by their rows, in bins that double, and its noise."""
    made = plan(_counting(()), asked.declaration(1))
    with _engine.opened() as opened:
        prepare_units(made, asked.source, opened)

    def compute() -> IntegerArray:
        with _engine.opened() as engine:
            (answer,) = prepare_units(made, asked.source, engine).answers(None)
        bins = np.zeros(CUT_BINS, dtype=np.int64)
        bins[answer[PLACE].to_numpy()] = answer[TIMES].to_numpy()
        return bins

    histogram = Bounded(
        compute,
        sensitivity=1 if asked.unit.change is Change.ADD_REMOVE else 2,
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


def _cap(noisy: IntegerArray, noise: DiscreteLaplace) -> tuple[int, str]:
    """The least power of two below which enough units lie, by bins beyond the reach of noise."""
    reach = noise.error(_SURE)
    units = np.where(noisy > reach, noisy, 0)
    if not units.sum():
        return 1, "too few units for this price, so the strictest cap"
    share = np.cumsum(units) / units.sum()
    enough = int(np.argmax(share >= float(_ENOUGH)))
    return 2**enough, f"about {100 * share[enough]:.0f} % of units have at most {2**enough:,}"


def _counting(keys: Sequence[str]) -> Query:
    return Query("table", (Aggregate(AggregateFunction.COUNT, None, "rows"),), tuple(keys))


# --- the columns ---


@dataclass(frozen=True, slots=True)
class _OpenColumns:
    """The columns whose bounds or keys are searched, and the reasons for the others."""

    asked: SuggestionOf
    numbers: tuple[str, ...]
    texts: tuple[str, ...]
    left_out: Mapping[str, str]

    @staticmethod
    def of(asked: SuggestionOf, *, with_keys: bool) -> "_OpenColumns":
        open_types = {n: kind for n, kind in asked.types.items() if n not in asked.known}
        texts = [name for name, kind in open_types.items() if kind is ColumnType.TEXT]
        left_out = {} if with_keys else dict.fromkeys(texts, "since keys need a delta")
        numbers = [name for name, kind in open_types.items() if kind in _WIDE]
        return _OpenColumns(asked, tuple(numbers), tuple(texts) if with_keys else (), left_out)

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
        plain = plan(_counting(()), facts)
        fine = {n: _FINE for n in self.numbers if self.asked.types[n] is ColumnType.NUMBER}
        bounds = {n: TableRows(plain, source).values((n,), fine) for n in self.numbers}
        keys = {n: self._keys(n, facts) for n in self.texts}
        mechanisms: dict[str, Any] = {
            _title(n): ApproximateBounds.for_epsilon(share, one) for n, one in bounds.items()
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
        with _engine.opened() as opened:
            prepare(made, self.asked.source, opened)

        def compute() -> Mapping[str, Any]:
            with _engine.opened() as engine:
                return prepare(made, self.asked.source, engine).compute(None)

        return made.bounded(compute, self.asked.source.label).only(made.deciding.name)

    def read(
        self, values: Mapping[str, Any]
    ) -> tuple[dict[str, Column], dict[str, str], dict[str, str]]:
        """The columns as they can be declared, what was found of them, and the reasons for the
        others."""
        made, found, left_out = dict(self.asked.known), dict[str, str](), dict(self.left_out)
        for name, kind in self.asked.types.items():
            if name in self.numbers:
                ends = values[_title(name)]
                if reason := _unfit(self.asked.column(name), ends):
                    left_out[name] = reason
                    continue
                column = _bounded(kind, *ends)
                made[name], found[name] = column, f"{column.range_in_words}"
            elif name in self.texts:
                keys = sorted(_keys_of(values[_title(name)]))
                if not keys:
                    left_out[name] = "no key has enough units for this price"
                    made[name] = Column.text()
                    continue
                made[name], found[name] = Column.text(keys=keys), f"{len(keys)} keys"
            elif name not in made:
                made[name] = self.asked.column(name)
        return {name: made[name] for name in self.asked.types if name in made}, found, left_out


_UNITS = AggregateFunction.COUNT_UNITS


def _computed(parts: Mapping[str, Bounded[Any]]) -> Mapping[str, Any]:  # Any: rows or counts
    return {_title(name): one.compute() for name, one in parts.items()}


def _title(name: str) -> str:
    return f"column {name}"


def _unfit(widest: Column, ends: tuple[float, float] | None) -> str:
    """Why these ends are no bounds of the values; empty if they are. The outermost bins of the
    search hold nothing but its own ends, and what was clamped to them."""
    if ends is None:
        return "too few rows for this price"
    if ends[0] == widest.lower or ends[1] == widest.upper:
        return (
            f"some values lie beyond {widest.range_in_words}, where the search ends, so declare "
            "bounds that you know"
        )
    return ""


def _bounded(kind: ColumnType, lowest: float, highest: float) -> Column:
    """The column with these bounds: an end of a bin of numbers is moved to the power of two."""
    low, high = Fraction(lowest), Fraction(highest)
    if kind is ColumnType.INTEGER:
        return Column.integer(int(low), int(max(high, low + 1)))
    step = _FINE.step
    low, high = (low - step if low < 0 else low), (high + step if high > 0 else high)
    return Column.number(low, max(high, low + 1))


def _keys_of(counts: Mapping[Any, int]) -> list[str]:
    """The released texts, the most frequent ones, without those that hold control characters."""
    ordered = sorted(counts, key=lambda key: -counts[key])
    texts = [str(key[1]) for key in ordered]
    plain = [t for t in texts if all(ord(c) >= _FIRST_CONTROL and ord(c) != _DELETE for c in t)]
    return plain[:_MOST_KEYS]
