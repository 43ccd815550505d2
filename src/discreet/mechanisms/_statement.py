"""The statement of a release: its question, unit, sensitivities and mechanism, as JSON.

The ledger records its digest with the charge, and the receipt shows the statement. So a third
party can check what was assumed, and compute the privacy loss again, without the data.
"""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from typing import Any

from discreet._unit import Change, Unit
from discreet.accounting import PrivacyLoss
from discreet.errors import DiscreetError
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._discrete_gaussian import DiscreteGaussian
from discreet.mechanisms._discrete_laplace import DiscreteLaplace
from discreet.mechanisms._gaussian import Gaussian
from discreet.mechanisms._mechanism import Mechanism
from discreet.mechanisms._parts import Part
from discreet.mechanisms._sensitivity import Sensitivity
from discreet.mechanisms._together import Together

_DEEPEST = 12
_OWN = tuple(
    f"discreet.{part}." for part in ("mechanisms", "accounting", "noise", "local", "train")
)
_SAFE = 2**53  # whole numbers up to here are the same in every reader of JSON
_KNOWN = {kind.__name__: kind for kind in (DiscreteLaplace, Gaussian, DiscreteGaussian)}
_UNREADABLE = (DiscreetError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError)

Json = Any  # Any: values of JSON


def statement_of(bounded: Bounded[Any], mechanism: Mechanism[Any, Any]) -> str:  # Any: any value
    """The statement of releasing this computation by this mechanism, as canonical JSON."""
    stated = {
        "question": bounded.name,
        "unit": _unit(bounded.unit),
        "assumptions": _assumptions(bounded.facts),
        "sensitivity": bounded.basis,
        "parts": [_plain(part, _DEEPEST) for part in bounded.parts],
        "mechanism": _plain(mechanism, _DEEPEST),
    }
    return _canonical(stated)


def statement_of_plan(plan: object, *, unit: Unit, name: str, assumptions: str = "") -> str:
    """The statement of a session or a training run, which is paid as a whole: its mechanism or
    plan, whose fields are public, as canonical JSON."""
    return _canonical(
        {
            "question": name,
            "unit": _unit(unit),
            "assumptions": assumptions,
            "mechanism": _plain(plan, _DEEPEST),
        }
    )


def _canonical(stated: Mapping[str, Json]) -> str:
    return json.dumps(stated, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _unit(unit: Unit) -> Json:
    return {"column": unit.plain, "change": unit.change.value}


def stated_loss(statement: Mapping[str, Json]) -> PrivacyLoss | None:
    """The privacy loss that follows from a statement's sensitivities and noise, computed again;
    None for mechanisms other than noise added to integers."""
    try:
        unit = Unit(statement["unit"]["column"], Change(statement["unit"]["change"]))
        parts = tuple(_part(part) for part in statement["parts"])
        mechanism = statement["mechanism"]
        if mechanism["kind"] == "Together":
            joint = Bounded.together(_nothing, parts=parts, unit=unit, name="stated")
            each = {name: _noise(one) for name, one in mechanism["mechanisms"].items()}
            return Together(each).privacy_loss(joint).for_unit(unit)
        (part,) = parts
        single = Bounded(
            _nothing, sensitivity=part.sensitivity, unit=unit, name="stated", shape=part.shape
        )
        return _noise(mechanism).privacy_loss(single).for_unit(unit)
    except _UNREADABLE:
        return None


def _nothing() -> Any:
    raise AssertionError("a computation that only has bounds was run")


def _part(stated: Mapping[str, Json]) -> Part:
    if stated["kind"] != "Part":
        raise LookupError("a part of another kind")
    bounds = {name: bound for name, bound in stated["sensitivity"].items() if name != "kind"}
    exact = {name: int(str(bound), 0) for name, bound in bounds.items()}
    return Part(stated["name"], tuple(stated["shape"]), Sensitivity(**exact), stated["is_wide"])


def _noise(stated: Mapping[str, Json]) -> DiscreteLaplace | Gaussian | DiscreteGaussian:
    parameters = {name: Fraction(value) for name, value in stated.items() if name != "kind"}
    return _KNOWN[stated["kind"]](**parameters)


def _assumptions(facts: str) -> Json:
    """The facts as JSON where they are an object of JSON, else as text."""
    try:
        read = json.loads(facts, parse_constant=_not_json)
    except (ValueError, RecursionError):
        return facts
    return read if isinstance(read, dict) else facts


def _not_json(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _plain(value: object, depth: int) -> Json:
    """A public value as JSON: its fields where it is a dataclass of this package, the printed form
    of a mechanism from elsewhere, and for other objects, which may hold rows, their kind alone."""
    match value:
        case Enum():
            return _plain(value.value, depth)
        case None | bool() | str():
            return value
        case int():
            return value if abs(value) <= _SAFE else hex(value)
        case Fraction() | float():
            return str(value)
    if depth and isinstance(value, Mapping):
        named = ((key if isinstance(key, str) else repr(key), one) for key, one in value.items())
        return {key: _plain(one, depth - 1) for key, one in named}
    if depth and isinstance(value, tuple | list):
        return [_plain(one, depth - 1) for one in value]
    is_own = type(value).__module__.startswith(_OWN)  # then all its fields are public parameters
    if depth and is_own and is_dataclass(value) and not isinstance(value, type):
        shown = [field.name for field in fields(value) if field.repr]
        stated = {name: _plain(getattr(value, name), depth - 1) for name in shown}
        return {"kind": type(value).__name__, **stated}
    if all(callable(getattr(value, verb, None)) for verb in ("privacy_loss", "sample")):
        return {"kind": type(value).__name__, "text": repr(value)}
    return {"kind": type(value).__name__}
