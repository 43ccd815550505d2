"""The pages over HTTP: who sees what, and that no other site, no double click and no text of an
analyst can do harm."""

import csv
import io
import json
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from itertools import chain
from pathlib import Path

import pytest

from discreet._budget import Limit, RenyiLimit, Request
from discreet._unit import Unit
from discreet.accounting import Pure
from discreet.errors import DiscreetError, LedgerError
from discreet.ledger import Kind, Ledger
from discreet.plots import Axis, Chart
from discreet.service import _desk, _problems
from discreet.service._pace import RateLimit
from discreet.service._problems import KINDS, Problem, ProblemKind, problem_of
from discreet.service._routes import LONGEST_RECEIPT
from discreet.service._sessions import SessionStore
from discreet.service._tokens import Role
from discreet.service.pages._questions import Draft, _values, csv_text
from discreet.service.pages._shown import Bar, chart_json, in_order, refused_place
from discreet.service.pages._site import PAGES, KeptForm, _target
from discreet.service.pages._visit import Rendering, in_words, templates
from tests.service import kit
from tests.service.kit import Served
from tests.service.pages_kit import AT, Browser, alone, signed_in

# a column whose values stand in no declaration: no page may show them
MORE = 'job = { type = "text" }\n'
CANARY = "clerk"
FORMS = [path for method, path, _ in PAGES if method == "POST"]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("service")
    with kit.service(folder, "--workers", "1", more=MORE + kit.RATE) as running:
        yield running


@pytest.fixture(scope="module")
def tokens(served: Served) -> dict[str, str]:
    found = {name: served.token(name, share=4) for name in ("ana", "ben")}
    for name in found:
        served.send("PUT", f"/v1/tables/fewer/shares/{name}", {"epsilon": 4})
    return {**found, "vic": served.token("vic", "viewer"), "owner": served.owner}


@pytest.fixture
def ana(served: Served, tokens: dict[str, str]) -> Browser:
    return Browser(served).sign_in(tokens["ana"])


@pytest.fixture
def owner(served: Served) -> Browser:
    return Browser(served).sign_in(served.owner)


def charges(served: Served) -> int:
    return sum(one.kind is Kind.CHARGE for one in served.ledger.history())


def at(path: str) -> str:
    return path.replace("{table}", "wages").replace("{request}", "some")


# who signed in


@pytest.mark.parametrize(("method", "path"), [(method, path) for method, path, _ in PAGES])
def test_nothing_is_shown_or_done_without_a_session(served: Served, method: str, path: str) -> None:
    stranger = Browser(served, cookie="discreet=" + "A" * 43)
    if method == "GET":
        found = stranger.get(at(path))
        assert (found.status, found.to) == (303, f"/sign-in?to={at(path)}")
    else:
        found = stranger.post(at(path), {"key": "x"})
        assert found.status == 401
    assert "1980" not in found.text


def test_a_token_opens_a_session_by_a_cookie_that_no_script_reads(
    served: Served, tokens: dict[str, str]
) -> None:
    stranger = Browser(served)
    for wrong in ("", "x", tokens["ana"][:-1], "x" * 300):
        found = stranger.post("/sign-in", {"token": wrong, "to": "/tables"})
        assert found.status == 401
        assert "set-cookie" not in found.headers
    found = stranger.post("/sign-in", {"token": f" {tokens['ana']} ", "to": "/tables/wages"})
    assert (found.status, found.to) == (303, "/tables/wages")
    name, *rules = [part.strip().lower() for part in found.headers["set-cookie"].split(";")]
    assert name.startswith("discreet=")
    assert {"httponly", "samesite=strict", "path=/", "max-age=14400"} <= set(rules)
    assert "secure" not in rules  # the service speaks plain HTTP, on this machine only
    assert not any(rule.startswith("domain") for rule in rules)
    assert tokens["ana"] not in found.text + str(found.headers)


HTTPS = {"Origin": "https://testserver"}


@pytest.mark.parametrize(
    ("scheme", "headers"),
    [
        ("https", {}),
        ("http", {"X-Forwarded-Proto": "https"}),
        ("http", {"X-Forwarded-Proto": "HTTPS, http"}),
    ],
)
def test_by_tls_only_a_cookie_of_tls_opens_a_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str, headers: dict[str, str]
) -> None:
    """By the service's own TLS, and by that of a proxy that says so. A sibling domain, or whoever
    answers once for the same host by HTTP, can set a cookie without the prefix."""
    with alone(tmp_path, monkeypatch, RateLimit(1e9, 9)) as (desk, client):
        client.base_url = f"{scheme}://testserver"
        client.headers.update(headers)
        token = {"token": desk.tokens.issue("ana", Role.ANALYST, days=1)}
        assert client.post("/sign-in", data=token, headers=AT).status_code == 403
        found = client.post("/sign-in", data=token, headers=HTTPS, follow_redirects=False)
        name, *rules = found.headers["set-cookie"].split("; ")
        client.cookies.clear()
        assert {"secure", "path=/", "httponly"} <= {rule.lower() for rule in rules}
        assert name.startswith("__Host-discreet=")
        assert "domain" not in found.headers["set-cookie"].lower()
        statuses = [
            client.get("/tables", headers={"Cookie": cookie}, follow_redirects=False).status_code
            for cookie in (
                name,
                name.removeprefix("__Host-"),
                f"{name}x; {name.removeprefix('__Host-')}",
            )
        ]
        assert statuses == [200, 303, 303]
        for path in ("/tables", "/static/look.css", "/none", "/v1/tables"):
            assert client.get(path).headers["strict-transport-security"] == "max-age=31536000"
        own = client.get("/sign-in", headers={"Host": "localhost"})
        assert "strict-transport-security" not in own.headers


def test_a_proxy_that_does_not_say_so_still_gets_a_cookie_of_tls(
    served: Served, tokens: dict[str, str]
) -> None:
    host = "private.example.org"
    headers = {"Origin": f"https://{host}", "Host": host}
    found = Browser(served).post("/sign-in", {"token": tokens["ana"]}, headers)
    assert found.status == 303
    assert found.headers["set-cookie"].startswith("__Host-discreet=")
    assert "secure" in found.headers["set-cookie"].lower().split("; ")
    assert "strict-transport-security" not in found.headers


@pytest.mark.parametrize(
    "other",
    [
        'a={"b":1}',
        "a[b]=1",
        "x/y=1",
        "a=\xe9",
        "a=b c",
        "expires=1",
        "Path=/",
        "a",
        "discreet=",
        '"',
    ],
)
def test_no_cookie_of_others_ends_a_session(ana: Browser, other: str) -> None:
    for cookies in (f"{other}; {ana.cookie}", f"{ana.cookie};{other}", f"$Version=1; {ana.cookie}"):
        assert Browser(ana.served, cookies).get("/tables").status == 200


def test_a_session_ends_by_signing_out_and_with_its_token(served: Served) -> None:
    token = served.token("eve")
    first, second = Browser(served).sign_in(token), Browser(served).sign_in(token)
    assert first.send("/tables", "/sign-out").to == "/sign-in"
    assert first.get("/tables").status == 303
    assert second.get("/tables").status == 200
    (id_,) = [
        one["id"] for one in served.send("GET", "/v1/tokens").json["tokens"] if one["name"] == "eve"
    ]
    page = second.get("/tables/wages")
    owner = Browser(served).sign_in(served.owner)
    assert owner.send("/desk", "/desk/tokens/revoke", token=id_).status == 303
    assert second.get("/tables").status == 303
    stale = second.post("/tables/wages/ask", {"key": page.hidden("key"), "sql": kit.BY_YEAR})
    assert stale.status == 401


@pytest.mark.parametrize(
    "given",
    [
        *("//evil.example", "https://evil.example/", "/\\evil.example", "/sign-out"),
        *("javascript:x", "/tables//x", "/tables/x?y", "/tables/\r\nSet-Cookie: a=b"),
        *("/desk/é", "/tables/" + "x" * 600, None, ""),
    ],
)
def test_signing_in_leads_to_pages_of_the_service_only(given: str | None) -> None:
    assert _target(given) == "/tables"
    assert _target("/tables/a%20b/ask") == "/tables/a%20b/ask"


@pytest.mark.parametrize("name", ["ana", "vic"])
def test_the_owners_pages_are_the_owners(served: Served, tokens: dict[str, str], name: str) -> None:
    browser = Browser(served).sign_in(tokens[name])
    before = served.send("GET", "/v1/tokens").json, len(served.ledger.history())
    assert browser.get("/desk").status == 403
    key = browser.get("/tables/wages").hidden("key")
    for path in FORMS:
        if path.endswith(("/ask", "/forecast", "/receipts")):
            continue
        fields = {"key": key, "share": name, "epsilon": "9", "name": "x", "role": "owner"}
        found = browser.post(at(path), {**fields, "days": "9", "reason": "x", "once": path})
        assert found.status == 403, path
    assert (served.send("GET", "/v1/tokens").json, len(served.ledger.history())) == before


def test_a_viewer_asks_nothing(served: Served, tokens: dict[str, str]) -> None:
    viewer = Browser(served).sign_in(tokens["vic"])
    before = charges(served)
    assert viewer.ask(kit.BY_YEAR).status == 403
    shown = viewer.get("/tables/wages/ask")
    assert shown.status == 403
    assert 'id="question"' not in shown.text
    assert charges(served) == before


def test_a_session_that_ends_keeps_what_was_written(served: Served, tokens: dict[str, str]) -> None:
    left, again = Browser(served).sign_in(tokens["ana"]), Browser(served)
    page = left.get("/tables/wages/ask")
    sql = 'SELECT COUNT(*) AS "<b>" FROM wages'
    fields = {"sql": sql, "epsilon": "0.03", "key": page.hidden("key"), "agreed": "ε = 0.03"}
    left.send("/tables", "/sign-out")
    before = charges(served)
    # 1. no other site can fill the page to sign in
    forged = left.post("/tables/wages/ask", fields, {"Origin": "https://evil.example"})
    assert (forged.status, "0.03" in forged.text) == (403, False)
    # 2. the page to sign in holds the question, also after a wrong token
    shown = left.post("/tables/wages/ask", {**fields, "once": page.hidden("once")})
    for token in ("wrong", tokens["ana"]):
        assert "What you wrote is kept" in shown.words
        kept = dict(re.findall(r'name="(form|kept-\w+)" value="([^"]*)"', shown.text))
        assert kept["kept-epsilon"] == "0.03"
        assert not {"kept-key", "kept-agreed"} & kept.keys()
        sent = {name: unescape(text) for name, text in kept.items()}
        shown = again.post("/sign-in", {"token": token, "to": "/tables", **sent})
    again.cookie = shown.headers["set-cookie"].partition(";")[0]
    # 3. it goes on by showing the price
    assert unescape(shown.text).count(sql) == 2
    own = {name: shown.hidden(name) for name in ("sql", "epsilon", "once", "key")}
    found = again.post("/tables/wages/forecast", own)
    assert "This costs ε = 0.03" in found.words
    assert charges(served) == before
    assert again.pay(found, "/tables/wages/ask", sql=sql, epsilon="0.03").status == 303


@pytest.mark.parametrize(
    ("path", "to"),
    [
        ("/tables/a%20b/ask", "/tables/a%20b/forecast"),
        *((path, path) for path in ("/tables/wages/columns", "/desk/declare")),
        *((path, None) for path in ("", "/desk/tokens", "/tables/wages/unlock", "//x/ask")),
        *(
            (path, None)
            for path in ("https://evil.example/tables/a/ask", "/tables/a/ask?x", "/sign-out")
        ),
    ],
)
def test_only_long_forms_are_kept(path: str, to: str | None) -> None:
    kept = KeptForm.of(path, {"a": "1", "key": "x", "agreed": "y"})
    assert kept == (None if to is None else KeptForm(to, {"a": "1"}))


# what browsers are told


def test_every_page_is_stored_nowhere_and_framed_nowhere(ana: Browser, owner: Browser) -> None:
    answer = ana.ask(kit.BY_YEAR).to
    for browser, path in [
        *((ana, path) for path in ("/tables", "/tables/wages", "/tables/wages/ask", "/receipts")),
        *((ana, f"{answer}{end}") for end in ("", "/statement", "/answer.csv", "/receipt.json")),
        *((owner, path) for path in ("/desk", "/sign-in", "/tables/none", "/answers/none")),
    ]:
        found = browser.get(path)
        headers = found.headers
        assert headers["cache-control"] == "no-store", path
        assert headers["x-frame-options"] == "DENY", path
        assert headers["x-content-type-options"] == "nosniff", path
        policy = dict(
            [*one.split(None, 1), ""][:2] for one in headers["content-security-policy"].split("; ")
        )
        assert policy["default-src"] == policy["frame-ancestors"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["form-action"] == "'self'"
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", found.text), path
        assert not re.search(r"<script(?![^>]* src=)(?![^>]*application/json)", found.text), path


@pytest.mark.parametrize(
    "path",
    [
        "/static/look.css",
        "/static/vendor/editor.js",
        "/static/none",
        "/none",
        "/v1/tables",
        "/healthz",
    ],
)
def test_nothing_is_framed_or_sniffed(served: Served, path: str) -> None:
    headers = Browser(served).get(path).headers
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"


def test_a_page_loads_files_of_the_service_only(ana: Browser) -> None:
    for path in ("/tables/wages", "/tables/wages/ask"):
        links = re.findall(r'(?:src|href|action)="([^"]*)"', ana.get(path).text)
        assert links
        assert [one for one in links if not re.match(r"/(?!/)|#", one)] == []
        for one in links:
            if one.startswith("/static/"):
                assert ana.get(one).status == 200, one


# forged requests

MALFORMED = ["http://[", "http://]:x", "http://[::1", "//", "\x7f", "http://" + "a" * 3000]


@pytest.mark.parametrize("path", ["/sign-out", *FORMS])
def test_no_other_site_can_send_a_form(
    served: Served, owner: Browser, tokens: dict[str, str], path: str
) -> None:
    fields = {
        "sql": kit.BY_YEAR,
        "epsilon": "0.01",
        "share": "ana",
        "name": "mallory",
        "role": "owner",
        "days": "1",
        "reason": "x",
        "token": "x",
        "once": "once",
    }
    key = owner.get("/tables/wages").hidden("key")
    other = Browser(served).sign_in(tokens["ana"]).get("/tables/wages").hidden("key")
    before = served.send("GET", "/v1/tokens").json, len(served.ledger.history())
    right = {**fields, "key": key}
    forged = [
        owner.post(at(path), fields),
        owner.post(at(path), {**fields, "key": ""}),
        owner.post(at(path), {**fields, "key": other}),
        owner.post(at(path), {**fields, "key": key[:-1]}),
        owner.post(at(path), right, {"Origin": "https://evil.example"}),
        owner.post(at(path), right, {"Origin": "null"}),
        owner.post(at(path), right, {"Origin": None}),
        owner.post(at(path), right, {"Origin": f"{owner.origin}0"}),
        *(owner.post(at(path), right, {"Origin": one}) for one in MALFORMED),
        owner.post(at(path), right, {"Sec-Fetch-Site": "same-site"}),
        owner.post(at(path), right, {"Sec-Fetch-Site": "cross-site"}),
        owner.post(at(path), right, {"Content-Type": "text/plain"}),
        owner.post(at(path), right, {"Content-Type": "application/json"}),
    ]
    assert {found.status for found in forged} <= {400, 403, 415}
    assert (served.send("GET", "/v1/tokens").json, len(served.ledger.history())) == before
    assert owner.get("/tables").status == 200


def test_no_other_site_can_sign_a_browser_in(served: Served, tokens: dict[str, str]) -> None:
    log = (served.folder / "discreet.owner.log").read_text()
    for origin in ("https://evil.example", "null", None, *MALFORMED):
        found = Browser(served).post("/sign-in", {"token": tokens["ana"]}, {"Origin": origin})
        assert found.status == 403
        assert "set-cookie" not in found.headers
        assert "default-src 'none'" in found.headers["content-security-policy"]
    assert (served.folder / "discreet.owner.log").read_text() == log


def test_an_unexpected_failure_has_the_headers_of_each_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    with alone(tmp_path, monkeypatch, RateLimit(1e9, 9)) as (_, client):
        for name in ("opened", "session"):
            monkeypatch.setattr(SessionStore, name, fail)
        monkeypatch.setattr("discreet.service.pages._site._target", fail)
        headers = {"Origin": "http://testserver"}
        failed = [
            client.post("/sign-in", data={"token": "x"}, headers=headers),
            client.get("/tables", headers={"Cookie": "discreet=x"}),
            client.get("/sign-in"),
        ]
    for found in failed:
        assert found.status_code == 500
        assert found.headers["x-content-type-options"] == "nosniff"
        assert found.headers["cache-control"] == "no-store"
        assert "default-src 'none'" in found.headers["content-security-policy"]


def test_a_form_is_read_in_one_way_only(ana: Browser) -> None:
    key = ana.get("/tables/wages").hidden("key")
    path = "/tables/wages/forecast"
    for body in (
        f"key={key}&sql=a&sql=b",
        f"key={key}&sql",
        f"key={key}&sql=%FF",
        f"key={key}&" + "&".join(f"a{n}=1" for n in range(3000)),
        f"key={key}&sql={'a' * 70_000}",
    ):
        headers = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Origin": ana.origin,
        }
        found = ana._sent("POST", path, body.encode(), headers)
        assert found.status in (400, 413), body[:80]


@pytest.mark.parametrize("field", [{"confidence": "7"}, {"noise": "x"}, {"by": "x"}])
def test_no_choice_is_replaced_by_another(
    ana: Browser, served: Served, field: dict[str, str]
) -> None:
    before = charges(served)
    fields = {"sql": kit.BY_YEAR, "epsilon": "0.01", "agreed": "ε = 0.01"}
    found = ana.send("/tables/wages/ask", "/tables/wages/ask", **fields, **field)
    assert found.status == 400
    assert f"look at {next(iter(field))}" in found.words
    assert charges(served) == before


@pytest.mark.parametrize(
    "epsilon", ["1,5", "1 000", "1e400", "nan", "-1", "0", "0x1", "", "1" * 40, "²"]
)
def test_no_number_is_read_as_another(ana: Browser, served: Served, epsilon: str) -> None:
    before = charges(served)
    refused = ana.ask(kit.BY_YEAR, epsilon)
    assert refused.status == 400
    (why,) = re.findall(r'<div class="says refused" id="refusal">\s*<p>(.*?)</p>', refused.text)
    assert not re.search(r"Decimal|\w\(|JSON|body", why)
    assert charges(served) == before


# questions


def test_a_question_is_paid_once_however_often_its_form_is_sent(
    ana: Browser, served: Served
) -> None:
    page = ana.get("/tables/wages/ask")
    fields = {"key": page.hidden("key"), "once": page.hidden("once"), "sql": kit.BY_YEAR}
    before = charges(served)

    def send(epsilon: str) -> str:
        price = {"epsilon": epsilon, "agreed": f"ε = {epsilon}"}
        return ana.post("/tables/wages/ask", {**fields, **price}).to

    with ThreadPoolExecutor() as threads:
        found = set(threads.map(send, ["0.01"] * 3))
    assert len(found) == 1
    assert charges(served) == before + 1
    (place,) = found
    assert ana.get(place).status == 200
    assert send("0.01") == place  # as from a page that was left open
    assert charges(served) == before + 1
    assert send("0.02") != place
    assert charges(served) == before + 2


def test_a_question_that_failed_is_asked_anew_from_the_page_that_says_so(
    ana: Browser, served: Served, tokens: dict[str, str]
) -> None:
    path, fields = "/tables/wages/ask", {"sql": kit.BY_YEAR, "epsilon": "0.01"}
    shown = ana.send(path, "/tables/wages/forecast", **fields)
    draft = Draft.of({**fields, "once": shown.hidden("once")})
    id_ = draft.request("wages", draft.members())
    charge = {"privacy_loss": kit.pure(0.01), "purpose": "no answer", "request": id_}
    made = served.send("POST", "/v1/tables/wages/charge", charge, token=tokens["ana"])
    assert made.status == 200
    for _ in range(2):  # the old page never pays it again
        failed = ana.pay(shown, path, **fields)
        assert failed.status == 409
        assert "paid before" in failed.words
    own = {name: failed.hidden(name) for name in ("key", "once")}
    assert ana.pay(ana.post(path, {**own, **fields}), path, **fields).status == 303


def test_an_answer_is_its_analysts_own(
    ana: Browser, owner: Browser, served: Served, tokens: dict[str, str]
) -> None:
    place = ana.ask(kit.BY_YEAR).to
    shown = ana.get(place)
    assert "Paid ε = 0.01 by ana" in shown.words
    assert "one person counts for at most 3 rows" in shown.words
    ben = Browser(served).sign_in(tokens["ben"])
    for other in (ben, owner):
        for end in ("", "/statement", "/answer.csv", "/answer.json", "/receipt.json"):
            assert other.get(f"{place}{end}").status == 404
        assert other.get(f"/tables/wages/ask?from={place.rpartition('/')[2]}").status == 404
    again = ana.get(f"/tables/wages/ask?from={place.rpartition('/')[2]}")
    assert kit.BY_YEAR in again.text
    assert json.loads(ana.get(f"{place}/answer.json").text)["query"] == kit.BY_YEAR
    head, *rows = csv.reader(io.StringIO(ana.get(f"{place}/answer.csv").text))
    assert head[:2] == ["year", "n"]
    assert [row[0] for row in rows] == ["1980", "1981", "1982"]


def test_a_refusal_stands_at_its_place_and_costs_nothing(ana: Browser, served: Served) -> None:
    before = charges(served)
    found = ana.ask("SELECT COUNT(*) AS n,\n  kurt(wage) FROM wages")
    assert found.status == 422
    assert "SELECT COUNT(*) AS n,\n  <mark>kurt(</mark>wage) FROM wages" in found.text
    assert "there is no such function" in found.words
    assert charges(served) == before


def test_words_stand_in_their_order_on_each_page() -> None:
    """Pages show characters that turn a text's direction by their numbers; forms keep them."""
    wrong = "\u202ef \u2066m\u061c"
    shown = Rendering(templates()).page("problem.html", problem=wrong, is_missing=False)
    assert r"\u202ef \u2066m\u061c</p>" in bytes(shown.body).decode()
    field = "<textarea>\u202e<b>\u202e</textarea>"
    kept = f"<p title='\u202e'>{field}"
    assert in_order(f"{kept}a\u202eb") == f"{kept}a\\u202eb"
    chart = Chart("t", "", Axis("x", categories=("\u202ekey",)), Axis("n", 0, 1), ())
    assert json.loads(chart_json(chart))["x"]["categories"] == [r"\u202ekey"]


def test_a_refused_place_is_found_in_the_text() -> None:
    sql = "SELECT a,\n b"
    place = refused_place(sql, "`b` (line 2, column 2): no")
    assert place is not None
    assert (place.before, place.at, place.after) == ("SELECT a,\n ", "b", "")
    assert refused_place(sql, "no place") is None
    assert refused_place(sql, "`x` (line 9, column 1): no") is None


def test_a_forecast_is_free_and_says_price_and_error(ana: Browser, served: Served) -> None:
    before = charges(served)
    found = ana.send("/tables/wages/ask", "/tables/wages/forecast", sql=kit.BY_YEAR, epsilon="0.1")
    assert "This costs ε = 0.1" in found.words
    assert "n any size ± 180" in found.words
    part = ana.send(
        "/tables/wages/ask", "/tables/wages/forecast", sql=kit.BY_YEAR, epsilon="9", part="forecast"
    )
    assert part.text.startswith("<section")
    assert "That is more than the" in part.words
    assert charges(served) == before


@pytest.mark.parametrize(
    ("fields", "others"),
    [
        ({"epsilon": "0.1"}, [{"epsilon": "0.2"}, {"epsilon": "0.1", "delta": "0.00001"}]),
        (
            {"by": "accuracy", "within": "500"},
            [{"by": "accuracy", "within": "400"}, {"epsilon": "0.1"}],
        ),
    ],
)
def test_only_the_price_that_was_shown_is_paid(
    ana: Browser, served: Served, fields: dict[str, str], others: list[dict[str, str]]
) -> None:
    before = charges(served)
    path, forecast = "/tables/wages/ask", "/tables/wages/forecast"
    sql = "SELECT COUNT(*) AS n FROM wages"
    page = ana.get(path)
    own = {"key": page.hidden("key"), "once": page.hidden("once"), "sql": sql}
    seen = [ana.send(path, forecast, sql=sql, **one).hidden("agreed") for one in others]
    for agreed in ({}, *({"agreed": text} for text in (*seen, "0.1", "ε = 0.0001"))):
        shown = ana.post(path, {**own, **fields, **agreed})
        assert shown.status == 200
        assert f"This costs {shown.hidden('agreed')}" in shown.words
        assert f"Pay {shown.hidden('agreed')} and ask" in shown.words
    assert charges(served) == before
    place = ana.pay(shown, path, sql=sql, **fields).to
    assert ana.pay(shown, path, sql=sql, **fields).to == place
    assert charges(served) == before + 1
    assert f"Paid {shown.hidden('agreed')} by ana" in ana.get(place).words
    if "within" in fields:
        (row,) = json.loads(ana.get(f"{place}/answer.json").text)["rows"]
        assert row["n_high"] - row["n_low"] <= 1000


def test_a_share_is_spent_and_then_refuses(served: Served) -> None:
    browser = Browser(served).sign_in(served.token("dan", share=0.05))
    assert [browser.ask(kit.BY_YEAR, "0.02").status for _ in range(3)] == [303, 303, 402]
    # no button pays what the budget does not admit
    page, path = "/tables/wages/ask", "/tables/wages/forecast"
    for epsilon, is_admitted in (("0.01", True), ("0.011", False)):
        shown = browser.send(page, path, sql=kit.BY_YEAR, epsilon=epsilon)
        assert ('name="agreed"' in shown.text) == is_admitted
        assert ("That is more than the 0.01 that is left" in shown.words) != is_admitted
        disabled = re.search(r'<button[^>]* id="pay" disabled>Too expensive', shown.text)
        assert (disabled is None) == is_admitted
    shown = browser.get("/tables/wages")
    assert "dan spent 0.04 of ε = 0.05; 0.01 left" in shown.words
    assert not re.search(r"\bana\b", shown.words)


def test_the_last_question_of_a_session_comes_again(
    ana: Browser, served: Served, tokens: dict[str, str]
) -> None:
    """From the memory of the service: nothing of it is in the address, and no other session, table
    or person sees it."""
    path = "/tables/wages/ask"
    sql = "SELECT COUNT(*) AS canary_7702 FROM wages"
    once = ana.send(path, "/tables/wages/forecast", sql=sql, epsilon="0.07").hidden("once")
    shown = ana.get(path)
    assert sql in shown.text
    assert 'value="0.07"' in shown.text
    assert shown.hidden("once") != once
    others = [Browser(served).sign_in(tokens[name]) for name in ("ana", "ben", "owner")]
    for other, page in [*((one, path) for one in others), (ana, "/tables/fewer/ask")]:
        assert "canary_7702" not in other.get(page).text
    assert "canary_7702" not in ana.get(f"{path}?example=0").text
    ana.get(f"{path}?new=1")
    assert "canary_7702" not in ana.get(path).text
    # it ends with its session
    ana.send(path, "/tables/wages/forecast", sql=sql)
    ana.send(path, "/sign-out")
    assert "canary_7702" not in Browser(served).sign_in(tokens["ana"]).get(path).text


# the owner's desk


_FOR_PROGRAMS = re.compile(r"\w\(\w|JSON|header|members|\btoken\b|\brequest\b|`discreet|'\w+':")


def test_problems_are_told_in_words_for_people() -> None:
    """Pages put every refusal of the service and of the ledger in plain words. The names of calls
    and commands are for programs."""
    kinds = {one for one in vars(_problems).values() if isinstance(one, ProblemKind)}
    kinds |= {kind for _, kind in KINDS if kind.text}
    found = [Problem(kind) for kind in kinds]
    ledger = Ledger.in_memory(unit=Unit("person"), limit=Limit(epsilon=2))
    ledger.grant("ana", limit=Limit(epsilon=0.5), by="owner")
    first = ledger.charge(Pure(0.1), purpose="fails", by="ana", request=Request("r", "one"))
    charges: list[Callable[[], object]] = [
        lambda: ledger.share("ana").charge(Pure(1), purpose="ages", by="ana"),
        lambda: ledger.charge(Pure(1), purpose="ages", by="ana", request=Request("r", "two")),
        lambda: ledger.charge(Pure(1), purpose="fails", by="ana", request=Request("r", "one")),
        lambda: ledger.charge(Pure(0.1), purpose="fails", by="ana"),
    ]
    for number, charge in enumerate(charges):
        if number == 3:
            ledger.lock(first)
            ledger.unlock("a full disk", "owner")
        with pytest.raises(DiscreetError) as refused:
            charge()
        found.append(problem_of(refused.value))
    texts = [in_words(one) for one in found]
    assert [text for text in texts if _FOR_PROGRAMS.search(text)] == []
    assert any(text.startswith("the share of ana would reach ε = 1") for text in texts)


def test_a_limit_of_many_orders_is_told_in_words() -> None:
    facts = {"spent": 0.25, "reserved": 0, "left": 0.75}
    bar = Bar.of("ana", {**facts, "limit": str(RenyiLimit({2: 0.5, 16: 3}))})
    assert bar.words == "spent 0.25 of 1 (a Rényi curve of 2 orders); 0.75 left"
    assert Bar.of("ana", {**facts, "limit": str(Limit(1))}).limit == "ε = 1"


def test_the_owner_makes_tokens_and_shares_and_verifies(owner: Browser, served: Served) -> None:
    page = owner.get("/desk")
    fields = {"key": page.hidden("key"), "once": page.hidden("once"), "name": "fay"}
    fields |= {"role": "analyst", "days": "3"}
    made = owner.post("/desk/tokens", fields)
    (token,) = re.findall(r"discreet_[0-9a-f]{16}_[\w-]{43}", made.text)
    assert owner.post("/desk/tokens", fields).status == 409  # a second click makes no other
    assert owner.get("/desk").text.count("fay") == 4  # name, two buttons, and the list of analysts
    assert token not in owner.get("/desk").text
    fay = Browser(served).sign_in(token)
    assert fay.ask(kit.BY_YEAR).status == 403
    assert "You have no share" in fay.get("/tables/wages").words
    assert "has the name fay" not in owner.get("/desk").words
    for slip, epsilon, words in (
        ("fey", "0.5", "No analyst’s token that is valid has the name fey"),
        ("fay", "20.5", "The share of fay is above the limit of the table, ε = 20"),
    ):
        owner.send("/desk", "/tables/wages/shares", share=slip, epsilon=epsilon)
        assert words in owner.get("/desk").words
        owner.send("/desk", "/tables/wages/shares/revoke", share=slip)
        assert words not in owner.get("/desk").words
    owner.send("/desk", "/tables/wages/shares", share="fay", epsilon="0.5")
    assert fay.ask(kit.BY_YEAR).status == 303
    owner.send("/desk", "/tables/wages/shares/revoke", share="fay")
    twice = owner.send("/desk", "/tables/wages/shares/revoke", share="fay")
    assert (twice.status, "no share of this name is open" in twice.words) == (400, True)
    owner.send("/desk", "/tables/wages/shares", share="fay", epsilon="0.5")
    assert "fay spent 0 of ε = 0.5" in fay.get("/tables/wages").words  # as the desk says
    owner.send("/desk", "/tables/wages/shares/revoke", share="fay")
    assert fay.ask(kit.BY_YEAR).status in (402, 403)
    shown = fay.get("/tables/wages/ask")
    assert "You have no share" in shown.words
    assert re.search(r'<button[^>]* id="pay" disabled', shown.text)
    for name in ("a/b", "..", "x\0"):
        refused = owner.send("/desk", "/tables/wages/shares", share=name, epsilon="0.5")
        assert refused.status == 400
    assert "is whole" in owner.send("/desk", "/tables/wages/verify").words
    # what was typed stays in a form that is refused, and in no other one
    bad = owner.send("/desk", "/desk/tokens", name="a/b", role="viewer", days="3")
    assert (bad.status, "without /" in bad.words) == (400, True)
    assert re.search(r'name="days"[^>]* value="3"', bad.text)
    assert bad.text.count('value="a/b"') == 1
    assert '<option value="viewer" selected>' in bad.text
    bad = owner.send("/desk", "/tables/wages/shares", share="guy", epsilon="1,5", delta="1e-9")
    assert "ε of a share : give a number above 0" in bad.words
    kept = [re.findall(f'value="{text}"', bad.text) for text in ("guy", "1,5", "1e-9")]
    assert [len(one) for one in kept] == [1, 1, 1]


def test_a_locked_table_is_unlocked_with_the_question_that_failed(
    owner: Browser, ana: Browser, served: Served
) -> None:
    charge = {"privacy_loss": kit.pure(0.01), "purpose": "a failing run", "request": "fails"}
    made = served.send("POST", "/v1/tables/wages/charge", charge).json["receipt"]
    body = {name: made[name] for name in ("number", "digest")}
    assert served.send("POST", "/v1/tables/wages/lock", body).status == 200
    assert ana.ask(kit.BY_YEAR).status == 423
    assert "locked" in ana.get("/tables/wages").words
    shown = owner.get("/tables/wages")
    assert "a failing run" in shown.words
    assert owner.send("/tables/wages", "/tables/wages/unlock", reason="").status == 400
    stale_unlock = owner.send("/tables/wages", "/tables/wages/unlock", reason="kept reason")
    assert (stale_unlock.status, 'value="kept reason"' in stale_unlock.text) == (400, True)
    # another failure comes while this page is open: it unlocks nothing that it doesn't show
    stale = {name: shown.hidden(name) for name in ("key", "locks")}
    assert served.send("POST", "/v1/tables/wages/lock", body).status == 200
    for wrong in (stale, {"key": stale["key"]}, {**stale, "locks": "x"}, {**stale, "locks": "0"}):
        again = {**wrong, "reason": "stale", "allow_repeat": "yes"}
        assert owner.post("/tables/wages/unlock", again).status == 400
    assert ana.ask(kit.BY_YEAR).status == 423
    shown = owner.get("/tables/wages")
    assert shown.hidden("locks") != stale["locks"]
    fields = {name: shown.hidden(name) for name in ("key", "locks")}
    done = owner.post("/tables/wages/unlock", {**fields, "reason": "the disk was full"})
    assert (done.status, done.to) == (303, "/tables/wages")
    shown = owner.get("/tables/wages")
    assert "the owner unlocked the table: the disk was full" in shown.words
    assert ana.ask(kit.BY_YEAR).status == 303
    # the question stays refused until the owner lets it be asked again
    assert "a failing run" not in ana.get("/tables/wages").words
    again = {"key": shown.hidden("key"), "locks": shown.hidden("locks"), "allow_repeat": "yes"}
    assert owner.post("/tables/wages/unlock", {**again, "reason": "more disks"}).status == 303
    assert "Questions that failed" not in owner.get("/tables/wages").words


def test_every_paid_charge_has_pages(ana: Browser, served: Served, tokens: dict[str, str]) -> None:
    log = (served.folder / "discreet.owner.log").read_text()
    diagnosis = {"sql": "SELECT SUM(wage) AS s FROM wages", "epsilon": 0.01, "request": "diag"}
    made = served.send("POST", "/v1/tables/wages/diagnose", diagnosis, token=tokens["ana"])
    assert made.status == 200, made.body
    statement = json.dumps({"unit": None, "assumptions": {"table": "<b>", "caps": 1}})
    for request, more in (("stated", {"statement": statement}), ("bare", {})):
        charge = {"privacy_loss": kit.pure(0.01), "purpose": "a run", "request": request, **more}
        made = served.send("POST", "/v1/tables/wages/charge", charge, token=tokens["ana"])
        assert made.status == 200, made.body
    asked = ana.ask(kit.BY_YEAR).to
    links = set(re.findall(r'href="(/answers/[^"]*)">answer', ana.get("/tables/wages").text))
    others = {"/answers/diag", "/answers/stated"}
    assert others | {asked} <= links
    assert "/answers/bare" not in links
    for link in links:
        assert "Paid ε = " in ana.get(link).words
        assert "Privacy loss ε = " in ana.get(f"{link}/statement").words
        assert ana.get(f"{link}/receipt.json").status == 200
        assert ana.get(f"{link}/answer.csv").status == (404 if link in others else 200)
    assert "computation elsewhere" in ana.get("/answers/stated/statement").words
    assert "Random noise" not in ana.get("/answers/stated/statement").words
    text = json.loads(ana.get("/answers/diag/answer.json").text)["text"]
    for end in ("", "/statement"):
        assert " ".join(text.split()) in ana.get(f"/answers/diag{end}").words
    assert (served.folder / "discreet.owner.log").read_text() == log


# receipts


def test_a_receipt_is_checked_by_its_text(ana: Browser) -> None:
    place = ana.ask(kit.BY_YEAR).to
    receipt = ana.get(f"{place}/receipt.json").text
    found = ana.send("/receipts", "/receipts", table="wages", receipt=receipt)
    assert "The receipt is right" in found.words
    for text, table in ((receipt.replace("0.95", "0.9").replace("ana", "ben"), "wages"),
                        (receipt, "fewer"), ("{}", "wages")):  # fmt: skip
        wrong = ana.send("/receipts", "/receipts", table=table, receipt=text)
        assert wrong.status == 422
        assert "The receipt is right" not in wrong.words
    # the longest statement that a charge takes, in a text of three times its length
    long = json.dumps({"unit": None, "a": ["x"] * 9_900}, separators=(",", ":"))
    charge = {"privacy_loss": kit.pure(0.01), "purpose": "a run", "request": "long"}
    made = ana.served.send(
        "POST", "/v1/tables/wages/charge", {**charge, "statement": long}, token=ana.served.owner
    )
    owner = Browser(ana.served).sign_in(ana.served.owner)
    receipt = owner.get("/answers/long/receipt.json").text
    assert made.status == 200
    assert len(receipt) > 100_000
    assert ana.send("/receipts", "/receipts", table="wages", receipt=receipt).status == 200
    longest = receipt.rstrip("\n") + " " * (LONGEST_RECEIPT - len(receipt))
    found = ana.send("/receipts", "/receipts", table="wages", receipt=longest)
    assert (found.status, "too large" in found.words) == (422, False)  # it was read
    found = ana.send("/receipts", "/receipts", table="wages", receipt=f"{longest}   ")
    assert (found.status, found.headers["content-type"]) == (400, "text/html; charset=utf-8")
    body = {"receipt": receipt.rstrip("\n")}
    assert ana.served.send("POST", "/v1/tables/wages/check", body).status == 200
    receipt = ana.get(f"{place}/receipt.json").text
    assert ana.send("/receipts", "/receipts", table="none", receipt=receipt).status == 404
    statement = ana.get(f"{place}/statement").words
    assert "every result has nearly the same probability" in statement
    assert "ana asked the table “wages”:" in statement
    assert "before the rows were read" in statement
    assert "Whoever has the receipt’s file and a token of this service can check this" in statement
    assert "The file alone shows only that its text was not altered by mistake" in statement
    assert "wage counts as a value from 0 to 60" in statement


# texts of others

MARKUP = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'</textarea>"


def test_no_name_or_text_becomes_markup(served: Served, owner: Browser, ana: Browser) -> None:
    name = "<img src=x onerror=alert(1)>\"'"
    made = owner.send("/desk", "/desk/tokens", name=name, role="analyst", days="1")
    (token,) = re.findall(r"discreet_[0-9a-f]{16}_[\w-]{43}", made.text)
    owner.send("/desk", "/tables/wages/shares", share=name, epsilon="0.5")
    mallory = Browser(served).sign_in(token)
    mallory.ask(f'SELECT COUNT(*) AS "{MARKUP}" FROM wages'.replace("\"'<", "'<"))
    asked = mallory.ask('SELECT COUNT(*) AS "<b>n</b>" FROM wages')
    if asked.status == 303:
        mallory.get(asked.to)
        mallory.get(f"{asked.to}/statement")
        mallory.get(f"/tables/wages/ask?from={asked.to.rpartition('/')[2]}")
    mallory.get("/tables/wages")
    owner.get("/desk")
    owner.get("/tables/wages")
    ana.send("/receipts", "/receipts", table=MARKUP, receipt=MARKUP)
    seen = [one.text for browser in (owner, mallory, ana) for one in browser.seen]
    assert any("&lt;img" in text for text in seen)
    assert [
        text for text in seen if re.search(r"<img|<b>n|<script>alert|onerror=alert\(1\)>[^&]", text)
    ] == []


_ALL = [chr(n) for n in range(sys.maxunicode + 1)]
_BEGINNINGS = "".join(one for one in _ALL if unicodedata.normalize("NFKC", one) in {*"=+-@"})
_UNSEEN = "".join(
    one for one in _ALL if unicodedata.category(one) in {"Cc", "Cf", "Zl", "Zp", "Zs"}
)


@pytest.mark.parametrize(
    "text",
    [
        *("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "\ufeff=1", '"=1'),
        *("a;=2+2", 'a;"=2', "a; +2;@b", "a\t=1", "a\n=1", "a|-x", 'a;=HYPERLINK("x"&A1);', "a,=x"),
        ";".join(f"{begins}1" for begins in _BEGINNINGS),
        *(f"{begins}1" for begins in _BEGINNINGS),
        ";".join(f"{blank}=1" for blank in _UNSEEN),
    ],
)
def test_no_text_in_csv_begins_a_formula(text: str) -> None:
    """Also where a spreadsheet splits at semicolons, as in German or French."""
    written = csv_text(["n", text], [{"n": -1.5, text: text}])
    lines = written.replace("\r\n", "\n").replace("\r", "\n")
    for split in ",;\t|":
        for cell in chain.from_iterable(csv.reader(io.StringIO(lines), delimiter=split)):
            is_number = re.fullmatch(r"\s*-[\d.]+(,.*)?", cell, re.DOTALL)
            seen = cell.lstrip(f'{_UNSEEN}"')[:1]
            assert is_number or seen not in {*_BEGINNINGS}, (split, cell)
    assert csv_text(["a"], [{"a": "b=1, -2"}]) == '"a"\r\n"b=1, -2"\r\n'


def test_no_page_shows_a_value_of_a_row(
    served: Served, tokens: dict[str, str], owner: Browser
) -> None:
    ben = Browser(served).sign_in(tokens["ben"])
    asked = [
        ben.ask(sql, "0.5", "fewer")
        for sql in (
            "SELECT COUNT(*) AS n FROM fewer WHERE LENGTH(job) > 4",
            "SELECT COUNT_DISTINCT(job) AS n FROM fewer",
            "SELECT MODE(job) AS n FROM fewer",
            "SELECT job, COUNT(*) AS n FROM fewer GROUP BY job",
            "SELECT CAST(job AS INTEGER) AS n FROM fewer",
            "SELECT COUNT(*) AS n FROM fewer WHERE CAST(job AS INTEGER) > 1",
        )
    ]
    assert any(one.status == 303 for one in asked)
    for one in asked:
        if one.status == 303:
            for end in ("", "/statement", "/answer.csv", "/answer.json"):
                ben.get(f"{one.to}{end}")
    for browser in (ben, owner):
        for path in ("/tables", "/tables/fewer", "/tables/fewer/ask"):
            browser.get(path)
    texts = [one.text + str(one.headers) for browser in (ben, owner) for one in browser.seen]
    texts += [(served.folder / name).read_text() for name in ("stderr", "discreet.owner.log")]
    assert CANARY.encode() in (served.folder / "fewer.parquet").read_bytes()
    assert [text for text in texts if CANARY in text] == []


def test_all_keys_are_listed_up_to_a_hundred() -> None:
    """On the page that asks; the completions of its editor name the first ones."""
    column = {"type": "text", "keys": [f"ward {n}" for n in range(103)], "lower": None}
    words = _values(column)
    assert [f"ward {n}" in re.split(", |: ", words) for n in range(103)] == [True] * 100 + [
        False
    ] * 3
    assert words.endswith(", … and 3 more")
    assert _values({**column, "keys": ["north", "south"]}) == "text: north, south"
    year = {"type": "integer", "keys": None, "lower": 1980, "upper": 12_000.0}
    assert _values(year) == "integer from 1980 to 12,000"


def test_logs_hold_no_question_no_token_and_no_cookie(ana: Browser, served: Served) -> None:
    place = ana.ask("SELECT COUNT(*) AS canary_5501 FROM wages").to
    ana.get(f"/tables/wages/ask?from={place.rpartition('/')[2]}")
    log = (served.folder / "stderr").read_text()
    assert '"kind": "POST /tables/{table}/ask"' in log
    for secret in ("canary_5501", ana.cookie.partition("=")[2], place.rpartition("/")[2]):
        assert secret
        assert secret not in log
        assert secret not in (served.folder / "discreet.owner.log").read_text()
    urls = {one.to for one in ana.seen if one.status == 303}
    assert not [url for url in urls if "canary" in url or "SELECT" in url]


def test_a_token_is_shown_whatever_else_can_not_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Ledger) -> None:
        raise LedgerError("x")

    with alone(tmp_path, monkeypatch, RateLimit(1e9, 9)) as (desk, client):
        fields = {**signed_in(desk, client, Role.OWNER), "once": "1", "name": "ana"}
        fields |= {"role": "analyst", "days": "1"}
        monkeypatch.setattr(Ledger, "spent", fail)
        made = client.post("/desk/tokens", data=fields, headers=AT)
        (text,) = re.findall(r"discreet_[0-9a-f]{16}_[\w-]{43}", made.text)
        assert desk.tokens.caller(text) is not None
        assert "ledger can't be used" in unescape(made.text)


def test_completions_are_names_as_sql_takes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"net pay": '"net pay"', "order": '"order"', "Wage": '"Wage"', 'a"b': '"a""b"'}
    more = "".join(f"{json.dumps(name)} = {{ type = 'boolean' }}\n" for name in names)
    with alone(tmp_path, monkeypatch, RateLimit(1e9, 9), more) as (desk, client):
        signed_in(desk, client, Role.OWNER)
        page = client.get("/tables/fewer/ask").text
        (words,) = re.findall(r'id="words">(.*?)</script>', page)
        found = {one["name"]: one["sql"] for one in json.loads(words)["columns"]}
    assert names.items() <= found.items()


def test_a_service_that_begins_removes_halves_of_uploads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    half, other = tmp_path / ".half.csv.part", tmp_path / ".bashrc.part"
    half.touch()
    other.touch()
    with alone(tmp_path, monkeypatch, RateLimit(1e9, 9)):
        assert (half.exists(), other.exists()) == (False, True)


def test_a_lock_is_shown_however_old_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_desk, "_LAST_ENTRIES", 2)
    with alone(tmp_path, monkeypatch, RateLimit(1e9, 9)) as (desk, client):
        own = signed_in(desk, client, Role.OWNER)
        ledger = Ledger.open(tmp_path / "wages.ledger")
        ledger.lock(ledger.charge(Pure(0.1), purpose="a failing run", by="ana"))
        for name in "abc":
            ledger.grant(name, limit=Limit(1), by="owner")
        page = client.get("/tables/wages").text
        assert "a failing run" in page
        (locks,) = re.findall(r'name="locks" value="([^"]*)"', page)
        fields = {**own, "reason": "x", "locks": locks}
        client.post("/tables/wages/unlock", data=fields, headers=AT)
        assert not ledger.is_locked


def test_each_page_is_one_request_of_its_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many tables it shows, and wherever a form leads."""
    with alone(tmp_path, monkeypatch, RateLimit(1e-9, 6)) as (desk, client):
        own = signed_in(desk, client, Role.OWNER)  # and the first page
        views = [client.get(path).status_code for path in ("/desk", "/tables/wages", "/receipts")]
        token = {**own, "once": "1", "name": "ana", "role": "analyst", "days": "1"}
        made = client.post("/desk/tokens", data=token, headers=AT)
        share = {**own, "share": "ana", "epsilon": "99"}
        client.post("/tables/wages/shares", data=share, headers=AT, follow_redirects=False)
        late = client.get("/tables")
        out = client.post("/sign-out", data=own, headers=AT, follow_redirects=False)
    assert views == [200, 200, 200]
    assert "A token for ana" in made.text
    assert (late.status_code, out.status_code) == (429, 303)


def test_pages_share_the_rate_of_their_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with alone(tmp_path, monkeypatch, RateLimit(1e-9, 4)) as (desk, client):
        token = desk.tokens.issue("ana", Role.ANALYST, days=1)
        headers = {"Origin": "http://testserver"}
        client.post("/sign-in", data={"token": token}, headers=headers, follow_redirects=False)
        statuses = [client.get("/tables").status_code for _ in range(4)]
        statuses.append(client.get("/tables/wages").status_code)
        of_program = client.get("/v1/tables", headers={"Authorization": f"Bearer {token}"})
    assert statuses == [200, 200, 200, 200, 429]
    assert of_program.status_code == 429
