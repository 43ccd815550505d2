"""What a command shows: data on stdout, everything else on stderr.

On a terminal in colours (unless NO_COLOR is set) and to its width; elsewhere plain, and as wide
as it is.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from rich import box
from rich.console import Console, RenderableType
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress_bar import ProgressBar
from rich.table import Table

_ANY_WIDTH = 100_000
_BAR_WIDTH = 40


def show(data: RenderableType) -> None:
    """Print data on stdout, without the spaces that fill a table's lines."""
    console = _console(sys.stdout)
    with console.capture() as captured:
        console.print(data, soft_wrap=isinstance(data, str))
    sys.stdout.write("\n".join(line.rstrip(" ") for line in captured.get().split("\n")))
    sys.stdout.flush()


def say(message: RenderableType, style: str | None = None) -> None:
    """Print a message on stderr; texts are left to the terminal to wrap, so that they copy well."""
    _console(sys.stderr).print(message, style=style, soft_wrap=isinstance(message, str))


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Show on a terminal's stderr that something goes on, and for how long; elsewhere nothing.

    There is no percentage: how far an engine has come would tell about the rows.
    """
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    console = _console(sys.stderr)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        progress.add_task(what, total=None)
        yield


def write(text: str) -> None:
    """Write a text to stdout as it is, in UTF-8 whatever the terminal speaks."""
    sys.stdout.flush()
    if hasattr(sys.stdout, "buffer"):
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()
    else:
        sys.stdout.write(text)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> Table:
    """A table whose first columns, ``left`` of them, are set to the left."""
    is_plain = not _console(sys.stdout).is_terminal
    made = Table(box=None if is_plain else box.SIMPLE_HEAD, pad_edge=False)
    for number, name in enumerate(head):
        made.add_column(name, justify="left" if number < left else "right")
    for row in rows:
        made.add_row(*row)
    return made


def show_bar(spent: float, limit: float) -> None:
    """Draw how much of a limit is spent, where there is a terminal."""
    if not _console(sys.stdout).is_terminal:
        return
    style = "green" if spent < 0.75 * limit else "yellow" if spent < limit else "red"
    line = Table.grid()
    line.add_row(ProgressBar(limit, spent, _BAR_WIDTH, complete_style=style, finished_style=style))
    show(line)


def _console(stream: TextIO) -> Console:
    width = None if stream.isatty() else _ANY_WIDTH
    return Console(file=stream, width=width, markup=False, emoji=False, highlight=False)
