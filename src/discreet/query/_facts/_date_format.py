"""The formats that a date column in text can be declared with: a closed set."""

import re

from discreet.errors import InvalidArgument

CODES = {
    "%d": "[0-9]{1,2}",
    "%m": "[0-9]{1,2}",
    "%Y": "[0-9]{4}",
    "%y": "[0-9]{2}",
    "%b": "[A-Za-z]{3}",
}
_PARTS = re.compile(r"%[dmYyb]|[-/., ]")
_WHOLE = (["b", "d", "y"], ["d", "m", "y"])


def check_date_format(form: object) -> None:
    """Refuse a format that is not one day, one month and one year, with separators between."""
    if isinstance(form, str):
        parts = _PARTS.findall(form)
        codes = sorted(part[1].lower() for part in parts if part in CODES)
        if "".join(parts) == form and codes in _WHOLE:
            return
    raise InvalidArgument(
        f"format = {form!r}: give %d, %m (or %b) and %Y (or %y), each once, with - / . , or blanks "
        "between them, such as %d/%m/%Y"
    )


def shape(form: str) -> str:
    """The regular expression of texts in this format."""
    return "".join(CODES.get(part, re.escape(part)) for part in _PARTS.findall(form))
