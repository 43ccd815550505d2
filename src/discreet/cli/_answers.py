"""Answers and forecasts of `discreet ask`: as tables for people, as JSON for programs."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from discreet._budget import Receipt
from discreet._exact import fraction
from discreet.cli import _format
from discreet.cli._failures import FAILED
from discreet.cli._output import FittedTable, say, show, table, write, write_json

if TYPE_CHECKING:
    from discreet.accounting import PrivacyLoss
    from discreet.query import Answer, Forecast


def show_forecast(predicted: "Forecast", delta: Decimal, *, as_json: bool) -> None:
    """Show expected errors, warnings and the cost."""
    loss = predicted.privacy_loss
    if not as_json:
        rows = [
            [
                line.title,
                "" if line.group_size is None else f"{line.group_size:,}",
                line.width,
                "" if line.stddev is None else f"{line.stddev:,.4g}",
            ]
            for line in predicted.lines
        ]
        level = f"error at {float(predicted.confidence):.4g}"
        show(table(["aggregate", "rows in group", level, "standard deviation"], rows))
        for note in predicted.notes:
            show(note)
    for warning in predicted.warnings:
        say(f"warning: {warning}", "yellow")
    say(f"it would cost {_format.cost(loss, fraction(delta))}; nothing was spent or read")
    if as_json:
        write_json(forecast_json(predicted, delta))


def forecast_json(predicted: "Forecast", delta: Decimal) -> dict[str, object]:
    """The expected errors, the warnings and the cost."""
    return {
        "confidence": float(predicted.confidence),
        "expected": [asdict(line) for line in predicted.lines],
        "warnings": list(predicted.warnings),
        **({"hidden": predicted.hidden} if predicted.hidden else {}),
        **cost_json(predicted.privacy_loss, delta),
    }


def show_answer(answer: "Answer", *, as_csv: bool, parquet: Path | None) -> None:
    """Show an answer as a table or as CSV, or write it to a Parquet file."""
    if as_csv:
        write(answer.to_csv())
    elif parquet is not None:
        write_file(parquet, lambda: answer.to_parquet(parquet))
    else:
        show(answer_table(answer.cells(), len(answer.plan.query.keys)))


def answer_table(cells: Sequence[Sequence[str]], keys: int) -> FittedTable:
    """The table of an answer; a narrow terminal shows each number on a line of its own."""
    from discreet.query._answers._answer_rows import cells_by_number

    head, *rows = cells
    narrow, *lines = cells_by_number(cells, keys)
    return table(head, rows, left=keys, narrow=table(narrow, lines, left=keys + 1))


def answer_json(answer: "Answer", delta: Decimal) -> dict[str, object]:
    """The answer, its caps, bounds, cost and receipt."""
    shown: dict[str, object] = json.loads(answer.to_json())
    receipt = json.loads(answer.receipt.to_json())
    return {**shown, **cost_json(answer.privacy_loss, delta), "receipt": receipt}


def cost_json(loss: "PrivacyLoss", delta: Decimal) -> dict[str, object]:
    """A cost: epsilon at this delta, and the privacy loss itself."""
    return {
        "epsilon": loss.epsilon(delta),
        "delta": float(delta),
        "privacy_loss": json.loads(loss.to_json()),
    }


def say_cost(name: str, receipt: Receipt, loss: "PrivacyLoss", delta: Decimal) -> None:
    """Say the cost of a question, a check or a diagnosis, and what is left of the budget."""
    if receipt.stored is None:
        say(f"this {name} cost {_format.cost(loss, fraction(delta))}", "green")
    else:
        say("paid before, and free now", "green")
    if receipt.balance is not None:
        say(_format.line_of_balance(receipt.balance))


def write_file(path: Path, written: Callable[[], object]) -> None:
    """Write a file of a paid answer; the command fails if that is not possible."""
    try:
        written()
    except OSError as error:
        say(f"error: {path}: it can't be written ({error.strerror}); repeat the request", "red")
        raise typer.Exit(FAILED) from None
    say(f"wrote {path}")
