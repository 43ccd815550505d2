"""Small HTML tables for notebooks, in the colours of the page around them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from fractions import Fraction
from html import escape

from discreet._exact import decimal_down, decimal_up, fraction

_TABLE = "border-collapse:collapse;font-variant-numeric:tabular-nums"
_CAPTION = "caption-side:top;text-align:left;padding:0 0 0.3em;opacity:0.75"
_CELL = "padding:0.15em 1.2em 0.15em 0;text-align:left;border:0;background:none"
_NOTE = "margin:0.3em 0;opacity:0.75"
_DIGITS = 6


def table(
    caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]], marked: int | None = None
) -> str:
    """A table with a caption; one row may be marked."""
    head = _row(heads, "th", is_marked=True) if heads else ""
    body = "".join(_row(row, "td", is_marked=n == marked) for n, row in enumerate(rows))
    title = f'<caption style="{_CAPTION}">{escape(caption)}</caption>'
    return f'<table style="{_TABLE}">{title}{head}{body}</table>'


def shown(value: object) -> str:
    """A table for a value without a form of its own: the lines of its text, or else its fields. It
    serves as ``_repr_html_``."""
    head, *lines = repr(value).splitlines()
    if lines:
        return table(head.rstrip(":"), (), [line.strip().split(": ", 1) for line in lines])
    if not is_dataclass(value) or not head.startswith(f"{type(value).__name__}("):
        return table("", (), [[head]])
    known = [one.name for one in fields(value) if one.repr]
    rows = [[name.replace("_", " "), plain(str(getattr(value, name)))] for name in known]
    return table(type(value).__name__, (), rows)


def notes(lines: Sequence[str]) -> str:
    """Lines of text below a table, with the characters that HTML needs escaped."""
    return "".join(f'<p style="{_NOTE}">{escape(line)}</p>' for line in lines)


def up(number: float, digits: int = _DIGITS) -> str:
    """The number to this many digits, rounded up."""
    return _rounded(number, digits, decimal_up)


def down(number: float, digits: int = _DIGITS) -> str:
    """The number to this many digits, rounded down."""
    return _rounded(number, digits, decimal_down)


def _rounded(number: float, digits: int, decimal: Callable[[Fraction, int], Fraction]) -> str:
    if not number or math.isinf(number):
        return "infinite" if number else "0"
    return f"{float(decimal(fraction(number), digits)):.{digits}g}"


def plain(text: str) -> str:
    """The text without the prefix of terms."""
    return text.replace("accounting.", "")


def _row(cells: Sequence[str], tag: str, *, is_marked: bool) -> str:
    start = f'<{tag} style="{_CELL};font-weight:{600 if is_marked else 400}">'
    return f"<tr>{''.join(f'{start}{escape(cell)}</{tag}>' for cell in cells)}</tr>"
