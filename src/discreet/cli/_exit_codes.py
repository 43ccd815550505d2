"""Exit codes: the one place that turns an error into an exit code and a text."""

import logging
import os
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

from discreet.cli._output import say
from discreet.errors import (
    BudgetExceeded,
    ComputationFailed,
    DeclarationError,
    DiscreetError,
    InvalidArgument,
    LedgerDiffers,
    LedgerLocked,
    ReceiptDiffers,
    Refused,
)

USAGE, REFUSED, BUDGET, FAILED = 2, 3, 4, 5
INTERRUPTED = 130  # as a shell counts an end by Ctrl-C

_CODES: tuple[tuple[type[DiscreetError], int], ...] = (
    (InvalidArgument, USAGE),
    (DeclarationError, USAGE),
    (Refused, REFUSED),
    (LedgerLocked, REFUSED),
    (LedgerDiffers, REFUSED),
    (ReceiptDiffers, REFUSED),
    (BudgetExceeded, BUDGET),
    (DiscreetError, FAILED),
)

_owners_log = logging.getLogger("discreet.owner")


def code_of(error: DiscreetError) -> int:
    """The exit code of one of our errors."""
    return next(code for kind, code in _CODES if isinstance(error, kind))


def run(command: Callable[[], object]) -> int:
    """Run a command, show its error, and return the exit code. The text of an unexpected error may
    contain a row, so only the owner's log shows it."""
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # a library's warning may depend on the data
    try:
        command()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(bool(end.code))
    except KeyboardInterrupt:
        code = INTERRUPTED
    except DiscreetError as error:
        code = code_of(error)
        _show(error)
    except Exception:  # noqa: BLE001  # any other error may depend on the data
        code = FAILED
        _owners_log.exception("a command failed unexpectedly")
        say(
            "error: an unexpected failure; what was paid stays paid. "
            f"Only the owner's log shows its cause: {owners_file()}",
            "red",
        )
    if code == INTERRUPTED:
        say("stopped; what was paid stays paid", "yellow")
    return code


def _show(error: DiscreetError) -> None:
    say(f"error: {error}", "red")
    if isinstance(error, ComputationFailed):
        say(f"The log is {owners_file()}. After reading it: discreet unlock TABLE --reason '…'")


def log_beside(ledger: Path) -> None:
    """Send the owner's log to ``<ledger>.log``, which is created by the first record."""
    for handler in _owners_log.handlers[:]:
        if isinstance(handler, _OwnersFile):
            _owners_log.removeHandler(handler)
    _owners_log.addHandler(_OwnersFile(ledger.with_name(f"{ledger.name}.log").absolute()))


def owners_file() -> Path:
    """The path of the owner's log."""
    return next(
        handler.path for handler in _owners_log.handlers if isinstance(handler, _OwnersFile)
    )


class _OwnersFile(logging.Handler):
    """A log file that only its owner can read."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        lines = logging.Formatter("%(asctime)s UTC %(message)s")
        lines.converter = time.gmtime
        self.setFormatter(lines)

    def emit(self, record: logging.LogRecord) -> None:
        """Append the record. If that fails, stay silent, since the record may contain a row."""
        with suppress(OSError), open(self.path, "a", encoding="utf-8", opener=_private) as file:
            file.write(f"{self.format(record)}\n")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def survive(stream: TextIO) -> None:
    """Make a stream replace characters that its terminal can't show, instead of failing."""
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors="replace")
