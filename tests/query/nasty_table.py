"""One table with everything that makes engines differ, for PostgreSQL and as an Arrow table."""

import datetime
import math
import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

ROWS = 600
_EPOCH = datetime.date(1970, 1, 1)
_INFINITE = 2**31 - 1  # the days that an infinite date has


def _days(*years_and_days: tuple[int, int, int]) -> list[int]:
    return [(datetime.date(*one) - _EPOCH).days for one in years_and_days]


_ENDS = _days((1, 1, 1), (9999, 12, 31), (2012, 2, 29), (1970, 1, 1), (2013, 12, 30))
_MOMENTS = [
    datetime.datetime.fromisoformat(text)
    for text in (
        *("0001-01-01", "9999-12-31T23:59:59.999999", "2013-03-31T01:59:59.999999"),
        *("2013-10-27T01:00", "1969-12-31T23:59:59.000001", "2013-12-31T23:30"),
    )
]
TEXTS = [
    *(
        "",
        " ",
        "a",
        "A",
        "a ",
        " a",
        "á",
        "a\u0301",
        "Á",
        "ß",
        "SS",
        "ﬁ",
        "İ",
        "\u0131",
        "Σ",
        "ς",
        "\U0001d49c",
    ),
    *("b", "100%", "a_b", "a\\b", "o'clock", '"', "\t", "a\nb", "\x7f", "é" * 40, "x" * 65_536),
    *("Ǆ", "ǅ", "ﬀ", "\ufeff", "\u200b", "Ⅷ", "ꭰ", "😀", "naïve", "z"),
]
NUMBERS = [
    *("", "1", " 2 ", "+3", "-4.5", "2.5", "3.5", "-2.5", "1,234", "1,23", "1e3", "1E-3", "1e400"),
    *(
        "-1e400",
        "1e-400",
        "inf",
        "-Infinity",
        "nan",
        "0x10",
        "5.",
        ".5",
        ".",
        "9223372036854775807",
    ),
    *("9223372036854775808", "9223372036854775807.5", "-9223372036854775808", "1_000", "12abc"),
    *(
        "1e99999999999",
        "0e99999999999",
        "-1e-99999999999",
        "4e-1",
        "5e-1",
        "6E-1",
        "0.49999999999999994",
        "1e18",
        "1.5e1",
        "2.5e0",
        "\t7\n",
    ),
    *(
        "1" * 400,
        "0." + "0" * 400 + "1",
        "1" * 400 + "e-399",
        "\uff11",
        "--1",
        "1e",
        "٣",
        "0.5",
        "-0",
    ),
]
TRUTHS = [
    "true",
    "T",
    " yes ",
    "y",
    "1",
    "1.0",
    "false",
    "F",
    "no",
    "N",
    "0",
    "0.0",
    "maybe",
    "",
    "2",
]
DAYS = [
    *("2013-01-02", " 2013-1-2 ", "2013/01/02", "2013 1 2", "2013-01-02 03:04:05", "2013-02-29"),
    *("2012-02-29", "2013-13-01", "2013-01-02T03:04:05Z", "2013-01-02 03:04:05.123456789"),
    *("2013-01-02 24:00", "2013-01-02 24:00:01", "2013-01-02 03:04:60", "0000-01-01", "0001-01-01"),
    *("9999-12-31", "10000-01-01", "2013-01-02 (BC)", "2013-01/02", "2013-01-021", "infinity", ""),
    *("2013-01-02T03:04:05", "2013-01-02t03:04z", "2013-01-02T03:04:05.123456789+01:00"),
    *(
        "2013-1-2T03:04-0500",
        "2013-01-02T25:00:00Z",
        "2013-02-30T03:04Z",
        "2013-01-02T",
        "2013-01-02Z",
    ),
    *(
        "2013-01-02T24:00Z",
        "2013-01-02T24:00:01Z",
        "2013-01-02T3:4Z",
        "2013-01-02T03Z",
        "2013-01-02T03:04+99",
    ),
    *("0000-01-01T00:00Z", "2013/01/02T03:04Z", "2013-01-02T03:04:05 Z", "2013-01-02T03.04Z"),
    *("today", "2013-01-02 x", "2013-01-02 03:04 x", "2013-01-02 03:04+02:00", "epoch", "2013-1"),
]
FORMED = [
    "31/12/2013",
    "1/2/2013",
    "29/2/2012",
    "29/2/2013",
    "0/1/2013",
    "1/13/2013",
    "1/1/0000",
    "x",
]
SHORT = ["3 jan 70", "3 FEB 69", "3 Mar 68", "31 apr 13", "03 dec 00", "3 xyz 13", "3 jan 2013", ""]
DENSE = ["03012013", "0312013", "3112013", "31122013", "32122013", "29022012", "", "1212013"]
INSTANTS = [
    *(
        "2013-03-31T01:30:00Z",
        "2013-10-27 00:59:59.999999+00:00",
        "2013-01-02 23:30-05",
        "2013-07-01",
    ),
    *(
        "2013-01-02 03:04:05+0530",
        "2013-01-02 24:00+00",
        "2013-01-02 25:00+00",
        "9999-12-31 23:59-15",
    ),
    *(
        "0001-01-01 00:00+15",
        "2013-02-30 03:04Z",
        "2013-01-02 03:04:60Z",
        "2013-01-02 03:04+19:59",
        "x",
    ),
    *("0000-01-01 00:00Z", "2013-01-02 03:04:05.123456789z", "2013-01-02 24:00:00.5Z"),
]
FLOATS = [
    *(math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, -5e-324, 1e308, -1e308, 1e-200, 0.1, 3.0),
    *(
        0.49999999999999994,
        0.5,
        1.5,
        2.5,
        -0.5,
        -1.5,
        1e15,
        1e16,
        123456789012345.6,
        2.0**53,
        -7.25,
    ),
    *(9.3e18, -9.3e18, 1e-5, 1234567890123456.5, 99.99, 4503599627370495.5),
]
WHOLES = [2**63 - 1, -(2**63), 0, 1, -1, 2**53 + 1, 30, 40, 2**31, -(2**31) - 1, 7]
DECIMALS = [
    Decimal(n) for n in ("0.00", "1.00", "2.50", "3.50", "-2.50", "99999999.99", "-0.01", "0.50")
]
_IDS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 2**63 - 1, -(2**63), -1, 0, 1, 1, 1, 2, 2, 3]

# of each column: PostgreSQL's type, Arrow's, and values; a pair has the first one's own text
COLUMNS: dict[str, tuple[str, Any, Sequence[Any]]] = {  # Any: Arrow ships no types
    "id": ("bigint", pa.int64(), [*_IDS, None]),
    "id_text": ("text", pa.string(), [*TEXTS[:24], "7", "07", "7.0", *TEXTS[24:27], None]),
    "id_float": ("double precision", pa.float64(), [*FLOATS, None]),
    "id_decimal": ("numeric(10, 2)", pa.decimal128(38, 2), [*DECIMALS, None]),
    "id_day": (
        "date",
        pa.date32(),
        [*_ENDS, ("infinity", _INFINITE), ("0044-03-15 BC", -735160), None],
    ),
    "id_time": ("timestamp", pa.timestamp("us"), [*_MOMENTS, None]),
    "yes": ("boolean", pa.bool_(), [True, False, None, True, True]),
    "whole": ("bigint", pa.int64(), [*WHOLES, None]),
    "small": ("smallint", pa.int64(), [0, 1, 30, -32768, 32767, None, 5]),
    "real": ("double precision", pa.float64(), [*FLOATS, None]),
    "single": ("real", pa.float64(), [0.5, 1.5, math.nan, math.inf, None, 100.0, -3.25]),
    "money": ("numeric(10, 2)", pa.decimal128(38, 2), [*DECIMALS, ("NaN", None), None]),
    "fine": (
        "numeric(38, 38)",
        pa.decimal128(38, 38),
        [Decimal("0.5"), Decimal("-0.1"), None, Decimal(0)],
    ),
    "open": (
        "numeric",
        pa.string(),
        [("1.500", "1.5"), ("1e300", "1" + "0" * 300), ("NaN", "NaN"), None],
    ),
    "text": ("text", pa.string(), [*TEXTS, None]),
    "wide": ("varchar(20)", pa.string(), ["a", "b", "A", "", "ab", None, "é"]),
    "number": ("text", pa.string(), [*NUMBERS, None]),
    "truth": ("text", pa.string(), [*TRUTHS, None]),
    "day": (
        "date",
        pa.date32(),
        [*_ENDS, ("infinity", _INFINITE), ("0044-03-15 BC", -735160), None],
    ),
    "time": ("timestamp", pa.timestamp("us"), [*_MOMENTS, None]),
    "zoned": ("timestamptz", pa.timestamp("us", "UTC"), [*_MOMENTS, None]),
    "spelled": ("text", pa.string(), [*DAYS, None]),
    "formed": ("text", pa.string(), [*FORMED, None]),
    "short": ("text", pa.string(), [*SHORT, None]),
    "dense": ("text", pa.string(), [*DENSE, None]),
    "instant": ("text", pa.string(), [*INSTANTS, None]),
}


def _filled(name: str, values: Sequence[Any]) -> list[Any]:  # Any: values of a column
    """As many values as the table has rows, each of them at least once, in a random order."""
    chance = random.Random(name)
    found = [*values, *chance.choices(values, k=ROWS - len(values))]
    chance.shuffle(found)
    return found


def arrow_table() -> pa.Table:
    """The table in memory."""
    columns = {}
    for name, (_, kind, values) in COLUMNS.items():
        plain = [one[1] if isinstance(one, tuple) else one for one in _filled(name, values)]
        if kind == pa.date32():
            columns[name] = pa.array(plain, pa.int32()).cast(kind)
        else:
            columns[name] = pa.array(plain, kind)
    return pa.table(columns)


def statements(place: str) -> list[tuple[str, list[list[Any]]]]:  # Any: values of rows
    """The statements that make the table in PostgreSQL, and the rows of the second one."""
    listed = ", ".join(f'"{name}" {kind}' for name, (kind, _, _) in COLUMNS.items())
    values = [list(map(_text, _filled(name, values))) for name, (_, _, values) in COLUMNS.items()]
    kinds = ", ".join(f"%s::{kind}" for kind, _, _ in COLUMNS.values())
    rows = [list(row) for row in zip(*values, strict=True)]
    for row in rows:
        for number, (kind, _, _) in enumerate(COLUMNS.values()):
            if kind == "date" and isinstance(row[number], int):
                row[number] = str(_EPOCH + datetime.timedelta(days=row[number]))
    return [
        (f"CREATE TABLE {place} ({listed})", []),
        (f"INSERT INTO {place} VALUES ({kinds})", rows),
    ]


def _text(value: Any) -> Any:  # Any: a value of a row
    given = value[0] if isinstance(value, tuple) else value
    return repr(given) if isinstance(given, float) else given
