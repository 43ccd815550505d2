"""Exit codes: the one place that turns an error into an exit code and a text.

With ``--json``, the text is one JSON object on stdout.
"""

import logging
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from io import TextIOWrapper
from itertools import takewhile
from pathlib import Path
from typing import TextIO

from discreet.cli._failures import (
    INTERRUPTED,
    CommandFailure,
    Declined,
    FailureExit,
    Stopped,
    UsageError,
    error_kind,
    usage_text,
)
from discreet.cli._output import say, write_json
from discreet.errors import ComputationFailed, DiscreetError

_owners_log = logging.getLogger("discreet.owner")


def run(command: Callable[[], object], *, as_json: bool = False) -> int:
    """Run a command, show its failure, and return the exit code."""
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # a library's warning may depend on the data
    failure = None
    try:
        returned = command()
        code = returned if isinstance(returned, int) else 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(bool(end.code))
    except FailureExit as shown:
        return shown.exit_code
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Exception as error:  # noqa: BLE001  # each is shown by its own rule
        failure = failure_of(error)
        code = failure.kind.exit_code
    if code == INTERRUPTED and failure is None:
        failure = failure_of(KeyboardInterrupt())
    if failure is not None:
        say_failure(failure)
        if as_json:
            write_json(failure.to_json())
    return code


def is_for_programs(arguments: Sequence[str]) -> bool:
    """Whether a command line asks for JSON, even if it has mistakes."""
    options = takewhile(lambda argument: argument != "--", arguments)
    return "--json" in options


def failure_of(error: BaseException) -> CommandFailure:
    """The failure in words. The text of an unexpected error may contain a row, so only the owner's
    log shows it."""
    if isinstance(error, KeyboardInterrupt | Stopped):
        advice, request = "", None
        if isinstance(error, Stopped):
            advice, request = f"{error}", error.request
        kind = error_kind(KeyboardInterrupt())
        return CommandFailure(kind, "stopped; what was paid stays paid", advice, request)
    kind = error_kind(error)
    if isinstance(error, UsageError):  # only for programs; else the parser shows it
        return CommandFailure(kind, usage_text(error))
    if isinstance(error, ComputationFailed):
        return CommandFailure(kind, f"{error}", _advice(error))
    if isinstance(error, DiscreetError | Declined):
        return CommandFailure(kind, f"{error}")
    _owners_log.exception("a command failed unexpectedly")
    return CommandFailure(
        kind,
        "an unexpected failure; what was paid stays paid. "
        f"Only the owner's log shows its cause: {owners_file()}",
    )


def _advice(error: ComputationFailed) -> str:
    """Where the cause is logged: by the service, if its client says so, or else here."""
    after = "After reading it: discreet unlock TABLE --reason '…'"
    notes: list[str] = getattr(error, "__notes__", [])
    return " ".join(notes) or f"The log is {owners_file()}. {after}"


def say_failure(failure: CommandFailure) -> None:
    """Say on stderr why a command failed, and what to do."""
    is_decision = failure.kind.name in ("interrupted", "declined")
    said = failure.message if is_decision else f"error: {failure.message}"
    say(said, "yellow" if is_decision else "red")
    if failure.hint:
        say(failure.hint)


def log_to(path: Path) -> None:
    """Send the owner's log to this file, which is created by the first record."""
    for handler in _owners_log.handlers[:]:
        if isinstance(handler, _OwnersFile):
            _owners_log.removeHandler(handler)
    _owners_log.addHandler(_OwnersFile(path.absolute()))


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


def replace_unprintable(stream: TextIO) -> None:
    """Make a stream replace characters that its terminal can't show, instead of failing."""
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors="replace")
