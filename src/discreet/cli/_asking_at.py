"""Commands with ``--at``: a service answers in place of a table here, and its ledger pays."""

import json
import secrets
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from discreet._exact import fraction
from discreet.cli import _format
from discreet.cli._answers import answer_table, show_forecast, write_file
from discreet.cli._before_paying import warn
from discreet.cli._diagnosing import diagnosis_request, write_both
from discreet.cli._failures import Stopped, UsageError
from discreet.cli._output import busy, say, show, table, write, write_json
from discreet.errors import UselessAnswerWarning

if TYPE_CHECKING:
    from discreet.accounting import PrivacyLoss
    from discreet.query import Noise
    from discreet.service import RemoteAnswer, RemoteQuestion, RemoteTable, RemoteTables

DELTA = Fraction(1, 10**6)  # at which a cost is shown, where there is none without
_FREE = "request {0}: repeat it with --request {0} for the same answer, free of charge"
_MAYBE = "request {0} may have been paid: repeat it with --request {0}, which is charged once"


@dataclass(frozen=True, slots=True)
class AnswerOutput:
    """Where an answer goes: JSON, CSV, a Parquet file, or a table; and the file of its receipt. Or
    only a forecast is shown."""

    as_json: bool
    as_csv: bool
    parquet: Path | None
    receipt: Path | None
    is_forecast: bool = False


@dataclass(frozen=True, slots=True)
class RemotePrice:
    """The price of a question to a service."""

    epsilon: Decimal
    delta: Decimal
    confidence: Decimal
    noise: "Noise | None"

    @staticmethod
    def of(
        epsilon: Decimal | None, delta: Decimal, confidence: Decimal, noise: "Noise | None"
    ) -> "RemotePrice":
        """The price, which must have an epsilon."""
        if epsilon is None:
            raise UsageError("Missing option '--epsilon'.")
        return RemotePrice(epsilon, delta, confidence, noise)

    @property
    def named(self) -> dict[str, Any]:  # Any: arguments of different types
        """The arguments of a question's methods."""
        noise = None if self.noise is None else self.noise.value
        numbers = {"epsilon": self.epsilon, "delta": self.delta, "confidence": self.confidence}
        return {**numbers, "noise": noise}


def ask_at(
    question: "RemoteQuestion",
    price: RemotePrice,
    output: AnswerOutput,
    *,
    request: str | None,
    is_asked: bool,
    diagnose: Decimal | None = None,
) -> None:
    """Ask the service, which charges the share of the token's name, and show the answer."""
    if output.is_forecast:
        show_forecast(question.forecast(**price.named), price.delta, as_json=output.as_json)
        return
    # 1. the forecast may warn, but not of an earlier answer, which is free
    predicted = question.forecast(**price.named)
    is_repeat = request is not None and question.table.is_paid(request)
    if predicted.warnings and not is_repeat:
        warn(predicted, is_asked=is_asked)
    # 2. the answer, and its cost
    id_ = secrets.token_hex(8) if request is None else request
    with _stopped(id_), busy("asking"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UselessAnswerWarning)  # it was shown above
        answer = question.release(**price.named, request=id_)
    say(_FREE.format(id_))
    if not output.as_json:
        _show_answer(answer, output)
    for note in answer.notes:
        say(note)
    if (path := output.receipt) is not None:
        write_file(path, lambda: path.write_text(f"{answer.receipt}\n", "utf-8"))
    _say_new(None if is_repeat else request)
    cost = _format.cost(answer.privacy_loss, fraction(price.delta))
    say(f"this question cost {cost}, once for this request", "green")

    # 3. what caps and bounds cut, if that is asked for
    def cuts() -> dict[str, object]:
        if diagnose is None:
            return {}
        found = question.diagnose(
            epsilon=diagnose, confidence=price.confidence, request=diagnosis_request(id_)
        )
        if not output.as_json:
            show(f"\n{found['text']}")
        cost = _format.cost(loss_of(found), Fraction(0))
        say(f"this diagnosis cost {cost}, once for this request", "green")
        return {"diagnosis": found}

    if output.as_json:
        write_both(answer.facts, cuts)
    else:
        cuts()


@contextmanager
def _stopped(request: str) -> Iterator[None]:
    """Within, a stop by Ctrl-C names the request, which the service may have paid."""
    try:
        yield
    except KeyboardInterrupt:
        raise Stopped(_MAYBE.format(request), request) from None


def _say_new(request: str | None) -> None:
    if request is not None:
        say(f"request {request} is new for this token's name: no earlier answer was found")


def _show_answer(answer: "RemoteAnswer", output: AnswerOutput) -> None:
    if output.as_csv:
        write(answer.to_csv())
    elif (path := output.parquet) is not None:
        write_file(path, lambda: answer.to_parquet(path))
    else:
        show(answer_table(answer.cells(), len(answer.keys)))


def explain_at(question: "RemoteQuestion", price: RemotePrice, *, as_json: bool) -> None:
    """Show the assumptions, the cost and the errors, as the service explains them."""
    sections = question.explain(**price.named)
    if as_json:
        write_json({"explanation": sections})
        return
    for title, lines in sections.items():
        show(Text(title, "bold"))
        for line in lines:
            show(f"  - {line}")


def check_at(
    asked: "RemoteTable",
    column: str,
    *,
    epsilon: Decimal,
    confidence: Decimal,
    request: str | None,
    as_json: bool,
) -> None:
    """Let the service check a column's declaration, for a charge."""
    id_ = secrets.token_hex(8) if request is None else request
    with _stopped(id_), busy("checking"):
        found = asked.share_of_null(column, epsilon=epsilon, confidence=confidence, request=id_)
    say(_FREE.format(id_))
    if not as_json:
        show(found["text"])
    cost = _format.cost(loss_of(found), Fraction(0))
    say(f"this check cost {cost}, once for this request", "green")
    if as_json:
        write_json(found)


def list_at(asked: "RemoteTables") -> None:
    """List the tables of the service with their declared columns."""
    for facts in asked.declarations():
        show(Text(f"{facts['name']}: protects {facts['unit']}", "bold"))
        rows = [[column["name"], column["type"], *_bounds(column)] for column in facts["columns"]]
        show(table(["column", "type", "from", "to", "keys"], rows, left=5))


def _bounds(column: Mapping[str, Any]) -> list[str]:  # Any: JSON
    """The bounds and the keys of a column, as texts."""
    ends = ["" if (end := column.get(name)) is None else str(end) for name in ("lower", "upper")]
    keys = column.get("keys")
    return [*ends, ", ".join(map(str, keys)) if isinstance(keys, list) else ""]


def budget_at(asked: "RemoteTable", *, as_json: bool) -> None:
    """Show the charges that the token may see, and the spent and the remaining part."""
    found, entries = asked.budget(), asked.history()
    if as_json:
        write_json({"table": asked.name, **found, "history": entries})
        return
    rows = [
        [
            str(one["number"]),
            when(one),
            one["by"],
            one["purpose"],
            _format.cost(loss_of(one), DELTA),
        ]
        for one in entries
        if one["kind"] == "charge"
    ]
    show(table(["", "when (UTC)", "by", "what", "cost"], rows, left=4))
    show_left(found)


def show_left(found: Mapping[str, Any]) -> None:  # Any: JSON
    """Show the spent and the remaining part of a budget and its shares, and whether it is
    locked."""
    shares = ((f"share {one['share']}: ", one) for one in found["shares"])
    for name, use in (("", found), *shares):
        left = f"one more question may cost at most ε = {_format.rounded_down(use['left'])}"
        show(f"{name}spent {_format.rounded_up(use['spent'])} of {use['limit']}; {left}")
    if found["is_locked"]:
        say("It is locked until its owner acts.", "red")


def when(one: Mapping[str, Any]) -> str:  # Any: JSON
    """The time of an entry."""
    return f"{datetime.fromisoformat(one['at']).astimezone(UTC):%Y-%m-%d %H:%M}"


def loss_of(facts: Mapping[str, Any]) -> "PrivacyLoss":  # Any: JSON
    """The privacy loss among these facts."""
    from discreet.accounting import PrivacyLoss

    return PrivacyLoss.from_json(json.dumps(facts["privacy_loss"]))


def verify_at(receipt: str, tables: "RemoteTables") -> str:
    """Let the service check a receipt, whoever paid; the check in words."""
    name = tables.check_receipt(receipt)
    return f"{tables.service.url} states that the ledger of {name} has this charge"
