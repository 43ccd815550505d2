"""A progress bar on a terminal: step, loss, epsilon so far, time left."""

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

PATIENCE = 2.0  # seconds before a bar is shown
BETWEEN = 0.5  # seconds between updates of the figures


@contextmanager
def progress(training: TrainingRun) -> Iterator[Callable[[], None]]:
    """Yields a function to call after each step.

    The bar is shown on stderr if that is a terminal, where the reader may see the data: the loss is
    not private. Nothing is shown elsewhere.
    """
    if not sys.stderr.isatty():
        yield lambda: None
        return
    bar = _bar()
    task = bar.add_task(
        "", total=training.plan.steps, completed=_steps_so_far(training), figures=""
    )
    later = Timer(PATIENCE, bar.start)
    later.daemon = True
    later.start()
    try:
        yield _Updates(training, bar, task)
        bar.update(task, completed=_steps_so_far(training), figures=_figures(training))
    finally:
        later.cancel()
        later.join()
        bar.stop()


class _Updates:
    """Updates the bar after each step, and its figures less often: epsilon takes time."""

    def __init__(self, training: TrainingRun, bar: "Progress", task: "TaskID") -> None:
        self.training, self.bar, self.task = training, bar, task
        self.last = -math.inf

    def __call__(self) -> None:
        self.bar.update(self.task, completed=_steps_so_far(self.training))
        if time.monotonic() - self.last >= BETWEEN:
            self.bar.update(self.task, figures=_figures(self.training))
            self.last = time.monotonic()


def _bar() -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as TimeLeft

    return Progress(
        TextColumn("step"),
        MofNCompleteColumn(),
        BarColumn(20),
        TextColumn("{task.fields[figures]}", markup=False),
        TimeLeft(),
        TextColumn("left"),
        console=Console(stderr=True),
    )


def _steps_so_far(training: TrainingRun) -> int:
    return training.report().taken


def _figures(training: TrainingRun) -> str:
    """Loss and epsilon, which is rounded up."""
    last = training.not_private
    loss = "-" if last is None or math.isnan(last.loss) else f"{last.loss:.4g}"
    spent = float(_thousandths_up(training.report().epsilon))
    return f"loss {loss} (not private)  ε {spent:.3f} of {training.plan.epsilon:.3f}"


def _thousandths_up(number: float) -> Fraction:
    return Fraction(math.ceil(fraction(number) * 1000), 1000)
