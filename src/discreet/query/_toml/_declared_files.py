"""The files that a declaration names: of tables with their ledgers, and of public tables."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from discreet._budget import AnyLimit
from discreet._unit import Unit
from discreet.errors import DeclarationError
from discreet.ledger import Ledger
from discreet.ledger._place import LedgerPlace
from discreet.query._engines._address import (
    TableAddress,
    engine_of,
    kept_apart,
    local_path,
    overlap,
    table_at,
)
from discreet.query._engines._file_behind import files_under, resolved
from discreet.query._facts._columns import Column
from discreet.query._facts._declaration import Declaration
from discreet.query._rows._file_format import FileFormat

if TYPE_CHECKING:
    from discreet.query._rows._public_table import PublicTable
    from discreet.query._rows._source import TableSource
    from discreet.query._table import Table


@dataclass(frozen=True, slots=True)
class TableFile:
    """One declared table: its public facts, the file or the address of its rows, and its ledger.
    An address has no format."""

    declaration: Declaration
    source: Path | TableAddress
    format: FileFormat | None
    delimiter: str
    ledger: LedgerPlace
    limit: AnyLimit
    others: "DeclaredFiles" = field(default_factory=dict, compare=False, repr=False)
    links: "TableFile | None" = field(default=None, compare=False, repr=False)

    @property
    def rows(self) -> "TableSource":
        """The source of the rows; nothing is read yet."""
        facts = self.declaration
        if self.links is None or facts.through is None:
            return self.with_columns(facts.unit.columns)
        from discreet.query._relations._linked import LinkedSource

        here, there = zip(*facts.through.on, strict=True)
        leads = replace(self.links, others=self.others)
        links = leads.with_columns([*facts.unit.columns, *there])
        return LinkedSource(self.with_columns(here), links, facts.unit, facts.through)

    def with_columns(self, others: Sequence[str]) -> "TableSource":
        """The source with its declared columns and these; JSON has no others."""
        names = [*others, *self.declaration.columns]
        private = [one for one in self.others.values() if isinstance(one, TableFile)]
        apart = [one.by_path for one in private if one.ledger.identity != self.ledger.identity]
        if isinstance(self.source, Path):
            paths = [one.source for one in apart if isinstance(one.source, Path)]
            return declared_rows(self.source, self.format, self.delimiter, names, apart=paths)
        addresses = [one.source for one in apart if not isinstance(one.source, Path)]
        return kept_apart(table_at(self.source), addresses)

    @property
    def place(self) -> Hashable:
        """Equal for two tables with the same rows, as far as their sources tell."""
        source = self.source
        return resolved(source) if isinstance(source, Path) else source.place

    @property
    def engine(self) -> str:
        """The engine that computes its questions, for people."""
        return engine_of(self.source)

    def shares_rows(self, other: "TableFile") -> bool:
        """Whether both have the same source, or one is a folder around the other, or they lead to
        one file, as far as that shows without reading."""
        one, another = self.by_path, other.by_path
        here, there = one.place, another.place
        if not (isinstance(one.source, Path) or isinstance(another.source, Path)):
            return overlap(one.source, another.source)
        if not (isinstance(here, Path) and isinstance(there, Path)):
            return False
        if here.is_relative_to(there) or there.is_relative_to(here):
            return True
        if one is not self or another is not other:  # Spark reads some
            return not files_under(here).isdisjoint(files_under(there))
        from discreet.query._rows._shared_rows import share_rows

        return share_rows(one.with_columns(()), another.with_columns(()))

    @property
    def by_path(self) -> "TableFile":
        """The same rows by the path of their files, if an engine reads these on this host."""
        path = None if isinstance(self.source, Path) else local_path(self.source)
        return replace(self, source=path, format=FileFormat.PARQUET) if path else self

    def open_ledger(self) -> Ledger:
        """The ledger, created if there is none; refused if it differs from the declaration."""
        return self.ledger.open_or_create(self.declaration.unit, self.limit)

    def table(self) -> "Table":
        """The table to ask; its ledger is opened when a question is first paid."""
        from discreet.query._relations._beside import Beside
        from discreet.query._table import Table

        ledger = DeclaredLedger(self.ledger.resolved(), self.declaration.unit, self.limit)
        makers = {name: other.table for name, other in self.others.items()}
        public = [name for name, other in self.others.items() if isinstance(other, PublicFile)]
        beside = Beside(makers, public)
        return Table.declared(self.rows, self.declaration, ledger, beside)


def declared_rows(
    source: Path | TableAddress,
    form: FileFormat | None,
    delimiter: str | None,
    names: Sequence[str] = (),
    *,
    apart: Sequence[Path] = (),
) -> "TableSource":
    """The source of these rows; of JSON, with the columns of these names. None of its files may be
    at or below the paths ``apart`` when a question is asked. Nothing is read yet."""
    from discreet.query._rows._files import declared_file

    if not isinstance(source, Path):
        return table_at(source)
    assert form is not None  # a file has one
    return replace(declared_file(source, form, delimiter or None, names), apart=tuple(apart))


@dataclass(frozen=True, slots=True)
class DeclaredLedger:
    """Opens the ledger at this place, or creates it. Equal ones open the same ledger."""

    place: LedgerPlace
    unit: Unit
    limit: AnyLimit

    def __call__(self) -> Ledger:
        """The ledger; refused if it differs from the declaration."""
        return self.place.open_or_create(self.unit, self.limit)


@dataclass(frozen=True, slots=True)
class PublicFile:
    """A file that is declared as public: with these columns, or with all that it has. No file of it
    may be at or below the ``private`` paths."""

    name: str
    source: Path
    format: FileFormat
    delimiter: str
    columns: Mapping[str, Column] | None
    private: Sequence[Path] = field(default=(), compare=False, repr=False)

    def table(self) -> "PublicTable":
        """The table, read now; refused if private rows are in it by now."""
        from discreet.query._rows._public_table import PublicTable

        for path in self.private:
            if not files_under(self.source).isdisjoint(files_under(path)):
                raise DeclarationError(
                    f"{self.source}, which is public, and {path} have a file in common by now, "
                    "whose rows are private; remove the link"
                )
        source = declared_rows(self.source, self.format, self.delimiter)
        return PublicTable(source, name=self.name, columns=self.columns)


DeclaredFiles = Mapping[str, TableFile | PublicFile]
