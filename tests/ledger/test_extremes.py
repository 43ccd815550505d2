"""Extreme numbers, texts and files either work or raise an error of ours."""

import itertools
import json
import random
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet import Bounded, mechanisms, release
from discreet._budget import AnyLimit, Limit, MuLimit, RenyiLimit, Request, RhoLimit
from discreet._checks import LONGEST_TEXT
from discreet.accounting import (
    Approximate,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PrivacyLoss,
    Pure,
    RandomizedResponse,
    Term,
    Zcdp,
    parse,
)
from discreet.errors import DiscreetError, InvalidArgument
from discreet.ledger import Ledger
from discreet.mechanisms import Part, RealSensitivity
from discreet.mechanisms._sensitivity import Sensitivity
from discreet.mechanisms._serialize import deserialize, serialize
from discreet.noise import SecureBits
from tests.ledger.kit import PERSON, charges, made, pay

NINES = "9" * 5000
NUMBERS: list[Any] = [
    10**999,
    Fraction(1, 10**999),
    1e-300,
    1e300,
    5e-324,
    1.7e308,
    10**100,
    1e-20,
    (10**5000),
    float("nan"),
    float("inf"),
    -1,
    0,
    True,
    None,
    "1",
]
COUNTS = [1, 10**9, 10**999, 10**5000]
LIMITS: list[AnyLimit] = [
    Limit(1, 1e-6),
    Limit(1),
    Limit(1e300, 1e-300),
    Limit(1e-300, 1e-300),
    RhoLimit(1e-300),
    MuLimit(1e300),
    RenyiLimit({2: 1}),
]
TERMS: list[Callable[..., Term]] = [
    Pure,
    Zcdp,
    Gaussian,
    Laplace,
    DiscreteLaplace,
    RandomizedResponse,
    lambda number: Approximate(number, 1e-300),
]
CASES = list(itertools.product(TERMS, NUMBERS, COUNTS, LIMITS))


@pytest.mark.parametrize("part", range(4))
def test_extreme_losses_are_charged_or_refused(part: int) -> None:
    """A random part of all cases of terms, numbers, counts and limits."""
    for term, number, count, limit in random.Random(part).sample(CASES, 30):
        ledger = Ledger.in_memory(unit=PERSON, limit=limit)
        with suppress(DiscreetError):
            pay(ledger, count * PrivacyLoss.of(term(number)))
        with suppress(DiscreetError):
            str(ledger.spent())
        assert charges(ledger) in (0, 1)


MECHANISMS: list[Callable[[Any], object]] = [
    mechanisms.DiscreteLaplace,
    mechanisms.Gaussian,
    mechanisms.DiscreteGaussian,
    lambda number: mechanisms.Laplace(number, step=1),
    lambda number: mechanisms.Laplace(1, step=number),
]


@pytest.mark.parametrize("which", range(len(NUMBERS)))
@pytest.mark.parametrize("place", [0, 1, pytest.param(2, marks=pytest.mark.long), 3, 4])
def test_extreme_scales_are_drawn_or_refused(place: int, which: int) -> None:
    number = NUMBERS[which]
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(10**6, 1e-6))
    whole = Bounded(lambda: 1, sensitivity=1, unit=PERSON, name="x")
    with suppress(DiscreetError):
        mechanism: Any = MECHANISMS[place](number)
        bounded: Any = whole
        if isinstance(mechanism, mechanisms.Laplace):
            step = mechanism.step
            sensitivity = RealSensitivity(l1=1)
            bounded = Bounded.real(
                lambda: 1.0, sensitivity=sensitivity, step=step, unit=PERSON, name="x"
            )
            release(bounded, mechanism, ledger)
            return
        release(bounded, mechanism, ledger)
        mechanism.sample(0, SecureBits())
    with suppress(DiscreetError):
        str(ledger.spent())


WEIRD: list[Any] = ["x" * (LONGEST_TEXT + 1), 10**5000, "a\x00b", "\ud800", b"x", None, "", 3.0]
CALLS: dict[str, Callable[[Ledger, Any], object]] = {
    "purpose": lambda ledger, value: ledger.charge(Pure(0), purpose=value, by="x"),
    "by": lambda ledger, value: ledger.charge(Pure(0), purpose="x", by=value),
    "loss": lambda ledger, value: ledger.charge(value, purpose="x", by="x"),
    "request": lambda ledger, value: pay(ledger, Pure(0), Request(value, "body")),
    "body": lambda ledger, value: pay(ledger, Pure(0), Request("id", value)),
    "no request": lambda ledger, value: pay(ledger, Pure(0), value),
    "reason": lambda ledger, value: ledger.unlock(value, "x"),
    "owner": lambda ledger, value: ledger.unlock("x", value),
    "lock": lambda ledger, value: ledger.lock(value),
    "plan": lambda ledger, value: ledger.reserve(
        pay(ledger, Pure(0)), PrivacyLoss.of(Pure(0)), count=1, of=1, plan=value
    ),
    "steps": lambda ledger, value: ledger.reserve(
        pay(ledger, Pure(0)), PrivacyLoss.of(Pure(0)), count=value, of=value, plan="x"
    ),
    "path": lambda _, value: Ledger.open(value),
    "new path": lambda _, value: Ledger.create(value, unit=PERSON, limit=Limit(1)),
    "backup": lambda ledger, value: ledger.backup(value),
    "unit": lambda _, value: Ledger.in_memory(unit=value, limit=Limit(1)),
    "limit": lambda _, value: Ledger.in_memory(unit=PERSON, limit=value),
    "epsilon": lambda _, value: Limit(value),
    "name": lambda _, value: Bounded(lambda: 1, sensitivity=1, unit=PERSON, name=value),
}


@pytest.mark.parametrize("call", CALLS)
def test_extreme_texts_are_held_or_refused(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(1))
    for value in WEIRD:
        with suppress(DiscreetError):
            CALLS[call](ledger, value)
    ledger.verify()
    ledger.history()


@pytest.mark.parametrize("call", ["purpose", "by", "body", "reason", "owner", "plan"])
def test_texts_have_a_longest_length(call: str) -> None:
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(1))
    ledger.lock(pay(ledger, Pure(0))) if call in ("reason", "owner") else None
    before = len(ledger.history())
    with pytest.raises(InvalidArgument, match=f"{LONGEST_TEXT + 1} characters"):
        CALLS[call](ledger, "x" * (LONGEST_TEXT + 1))
    assert len(ledger.history()) == before + (call == "plan")
    CALLS[call](ledger, "x" * LONGEST_TEXT)
    ledger.verify()


def test_a_request_of_too_many_numbers_is_refused_before_it_is_paid() -> None:
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(1))
    part = Part("x", (1001, 1000), Sensitivity(l1=1))
    bounded = Bounded.together(dict, parts=(part,), unit=PERSON, name="x")
    mechanism = mechanisms.Together({"x": mechanisms.DiscreteLaplace(10)})
    with pytest.raises(InvalidArgument, match=r"1001000 numbers.*without a request"):
        release(bounded, mechanism, ledger, request="first")
    assert charges(ledger) == 0


def test_answers_of_thousands_of_digits_are_stored() -> None:
    for answer in (10**5000, -(10**5000), {"x": (10**5000, 1)}, 10**4000 - 1):
        assert deserialize(serialize(answer)) == answer


def test_arrays_of_thousands_of_digits_are_stored() -> None:
    answer = np.array([10**5000, -1], dtype=object)
    assert deserialize(serialize(answer)).tolist() == answer.tolist()


FILES = [
    "[" * 100_000,
    '{"number":' * 20_000,
    f'{{"number":{NINES},"digest":"x"}}',
    '{"number":true,"digest":"x"}',
    '{"number":1e400,"digest":""}',
    '{"number":-1,"digest":"x"}',
    "[]",
    "1",
    "",
    "\x00",
    "é",
]


@pytest.mark.parametrize("text", FILES, ids=lambda text: text[:12])
def test_an_anchor_of_any_content_is_refused(tmp_path: Path, text: str) -> None:
    ledger, anchor = made(tmp_path / "x"), tmp_path / "anchor"
    anchor.write_text(text, encoding="utf-8")
    with pytest.raises(DiscreetError):
        Ledger.open(tmp_path / "x", anchor=anchor)
    assert charges(ledger) == 0


WRITTEN = [
    f"Pure({NINES})",
    f"{NINES}*Pure(1)",
    f"Gaussian(1e{NINES})",
    "(" * 5000 + "Pure(1)" + ")" * 5000,
    f"Pure(1/{NINES})",
    f"Pure(0.{NINES})",
    "-" * 9999 + "Pure(1)",
    "Pure(1e-999999999)",
    "[" * 100_000,
    '{"terms":' * 30_000,
    json.dumps({"terms": [{"term": "Pure", "count": 1, "epsilon": NINES}], "unit": None}),
    json.dumps({"terms": [{"term": "Pure", "count": 1, "epsilon": "1e999999999"}], "unit": None}),
    f'{{"terms":[{{"term":"Pure","count":{NINES},"epsilon":"1"}}],"unit":null}}',
]


@pytest.mark.parametrize("text", WRITTEN, ids=lambda text: text[:20])
@pytest.mark.parametrize("read", [parse, PrivacyLoss.from_json])
def test_losses_of_any_text_are_read_or_refused(read: Callable[[str], object], text: str) -> None:
    with suppress(DiscreetError):
        read(text)
