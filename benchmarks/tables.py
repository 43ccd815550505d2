"""Tables of figures, and the format of times and ratios."""

from rich import box
from rich.console import Console
from rich.table import Table

_ANY_WIDTH = 200  # a wrapped line is better than a truncated one


def table(*columns: str) -> Table:
    """An empty table: names on the left, figures on the right."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, column in enumerate(columns):
        made.add_column(column, justify="right" if place else "left", no_wrap=True)
    return made


def show(made: Table) -> None:
    """Print the table on stdout."""
    Console(width=_ANY_WIDTH).print(made)


def duration(seconds: float) -> str:
    """A time with three digits, in a suitable unit: 45.6 µs."""
    for unit, size in ("s", 1.0), ("ms", 1e-3), ("µs", 1e-6):
        if seconds >= size:
            return f"{_three_digits(seconds / size)} {unit}"
    return f"{_three_digits(seconds * 1e9)} ns"


def times(ratio: float) -> str:
    """A ratio with three digits, or with all digits before the point: 5.83×."""
    return f"{_three_digits(ratio) if ratio < 1000 else f'{ratio:,.0f}'}×"


def _three_digits(number: float) -> str:
    return f"{number:#.3g}".rstrip(".")
