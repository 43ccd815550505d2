"""Output of commands: data on stdout, messages on stderr.

On a terminal the output has colours (unless NO_COLOR is set) and fits the width; elsewhere it is
plain, and its lines are never broken. Control characters in texts are shown as escapes: analysts
write some of these texts, and a terminal would obey them.
"""

import json
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TextIO
from unicodedata import category

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType, RenderResult
from rich.measure import Measurement
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress_bar import ProgressBar
from rich.table import Column, Table
from rich.text import Text

_ANY_WIDTH = 100_000
_BAR_WIDTH = 40
_UNSEEN = (
    "Cc",
    "Cf",
    "Cn",
    "Co",
    "Cs",
    "Zl",
    "Zp",
)  # of Unicode: control, format, and no characters
_PATIENCE = 2.0  # seconds without a bar


def show(data: RenderableType) -> None:
    """Print data on stdout, without trailing spaces. On a terminal, lines break between words and
    never inside a number; nothing is cut off."""
    console = _console(sys.stdout)
    if isinstance(data, str):
        data = _visible(data, "\n")
    if isinstance(data, str) and console.is_terminal:
        lines = (part for line in data.split("\n") for part in _broken(line, console.width))
        data = "\n".join(lines)
    with console.capture() as captured:
        console.print(data, soft_wrap=isinstance(data, str), crop=False)
    sys.stdout.write("\n".join(line.rstrip(" ") for line in captured.get().split("\n")))
    sys.stdout.flush()


def say(message: RenderableType, style: str | None = None) -> None:
    """Print a message on stderr. The terminal wraps long texts, so that they copy whole."""
    if isinstance(message, str):
        message = _visible(message, "\n")
    _console(sys.stderr).print(message, style=style, soft_wrap=isinstance(message, str))


@contextmanager
def busy(work: str) -> Iterator[None]:
    """Show a spinner and the elapsed time on a terminal's stderr, whether the ``work`` was paid,
    and from two seconds on how to stop; elsewhere nothing.

    There is no percentage: an engine's progress would depend on the rows.
    """
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="crop")),
        TimeElapsedColumn(),
        StopColumn(),
    )
    console = _console(sys.stderr)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task(f"paying, then {work}", total=None)
        with at_charge(lambda: progress.update(task, description=f"paid; {work}")):
            yield


@contextmanager
def at_charge(act: Callable[[], object]) -> Iterator[None]:
    """Call this function when a ledger of this process records a charge, as its log tells."""

    class Charges(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if isinstance(record.args, tuple) and record.args[1:2] == ("charge",):
                act()

    log, handler = logging.getLogger("discreet.ledger"), Charges(logging.INFO)
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.setLevel(level)
        log.removeHandler(handler)


class StopColumn(ProgressColumn):
    """How to stop, from two seconds on."""

    def render(self, task: Task) -> Text:
        """The text, or nothing yet."""
        is_late = (task.elapsed or 0) > _PATIENCE
        return Text("Ctrl-C stops it, and says what was paid" if is_late else "", "dim")


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A function of the steps done and of all steps. On a terminal's stderr it shows a bar, from
    two seconds on; elsewhere nothing."""
    console = _console(sys.stderr)
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as shown:
        task = shown.add_task(what, total=None, visible=False)
        start = monotonic()

        def advance(done: int, whole: int) -> None:
            late = monotonic() - start > _PATIENCE
            shown.update(task, completed=done, total=whole, visible=late)

        yield advance


def write_json(shown: object) -> None:
    """Write the JSON of a command that was asked for it. It is the command's last act, since a
    failure after it would add a second object."""
    write(json.dumps(shown, indent=2, default=str) + "\n")


def write(text: str) -> None:
    """Write a text to stdout unchanged, always in UTF-8."""
    sys.stdout.flush()
    if hasattr(sys.stdout, "buffer"):
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()
    else:
        sys.stdout.write(text)


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    left: int = 1,
    narrow: "FittedTable | None" = None,
) -> "FittedTable":
    """A table whose first ``left`` columns are aligned to the left; no number is cut or broken.
    ``narrow`` is another form of it, for terminals on which its columns don't fit."""
    cells = tuple(tuple(map(_visible, row)) for row in rows)
    return FittedTable(tuple(map(_visible, head)), cells, left, narrow)


@dataclass(frozen=True, slots=True)
class FittedTable:
    """A table that adapts to the width: texts are broken between words; if the columns still don't
    fit, its narrow form is shown, or each row becomes a block of lines ``name: value``."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int
    narrow: "FittedTable | None" = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table, or one block for each row."""
        style = box.SIMPLE_HEAD if console.is_terminal else None
        unlimited = options.update(width=_ANY_WIDTH)
        needs = self._needs()
        natural = [best for _, best in needs]
        frame = Measurement.get(console, unlimited, self._table(style, natural)).maximum
        widths = _widths(needs, options.max_width - frame + sum(natural))
        if widths is None and self.narrow is not None:
            yield self.narrow
        elif widths is None:
            for line in self._blocks(options.max_width):
                yield Text(line, no_wrap=True, overflow="ignore")
        else:
            yield self._table(style, widths)

    def _table(self, style: box.Box | None, widths: Sequence[int]) -> Table:
        made = Table(box=style, pad_edge=False)
        for i, (name, width) in enumerate(zip(self.head, widths, strict=True)):
            justify: JustifyMethod = "left" if i < self.left else "right"
            made.add_column(name, justify=justify, width=width, overflow="fold")
        for row in self.rows:
            made.add_row(*row)
        return made

    def _needs(self) -> list[tuple[int, int]]:
        """The least and the best width of each column. Names, and texts on the left, may break
        between words; numbers and intervals stay on one line."""
        needs = []
        for i, name in enumerate(self.head):
            cells = [row[i] for row in self.rows]
            whole = [word for cell in cells for word in cell.split()] if i < self.left else cells
            least = max(map(cell_len, [" ", *name.split(), *whole]))
            needs.append((least, max(map(cell_len, [" ", name, *cells]))))
        return needs

    def _blocks(self, width: int) -> Iterator[str]:
        for number, row in enumerate(self.rows):
            yield from [""] * (number > 0)
            for name, value in zip(self.head, row, strict=True):
                if value:
                    yield from _broken(f"{name}: {value}" if name else value, width)


def _widths(needs: Sequence[tuple[int, int]], width: int) -> list[int] | None:
    """A width for each column; None if the least widths don't fit. Columns that need the smallest
    addition are widened first."""
    widths = [least for least, _ in needs]
    spare = width - sum(widths)
    if spare < 0:
        return None
    for i in sorted(range(len(needs)), key=lambda i: needs[i][1] - needs[i][0]):
        more = min(spare, needs[i][1] - needs[i][0])
        widths[i] += more
        spare -= more
    return widths


def _broken(line: str, width: int) -> Iterator[str]:
    """The parts of the line, broken between words only; the terminal breaks longer words."""
    indent = " " * (len(line) - len(line.lstrip(" ")) + 2)
    first, *words = line.lstrip(" ").split(" ")
    made = indent[2:] + first
    for word in words:
        if cell_len(f"{made} {word}") > width:
            yield made
            made = indent + word
        else:
            made += f" {word}"
    yield made


def near(place: object) -> str:
    """A file or an address; a file below the working folder by its path from there."""
    path, here = Path(str(place)), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(place)


def _visible(text: str, allowed: str = "") -> str:
    """The text with its control and format characters as escapes, apart from those allowed."""
    if text.isprintable():
        return text
    return "".join(
        repr(each)[1:-1] if category(each) in _UNSEEN and each not in allowed else each
        for each in text
    )


def show_bar(spent: float, limit: float) -> None:
    """Draw a bar of the spent share of a limit, on a terminal only."""
    if not _console(sys.stdout).is_terminal:
        return
    style = "green" if spent < 0.75 * limit else "yellow" if spent < limit else "red"
    width = min(_BAR_WIDTH, _console(sys.stdout).width)
    line = Table.grid()
    line.add_row(ProgressBar(limit, spent, width, complete_style=style, finished_style=style))
    show(line)


def _console(stream: TextIO) -> Console:
    width = None if stream.isatty() else _ANY_WIDTH
    return Console(file=stream, width=width, markup=False, emoji=False, highlight=False)
