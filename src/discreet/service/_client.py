"""A client: the tables of a service that runs elsewhere, to be asked like tables here."""

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never

from discreet import _checks, _html, errors
from discreet._announce import announce
from discreet._exact import Number, fraction
from discreet.accounting import PrivacyLoss
from discreet.errors import DiscreetError
from discreet.service._remote_ledger import RemoteLedger
from discreet.service._transport import (
    ServiceAddress,
    address_of,
    may_have_charged,
    objects_of,
    readable,
    text_of,
    texts_of,
    written,
)

if TYPE_CHECKING:
    from discreet.query import Forecast, Query
    from discreet.query._expressions._frame import (
        ColumnExpression,
        ConditionExpression,
        UnnamedAggregate,
    )
    from discreet.query._questions._frame_after import AnswerValue
    from discreet.service._remote_selection import RemoteSelection


@dataclass(frozen=True, slots=True)
class RemoteAnswer:
    """A paid answer of a service. Everything in it may be shown to anyone."""

    facts: Mapping[str, Any]  # Any: JSON

    def __post_init__(self) -> None:
        """Raise `ServiceError` for facts that are no answer."""
        with readable():
            names = self.columns
            if any(row.keys() != set(names) for row in self.rows()):
                raise ValueError("a row has other columns")
            self.privacy_loss, self.receipt, self.notes, self.request  # noqa: B018  # read once

    def _repr_html_(self) -> str:
        head, *body = self.cells()
        return _html.table("", head, body) + _html.notes(self.notes)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return texts_of(self.facts, "columns")

    def rows(self) -> list[dict[str, object]]:
        """The rows as dictionaries; days are texts, such as 2026-05-01."""
        return [dict(row) for row in objects_of(self.facts, "rows")]

    def cells(self) -> list[list[str]]:
        """The table as texts, each aggregate in two columns: its value and its interval."""
        from discreet.query._answers._answer_rows import parted, text_rows

        with readable():
            return text_rows(*parted(self.columns), self.rows())

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the columns that are no numbers with an interval."""
        from discreet.query._answers._answer_rows import parted

        return tuple(parted(self.columns)[0])

    def to_arrow(self) -> Any:  # Any: of pyarrow
        """The answer as an Arrow table."""
        from discreet.query._answers._answer_rows import arrow_of

        with readable():
            return arrow_of(self.columns, self.rows())

    def to_pandas(self) -> Any:  # Any: of pandas
        """The answer as a pandas frame; needs pandas."""
        return self.to_arrow().to_pandas()

    def to_csv(self) -> str:
        """The answer as CSV text."""
        from discreet.query._answers._answer_rows import csv_of

        return csv_of(self.to_arrow())

    def to_parquet(self, path: str | Path) -> None:
        """Write the answer to a Parquet file."""
        from discreet.query._answers._answer_rows import write_parquet

        write_parquet(self.to_arrow(), path)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The privacy loss of the answer, for its unit."""
        return PrivacyLoss.from_json(json.dumps(self.facts["privacy_loss"]))

    @property
    def request(self) -> str:
        """The request id, by which the same answer is free."""
        return text_of(self.facts, "request")

    @property
    def receipt(self) -> str:
        """The receipt as JSON, for `discreet verify`."""
        return json.dumps(dict(self.facts["receipt"]), indent=2)

    @property
    def notes(self) -> tuple[str, ...]:
        """In words: the facts that intervals cover, and those that caps and bounds leave out."""
        return texts_of(self.facts, "notes")

    def to_json(self) -> str:
        """All facts of the answer as JSON."""
        return json.dumps(self.facts, indent=2)


@dataclass(frozen=True, slots=True)
class RemoteQuestion:
    """A question to a table of a service. One that was made in Python has its ``query``, too."""

    table: "RemoteTable"
    sql: str
    query: "Query | None" = field(default=None, compare=False, repr=False)

    _repr_html_ = _html.shown

    def forecast(
        self,
        *,
        epsilon: Number,
        delta: Number = 0,
        confidence: Number = Fraction(95, 100),
        noise: str | None = None,
    ) -> "Forecast":
        """The cost and the expected errors; it costs nothing and reads no rows."""
        from discreet.query._answers._forecast import Forecast, ForecastLine

        found = self._post("forecast", _price(epsilon, delta, confidence, noise))
        with readable():
            predicted = Forecast(
                PrivacyLoss.from_json(json.dumps(found["privacy_loss"])),
                fraction(found["confidence"]),
                tuple(ForecastLine(**line) for line in objects_of(found, "expected")),
                texts_of(found, "warnings"),
                text_of(found, "hidden"),
            )
            str(predicted)  # every line can be shown
        return predicted

    def explain(
        self,
        *,
        epsilon: Number,
        delta: Number = 0,
        confidence: Number = Fraction(95, 100),
        noise: str | None = None,
    ) -> dict[str, list[str]]:
        """The assumptions, the cost and the errors in words, by section."""
        found = self._post("explain", _price(epsilon, delta, confidence, noise))
        with readable():
            sections = dict(found["explanation"])
            return {title: list(texts_of(sections, title)) for title in sections}

    def release(
        self,
        *,
        epsilon: Number,
        delta: Number = 0,
        confidence: Number = Fraction(95, 100),
        noise: str | None = None,
        request: str | None = None,
    ) -> RemoteAnswer:
        """The private answer, charged to the caller's share before a row is read.

        The same ``request`` id with the same question returns the same answer and costs nothing;
        without one, a new id is made. Before the charge, a `UselessAnswerWarning` says which
        intervals will tell nothing. Raises the errors of `Question.release`, and `ServiceError`
        if no answer came: it names the request id, which fetches an answer that was paid.
        """
        price = _price(epsilon, delta, confidence, noise)
        chosen = secrets.token_hex(16) if request is None else _checks.text(request=request)
        if request is None or not _is_paid(self.table.service, chosen):
            found = self._post("forecast", price)
            with readable():
                texts = texts_of(found, "warnings")
            announce(texts)
        with _named_request(chosen):
            return RemoteAnswer(self._post("ask", {**price, "request": chosen}))

    def diagnose(
        self, *, epsilon: Number, confidence: Number = Fraction(95, 100), request: str | None = None
    ) -> dict[str, Any]:
        """How much caps and bounds cut, as JSON with a ``text`` in words: a charge of its own, once
        for each ``request``, as `release`."""
        numbers = {
            "epsilon": written(epsilon=epsilon),
            "confidence": written(confidence=confidence),
        }
        chosen = secrets.token_hex(16) if request is None else _checks.text(request=request)
        with _named_request(chosen):
            found = self._post("diagnose", {**numbers, "request": chosen})
            with readable():
                text_of(found, "text"), PrivacyLoss.from_json(json.dumps(found["privacy_loss"]))
        return found

    def having(self, *conditions: "ConditionExpression | ColumnExpression") -> "RemoteQuestion":
        """The question with only those rows of its answer for which the conditions hold."""
        from discreet.query._questions import _frame_after

        return self.table.asking(_frame_after.having(self._in_python("HAVING"), conditions))

    def order_by(
        self, *values: "AnswerValue", descending: bool = False, nulls_first: bool = False
    ) -> "RemoteQuestion":
        """The question with its answer's rows sorted by keys or numbers."""
        from discreet.query._questions import _frame_after

        made = _frame_after.ordered(
            self._in_python("ORDER BY"),
            values,
            is_descending=descending,
            has_nulls_first=nulls_first,
        )
        return self.table.asking(made)

    def limit(self, count: int, *, offset: int = 0) -> "RemoteQuestion":
        """The question with at most this many rows of its answer, after this many others."""
        from discreet.query._questions import _frame_after

        return self.table.asking(_frame_after.limited(self._in_python("LIMIT"), count, offset))

    def rollup(self) -> "RemoteQuestion":
        """The question with totals over the last key, over the last two, up to all keys."""
        from discreet.query._questions import _frame_after

        return self.table.asking(_frame_after.rolled_up(self._in_python("GROUP BY ROLLUP")))

    def cube(self) -> "RemoteQuestion":
        """The question with totals by each set of its keys."""
        from discreet.query._questions import _frame_after

        return self.table.asking(_frame_after.cubed(self._in_python("GROUP BY CUBE")))

    def grouping_sets(self, *sets: Sequence[str]) -> "RemoteQuestion":
        """The question with rows for each of these sets of its keys."""
        from discreet.query._questions import _frame_after

        made = _frame_after.grouped_by_sets(self._in_python("GROUPING SETS"), sets)
        return self.table.asking(made)

    if not TYPE_CHECKING:  # so that a wrong name is found

        def __getattr__(self, name: str) -> Never:
            from discreet.service._remote_selection import refuse_unsent

            refuse_unsent(name, self)

    def _in_python(self, clause: str) -> "Query":
        if self.query is None:
            raise errors.Refused(f"this question is a text of SQL: write {clause} into it")
        return self.query

    def _post(self, task: str, price: Mapping[str, object]) -> dict[str, Any]:
        body = {"sql": self.sql, **price}
        return self.table.service.post("tables", self.table.name, task, body=body)


@dataclass(frozen=True, slots=True)
class RemoteTable:
    """A table of a service."""

    service: ServiceAddress
    name: str

    _repr_html_ = _html.shown

    def question(self, text: str) -> RemoteQuestion:
        """The question that an SQL text asks. The service checks it when it is first used."""
        return RemoteQuestion(self, text)

    def asking(self, query: "Query") -> RemoteQuestion:
        """The question of a query, as its text of SQL."""
        return RemoteQuestion(self, str(query), query)

    def sql(self, text: str, *, epsilon: Number, delta: Number = 0) -> RemoteAnswer:
        """The private answer to an SQL text, paid with at most this epsilon and delta."""
        return self.question(text).release(epsilon=epsilon, delta=delta)

    @property
    def selection(self) -> "RemoteSelection[RemoteQuestion]":
        """All rows, for questions in Python, which are sent as SQL."""
        from discreet.service._remote_selection import RemoteSelection

        return RemoteSelection(self.name, self.asking)

    def where(
        self, *conditions: "ConditionExpression | ColumnExpression"
    ) -> "RemoteSelection[RemoteQuestion]":
        """The rows for which all conditions are known to hold."""
        return self.selection.where(*conditions)

    def group_by(
        self, *keys: str, **expressions: "ColumnExpression | ConditionExpression"
    ) -> "RemoteSelection[RemoteQuestion]":
        """The rows by the declared keys of these columns, and by the values of expressions."""
        return self.selection.group_by(*keys, **expressions)

    def agg(
        self, *unnamed: Never, **aggregates: "UnnamedAggregate | ColumnExpression"
    ) -> RemoteQuestion:
        """The question for these aggregates of all rows."""
        return self.selection.agg(*unnamed, **aggregates)

    def quantiles(
        self,
        column: str,
        levels: Sequence[Number],
        *,
        by: str | Sequence[str] = (),
        epsilon: Number,
        delta: Number = 0,
    ) -> RemoteAnswer:
        """The quantiles of a column at these levels, for each group ``by`` these columns."""
        asked = self.group_by(*_names(by)).quantiles(column, levels)
        return asked.release(epsilon=epsilon, delta=delta)

    def describe(
        self, *columns: str, by: str | Sequence[str] = (), epsilon: Number, delta: Number = 0
    ) -> RemoteAnswer:
        """The number of values, mean, standard deviation and quartiles of each numeric column."""
        asked = self.group_by(*_names(by)).describe(*columns)
        return asked.release(epsilon=epsilon, delta=delta)

    def count_units(
        self, *, by: str | Sequence[str] = (), epsilon: Number, delta: Number = 0
    ) -> RemoteAnswer:
        """The number of different units, in all or in each group."""
        asked = self.group_by(*_names(by)).count_units()
        return asked.release(epsilon=epsilon, delta=delta)

    def share_of_null(
        self,
        column: str,
        *,
        epsilon: Number,
        confidence: Number = Fraction(95, 100),
        request: str | None = None,
    ) -> dict[str, Any]:
        """The share of a column's values that its declared type can't hold, as JSON with a ``text``
        in words: charged as one count, once for each ``request``."""
        numbers = {
            "epsilon": written(epsilon=epsilon),
            "confidence": written(confidence=confidence),
        }
        chosen = secrets.token_hex(16) if request is None else _checks.text(request=request)
        asked = {"column": _checks.text(column=column), **numbers, "request": chosen}
        with _named_request(chosen):
            found = self.service.post("tables", self.name, "nulls", body=asked)
            with readable():
                text_of(found, "text"), PrivacyLoss.from_json(json.dumps(found["privacy_loss"]))
        return found

    @property
    def declaration(self) -> dict[str, Any]:
        """The public facts of the table as JSON: unit, caps and columns."""
        return self.service.get("tables", self.name)

    @property
    def ledger(self) -> RemoteLedger:
        """The table's ledger as a payer, for training runs and releases on this machine."""
        return RemoteLedger(self.service, self.name)

    def is_paid(self, request: str) -> bool:
        """Whether the service has a receipt of this request of the caller."""
        try:
            self.service.get("receipts", _checks.text(request=request))
        except errors.Refused:
            return False
        return True

    def budget(self) -> dict[str, Any]:
        """The limit, the spent and the remaining part, and the caller's share."""
        found = self.service.get("tables", self.name, "budget")
        with readable():
            for one in (found, *objects_of(found, "shares")):
                text_of(one, "limit"), fraction(one["spent"]), fraction(one["left"])
            _ = [text_of(one, "share") for one in found["shares"]], found["is_locked"]
        return found

    def history(self) -> list[dict[str, Any]]:
        """The last entries of the ledger; for an analyst his own."""
        from discreet.ledger import Kind

        found = self.service.get("tables", self.name, "history")
        with readable():
            entries = objects_of(found, "entries")
            for one in entries:
                int(one["number"]), datetime.fromisoformat(text_of(one, "at"))
                if text_of(one, "kind") == Kind.CHARGE.value:
                    text_of(one, "by"), text_of(one, "purpose")
                    PrivacyLoss.from_json(json.dumps(one["privacy_loss"]))
        return entries

    if not TYPE_CHECKING:  # so that a wrong name is found

        def __getattr__(self, name: str) -> Never:
            from discreet.service._remote_selection import refuse_unsent

            refuse_unsent(name, self)


class _NotServed(errors.InvalidArgument, KeyError):
    """No table of this name; also a KeyError, as for every mapping."""

    __str__ = Exception.__str__


class RemoteTables(Mapping[str, RemoteTable]):
    """The tables of a service, by name."""

    __slots__ = ("service",)

    _repr_html_ = _html.shown

    def __init__(self, service: ServiceAddress) -> None:
        """The tables behind this address; it is asked at each use."""
        self.service = service

    def __getitem__(self, name: str) -> RemoteTable:
        if name not in self._names():
            raise _NotServed(f"{self.service.url} serves no table {_checks.quoted(name)}")
        return RemoteTable(self.service, name)

    def _names(self) -> list[str]:
        return [str(one["name"]) for one in self.declarations()]

    def declarations(self) -> list[dict[str, Any]]:
        """The public facts of all tables as JSON: name, unit, caps and columns."""
        found = self.service.get("tables")
        with readable():
            tables = objects_of(found, "tables")
            for one in tables:
                text_of(one, "name"), text_of(one, "unit")
                for column in objects_of(one, "columns"):
                    text_of(column, "name"), text_of(column, "type")
        return tables

    def receipt(self, request: str) -> str:
        """The receipt of the caller's own paid request as JSON, for `discreet verify`."""
        return json.dumps(self.service.get("receipts", _checks.text(request=request)), indent=2)

    def check_receipt(self, text: str) -> str:
        """The name of the table whose ledger has the charge of this receipt, whoever paid.

        Raises `ReceiptDiffers` if no ledger has it, or if the receipt was altered.
        """
        unread: DiscreetError | None = None
        for name in self._names():
            try:
                self.service.post("tables", name, "check", body={"receipt": text})
            except errors.ReceiptDiffers:
                continue
            except errors.LedgerError as failure:
                unread = failure
                continue
            return name
        raise unread or errors.ReceiptDiffers(
            f"the receipt was altered, or no ledger at {self.service.url} has its charge"
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def __repr__(self) -> str:
        return f"RemoteTables of {self.service.url}"


def connect(url: str, token: str) -> RemoteTables:
    """The tables of a service, to be asked like tables here; nothing is sent yet.

    Without TLS the address must be on this machine, since everyone on the way could read the token.
    Raises `InvalidArgument` for another address.
    """
    return RemoteTables(address_of(url, token))


def _is_paid(service: ServiceAddress, request: str) -> bool:
    """Whether the caller paid under this request id before."""
    with suppress(errors.Refused):
        service.get("receipts", request)
        return True
    return False


@contextmanager
def _named_request(request: str) -> Iterator[None]:
    """Within, a failure of the service names the request id of what may have been paid, and so does
    a refusal after a try whose answer was lost."""
    try:
        yield
    except DiscreetError as failure:
        if not may_have_charged(failure):
            raise
        raise type(failure)(
            f"{failure}; it may have been paid: repeat it with request={request!r}, which is "
            "charged once"
        ) from None


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _price(
    epsilon: Number, delta: Number, confidence: Number, noise: str | None
) -> dict[str, object]:
    numbers = {"epsilon": epsilon, "delta": delta, "confidence": confidence}
    chosen = {} if noise is None else {"noise": noise}
    return {**{name: written(**{name: number}) for name, number in numbers.items()}, **chosen}
