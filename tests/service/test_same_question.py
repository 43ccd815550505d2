"""Bodies that ask the same question are one question: repeated under one id, it is free."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from discreet.query._toml._declaration_file import read
from discreet.service._desk import Desk
from discreet.service._tokens import Role, TokenFacts
from discreet.service._work_order import Task, WorkOrder
from tests.service import kit

CALLER = TokenFacts("1", "ana", Role.ANALYST, datetime.now(UTC), is_revoked=False)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A desk without workers."""
    file: Path = kit.declare(tmp_path_factory.mktemp("service"))
    made = Desk.__new__(Desk)
    made._ledgers = {"wages": read(file)["wages"].open_ledger()}
    return made


def written(desk: Desk, **members: Any) -> bytes:  # Any: JSON
    body = {"sql": kit.BY_YEAR, "epsilon": Decimal("0.01"), "request": "1", **members}
    return desk._order(Task.ASK, CALLER, "wages", body).to_json()


@pytest.mark.parametrize(
    "members",
    [
        {"epsilon": Decimal("0.010")},
        {"epsilon": Decimal("1e-2")},
        {"delta": 0},
        {"delta": Decimal("0.0")},
        {"delta": Decimal("-0.0")},
        {"delta": Decimal("-0e-9")},
        {"confidence": Decimal("95e-2")},
        {"noise": "laplace"},
        {"noise": "laplace", "delta": Decimal("-0.0")},
    ],
    ids=repr,
)
def test_spellings_of_one_question_are_equal(desk: Desk, members: dict[str, Any]) -> None:
    assert written(desk, **members) == written(desk)


@pytest.mark.parametrize(
    "members",
    [
        {"epsilon": Decimal("0.0100000001")},
        {"delta": Decimal("1e-9")},
        {"confidence": Decimal("0.9")},
        {"noise": "gaussian"},
        {"sql": f"{kit.BY_YEAR} "},
        {"request": "2"},
    ],
    ids=repr,
)
def test_other_questions_are_not(desk: Desk, members: dict[str, Any]) -> None:
    assert written(desk, **members) != written(desk)
    with_delta = {"delta": Decimal("1e-9")}
    assert written(desk, noise="laplace", **with_delta) != written(desk, **with_delta)


def test_the_text_of_a_question_stays_as_it_was_stored() -> None:
    """Its digest is beside each stored answer: another text would refuse the repetition."""
    text = kit.order().to_json()
    assert json.loads(text) == {
        "task": "ask",
        "table": "wages",
        "sql": kit.BY_YEAR,
        "epsilon": "1",
        "delta": "0",
        "confidence": "0.95",
        "noise": None,
        "by": "ana",
        "request": "1",
    }
    assert WorkOrder.from_json(text) == kit.order()
    near = kit.order(within=Decimal(3), group_size=100, task=Task.FORECAST)
    assert WorkOrder.from_json(near.to_json()) == near
