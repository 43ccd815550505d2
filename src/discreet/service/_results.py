"""Forecasts, explanations, answers and diagnoses as JSON; all of it may leave."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from decimal import Decimal
from fractions import Fraction
from typing import Any

from discreet._budget import Receipt
from discreet._exact import decimal_up, fraction, shown
from discreet.accounting import PrivacyLoss
from discreet.query import (
    Answer,
    Diagnosis,
    Forecast,
    NullShare,
    QuestionExplanation,
    QuestionPrice,
    Suggestion,
)
from discreet.query._toml._proposed import ProposedType

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


def share_json(found: NullShare) -> dict[str, Any]:  # Any: JSON
    """The share of a column's values that became NULL, the cost and the receipt."""
    return {
        "column": found.column,
        "type": found.type,
        "share": found.share,
        "share_low": found.low,
        "share_high": found.high,
        "confidence": float(found.confidence),
        "text": str(found),
        **_payment_json(found.privacy_loss, Decimal(0), found.receipt),
    }


def look_json(proposed: Mapping[str, ProposedType]) -> dict[str, Any]:  # Any: JSON
    """The columns of a source, with proposed types."""
    return {
        "columns": [
            {
                "name": name,
                "type": None if one.type is None else one.type.value,
                "formats": list(one.formats),
                "zone": one.zone,
                "decimals": one.decimals,
            }
            for name, one in proposed.items()
        ]
    }


def suggestion_json(found: Suggestion, delta: Decimal) -> dict[str, Any]:  # Any: JSON
    """The suggested bounds and keys, or rows of a unit, the cost and the receipt."""
    (release,) = found.releases
    return {
        "rows_of_unit": found.rows if found.about_rows else None,
        "suggested": [
            {
                "name": name,
                "type": column.type.value,
                "lower": _plain(column.lower),
                "upper": _plain(column.upper),
                "keys": None if column.keys is None else [str(key) for key in column.keys],
            }
            for name, column in found.columns.items()
            if name in found.found
        ],
        "text": repr(found),
        **_payment_json(found.privacy_loss, delta, release.receipt),
    }


def _plain(end: object) -> str | None:
    """A suggested bound with all its digits; its denominator is a power of two."""
    if not isinstance(end, Fraction):
        return None
    return f"{Decimal(end.numerator) / Decimal(end.denominator):f}"


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
