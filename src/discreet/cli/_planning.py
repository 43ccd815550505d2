"""``discreet price --plan``: several questions to a table planned together."""

import json
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.cli._options import above_zero, from_zero
from discreet.cli._output import near, say, show, table, write_json
from discreet.errors import DeclarationError

if TYPE_CHECKING:
    from discreet.query import Workload
    from discreet.query._toml._declared_files import TableFile

_SETTINGS = {"table", "epsilon", "delta", "questions"}
_LARGEST = 1_000_000  # bytes


def show_plan(path: Path, file: Path, *, as_json: bool) -> None:
    """Show the plan of the questions in a file, its cost, and how often it fits into the budget."""
    from discreet import query

    # 1. plan
    wanted = _read(path)
    declared = query.open(file).file(wanted["table"])
    planned = query.plan_workload(
        declared.table(), wanted["questions"], epsilon=wanted["epsilon"], delta=wanted["delta"]
    )
    count, where = _count(declared, planned)
    # 2. show
    if not as_json:
        show(str(planned).split("\n", 1)[0])
        show(table(["for questions", "asked", "epsilon"], planned.rows(), left=2))
        show(f"{where} admits this plan {count:,} times, its questions charged one by one")
    say("nothing was spent or read")
    if as_json:
        shown = {
            "epsilon": planned.privacy_loss.epsilon(planned.delta),
            "delta": float(planned.delta),
            "privacy_loss": json.loads(planned.privacy_loss.to_json()),
            "questions": [
                {
                    "for": list(one.serves),
                    "asked": str(one.question.query),
                    "epsilon": float(one.price.epsilon),
                    "delta": float(one.price.delta),
                }
                for one in planned.questions
            ],
            "admitted": count,
        }
        write_json(shown)


def _count(declared: "TableFile", planned: "Workload") -> tuple[int, str]:
    """The number of times that the plan fits, and the ledger that admits them."""
    if not declared.ledger.exists():
        return planned.count_in(declared.limit), f"a new ledger with the limit {declared.limit}"
    opened = declared.open_ledger()
    return planned.count_left(
        opened.filter, opened.sums
    ), f"what is left in {near(declared.ledger)}"


def _read(path: Path) -> dict[str, Any]:  # Any: each setting its own
    """The settings of a plan's file, checked."""
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST + 1).decode()
        settings = tomllib.loads(text, parse_float=Decimal)
    except (OSError, ValueError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise DeclarationError(f"{path}: it can't be read ({why})") from None
    if not set(settings) <= _SETTINGS or not {"table", "epsilon", "questions"} <= set(settings):
        raise DeclarationError(f"{path}: a plan has table, epsilon, questions and may have delta")
    questions = settings["questions"]
    if not isinstance(questions, list) or not all(isinstance(one, str) for one in questions):
        raise DeclarationError(f"{path}: questions is a list of SQL texts")
    if not isinstance(settings["table"], str):
        raise DeclarationError(f"{path}: table is the name of a declared table")
    epsilon, delta = (str(settings.get(name, 0)) for name in ("epsilon", "delta"))
    return {**settings, "epsilon": above_zero(epsilon), "delta": from_zero(delta)}
