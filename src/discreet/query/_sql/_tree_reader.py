"""Reads the nodes of an SQL text by a list of rules, in the context of what FROM names."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import UnionType

from sqlglot import exp

from discreet.errors import QueryRefused
from discreet.query._expressions._expressions import Condition, Holds, Measure, Scalar, Truth
from discreet.query._expressions._relation import NamedRows
from discreet.query._facts._declaration import Declaration
from discreet.query._sql._text import SqlText

NO_VALUE = "this is no value: values are columns, literals, functions and + - * / of them"
SIDES = {"this": exp.Expr, "expression": exp.Expr}  # the parts of an operator
_NO_CONDITION = "this is no condition: compare it with something, as in wage > 10"
_CONDITIONS = exp.Anonymous, exp.Case, exp.Column, exp.Like  # values that may be conditions


@dataclass(frozen=True, slots=True)
class ScopePart:
    """One name of FROM, in lower case: the values that its columns stand for, and which names are
    the unit's id, or a column of it at this place. ``order`` has all names of a query in FROM, in
    order; ``in_join`` the names that columns have in a join, which the texts of our own queries
    use."""

    name: str
    columns: Mapping[str, Scalar]
    ids: Mapping[str, int]
    order: tuple[str, ...] = ()
    in_join: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that FROM gives: values of the rows of one relation that meet a condition.
    ``merged`` are names, in lower case, of columns that USING made one."""

    declaration: Declaration
    relation: NamedRows
    parts: tuple[ScopePart, ...]
    where: Condition | None = None
    merged: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class NodeRule:
    """The parts that a kind of node may have, and how it is read as a value and as a condition,
    where it may be one."""

    parts: Mapping[str, type | UnionType]
    value: Callable[[exp.Expr, "TreeReader"], Scalar] | None = None
    condition: Callable[[exp.Expr, "TreeReader"], Condition] | None = None


@dataclass(frozen=True, slots=True)
class TreeReader:
    """The context in which nodes are read: the tree, the names that FROM gives, and the rules.
    Where numbers of the answer may stand, ``measure`` reads an aggregate, and ``names`` has the
    values of the answer's columns."""

    sql: SqlText
    scope: Scope
    rules: Mapping[type[exp.Expr], NodeRule]
    measure: Callable[[exp.Expr], Measure] | None = None
    names: Mapping[str, Scalar] = field(default_factory=dict)

    @property
    def declaration(self) -> Declaration:
        """The public facts of the relation that FROM names."""
        return self.scope.declaration

    def refused(self, node: exp.Expr, why: str) -> QueryRefused:
        return self.sql.refused(node, why)

    def scalar(self, node: exp.Expr) -> Scalar:
        """The node read as a value."""
        rule = self.rules[type(node)]
        if rule.value is not None:
            return rule.value(node, self)
        if rule.condition is None:
            raise self.refused(node, NO_VALUE)
        condition = rule.condition(node, self)
        return condition.value if isinstance(condition, Holds) else Truth(condition)

    def condition(self, node: exp.Expr) -> Condition:
        """The node read as a condition."""
        rule = self.rules[type(node)]
        if rule.condition is not None:
            return rule.condition(node, self)
        if not isinstance(node, _CONDITIONS):
            raise self.refused(node, _NO_CONDITION)
        value = self.scalar(node)
        return value.condition if isinstance(value, Truth) else Holds(value)

    def name(self, identifier: exp.Identifier) -> str:
        """The user's name for a column of the answer: in lower case, unless it is quoted."""
        written: str = identifier.this
        return written if self.sql.is_quoted(identifier) else written.lower()

    def matching(self, column: exp.Expr) -> list[tuple[ScopePart, str]]:
        """The names that a column may mean, each with its part."""
        is_exact, qualifier = self.sql.is_quoted(column.this), column.args.get("table")
        found = [
            (part, name)
            for part in self.scope.parts
            if qualifier is None or qualifier.name.lower() == part.name
            for name in names_alike(
                column.name, dict.fromkeys([*part.columns, *sorted(part.ids)]), is_exact=is_exact
            )
        ]
        if not found and qualifier is None:
            return [
                (part, name)
                for part in self.scope.parts
                for name, other in part.in_join.items()
                if other == column.name
            ]
        is_merged = len({part.name for part, _ in found}) == len(found) and (
            {name.lower() for _, name in found} <= self.scope.merged
        )
        return found[:1] if qualifier is None and is_merged else found

    def knows(self, column: exp.Expr) -> bool:
        """Whether the name stands for anything here."""
        return bool(self.matching(column))

    def has_column(self, column: exp.Expr) -> bool:
        """Whether the name stands for a declared value; the unit's id may have none."""
        return any(name in part.columns for part, name in self.matching(column))


def names_alike(written: str, names: Iterable[str], *, is_exact: bool) -> list[str]:
    """The names that a written one may mean: itself, or those that differ in case only."""
    there = list(names)
    if is_exact or written in there:
        return [written] if written in there else []
    return [name for name in there if name.lower() == written.lower()]
