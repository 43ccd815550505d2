"""Suggests the facts of a declaration from the rows, privately and for a price.

First the cap: a noisy histogram of units by their number of rows, in which each unit counts once.
Then, with that cap, one release of bounds for each column of numbers and of keys for each column of
texts. Both charges are known before the first one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from discreet import _checks, _html
from discreet._budget import Payer, Receipt
from discreet._exact import Number, shown
from discreet._unit import Unit
from discreet.accounting import PrivacyLoss, Threshold
from discreet.errors import BudgetExceeded, InvalidArgument, QueryRefused
from discreet.mechanisms import (
    Bounded,
    DiscreteLaplace,
    Door,
    IntegerArray,
    Release,
    release_through,
)
from discreet.query._facts._columns import ONE_ROW, Caps, Column, ColumnType
from discreet.query._facts._declaration import Declaration
from discreet.query._questions._admission import PlannedCharge, admits_all
from discreet.query._rows._source import ComputedSource, check_schema, kinds, snapshot, source_of
from discreet.query._statistics._suggestion_search import (
    NOT_CHOSEN,
    OpenColumns,
    SuggestionOf,
    cap_of,
    chosen_columns,
    row_histogram,
)

_FOR_CAP = Fraction(1, 4)  # of the price


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
        return _in_words(self.epsilon, self.delta)

    def declaration(self, name: str) -> Declaration:
        """The declaration that was suggested, under this name."""
        caps = ONE_ROW if self.unit.column is None else Caps(self.rows)
        return Declaration(name, self.unit, caps, self.columns)

    def __repr__(self) -> str:
        lines = [f"{name}: {text}" for name, text in self._findings]
        return "\n".join([*lines, f"suggested from the rows for {self.price}"])

    def _repr_html_(self) -> str:
        return _html.table(f"suggested from the rows for {self.price}", [], self._findings)

    @property
    def _findings(self) -> list[tuple[str, str]]:
        """The finding for the caps and for each column, in words."""
        caps = [(f"rows = {self.rows}", self.about_rows)] if self.about_rows else []
        reasons = [(name, why) for name, why in self.left_out.items() if why != NOT_CHOSEN]
        others = [(name, f"not suggested, {why}") for name, why in reasons]
        more = len(self.left_out) - len(reasons)
        columns = f"{more} other column{'' if more == 1 else 's'}"
        unchosen = [(columns, NOT_CHOSEN)] if more else []
        return [*caps, *self.found.items(), *others, *unchosen]


@dataclass(frozen=True, slots=True)
class PricedSuggestion:
    """A suggestion with its price, checked: the histogram for the cap, and the open columns."""

    asked: SuggestionOf
    epsilon: Fraction
    delta: Fraction
    columns: OpenColumns
    for_cap: tuple[Bounded[IntegerArray], DiscreteLaplace] | None
    for_columns: Fraction  # the epsilon that is left for these

    def check_budget(
        self, payer: Payer[PrivacyLoss], by: str = "owner", request: str | None = None
    ) -> None:
        """Refuse both charges now, if one of them would be refused later."""
        of_cap, of_columns = _requests(request)
        charges: list[PlannedCharge] = []
        if self.for_cap is not None:
            histogram, noise = self.for_cap
            charges.append((noise.privacy_loss(histogram), of_cap))
        first_cap = 1 if self.for_cap is not None else self.asked.rows or 1
        usual = self.columns.priced(first_cap, self.for_columns, self.delta)
        if usual is not None:
            loss = usual[1].privacy_loss(usual[0])
            charges.append((_at_any_cap(loss, self.columns, self.delta), of_columns))
        if not admits_all(payer, charges, by):
            raise BudgetExceeded(
                f"the ledger has too little left for suggestions at {self.price}; name less"
            )

    @property
    def price(self) -> str:
        """The price in words."""
        return _in_words(self.epsilon, self.delta)


def price_suggestion(
    asked: SuggestionOf, *, epsilon: Number, delta: Number = 0
) -> PricedSuggestion:
    """The suggestion at this price, with all checks that need no ledger. It reads no rows."""
    paid, exact = _checks.positive(epsilon=epsilon), _checks.not_negative(delta=delta)
    if exact >= 1:
        raise InvalidArgument(f"delta = {shown(exact)}: give a number below 1")
    if isinstance(asked.source, ComputedSource):
        raise QueryRefused(
            "caps, bounds and keys are suggested for the rows of a file or frame with ids; these "
            f"are computed from others: ask for {', '.join(asked.source.private_tables)}"
        )
    asked = replace(asked, source=snapshot(asked.source))
    check_schema(asked.source, asked.types, asked.unit)
    needs_cap = asked.unit.column is not None and asked.rows is None
    columns = OpenColumns.of(asked, with_keys=exact > 0)
    if not needs_cap and not columns.names:
        raise InvalidArgument(
            "nothing to suggest: there is no column of numbers without bounds, and keys of texts "
            "need a delta"
        )
    share = Fraction(0) if not needs_cap else _FOR_CAP if columns.names else Fraction(1)
    for_cap = row_histogram(asked, share * paid) if needs_cap else None
    return PricedSuggestion(asked, paid, exact, columns, for_cap, (1 - share) * paid)


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
    priced = price_suggestion(asked, epsilon=epsilon, delta=delta)
    priced.check_budget(door.payer, by, request)
    of_cap, of_columns = _requests(request)
    # 2. the cap
    releases: list[Release[Any]] = []  # Any: as in Suggestion
    rows, about_rows, units = asked.rows or 1, "", None
    if priced.for_cap is not None:
        histogram, noise = priced.for_cap
        counted = release_through(door, histogram, noise, by=by, request=of_cap)
        releases.append(counted)
        rows, about_rows = cap_of(counted.value, noise)
        units = int(counted.value.sum())
    # 3. all columns, with that cap
    found = priced.columns.priced(rows, priced.for_columns, priced.delta)
    values: Mapping[str, Any] = {}
    if found is not None:
        of_all = release_through(door, *found, by=by, request=of_columns)
        releases.append(of_all)
        values = of_all.value
    noises = None if found is None else found[1]
    made, open_columns, left_out = priced.columns.read(values, noises, units)
    return Suggestion(
        unit=asked.unit,
        rows=rows,
        about_rows=about_rows,
        columns=made,
        found=open_columns,
        left_out=left_out,
        epsilon=priced.epsilon,
        delta=priced.delta,
        releases=tuple(releases),
    )


def _in_words(epsilon: Fraction, delta: Fraction) -> str:
    """A price as texts name it."""
    return f"epsilon {shown(epsilon)}" + (f", delta {shown(delta)}" if delta else "")


def _requests(request: str | None) -> tuple[str | None, str | None]:
    """The ids of both charges."""
    of_cap, of_columns = (request and f"{request} ({part})" for part in ("rows", "columns"))
    return of_cap, of_columns


def _at_any_cap(loss: PrivacyLoss, columns: OpenColumns, delta: Fraction) -> PrivacyLoss:
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


def suggest(  # noqa: PLR0913  # the table's facts, the price and the choice
    source: Any,  # Any: a path, or a pandas, Polars, Arrow or Ibis table
    *,
    unit: Unit,
    ledger: Payer[PrivacyLoss],
    epsilon: Number,
    delta: Number = 0,
    types: Mapping[str, ColumnType] | None = None,
    columns: Sequence[str] | None = None,
    by: str = "owner",
    request: str | None = None,
) -> Suggestion:
    """Suggestions for a table that is not declared yet: its cap on rows, bounds of its numbers and,
    with a ``delta``, keys of its texts. They are charged to the ledger.

    Suggested bounds hold at least 90 % of the values, at 95 % confidence each; where there are too
    few rows to show this, none are suggested. A unit with several rows counts with one of its
    values. The columns share the price: name ``columns`` to pay for these only.

    ``types`` are those of the source's schema, unless given. The same ``request`` gives the same
    suggestions again, at no cost.

    >>> import discreet as dp
    >>> import pandas as pd
    >>> stays = pd.DataFrame({"patient": [n // 4 for n in range(4000)], "days": [9] * 4000})
    >>> unit = dp.Unit("patient")
    >>> ledger = dp.Ledger.in_memory(unit=unit, limit=dp.Limit(epsilon=2))
    >>> found = suggest(stays, unit=unit, ledger=ledger, epsilon=1)
    >>> days = found.columns["days"]
    >>> found.rows, days.lower <= 9 <= days.upper
    (4, True)
    >>> table = dp.Table.declared(stays, found.declaration("stays"), ledger)
    """
    given = {} if types is None else dict(types)
    of_frame: Any = getattr(source, "columns", ())  # Any: of a pandas or Polars frame
    named = given or getattr(source, "column_names", of_frame)
    made = source_of(source, list(dict.fromkeys([*map(str, named), *unit.columns])))
    if types is None:
        known = {name: kind for name, kind in kinds(made).items() if name not in unit.columns}
        given = {name: kind for name, kind in known.items() if kind is not None}
    asked = SuggestionOf(made, unit, given, {}, chosen=chosen_columns(columns))
    return release_suggestion(
        Door.secure(ledger), asked, epsilon=epsilon, delta=delta, by=by, request=request
    )
