"""Units by their ids, which are the same however the column is stored that they come from.

A missing id turns a column of whole numbers into floats, and a single text turns it into texts.
That must not change the other ids. Above 2^53, float64 represents only every second, fourth, ...
whole number, so that neighbouring ids are not distinguished here either.
"""

from contextlib import suppress

from discreet.mechanisms._attempts import attempt

_NONE: int | str = ""
_MISSING = frozenset({"None", "nan", "NaN", "NaT", "<NA>"})


def plain(own: object) -> int | str:
    """The id as a whole number if it is one or reads as one, as a text otherwise. All ids that are
    missing are the empty text, and so is whatever fails when it is looked at. Ids that differ may
    become the same, but no id depends on another."""
    return attempt(_plain, own, _NONE)


def is_missing(own: object) -> bool:
    """Whether this is no id: None, NaN, NaT, NA, or an empty text."""
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
    return _NONE if text in _MISSING else text


def _as_float64(whole: int) -> int:
    """The float64 nearest to it; beyond all floats, the number itself."""
    try:
        return int(float(whole))
    except OverflowError:
        return whole
