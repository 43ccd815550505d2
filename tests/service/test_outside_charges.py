"""A charge for a computation elsewhere is recorded once for each request id, also after a crash."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from discreet import Limit, Request, Unit
from discreet.accounting import DiscreteLaplace, Gaussian, PrivacyLoss, Pure
from discreet.errors import BudgetExceeded, DiscreetError, InvalidArgument, RequestReused
from discreet.ledger import Ledger
from discreet.ledger._sqlite_store import SqliteStore
from discreet.service import _desk
from discreet.service._answers import AnswerStore
from discreet.service._desk import Desk, DeskSettings
from discreet.service._group_commit import GroupCommit
from discreet.service._outside_charges import OutsideCharge, OutsideCharges, own
from discreet.service._problems import NO_SHARE, Problem
from discreet.service._storage import open_storage
from discreet.service._tokens import Role, TokenFacts
from tests.service import kit

UNIT = Unit("person")


@dataclass(frozen=True, slots=True)
class Office:
    """Charges to the share of ana, 1 of a ledger's 2."""

    charges: OutsideCharges
    ledger: Ledger

    def charge(self, **facts: Any) -> dict[str, Any]:
        (found,) = self.charge_each(facts)
        if isinstance(found, Exception):
            raise found
        return found

    def charge_each(self, *wanted: dict[str, Any]) -> list[dict[str, Any] | Exception]:
        charges = [OutsideCharge("ana", "ana", self.body(**facts)) for facts in wanted]
        return [
            json.loads(one)["receipt"] if isinstance(one, bytes) else one
            for one in self.charges.charge_each(self.ledger, charges)
        ]

    @staticmethod
    def body(**facts: Any) -> dict[str, Any]:
        return {
            "table": "wages",
            "privacy_loss": PrivacyLoss.of(Pure(0.25)).to_json(),
            "purpose": "training",
            "request": "1",
            **facts,
        }

    @property
    def count(self) -> int:
        return self.ledger.spent().charges


@pytest.fixture
def office(tmp_path: Path) -> Office:
    ledger = Ledger.in_memory(unit=UNIT, limit=Limit(2))
    ledger.grant("ana", limit=Limit(1), by="owner")
    return Office(OutsideCharges(AnswerStore(open_storage(tmp_path / "service"))), ledger)


def test_a_repeated_request_is_charged_once(office: Office) -> None:
    first = office.charge(statement='{"unit":null}')
    assert (first["by"], first["request"], first["statement"]) == ("ana", "1", {"unit": None})
    assert office.charge(statement='{"unit":null}') == first
    assert office.count == 1
    assert office.charge(request="2") != first
    assert office.count == 2


def test_a_race_of_one_request_is_one_charge(office: Office) -> None:
    with ThreadPoolExecutor(8) as threads:
        receipts = list(threads.map(lambda _: office.charge(), range(16)))
    assert all(one == receipts[0] for one in receipts)
    assert office.count == 1


def test_a_charge_that_a_crash_cut_off_is_found_again(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Crash(Exception):
        pass

    def crash(*_: object) -> None:
        raise Crash

    with monkeypatch.context() as broken:
        broken.setattr(AnswerStore, "put", crash)
        with pytest.raises(Crash):
            office.charge(statement='{"unit":null}')
    assert office.count == 1
    found = office.charge(statement='{"unit":null}')
    assert (found["request"], found["statement"]) == ("1", {"unit": None})
    assert office.count == 1
    with pytest.raises(RequestReused):
        office.charge(purpose="another")


def test_charges_together_are_as_one_after_another(office: Office) -> None:
    """Repetitions, reused ids, bodies that are refused and the end of the share among them."""
    third = {"privacy_loss": PrivacyLoss.of(Pure(0.375)).to_json()}
    wanted: list[dict[str, Any]] = [
        {"request": "1"},
        {"request": "1"},
        {"request": "1", "purpose": "another"},
        {"request": "2", "statement": "{"},
        {"request": "2", "statement": '{"unit":null}'},
        {"request": "3", **third},
        {"request": "4", **third},
        {"request": "4"},
        {"request": "2", "statement": '{"unit":null}'},
    ]
    found = office.charge_each(*wanted)
    kinds = [type(one) for one in found]
    assert kinds == [
        *(dict, dict, RequestReused, InvalidArgument, dict, dict),
        *(BudgetExceeded, BudgetExceeded, dict),
    ]
    assert found[0] == found[1]
    assert found[4] == found[8]
    assert office.count == 3
    office.ledger.verify()


def test_charges_together_wait_for_the_disk_once(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, begin = list[int](), SqliteStore.writing

    def writing(store: SqliteStore) -> Any:  # Any: a transaction
        begun.append(1)
        return begin(store)

    monkeypatch.setattr(SqliteStore, "writing", writing)
    small = PrivacyLoss.of(Pure(0.01)).to_json()
    found = office.charge_each(
        *({"request": str(number), "privacy_loss": small} for number in range(20))
    )
    assert {type(one) for one in found} == {dict}
    assert (len(begun), office.count) == (1, 20)


def test_an_id_of_another_charge_gives_no_receipt(office: Office) -> None:
    """Such as that of a question, whose answer is being computed now."""
    loss = Pure(0.25)
    office.ledger.charge(loss, purpose="a question", by="ana", request=Request("1", "body"))
    for facts in ({}, {"purpose": "a question", "privacy_loss": (2 * loss).to_json()}):
        with pytest.raises(RequestReused):
            office.charge(**facts)
    assert office.count == 1


def noisy(scale: int) -> str:
    """A statement about a count with noise of this scale."""
    return json.dumps(
        {
            "unit": {"column": UNIT.plain, "change": UNIT.change.value},
            "mechanism": {"kind": "DiscreteLaplace", "scale": str(scale)},
            "parts": [
                {
                    "kind": "Part",
                    "name": "n",
                    "shape": [1],
                    "is_wide": False,
                    "sensitivity": dict.fromkeys(("l0", "l1", "l2_squared", "linf"), 1),
                }
            ],
        }
    )


def test_a_statement_that_implies_its_loss_is_charged(office: Office) -> None:
    loss = PrivacyLoss.of(DiscreteLaplace(4, 1)).to_json()
    made = office.charge(statement=noisy(4), privacy_loss=loss)
    assert made["statement"] == json.loads(noisy(4))


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        ({"privacy_loss": PrivacyLoss.of(Pure(5)).to_json()}, BudgetExceeded),
        ({"privacy_loss": PrivacyLoss.of(Gaussian(1)).to_json()}, BudgetExceeded),
        ({"privacy_loss": Pure(1).__repr__()}, InvalidArgument),
        ({"privacy_loss": "[" * 8000}, InvalidArgument),
        ({"privacy_loss": '{"terms": [[1, 2]], "unit": 3}'}, InvalidArgument),
        ({"statement": "{"}, InvalidArgument),
        ({"statement": '{"a": NaN}'}, InvalidArgument),
        ({"statement": "[" * 40_000}, InvalidArgument),
        # a receipt with one of these could never be checked
        *(({"statement": text}, InvalidArgument) for text in ('"a"', "1", "null", "[1]", "{}")),
        ({"statement": '{"unit":"x"}'}, InvalidArgument),
        ({"statement": '{"unit":{"column":"other","change":"one"}}'}, InvalidArgument),
        ({"statement": noisy(10)}, InvalidArgument),  # which costs 0.1, not 0.25
    ],
)
def test_a_refused_charge_leaves_its_id_free(
    office: Office, facts: dict[str, str], kind: type[DiscreetError]
) -> None:
    with pytest.raises(kind):
        office.charge(**facts)
    assert office.count == 0
    office.charge()
    assert office.count == 1


def test_a_charge_is_its_callers_own(office: Office) -> None:
    receipt = office.charge()
    named = {"number": receipt["number"], "digest": receipt["digest"]}
    assert own("ana", office.ledger, named).digest == receipt["digest"]
    for by, body in (
        ("ben", named),
        ("ana", {**named, "number": named["number"] + 1}),
        ("ana", {**named, "number": -1}),
        ("ana", {**named, "number": 10**17}),
        ("ana", {**named, "digest": "0" * 64}),
        ("ana", {**named, "digest": "../1"}),
    ):
        with pytest.raises(Problem):
            own(by, office.ledger, body)


def test_the_charge_of_a_question_pays_for_nothing_elsewhere(office: Office) -> None:
    loss = Pure(0.25)
    for request in (None, Request("1", "a" * 64)):
        paid = office.ledger.charge(loss, purpose="a question", by="ana", request=request)
        with pytest.raises(Problem):
            own("ana", office.ledger, {"number": paid.number, "digest": paid.digest})


def test_a_charge_is_one_durable_write(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """And reads nothing beside it; only the text of a statement is written elsewhere, too."""
    office.charge(request="0")
    seen = list[str]()

    def noted(kind: str) -> Callable[[SqliteStore], Any]:  # Any: a transaction
        begin = getattr(SqliteStore, kind)

        def transaction(store: SqliteStore) -> Any:  # Any: the same
            seen.append(kind)
            return begin(store)

        return transaction

    for kind in ("reading", "writing"):
        monkeypatch.setattr(SqliteStore, kind, noted(kind))
    monkeypatch.setattr(GroupCommit, "write", lambda *_: seen.append("another"))
    office.charge(request="1")
    assert seen == ["writing"]
    office.charge(request="2", statement='{"unit":null}')
    assert seen == ["writing", "writing", "another"]


def test_a_caller_without_a_share_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_desk, "WorkerPool", kit.NoWorkers)
    desk = Desk(DeskSettings(kit.declare(tmp_path)))
    ana = TokenFacts("1", "ana", Role.ANALYST, datetime.now(UTC), is_revoked=False)
    body = {"privacy_loss": (1 * Pure(0.25)).to_json(), "purpose": "x", "request": "1"}
    with pytest.raises(Problem) as refusal:
        desk.charge(ana, "wages", body)
    assert refusal.value.kind is NO_SHARE
    desk.grant(ana, "wages", "ana", {"epsilon": 1})
    with pytest.raises(InvalidArgument, match="statement"):
        desk.charge(ana, "wages", {**body, "statement": "{"})
    assert not desk.is_priced(ana, "wages", body)
    assert desk.charge(ana, "wages", body)
    assert desk.is_priced(ana, "wages", body)
    assert not desk.is_priced(ana, "fewer", body)
    assert not desk.is_priced(ana, "wages", {**body, "statement": '{"unit":null}'})
    desk.revoke_share(ana, "wages", "ana")
    with pytest.raises(Problem):
        desk.charge(ana, "wages", {**body, "request": "2"})
    assert desk.charge(ana, "wages", body)  # a repetition is free
    desk.close()


@pytest.mark.parametrize("statement", [None, '{"unit":null}'])
def test_the_receipt_is_found_by_its_request(office: Office, statement: str | None) -> None:
    facts = {} if statement is None else {"statement": statement}
    charged = office.charge(**facts)
    assert office.charges.receipt("ana", "1", [office.ledger]) == charged
    for by, request in (("ben", "1"), ("ana", "2")):
        with pytest.raises(Problem):
            office.charges.receipt(by, request, [office.ledger])
