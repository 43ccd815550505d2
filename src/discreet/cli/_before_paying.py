"""Before a command pays or unlocks: the price that was meant, warnings about useless answers, and
the question whether to go on."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import typer

from discreet._exact import shown
from discreet.cli._failures import Declined, UsageError
from discreet.cli._output import say
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from discreet.query import Forecast, Question, QuestionPrice
    from discreet.query._toml._declared_files import TableFile

_OPTIONS = {"within": "--within", "group_size": "--group-size"}


def asked_price(
    question: "Question",
    epsilon: Decimal | None,
    within: Decimal | Mapping[str, Decimal] | None,
    others: "QuestionPrice",
    *,
    group_size: int | None,
    confidence: Decimal,
) -> "QuestionPrice":
    """The price by ``epsilon`` or by accuracy, with the delta, noise and weights of ``others``."""
    if epsilon is None and within is None:
        raise UsageError("Missing option '--epsilon', or '--within'.")
    if epsilon is not None and within is not None:
        raise typer.BadParameter("use it without --epsilon", param_hint="'--within'")
    if epsilon is not None:
        return replace(others, epsilon=epsilon)
    assert within is not None
    try:
        found = question.for_error(
            within=within,
            group_size=group_size,
            confidence=confidence,
            delta=others.delta,
            noise=others.noise,
            weights=others.weights,
        )
    except InvalidArgument as error:
        argument, _, text = f"{error}".partition(": ")
        if argument not in _OPTIONS:
            raise
        raise typer.BadParameter(text, param_hint=f"'{_OPTIONS[argument]}'") from None
    noise = "" if found.noise is None else f", by {found.noise.value} noise"
    say(f"this accuracy needs ε = {shown(found.epsilon)}{noise}")
    return found


def warn(predicted: "Forecast", *, is_asked: bool) -> None:
    """Show the warnings of a forecast; on a terminal, ask whether to go on if ``is_asked``."""
    for warning in predicted.warnings:
        say(f"warning: {warning}", "yellow")
    if predicted.warnings and is_asked:
        confirm("Pay for this answer?", otherwise="nothing was paid or read")


def confirm(question: str, *, otherwise: str) -> None:
    """On a terminal, ask whether to go on; `Declined` unless the reply is yes."""
    if not is_at_terminal():
        return
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Declined(otherwise)


def is_at_terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def is_repeated(declared: "TableFile", by: str, request: str | None) -> bool:
    """Whether this analyst's request was charged before, so that it costs nothing."""
    if request is None or not declared.ledger.exists():
        return False
    return declared.open_ledger().has_request(request, by)
