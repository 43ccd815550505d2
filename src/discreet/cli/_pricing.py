"""``discreet price``: the cost of accesses, or the parameter that meets a target."""

import json
import math
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet._budget import Limit
from discreet._exact import decimal_up, fraction, shown
from discreet.cli import _format
from discreet.cli._failures import UsageError
from discreet.cli._options import FileOption, JsonOption, above_zero, from_zero
from discreet.cli._output import say, show, write_json
from discreet.cli._planning import show_plan
from discreet.errors import NoBound

if TYPE_CHECKING:
    from fractions import Fraction

    from discreet.accounting import Calibration, Expression, PrivacyLoss

_FILE = Path("discreet.toml")
_NO_DELTA = Decimal(0)
_DIGITS = 6


def price(
    expression: Annotated[
        str | None,
        typer.Argument(
            metavar="EXPRESSION",
            help="The accesses, such as '1000 * Gaussian(1.1) + Pure(0.1)'.",
            show_default=False,
        ),
    ] = None,
    *,
    delta: Annotated[
        Decimal,
        typer.Option(
            "--delta", metavar="NUMBER", parser=from_zero, help="Show epsilon at this delta."
        ),
    ] = _NO_DELTA,
    epsilon: Annotated[
        Decimal | None,
        typer.Option(
            "--epsilon",
            metavar="NUMBER",
            parser=above_zero,
            help="Show delta at this epsilon; with --find, the target.",
        ),
    ] = None,
    find: Annotated[
        str | None,
        typer.Option(
            "--find",
            metavar="NAME",
            help="Find the best value of this name for which epsilon stays within the target.",
        ),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan", metavar="PATH", help="Plan the questions in this file, in place of terms."
        ),
    ] = None,
    as_json: JsonOption = False,
    file: FileOption = _FILE,
) -> None:
    """Show the cost of accesses, written as terms, or of a plan of questions; reads no data.

    Examples:

    discreet price "1000 * PoissonSampled(Gaussian(1.1), rate=256/60000)" --delta 1e-5

    discreet price "1000 * Gaussian(sigma)" --find sigma --epsilon 3 --delta 1e-5

    discreet price "steps * Gaussian(8)" --find steps --epsilon 3 --delta 1e-5

    discreet price --plan month.toml
    """
    if (expression is None) == (plan is None):
        raise UsageError("Give either EXPRESSION or --plan.")
    if plan is not None:
        if delta or epsilon is not None or find is not None:
            raise typer.BadParameter("its file names epsilon and delta", param_hint="'--plan'")
        show_plan(plan, file, as_json=as_json)
        return
    assert expression is not None
    from discreet.accounting import Expression

    read = Expression.of(expression)
    _check_names(read, find)
    if find is None:
        _show_price(read.loss(), delta, epsilon, as_json=as_json)
    elif epsilon is None:
        raise typer.BadParameter("--find needs a target: give --epsilon", param_hint="'--epsilon'")
    else:
        found = _calibration(read, find, epsilon, delta)
        _show_value(found, find, epsilon, one=_one_of(read, find), as_json=as_json)


def _check_names(read: "Expression", find: str | None) -> None:
    """Refuse names in the expression other than the one to find."""
    names = sorted(read.names)
    if find is not None and find not in names:
        there = f"it has {', '.join(names)}" if names else "write the name in place of a number"
        raise typer.BadParameter(f"the expression has no {find}; {there}", param_hint="'--find'")
    if others := [name for name in names if name != find]:
        advice = f"{', '.join(others)}: give a number in its place"
        raise typer.BadParameter(
            advice if find else f"{advice}, or find it by --find {others[0]}",
            param_hint="'EXPRESSION'",
        )


def _calibration(
    read: "Expression", name: str, epsilon: Decimal, delta: Decimal
) -> "Calibration[Fraction] | Calibration[int]":
    from discreet.accounting import calibrate, calibrate_count

    if name in read.counts:
        return calibrate_count(
            lambda value: read.loss({name: value}), epsilon=epsilon, delta=delta, name=name
        )
    return calibrate(
        lambda value: read.loss({name: value}), epsilon=epsilon, delta=delta, name=name
    )


def _one_of(read: "Expression", name: str) -> "PrivacyLoss | None":
    """The single privacy loss, if the expression is a count of equal ones."""
    if name not in read.counts:
        return None
    one = read.loss({name: 1})
    return one if read.loss({name: 3}) == 3 * one else None


def _show_price(
    loss: "PrivacyLoss", delta: Decimal, epsilon: Decimal | None, *, as_json: bool
) -> None:
    explanation, ends = loss.explain(delta), loss.interval(delta)
    reached = None if epsilon is None else loss.delta(epsilon)
    # 1. for programs
    if as_json:
        if reached is None:
            _check_bound(explanation.epsilon, delta)
        shown_values: dict[str, object] = {
            "epsilon": _finite(explanation.epsilon),
            "delta": float(delta),
            "interval": {
                "lower": _finite(ends.lower),
                "upper": _finite(ends.upper),
                "is_wide": ends.is_wide,
            },
            "theorems": {name: _finite(figure) for name, figure in explanation.figures.items()},
            "privacy_loss": json.loads(loss.to_json()),
        }
        if epsilon is not None:
            shown_values["at_epsilon"] = {"epsilon": float(epsilon), "delta": reached}
        write_json(shown_values)
        return
    # 2. for people
    if reached is None or delta or math.isfinite(explanation.epsilon):
        show(str(explanation))
        show(str(ends))
    if reached is not None and epsilon is not None:
        show(f"delta at epsilon = {epsilon:g}: {_rounded_up(reached)}")
    else:
        _check_bound(explanation.epsilon, delta)


def _check_bound(epsilon: float, delta: Decimal) -> None:
    if math.isinf(epsilon):
        raise NoBound(
            f"no theorem bounds its epsilon at delta = {delta:g}: give a larger delta, such as "
            "--delta 1e-6"
        )


def _show_value(
    found: "Calibration[Fraction] | Calibration[int]",
    name: str,
    epsilon: Decimal,
    *,
    one: "PrivacyLoss | None",
    as_json: bool,
) -> None:
    """Show the value that was found. For a count of equal charges, also show how many of them a
    ledger admits."""
    # 1. the value and its cost
    value = shown(fraction(found.value))
    if not as_json:
        show(f"{name} = {value}")
    cost = _format.spent_text(fraction(found.epsilon), found.delta)
    which = "smallest" if found.is_least else "largest"
    say(f"the {which} value that fits: it costs {cost}, of at most ε = {epsilon:g}")
    # 2. how many of equal charges a ledger admits
    count = None
    if one is not None:
        from discreet.accounting import Filter

        limit = Limit(epsilon, found.delta)
        chosen = Filter.for_limit(limit)
        count = chosen.count_left(chosen.start, one)
        say(f"a ledger with the limit {limit} admits {count} of them, charged one by one")
    if as_json:
        shown_values: dict[str, object] = {
            "name": name,
            "value": json.loads(value),
            "epsilon": found.epsilon,
            "delta": float(found.delta),
            "is_least": found.is_least,
            "privacy_loss": json.loads(found.loss.to_json()),
        }
        if count is not None:
            shown_values["admitted_one_by_one"] = count
        write_json(shown_values)


def _rounded_up(delta: float) -> str:
    return shown(decimal_up(fraction(delta), _DIGITS)) if delta else "0"


def _finite(number: float) -> float | None:
    """The number, or None, since JSON has no infinity."""
    return number if math.isfinite(number) else None
