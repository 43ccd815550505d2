"""The command ``discreet``: declare a table, forecast a question, ask it, show the budget.

Each command is one function: `_declaring` (declare, tables), `_asking` (ask, explain, check),
`_pricing` (price), `_training` (train), `_exploring` (explore), `_serving` (serve), `_budgeting`
(budget, unlock, backup), `_ledgers` (ledger), `_verifying` (verify) and `_auditing` (audit, with
`_audited`). With ``--at``, `_asking_at` and `_ledgers_at` ask a service in place of a table here,
and `_at_refused` says which commands can't. They share their
options (`_options`, with `_plain_values`), texts of costs (`_format`), output (`_output`) and exit
codes (`_exit_codes`, `_failures`).
``discreet declare`` is the longest: `_facts` and `_through` read its options, `_suggesting` adds
private suggestions to them, `_proposal` makes the new file. ``discreet ask`` warns
(`_before_paying`), prints (`_answers`) and diagnoses (`_diagnosing`); `_planning` is ``discreet
price --plan``.
Nothing here decides about privacy: commands call `discreet.query`, `discreet.ledger`,
`discreet.accounting`, `discreet.train` and `discreet.audit`, each imported when it is needed.
"""

import gc
import os
import sys
from inspect import cleandoc
from pathlib import Path
from typing import Annotated

import typer
from typer.main import get_command
from typer.models import CommandInfo

from discreet._version import __version__
from discreet.cli import (
    _asking,
    _auditing,
    _budgeting,
    _declaring,
    _exploring,
    _ledgers,
    _pricing,
    _serving,
    _training,
    _verifying,
)
from discreet.cli._at_refused import class_of
from discreet.cli._exit_codes import is_for_programs, log_to, replace_unprintable, run
from discreet.cli._plain_values import PlainGroup

# Between two searches for garbage: imports make many objects, and hardly any garbage. With Python's
# 700, the searches are a sixth of the time of a small question; with this number there is none.
_ALLOCATIONS = 500_000

app = typer.Typer(
    name="discreet",
    cls=PlainGroup,
    help="Private answers from sensitive tables: exact noise, one durable budget.",
    epilog=(
        "Exit codes: 0 fine, 2 usage, 3 refused, 4 over the budget, 5 failed. "
        "Data goes to stdout, messages go to stderr."
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _name_of(registered: CommandInfo) -> str:
    """The name of a command of a group."""
    return registered.name or (registered.callback.__name__ if registered.callback else "")


def _flowing(text: str) -> str:
    """The text with each paragraph in one line, which then wraps at the width of the terminal."""
    return "\n\n".join(" ".join(one.split()) for one in cleandoc(text).split("\n\n"))


for command in (
    _declaring.declare,
    _declaring.tables,
    _asking.explain,
    _asking.ask,
    _asking.check,
    _pricing.price,
    _training.train,
    _exploring.explore,
    _serving.serve,
    _budgeting.budget,
    _budgeting.unlock,
    _budgeting.backup,
    _verifying.verify,
):
    app.command(help=_flowing(command.__doc__ or ""), cls=class_of(command.__name__))(command)
for group, name, about in (
    (_ledgers.ledgers, "ledger", "Look after one ledger: its entries, sums and shares."),
    (_auditing.audits, "audit", "Measure the privacy of functions of your own; refute claims."),
):
    for registered in group.registered_commands:
        registered.cls = class_of(f"{name} {_name_of(registered)}")
        registered.help = _flowing((registered.callback and registered.callback.__doc__) or "")
    app.add_typer(group, name=name, help=about)


def _version(*, asked: bool) -> None:
    if asked:
        typer.echo(f"discreet {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, help="Print the version.", callback=_version)
    ] = False,
) -> None:
    """Options of the command itself."""


def main() -> None:
    """Run the command line, and leave with the exit code that says how it ended."""
    gc.set_threshold(_ALLOCATIONS)
    for stream in (sys.stdout, sys.stderr):
        replace_unprintable(stream)
    log_to(Path("discreet.log"))
    as_json = is_for_programs(sys.argv[1:])
    command = get_command(app)
    code = run(
        # the parser shows mistakes in words, unless it leaves that to `run`
        lambda: command.main(prog_name="discreet", standalone_mode=not as_json),
        as_json=as_json,
    )
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # the reader closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)
