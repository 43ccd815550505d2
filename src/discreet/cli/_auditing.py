"""``discreet audit``: measure the privacy of a user's own function."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli._failures import REFUSED
from discreet.cli._options import JsonOption, above_zero, from_zero
from discreet.cli._output import progress, say, show, write_json

if TYPE_CHECKING:
    from discreet.accounting import PrivacyLoss

_NO_DELTA = Decimal(0)
_SAMPLES = 100_000


def audit(
    mechanism: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:FUNCTION",
            help="A function of a dataset, or of a dataset and a number of outputs.",
            show_default=False,
        ),
    ],
    pairs: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:PAIRS",
            help="A list of pairs of neighbouring datasets.",
            show_default=False,
        ),
    ],
    *,
    epsilon: Annotated[
        Decimal | None,
        typer.Option("--epsilon", metavar="NUMBER", parser=above_zero, help="The claimed epsilon."),
    ] = None,
    delta: Annotated[
        Decimal,
        typer.Option("--delta", metavar="NUMBER", parser=from_zero, help="The claimed delta."),
    ] = _NO_DELTA,
    claim: Annotated[
        str | None,
        typer.Option(
            "--claim", metavar="EXPRESSION", help="The claim as terms, such as 'Gaussian(4)'."
        ),
    ] = None,
    samples: Annotated[
        int,
        typer.Option("--samples", metavar="NUMBER", min=1, help="Outputs drawn of each dataset."),
    ] = _SAMPLES,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="PATH", help="Write a report in words to this file."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure the privacy of a function of your own from its outputs; refute a claim or not.

    The exit code is 3 if the claim is refuted. No ledger is charged: use made-up data.

    Example:

    discreet audit release:noisy_count release:pairs --epsilon 1
    """
    if (epsilon is None) == (claim is None):
        raise typer.BadParameter("give either --epsilon or --claim", param_hint="'--epsilon'")
    if claim is not None and delta:
        raise typer.BadParameter("it belongs to --epsilon", param_hint="'--delta'")
    from discreet.audit import report
    from discreet.audit._black_box import CONFIDENCE, black_box_in_steps

    if html is not None and not html.parent.is_dir():
        raise typer.BadParameter(f"the folder {html.parent} is missing", param_hint="'--html'")
    claimed = epsilon if claim is None else _loss(claim)
    # Functions of the user may import more modules, and may print, at each call
    with _current_folder(), redirect_stdout(sys.stderr), progress("drawing outputs") as advance:
        function, datasets = _imported(mechanism), _imported(pairs)
        found = black_box_in_steps(
            function,
            datasets,  # type: ignore[arg-type]  # checked by the audit
            claimed,
            delta=delta,
            samples=samples,
            confidence=CONFIDENCE,
            progress=advance,
        )
    if html is not None:
        html.write_text(report(found).html(), encoding="utf-8")
        say(f"wrote {html}")
    if as_json:
        write_json(json.loads(found.to_json()))
    else:
        show(repr(found))
    if found.is_refuted:
        raise typer.Exit(REFUSED)


def _loss(text: str) -> "PrivacyLoss":
    from discreet.accounting import parse

    return parse(text)


def _imported(place: str) -> object:
    """The object of this name in a module, which may lie in the current folder."""
    from discreet.audit._draws import located

    module, _, name = place.partition(":")
    if not (module and name):
        raise typer.BadParameter(f"{place!r}: give MODULE:NAME, such as release:noisy_count")
    try:
        found = import_module(module)
    except (Exception, SystemExit) as error:
        raise typer.BadParameter(f"{place!r}: {located(error)}") from error
    if not hasattr(found, name):
        file = getattr(found, "__file__", None) or "which is built in"
        raise typer.BadParameter(f"{place!r}: the module {module} ({file}) has no {name}")
    return getattr(found, name)


@contextmanager
def _current_folder() -> Iterator[None]:
    """Import from the current folder, also while a function runs: its imports may come late."""
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        with suppress(ValueError):  # the user's code may change the path
            sys.path.remove(folder)
