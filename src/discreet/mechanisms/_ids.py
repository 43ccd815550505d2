"""Ids of units, independent of the type of the column that they come from.

One missing id turns a column of integers into floats, and one text turns it into texts. This must
not change the other ids. Truth values are integers, in a column of floats as in one of texts. Above
2^53 float64 holds only every second, fourth, ... integer, so ids that float64 does not distinguish
are one id here.
"""

from contextlib import suppress

from discreet.mechanisms._attempts import attempt

_NONE: int | str = ""
_TRUTH = {"True": 1, "true": 1, "False": 0, "false": 0}
_MISSING = frozenset({"None", "nan", "NaN", "NaT", "<NA>"})


def plain(own: object) -> int | str:
    """The id as an integer if it is one or reads as one, else as a text.

    Missing ids, and objects that raise when they are read, become the empty text. Different ids may
    become the same, but no id depends on another one.
    """
    return attempt(_plain, own, _NONE)


def is_missing(own: object) -> bool:
    """Whether the id is missing: None, NaN, NaT, NA, or an empty text."""
    return plain(own) == _NONE


def _plain(own: object) -> int | str:
    if isinstance(own, int):
        return _as_float64(int(own))
    text = own.decode("utf-8", "surrogateescape") if isinstance(own, bytes) else str(own)
    with suppress(ValueError):
        return _as_float64(int(text))
    with suppress(ValueError, OverflowError):
        if (number := float(text)).is_integer():
            return int(number)
    return _NONE if text in _MISSING else _TRUTH.get(text, text)


def _as_float64(whole: int) -> int:
    """The nearest float64, as an integer; beyond all floats, the number itself."""
    try:
        return int(float(whole))
    except OverflowError:
        return whole
