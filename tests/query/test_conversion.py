"""Every type x every declared type x the worst values: no value fails, and each is as it should be.

The reference is plain Python on exact numbers, and shares nothing with the engine.
"""

import datetime
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from discreet.errors import InvalidArgument
from discreet.query import Column
from discreet.query._engines._conversion import (
    CONVERTIBLE,
    converted,
    declarable,
    identity,
    read_as,
)
from discreet.query._engines._spelling import plain_text
from discreet.query._facts._columns import ColumnType
from tests.query.kit import ibis_table

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # between Ibis and DuckDB

EPOCH = datetime.date(1970, 1, 1).toordinal()


@dataclass(frozen=True)
class Days:
    """A date or a timestamp of the source, as whole ticks since 1970."""

    ticks: int
    per_day: int = 1


@dataclass(frozen=True)
class Raw:
    """One type with its worst values: in Arrow, and as the reference knows them."""

    array: pa.Array
    values: Sequence[Any]


def _fixed(kind: pa.DataType, ticks: Sequence[int]) -> pa.Array:
    width = kind.bit_width // 8
    data = b"".join(n.to_bytes(width, "little", signed=True) for n in ticks)
    return pa.Array.from_buffers(kind, len(ticks), [None, pa.py_buffer(data)])


def _texts(kind: pa.DataType, texts: Sequence[bytes | None]) -> pa.Array:
    """Texts of any bytes, UTF-8 or not."""
    raw = pa.array(texts, pa.large_binary() if kind == pa.large_string() else pa.binary())
    return pa.Array.from_buffers(kind, len(texts), raw.buffers())


TEXTS: list[bytes | None] = [
    *(b"", b" ", b"\0", b"a", b"A", b"\xff", b"\x80abc", b"1\xff", b"\xff1", b"\xed\xa0\x80"),
    *(b"a\0b", b"1\x00", b"\xf4\x90\x80\x80", b"\\xFF", b"\\", b"'", b'"', b"\xc2\xa07"),
    *(b"7", b"07", b" 7 ", b"\t7\n", b"+7", b"-7", b"--7", b"1.5", b"2.5", b"-2.5", b"3.50", b"-0"),
    *(b"0.5", b"1.50000000000000000000000001", b"2.500e0", b"25e-1", b"1e5", b"1E+5", b"1e", b"e5"),
    *(b".5", b"5.", b".", b"1_0", b"0x10", b"9007199254740993", b"-9007199254740993.0"),
    *(
        b"9.007199254740993e15",
        b"9007199254740992.5",
        b"9007199254740993.5",
        b"-9007199254740993.5",
    ),
    *(b"9223372036854775807", b"9223372036854775808", b"-9223372036854775809", b"1e18", b"1e19"),
    *(b"9" * 38, b"9" * 39, b"-" + b"9" * 400, b"9" * 400, b"0" * 400 + b"7", b"0." + b"0" * 400),
    *(b"1e400", b"-1e400", b"1e-400", b"1e999999999999", b"1e-999999999999", b"nan", b"-nan"),
    *(b"0e999999999999", b"-4e-1", b"5e-1", b"6e-1", b"15e-1"),
    *(b"inf", b"-inf", b"Infinity", b"1,234", b"1,234,567.5", b"-1,234", b" +1,234.50e1 ", b"1,5"),
    *(b"1,23", b"1234,567", b"1,2345", b",123", b"1,,234", b"1,234,", b"12,345,67", b"1.5,000"),
    *(
        b"true",
        b"TRUE",
        b" True ",
        b"t",
        b"F",
        b"no",
        b"Yes",
        b"y",
        b"N",
        b"0",
        b"1",
        b"1.0",
        b"0.0",
    ),
    *(
        b"2",
        b"on",
        b"truee",
        b"2013-01-02",
        b" 2013-01-02 ",
        b"2013-1-2",
        b"2013-02-30",
        b"0000-01-01",
    ),
    *(
        b"9999-12-31",
        b"10000-01-01",
        b"-0001-01-01",
        b"infinity",
        b"-infinity",
        b"epoch",
        b"13-01-02",
    ),
    *(b"2013-01-02 (BC)", b"2013-01-02 10:00:00", b"2013-01-02x", b"01/02/2013", b"31/12/1999"),
    *(
        b"31/02/2013",
        b"1/2/2013",
        b"01/02/0000",
        b"01/02/13",
        b"01/02/2013\xff",
        b"99999999999-01-01",
    ),
    "\u0661\u0662".encode(),
    "\U0001f600".encode(),
    "é".encode(),
    b"x" * 5000,
    None,
]
FLOATS = [
    *(0.0, -0.0, 1.0, 1.5, 2.5, -2.5, 0.5, 3.5, 7.25, np.nan, np.inf, -np.inf, 2.0**53, 2.0**63),
    *(-(2.0**63), 9223372036854774784.0, 1e19, -1e19, 1e300, -1e300, 5e-324, 1e100, 0.1),
]
TICKS = [0, 1, -1, 86_399, 86_400, -86_401, 10**9, 2**53, 2**62, -(2**62), 2**63 - 1, 2 - 2**63]
TICKS += [-(2**63), 1 - 2**63, 2**63 - 2]
PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}


def _raws() -> dict[str, Raw]:
    found: dict[str, Raw] = {}
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        ends = np.iinfo(name)
        whole = [int(ends.min), int(ends.max), 0, 1, 2, 100, *([-1] if ends.min else []), None]
        found[name] = Raw(pa.array(whole, getattr(pa, name)()), whole)
    for name in ("float16", "float32", "float64"):
        with np.errstate(over="ignore"):
            floats = np.array(FLOATS).astype(name)
        array = pa.array([*floats, None], getattr(pa, name)(), from_pandas=False)
        found[name] = Raw(array, [*(float(x) for x in floats), None])
    for make, width, sizes in (
        (pa.decimal32, 4, [(1, 1), (9, 5)]),
        (pa.decimal64, 8, [(4, 0), (18, 1)]),
        (pa.decimal128, 16, [(1, 1), (9, 5), (19, 0), (38, 0), (38, 20), (38, 38)]),
    ):
        for precision, scale in sizes:
            kind = make(precision, scale)
            found[str(kind)] = _decimals(kind, precision, scale, width)
    for kind in (pa.string(), pa.large_string()):
        found[str(kind)] = Raw(_texts(kind, TEXTS), TEXTS)
    view = _texts(pa.string(), TEXTS).cast(pa.binary()).cast(pa.binary_view())
    found["string_view"] = Raw(view.view(pa.string_view()), TEXTS)
    indices = pa.array([*range(len(TEXTS)), None], pa.int16())
    found["dictionary"] = Raw(
        pa.DictionaryArray.from_arrays(indices, _texts(pa.string(), TEXTS)), [*TEXTS, None]
    )
    found["codes"] = Raw(
        pa.DictionaryArray.from_arrays(
            pa.array([0, 1, 2, None], pa.int8()), pa.array([7, -1, None])
        ),
        [7, -1, None, None],
    )
    days = [
        0,
        -1,
        2**31 - 1,
        -(2**31),
        1 - 2**31,
        2**31 - 2,
        -719_162,
        -719_163,
        2_932_896,
        2_932_897,
    ]
    found["date32"] = Raw(_fixed(pa.date32(), days), [Days(n) for n in days])
    for unit, per_day in PER_DAY.items():
        ticks = TICKS + [
            n * per_day for n in (-719_162, 2_932_896, 15_706) if abs(n) * per_day < 2**63
        ]
        found[f"timestamp[{unit}]"] = Raw(
            _fixed(pa.timestamp(unit), ticks), [Days(n, per_day) for n in ticks]
        )
    found["bool"] = Raw(pa.array([True, False, None]), [True, False, None])
    return found


def _decimals(kind: pa.DataType, precision: int, scale: int, width: int) -> Raw:
    """Also those with more digits than the type has, which no check of Arrow's takes out."""
    most = 10**precision - 1
    half = 5 * 10 ** (scale - 1) if scale else 0
    steps = [0, 1, -1, most, -most, min(most, 5 * half), min(most, half), -min(most, half)]
    steps += [most + 1, -most - 1, 2 ** (8 * width - 1) - 1, -(2 ** (8 * width - 1))]
    exact = [Fraction(n, 10**scale) if abs(n) < 10**38 else None for n in steps]
    return Raw(_fixed(kind, steps), exact)


RAWS = _raws()
DECLARED = {
    "boolean": Column.boolean(),
    "date": Column.date(),
    "date by format": Column.date(format="%d/%m/%Y"),
    "number": Column.number(-1e100, 1e100),
    "small number": Column.number(-3.25, 7.5),
    "integer": Column.integer(-(2**63), 2**63 - 1),
    "small integer": Column.integer(-3, 7),
    "far integer": Column.integer(2**60, 2**62),
    "integer keys": Column.integer(keys=[1, 2]),
    "text": Column.text(),
}


# --- the reference ------------------------------------------------------------------------------


def expected(raw: Any, column: Column) -> Any:  # Any: values of any type
    if raw is None or (isinstance(raw, float) and np.isnan(raw)):
        return None
    return _EXPECTED[column.type](raw, column)


def _exact(text: str) -> Fraction | float | None:
    """The number that a text spells, exactly; infinite where it says so."""
    text = text.strip(" \t\n\v\f\r")
    if re.fullmatch(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?([eE][+-]?\d+)?", text, re.ASCII):
        text = text.replace(",", "")
    if re.fullmatch(r"[+-]?inf(inity)?", text, re.IGNORECASE):
        return float(text)
    if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text, re.ASCII):
        return None
    mantissa, _, exponent = text.lower().partition("e")
    if abs(int(exponent or 0)) > 10_000:
        is_zero = int(exponent) < 0 or Decimal(mantissa) == 0
        return Fraction(0) if is_zero else float(f"{mantissa}e9999")
    return Fraction(text)


def _value(raw: Any) -> Any:
    return _exact(raw.decode(errors="replace")) if isinstance(raw, bytes) else raw


def _float(exact: Any) -> float:
    try:
        return float(exact)
    except OverflowError:
        return float("inf") if exact > 0 else -float("inf")


def _boolean(raw: Any, column: Column) -> bool | None:
    if isinstance(raw, bytes):
        word = raw.decode(errors="replace").strip(" \t\n\v\f\r").lower()
        words = {True: "true t yes y 1 1.0", False: "false f no n 0 0.0"}
        return next((truth for truth, listed in words.items() if word in listed.split()), None)
    return {0: False, 1: True}.get(raw)


def _date(raw: Any, column: Column) -> datetime.date | None:
    if isinstance(raw, Days):
        ticks, per_day = raw.ticks, raw.per_day
        if per_day == PER_DAY["ns"]:  # the engine cuts them to microseconds, towards 1970
            ticks, per_day = int(Fraction(ticks, 1000)), per_day // 1000
        ordinal = EPOCH + ticks // per_day
        is_infinite = raw.ticks in (2**63 - 1, 1 - 2**63) and raw.per_day > 1
        within = 0 < ordinal <= datetime.date.max.toordinal() and not is_infinite
        return datetime.date.fromordinal(ordinal) if within else None
    text = raw.decode(errors="replace").strip(" \t\n\v\f\r")
    if column.format is None:
        found = re.fullmatch(r"(\d{4})[-/ ](\d{1,2})[-/ ](\d{1,2})( [\d:]+)?", text, re.ASCII)
        order = (1, 2, 3)
    else:
        found, order = re.fullmatch(r"(\d{1,2})/(\d{1,2})/(\d{4})", text, re.ASCII), (3, 2, 1)
    try:
        return datetime.date(*(int(found[n]) for n in order)) if found else None
    except ValueError:
        return None


def _number(raw: Any, column: Column) -> float | None:
    value = _value(raw)
    if value is None:
        return None
    return min(
        max(_float(value), float((column.range or (0, 0))[0])), float((column.range or (0, 0))[1])
    )


def _integer(raw: Any, column: Column) -> int | None:
    value = _value(raw)
    if value is None:
        return None
    if isinstance(value, float) and np.isinf(value):
        whole: int = 10**50 if value > 0 else -(10**50)
    else:
        whole = round(Fraction(value))  # halves to even
    if column.range is None:
        return whole if -(2**63) <= whole < 2**63 else None
    return min(max(whole, int(column.range[0])), int(column.range[1]))


def _text(raw: Any, column: Column) -> Any:
    return raw


_EXPECTED: dict[ColumnType, Callable[[Any, Column], Any]] = {
    ColumnType.BOOLEAN: _boolean,
    ColumnType.DATE: _date,
    ColumnType.NUMBER: _number,
    ColumnType.INTEGER: _integer,
    ColumnType.TEXT: _text,
}


# --- the engine ---------------------------------------------------------------------------------


def _opened(array: pa.Array, times: int = 1, *, one_by_one: bool = False) -> Any:
    """The values as a table of the engine, as often as said, or in vectors of one row each."""
    kind = read_as(array.type)
    read = array if kind == array.type else array.cast(kind, safe=False)
    chunks = [read.slice(n, 1) for n in range(len(read))] if one_by_one else [read] * times
    columns = {
        "x": pa.chunked_array(chunks, kind),
        "row": pa.array(range(len(read) * times), pa.int64()),
    }
    return ibis_table(pa.table(columns))


def _answers(table: Any, values: dict[str, Any]) -> dict[str, list[Any]]:
    """The columns in the order of the rows; texts as their bytes are shown."""
    shown = {n: plain_text(v) if v.type().is_string() else v for n, v in values.items()}
    read = table.select("row", **shown).to_pyarrow().sort_by("row")
    return {name: read[name].to_pylist() for name in values}


def _plain(value: Any) -> Any:
    """A text as the engine's bytes are shown."""
    if not isinstance(value, bytes):
        return value
    shown = (chr(b) if 32 <= b < 127 and b not in b"\\'\"" else f"\\x{b:02X}" for b in value)
    return "".join(shown)


@pytest.mark.parametrize("name", RAWS)
def test_every_value_becomes_what_it_should(name: str) -> None:
    raw = RAWS[name]
    found = declarable(raw.array.type)
    fitting = {n: column for n, column in DECLARED.items() if found in CONVERTIBLE[column.type]}
    table = _opened(raw.array, one_by_one=True)
    answers = _answers(table, {n: converted(table["x"], column) for n, column in fitting.items()})
    differing = [
        (declared, value, got, wanted)
        for declared, column in fitting.items()
        for value, got in zip(raw.values, answers[declared], strict=True)
        if got != (wanted := _plain(expected(value, column)))
    ]
    assert not differing


@pytest.mark.parametrize("name", RAWS)
def test_no_value_decides_about_type_or_success(name: str) -> None:
    """Many rows, none, and each of the ends alone: one schema, and what one row says it says
    among others."""
    array = RAWS[name].array
    found = declarable(array.type)
    fitting = {n: column for n, column in DECLARED.items() if found in CONVERTIBLE[column.type]}

    def read(values: pa.Array, times: int = 1) -> pa.Table:
        table = _opened(values, times)
        shown = {n: converted(table["x"], column) for n, column in fitting.items()}
        shown = {n: plain_text(v) if v.type().is_string() else v for n, v in shown.items()}
        shown["id"] = identity(table["x"])
        return table.select("row", **shown).to_pyarrow().sort_by("row")

    times = 3000 // len(array) + 1
    one, many, none = read(array), read(array, times), read(array.slice(0, 0))
    assert one.schema == many.schema == none.schema
    assert many.slice(len(array) * (times - 1)).drop("row") == one.drop("row")
    assert many.slice(0, len(array)) == one
    assert len(none) == 0


def _own(raw: Any) -> Any:
    """The value by which ids are compared; ``None`` for a value that is no id."""
    if isinstance(raw, float):
        return None if np.isnan(raw) else raw + 0.0
    if isinstance(raw, Days) and raw.per_day > 1:
        microseconds = Fraction(raw.ticks * PER_DAY["us"], raw.per_day)
        is_held = abs(raw.ticks) < 2**63 - 1 and -(2**63) <= microseconds < 2**63 - 1
        return raw if is_held or (raw.ticks == -(2**63) and raw.per_day >= PER_DAY["us"]) else None
    return raw


@pytest.mark.parametrize("name", RAWS)
def test_an_id_is_one_and_no_two_are(name: str) -> None:
    raw = RAWS[name]
    table = _opened(raw.array, one_by_one=True)
    ids = _answers(table, {"id": identity(table["x"])})["id"]
    wanted = [_own(value) for value in raw.values]
    for got, want, value in zip(ids, wanted, raw.values, strict=True):
        assert (got is None) == (want is None), value
    pairs = {(got, want) for got, want in zip(ids, wanted, strict=True) if want is not None}
    assert len(pairs) == len({got for got, _ in pairs}) == len({want for _, want in pairs})


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.decimal256(9, 0), pa.decimal256(60, 2), pa.decimal128(5, -3), pa.decimal128(20, 40)),
        *(pa.date64(), pa.time32("s"), pa.time64("ns"), pa.duration("us"), pa.binary(), pa.null()),
        *(pa.binary(4), pa.list_(pa.int64())),
        *(pa.large_binary(), pa.struct([("a", pa.int64())]), pa.month_day_nano_interval()),
        *(pa.dictionary(pa.int8(), pa.date64()), pa.run_end_encoded(pa.int32(), pa.int64())),
        *(
            pa.binary_view(),
            pa.map_(pa.string(), pa.int64()),
            pa.dictionary(pa.int8(), pa.float16()),
        ),
    ],
    ids=str,
)
def test_other_types_have_no_rule(kind: pa.DataType) -> None:
    assert declarable(kind) is None


SIGNS = np.array([*"0123456789" * 2, *"55..,,+-eE _", "\0", "\xff", "nan", "inf", "000", ",234"])


def test_made_up_texts_are_read_as_they_should_be() -> None:
    """Also beside one another: texts that are no UTF-8 stand among them."""
    chance = np.random.default_rng(7)
    texts = ["".join(chance.choice(SIGNS, chance.integers(1, 9))) for _ in range(20_000)]
    texts += [f"{n}.{'5' * (n % 3)}0" for n in range(200)] + [f"{n:,}" for n in range(990, 2_000)]
    raw = [text.encode("latin-1") for text in texts]
    table = _opened(_texts(pa.string(), raw))
    for declared in ("integer", "number", "boolean"):
        column = DECLARED[declared]
        answers = _answers(table, {"y": converted(table["x"], column)})["y"]
        wanted = [expected(value, column) for value in raw]
        assert list(zip(raw, answers, strict=True)) == list(zip(raw, wanted, strict=True))
        assert sum(value is not None for value in wanted) > 100


@pytest.mark.parametrize(
    ("form", "text", "day"),
    [
        ("%d/%m/%Y", b"1/2/2013", datetime.date(2013, 2, 1)),
        ("%m/%d/%Y", b"01/02/2013", datetime.date(2013, 1, 2)),
        ("%m/%d/%Y", b"13/02/2013", None),
        ("%d.%m.%y", b"31.12.69", datetime.date(1969, 12, 31)),
        ("%d.%m.%y", b"31.12.68", datetime.date(2068, 12, 31)),
        ("%d-%b-%Y", b"2-jan-2013", datetime.date(2013, 1, 2)),
        ("%d-%b-%Y", b"2-xyz-2013", None),
        ("%b %d, %Y", b" Feb 29, 2012 ", datetime.date(2012, 2, 29)),
        ("%b %d, %Y", b"Feb 29, 2013", None),
        ("%Y%m%d", b"20130102", datetime.date(2013, 1, 2)),
        ("%Y%m%d", b"2013010\xff", None),
        ("%d/%m/%Y", b"epoch", None),
        ("%d/%m/%Y", b"01/01/0000", None),
        ("%d/%m/%Y", b"2013-01-02", None),
        ("%d/%m/%Y", b"1/2/2013\0", None),
        ("%d/%m/%Y", None, None),
    ],
)
def test_dates_are_read_by_their_format(
    form: str, text: bytes | None, day: datetime.date | None
) -> None:
    table = _opened(_texts(pa.string(), [text]))
    assert _answers(table, {"y": converted(table["x"], Column.date(format=form))})["y"] == [day]


@pytest.mark.parametrize(
    "form", ["", "%d/%m", "%d/%m/%Y/%y", "%d/%m/%Y %H", "%d/%m/%Y%", "%%", "%d%d%Y", "%d/%m/%Y'", 7]
)
def test_other_formats_are_refused(form: str) -> None:
    with pytest.raises(InvalidArgument, match="format = "):
        Column.date(format=form)


def test_only_dates_have_a_format() -> None:
    with pytest.raises(InvalidArgument, match="a text column has no format"):
        Column(ColumnType.TEXT, format="%d/%m/%Y")


def test_texts_with_an_exponent_and_many_digits_are_rounded() -> None:
    """More digits than the engine's decimals hold: they are read as floats, and not clamped."""
    texts = ["1251817892684960514772.e-10", "2.4000000000000000000000000000000000000001e0"]
    table = ibis_table(pa.table({"x": texts}))
    for column, wanted in (
        (Column.integer(-(2**63), 2**63 - 1), [125181789268, 2]),
        (Column.integer(-5, 5), [5, 2]),
    ):
        answer = table.select(x=converted(table.x, column)).to_pyarrow()
        assert answer["x"].to_pylist() == wanted
