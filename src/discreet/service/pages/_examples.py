"""Questions that a declaration allows, for people who don't write SQL: each fills the editor."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from discreet.query import ColumnType
from discreet.query._expressions._expression_text import quoted

_NUMBERS = (ColumnType.INTEGER.value, ColumnType.NUMBER.value)
_LEAST_BINS, _BINS = 3, 12  # in a histogram
_FEW_YEARS = 4  # which are shown by months
_FEW_KEYS = 3
_MOST_GROUPS = 40  # of an example: more say little, and each has its noise
ColumnFacts = Mapping[str, Any]  # Any: JSON
Alias = Callable[[str], str]  # a name of the answer that no column has


@dataclass(frozen=True, slots=True)
class Example:
    """A question, and what it asks in words."""

    title: str
    sql: str


@dataclass(frozen=True, slots=True)
class _GroupedBy:
    """An expression to group by, its name in the answer, and its name in words."""

    words: str
    expression: str
    name: str

    @property
    def chosen(self) -> str:
        """As SELECT has it."""
        same = self.expression == self.name
        return self.expression if same else f"{self.expression} AS {self.name}"


def examples(table: Mapping[str, Any]) -> list[Example]:  # Any: JSON
    """Questions about a table, by its declared facts."""
    columns: Sequence[ColumnFacts] = table["columns"]
    name, numbers = quoted(table["name"]), [one for one in columns if _is_number(one)]
    taken = {one["name"].lower() for one in columns}

    def alias(wanted: str) -> str:
        while wanted.lower() in taken:
            wanted += "_"
        return quoted(wanted)

    groupings = [*_keys(columns), *_days(columns, alias)]
    rows = f"COUNT(*) AS {alias('n')}"
    found = [Example("How many rows there are", f"SELECT {rows} FROM {name}")]  # noqa: S608
    if table["unit_columns"]:
        units = " and ".join(table["unit_columns"])
        of_units = f"SELECT COUNT_UNITS(*) AS {alias('n')} FROM {name}"  # noqa: S608
        found += [Example(f"How many values of {units} there are", of_units)]
    found += [_by(f"Rows by {one.words}", rows, one, name) for one in groupings]
    found += _frequent(columns, name, alias)
    for number in numbers[:1]:
        found += _of_number(number, groupings, name, alias)
    if len(numbers) > 1:
        one, other = (number["name"] for number in numbers[:2])
        values = f"CORR({quoted(one)}, {quoted(other)}) AS {alias('r')}"
        found += [Example(f"Correlation of {one} and {other}", f"SELECT {values} FROM {name}")]  # noqa: S608
    return found


def _of_number(
    number: ColumnFacts, groupings: Sequence[_GroupedBy], table: str, alias: Alias
) -> Iterator[Example]:
    words, column = number["name"], quoted(number["name"])
    values = {
        "Mean": f"AVG({column}) AS {alias('mean')}",
        "Median": f"MEDIAN({column}) AS {alias('median')}",
        "Quartiles": ", ".join(
            f"QUANTILE({column}, {level}) AS {alias(name)}"
            for level, name in (("0.25", "q1"), ("0.5", "q2"), ("0.75", "q3"))
        ),
        "Sum": f"SUM({column}) AS {alias('total')}",
        "Spread (standard deviation)": f"STDDEV({column}) AS {alias('spread')}",
    }
    for title, value in values.items():
        yield Example(f"{title} of {words}", f"SELECT {value} FROM {table}")  # noqa: S608
    for title in ("Mean", "Median"):
        for one in groupings:
            yield _by(f"{title} of {words} by {one.words}", values[title], one, table)
    bins = _bins(number, alias)
    if bins is not None:
        yield _by(f"Histogram of {words}", f"COUNT(*) AS {alias('n')}", bins, table)


def _by(title: str, value: str, by: _GroupedBy, table: str) -> Example:
    sql = f"SELECT {by.chosen}, {value} FROM {table} GROUP BY {by.expression}"  # noqa: S608
    return Example(title, sql)


def _keys(columns: Sequence[ColumnFacts]) -> list[_GroupedBy]:
    """By the first two columns that have keys, and not too many."""
    return [
        _GroupedBy(one["name"], quoted(one["name"]), quoted(one["name"]))
        for one in columns
        if one["keys"] is not None and len(one["keys"]) <= _MOST_GROUPS
    ][:2]


def _days(columns: Sequence[ColumnFacts], alias: Alias) -> list[_GroupedBy]:
    """By months of the first column of days; by years if these are many."""
    for one in columns:
        if one["type"] == ColumnType.DATE.value and one["lower"] is not None:
            column = quoted(one["name"])
            first, last = (date.fromisoformat(one[end]).year for end in ("lower", "upper"))
            if last - first < _FEW_YEARS:
                month = f"DATE_TRUNC('month', {column})"
                return [_GroupedBy(f"month of {one['name']}", month, alias("month_from"))]
            if last - first < _MOST_GROUPS:
                return [_GroupedBy(f"year of {one['name']}", f"YEAR({column})", alias("in_year"))]
    return []


def _frequent(columns: Sequence[ColumnFacts], table: str, alias: Alias) -> list[Example]:
    """The most frequent keys of the first column that has several."""
    for one in columns:
        if one["keys"] is not None and _FEW_KEYS < len(one["keys"]) <= _MOST_GROUPS:
            column, n = quoted(one["name"]), alias("n")
            sql = (
                f"SELECT {column}, COUNT(*) AS {n} FROM {table} GROUP BY {column} "  # noqa: S608
                f"ORDER BY {n} DESC LIMIT {_FEW_KEYS}"
            )
            return [Example(f"The {_FEW_KEYS} most frequent values of {one['name']}", sql)]
    return []


def _is_number(one: ColumnFacts) -> bool:
    return one["type"] in _NUMBERS and one["lower"] is not None


def _bins(one: ColumnFacts, alias: Alias) -> _GroupedBy | None:
    """Bins with round edges, by which a histogram names each."""
    column, width = quoted(one["name"]), float(one["upper"]) - float(one["lower"])
    if width < _LEAST_BINS:
        return None
    step = next((size for size in _round_steps() if width / size <= _BINS), None)
    if step is None:
        return None
    name = alias(f"{one['name']}_from")
    return _GroupedBy(one["name"], f"FLOOR({column} / {step}) * {step}", name)


def _round_steps() -> Iterator[int]:
    """1, 2, 5, 10, 20, …; edges are whole numbers, which can be listed."""
    for power in range(16):
        yield from (digit * 10**power for digit in (1, 2, 5))
