"""The options and arguments that several commands share, each read and checked in one way."""

import getpass
import tomllib
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from discreet.query import Question
    from discreet.service import RemoteTables

_LONGEST = 200
_LONGEST_TOKEN = 1000  # bytes
_MARK = "discreet_"  # each token begins so

NoiseName = Literal["laplace", "gaussian"]


def number(text: str) -> Decimal:
    """The exact value of a decimal of at most 400 digits before or after its point."""
    try:
        exact = Decimal(text)
    except InvalidOperation:
        exact = Decimal("nan")
    if exact.is_finite() and abs(exact.adjusted()) <= 400:
        return exact
    raise typer.BadParameter(f"{text!r}: give a finite number, such as 0.5")


def above_zero(text: str) -> Decimal:
    """A number above 0."""
    return _number(text, "a finite number above 0, such as 0.5", above=True)


def from_zero(text: str) -> Decimal:
    """A number from 0 up to, but not including, 1."""
    return _number(text, "a number from 0 up to, but not including, 1, such as 1e-6", below=1)


def between(text: str) -> Decimal:
    """A number strictly between 0 and 1."""
    return _number(text, "a number strictly between 0 and 1, such as 0.95", above=True, below=1)


def small(text: str) -> Decimal:
    """A number strictly between 0 and 1, such as 1e-6."""
    return _number(text, "a number strictly between 0 and 1, such as 1e-6", above=True, below=1)


def some_text(text: str) -> str:
    """A text that is not empty, of at most 200 characters."""
    if text.strip() and len(text) <= _LONGEST:
        return text
    raise typer.BadParameter(f"{text!r}: give a text of 1 to {_LONGEST} characters")


def _number(text: str, allowed: str, *, above: bool = False, below: int | None = None) -> Decimal:
    try:
        exact = number(text)
    except typer.BadParameter:
        exact = Decimal(-1)
    if exact < 0 or (above and exact == 0) or (below is not None and exact >= below):
        raise typer.BadParameter(f"{text!r}: give {allowed}")
    return exact


def table_names(context: typer.Context, begun: str) -> list[str]:
    """The names of declared tables, for a shell's completion."""
    try:
        with Path(context.params.get("file") or "discreet.toml").open("rb") as file:
            names = tomllib.load(file).get("tables", {})
    except (OSError, ValueError):
        return []
    return [name for name in names if name.startswith(begun)]


def _table_name(context: typer.Context, text: str) -> str:
    """The name, unless it is a question that stands in its place."""
    if len(words := text.split()) > 1 and words[0].lower() in ("select", "with"):
        names = table_names(context, "")
        name = names[0] if len(names) == 1 else "TABLE"
        raise typer.BadParameter(
            f"the table's name comes before the question: discreet {context.info_name} {name} "
            f'"{words[0]} ..."'
        )
    return text


TableArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="The table's name.",
        autocompletion=table_names,
        callback=_table_name,
        show_default=False,
    ),
]
FileOption = Annotated[
    Path, typer.Option("--file", metavar="PATH", help="The file that declares the tables.")
]
SqlArgument = Annotated[
    str,
    typer.Argument(
        metavar="SQL",
        help="The question: SELECT keys and aggregates FROM the table, WHERE, GROUP BY and so on.",
        show_default=False,
    ),
]
EpsilonOption = Annotated[
    Decimal,
    typer.Option(
        "--epsilon",
        metavar="NUMBER",
        parser=above_zero,
        help="The question's cost, shared over its aggregates.",
        show_default=False,
    ),
]
OptionalEpsilonOption = Annotated[
    Decimal | None,
    typer.Option(
        "--epsilon",
        metavar="NUMBER",
        parser=above_zero,
        help="The question's cost, shared over its aggregates; or give --within.",
        show_default=False,
    ),
]
WithinOption = Annotated[
    list[str] | None,
    typer.Option(
        "--within",
        metavar="[NAME=]NUMBER",
        help="Find the least epsilon for errors of at most this; for one aggregate, or for all.",
    ),
]
DeltaOption = Annotated[
    Decimal,
    typer.Option(
        "--delta",
        metavar="NUMBER",
        parser=from_zero,
        help="Allow Gaussian noise, at this delta, where it gives the smaller error.",
    ),
]
ConfidenceOption = Annotated[
    Decimal,
    typer.Option(
        "--confidence",
        metavar="NUMBER",
        parser=between,
        help="The probability with which each interval contains the answer without noise.",
    ),
]
NoiseOption = Annotated[
    NoiseName | None,
    typer.Option("--noise", help="Use this noise instead of the one with the smaller error."),
]
WeightsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--weight",
        metavar="NAME=NUMBER",
        help="Give this aggregate a larger or smaller share of the price than 1; may be repeated.",
    ),
]
ByOption = Annotated[
    str | None,
    typer.Option(
        "--by",
        metavar="NAME",
        parser=some_text,
        help="The analyst's name in the ledger; your login, unless given.",
    ),
]
RequestOption = Annotated[
    str | None,
    typer.Option(
        "--request",
        metavar="ID",
        parser=some_text,
        help="The id of your earlier question or check: returns its answer again, free of charge.",
    ),
]
AtOption = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="URL",
        help="Ask the service at this address, by --token-file, in place of a table here.",
    ),
]
TokenFileOption = Annotated[
    Path | None,
    typer.Option("--token-file", metavar="PATH", help="The file with your token for --at."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def tables_at(url: str | None, token_file: Path | None, **others: object) -> "RemoteTables | None":
    """The tables of the service at this address; None without one. ``others`` are the options that
    a service does not take, by their names."""
    if url is None and token_file is None:
        return None
    if url is None or token_file is None:
        raise typer.BadParameter("give both, or none", param_hint="'--at' / '--token-file'")
    for name, value in others.items():
        if value:
            option = f"--{name.replace('_', '-')}"
            raise typer.BadParameter("use it without --at", param_hint=f"'{option}'")
    from discreet.service import connect

    try:
        with token_file.open("rb") as file:
            token = file.read(_LONGEST_TOKEN).decode().strip()
    except (OSError, ValueError) as mistake:
        why = mistake.strerror if isinstance(mistake, OSError) else "it is no text"
        said = f"{str(token_file)!r}: it can't be read ({why})"
        if _MARK in str(token_file):
            said = (
                "this is a token, not the path of its file: ask the owner to revoke it, since the "
                "shell's history and the list of processes have it now"
            )
        raise typer.BadParameter(said, param_hint="'--token-file'") from None
    return connect(url, token)


def weights(given: list[str] | None, question: "Question") -> dict[str, Decimal]:
    """The weights by the names of the question's aggregates."""
    return _by_name(given, question, "--weight")


def within_of(given: list[str] | None, question: "Question") -> Decimal | dict[str, Decimal] | None:
    """The largest error for all aggregates, or for each by its name."""
    if given and len(given) == 1 and "=" not in given[0]:
        try:
            return above_zero(given[0])
        except typer.BadParameter as error:
            raise typer.BadParameter(error.message, param_hint="'--within'") from None
    return _by_name(given, question, "--within") if given else None


def _by_name(given: list[str] | None, question: "Question", option: str) -> dict[str, Decimal]:
    names = [aggregate.name for aggregate in question.query.aggregates]
    found = {}
    for text in given or []:
        name, _, number_text = text.rpartition("=")
        if name not in names:
            allowed = f"give NAME=NUMBER for one of {', '.join(names)}"
            raise typer.BadParameter(f"{text!r}: {allowed}", param_hint=f"'{option}'")
        try:
            found[name] = above_zero(number_text)
        except typer.BadParameter as error:
            raise typer.BadParameter(error.message, param_hint=f"'{option}'") from None
    return found


def login() -> str:
    """The login name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no such account, as in some containers
        return "owner"
