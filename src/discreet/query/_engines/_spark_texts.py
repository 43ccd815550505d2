r"""The forms of texts in Spark's SQL: how they are read, searched and changed.

Spark searches by Java's regular expressions, which can need much time or stack: so blanks are
matched possessively, ``LIKE`` becomes a chain of first matches, and a text that spells a number, a
truth value or a day has at most 4 096 bytes in plain ASCII, see `_spelling`.
"""

import re
from functools import cache

from discreet.query._engines._postgres_texts import case_pairs, date_parts

LONGEST_SPELLING = 4096  # bytes
_IS_SHORT = f"octet_length(@0) <= {LONGEST_SPELLING}"
_DIGITS = r"([0-9]+\.?[0-9]*|\.[0-9]+)"
_BLANK = r"(?: |\\x0[9a-d])"  # as in `_spelling`, where it is repeated
PLAIN_LOWER = "lower(@0)"  # of a text in ASCII


def quoted(text: str) -> str:
    """The text as a constant. Others than printable ASCII are written by their code."""
    return "'" + "".join(map(_sign, text)) + "'"


def _sign(one: str) -> str:
    if one in "'\\":
        return "\\" + one
    code = ord(one)
    if 32 <= code < 127:
        return one
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _matches(pattern: str, given: str = "@0") -> str:
    return f"({given} RLIKE {quoted(pattern)})"


def _group(pattern: str, number: int = 1, given: str = "@0") -> str:
    """A group of the first match; an empty text where there is none."""
    return f"regexp_extract({given}, {quoted(pattern)}, {number})"


_PRINTABLE = r"[ !#-&(-\[\]-~]"  # ASCII without quotes and the backslash
_BYTE = "CAST(substring(@0, i, 1) AS STRING)"
_IS_PLAIN = _matches(rf"\A{_PRINTABLE}*\z", "CAST(@0 AS STRING)")
_IS_PLAIN_BYTE = _matches(rf"\A{_PRINTABLE}\z", _BYTE)
# bytes as a text in plain ASCII, others as \xFF, as `_spelling.plain_text` says
OF_BYTES = (
    f"(CASE WHEN {_IS_PLAIN} THEN CAST(@0 AS STRING) "
    "WHEN @0 IS NOT NULL THEN array_join(transform(sequence(1, octet_length(@0)), i -> "
    f"CASE WHEN {_IS_PLAIN_BYTE} THEN {_BYTE} "
    rf"ELSE concat('\\x', hex(substring(@0, i, 1))) END), '') END)"
)

_NUMBER = rf"\A[+-]?{_DIGITS}(e[+-]?[0-9]+)?\z"
_WHOLE_PART = _group(r"\A[+-]?0*([0-9]*)")
_IS_HALF = _matches(r"\A[+-]?[0-9]*[.][5-9]")
_IS_BELOW_ZERO = _matches(r"\A-")
_IS_PLAIN_NUMBER = _matches(rf"\A[+-]?{_DIGITS}\z")
_WHOLE_SIZE = (
    f"(CAST(concat('0', {_WHOLE_PART}) AS DECIMAL(38, 0)) + CASE WHEN {_IS_HALF} THEN 1 ELSE 0 END)"
)
_SIGNED = f"(CASE WHEN {_IS_BELOW_ZERO} THEN - {_WHOLE_SIZE} ELSE {_WHOLE_SIZE} END)"
INT64 = "-9223372036854775808BD AND 9223372036854775807BD"
WHOLE = (
    f"(CASE WHEN {_IS_SHORT} AND {_IS_PLAIN_NUMBER} AND length({_WHOLE_PART}) <= 19 "
    f"THEN (CASE WHEN {_SIGNED} BETWEEN {INT64} THEN CAST({_SIGNED} AS BIGINT) END) END)"
)
_IS_INFINITE, _IS_LEAST, _IS_NUMBER = map(_matches, (r"\A[+]?inf", r"\A-inf", _NUMBER))
FLOAT = (
    f"(CASE WHEN {_IS_SHORT} THEN "
    f"(CASE WHEN {_IS_INFINITE} THEN CAST('Infinity' AS DOUBLE) "
    f"WHEN {_IS_LEAST} THEN CAST('-Infinity' AS DOUBLE) "
    f"WHEN {_IS_NUMBER} THEN CAST(@0 AS DOUBLE) END) END)"
)
# in a number, the power of ten of the first digit that isn't 0; far from 0, a million
_FIRST_DIGITS = _group(r"\A[+-]?0*([0-9]*)")
_ZEROS = _group(r"[.](0*)")
_EXPONENT = (
    f"(CASE WHEN length({_group('e[+-]?0*([0-9]*)')}) > 6 "
    f"THEN CAST(concat({_group('e(-)')}, '1000000') AS BIGINT) "
    f"ELSE coalesce(CAST({_group('e([+-]?[0-9]+)')} AS BIGINT), 0) END)"
)
_ORDER = (
    f"(CASE WHEN length({_FIRST_DIGITS}) > 0 THEN length({_FIRST_DIGITS}) - 1 "
    f"ELSE -1 - length({_ZEROS}) END + {_EXPONENT})"
)


def decimal(precision: int, scale: int) -> str:
    """The decimal that a text spells, rounded; NULL if it has more digits before the point."""
    kind = f"DECIMAL({precision}, {scale})"
    return (
        f"(CASE WHEN NOT {_IS_SHORT} OR NOT {_IS_NUMBER} THEN NULL "
        f"WHEN NOT {_matches('^[^e]*[1-9]')} THEN CAST('0' AS {kind}) "
        f"WHEN {_ORDER} > {precision} THEN NULL "
        f"WHEN {_ORDER} < -{scale + 2} THEN CAST('0' AS {kind}) "
        f"ELSE CAST(@0 AS {kind}) END)"
    )


_CLOCK = (
    r"(0*(1?[0-9]|2[0-3]):[0-5]?[0-9](:[0-5]?[0-9](\.[0-9]*)?)?|0*24:0{1,2}(:0{1,2}(\.0*)?)?)"
    r"( .*|[+-][0-9]{2}(:?[0-9]{2}(:?[0-9]{2})?)?)?"
)
_ISO_DAY = "|".join(f"[0-9]{{4}}{sign}[0-9]{{1,2}}{sign}[0-9]{{1,2}}" for sign in "-/ ")
_DAY_PARTS = r"\A([0-9]{4})[-/ ]([0-9]{1,2})[-/ ]([0-9]{1,2})"


def _day_of(pattern: str) -> str:
    year, month, day = (f"CAST({_group(pattern, n)} AS INT)" for n in (1, 2, 3))
    return f"make_date({year}, {month}, {day})"


_IS_DAY = _matches(rf"\A({_ISO_DAY})( +({_CLOCK})?)?\z")
DAY = f"(CASE WHEN {_IS_SHORT} AND {_IS_DAY} THEN {_day_of(_DAY_PARTS)} END)"

_HOURS = "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]*)?)?|24:00(:00([.]0*)?)?"
_INSTANT = rf"\A[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}} ({_HOURS})[+-][0-9]{{2}}(:?[0-9]{{2}})?\z"


def _count(pattern: str, micros: int) -> str:
    return f"coalesce(CAST({_group(pattern)} AS BIGINT), 0) * {micros}L"


_SECOND = 1_000_000
_TIME = " + ".join(
    (
        _count(" ([0-9]{2}):", 3600 * _SECOND),
        _count(" [0-9]{2}:([0-9]{2})", 60 * _SECOND),
        _count(" [0-9]{2}:[0-9]{2}:([0-9]{2})", _SECOND),
        f"coalesce(CAST(rpad({_group('[.]([0-9]{1,6})')}, 6, '0') AS BIGINT), 0)",
    )
)
_OFFSET = " + ".join(
    (
        _count(r"[+-]([0-9]{2})[0-9:]*\z", 3600 * _SECOND),
        _count(r"[+-][0-9]{2}:?([0-9]{2})\z", 60 * _SECOND),
    )
)
_IS_WEST = _matches(r"-[0-9:]+\z", "substr(@0, 11)")
INSTANT = (
    f"(CASE WHEN {_matches(_INSTANT)} THEN timestampadd(MICROSECOND, ({_TIME}) + "
    f"(CASE WHEN {_IS_WEST} THEN 1L ELSE -1L END) * ({_OFFSET}), "
    f"CAST({_day_of(_DAY_PARTS)} AS TIMESTAMP_NTZ)) END)"
)


def moment(form: str) -> str:
    """The day that a text spells in this format, as a time; NULL for any other text."""
    pattern, groups = date_parts(form)

    def piece(code: str) -> str:
        return _group(rf"\A{pattern}\z", groups[code])

    year = f"CAST({piece('y' if 'y' in groups else 'Y')} AS INT)"
    if "y" in groups:
        year = f"({year} + CASE WHEN {year} < 69 THEN 2000 ELSE 1900 END)"
    else:
        year = f"nullif({year}, 0)"
    if "b" in groups:
        names = "'jan','feb','mar','apr','may','jun','jul','aug','sep','oct','nov','dec'"
        month = f"CAST(array_position(array({names}), {piece('b')}) AS INT)"
    else:
        month = f"CAST({piece('m')} AS INT)"
    return f"CAST(make_date({year}, {month}, CAST({piece('d')} AS INT)) AS TIMESTAMP_NTZ)"


def search(pattern: str) -> str:
    """Whether a text has a match of this pattern, which is one of `_spelling` or of LIKE.

    LIKE's parts between two ``%`` are matched one after the other, each at its first place, which
    suffices, and takes no more time than the product of the lengths."""
    if not pattern.startswith(r"(?s)\A"):
        return f"({_IS_SHORT} AND {_matches(_possessive(pattern))})"
    first, *middle = pattern.removeprefix(r"(?s)\A").removesuffix(r"\z").split(".*")
    if not middle:
        return _matches(rf"(?s)\A{first}\z")
    *middle, last = middle
    atoms = "".join(f"(?>.*?{part})" for part in middle if part)
    return _matches(rf"(?s)\A{first}{atoms}.*{last}\z")


def extract(pattern: str) -> str:
    """The first group of a match; an empty text where there is none."""
    return (
        f"(CASE WHEN {_IS_SHORT} THEN {_group(_possessive(pattern))} "
        "WHEN @0 IS NOT NULL THEN '' END)"
    )


def replaced(pattern: str, replacement: str) -> str:
    """The text with all matches replaced."""
    if pattern == "^ +| +$":
        return "trim(BOTH ' ' FROM @0)"
    new = re.sub(r"\\([0-9])", r"$\1", replacement)
    return (
        f"(CASE WHEN {_IS_SHORT} THEN "
        f"regexp_replace(@0, {quoted(_possessive(pattern))}, {quoted(new)}) ELSE @0 END)"
    )


def _possessive(pattern: str) -> str:
    """The pattern without ever giving back a blank, for which Java needs a stack of their number.
    ``$`` becomes the very end."""
    for sign in "*+":
        pattern = pattern.replace(_BLANK + sign, _BLANK + sign + "+")
    return re.sub(r"\$(?=\||\Z)", r"\\z", pattern)


@cache
def changed_case(*, is_lower: bool) -> str:
    """The text in lower or upper case, by Unicode's simple mapping, which has one character for
    each. Java's own has several for some."""
    name = "lower" if is_lower else "upper"
    before, after = case_pairs(is_lower=is_lower)
    plain = f"{name}(@0)"
    small = "abcdefghijklmnopqrstuvwxyz"
    ends = (small.upper(), small) if is_lower else (small, small.upper())
    signs = (quoted(ends[0] + before), quoted(ends[1] + after))
    return (
        f"(CASE WHEN octet_length(@0) = char_length(@0) THEN {plain} "
        f"ELSE translate(@0, {signs[0]}, {signs[1]}) END)"
    )
