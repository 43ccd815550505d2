"""Rows that reach their unit through a key: those of purchases have an order's number, and a table
of orders has the customer of each.

A unit takes at most m of its keys, by a public hash among its own rows of the table of links. A key
counts if exactly one unit takes it, and then for at most p of its rows, by a public hash among
these. The key stands in place of the id. So adding or removing a unit adds or removes the rows of
at most m keys, m p rows, whatever they hold, and these are the caps of the table:
docs/proofs/keys.md. Nothing follows from who has a key, so units can't be counted here, and the
rows aren't joined with others on ids.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import ibis.expr.types as ir
import pyarrow as pa

from discreet._unit import Unit
from discreet.errors import DeclarationError
from discreet.query._bounding._choice import first_rows
from discreet.query._engines import _engine
from discreet.query._engines._conversion import are_alike, id_text, joint_id
from discreet.query._engines._engine_statement import ServerRelation
from discreet.query._facts._declaration import Through
from discreet.query._relations._in_server import CheckedRelations, checked_before, checked_in_server
from discreet.query._rows._files import ArrowRows
from discreet.query._rows._source import (
    ComputedSource,
    TableSource,
    arrow_schema,
    check_one_place,
    place_of,
    served_by,
    snapshot,
)

_KEY, _UNIT = "\x1fkey", "\x1funit"  # no declared column has a control character in its name


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class LinkedSource(ComputedSource):
    """The rows of ``events`` under keys that exactly one unit takes in ``links``, with the key
    under the name of the unit's id."""

    events: TableSource
    links: TableSource
    unit: Unit
    through: Through
    served: CheckedRelations = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The public facts of both tables that decide which rows there are."""
        way = self.through
        facts = [self.events.label, self.links.label, self.unit.plain, way.on, way.keys, way.rows]
        return json.dumps(facts)

    @property
    def private_tables(self) -> tuple[str, ...]:
        """The table that has the keys."""
        return (self.through.table,)

    @property
    def parts(self) -> Sequence[TableSource]:
        """The rows under keys, and the table of keys."""
        return (self.events, self.links)

    @property
    def is_cut(self) -> bool:
        """Rows beyond the caps are left out."""
        return True

    def snapshot(self) -> "LinkedSource":
        """The same with the files that are there now."""
        return replace(self, events=snapshot(self.events), links=snapshot(self.links))

    def types(self) -> Sequence[tuple[str, pa.DataType | None]]:
        """The columns of the events, and the key in place of an id."""
        assert self.unit.column is not None  # `linked_declaration` refuses it
        self._check_has_no_ids()
        return [*self.events.types(), (self.unit.column, pa.string())]

    def schema(self, names: Sequence[str]) -> pa.Schema:
        """The types of these columns, computed for tables without rows."""
        if served_by(self):
            return self._schema_in_server(tuple(names))
        with _engine.compiling() as engine:
            try:
                made, schemas = self._rows_of(engine.table, names)
                empty = {one: schema.empty_table() for one, schema in schemas.items()}
                with engine.streamed(engine.statement(made), empty) as rows:
                    return rows.schema
            except engine.failures as cause:
                refusal = f"the engine can't find the rows through {self.through.table}"
                raise _engine.not_compiled(engine, cause, refusal) from cause

    def _schema_in_server(self, names: tuple[str, ...]) -> pa.Schema:
        with _engine.compiling(served_by(self)) as engine, ExitStack() as stack:
            made, schemas = self._rows_of(_engine.described, names)
            rows = {
                place: stack.enter_context(source.rows(schemas[place].names))
                for place, source in self._places()
            }
            relation = ServerRelation(made, rows, {})
            return checked_in_server(engine, relation, schemas, self.served)

    def _places(self) -> Sequence[tuple[str, TableSource]]:
        return (("links", self.links), ("events", self.events))

    @contextmanager
    def rows(self, names: Sequence[str]) -> Iterator[ArrowRows]:
        """The rows of these columns, from an engine of their own, or in the server."""
        if served_by(self):
            yield checked_before(self.served, names)
            return
        with _engine.opened() as engine, ExitStack() as stack:
            expression, schemas = self._rows_of(engine.table, names)
            statement = engine.statement(expression)
            given = {}
            for place, source in self._places():
                found = stack.enter_context(source.rows(schemas[place].names))
                is_once = isinstance(found, pa.RecordBatchReader)
                given[place] = found.read_all() if is_once else found
            with engine.streamed(statement, given) as rows:
                made = rows.read_all()  # a question may scan it several times
        yield made

    def _rows_of(
        self, described: Callable[[pa.Schema, str], ir.Table], names: Sequence[str]
    ) -> tuple[ir.Table, Mapping[str, pa.Schema]]:
        """The rows as an expression, and the types of both tables."""
        self._check_has_no_ids()
        check_one_place(self, "through")
        here, there = (list(side) for side in zip(*self.through.on, strict=True))
        own = [name for name in names if name != self.unit.column]
        schemas = {
            "links": _schema(self.links, [*self.unit.columns, *there]),
            "events": _schema(self.events, [*here, *own]),
        }
        links, events = (described(schema, place) for place, schema in schemas.items())
        for mine, theirs in self.through.on:
            if not are_alike([events[mine], links[theirs]]):
                raise DeclarationError(
                    f"through: {mine} and {self.through.table}.{theirs} are of types that don't "
                    "compare; both must be whole numbers or texts, or of one type"
                )
        taken = _owned_keys(links, self.unit, there, self.through.keys)
        rows = _with_key(events, here, own).join(taken, _KEY)
        rows = first_rows(rows.select(_KEY, *own), _KEY, self.through.rows)
        columns = {name: rows[_KEY if name == self.unit.column else name] for name in names}
        return rows.select(**columns), schemas

    def _check_has_no_ids(self) -> None:
        """Refuse rows that have ids: those of a unit would change with it under any key, also under
        keys that another unit takes."""
        names = {name.lower() for name, _ in self.events.types()}
        if names.issuperset(map(str.lower, self.unit.columns)):
            raise DeclarationError(
                f"through: the source has {self.unit.column} itself; declare it with the unit alone"
            )
        if place_of(self.events) == place_of(self.links):
            raise DeclarationError(
                f"through: the source is that of {self.through.table}; give the rows that have "
                f"keys and no {self.unit.column}"
            )

    def __repr__(self) -> str:
        return f"LinkedSource(through {self.through.table})"


def _schema(source: TableSource, names: Sequence[str]) -> pa.Schema:
    """The types of these columns, each of which must be there once, in a type with a rule."""
    there = list(source.types())
    for name in names:
        kinds = [kind for other, kind in there if other == name]
        if len(kinds) != 1 or kinds[0] is None:
            listed = ", ".join(other for other, kind in there if kind is not None)
            raise DeclarationError(
                f"through: of a source with {listed}, {name!r} is no column of a type with a rule; "
                "of a frame, declare it"
            )
    return arrow_schema(source, list(dict.fromkeys(names)))


def _owned_keys(links: ir.Table, unit: Unit, columns: Sequence[str], most: int) -> ir.Table:
    """The keys that exactly one unit takes; each unit takes at most ``most`` of its keys."""
    pairs = links.select(
        **{
            _UNIT: _id([links[name] for name in unit.columns]),
            _KEY: _id([links[name] for name in columns]),
        }
    )
    pairs = pairs.filter(pairs[_UNIT].notnull(), pairs[_KEY].notnull()).distinct()
    pairs = first_rows(pairs, _UNIT, most)
    keys = pairs.group_by(_KEY).aggregate(units=pairs.count())
    return keys.filter(keys.units == 1).select(_KEY)


def _with_key(events: ir.Table, columns: Sequence[str], own: Sequence[str]) -> ir.Table:
    key = _id([events[name] for name in columns])
    made = events.select(**{_KEY: key}, **{name: events[name] for name in own})
    return made.filter(made[_KEY].notnull())


def _id(parts: Sequence[Any]) -> Any:  # Any: Ibis expressions
    """The text of an id or key, the same for equal ones of two tables."""
    return id_text(parts[0]) if len(parts) == 1 else joint_id(parts)
