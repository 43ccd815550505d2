"""Forecasts, explanations, answers and diagnoses as JSON; all of it may leave."""

import json
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from discreet._budget import Receipt
from discreet._exact import decimal_up, fraction, shown
from discreet.accounting import PrivacyLoss
from discreet.query import Answer, Diagnosis, Forecast, QuestionExplanation, QuestionPrice

_DIGITS = 12


def forecast_json(
    predicted: Forecast, price: QuestionPrice, delta: Decimal
) -> dict[str, Any]:  # Any: JSON
    """The price, the expected errors and the warnings."""
    epsilon = shown(decimal_up(fraction(price.epsilon), _DIGITS))
    return {
        "price": {"epsilon": epsilon, "noise": price.noise and price.noise.value},
        "confidence": float(predicted.confidence),
        "expected": [asdict(line) for line in predicted.lines],
        "hidden": predicted.hidden,
        "warnings": list(predicted.warnings),
        "text": str(predicted),
        **_cost(predicted.privacy_loss, delta),
    }


def explanation_json(
    explained: QuestionExplanation, price: QuestionPrice, delta: Decimal
) -> dict[str, Any]:  # Any: JSON
    """The assumptions, the cost and the errors, in words and numbers."""
    sections = {title: list(lines) for title, lines in explained.sections}
    return {"explanation": sections, "forecast": forecast_json(explained.forecast, price, delta)}


def answer_json(answer: Answer, delta: Decimal) -> dict[str, Any]:  # Any: JSON
    """The rows, the notes, the cost and the receipt."""
    facts: dict[str, Any] = json.loads(answer.to_json())
    return {
        **facts,
        "columns": list(answer.columns),
        "notes": list(answer.notes),
        **_payment_json(answer.privacy_loss, delta, answer.receipt),
    }


def diagnosis_json(found: Diagnosis) -> dict[str, Any]:  # Any: JSON
    """The shares that caps and bounds cut, the cost and the receipt."""
    return {
        "cuts": [asdict(cut) for cut in found.cuts],
        "rows_left_out": found.rows_left_out,
        "confidence": float(found.confidence),
        "text": repr(found),
        **_payment_json(found.privacy_loss, Decimal(0), found.receipt),
    }


def _payment_json(
    loss: PrivacyLoss, delta: Decimal, receipt: Receipt
) -> dict[str, Any]:  # Any: JSON
    return {**_cost(loss, delta), "receipt": json.loads(receipt.to_json())}


def _cost(loss: PrivacyLoss, delta: Decimal) -> dict[str, Any]:  # Any: JSON
    return {
        "epsilon": loss.epsilon(delta),
        "delta": float(delta),
        "privacy_loss": json.loads(loss.to_json()),
    }
