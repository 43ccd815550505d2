"""How far a run has come, on a terminal: step, loss, epsilon so far, time left."""

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from threading import Timer
from typing import TYPE_CHECKING

from discreet._exact import fraction
from discreet.train._training_run import TrainingRun

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE = 2.0  # seconds in which nothing is shown
BETWEEN = 0.5  # seconds for which a figure stays


@contextmanager
def progress(training: TrainingRun) -> Iterator[Callable[[], None]]:
    """Gives what is to be called after each step. The bar is for a terminal on stderr, where
    whoever reads may see the data: the loss is not private. Elsewhere nothing is shown."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    bar = _bar()
    task = bar.add_task("", total=training.plan.steps, completed=_taken(training), told="")
    later = Timer(PATIENCE, bar.start)
    later.daemon = True
    later.start()
    try:
        yield _Teller(training, bar, task)
        bar.update(task, completed=_taken(training), told=_told(training))
    finally:
        later.cancel()
        later.join()
        bar.stop()


class _Teller:
    """Tells a bar what a run has done, at most every so often: epsilon takes its time."""

    def __init__(self, training: TrainingRun, bar: "Progress", task: "TaskID") -> None:
        self.training, self.bar, self.task = training, bar, task
        self.last = -math.inf

    def __call__(self) -> None:
        self.bar.update(self.task, completed=_taken(self.training))
        if time.monotonic() - self.last >= BETWEEN:
            self.bar.update(self.task, told=_told(self.training))
            self.last = time.monotonic()


def _bar() -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as TimeLeft

    return Progress(
        TextColumn("step"),
        MofNCompleteColumn(),
        BarColumn(20),
        TextColumn("{task.fields[told]}", markup=False),
        TimeLeft(),
        TextColumn("left"),
        console=Console(stderr=True),
    )


def _taken(training: TrainingRun) -> int:
    return training.report().taken


def _told(training: TrainingRun) -> str:
    """Loss and epsilon; the latter is exact, and rounded up."""
    seen = training.not_private
    loss = "-" if seen is None or math.isnan(seen.loss) else f"{seen.loss:.4g}"
    spent = float(_thousandths_up(training.report().epsilon))
    return f"loss {loss} (not private)  ε {spent:.3f} of {training.plan.epsilon:.3f}"


def _thousandths_up(number: float) -> Fraction:
    return Fraction(math.ceil(fraction(number) * 1000), 1000)
