"""Computes the rows of a relation from those of its tables: a source like any other.

The engine converts and clamps each table's columns as they are declared, then computes, joins and
unites. Two tables are joined on the id of units in one spelling: as whole numbers if all tables
have these, as texts otherwise. Before tables of one unit are joined, each keeps at most as many of
a unit's rows as its cap allows, chosen by a public hash of the row itself, so that the rows of one
unit can't make a join large.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import Any

import ibis
import ibis.expr.operations as ops
import ibis.expr.types as ir
import pyarrow as pa

from discreet._unit import Unit
from discreet.errors import DeclarationError, QueryRefused
from discreet.query._bounding._choice import first_rows
from discreet.query._bounding._compiling import Compiler
from discreet.query._bounding._numbering import comparable
from discreet.query._bounding._stages import StagedValue
from discreet.query._engines import _engine
from discreet.query._engines._conversion import (
    ENGINE_TYPES,
    are_alike,
    id_parts,
    id_text,
    identity,
    joint_id,
)
from discreet.query._engines._engine_statement import ServerRelation
from discreet.query._expressions._expressions import ColumnRef, Condition, Scalar, columns_in
from discreet.query._expressions._relation import (
    Joined,
    JoinStep,
    NamedRows,
    PerUnit,
    Selected,
    TableRef,
    United,
    from_text,
    tables_of,
)
from discreet.query._facts._columns import ColumnType
from discreet.query._facts._declaration import Declaration
from discreet.query._facts._public_facts import facts_text
from discreet.query._relations._derived import Catalog, declaration_of, joined_names
from discreet.query._relations._in_server import CheckedRelations, checked_before, checked_in_server
from discreet.query._relations._per_unit import addend_of_unit, total
from discreet.query._rows._files import ArrowRows
from discreet.query._rows._public_table import PublicTable
from discreet.query._rows._shared_rows import share_rows
from discreet.query._rows._source import (
    ComputedSource,
    TableSource,
    arrow_schema,
    check_one_place,
    check_schema,
    id_columns,
    served_by,
    snapshot,
)

_ARROW = {
    ColumnType.BOOLEAN: pa.bool_(),
    ColumnType.DATE: pa.date32(),
    ColumnType.INTEGER: pa.int64(),
    ColumnType.NUMBER: pa.float64(),
    ColumnType.TEXT: pa.string(),
}
_ID = "\x1fid"  # no declared column has a control character in its name


@dataclass(frozen=True, slots=True)
class _OfSource:
    """The part of a table that its rows come from."""

    source: TableSource


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class RelationSource(ComputedSource):
    """The rows of a relation. ``tables`` has each of its declared tables."""

    relation: NamedRows
    catalog: Catalog
    tables: Mapping[str, Any]  # Any: tables and public tables, see `_beside`
    served: CheckedRelations = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The public facts of all tables: their declarations, the names of their sources, and the
        digests of public tables."""
        labels = []
        for name in sorted(set(tables_of(self.relation))):
            facts = self.catalog.tables[name]
            table = self.tables[name]
            is_public = isinstance(table, PublicTable)
            source = table.digest if is_public else table.source.label
            labels.append(facts_text(facts, list(facts.columns), source))
        return " ".join(labels)

    @property
    def private_tables(self) -> tuple[str, ...]:
        """The names of its tables of units."""
        return tuple(sorted(set(tables_of(self.relation)) - self.catalog.public))

    @property
    def parts(self) -> Sequence[TableSource]:
        """The sources of its tables of units."""
        return [self.tables[name].source for name in self.private_tables]

    @property
    def is_cut(self) -> bool:
        """Whether anywhere tables with a unit are joined with one another, or one is reached
        through another."""
        return _is_cut(self.relation, self.catalog)

    def snapshot(self) -> "RelationSource":
        """The same with the files that are there now."""
        private = {
            name: _OfSource(snapshot(self.tables[name].source)) for name in self.private_tables
        }
        return replace(self, tables={**self.tables, **private})

    def types(self) -> Sequence[tuple[str, pa.DataType | None]]:
        """The columns of the relation, and the unit's id, which may be a whole number as well. They
        follow from declarations alone; `schema` looks at the tables."""
        facts = declaration_of(self.relation, self.catalog)
        found = [(name, _ARROW[column.type]) for name, column in facts.columns.items()]
        unit = facts.unit.column
        return found if unit is None else [*found, (unit, pa.string())]

    def schema(self, names: Sequence[str]) -> pa.Schema:
        """The types of these columns. All tables are checked, and the rows are computed for empty
        ones; of public tables, the rows themselves are looked at."""
        with _engine.compiling() as engine:
            try:
                builder = self._builder(engine.table)
                for keys in builder.public_keys(self.relation):
                    self._check_unique(keys, builder)
                if served_by(self):
                    return self._schema_in_server(tuple(names))
                statement = engine.statement(builder.table(self.relation, names))
                empty = {one: schema.empty_table() for one, schema in builder.schemas.items()}
                with engine.streamed(statement, empty) as rows:
                    return rows.schema
            except engine.failures as cause:
                refusal = "the engine can't compute what FROM names"
                raise _engine.not_compiled(engine, cause, refusal) from cause

    def _schema_in_server(self, names: tuple[str, ...]) -> pa.Schema:
        """The types of these columns where the tables are, and the rows there, not computed yet."""
        with _engine.compiling(served_by(self)) as engine, ExitStack() as stack:
            builder = self._builder(_engine.described)
            made = builder.table(self.relation, names)
            rows: dict[str, object] = {}
            public: dict[str, pa.Table] = {}
            for place, (table, columns) in builder.read(made).items():
                given = stack.enter_context(self.tables[table].source.rows(columns))
                (public if table in self.catalog.public else rows)[place] = given
            relation = ServerRelation(made, rows, public)
            return checked_in_server(engine, relation, builder.schemas, self.served)

    @contextmanager
    def rows(self, names: Sequence[str]) -> Iterator[ArrowRows]:
        """The rows of these columns, from an engine of their own, or in the server."""
        if served_by(self):
            yield checked_before(self.served, names)
            return
        with _engine.opened() as engine, ExitStack() as stack:
            builder = self._builder(engine.table)
            made = builder.table(self.relation, names)
            statement = engine.statement(made)
            given = self._rows_for(builder, made, stack)
            with engine.streamed(statement, given) as rows:
                found = rows.read_all()  # a question may scan it several times
        yield found

    def _rows_for(
        self, builder: "_Builder", expression: ir.Table, stack: ExitStack
    ) -> Mapping[str, ArrowRows]:
        """The rows of the columns that an expression reads, for any number of scans."""
        given = {}
        for place, (table, columns) in builder.read(expression).items():
            rows = stack.enter_context(self.tables[table].source.rows(columns))
            given[place] = rows.read_all() if isinstance(rows, pa.RecordBatchReader) else rows
        return given

    def _builder(self, described: Callable[[pa.Schema, str], ir.Table]) -> "_Builder":
        """The tables of the relation, described for an engine with all declared columns."""
        self._check_sources()
        check_one_place(self, "joins, unions and aggregates of each unit")
        tables: dict[str, ir.Table] = {}
        schemas: dict[str, pa.Schema] = {}
        for name in sorted(set(tables_of(self.relation))):
            facts, source = self.catalog.tables[name], self.tables[name].source
            check_schema(source, facts.columns, facts.unit)
            used = dict.fromkeys([*facts.columns, *id_columns(source, facts.unit)])
            place = f"source{len(tables)}"
            schemas[place] = arrow_schema(source, tuple(used))
            tables[name] = described(schemas[place], place)
        return _Builder(self.catalog, tables, schemas, _are_whole(tables, self.catalog))

    def _check_sources(self) -> None:
        """Refuse one source under two names, where each row is a unit: it would count twice."""
        private = sorted(set(tables_of(self.relation)) - self.catalog.public)
        if self.catalog.tables[private[0]].unit.column is not None:
            return
        for name, other in combinations(private, 2):
            if share_rows(self.tables[name].source, self.tables[other].source):
                raise QueryRefused(
                    f"FROM: {name} and {other} have the same rows, or are slices of one frame, and "
                    "each row is a unit that counts once; if no row is in both, copy one of them"
                )

    def _check_unique(self, keys: ir.Table, builder: "_Builder") -> None:
        """Refuse a public table with several rows that one row would meet."""
        kept = keys.filter(*[keys[name].notnull() for name in keys.columns])
        times = kept.group_by(list(keys.columns)).aggregate(times=kept.count())
        several = times.filter(times.times > 1)
        with _engine.opened() as engine, ExitStack() as stack:
            given = self._rows_for(builder, several, stack)
            with engine.streamed(engine.statement(several.limit(1)), given) as found:
                count = found.read_all().num_rows
        if count:
            tables = ", ".join(sorted({table for table, _ in builder.read(several).values()}))
            raise QueryRefused(
                f"JOIN: the public table {tables} has several rows with the same values of the "
                "columns in ON; a row may meet one of them at most"
            )

    def __repr__(self) -> str:
        return f"RelationSource({from_text(self.relation)})"


def _is_cut(relation: NamedRows, catalog: Catalog) -> bool:
    match relation:
        case TableRef(name):
            return catalog.tables[name].through is not None
        case Selected(source):
            return _is_cut(source, catalog)
        case PerUnit():
            return True  # totals are clamped
        case Joined() | United():
            private = [part for part in relation.parts if not catalog.is_public(part)]
            is_here = isinstance(relation, Joined) and len(private) > 1
            return is_here or any(_is_cut(part, catalog) for part in private)


def _are_whole(tables: Mapping[str, ir.Table], catalog: Catalog) -> bool:
    """Whether the ids of all tables are whole numbers. Refuses ids that can't be compared."""
    ids = [
        id_parts(table, catalog.tables[name].unit)
        for name, table in tables.items()
        if name not in catalog.public
    ]
    for same in zip(*ids, strict=False):  # units of several sizes are refused by now
        if not are_alike(same):
            raise DeclarationError(
                "FROM: the tables have ids of types that don't compare; declare tables whose ids "
                "are all whole numbers and texts, or all of one type"
            )
    is_single = all(len(one) == 1 for one in ids)
    return is_single and all(identity(raw).type().is_integer() for (raw,) in ids)


def _columns_read(values: Iterable[Scalar], where: Condition | None) -> list[str]:
    """The columns that values and a condition read."""
    used = [name for value in values for name in columns_in(value)]
    return used + ([] if where is None else columns_in(where))


def _id_as_it_is(table: ir.Table, unit: Unit) -> Any:  # Any: Ibis expressions
    return table[unit.column]


@dataclass(frozen=True, slots=True)
class _Builder:
    """Makes the engine's expressions of relations over tables that the engine has."""

    catalog: Catalog
    tables: Mapping[str, ir.Table]
    schemas: Mapping[str, pa.Schema]
    are_whole: bool

    def table(self, relation: NamedRows, names: Sequence[str]) -> ir.Table:
        """The rows of a relation with these columns, among them the unit's id, if it is named."""
        match relation:
            case TableRef():
                unit, declared = self._unit(relation), self._facts(relation).columns
                wanted = [name for name in declared if name in names and name != unit]
                plain = {name: ColumnRef(name) for name in wanted}
                made = self._selected(relation, plain, None, unit)
            case Selected():
                values = {name: value for name, value in relation.columns if name in names}
                made = self._selected(relation.source, values, relation.where, self._unit(relation))
            case PerUnit():
                made = self._per_unit(relation, names)
            case Joined():
                made = self._joined(relation, names)
            case United(parts):
                made = ibis.union(*(self._part(part, relation, names) for part in parts))
        return made.select(*names)

    def read(self, expression: ir.Table) -> dict[str, tuple[str, list[str]]]:
        """For each table in the engine that an expression reads: its name, and the columns."""
        used: dict[str, set[str]] = {}
        for one in expression.op().find(ops.Field):
            if isinstance(one.rel, ops.UnboundTable):
                used.setdefault(one.rel.name, set()).add(one.name)
        names = {table.op().name: name for name, table in self.tables.items()}
        every = {one.name for one in expression.op().find(ops.UnboundTable)}
        return {
            place: (
                names[place],
                [n for n in self.schemas[place].names if n in used.get(place, ())]
                or self.schemas[place].names[:1],
            )
            for place in sorted(every)
        }

    def public_keys(self, relation: NamedRows) -> Iterator[ir.Table]:
        """The columns that public tables are joined on, wherever they are in a relation."""
        match relation:
            case Selected(source) | PerUnit(source):
                yield from self.public_keys(source)
            case Joined(_, steps):
                for part in relation.parts:
                    yield from self.public_keys(part)
                for step in steps:
                    if self.catalog.is_public(step.part):
                        keys = list(dict.fromkeys(own for _, own in step.equal))
                        table = self.table(step.part, keys)
                        yield table.select(**{name: comparable(table[name]) for name in keys})
            case United(parts):
                for part in parts:
                    yield from self.public_keys(part)

    def _facts(self, relation: NamedRows) -> Declaration:
        return declaration_of(relation, self.catalog)

    def _unit(self, relation: NamedRows) -> str | None:
        is_public = self.catalog.is_public(relation)
        return None if is_public else self._facts(relation).unit.column

    def _selected(
        self,
        source: NamedRows,
        values: Mapping[str, Scalar],
        where: Condition | None,
        unit: str | None,
    ) -> ir.Table:
        """These values in each row that meets the condition, and the unit's id."""
        compiler = Compiler(self._facts(source))
        terms = {name: compiler.scalar(value) for name, value in values.items()}
        read = _columns_read(values.values(), where)
        return self._rows(source, compiler, terms, read=read, where=where, unit=unit)

    def _rows(
        self,
        source: NamedRows,
        compiler: Compiler,
        terms: Mapping[str, StagedValue],
        *,
        read: Sequence[str],
        where: Condition | None,
        unit: str | None,
    ) -> ir.Table:
        """These terms, which read these columns, in each row that meets the condition, and the
        unit's id."""
        if isinstance(source, TableRef):
            table, id_of = self.tables[source.name], self._id
        else:
            used = [*read, *([] if unit is None else [unit])]
            some = used or list(compiler.declaration.columns)[:1]
            table, id_of = self.table(source, list(dict.fromkeys(some))), _id_as_it_is
        own = partial(id_of, unit=compiler.declaration.unit)
        ids = {} if unit is None else {unit: compiler.of_rows(own)}
        made = compiler.select(table, {**terms, **ids}, where)
        return made if unit is None else made.filter(made[unit].notnull())

    def _per_unit(self, relation: PerUnit, names: Sequence[str]) -> ir.Table:
        """One row for each unit: aggregates of its rows, as integers and only then as floats, so
        that no order of the rows changes them."""
        compiler, unit = Compiler(self._facts(relation.source)), self._unit(relation)
        assert unit is not None  # `declaration_of` refuses it
        asked = {f"{_ID}{n}": one for n, one in enumerate(relation.aggregates)}
        asked = {name: one for name, one in asked.items() if one.name in names}
        terms = {name: addend_of_unit(one, compiler) for name, one in asked.items()}
        values = [value for one in asked.values() for value in one.arguments]
        source, where = relation.source, relation.where
        read = _columns_read(values, where)
        rows = self._rows(source, compiler, terms, read=read, where=where, unit=unit)
        totals = {one.name: total(one, compiler, rows[name]) for name, one in asked.items()}
        made = rows.group_by(unit).aggregate(**{f"{_ID}rows": rows.count(), **totals})
        return made.drop(f"{_ID}rows")

    def _id(self, table: ir.Table, unit: Unit) -> Any:  # Any: Ibis expressions
        """The id of a declared table, in the one spelling that all tables have."""
        parts = id_parts(table, unit)
        if len(parts) > 1:
            return joint_id(parts)
        return identity(parts[0]) if self.are_whole else id_text(parts[0])

    def _part(self, part: Selected, whole: United, names: Sequence[str]) -> ir.Table:
        """A part of UNION ALL, its columns of the types that all parts have together."""
        columns, table = self._facts(whole).columns, self.table(part, names)
        return table.select(
            **{
                name: table[name].cast(ENGINE_TYPES[columns[name].type])
                if name in columns
                else table[name]
                for name in names
            }
        )

    # --- joins ---

    def _joined(self, relation: Joined, names: Sequence[str]) -> ir.Table:
        unit, own = self._unit(relation), joined_names(relation, self.catalog)
        used = {*names, *(left for step in relation.steps for left, _ in step.equal)}
        is_of_several = sum(not self.catalog.is_public(part) for part in relation.parts) > 1
        parts = []
        for place, part in enumerate(relation.parts):
            keys = {n for _, n in relation.steps[place - 1].equal} if place else set()
            wanted = [name for name, last in own[place].items() if last in used or name in keys]
            id_name = self._unit(part)
            table = self.table(part, wanted + ([] if id_name is None else [id_name]))
            if id_name is not None and is_of_several:
                table = first_rows(table, id_name, self._facts(part).caps.rows)
            columns = {own[place][name]: table[name] for name in wanted}
            ids = {} if id_name is None else {f"{_ID}{place}": table[id_name]}
            parts.append(table.select(**columns, **ids))
        found = parts[0]
        for place, step in enumerate(relation.steps, 1):
            found = _step(found, parts[place], step, own[place])
        ids = {} if unit is None else {unit: found[f"{_ID}0"]}
        return found.select(**{name: found[name] for name in names if name != unit}, **ids)


def _step(left: ir.Table, right: ir.Table, step: JoinStep, own: Mapping[str, str]) -> ir.Table:
    """The rows before joined with those of the step's table, whose columns are called as in the
    join, and its unit's id apart from them."""
    equal = [comparable(left[one]) == comparable(right[own[other]]) for one, other in step.equal]
    ids = [name for name in right.columns if name.startswith(_ID)]
    if step.unit:
        equal.append(left[f"{_ID}0"] == right[ids[0]])
    joined = left.join(right, equal, how="left" if step.is_left else "inner")
    kept = {name: left[name] for name in left.columns}
    return joined.select(**kept, **{name: right[name] for name in right.columns if name not in ids})
