"""Tables that stand beside one another: what SQL and joins may name, and how they become one."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Protocol

from discreet._frozen import FrozenMapping
from discreet.errors import InvalidArgument, QueryRefused
from discreet.query._expressions._expressions import Aggregate, ColumnRef, Condition
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
from discreet.query._facts._declaration import Declaration
from discreet.query._relations._derived import Catalog, declaration_of, joined_names
from discreet.query._relations._related import RelationSource
from discreet.query._rows._public_table import PublicTable
from discreet.query._rows._source import TableSource


class PrivateTable(Protocol):
    """The parts of a `Table` that are needed here."""

    @property
    def source(self) -> TableSource:
        """The source of the rows."""
        ...

    @property
    def declaration(self) -> Declaration:
        """The public facts."""
        ...

    def has_ledger_of(self, other: "PrivateTable") -> bool:
        """Whether both tables are paid from one ledger."""
        ...


AnyTable = PrivateTable | PublicTable


class Beside(Mapping[str, AnyTable]):
    """The tables that a question may name besides its own, each made when it is first named."""

    __slots__ = ("_computed_table", "_makers", "public")

    def __init__(
        self, makers: Mapping[str, Callable[[], AnyTable]], public: Iterable[str] = ()
    ) -> None:
        """Hold functions that make the tables; ``public`` names the public ones."""
        self._makers = FrozenMapping(makers)
        self._computed_table: dict[str, AnyTable] = {}
        self.public = frozenset(public)

    @staticmethod
    def of(*tables: AnyTable) -> "Beside":
        """The given tables, by their names."""
        makers: dict[str, Callable[[], AnyTable]] = {}
        for table in tables:
            name = table.declaration.name
            if name.lower() in {other.lower() for other in makers}:
                raise InvalidArgument(f"two tables are called {name!r}; give each a name")
            makers[name] = partial(_itself, table)
        public = (t.declaration.name for t in tables if isinstance(t, PublicTable))
        return Beside(makers, public)

    def with_others(self, others: "Beside") -> "Beside":
        """These tables and others, which take the place of tables of the same names."""
        makers: dict[str, Callable[[], AnyTable]] = {
            name: partial(tables.__getitem__, name) for tables in (self, others) for name in tables
        }
        return Beside(makers, self.public.difference(others) | others.public)

    def __getitem__(self, name: str) -> AnyTable:
        if name not in self._computed_table:
            self._computed_table[name] = self._makers[name]()
        return self._computed_table[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


def _itself(table: AnyTable) -> AnyTable:
    return table


class _Declarations(Mapping[str, Declaration]):
    """The declarations of a table and of those beside it."""

    __slots__ = ("_beside", "_main")

    def __init__(self, main: Declaration, beside: Beside) -> None:
        self._main, self._beside = main, beside

    def __getitem__(self, name: str) -> Declaration:
        return self._main if name == self._main.name else self._beside[name].declaration

    def __iter__(self) -> Iterator[str]:
        yield self._main.name
        yield from (name for name in self._beside if name != self._main.name)

    def __len__(self) -> int:
        return len(list(iter(self)))


def catalog(main: PrivateTable, beside: Beside) -> Catalog:
    """The declarations that a question to this table may name in FROM."""
    if isinstance(main.source, RelationSource):
        return main.source.catalog
    public = beside.public - {main.declaration.name}
    return Catalog(_Declarations(main.declaration, beside), public)


def related(main: PrivateTable, beside: Beside, relation: NamedRows) -> RelationSource:
    """The source of a relation of a table and of those beside it. A table that is itself a relation
    has its own rows only."""
    if isinstance(main.source, RelationSource):
        if relation != main.source.relation:
            raise QueryRefused(_other_rows(relation, main.source))
        return main.source
    names = dict.fromkeys(tables_of(relation))
    own = main.declaration.name
    tables = {name: main if name == own else beside[name] for name in names}
    _check_ledgers(main, tables)
    return RelationSource(relation, catalog(main, beside), tables)


def _other_rows(relation: NamedRows, own: RelationSource) -> str:
    if own.catalog.is_public(relation):
        return f"FROM {from_text(relation)}: a public table is read, not asked"
    return (
        f"FROM {from_text(relation)}: these are not the rows of the table that is asked, which are "
        f"those of FROM {from_text(own.relation)}; ask the declared tables themselves"
    )


def _check_ledgers(main: PrivateTable, tables: Mapping[str, AnyTable]) -> None:
    """Refuse tables with ledgers of their own: each would count a part of what is released."""
    for name, table in tables.items():
        if not isinstance(table, PublicTable) and not table.has_ledger_of(main):
            raise QueryRefused(
                f"FROM: {name} and {main.declaration.name} have two ledgers; tables in one "
                "question are paid from one: declare the same for both"
            )


# --- in Python ---


def joined(
    left: PrivateTable, right: AnyTable, on: Mapping[str, str], *, is_left: bool
) -> tuple[RelationSource, Declaration]:
    """The join of two tables where columns of the left equal columns of the right. The unit's id
    may be one of them."""
    tables, known = _together(left, right)
    before, part, unit = _relation(left), _relation(right), left.declaration.unit
    first, steps = (before.first, before.steps) if isinstance(before, Joined) else (before, ())
    has_ids = bool(unit.columns) and not known.is_public(part)
    is_on_unit = has_ids and all(on.get(name) == name for name in unit.columns)
    if has_ids and not is_on_unit and any(name in on for name in unit.columns):
        raise InvalidArgument(
            f"on: a unit's tables are joined on {', '.join(unit.columns)}; give these names"
        )
    step = JoinStep(part, (), unit.columns if is_on_unit else (), is_left)
    *earlier, own = joined_names(Joined(first, (*steps, step)), known)
    as_named = joined_names(before, known) if isinstance(before, Joined) else earlier
    renamed = {
        name if before is first else was[name]: last
        for was, now in zip(as_named, earlier, strict=True)
        for name, last in now.items()
    }
    equal = [(one, other) for one, other in on.items() if not (is_on_unit and one in unit.columns)]
    for one, other in equal:
        if one not in renamed or other not in own:
            listed = f"{', '.join(renamed)} to the left, {', '.join(own)} to the right"
            raise InvalidArgument(f"on: {one!r} and {other!r} are no columns; there are {listed}")
    step = replace(step, equal=tuple(sorted((renamed[one], other) for one, other in equal)))
    earlier_steps = tuple(_renamed(one, renamed) for one in steps)
    return _computed_table(Joined(first, (*earlier_steps, step)), known, tables)


def _renamed(step: JoinStep, names: Mapping[str, str]) -> JoinStep:
    return replace(step, equal=tuple((names[left], own) for left, own in step.equal))


def per_unit(
    table: PrivateTable, aggregates: Iterable[Aggregate], where: Condition | None
) -> tuple[RelationSource, Declaration]:
    """One row for each unit of the table: these aggregates of its rows that meet the condition."""
    tables, known = _together(table, table)
    unit = table.declaration.unit.columns
    return _computed_table(PerUnit(_relation(table), tuple(aggregates), where, unit), known, tables)


def united(first: PrivateTable, second: AnyTable) -> tuple[RelationSource, Declaration]:
    """The rows of both tables, which have the same columns."""
    tables, known = _together(first, second)
    parts: list[Selected] = []
    names = list(first.declaration.columns)
    for table in (first, second):
        relation, facts = _relation(table), table.declaration
        if isinstance(relation, United):
            parts += relation.parts
            continue
        kept = [name for name in names if not facts.unit.is_id(name)]
        missing = [name for name in kept if name not in facts.columns]
        if missing:
            raise InvalidArgument(f"union_all: {facts.name} has no column {missing[0]!r}")
        parts.append(
            Selected(relation, tuple((n, ColumnRef(n)) for n in kept), None, facts.unit.columns)
        )
    return _computed_table(United(tuple(parts)), known, tables)


def _computed_table(
    relation: NamedRows, known: Catalog, tables: Mapping[str, AnyTable]
) -> tuple[RelationSource, Declaration]:
    return RelationSource(relation, known, tables), declaration_of(relation, known)


def _together(left: PrivateTable, right: AnyTable) -> tuple[Mapping[str, AnyTable], Catalog]:
    """The declared tables of both sides, by name."""
    tables = {**_bases(left)}
    for name, table in _bases(right).items():
        if tables.setdefault(name, table).source is not table.source:
            raise InvalidArgument(f"two tables are called {name!r}; give each a name")
    _check_ledgers(left, tables)
    public = (name for name, table in tables.items() if isinstance(table, PublicTable))
    facts = {name: table.declaration for name, table in tables.items()}
    return tables, Catalog(facts, frozenset(public))


def _bases(table: AnyTable) -> Mapping[str, AnyTable]:
    if isinstance(table.source, RelationSource):
        return table.source.tables
    return {table.declaration.name: table}


def _relation(table: AnyTable) -> NamedRows:
    if isinstance(table.source, RelationSource):
        return table.source.relation
    return TableRef(table.declaration.name)
