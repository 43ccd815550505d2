"""Requests made from the description: each gets a listed status and a JSON object, and none fails.

Schemathesis makes bodies, places and headers that fit the description, and others that do not. The
workers are made up, since test_http.py has real ones.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from discreet.accounting import Pure
from discreet.errors import QueryRefused
from discreet.service import _desk, _problems
from discreet.service._app import Application
from discreet.service._desk import Desk, DeskSettings
from discreet.service._pace import RateLimit
from discreet.service._payment import Payment
from discreet.service._problems import KINDS, UNEXPECTED, ProblemKind
from discreet.service._routes import ROUTES, Route
from discreet.service._tokens import Role, TokenFacts
from discreet.service._work_order import WorkOrder
from tests.service import kit

schemathesis = pytest.importorskip("schemathesis")  # of the extra `dev`
GenerationMode = schemathesis.GenerationMode
QUICK, MANY = 10, 100  # requests of each kind
DEADLINE = 0.001
STATUSES = {
    one.name: one.status
    for one in (*vars(_problems).values(), *(kind for _, kind in KINDS))
    if isinstance(one, ProblemKind)
}


class MadeUpPool:
    """Answers every SELECT at the ordered price, and refuses everything else."""

    barriers = memory = ()

    def __init__(self, *_: object) -> None:
        pass

    def result(self, order: WorkOrder, payment: Payment | None, *, wait: float) -> dict[str, Any]:
        if not order.sql.startswith("SELECT"):
            raise QueryRefused("no SELECT")
        if payment is not None:
            loss = Pure(order.epsilon) * 1
            facts = {"purpose": order.sql, "body": "b", "is_insecure": False, "statement": None}
            payment.reply({"charge": {"privacy_loss": loss.to_json(), **facts}})
            payment.reply({"keep": {"answer": "a"}})
        return {"rows": [], "wait": wait}

    def close(self) -> None:
        pass


@contextmanager
def client(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[TestClient, list[str]]]:
    """A client of the application in this process, and a token of each role."""
    monkeypatch.setattr(_desk, "WorkerPool", MadeUpPool)
    desk = Desk(DeskSettings(kit.declare(folder)))
    try:
        app = Application(desk, RateLimit(1e9, 1e9), DEADLINE).build()
        tokens = [desk.tokens.issue(role.value, role, days=1) for role in Role]
        desk.grant(_caller(desk, tokens[0]), "wages", Role.ANALYST.value, {"epsilon": 5})
        yield TestClient(app, raise_server_exceptions=True), tokens
    finally:
        desk.close()


def _caller(desk: Desk, token: str) -> TokenFacts:
    found = desk.tokens.caller(token)
    assert found is not None
    return found


def check(answered: Any) -> None:  # Any: a response of the client
    """Raise unless this is a plain object of JSON with a status of the list."""
    found = answered.json()
    assert isinstance(found, dict)
    assert answered.headers["content-type"] == "application/json"
    if answered.status_code != 200:
        assert STATUSES[found["error"]] == answered.status_code, found
        assert found["error"] != UNEXPECTED.name
        assert len(found["message"]) < 2000


def strategies(described: Mapping[str, Any], label: str) -> st.SearchStrategy[Any]:
    """Requests of this kind that fit the description, and some that do not."""
    schema = schemathesis.openapi.from_dict(dict(described))
    (operation,) = (
        one for found in schema.get_all_operations() if (one := found.ok()).label == label
    )
    fine: st.SearchStrategy[Any] = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    if not (operation.body or operation.path_parameters):
        return fine
    odd: st.SearchStrategy[Any] = operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)
    return fine | odd


def requests(folder: Path, monkeypatch: pytest.MonkeyPatch, route: Route, count: int) -> None:
    """Send made-up requests of this kind, the same ones each time."""
    with client(folder, monkeypatch) as (http, tokens):
        described = Application(cast(Desk, None)).build().openapi()
        label, sent = f"{route.method} {route.path}", set[int]()

        @settings(
            max_examples=count,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate,),
        )
        @given(strategies(described, label), st.sampled_from(tokens), st.integers(0, 4).map(bool))
        def send(case: Any, token: str, is_served: bool) -> None:  # Any: a Case
            body = None if type(case.body).__name__ == "NotSet" else case.body
            text = body if isinstance(body, bytes | None) else json.dumps(body).encode()
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            places = {**case.path_parameters, **({"table": "wages"} if is_served else {})}
            path = re.sub(r"{(\w+)}", lambda it: quote(str(places[it[1]]), safe=""), route.path)
            answered = http.request(route.method, path, content=text, headers=headers)
            check(answered)
            sent.add(answered.status_code)

        send()
        assert sent


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_made_up_requests_get_what_the_list_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, route: Route
) -> None:
    requests(tmp_path, monkeypatch, route, QUICK)


@pytest.mark.long
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_many_made_up_requests_get_what_the_list_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, route: Route
) -> None:
    requests(tmp_path, monkeypatch, route, MANY)
