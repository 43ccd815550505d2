"""Columns of pandas and Polars as Arrow arrays, whose type follows from the column's dtype alone.

A column of Python objects has no type of its own, and a type inferred from its values would let one
row change how all rows are read. So each object becomes a text, by itself, and the declared type
reads the texts as it reads those of a CSV file. No value can make anything here fail.
"""

import datetime
import decimal
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_LONGEST = 4000  # bits of an integer; Python limits the decimal digits of longer ones


def pandas_table(frame: "pd.DataFrame", names: Sequence[str]) -> pa.Table:
    """The frame's columns of these names; those it lacks are left out."""
    labels = [label for label in frame.columns if str(label) in names]
    _refuse_ambiguous([str(label) for label in labels])
    return _table({str(label): _pandas_column(frame[label]) for label in labels})


def numpy_roots(frame: "pd.DataFrame", names: Sequence[str]) -> list[np.ndarray[Any, Any]]:
    """The base arrays of these columns, if they have NumPy's dtypes. A slice of a frame shares the
    base arrays of the frame."""
    roots = []
    for place, label in enumerate(frame.columns):
        series = frame.iloc[:, place]
        if str(label) in names and isinstance(series.dtype, np.dtype):
            array = series.to_numpy()
            while isinstance(array.base, np.ndarray):
                array = array.base
            roots.append(array)
    return roots


def polars_table(frame: "pl.DataFrame", names: Sequence[str]) -> pa.Table:
    """The frame's columns of these names; those it lacks are left out."""
    return _table({n: _polars_column(frame[n]) for n in frame.columns if n in names})


def arrow_table(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """The table's columns of these names; those it lacks are left out."""
    places = [place for place, name in enumerate(table.column_names) if name in names]
    found = [table.column_names[place] for place in places]
    _refuse_ambiguous(found)
    columns = [table.column(place) for place in places]
    return _table({n: decoded(column) for n, column in zip(found, columns, strict=True)})


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values themselves, however they are encoded."""
    while True:
        if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
            kind = kind.value_type
        elif isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
        else:
            return kind


def _table(columns: dict[str, pa.Array | pa.ChunkedArray]) -> pa.Table:
    return pa.table(columns) if columns else pa.table({})


def _refuse_ambiguous(names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InvalidArgument(
                f"source: {names.count(name)} columns are named {name!r}; names are compared as "
                "texts, so that 1 and '1' are one name; rename all but one"
            )


def decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column without dictionaries and extensions."""
    if isinstance(column.type, pa.BaseExtensionType):
        storage = [chunk.storage for chunk in column.chunks]
        return decoded(pa.chunked_array(storage, column.type.storage_type))
    if pa.types.is_dictionary(column.type):
        values = [chunk.dictionary_decode() for chunk in column.chunks]
        return decoded(pa.chunked_array(values, column.type.value_type))
    if pa.types.is_run_end_encoded(column.type):
        return column.cast(column.type.value_type)
    return column


def _pandas_column(series: Any) -> pa.ChunkedArray:  # Any: a Series of any dtype
    import pandas as pd
    from pandas.core.dtypes.dtypes import BaseMaskedDtype

    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        categories = _pandas_column(pd.Series(dtype.categories)).combine_chunks()
        codes = series.cat.codes.to_numpy()
        return pa.chunked_array([categories.take(pa.array(codes, mask=codes < 0))])
    if isinstance(dtype, pd.SparseDtype):
        return _pandas_column(series.sparse.to_dense())
    is_python_text = isinstance(dtype, pd.StringDtype) and dtype.storage == "python"
    if is_python_text or pd.api.types.is_object_dtype(dtype):
        return pa.chunked_array([_texts(series.array)])
    arrow_types = pd.ArrowDtype | pd.StringDtype | pd.DatetimeTZDtype | BaseMaskedDtype | np.dtype
    try:
        kind = _chunked(pa.array(series.iloc[:0], from_pandas=True)).type
    except (pa.ArrowException, TypeError):
        kind = None
    if kind is None or not isinstance(dtype, arrow_types):
        return _without_rule(len(series))
    return decoded(_chunked(pa.array(series, from_pandas=True)))


def _polars_column(series: Any) -> pa.ChunkedArray:  # Any: a Series of any dtype
    import polars as pl

    if series.dtype == pl.Object:
        return pa.chunked_array([_texts(series.to_list())])
    if series.dtype == pl.Int128 or series.dtype == getattr(pl, "UInt128", None):
        return _chunked(series.cast(pl.String).to_arrow())
    return decoded(_chunked(series.to_arrow()))


def _chunked(array: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _without_rule(length: int) -> pa.ChunkedArray:
    """NULL of a type that no declaration can convert."""
    return pa.chunked_array([pa.nulls(length, pa.list_(pa.null()))])


def _texts(values: Iterable[object]) -> pa.Array:
    """Each object as a text, or NULL. Lone surrogates become bytes that are not UTF-8."""
    return pa.array([_text(value) for value in values], pa.large_binary()).view(pa.large_string())


def _text(value: object) -> bytes | None:
    """The text of an object of a known type or a subclass of one; else NULL. It calls no method of
    the object's own class, except the time zone's."""
    try:
        kind: type = type(value)
        known = _TEXT.get(kind)
        if known is None:
            known = next(_TEXT[base] for base in type.mro(kind) if base in _TEXT)
        text = known(value)
        return None if text is None else str.encode(text, "utf-8", "surrogatepass")
    except (Exception, SystemExit):  # noqa: BLE001  # one value must not make the others fail
        return None


def _whole(value: Any) -> str:  # Any: any integer
    number = int.__int__(value) if isinstance(value, int) else int(value)
    return int.__repr__(number) if number.bit_length() < _LONGEST else hex(number)


def _real(value: Any) -> str | None:  # Any: any float
    number = float(value) if isinstance(value, np.floating) else float.__float__(value)
    return None if number != number else float.__repr__(number)  # noqa: PLR0124  # NaN


def _decimal(value: Any) -> str | None:  # Any: a Decimal
    return None if decimal.Decimal.is_nan(value) else decimal.Decimal.__str__(value)


def _moment(value: Any) -> str | None:  # Any: a time; also pandas' NaT and Timestamp
    if type(value).__module__.partition(".")[0] == "pandas":
        return None if value != value else value.isoformat()  # noqa: PLR0124  # NaT
    return datetime.datetime.isoformat(value)


def _numpy_moment(value: Any) -> str | None:  # Any: a datetime64
    return None if np.isnat(value) else str(value)


_TEXT: dict[type, Callable[[Any], str | None]] = {  # Any: each its own type
    type(None): lambda _: None,
    str: str.__str__,
    bool: lambda value: "true" if value else "false",
    np.bool_: lambda value: "true" if value else "false",
    int: _whole,
    float: _real,
    np.integer: _whole,
    np.floating: _real,
    decimal.Decimal: _decimal,
    np.datetime64: _numpy_moment,
    datetime.datetime: _moment,
    datetime.date: datetime.date.isoformat,
    uuid.UUID: lambda value: uuid.UUID.__str__(value),  # noqa: PLW0108  # not a subclass's
    bytes: lambda value: "\\x" + bytes.hex(value),
}
