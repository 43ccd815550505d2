"""The public facts of a column, and of how much one unit may contribute, as its owner declares."""

import datetime
import difflib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import Annotated, Any
from zoneinfo import available_timezones

from discreet import _checks
from discreet._exact import Number, is_number, shown
from discreet._fields import Converted, Size, field, frozen
from discreet.errors import InvalidArgument
from discreet.query._facts._date_format import check_date_format

KeyValue = bool | int | str | datetime.date
_MOST_SHOWN = 6  # keys of a column


class ColumnType(Enum):
    """The types a column can be declared as; the source's own type is converted to it."""

    BOOLEAN = "boolean"
    DATE = "date"
    INTEGER = "integer"
    NUMBER = "number"
    TEXT = "text"

    @property
    def is_numeric(self) -> bool:
        """Whether arithmetic is defined on it."""
        return self in (ColumnType.INTEGER, ColumnType.NUMBER)


@dataclass(frozen=True, slots=True)
class Column:
    """The public facts of one column.

    ``lower`` and ``upper`` bound a number or date: every value is clamped to them first. ``keys``
    are all the values that GROUP BY shows; a boolean column always has both. ``null`` replaces
    NULL, NaN and values that the declared type can't hold. With ``None`` they are NULL: aggregates
    skip them, and no condition holds for them. ``format`` says how dates in texts are written, if
    not as 2013-01-02. ``zone`` names the time zone whose days timestamps with a zone are in.
    ``decimals`` says how many digits after the point a number has: it is rounded to them, and sums
    are exact where they fit into 64 bits.

    >>> Column.number(0, 60).upper
    Fraction(60, 1)
    >>> Column.text(keys=["south", "north"]).keys
    ('north', 'south')
    """

    type: ColumnType
    lower: Fraction | datetime.date | None = None
    upper: Fraction | datetime.date | None = None
    keys: tuple[KeyValue, ...] | None = None
    null: KeyValue | Fraction | None = None
    format: str | None = None
    zone: str | None = None
    decimals: int | None = None

    def __post_init__(self) -> None:
        """Refuse bounds, keys, formats and NULL values that don't fit the type or one another."""
        if self.keys is not None:
            object.__setattr__(self, "keys", tuple(_plain(key) for key in self.keys))
        object.__setattr__(self, "null", _plain(self.null))
        if self.type is ColumnType.DATE:
            object.__setattr__(self, "lower", _plain(self.lower))
            object.__setattr__(self, "upper", _plain(self.upper))
        _check_bounds(self)
        _check_keys(self)
        _check_null(self)
        _check_format(self)
        _check_zone(self)
        _check_decimals(self)

    @property
    def range(self) -> tuple[Fraction, Fraction] | None:
        """The bounds, if there are any; those of dates as `datetime.date.toordinal` counts."""
        if self.lower is None or self.upper is None:
            return None
        return _ordinal(self.lower), _ordinal(self.upper)

    @property
    def range_in_words(self) -> str | None:
        """The bounds as text, such as 0 .. 60, if there are any."""
        if self.lower is None or self.upper is None:
            return None
        return " .. ".join(
            end.isoformat() if isinstance(end, datetime.date) else _number_in_words(end)
            for end in (self.lower, self.upper)
        )

    @property
    def in_words(self) -> tuple[str, str]:
        """The type, and the public values: bounds, form of dates, and the first keys."""
        values = [] if self.range_in_words is None else [self.range_in_words]
        values += [] if self.format is None else [f"as {self.format}"]
        if self.keys is not None:
            keys = [str(key).lower() if isinstance(key, bool) else str(key) for key in self.keys]
            more = len(keys) - _MOST_SHOWN
            values += [", ".join(keys[:_MOST_SHOWN]) + (f", … ({more} more)" if more > 0 else "")]
        return self.type.value, "; ".join(values)

    @staticmethod
    def number(
        lower: Number,
        upper: Number,
        *,
        null: Number | None = None,
        decimals: int | None = None,
    ) -> "Column":
        """A column of real numbers within public bounds; with ``decimals``, of exact ones.

        >>> Column.number(0, 1_000, decimals=2).decimals
        2
        """
        return replace(_numeric(ColumnType.NUMBER, lower, upper, null), decimals=decimals)

    @staticmethod
    def integer(
        lower: int | None = None,
        upper: int | None = None,
        *,
        keys: Iterable[int] | None = None,
        null: int | None = None,
    ) -> "Column":
        """A column of whole numbers within public bounds, or with public keys, or both."""
        made = _numeric(ColumnType.INTEGER, lower, upper, null)
        return made if keys is None else replace(made, keys=_sorted(keys))

    @staticmethod
    def boolean(*, null: bool | None = None) -> "Column":
        """A column of truth values, which are its keys."""
        return Column(ColumnType.BOOLEAN, keys=(False, True), null=null)

    @staticmethod
    def text(*, keys: Iterable[str] | None = None, null: str | None = None) -> "Column":
        """A column of texts; its public keys are needed to group by it."""
        return Column(ColumnType.TEXT, keys=None if keys is None else _sorted(keys), null=null)

    @staticmethod
    def date(
        lower: datetime.date | None = None,
        upper: datetime.date | None = None,
        *,
        keys: Iterable[datetime.date] | None = None,
        null: datetime.date | None = None,
        format: str | None = None,  # noqa: A002  # as in discreet.toml
        zone: str | None = None,
    ) -> "Column":
        """A column of calendar days within public bounds, or with public keys, or both.

        GROUP BY shows the keys; without them, all days, months or years within the bounds.

        ``format`` is for texts that are not written as 2013-01-02: %d, %m (or %b, as in Jan) and
        %Y (or %y, 69 to 99 for 1969 to 1999), each once, with - / . , or blanks between them.

        ``zone`` is for timestamps with a time zone, such as "Europe/Berlin": a row counts on the
        day that its time has in this zone. Timestamps without a zone are taken as they are.
        """
        days = None if keys is None else _sorted(keys)
        return Column(ColumnType.DATE, lower, upper, days, null, format, zone)


def _cap(**named: Any) -> int:  # Any: what a user gives
    """One named cap; 0 for ``None``, until `Caps` puts the number of rows there."""
    ((_, given),) = named.items()
    return 0 if given is None else _checks.size(**named)


OptionalCap = Annotated[Converted[int, int | None], _cap]


@frozen
class Caps:
    """The most that one unit contributes: ``rows`` in all and, if tighter, groups and rows in each.

    A unit with more counts in ``groups`` of its groups, chosen by a public hash, and its totals
    are reduced to ``rows_per_group`` rows in each and ``rows`` in all. ``groups`` and
    ``rows_per_group`` are as large as ``rows`` unless given, and never larger. Caps are public. Too
    small ones cause bias, and larger ones than needed cause noise.

    >>> Caps(300), Caps(8, groups=2)
    (Caps(rows=300, groups=300, rows_per_group=300), Caps(rows=8, groups=2, rows_per_group=8))
    """

    rows: Size
    groups: OptionalCap = field(default=None, kw_only=True)
    rows_per_group: OptionalCap = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        """Put the number of rows where no tighter cap is given."""
        for name in ("groups", "rows_per_group"):
            given = getattr(self, name)
            object.__setattr__(self, name, min(given or self.rows, self.rows))

    def of_groups(self, there: int) -> int:
        """The most groups in which a unit counts, where this many groups exist."""
        return min(self.groups, there)

    def of_rows(self, there: int) -> int:
        """The most rows in all for which a unit counts, where this many groups exist."""
        return min(self.rows, self.of_groups(there) * self.rows_per_group)

    def in_words(self, there: int | None = None) -> str:
        """The caps that matter where this many groups exist, or for any question."""
        parts = [f"at most {_times(self.rows, 'row')}"]
        groups = self.rows if there is None else min(self.rows, there)
        if self.groups < groups:
            parts.append(f"in at most {_times(self.groups, 'group')}")
        if self.rows_per_group < self.rows and there != 1:
            parts.append(f"with at most {_times(self.rows_per_group, 'row')} in each group")
        if there is not None and self.of_rows(there) < self.rows:
            parts.append(f"so at most {_times(self.of_rows(there), 'row')} in this question")
        return ", ".join(parts)


def _times(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


ONE_ROW = Caps(1)  # of a table that protects each row by itself


_PYTHON_TYPES: dict[ColumnType, tuple[type, ...]] = {
    ColumnType.BOOLEAN: (bool,),
    ColumnType.DATE: (datetime.date,),
    ColumnType.INTEGER: (int,),
    ColumnType.TEXT: (str,),
}
MOST_DECIMALS = 15
_EXACT = 2**50  # of steps: floats tell their numbers apart, also after some arithmetic
_INT64 = range(-(2**63), 2**63)


def fits(kind: ColumnType, value: object) -> bool:
    """Whether a Python value is one of the declared type's own."""
    if kind is ColumnType.NUMBER:
        return is_number(value)
    if isinstance(value, datetime.datetime) or (
        isinstance(value, bool) and kind is not ColumnType.BOOLEAN
    ):
        return False
    if isinstance(value, str) and not _checks.is_unicode(value):
        return False
    return isinstance(value, _PYTHON_TYPES[kind]) and (type(value) is not int or value in _INT64)


def value_text(value: KeyValue | Fraction) -> str:
    """A value of a column as text."""
    return shown(value) if isinstance(value, Fraction) else repr(value)


def _plain(value: Any) -> Any:  # Any: of any type, to be looked at
    """The value; as a plain Python value where its class inherits from one, as NumPy's texts and
    enumerations do."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return int.__int__(value)
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return datetime.date(value.year, value.month, value.day)
    return value


def _sorted(keys: Iterable[KeyValue]) -> tuple[KeyValue, ...]:
    listed = tuple(keys)
    try:
        return tuple(sorted(listed))  # mixed types fail here, and are named below
    except TypeError:
        return listed


def _numeric(
    kind: ColumnType, lower: Number | None, upper: Number | None, null: Number | None
) -> Column:
    low = None if lower is None else _checks.finite(lower=lower)
    high = None if upper is None else _checks.finite(upper=upper)
    substitute = null if null is None or kind is ColumnType.INTEGER else _checks.finite(null=null)
    return Column(kind, low, high, null=_exact(substitute))


def _exact(null: Number | None) -> int | Fraction | None:
    return null if null is None or isinstance(null, int) else _checks.finite(null=null)


def _check_bounds(column: Column) -> None:
    # 1. are bounds needed, allowed, and both there?
    lower, upper = column.lower, column.upper
    if lower is None and upper is None:
        if column.type is ColumnType.NUMBER:
            raise InvalidArgument(
                "a number column needs lower and upper: nothing else bounds its values"
            )
        return
    if not (column.type.is_numeric or column.type is ColumnType.DATE):
        raise InvalidArgument(
            f"a {column.type.value} column has no lower and upper; declare keys instead"
        )
    if lower is None or upper is None:
        raise InvalidArgument("give both lower and upper, or neither")
    if (
        column.type is ColumnType.DATE
        or isinstance(lower, datetime.date)
        or isinstance(upper, datetime.date)
    ):
        _check_days(column)
        return
    # 2. are they in order, and of the type?
    if lower >= upper:
        raise InvalidArgument(
            f"lower = {shown(lower)}, upper = {shown(upper)}: lower must lie below upper"
        )
    whole = lower.denominator == upper.denominator == 1
    if column.type is ColumnType.INTEGER and not (
        whole and int(lower) in _INT64 and int(upper) in _INT64
    ):
        raise InvalidArgument(
            f"lower = {shown(lower)}, upper = {shown(upper)}: an integer column's bounds are whole "
            "numbers of 64 bits"
        )
    if max(abs(lower), abs(upper)) > Fraction(10) ** 100:
        raise InvalidArgument("bounds beyond 1e100 are refused: arithmetic on them could overflow")


def _number_in_words(end: Fraction) -> str:
    """The number as text; where it is exactly a float, as in public tables, as Python writes it."""
    is_float = end.denominator > 1 and Fraction(float(end)) == end
    return repr(float(end)) if is_float else shown(end)


def _check_days(column: Column) -> None:
    lower, upper = column.lower, column.upper
    if column.type is not ColumnType.DATE or not (
        fits(ColumnType.DATE, lower) and fits(ColumnType.DATE, upper)
    ):
        raise InvalidArgument(
            f"lower = {lower!r}, upper = {upper!r}: give two dates to a date column, such as "
            "datetime.date(2020, 1, 31), two numbers to a column of numbers"
        )
    if lower >= upper:  # type: ignore[operator]  # two dates, as they fit
        raise InvalidArgument(f"lower = {lower}, upper = {upper}: lower must lie before upper")


def _ordinal(end: Fraction | datetime.date) -> Fraction:
    return Fraction(end.toordinal()) if isinstance(end, datetime.date) else end


def _check_keys(column: Column) -> None:
    if column.keys is None:
        return
    if column.type is ColumnType.NUMBER:
        raise InvalidArgument(
            "a number column has no keys; declare it as integer, text, boolean or date "
            "to group by it"
        )
    bad = [key for key in column.keys if not fits(column.type, key)]
    if bad:
        raise InvalidArgument(f"keys: {bad[0]!r} is not {column.type.value}")
    if not column.keys or len(set(column.keys)) < len(column.keys):
        raise InvalidArgument("keys: give at least one, each once")


def _check_format(column: Column) -> None:
    if column.format is None:
        return
    if column.type is not ColumnType.DATE:
        raise InvalidArgument(f"a {column.type.value} column has no format; only dates have one")
    check_date_format(column.format)


def _check_zone(column: Column) -> None:
    if column.zone is None:
        return
    if column.type is not ColumnType.DATE:
        raise InvalidArgument(f"a {column.type.value} column has no zone; only dates have one")
    if column.format is not None:
        raise InvalidArgument("give a format or a zone: texts in a format have no time zone")
    if column.zone not in available_timezones():
        near = difflib.get_close_matches(str(column.zone), available_timezones(), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InvalidArgument(
            f"zone = {column.zone!r}: give a time zone, such as 'Europe/Berlin' or 'UTC'{hint}"
        )


def _check_decimals(column: Column) -> None:
    if column.decimals is None:
        return
    if column.type is not ColumnType.NUMBER:
        raise InvalidArgument(f"a {column.type.value} column has no decimals; only numbers have")
    if type(column.decimals) is not int or not 1 <= column.decimals <= MOST_DECIMALS:
        raise InvalidArgument(f"decimals = {column.decimals!r}: give 1 to {MOST_DECIMALS}")
    scale = 10**column.decimals
    assert column.range is not None  # every number has bounds
    lower, upper = (end * scale for end in column.range)
    if max(abs(lower), abs(upper)) > _EXACT:
        raise InvalidArgument(
            f"decimals = {column.decimals}: bounds with that many digits exceed 2^50 steps; "
            "give fewer"
        )
    if lower.denominator > 1 or upper.denominator > 1 or _has_more(column.null, scale):
        raise InvalidArgument(f"bounds and null have at most {column.decimals} decimals here")


def _has_more(null: KeyValue | Fraction | None, scale: int) -> bool:
    return isinstance(null, Fraction) and (null * scale).denominator > 1


def _check_null(column: Column) -> None:
    if column.null is None:
        return
    if not fits(column.type, column.null):
        raise InvalidArgument(f"null = {value_text(column.null)} is not {column.type.value}")
    if column.keys is not None and column.lower is None and column.null not in column.keys:
        raise InvalidArgument(f"null = {value_text(column.null)} must be one of the keys")
    if column.lower is None or column.upper is None:
        return
    if not column.lower <= column.null <= column.upper:  # type: ignore[operator]  # numeric, as it fits
        raise InvalidArgument(f"null = {value_text(column.null)} must lie within the bounds")
