"""The diagnosis beside an answer, `discreet ask --diagnose`: how much caps and bounds cut."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from decimal import Decimal
from typing import TYPE_CHECKING

from discreet._exact import fraction
from discreet.cli._answers import say_cost
from discreet.cli._exit_codes import failure_of, say_failure
from discreet.cli._failures import FailureExit
from discreet.cli._output import show, write_json
from discreet.errors import BudgetExceeded

if TYPE_CHECKING:
    from discreet.accounting import PrivacyLoss
    from discreet.query import Diagnosis, Question, QuestionPrice
    from discreet.query._toml._declared_files import TableFile


def check_both(
    declared: "TableFile",
    question: "Question",
    named: "QuestionPrice",
    epsilon: Decimal | None,
    *,
    confidence: Decimal,
    by: str,
    request: str | None,
) -> None:
    """Refuse, before the question is paid, a diagnosis that would be refused after it. A request
    may have paid for one or both before: what was paid costs nothing again."""
    if epsilon is None:
        return
    from discreet.query._questions._admission import admits_all
    from discreet.query._questions._diagnosis import DiagnosisOf, diagnosis_loss

    asked = DiagnosisOf.of(question.table.source, question.plan)
    of_diagnosis = diagnosis_loss(asked, epsilon=fraction(epsilon), confidence=confidence)
    of_question = question.price(named, confidence).privacy_loss
    both = [(of_question, request), (of_diagnosis, request and diagnosis_request(request))]
    if not admits_all(declared.open_ledger(), both, by):
        raise BudgetExceeded(
            "the ledger has too little left for the question and its diagnosis together; name a "
            "smaller epsilon, or leave --diagnose out"
        )


def diagnosed(
    question: "Question",
    epsilon: Decimal | None,
    *,
    confidence: Decimal,
    by: str,
    request: str,
    is_shown: bool,
) -> dict[str, object]:
    """Pay for a diagnosis, show it in words unless it is for JSON, and return it as JSON; nothing
    without a price."""
    if epsilon is None:
        return {}
    found = question.diagnose(
        epsilon=epsilon, confidence=confidence, by=by, request=diagnosis_request(request)
    )
    if is_shown:
        show("")
        for line in repr(found).splitlines():
            show(line)
    say_cost("diagnosis", found.receipt, found.privacy_loss, Decimal(0))
    return {"diagnosis": _json(found)}


def write_both(answer: Mapping[str, object], diagnose: Callable[[], Mapping[str, object]]) -> None:
    """Write a paid answer as JSON, with the members that ``diagnose`` adds. If the diagnosis fails,
    its failure takes their place, since the answer was paid."""
    try:
        cuts = diagnose()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # shown by its own rule
        failure = failure_of(error)
        say_failure(failure)
        write_json({**answer, "diagnosis": failure.to_json()})
        raise FailureExit(failure.kind.exit_code) from None
    write_json({**answer, **cuts})


def diagnosis_request(request: str) -> str:
    """The request id of the diagnosis beside a question."""
    return f"{request} (diagnosis)"


def _json(found: "Diagnosis") -> dict[str, object]:
    """The shares that are cut, the cost and the receipt."""
    loss: PrivacyLoss = found.privacy_loss
    return {
        "cuts": [asdict(cut) for cut in found.cuts],
        "rows_left_out": found.rows_left_out,
        "confidence": float(found.confidence),
        "privacy_loss": json.loads(loss.to_json()),
        "receipt": json.loads(found.receipt.to_json()),
    }
