"""Questions about the nasty table, and the integers that an engine computes for them."""

import datetime
from collections.abc import Mapping
from typing import Any

import numpy as np

import discreet as dp
from discreet.query import Table
from discreet.query._bounding._compiled_plan import prepare
from discreet.query._engines import _engine
from discreet.query._rows._source import served_by

FIRST = datetime.date(1900, 1, 1)
COLUMNS = {
    "yes": dp.Column.boolean(),
    "whole": dp.Column.integer(-(2**40), 2**40),
    "small": dp.Column.integer(-50, 50),
    "real": dp.Column.number(-1000, 1000),
    "single": dp.Column.number(-10, 10),
    "money": dp.Column.number(-5, 5, decimals=2),
    "fine": dp.Column.number(-1, 1),
    "open": dp.Column.number(0, 10),
    "text": dp.Column.text(),
    "wide": dp.Column.text(keys=["a", "A", "é", ""]),
    "number": dp.Column.number(-100, 2000),
    "truth": dp.Column.boolean(),
    "day": dp.Column.date(FIRST, datetime.date(2020, 12, 31)),
    "time": dp.Column.date(FIRST, datetime.date(2020, 12, 31)),
    "zoned": dp.Column.date(FIRST, datetime.date(2020, 12, 31), zone="Europe/Berlin"),
    "spelled": dp.Column.date(FIRST, datetime.date(2020, 12, 31)),
    "formed": dp.Column.date(FIRST, datetime.date(2020, 12, 31), format="%d/%m/%Y"),
    "short": dp.Column.date(FIRST, datetime.date(2070, 12, 31), format="%d %b %y"),
    "dense": dp.Column.date(FIRST, datetime.date(2020, 12, 31), format="%d%m%Y"),
    "instant": dp.Column.date(FIRST, datetime.date(2020, 12, 31), zone="America/New_York"),
}
AS_WHOLE = {
    name: dp.Column.integer(-100, 100)
    for name in ("whole", "small", "real", "single", "money", "fine", "open", "number", "yes")
}
AS_TRUTH = {
    name: dp.Column.boolean() for name in ("whole", "real", "money", "fine", "truth", "number")
}
AS_NUMBER = {name: dp.Column.number(-1e18, 1e18) for name in ("whole", "real", "money", "number")}

AS_ANY_WHOLE = {name: dp.Column.integer() for name in ("whole", "real", "money", "fine", "number")}

CONVERTED = {
    "own": COLUMNS,
    "whole": AS_WHOLE,
    "any whole": AS_ANY_WHOLE,
    "truth": AS_TRUTH,
    "number": AS_NUMBER,
}
DATES = [name for name, column in COLUMNS.items() if column.type.value == "date"]
TEXT_TERMS = (
    "SUM(LENGTH(text)), COUNT(UPPER(text)), SUM(LENGTH(TRIM(text)) + LENGTH(SUBSTR(text, 2, 3)))",
    "SUM(CASE WHEN text LIKE 'a%' THEN 1 WHEN text LIKE '_' THEN 3 ELSE 0 END)",
    "SUM(CASE WHEN text LIKE '%\n%' THEN 1 WHEN text LIKE '%\\%' THEN 2 ELSE 0 END)",
    "SUM(CASE WHEN LOWER(text) = 'á' THEN 1 WHEN UPPER(text) = 'SS' THEN 2 ELSE 0 END)",
    "SUM(CASE WHEN LOWER(text) IN ('i', '\u0131', 'σ', 'ǆ') THEN 1 ELSE 0 END)",
    "SUM(CASE WHEN UPPER(text) IN ('I', 'Σ', 'Ǆ', 'Ⅷ') THEN 1 ELSE 0 END)",
    "SUM(CASE WHEN text < 'a' THEN 1 WHEN text > 'á' THEN 4 ELSE 0 END)",
    "SUM(LENGTH(text || wide)), SUM(CASE WHEN text = wide THEN 1 ELSE 0 END)",
    "SUM(LENGTH(CAST(small AS VARCHAR))), SUM(LENGTH(CAST(day AS VARCHAR)))",
    "SUM(CASE WHEN CAST(text AS BOOLEAN) THEN 1 ELSE 0 END), COUNT(CAST(spelled AS VARCHAR))",
)
NUMBER_TERMS = (
    "SUM(ABS(real)), SUM(CEIL(real)), SUM(FLOOR(real)), SUM(ROUND(real)), SUM(SIGN(real))",
    "SUM(ROUND(real, 1)), SUM(ROUND(real, -2)), SUM(ROUND(small, -1)), SUM(small % 7)",
    "SUM(SQRT(real)), SUM(LN(GREATEST(real, 0.001))), SUM(EXP(single)), SUM(POWER(single, 3))",
    "SUM(POWER(ABS(single) + 1, -0.5)), SUM(real * real), SUM(real * single), SUM(real / 3)",
    "SUM(real * 0.0000000001 * 0.0000000001), SUM((real + 10000) - 9999.5)",
    "SUM(single * single * single)",
    "SUM(LEAST(real, single)), SUM(GREATEST(small, whole, 3)), SUM(COALESCE(real, single, 1))",
    "SUM(WIDTH_BUCKET(real, 0, 100, 7)), SUM(small * whole), SUM(small + whole - 3), SUM(-small)",
    "SUM(CAST(real AS INTEGER)), SUM(CAST(yes AS INTEGER)), SUM(CAST(small AS DOUBLE) / 7)",
    "VARIANCE(real), AVG(money), COVAR_POP(small, real)",
    "COUNT(real * single), COUNT(single * real), COUNT((small + 0.5) * real), COUNT(real / 3)",
)
GROUPS = [
    "SELECT wide, MEDIAN(real), MAX(small) FROM t GROUP BY wide",
    "SELECT wide, COUNT(DISTINCT text), COUNT(DISTINCT small) FROM t GROUP BY wide",
    "SELECT text, COUNT(*), SUM(small) FROM t GROUP BY text",
    "SELECT text, wide, COUNT(*) FROM t WHERE NOT yes OR real > 0 GROUP BY text, wide",
    "SELECT wide, COUNT(*) FROM t WHERE text IS NULL OR real BETWEEN 0 AND 3 GROUP BY wide",
    "SELECT wide, COUNT(*) FROM t WHERE whole < 0.5 AND small IN (1, 30, 2.5) GROUP BY wide",
    "SELECT year(day), COUNT(*) FROM t WHERE day > DATE '2012-02-29' GROUP BY year(day)",
]


def of_conversions(columns: Mapping[str, dp.Column]) -> str:
    """The question that converts each column."""
    sums = {
        name: "COUNT({})" if column.type.value == "text" else "SUM({})"
        for name, column in columns.items()
        if (column.type.is_numeric and column.range) or column.type.value == "text"
    }
    wholes = [name for name, column in columns.items() if column == dp.Column.integer()]
    terms = [text.format(name) for name, text in sums.items()]
    terms += [f"SUM(CASE WHEN {n} = 0 THEN 1 WHEN {n} > 2 THEN 9 ELSE 3 END)" for n in wholes]
    terms += [f"COUNT({name})" for name, column in columns.items() if column.type.value != "text"]
    truths = [name for name, column in columns.items() if column.type.value == "boolean"]
    terms += [f"SUM(CASE WHEN {name} THEN 1 ELSE 0 END)" for name in truths]
    return f"SELECT {', '.join(terms)} FROM t"


def of_days(name: str) -> str:
    """The question for all parts of the days of a column."""
    parts = ("YEAR", "QUARTER", "MONTH", "DAY", "DAYOFYEAR", "ISODOW")
    sums = ", ".join(f"SUM({part}({name}))" for part in parts)
    units = ("year", "quarter", "month", "week", "day")
    firsts = ", ".join(f"SUM(DAYOFYEAR(DATE_TRUNC('{unit}', {name})))" for unit in units)
    return f"SELECT {sums}, {firsts}, SUM({name} - DATE '2000-01-01') FROM t"


def parts(
    source: Any, columns: Mapping[str, dp.Column], unit: str, question: str, caps: Mapping[str, int]
) -> dict[str, Any]:  # Any: an Arrow table or an address; arrays
    """The integers and rows of the question, before noise."""
    unit_ = dp.Unit(unit)
    ledger = dp.Ledger.in_memory(unit=unit_, limit=dp.Limit(epsilon=1))
    table = Table(source, name="t", unit=unit_, columns=columns, ledger=ledger, **caps)
    asked = table.question(question)
    with _engine.opened(served_by(table.source)) as engine:
        found = prepare(asked.plan, table.source, engine).compute(None)
    return {name: _plain(part) for name, part in found.items()}


def _plain(part: Any) -> Any:  # Any: arrays, and mappings of them
    if isinstance(part, Mapping):
        return {key: _plain(one) for key, one in part.items()}
    if isinstance(part, np.ndarray):
        listed = part.tolist()
        return sorted(listed) if part.ndim == 2 or part.dtype == np.float64 else listed
    return part
