"""How accounting's values look in a notebook: small tables, in the colours of the page around."""

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from discreet._exact import decimal_down, decimal_up, fraction

if TYPE_CHECKING:
    from discreet.accounting._interval import Interval
    from discreet.accounting._loss import PrivacyLoss
    from discreet.accounting._theorems import Explanation

_TABLE = "border-collapse:collapse;font-variant-numeric:tabular-nums"
_CAPTION = "caption-side:top;text-align:left;padding:0 0 0.3em;opacity:0.75"
_CELL = "padding:0.15em 1.2em 0.15em 0;text-align:left;border:0;background:none"
_DIGITS = 6


def loss(value: "PrivacyLoss") -> str:
    """The sum, a line for each term; nothing is computed."""
    rows = [(f"{count:,} ×", _plain(repr(term))) for term, count in value.terms]
    whom = f"Privacy loss of {value.unit}" if value.unit else "Privacy loss"
    return table(whom, ("times", "term"), rows or [("", "nothing")])


def interval(value: "Interval") -> str:
    """The two ends."""
    ends = "proven ends" if not value.is_wide else "proven ends, farther apart than was wanted"
    rows = [("at least", down(value.lower)), ("at most", up(value.upper))]
    return table(f"epsilon: {ends}", (), rows)


def explanation(value: "Explanation") -> str:
    """Each theorem's epsilon, the best one marked; then those that are silent, and why."""
    rows: list[tuple[str, str]] = []
    marked = None
    for name, epsilon in value.figures.items():
        if name == value.best:
            marked = len(rows)
        rows.append((name, up(epsilon) + (" ← best" if name == value.best else "")))
    rows += [(name, _plain(reason)) for name, reason in value.silent.items()]
    caption = f"epsilon at delta = {float(value.delta):g}"
    return table(caption, ("theorem", "epsilon"), rows, marked)


def table(
    caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]], marked: int | None = None
) -> str:
    """A table with a caption; one row may be marked."""
    head = _row(heads, "th", is_marked=True) if heads else ""
    body = "".join(_row(row, "td", is_marked=n == marked) for n, row in enumerate(rows))
    title = f'<caption style="{_CAPTION}">{escape(caption)}</caption>'
    return f'<table style="{_TABLE}">{title}{head}{body}</table>'


def up(number: float, digits: int = _DIGITS) -> str:
    """The number with so many digits, rounded up."""
    if not number or math.isinf(number):
        return "infinite" if number else "0"
    return f"{float(decimal_up(fraction(number), digits)):.{digits}g}"


def down(number: float, digits: int = _DIGITS) -> str:
    """The number with so many digits, rounded down."""
    if not number or math.isinf(number):
        return "infinite" if number else "0"
    return f"{float(decimal_down(fraction(number), digits)):.{digits}g}"


def _plain(written: str) -> str:
    """Terms by their names alone: nothing else is in sight."""
    return written.replace("accounting.", "")


def _row(cells: Sequence[str], tag: str, *, is_marked: bool) -> str:
    start = f'<{tag} style="{_CELL};font-weight:{600 if is_marked else 400}">'
    return f"<tr>{''.join(f'{start}{escape(cell)}</{tag}>' for cell in cells)}</tr>"
