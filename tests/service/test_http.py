"""A running service, over HTTP: tokens, shares, request ids, the ceiling, and silence."""

import json
import os
import re
import signal
import socket
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from discreet import Bounded, DiscreteLaplace, Unit, errors, release
from discreet._budget import receipt_checksum, receipt_text
from discreet.accounting import Pure
from discreet.ledger import Kind, check_receipt
from discreet.service import connect
from discreet.service._pace import SIZE
from discreet.service._routes import ROUTES, Route
from tests.service import kit
from tests.service.kit import Reply, Served

CANARY = "canary_7391"


DATABASES = ["sqlite", pytest.param("postgres", marks=pytest.mark.long)]


@pytest.fixture(scope="module", params=DATABASES)
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    folder, addresses = tmp_path_factory.mktemp("service"), kit.addresses_of(request.param)
    with kit.service(folder, "--workers", "1", addresses=addresses) as running:
        yield running


@pytest.fixture(scope="module")
def ana(served: Served) -> str:
    return served.token("ana", share=5)


@pytest.fixture(scope="module")
def viewer(served: Served) -> str:
    return served.token("vic", "viewer")


# tokens and roles


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_no_request_is_answered_without_a_token(served: Served, route: Route) -> None:
    method, place = route.method, re.sub(r"{\w+}", "wages", route.path)
    bad = [
        {"Authorization": ""},
        {"Authorization": served.owner},
        {"Authorization": f"Basic {served.owner}"},
        {"Authorization": f"Bearer {served.owner}x"},
        {"Authorization": f"Bearer {served.owner[:-1]}"},
        {"Authorization": f"Bearer {'x' * 60_000}"},
        {"Authorization": "Bearer é", "X-Token": served.owner, "Cookie": served.owner},
    ]
    for headers in bad[-1:] if method != "GET" else bad:
        found = served.send(method, f"{place}?token={served.owner}", headers=headers)
        assert found.status in (400, 401), headers  # 400: a header that the server itself refuses
        if found.status == 401:
            assert found.error == "unauthorized"


@pytest.mark.parametrize("role", ["analyst", "viewer"])
def test_a_role_may_do_what_is_listed_and_no_more(served: Served, role: str) -> None:
    token = served.token(f"some {role}", role)
    for route in ROUTES:
        path = re.sub(r"{\w+}", "wages", route.path)
        found = served.send(route.method, path, token=token)
        may = role in {one.value for one in route.roles}
        assert (found.status != 403 or found.error != "forbidden") == may, route


def test_the_log_names_the_token_of_a_forbidden_request(served: Served, viewer: str) -> None:
    assert served.send("GET", "/v1/status", token=viewer).status == 403
    lines = (served.folder / "stderr").read_text().splitlines()
    (last,) = [json.loads(one) for one in lines if '"GET /v1/status"' in one][-1:]
    assert (last["status"], last["role"]) == (403, "viewer")
    assert last["token"] in viewer


def test_a_revoked_token_is_refused_at_once(served: Served) -> None:
    token = served.token("ben")
    assert served.send("GET", "/v1/tables", token=token).status == 200
    listed = served.send("GET", "/v1/tokens").json["tokens"]
    (id_,) = [one["id"] for one in listed if one["name"] == "ben"]
    assert served.send("DELETE", f"/v1/tokens/{id_}").status == 200
    assert served.send("GET", "/v1/tables", token=token).status == 401


def test_the_one_who_asks_is_the_tokens(served: Served, ana: str) -> None:
    """No member, header or query string of a request names him."""
    body = {"sql": kit.BY_YEAR, "epsilon": 0.01, "request": "by", "by": "owner"}
    assert served.send("POST", "/v1/tables/wages/ask", body, token=ana).error == "bad_body"
    assert served.ask("by", token=ana).json["by"] == "ana"
    entry = next(e for e in served.ledger.history() if e.request == "by")
    assert (entry.by, entry.share) == ("ana", "ana")


# shares and the ceiling


def test_an_analyst_without_a_share_gets_nothing(served: Served) -> None:
    found = served.ask("1", token=served.token("cid"))
    assert (found.status, found.error) == (403, "no_share")


def test_a_share_bounds_its_analyst(served: Served) -> None:
    token = served.token("dan", share=0.05)
    statuses = [served.ask(f"{n}", token=token, epsilon=0.02).status for n in range(3)]
    assert statuses == [200, 200, 402]
    assert served.ask("s", token=token, epsilon=0.01).status == 200  # a refusal took nothing
    found = served.send("GET", "/v1/tables/wages/budget", token=token).json
    assert [one["share"] for one in found["shares"]] == ["dan"]
    assert 0.05 <= found["shares"][0]["spent"] < 0.0500001


def test_the_budget_shows_reserves(served: Served) -> None:
    path, run = "/v1/tables/wages/shares/run", (1 * Pure(0.1)).to_json()
    assert served.send("PUT", path, {"epsilon": 0.05, "reserve": run}).status == 402
    assert served.send("PUT", path, {"epsilon": 1, "reserve": "0.1"}).status == 400
    assert served.send("PUT", path, {"epsilon": 1, "reserve": run}).status == 200
    try:
        found = served.send("GET", "/v1/tables/wages/budget").json
        (share,) = [one for one in found["shares"] if one["share"] == "run"]
        assert 0.1 <= share["reserved"] < 0.1000001
        assert found["reserved"] == share["reserved"]
    finally:
        assert served.send("DELETE", path).status == 200


# request ids


def test_a_repeated_request_has_the_same_bytes_and_is_free(served: Served, ana: str) -> None:
    first = served.ask("again", token=ana)
    charges = served.ledger.spent().charges
    for _ in range(2):
        assert served.ask("again", token=ana, epsilon=0.010).body == first.body
    assert served.ledger.spent().charges == charges
    other = served.ask("again", token=ana, epsilon=0.02)
    assert (other.status, other.error) == (409, "request_reused")
    assert served.ask("again", token=ana).body == first.body


def test_ids_of_two_analysts_are_two_draws(served: Served, ana: str) -> None:
    eve = served.token("eve", share=1)
    both = [served.ask("mine", token=token, epsilon=0.01) for token in (ana, eve)]
    assert both[0].json["rows"] != both[1].json["rows"]  # equal by chance: below 1e-9
    assert served.send("GET", "/v1/receipts/mine", token=eve).json["by"] == "eve"
    assert served.send("GET", "/v1/receipts/again", token=eve).status == 404


def test_a_race_of_one_id_is_one_charge(served: Served, ana: str) -> None:
    charges = served.ledger.spent().charges
    with ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(lambda _: served.ask("race", token=ana), range(8)))
    assert {reply.status for reply in replies} == {200}
    assert len({reply.body for reply in replies}) == 1
    assert served.ledger.spent().charges == charges + 1


def test_a_refused_question_leaves_its_id_free(served: Served, ana: str) -> None:
    assert served.ask("free", token=ana, sql="SELECT wage FROM wages").status == 422
    assert served.ask("free", token=ana).status == 200


def test_the_receipt_of_an_answer_is_the_ledgers(served: Served, ana: str) -> None:
    served.ask("receipt", token=ana)
    found = served.send("GET", "/v1/receipts/receipt", token=ana).json
    checked = check_receipt(json.dumps(found, indent=2), served.ledger)
    assert checked.facts["by"] == "ana"


# times and sizes


def test_paid_answers_leave_at_deadlines_and_have_sizes_of_the_grid(
    served: Served, ana: str
) -> None:
    sizes, late = set(), []
    for number, sql in enumerate([kit.BY_YEAR, "SELECT COUNT(*) AS n FROM wages", "SELECT wage"]):
        start = time.monotonic()
        found = served.ask(f"time {number}", token=ana, sql=sql)
        passed = time.monotonic() - start
        due = kit.DEADLINE
        while due * 2 < passed:
            due *= 2
        late.append(passed - due)
        sizes.add(len(found.body) % SIZE)
        assert found.headers["cache-control"] == "no-store"
    assert sizes == {0}
    assert all(one >= 0 for one in late)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT year, COUNT(*) AS n, AVG(wage) AS pay FROM {} GROUP BY year",
        "SELECT COUNT(*) AS n FROM {} WHERE wage > 1000",  # no row
        "SELECT SUM(wage / (wage - wage)) AS s FROM {}",
        "SELECT MEDIAN(wage) AS m FROM {} GROUP BY job",
    ],
)
def test_neighbours_get_equal_status_headers_and_size(served: Served, sql: str) -> None:
    seen = []
    for table in ("wages", "fewer"):
        body = {"sql": sql.format(table), "epsilon": 0.01, "request": f"{table} {sql}"}
        found = served.send("POST", f"/v1/tables/{table}/ask", body)
        headers = {name: text for name, text in found.headers.items() if name != "date"}
        seen.append((found.status, headers, len(found.body)))
    assert seen[0] == seen[1]


# hostile requests


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"\x1f\x8b" + b"\x00" * 1000, {"Content-Encoding": "gzip"}, 415),
        (b"{}", {"Content-Type": "text/plain"}, 415),
        (b'{"sql": "x", "sql": "y", "epsilon": 1, "request": "h"}', {}, 400),
        (b'{"sql": "x", "epsilon": 1e999999999, "request": "h"}', {}, 400),
        (b'{"sql": "x", "epsilon": ' + b"9" * 50_000 + b', "request": "h"}', {}, 400),
        (b'{"sql": "x\\ud800", "epsilon": 1, "request": "h"}', {}, 400),
        (b"[" * 60_000, {}, 400),
        (b" " * 70_000, {}, 413),
        (b'{"sql": "' + b"(" * 19_000 + b'", "epsilon": 1, "request": "h"}', {}, 422),
        (b'{"sql": "SELECT 1; DROP TABLE wages", "epsilon": 1, "request": "h"}', {}, 422),
        (b'{"sql": "SELECT COUNT(*) FROM wages", "epsilon": -1, "request": "h"}', {}, 400),
        (b'{"sql": "SELECT COUNT(*) FROM wages", "epsilon": 1e-300, "request": "h"}', {}, 400),
    ],
)
def test_a_hostile_body_gets_a_short_problem(
    served: Served, body: bytes, headers: dict[str, str], status: int
) -> None:
    charges = served.ledger.spent().charges
    found = served.send("POST", "/v1/tables/wages/ask", body, headers=headers)
    assert found.status == status, found.body.strip()
    assert len(found.json["message"]) < 600
    assert served.ledger.spent().charges == charges


def test_paths_and_names_of_others_are_not_found(served: Served) -> None:
    for path in ("/v1/tables/%2e%2e%2fwages", "/v1/tables/nothing/budget", "/v1/../etc", "/docs"):
        assert served.send("GET", path).status == 404
    # none is sent to another path, at a host that the request names
    for path in ("/v1/tokens/", "/v1/tables/", "/healthz/"):
        assert served.send("GET", path, headers={"Host": "example.org"}).status == 404
    assert served.send("PATCH", "/v1/tables").status == 405


def test_a_slow_or_endless_body_ends(served: Served) -> None:
    """A chunked body without an end is cut off at its size."""
    head = (
        f"POST /v1/tables/wages/ask HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {served.owner}\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as connection:
        connection.sendall(head.encode())
        for _ in range(20):
            connection.sendall(b"1000\r\n" + b" " * 4096 + b"\r\n")
        assert b" 413 " in connection.recv(4096).partition(b"\r\n")[0]


# silence


def test_a_canary_stands_in_no_log_metric_or_problem(served: Served, ana: str) -> None:
    sql = f"SELECT COUNT(*) AS {CANARY} FROM wages WHERE wage > 7.3912"
    assert served.ask(CANARY, token=ana, sql=sql).status == 200
    refused = served.ask(CANARY, token=ana, sql=sql, epsilon=0.02)
    served.send("GET", f"/v1/{CANARY}?{CANARY}={CANARY}", token=ana)
    shown = [
        refused.body,
        served.send("GET", "/metrics").body,
        served.send("GET", "/healthz").body,
        (served.folder / "stderr").read_bytes(),
        (served.folder / "discreet.owner.log").read_bytes(),
    ]
    assert [text for text in shown if CANARY.encode() in text or b"7.3912" in text] == []
    everything = [path.read_bytes() for path in served.folder.iterdir()]
    for secret in (served.owner, ana):
        assert not any(secret[26:].encode() in text for text in everything)
    assert b"POST /v1/tables/{table}/ask" in shown[1]


def test_an_analyst_sees_his_own_entries_only(served: Served, ana: str, viewer: str) -> None:
    path = "/v1/tables/wages/history"
    own = served.send("GET", path, token=ana).json["entries"]
    assert own
    assert {one["by"] for one in own} <= {"ana", None}
    every = served.send("GET", path, token=viewer).json["entries"]
    assert len(every) > len(own)


# the client


def test_a_client_asks_like_a_table_here(served: Served, ana: str) -> None:
    tables = connect(served.url, ana)
    assert list(tables) == ["wages", "fewer"]
    assert ana not in repr(tables["wages"])
    question = tables["wages"].question(kit.BY_YEAR)
    predicted = question.forecast(epsilon=0.01)
    answer = question.release(epsilon=0.01, request="client")
    assert predicted.privacy_loss == answer.privacy_loss
    assert predicted.lines
    assert question.explain(epsilon=0.01)
    assert question.release(epsilon=0.01, request="client") == answer
    assert [row["year"] for row in answer.rows()] == [1980, 1981, 1982]
    assert check_receipt(answer.receipt, served.ledger).privacy_loss == answer.privacy_loss
    assert tables["wages"].budget()["charges"] == served.ledger.spent().charges
    assert tables["wages"].history()[-1]["kind"] == "answer"
    with pytest.raises(errors.QueryRefused):
        tables["wages"].sql("SELECT wage FROM wages", epsilon=0.1)
    with pytest.raises(errors.BudgetExceeded):
        tables["wages"].sql(kit.BY_YEAR, epsilon=100)
    with pytest.raises(errors.RequestReused):
        question.release(epsilon=0.02, request="client")


def test_a_client_announces_a_useless_answer_before_it_is_paid(served: Served, ana: str) -> None:
    table = connect(served.url, ana)["wages"]
    question = table.question(kit.BY_YEAR)
    with pytest.warns(errors.UselessAnswerWarning, match="at least epsilon") as seen:
        question.release(epsilon=1e-5, request="useless")
    assert [one.filename for one in seen] == [__file__]
    paid = served.ledger.spent()
    with warnings.catch_warnings():
        warnings.simplefilter("error", errors.UselessAnswerWarning)
        question.release(epsilon=1e-5, request="useless")  # paid before
        with pytest.raises(errors.UselessAnswerWarning):
            table.sql(kit.BY_YEAR, epsilon=1e-5)
        with pytest.raises(errors.UselessAnswerWarning):
            question.release(epsilon=1e-5, request="another")
    assert served.ledger.spent() == paid


def test_a_ledger_behind_a_service_pays_for_computations_here(served: Served) -> None:
    """By the same door; the service's ledger decides, and the share of the token's name pays."""
    token = served.token("fay", share=1)
    ledger = connect(served.url, token)["wages"].ledger
    people = Bounded(lambda: 41, sensitivity=1, unit=Unit("person"), name="people")
    mechanism = DiscreteLaplace.for_epsilon(0.25, people)
    found = release(people, mechanism, ledger, by="somebody else")
    checked = check_receipt(found.receipt.to_json(), served.ledger)
    assert checked.facts["by"] == "fay"
    assert checked.privacy_loss == found.privacy_loss
    with pytest.raises(errors.BudgetExceeded):
        release(people, DiscreteLaplace.for_epsilon(1, people), ledger)
    with pytest.raises(errors.WrongUnit):
        ledger.charge((1 * Pure(0.1)).for_unit(Unit("ship")), purpose="x", by="x")
    with pytest.raises(errors.Refused):
        release(people, mechanism, ledger, request="1")
    # steps of a plan
    loss = 2 * Pure(0.125)
    receipt = ledger.charge(loss, purpose="plan", by="x")
    facts: dict[str, Any] = {"count": 3, "of": 5, "plan": "digest"}
    blocks = [ledger.reserve(receipt, loss, **facts) for _ in range(2)]
    assert blocks == [range(3), range(3, 5)]
    assert ledger.reserved(receipt) == 5
    with pytest.raises(errors.SessionEnded):
        ledger.reserve(receipt, loss, **facts)
    other = connect(served.url, served.token("gus", share=1))["wages"].ledger
    for call in (other.reserved, other.lock):
        with pytest.raises(errors.Refused):
            call(receipt)
    # a failure ends the share, and stops nobody else
    fails = Bounded(lambda: 1 // 0, sensitivity=1, unit=Unit("person"), name="fails")
    with pytest.raises(errors.ComputationFailed):
        release(fails, mechanism, ledger)
    with pytest.raises(errors.Refused):
        ledger.charge(loss, purpose="again", by="x")
    assert not served.ledger.is_locked
    assert other.charge(Pure(0.1) * 1, purpose="goes on", by="x").number


# the last one, since it locks the table


@pytest.mark.long  # the quick one is in test_workers.py
def test_a_killed_worker_locks_the_table_and_says_nothing(served: Served, ana: str) -> None:
    """The kill falls before or after the charge; a table is locked only after one."""
    workers = set(children_of(served.process.pid))
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(served.ask, "killed", token=ana)
        before = len(served.ledger.history())
        while not asked.done() and len(served.ledger.history()) == before:
            time.sleep(0.001)
        for worker in workers:
            kill(worker)
        found: Reply = asked.result()
    state = served.send("GET", "/v1/status").json["locked"]
    if found.status == 500:
        assert found.error == "computation_failed"
        assert state == ["wages"]
        assert served.ask("next", token=ana).status == 423
        body = {"reason": "a test killed the worker"}
        assert served.send("POST", "/v1/tables/wages/unlock", body).status == 200
    else:  # the answer was stored before the kill
        assert found.status in (200, 503)
        assert state == []
    kinds = [entry.kind for entry in served.ledger.history()]
    assert Kind.CHARGE in kinds
    served.ledger.verify()


def children_of(process: int) -> list[int]:
    children = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for one in children for child in one.read_text().split()]


def kill(process: int) -> None:
    os.kill(process, signal.SIGKILL)


# answers again, receipts, and prices from accuracy


def test_a_stored_answer_is_read_again_by_its_analyst_only(served: Served, ana: str) -> None:
    first = served.ask("again", token=ana)
    again = served.send("GET", "/v1/answers/again", token=ana)
    assert (again.status, again.body) == (200, first.body)
    assert served.send("GET", "/v1/answers/again").error == "not_found"
    assert served.send("GET", "/v1/answers/never", token=ana).error == "not_found"


def test_a_receipt_is_checked_by_anyone_against_its_own_ledger(
    served: Served, ana: str, viewer: str
) -> None:
    asked = served.ask("checked", token=ana)
    assert asked.status == 200, asked.body
    receipt = served.send("GET", "/v1/receipts/checked", token=ana).json
    path = "/v1/tables/wages/check"
    found = served.send("POST", path, {"receipt": receipt_text(receipt)}, token=viewer)
    assert found.status == 200, found.body
    assert len(found.json["checked"]) == 3
    assert found.json["not_checked"] == ["the ledger's whole chain of entries"]
    dear = {**receipt, "by": "ben"}
    facts = {name: dear[name] for name in dear if name != "checksum"}
    forged = {**facts, "checksum": receipt_checksum(facts)}
    for text in (receipt_text(dear), receipt_text(forged), "{}", "x"):
        refused = served.send("POST", path, {"receipt": text})
        assert (refused.status, refused.error) == (422, "receipt_differs")
        assert str(served.folder) not in refused.json["message"]
    elsewhere = {"receipt": receipt_text(receipt)}
    assert served.send("POST", "/v1/tables/fewer/check", elsewhere).error == "receipt_differs"


def test_the_owner_verifies_a_ledger(served: Served, ana: str) -> None:
    entries = served.send("POST", "/v1/tables/wages/verify").json["entries"]
    assert entries == served.ledger.history()[-1].number
    assert served.send("POST", "/v1/tables/wages/verify", token=ana).error == "forbidden"


def test_a_forecast_finds_the_least_epsilon_for_an_error(served: Served, ana: str) -> None:
    asked = {"sql": kit.BY_YEAR.replace(", AVG(wage) AS pay", ""), "within": 100}
    path = "/v1/tables/wages/forecast"
    found = served.send("POST", path, asked, token=ana).json
    assert found["expected"][0]["half_width"] <= 100
    epsilon = float(found["price"]["epsilon"])
    at = {"sql": asked["sql"], "epsilon": epsilon}
    assert served.send("POST", path, at, token=ana).json["expected"] == found["expected"]
    less = {**at, "epsilon": epsilon * 0.98}
    width = served.send("POST", path, less, token=ana).json["expected"][0]["half_width"]
    assert width > 100
