"""Functions of the user that `discreet audit` runs, and the options and ends of its commands."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from decimal import Decimal
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from discreet.cli._failures import REFUSED
from discreet.cli._options import above_zero, from_zero
from discreet.cli._output import say, show, write_json
from discreet.errors import DiscreetError

if TYPE_CHECKING:
    from discreet.accounting import PrivacyLoss


def _page(text: str) -> Path:
    """A file whose folder exists: an audit may run for hours before it writes."""
    if not (path := Path(text)).parent.is_dir():
        raise typer.BadParameter(f"the folder {path.parent} is missing")
    return path


ClaimedEpsilonOption = Annotated[
    Decimal | None,
    typer.Option("--epsilon", metavar="NUMBER", parser=above_zero, help="The claimed epsilon."),
]
ClaimedDeltaOption = Annotated[
    Decimal,
    typer.Option("--delta", metavar="NUMBER", parser=from_zero, help="The claimed delta."),
]
ClaimOption = Annotated[
    str | None,
    typer.Option(
        "--claim", metavar="EXPRESSION", help="The claim as terms, such as 'Gaussian(4)'."
    ),
]
HtmlOption = Annotated[
    Path | None,
    typer.Option("--html", metavar="PATH", parser=_page, help="Write a report in words here."),
]
NO_DELTA = Decimal(0)


class AuditResult(Protocol):
    """The result of any audit."""

    def to_json(self) -> str:
        """The result as JSON."""
        ...


def claimed(
    epsilon: Decimal | None, delta: Decimal, claim: str | None
) -> "Decimal | PrivacyLoss | None":
    """The claim that the options state, or ``None``; delta is stated beside it."""
    if claim is not None and epsilon is not None:
        raise typer.BadParameter("give either --epsilon or --claim", param_hint="'--epsilon'")
    if epsilon is None and delta:
        raise typer.BadParameter("it belongs to --epsilon", param_hint="'--delta'")
    if claim is None:
        return epsilon
    from discreet.accounting import parse

    return parse(claim)


def needed(stated: "Decimal | PrivacyLoss | None") -> "Decimal | PrivacyLoss":
    """The claim, which must be stated."""
    if stated is None:
        raise typer.BadParameter("give either --epsilon or --claim", param_hint="'--epsilon'")
    return stated


def imported(place: str) -> Any:  # Any: a function or value of the user's own
    """The object of this name in a module, which may lie in the current folder."""
    from discreet.audit._draws import located

    module, _, name = place.partition(":")
    if not (module and name):
        raise typer.BadParameter(f"{place!r}: give MODULE:NAME, such as release:noisy_count")
    try:
        found = import_module(module)
    except (Exception, SystemExit) as error:
        raise typer.BadParameter(f"{place!r}: {located(error)}") from error
    try:
        return reduce(getattr, name.split("."), found)
    except AttributeError as error:
        file = getattr(found, "__file__", None) or "which is built in"
        raise typer.BadParameter(
            f"{place!r}: the module {module} ({file}) has no {name}"
        ) from error


@contextmanager
def users_code() -> Iterator[None]:
    """Run code of the user: it may import from the current folder, and print, at each call. An
    error of it is shown with its place; the data are made up, so it holds no private row."""
    from discreet.audit._draws import located

    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        with redirect_stdout(sys.stderr):
            yield
    except (DiscreetError, typer.BadParameter):
        raise
    except (Exception, SystemExit) as error:
        raise typer.BadParameter(located(error)) from error
    finally:
        with suppress(ValueError):  # the user's code may change the path
            sys.path.remove(folder)


def end(result: AuditResult, html: Path | None, *, as_json: bool) -> None:
    """Show a result, write its report, and exit by whether it has a fault."""
    from discreet.audit import report

    found = report(result)
    if html is not None:
        html.write_text(found.html(), encoding="utf-8")
        say(f"wrote {html}")
    if as_json:
        write_json(json.loads(result.to_json()))
    else:
        show(repr(result))
    if found.has_fault:
        raise typer.Exit(REFUSED)
