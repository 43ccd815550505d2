"""Reads FROM: tables, sub-queries, joins and UNION ALL, and the names that they give to columns.

A sub-query of one relation is inlined: each of its names is replaced by its expression, and the
question is one to the relation itself. So a question has one text, however it is nested.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from discreet._unit import Unit
from discreet.errors import QueryRefused
from discreet.query._expressions._aggregates import SPELLINGS
from discreet.query._expressions._expressions import Both, ColumnRef, Condition, Scalar, parts_of
from discreet.query._expressions._relation import (
    Joined,
    JoinStep,
    NamedRows,
    PerUnit,
    Selected,
    TableRef,
    United,
)
from discreet.query._expressions._sql_words import FORM, JOINED
from discreet.query._relations._derived import Catalog, declaration_of, joined_names
from discreet.query._sql._leaves import id_place, own_name, read_column
from discreet.query._sql._per_unit import read_per_unit
from discreet.query._sql._text import SqlText
from discreet.query._sql._tokens import MAX_TOKENS
from discreet.query._sql._tree_reader import NodeRule, Scope, ScopePart, TreeReader, names_alike

_ROWS_ONLY = (
    "a query in FROM computes values row by row: SELECT values FROM table [WHERE conditions]; "
    "keys and aggregates stand in the outer query, or GROUP BY names the unit's id"
)
_NO_NAME = "a query in FROM needs a name: (SELECT ...) AS name"
_EQUAL = (
    "ON takes a column of each side, compared by =, and AND: ON a.x = b.x AND a.y = b.y; put other "
    "conditions in WHERE, or in a query in FROM"
)


@dataclass(frozen=True, slots=True)
class FromReader:
    """Reads FROM of one text; values and conditions in it are read by the given rules."""

    sql: SqlText
    catalog: Catalog
    rules: Mapping[type[exp.Expr], NodeRule]
    named: dict[str, Scope] = field(default_factory=dict)  # by WITH
    reading: list[str] = field(default_factory=list)  # the name of the query of WITH, now

    def scope(self) -> Scope:
        """The scope that the text's own FROM and WITH give."""
        select = self.sql.select
        queries = select.args.get("with_")
        for one in queries.expressions if queries else []:
            name = one.args["alias"].this
            if self._known(name) is not None:
                raise self.sql.refused(name, "another table has this name; choose another one")
            self.reading.append(str(name.this).lower())
            self.named[name.name.lower()] = _under(str(name.name), self._query(one.this))
            self.reading.pop()
        return self._from(select)

    def _from(self, select: exp.Select) -> Scope:
        source = select.args.get("from_")
        if source is None:
            raise QueryRefused(f"FROM is missing; {FORM}")
        first = self._part(source.this)
        joins = select.args.get("joins") or []
        return self._joined(first, joins) if joins else first

    def _part(self, node: exp.Expr) -> Scope:
        alias = node.args.get("alias")
        if isinstance(node, exp.Subquery):
            if alias is None:
                raise self.sql.refused(node, _NO_NAME)
            return _under(str(alias.name), self._query(node.this))
        found = self._known(node.this)
        if found is None:
            if str(node.this.this).lower() in self.reading:
                raise self.sql.refused(node.this, "a query can't name itself: recursion is refused")
            raise self.sql.refused(node.this, self._unknown())
        return found if alias is None else _under(str(alias.name), found)

    def _unknown(self) -> str:
        names = [repr(name) for name in self.catalog.tables]
        if len(names) == 1:
            return f"there is no such table; the only declared one is {names[0]}"
        return f"there is no such table; there are {', '.join(names)}"

    def _known(self, name: exp.Identifier) -> Scope | None:
        """The declared table, or the query of WITH, of this name."""
        written, is_exact = str(name.this), self.sql.is_quoted(name)
        if written.lower() in self.named:
            return self.named[written.lower()]
        matching = names_alike(written, self.catalog.tables, is_exact=is_exact)
        if len(matching) > 1:
            raise self.sql.refused(name, f"write one of {', '.join(matching)} in double quotes")
        return _of_table(matching[0], self.catalog) if matching else None

    # --- queries in FROM ---

    def _query(self, node: exp.Expr) -> Scope:
        # 1. a form with a rule, and nothing else in it
        if isinstance(node, exp.Union):
            return self._united(node)
        if isinstance(node, exp.Subquery) and node.args.get("alias") is None:
            return self._query(node.this)
        if not isinstance(node, exp.Select):
            raise self.sql.refused(node, _ROWS_ONLY)
        for name, part in node.args.items():
            is_listed = name in ("expressions", "from_", "joins", "where", "group")
            if not is_listed and part is not None and part != []:
                raise self.sql.refused(part if isinstance(part, exp.Expr) else node, _ROWS_ONLY)
        # 2. its own FROM, columns and WHERE
        inner = self._from(node)
        reader = TreeReader(self.sql, inner, self.rules)
        group = node.args.get("group")
        part = ScopePart("", {}, {}) if group else self._items(node.expressions, reader)
        where, condition = inner.where, node.args.get("where")
        if condition is not None:
            own = reader.condition(condition.this)
            where = own if where is None else Both(where, own)
        # 3. one row for each unit
        if group is not None:
            asked = read_per_unit(node.expressions, group, reader)
            aggregates, ids, order = asked
            for one in aggregates:
                for value in one.arguments:
                    self._check_size(value, group)
            unit = inner.declaration.unit.columns
            return self._derived(PerUnit(inner.relation, aggregates, where, unit), ids, order)
        return Scope(inner.declaration, inner.relation, (part,), where)

    def _items(self, nodes: Sequence[exp.Expr], reader: TreeReader) -> ScopePart:
        """The columns of a query in FROM."""
        columns: dict[str, Scalar] = {}
        ids: dict[str, int] = {}
        order: list[str] = []
        for number, node in enumerate(nodes, 1):
            # 1. all columns
            if isinstance(node, exp.Star):
                for name, value in _all_columns(node, reader).items():
                    self._add(name, value, columns, node)
                    order.append(name)
                for part in reader.scope.parts:
                    ids |= part.ids
                continue
            # 2. a name
            alias = node.args["alias"] if isinstance(node, exp.Alias) else None
            inner = node.this if isinstance(node, exp.Alias) else node
            if any(
                isinstance(one, exp.Anonymous) and one.name.upper() in SPELLINGS
                for one in inner.walk()
            ):
                raise self.sql.refused(inner, _ROWS_ONLY)
            name = f"column{number}"
            if alias is not None or isinstance(inner, exp.Column):
                name = reader.name(alias) if alias is not None else own_name(inner, reader)
            order.append(name)
            # 3. an id of the unit, or a value
            place = id_place(inner, reader) if isinstance(inner, exp.Column) else None
            if place is not None:
                ids[name] = place
                if not reader.has_column(inner):
                    continue
            if place is None and reader.declaration.unit.is_id(name):
                raise self.sql.refused(
                    node, f"{name} is a column that identifies units; choose another name"
                )
            value = reader.scalar(inner)
            self._check_size(value, node)
            self._add(name, value, columns, node)
        return ScopePart("", columns, ids, tuple(order))

    def _add(self, name: str, value: Scalar, columns: dict[str, Scalar], node: exp.Expr) -> None:
        if name.lower() in {other.lower() for other in columns}:
            raise self.sql.refused(node, f"two columns are called {name!r}; rename one with AS")
        columns[name] = value

    def _check_size(self, value: Scalar, node: exp.Expr) -> None:
        """Refuse values that sub-queries repeat so often that they grow at each level."""
        parts: list[Scalar | Condition] = [value]
        size = 0
        while parts:
            size += 1
            if size > MAX_TOKENS:
                raise self.sql.refused(node, "this repeats too long a value; write it flatter")
            parts += parts_of(parts.pop())

    # --- UNION ALL ---

    def _united(self, node: exp.Union) -> Scope:
        # 1. the parts, from a tree that leans to the left
        nodes: list[exp.Expr] = []
        rest: exp.Expr = node
        while isinstance(rest, exp.Union):
            if rest.args.get("distinct"):
                raise self.sql.refused(rest, "write UNION ALL, which keeps all rows")
            nodes.append(rest.expression)
            rest = rest.this
        # 2. the same columns and ids in each, by their places
        scopes = [self._query(one) for one in (rest, *reversed(nodes))]
        names = list(scopes[0].parts[0].columns)
        parts = []
        for one, at in zip(scopes, (rest, *reversed(nodes)), strict=True):
            values = list(one.parts[0].columns.values())
            if len(values) != len(names) or _places_of_ids(one) != _places_of_ids(scopes[0]):
                raise self.sql.refused(
                    at,
                    "UNION ALL takes parts with the same columns, by their places, and the unit's "
                    "id at the same places",
                )
            unit = self._unit(one)
            kept = [
                (name, value)
                for name, value in zip(names, values, strict=True)
                if not unit.is_id(name)
            ]
            parts.append(Selected(one.relation, tuple(kept), one.where, unit.columns))
        return self._derived(United(tuple(parts)), scopes[0].parts[0].ids)

    def _derived(
        self, relation: NamedRows, ids: Mapping[str, int], order: tuple[str, ...] = ()
    ) -> Scope:
        declaration = declaration_of(relation, self.catalog)
        columns: dict[str, Scalar] = {name: ColumnRef(name) for name in declaration.columns}
        return Scope(declaration, relation, (ScopePart("", columns, ids, order),))

    def _unit(self, scope: Scope) -> Unit:
        """The unit of the rows; none of them is anybody's in public tables."""
        return Unit.ROW if self.catalog.is_public(scope.relation) else scope.declaration.unit

    # --- JOIN ---

    def _joined(self, first: Scope, nodes: Sequence[exp.Join]) -> Scope:
        scopes = [first, *(self._part(self._kind(node).this) for node in nodes)]
        names = [one.parts[0].name if len(one.parts) == 1 else "" for one in scopes]
        for node, name in zip(nodes, names[1:], strict=True):
            if names.count(name) > 1:
                raise self.sql.refused(node.this, f"two tables are called {name!r}; write AS")
        relations = [self._relation(one) for one in scopes]
        # the names in the join don't depend on what is equal
        own = joined_names(
            Joined(relations[0], tuple(JoinStep(one) for one in relations[1:])), self.catalog
        )
        parts = [
            ScopePart(
                name,
                {n: ColumnRef(other) for n, other in mapping.items()},
                one.parts[0].ids,
                in_join=mapping,
            )
            for name, mapping, one in zip(names, own, scopes, strict=True)
        ]
        steps: list[JoinStep] = []
        merged: set[str] = set()
        seen = Scope(first.declaration, relations[0], (parts[0],))
        for place, node in enumerate(nodes, 1):
            facts = declaration_of(relations[place], self.catalog)
            right = Scope(facts, relations[place], (parts[place],))
            step, shared = self._step(node, seen, right, own[place])
            steps.append(step)
            merged |= shared
            new = replace(parts[place], ids={}) if step.is_left else parts[place]
            seen = replace(seen, parts=(*seen.parts, new), merged=frozenset(merged))
        relation = Joined(relations[0], tuple(steps))
        declaration = declaration_of(relation, self.catalog)
        return Scope(declaration, relation, seen.parts, None, frozenset(merged))

    def _kind(self, node: exp.Join) -> exp.Join:
        side, kind = (str(node.args.get(one) or "").upper() for one in ("side", "kind"))
        is_known = (side, kind) in (("", ""), ("", "INNER"), ("LEFT", ""), ("LEFT", "OUTER"))
        if not is_known or not (node.args.get("on") or node.args.get("using")):
            raise self.sql.refused(node, JOINED)
        return node

    def _relation(self, scope: Scope) -> NamedRows:
        """A part of a join as a relation of its own."""
        unit = self._unit(scope)
        columns = scope.parts[0].columns
        plain = {name: ColumnRef(name) for name in scope.declaration.columns}
        if scope.where is None and len(scope.parts) == 1 and dict(columns) == plain:
            return scope.relation
        kept = tuple((name, value) for name, value in columns.items() if not unit.is_id(name))
        return Selected(scope.relation, kept, scope.where, unit.columns)

    def _step(
        self, node: exp.Join, left: Scope, right: Scope, own: Mapping[str, str]
    ) -> tuple[JoinStep, set[str]]:
        """The step, and the names that USING makes one column of."""
        is_left = str(node.args.get("side") or "").upper() == "LEFT"
        unit = self._unit(right).columns
        named = {final: name for name, final in own.items()}
        equal: list[tuple[str, str]] = []
        on_unit: set[int] = set()
        merged: set[str] = set()
        for one, other in self._pairs(node, left, right):
            sides = [TreeReader(self.sql, side, self.rules) for side in (left, right)]
            place = id_place(one, sides[0])
            if place is not None and place == id_place(other, sides[1]):
                on_unit.add(place)
            else:
                first, second = read_column(one, sides[0]), read_column(other, sides[1])
                assert isinstance(first, ColumnRef)  # of the parts of a join
                assert isinstance(second, ColumnRef)  # the same
                equal.append((first.name, named[second.name]))
            if node.args.get("using"):
                merged.add(str(one.name).lower())
        pairs, is_on_unit = tuple(sorted(set(equal))), on_unit == {*range(len(unit))}
        return JoinStep(right.relation, pairs, unit if is_on_unit else (), is_left), merged

    def _pairs(
        self, node: exp.Join, left: Scope, right: Scope
    ) -> list[tuple[exp.Column, exp.Column]]:
        """The columns that must be equal, that of the left side first."""
        using = node.args.get("using")
        if using:
            return [(exp.Column(this=one), exp.Column(this=one)) for one in using]
        found: list[tuple[exp.Column, exp.Column]] = []
        rest = [node.args["on"]]
        while rest:
            one = rest.pop()
            if isinstance(one, exp.Paren):
                rest.append(one.this)
            elif isinstance(one, exp.And):
                rest += [one.expression, one.this]
            elif isinstance(one, exp.EQ):
                found.append(self._sides(one, left, right))
            else:
                raise self.sql.refused(one, _EQUAL)
        return found

    def _sides(self, node: exp.EQ, left: Scope, right: Scope) -> tuple[exp.Column, exp.Column]:
        one, other = node.this, node.expression
        if not (isinstance(one, exp.Column) and isinstance(other, exp.Column)):
            raise self.sql.refused(node, _EQUAL)
        readers = [TreeReader(self.sql, side, self.rules) for side in (left, right)]
        places = [[reader.knows(side) for reader in readers] for side in (one, other)]
        if places[0][0] and places[1][1] and not (places[0][1] or places[1][0]):
            return one, other
        if places[0][1] and places[1][0] and not (places[0][0] or places[1][1]):
            return other, one
        raise self.sql.refused(node, f"{_EQUAL}; write each as table.column")


def _of_table(name: str, catalog: Catalog) -> Scope:
    declaration = catalog.tables[name]
    columns: dict[str, Scalar] = {column: ColumnRef(column) for column in declaration.columns}
    ids = {column: place for place, column in enumerate(declaration.unit.columns)}
    part = ScopePart(name.lower(), columns, ids)
    return Scope(declaration, TableRef(name), (part,))


def _under(name: str, scope: Scope) -> Scope:
    """The scope, which has one part, under another name."""
    (part,) = scope.parts
    return replace(scope, parts=(replace(part, name=name.lower()),))


def _places_of_ids(scope: Scope) -> list[tuple[int, int]]:
    """The places at which a query has columns of the unit's id, which may be declared as well."""
    (part,) = scope.parts
    return [(place, part.ids[name]) for place, name in enumerate(part.order) if name in part.ids]


def _all_columns(node: exp.Star, reader: TreeReader) -> Mapping[str, Scalar]:
    found: dict[str, Scalar] = {}
    for part in reader.scope.parts:
        for name, value in part.columns.items():
            if name.lower() in {other.lower() for other in found}:
                if name.lower() in reader.scope.merged:
                    continue
                raise reader.refused(node, f"several tables have {name!r}; name the columns")
            found[name] = value
    return found
