"""The rows of functions of dates, and of casts.

A date lies in the years 1 to 9999. Its parts are bounded by the calendar or by the declared bounds
of the date.
"""

import datetime
from collections.abc import Callable
from fractions import Fraction

from discreet.errors import QueryRefused
from discreet.query._facts._columns import ColumnType
from discreet.query._functions._scalar_rules import (
    CONSTANT_TEXT,
    DATES,
    ArgumentFacts,
    EngineValue,
    Form,
    Parameter,
    ScalarFacts,
    ScalarFunction,
    ScalarRule,
    number_facts,
)

_UNITS = {"year": "Y", "quarter": "Q", "month": "M", "week": "W", "day": "D"}


def truncated(unit: str, day: datetime.date) -> datetime.date:
    """The first day of the day's year, quarter, month or week, which begins on Monday."""
    match unit.lower():
        case "year":
            return day.replace(month=1, day=1)
        case "quarter":
            return day.replace(month=day.month - (day.month - 1) % 3, day=1)
        case "month":
            return day.replace(day=1)
        case "week":
            return datetime.date.fromordinal(day.toordinal() - day.weekday())
    return day


def days_between(lower: datetime.date, upper: datetime.date, unit: str) -> list[datetime.date]:
    """The first days of all units that have a day in this range."""
    days, day = [], truncated(unit, lower)
    while day <= upper:
        days.append(day)
        longest = {"year": 366, "quarter": 92, "month": 31, "week": 7}.get(unit.lower(), 1)
        if day.toordinal() + longest > datetime.date.max.toordinal():
            break
        day = truncated(unit, datetime.date.fromordinal(day.toordinal() + longest))
    return days


def _part_facts(
    of_day: Callable[[datetime.date], int], lower: int, upper: int, same: str
) -> Callable[[ArgumentFacts], ScalarFacts]:
    """The facts of a part from 1 to ``upper``; narrower if all days lie in one unit ``same``."""

    def facts(given: ArgumentFacts) -> ScalarFacts:
        days = _days(given[0])
        ends = lower, upper
        if days is not None and (not same or truncated(same, days[0]) == truncated(same, days[1])):
            ends = of_day(days[0]), of_day(days[1])
        return number_facts(ColumnType.INTEGER, *ends, can_be_null=given[0].can_be_null)

    return facts


def _year_facts(given: ArgumentFacts) -> ScalarFacts:
    days = _days(given[0])
    if days is None:
        return ScalarFacts(ColumnType.INTEGER, None, None, given[0].can_be_null)
    years = (day.year for day in days)
    return number_facts(ColumnType.INTEGER, *years, can_be_null=given[0].can_be_null)


def _days(fact: ScalarFacts) -> tuple[datetime.date, datetime.date] | None:
    if fact.lower is None or fact.upper is None:
        return None
    first, last = (datetime.date.fromordinal(int(end)) for end in (fact.lower, fact.upper))
    return first, last


def _truncated_facts(given: ArgumentFacts) -> ScalarFacts:
    unit, days = given[0].constant, _days(given[1])
    if not (isinstance(unit, str) and unit.lower() in _UNITS):
        raise QueryRefused(f"the unit is one of {', '.join(map(repr, _UNITS))}")
    if days is None:
        return ScalarFacts(ColumnType.DATE, None, None, given[1].can_be_null)
    lower, upper = (Fraction(truncated(unit, day).toordinal()) for day in days)
    return ScalarFacts(ColumnType.DATE, lower, upper, given[1].can_be_null)


def _part(
    function: ScalarFunction,
    facts: Callable[[ArgumentFacts], ScalarFacts],
    meaning: Callable[[EngineValue], EngineValue],
    of_day: Callable[[datetime.date], int],
) -> ScalarRule:
    return ScalarRule(
        function, (DATES,), facts, lambda _, day: meaning(day).cast("int64"), of_key=of_day
    )


def _day_of_year(day: datetime.date) -> int:
    return day.timetuple().tm_yday


def _quarter(day: datetime.date) -> int:
    return (day.month + 2) // 3


# --- casts ---


def _cast(
    function: ScalarFunction,
    kind: ColumnType,
    *sources: ColumnType,
    other_spellings: tuple[str, ...] = (),
) -> ScalarRule:
    """A row for a cast, which is NULL where the type can't hold the value. Texts are read as those
    of a declared column."""

    def facts(given: ArgumentFacts) -> ScalarFacts:
        (fact,) = given
        if fact.type is kind:
            return ScalarFacts(kind, fact.lower, fact.upper, fact.can_be_null, fact.largest)
        return _cast_facts(kind, fact)

    def meaning(_: ScalarFacts, value: EngineValue) -> EngineValue:
        from discreet.query._engines import _conversion  # heavy

        return _conversion.cast_to(kind, value)

    return ScalarRule(
        function,
        (Parameter((kind, *sources)),),
        facts,
        meaning,
        Form.CAST,
        other_spellings=other_spellings,
    )


def _cast_facts(kind: ColumnType, fact: ScalarFacts) -> ScalarFacts:
    if kind is ColumnType.INTEGER and fact.type is ColumnType.BOOLEAN:
        return number_facts(kind, 0, 1, can_be_null=fact.can_be_null)
    if kind is ColumnType.TEXT:
        return ScalarFacts(kind, None, None, fact.can_be_null)
    if fact.lower is None or fact.upper is None or not fact.type.is_numeric:
        return ScalarFacts(kind, None, None, can_be_null=True)
    if kind is ColumnType.NUMBER:
        return number_facts(kind, fact.lower, fact.upper, can_be_null=fact.can_be_null)
    lower, upper = (Fraction(round(end)) for end in (fact.lower, fact.upper))
    whole = number_facts(kind, lower, upper, can_be_null=fact.can_be_null)
    if whole.type is kind:
        return whole
    return ScalarFacts(kind, None, None, can_be_null=True)  # NULL beyond 64 bits


DATE_RULES = (
    _part(ScalarFunction.YEAR, _year_facts, lambda day: day.year(), lambda day: day.year),
    _part(
        ScalarFunction.QUARTER,
        _part_facts(_quarter, 1, 4, "year"),
        lambda day: day.quarter(),
        _quarter,
    ),
    _part(
        ScalarFunction.MONTH,
        _part_facts(lambda day: day.month, 1, 12, "year"),
        lambda day: day.month(),
        lambda day: day.month,
    ),
    _part(
        ScalarFunction.DAY,
        _part_facts(lambda day: day.day, 1, 31, "month"),
        lambda day: day.day(),
        lambda day: day.day,
    ),
    _part(
        ScalarFunction.DAYOFYEAR,
        _part_facts(_day_of_year, 1, 366, "year"),
        lambda day: day.day_of_year(),
        _day_of_year,
    ),
    _part(
        ScalarFunction.ISODOW,
        _part_facts(datetime.date.isoweekday, 1, 7, "week"),
        lambda day: day.day_of_week.index() + 1,
        datetime.date.isoweekday,
    ),
    ScalarRule(
        ScalarFunction.DATE_TRUNC,
        (CONSTANT_TEXT, DATES),
        _truncated_facts,
        lambda _, unit, day: day.cast("timestamp").truncate(_UNITS[unit.lower()]).cast("date"),
        of_key=truncated,
    ),
    _cast(
        ScalarFunction.TO_INTEGER,
        ColumnType.INTEGER,
        ColumnType.NUMBER,
        ColumnType.TEXT,
        ColumnType.BOOLEAN,
        other_spellings=("BIGINT", "INT", "INT8"),
    ),
    _cast(
        ScalarFunction.TO_NUMBER,
        ColumnType.NUMBER,
        ColumnType.INTEGER,
        ColumnType.TEXT,
        other_spellings=("FLOAT8",),
    ),
    _cast(
        ScalarFunction.TO_TEXT,
        ColumnType.TEXT,
        ColumnType.INTEGER,
        ColumnType.BOOLEAN,
        ColumnType.DATE,
        other_spellings=("TEXT", "STRING"),
    ),
    _cast(ScalarFunction.TO_DATE, ColumnType.DATE, ColumnType.TEXT),
    _cast(
        ScalarFunction.TO_BOOLEAN, ColumnType.BOOLEAN, ColumnType.TEXT, other_spellings=("BOOL",)
    ),
)
