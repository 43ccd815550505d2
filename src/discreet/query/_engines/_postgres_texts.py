r"""The forms of texts in PostgreSQL's SQL: how they are read, searched and changed.

A text that spells a number, a truth value or a day is first written in plain ASCII, see
`_spelling`. One of more than 4 096 bytes spells nothing here, since PostgreSQL's regular
expressions may need time that grows with the square of a text's length.
"""

import re
from functools import cache

from ibis.common.exceptions import UnsupportedOperationError

LONGEST_SPELLING = 4096  # bytes
INT64 = "-9223372036854775808 AND 9223372036854775807"
_IS_SHORT = f"octet_length(@0) <= {LONGEST_SPELLING}"
_REGULAR = r"'^[ !#-&(-[\]-~]*$'"  # printable ASCII without quotes and the backslash
_DIGITS = r"([0-9]+\.?[0-9]*|\.[0-9]+)"
_CODES = {
    "%d": "[0-9]{1,2}",
    "%m": "[0-9]{1,2}",
    "%Y": "[0-9]{4}",
    "%y": "[0-9]{2}",
    "%b": "[a-z]{3}",
}
_NUMBERS = ("%d", "%m", "%Y", "%y")
_PARTS = re.compile(r"%[dmYyb]|[-/., ]")
PLAIN_LOWER = 'lower(@0 COLLATE "C")'  # of a text in ASCII
_MONTHS = "'jan feb mar apr may jun jul aug sep oct nov dec'"


def quoted(text: str) -> str:
    """The text between quotes."""
    if "\0" in text:
        raise UnsupportedOperationError("a text with a NUL character, which PostgreSQL can't hold")
    return "'" + text.replace("'", "''") + "'"


# bytes as a text in plain ASCII, others as \xFF, as `_spelling.plain_text` says
OF_BYTES = (  # no text of a user is in it
    f"(CASE WHEN encode(@0, 'escape') ~ {_REGULAR} THEN encode(@0, 'escape') "  # noqa: S608
    "WHEN @0 IS NOT NULL THEN "
    "(SELECT string_agg(CASE WHEN b BETWEEN 32 AND 126 AND b NOT IN (34, 39, 92) THEN chr(b) "
    r"ELSE '\x' || upper(lpad(to_hex(b), 2, '0')) END, '' ORDER BY i) "
    "FROM (SELECT i, get_byte(@0, i) AS b FROM generate_series(0, octet_length(@0) - 1) AS i) "
    "AS bytes) END)"
)

WHOLE = (
    f"(CASE WHEN {_IS_SHORT} AND @0 ~ '^[+-]?{_DIGITS}$' THEN "
    f"(CASE WHEN round(@0::numeric) BETWEEN {INT64} THEN round(@0::numeric)::int8 END) END)"
)
# in a number, the power of ten of the first digit that isn't 0; far from 0, a million
_ORDER = (
    r"(CASE WHEN ltrim(@0, '+-0') ~ '^[0-9]' "
    r"THEN length(substring(ltrim(@0, '+-0') FROM '^[0-9]+')) - 1 "
    r"ELSE -1 - length(coalesce(substring(@0 FROM '\.(0*)'), '')) END "
    r"+ CASE WHEN length(substring(@0 FROM 'e[+-]?0*([0-9]*)$')) > 6 "
    r"THEN (coalesce(substring(@0 FROM 'e(-)'), '') || '1000000')::int4 "
    r"ELSE coalesce(substring(@0 FROM 'e([+-]?[0-9]+)$'), '0')::int4 END)"
)
_IS_ZERO = "@0 !~ '^[^e]*[1-9]'"
FLOAT = (
    f"(CASE WHEN @0 IS NULL OR octet_length(@0) > {LONGEST_SPELLING} THEN NULL "
    "WHEN @0 ~ '^[+]?inf' THEN 'Infinity'::float8 WHEN @0 ~ '^-inf' THEN '-Infinity'::float8 "
    f"WHEN @0 !~ '^[+-]?{_DIGITS}(e[+-]?[0-9]+)?$' THEN NULL "
    f"WHEN pg_input_is_valid(@0, 'float8') THEN @0::float8 WHEN {_IS_ZERO} THEN 0 "
    f"WHEN {_ORDER} < 0 THEN 0 WHEN @0 ~ '^-' THEN '-Infinity'::float8 ELSE 'Infinity'::float8 END)"
)


def decimal(precision: int, scale: int) -> str:
    """The decimal that a text spells, rounded; NULL if it has more digits before the point."""
    number, kind = f"round(@0::numeric, {scale})", f"numeric({precision}, {scale})"
    return (
        f"(CASE WHEN octet_length(@0) > {LONGEST_SPELLING} "
        f"OR @0 !~ '^[+-]?{_DIGITS}(e[+-]?[0-9]+)?$' THEN NULL WHEN {_IS_ZERO} THEN 0 "
        f"WHEN {_ORDER} > {precision} THEN NULL WHEN {_ORDER} < -{scale + 2} THEN 0 "
        f"WHEN abs({number}) < 1e{precision - scale} THEN {number}::{kind} END)"
    )


_CLOCK = (
    r"(0*(1?[0-9]|2[0-3]):[0-5]?[0-9](:[0-5]?[0-9](\.[0-9]*)?)?|0*24:0{1,2}(:0{1,2}(\.0*)?)?)"
    r"( .*|[+-][0-9]{2}(:?[0-9]{2}(:?[0-9]{2})?)?)?"
)
_ISO_DAY = "|".join(f"[0-9]{{4}}{sign}[0-9]{{1,2}}{sign}[0-9]{{1,2}}" for sign in "-/ ")
_PLAIN_DAY = f"translate(substring(@0 FROM '^({_ISO_DAY})'), '/ ', '--')"
DAY = (
    f"(CASE WHEN {_IS_SHORT} AND @0 ~ '^({_ISO_DAY})( +({_CLOCK})?)?$' THEN "
    f"(CASE WHEN pg_input_is_valid({_PLAIN_DAY}, 'date') THEN {_PLAIN_DAY}::date END) END)"
)

_HOURS = "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]*)?)?|24:00(:00([.]0*)?)?"
_OFFSET_SIGN = "substring(@0 FROM '([+-])[0-9:]+$')"
_OFFSET = (
    f"({_OFFSET_SIGN} || substring(@0 FROM '[+-]([0-9]{{2}})[0-9:]*$') || ' hours')::interval + "
    f"({_OFFSET_SIGN} || coalesce(substring(@0 FROM '[+-][0-9]{{2}}:?([0-9]{{2}})$'), '0') "
    "|| ' minutes')::interval"
)
INSTANT = (
    f"(CASE WHEN @0 ~ '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}} ({_HOURS})[+-][0-9]{{2}}(:?[0-9]{{2}})?$' "
    "THEN (CASE WHEN pg_input_is_valid(left(@0, 10), 'date') THEN left(@0, 10)::date + "
    f"substring(@0 FROM ' ([0-9:.]+)[+-]')::interval - ({_OFFSET}) END) END)"
)


def moment(form: str) -> str:
    """The day that a text spells in this format, as a time; NULL for any other text."""
    parts = _PARTS.findall(form)
    shapes = _shapes(parts)

    def piece(*codes: str) -> str:
        place = next(n for n, part in enumerate(parts) if part in codes)
        text = "".join(f"({one})" if n == place else one for n, one in enumerate(shapes))
        return f"substring(@0 FROM '^{text}$')"

    year, month = f"{piece('%Y', '%y')}::int4", f"{piece('%m', '%b')}::int4"
    if "%y" in parts:
        year = f"({year} + CASE WHEN {year} < 69 THEN 2000 ELSE 1900 END)"
    if "%b" in parts:
        name = piece("%b")
        is_month = f"{name} = ANY (string_to_array({_MONTHS}, ' '))"
        month = f"CASE WHEN {is_month} THEN (strpos({_MONTHS}, {name}) + 3) / 4 END"
    return (
        "(SELECT CASE WHEN y BETWEEN 1 AND 9999 AND m BETWEEN 1 AND 12 AND d >= 1 THEN "  # noqa: S608
        "(CASE WHEN d <= extract(day FROM make_date(y, m, 1) + interval '1 month' - "
        "interval '1 day') THEN make_date(y, m, d)::timestamp END) END FROM "
        f"(SELECT {year} AS y, {month} AS m, {piece('%d')}::int4 AS d OFFSET 0) AS parts)"
    )


def _shapes(parts: list[str]) -> list[str]:
    return [
        _shape(part, before, following)
        for before, part, following in zip(["", *parts], parts, [*parts[1:], ""], strict=False)
    ]


def date_parts(form: str) -> tuple[str, dict[str, int]]:
    """The regular expression of this format with a group for each part, and the number of the
    group of each letter."""
    parts = _PARTS.findall(form)
    letters = [part[1] for part in parts if part.startswith("%")]
    pieces = zip(parts, _shapes(parts), strict=True)
    pattern = "".join(f"({one})" if part.startswith("%") else one for part, one in pieces)
    return pattern, {letter: number for number, letter in enumerate(letters, 1)}


def _shape(part: str, before: str, following: str) -> str:
    """The regular expression of a part. Of several numbers without a separator, each takes as many
    digits as it can."""
    if part in ("%d", "%m") and following in _NUMBERS:
        return "[0-9]{2}"
    shape = _CODES.get(part, re.escape(part))
    return re.sub(r"\{([24])\}", r"{1,\1}", shape) if before in _NUMBERS else shape


def search(pattern: str) -> str:
    """Whether a text has a match of this pattern, which is one of `_spelling` or of LIKE."""
    if not pattern.startswith(r"(?s)\A"):
        return f"({_IS_SHORT} AND @0 ~ {quoted(pattern)})"
    body = pattern.removeprefix(r"(?s)\A").removesuffix(r"\z")
    if r"\x{0}" in body:
        return "(CASE WHEN @0 IS NOT NULL THEN FALSE END)"
    body = re.sub(r"\\x\{([0-9a-f]+)\}", lambda found: f"\\U{int(found[1], 16):08x}", body)
    return f"(@0 ~ '^{body}$')"


def extract(pattern: str) -> str:
    """The first group of a match; an empty text where there is none."""
    return (
        f"(CASE WHEN {_IS_SHORT} THEN coalesce(substring(@0 FROM {quoted(pattern)}), '') "
        "WHEN @0 IS NOT NULL THEN '' END)"
    )


def replaced(pattern: str, replacement: str) -> str:
    """The text with all matches replaced."""
    if pattern == "^ +| +$":
        return "btrim(@0, ' ')"
    return (
        f"(CASE WHEN {_IS_SHORT} THEN "
        f"regexp_replace(@0, {quoted(pattern)}, {quoted(replacement)}, 'g') ELSE @0 END)"
    )


@cache
def changed_case(*, is_lower: bool) -> str:
    """The text in lower or upper case, by Unicode's simple mapping, which has one character for
    each. The server's own depends on its version and its locale."""
    name = "lower" if is_lower else "upper"
    before, after = case_pairs(is_lower=is_lower)
    plain = f'{name}(@0 COLLATE "C")'
    is_ascii = "octet_length(@0) = char_length(@0)"
    return f"(CASE WHEN {is_ascii} THEN {plain} ELSE translate({plain}, '{before}', '{after}') END)"


@cache
def case_pairs(*, is_lower: bool) -> tuple[str, str]:
    """The characters beyond ASCII that change, and each one's lower or upper case, by Unicode's
    simple mapping."""
    name = "lower" if is_lower else "upper"
    exceptions = {"\u0130": "i"} if is_lower else {"\u00df": "\u1e9e"}  # as in the embedded engine
    others = {
        sign: exceptions.get(sign) or _simple(getattr(sign, name)(), sign.title())
        for sign in map(chr, range(128, 0x110000))
    }
    pairs = [(sign, other) for sign, other in others.items() if len(other) == 1 and other != sign]
    before, after = ("".join(side) for side in zip(*pairs, strict=True))
    return before, after


def _simple(changed: str, title: str) -> str:
    """A character in another case; where that has several, its simple one is that of titles."""
    return title if len(changed) > 1 else changed
