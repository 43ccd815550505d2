"""Files and folders of files as sources of rows.

The names, the number and the columns of the files in a folder count as public, as a file's columns
do. Nothing else of a file may decide whether a question is answered.
"""

import os
from collections.abc import Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.errors import DeclarationError
from discreet.query._engines._common_type import common_type
from discreet.query._engines._conversion import read_as, without_zone
from discreet.query._engines._file_behind import file_behind, files_under
from discreet.query._rows import _frames
from discreet.query._rows._csv_reader import header, read_lines
from discreet.query._rows._file_format import FileFormat, format_of, usual_delimiter
from discreet.query._rows._json_reader import check_mark, read_json_lines

ArrowRows = Any  # an Arrow table, dataset or reader; Arrow ships no types
ReadTypes = Sequence[tuple[str, pa.DataType | None]]
"""Each column with the type that it is read as; ``None`` for one that can't be read."""


@dataclass(frozen=True, slots=True)
class _KeptApart:
    """Rows on disk. No file of theirs may be at, or below, the paths ``apart``: those have another
    budget."""

    apart: tuple[Path, ...] = field(default=(), compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class ParquetFile(_KeptApart):
    """A Parquet file."""

    path: Path

    @property
    def label(self) -> str:
        """The file's name, without the folder."""
        return self.path.name

    def types(self) -> ReadTypes:
        """The file's own schema; its statistics are private and are not read."""
        try:
            found = pq.read_schema(_existing(self.path))
        except UnicodeEncodeError:
            raise DeclarationError(
                f"{self.path}: Arrow reads no file whose path is not UTF-8: rename it"
            ) from None
        except (OSError, pa.ArrowException, NotImplementedError) as cause:
            raise DeclarationError(
                f"{self.path}: its Parquet schema can't be read ({cause})"
            ) from cause
        return [(field.name, read_as(_frames.plain_type(field.type))) for field in found]

    def rows(self, names: Sequence[str]) -> AbstractContextManager[ArrowRows]:
        """The columns, streamed through Arrow, which accepts texts that are not UTF-8."""
        return nullcontext(_dataset([self.path], _schema(self.types(), names)))


@dataclass(frozen=True, slots=True)
class CsvFile(_KeptApart):
    """A CSV file with a header line; its columns are texts until a declaration converts them."""

    path: Path
    delimiter: str = ","

    @property
    def label(self) -> str:
        """The file's name, without the folder, and the delimiter."""
        return f"{self.path.name} {self.delimiter}"

    def types(self) -> ReadTypes:
        """The header's names, all as text."""
        names = header(_existing(self.path), self.delimiter)
        return [(name, pa.large_string()) for name in names]

    def rows(self, names: Sequence[str]) -> AbstractContextManager[ArrowRows]:
        """The columns of the file's lines, each line read by itself."""
        return nullcontext(read_lines(_existing(self.path), self.delimiter).select(list(names)))


@dataclass(frozen=True, slots=True)
class JsonLinesFile(_KeptApart):
    """A file with one object of JSON in each line. Its keys are in its rows only, so its columns
    are the declared ones: texts until a declaration converts them."""

    path: Path
    names: tuple[str, ...]

    @property
    def label(self) -> str:
        """The file's name, without the folder."""
        return self.path.name

    def types(self) -> ReadTypes:
        """The declared names, all as text."""
        check_mark(_existing(self.path))
        return [(name, pa.large_string()) for name in self.names]

    def rows(self, names: Sequence[str]) -> AbstractContextManager[ArrowRows]:
        """The values under these keys, each line read by itself."""
        return nullcontext(read_json_lines(_existing(self.path), names))


AnyFile = ParquetFile | CsvFile | JsonLinesFile


@dataclass(frozen=True, slots=True)
class FileFolder(_KeptApart):
    """The files of one format in a folder and in the folders below it, as they are when a question
    is asked; a ``snapshot`` has the same files ever after. Names that begin with ``.`` or ``_`` are
    passed over, and those of folders are no columns."""

    path: Path
    form: FileFormat
    delimiter: str | None = None
    names: tuple[str, ...] = ()
    listed: tuple[AnyFile, ...] = ()

    @property
    def label(self) -> str:
        """The folder's name."""
        return f"{self.path.name}/"

    @property
    def files(self) -> Sequence[AnyFile]:
        """The files, sorted by their paths."""
        return self.listed or [
            _file(path, self.form, self.delimiter, self.names) for path in self._paths()
        ]

    def snapshot(self) -> "FileFolder":
        """The folder with the files that are there now, and no others."""
        return replace(self, listed=tuple(self.files))

    def types(self) -> ReadTypes:
        """The columns that all files have, each with the type that holds what all of them hold;
        ``None`` where there is none. Whole numbers with and without missing values may be in two
        types, which a single row may have caused, so both are read as floats."""
        by_file = [file.types() for file in self.files]
        names = dict.fromkeys(name for types in by_file for name, _ in types)
        found = {name: _kinds(by_file, name) for name in names}
        return [
            (name, common_type(kinds))
            for name, kinds in found.items()
            if len(kinds) == len(by_file)
        ]

    def rows(self, names: Sequence[str]) -> AbstractContextManager[ArrowRows]:
        """The columns of all files, one after the other."""
        by_file = [file.types() for file in self.files]
        wanted = _schema([(name, common_type(_kinds(by_file, name))) for name in names], names)
        if self.form is not FileFormat.PARQUET:
            parts = [file.rows(names) for file in self.files]
            return nullcontext(pa.concat_tables([_entered(part) for part in parts]))
        paths = [file.path for file in self.files]
        if any(_is_mixed(_kinds(by_file, name), wanted.field(name).type) for name in names):
            batches = _converted(paths, wanted)
            return nullcontext(pa.RecordBatchReader.from_batches(wanted, batches))
        return nullcontext(_dataset(paths, wanted))

    def _paths(self) -> list[Path]:
        found: dict[object, Path] = {}  # a file counts once, by however many links it is here
        for folder, inner, names in os.walk(self.path, onerror=self._refuse):
            inner[:] = sorted(filter(_is_shown, inner))
            for name in sorted(filter(_is_shown, names)):
                path = Path(folder, name)
                if format_of(path) is self.form:
                    found.setdefault(file_behind(path), path)
        if not found:
            raise DeclarationError(f"{self.path}: the folder has no {self.form.value} file")
        return [*found.values()]

    def _refuse(self, cause: OSError) -> None:
        raise DeclarationError(
            f"{self.path}: a folder can't be listed ({cause.strerror})"
        ) from None


FileSource = AnyFile | FileFolder


def declared_file(
    path: Path, form: FileFormat, delimiter: str | None = None, names: Sequence[str] = ()
) -> FileSource:
    """The file of this format, or the folder with files of it; the columns of JSON have these
    names."""
    if path.is_dir():
        return FileFolder(path, form, delimiter, tuple(dict.fromkeys(names)))
    return _file(path, form, delimiter, names)


def _file(path: Path, form: FileFormat, delimiter: str | None, names: Sequence[str]) -> AnyFile:
    match form:
        case FileFormat.PARQUET:
            return ParquetFile(path)
        case FileFormat.CSV:
            return CsvFile(path, delimiter or usual_delimiter(path))
        case FileFormat.JSON_LINES:
            return JsonLinesFile(path, tuple(dict.fromkeys(names)))


def file_source(path: Path, names: Sequence[str] = ()) -> FileSource:
    """The source of a file by the ending of its name, or of a folder by those of its files; of
    JSON, with the columns of these names."""
    form = format_of(path) or (format_in(path) if path.is_dir() else None)
    if form is None:
        raise DeclarationError(
            f"{path}: only .parquet, .csv, .tsv and .jsonl files can be read, and folders of them; "
            "convert it, give the address of a table, or pass a frame in Python"
        )
    return declared_file(path, form, names=names)


def format_in(folder: Path) -> FileFormat | None:
    """The one format of the files in a folder; None where there are none, or several."""
    inner = (path for path in folder.rglob("*") if _is_shown(path.name) and path.is_file())
    found = {form for path in inner if (form := format_of(path)) is not None}
    return found.pop() if len(found) == 1 else None


def places_of(source: FileSource) -> set[Hashable]:
    """The files behind a source."""
    try:
        files = source.files if isinstance(source, FileFolder) else [source]
    except DeclarationError:
        return set()
    return {file_behind(file.path) for file in files}


def files_now(source: FileSource) -> FileSource:
    """The source with the files that are there now; refused if tables with another ledger have one
    of them, too."""
    found = source.snapshot() if isinstance(source, FileFolder) else source
    for path in source.apart:
        if not places_of(found).isdisjoint(files_under(path)):
            raise DeclarationError(
                f"{source.path} and {path} have a file in common by now, but two ledgers; one "
                "dataset has one budget: give both the same ledger and anchor, or remove the link"
            )
    return found


def _is_shown(name: str) -> bool:
    return not name.startswith((".", "_"))


def _kinds(by_file: Sequence[ReadTypes], name: str) -> list[pa.DataType | None]:
    """The types of a column in the files that have it; None where one has it twice."""
    found = [[kind for other, kind in types if other == name] for types in by_file]
    return [kinds[0] if len(kinds) == 1 else None for kinds in found if kinds]


def _is_mixed(kinds: Sequence[pa.DataType | None], wanted: pa.DataType) -> bool:
    """Whether a file has integers where the folder has floats, which can't hold all of them."""
    return pa.types.is_floating(wanted) and any(map(pa.types.is_integer, kinds))


def _entered(part: AbstractContextManager[ArrowRows]) -> ArrowRows:
    with part as rows:
        return rows


def _schema(types: ReadTypes, names: Sequence[str]) -> pa.Schema:
    known = dict(types)
    return pa.schema([(name, engine_type(known[name])) for name in names])


def engine_type(kind: pa.DataType | None) -> pa.DataType:
    """The type that an engine gets for a column that can be read."""
    return kind if kind is None else without_zone(kind)


def _dataset(paths: Sequence[Path], wanted: pa.Schema) -> ArrowRows:
    import pyarrow.dataset as ds  # it imports pandas, which takes a second

    return ds.dataset([str(path) for path in paths], format="parquet", schema=wanted)


def _converted(paths: Sequence[Path], wanted: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of the files, each column cast unchecked to its type."""
    for path in paths:
        for batch in pq.ParquetFile(path).iter_batches(columns=wanted.names):
            found = pa.Table.from_batches([batch])
            columns = [
                _frames.decoded(found[field.name]).cast(field.type, safe=False).combine_chunks()
                for field in wanted
            ]
            yield pa.record_batch(columns, schema=wanted)


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise DeclarationError(f"{path}: there is no such file")
    return path
