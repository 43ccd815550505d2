"""Reads numbers, truth values and days from texts, as expressions of the engine.

Each expression is total: it is NULL for any other text, also for bytes that are not UTF-8. So texts
are first written in plain ASCII, every other byte as \\xFF.
"""

from typing import Any

import ibis

from discreet.query._engines._engine import as_bytes, instant, moment
from discreet.query._facts._date_format import shape

_BLANK = r"(?: |\\x0[9a-d])"  # as `plain_text` writes tabs and line breaks
_AROUND = rf"^{_BLANK}+|{_BLANK}+$"
_DIGITS = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]*)?|\.[0-9]+"
_NUMBER = rf"^{_BLANK}*([+-]?(?:(?:{_DIGITS})(?:e[+-]?[0-9]+)?|inf|infinity)){_BLANK}*$"
_TRUE, _FALSE = ("true", "t", "yes", "y", "1", "1.0"), ("false", "f", "no", "n", "0", "0.0")
_TIME = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?"
_OFFSET = r"(?:z|[+-][01][0-9](?::?[0-5][0-9])?)"
_ISO_TIME = rf"^([0-9]{{4}}-[0-9]{{1,2}}-[0-9]{{1,2}})[t ]([0-9][0-9:.]*){_OFFSET}?$"
_INSTANT = rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[t ]{_TIME}{_OFFSET}$"
_ISO = "^[0-9]{4}[-/ ]"


def plain_text(raw: Any) -> Any:  # Any: Ibis expressions
    """The text in plain ASCII: any other byte, backslash and quote as \\xFF. No two texts become
    one."""
    return as_bytes(raw).cast("string")


def trimmed(raw: Any) -> Any:  # Any: Ibis expressions
    """The text in plain ASCII and lower case, without blanks around it."""
    return plain_text(raw).lower().re_replace(_AROUND, "")


def number_text(raw: Any) -> Any:  # Any: Ibis expressions
    """The digits of a number without blanks around them, and without commas where they group
    thousands; an empty text where it spells no number."""
    return plain_text(raw).lower().re_extract(_NUMBER, 1).replace(",", "")


def truth_of_text(raw: Any) -> Any:  # Any: Ibis expressions
    """The truth value that a text spells."""
    text = trimmed(raw)
    return ibis.cases(
        (text.isin(_TRUE), ibis.literal(value=True)),
        (text.isin(_FALSE), ibis.literal(value=False)),
        else_=ibis.null("boolean"),
    )


def instant_of_text(raw: Any) -> tuple[Any, Any]:  # Any: Ibis expressions
    """Whether a text spells a time with an offset from UTC, as in 2013-01-02T03:04:05+01:00, and
    its time in UTC."""
    text = trimmed(raw)
    parts = ibis.ifelse(text.re_search(_INSTANT), text, ibis.null("string"))
    plain = parts.re_replace("[tz]", " ").re_replace(r"(\.[0-9]{6})[0-9]+", r"\1")
    offset = ibis.ifelse(parts.endswith("z"), "+00", "")
    return parts.notnull(), instant(plain.strip() + offset)


def date_of_text(raw: Any, form: str | None) -> Any:  # Any: Ibis expressions
    """The day that a text spells: in this format, or as in 2013-01-02, with or without a time, such
    as T03:04:05Z. An offset from UTC doesn't change the day that is written."""
    text = trimmed(raw)
    if form is None:
        text = text.re_replace(_ISO_TIME, r"\1 \2")
        return ibis.ifelse(text.re_search(_ISO), text, ibis.null("string")).try_cast("date")
    spelled = ibis.ifelse(text.re_search(f"^{shape(form)}$"), text, ibis.null("string"))
    return moment(spelled, form).try_cast("date")
