"""The commands that no service can carry out: ``--at`` is refused there, with the reason."""

from collections.abc import Mapping
from itertools import takewhile

import typer

from discreet.cli._failures import UsageError
from discreet.cli._plain_values import PlainCommand

_OF_PLACE = "it copies the ledger's file or database: run it where the ledger lies"
_OF_FILE = "it reads a file of rows here; declare a table of a service on its pages, as its owner"
_NO_TABLE = "it reads no table, here or elsewhere: leave --at out"

REASONS: Mapping[str, str] = {
    "declare": _OF_FILE,
    "train": "it runs an example here; dp.connect(url, token)[table].ledger pays for other runs",
    "serve": "it starts a service itself",
    **dict.fromkeys(("backup", "ledger backup", "ledger export"), _OF_PLACE),
    **dict.fromkeys(("explore", "price"), _NO_TABLE),
}
_OF_AUDITS = "it runs functions of yours on made-up data, here"


def class_of(command: str) -> type[PlainCommand]:
    """The class of this command: one that refuses ``--at``, if a service can't carry it out."""
    reason = _OF_AUDITS if command.startswith("audit ") else REASONS.get(command)
    if reason is None:
        return PlainCommand

    class AtRefused(PlainCommand):
        """A command of this machine alone."""

        def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]  # Typer's own class of contexts
            for one in takewhile(lambda each: each != "--", args):
                if one.partition("=")[0] in ("--at", "--token-file"):
                    raise UsageError(f"--at: {command}: {reason}")
            return super().parse_args(ctx, args)

    return AtRefused
