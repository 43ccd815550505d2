"""An owner declares tables at a running service: looks, suggestions for a price, and refusals."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from discreet import Change, Limit, Unit
from discreet._budget import Request
from discreet.accounting import Pure
from discreet.errors import InvalidArgument, LedgerError
from discreet.ledger import Ledger
from discreet.query import suggest
from discreet.query._statistics._suggestion_search import enough_for_bounds, enough_for_cap
from discreet.query._toml._declaration_edit import save
from discreet.query._toml._declaration_file import read, read_text
from discreet.query._toml._declared_files import TableFile
from discreet.service import _desk
from discreet.service._new_declarations import files_beside, text_of_source, text_with
from discreet.service._problems import Problem
from discreet.service._tokens import Role, TokenFacts
from discreet.service.pages._column_fields import ColumnFields
from tests.cli.kit import wages
from tests.service import kit
from tests.service.kit import Served
from tests.service.pages_kit import Browser

FACTS: dict[str, Any] = {
    "source": "panel.parquet",
    "unit": "person",
    "rows": 3,
    "epsilon": 30,
    "columns": {
        "year": {"type": "integer", "keys": [1980, 1981, 1982]},
        "in_union": {"type": "boolean"},
    },
}
FULL = json.dumps(FACTS)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("service")
    wages(folder / "panel.parquet", people=400)
    with kit.service(folder, "--workers", "1", more=kit.RATE) as running:
        yield running


def declare(served: Served, table: str, **facts: object) -> kit.Reply:
    return served.send("PUT", f"/v1/tables/{table}", {"facts": json.dumps({**FACTS, **facts})})


def test_a_table_is_declared_asked_and_completed(served: Served) -> None:
    # 1. a look shows columns and types, and reads no more
    names = [one["name"] for one in served.send("GET", "/v1/sources").json["sources"]]
    assert names == ["fewer.parquet", "panel.parquet", "wages.parquet"]
    looked = served.send("POST", "/v1/sources", {"source": "panel.parquet"}).json["columns"]
    assert {one["name"]: one["type"] for one in looked} == {
        "person": "integer",
        "year": "integer",
        "in_union": "boolean",
        "job": "text",
        "wage": "number",
        "hours": "number",
    }
    # 2. facts that don't hold change nothing
    before = (served.folder / "discreet.toml").read_text()
    for wrong in (
        {"unit": "nobody"},
        {"unit": None},
        {"epsilon": 0},
        {"source": "../panel.parquet"},
        {"source": "wages.parquet"},  # one dataset has one ledger
        {"columns": {"wage": {"type": "number"}}},
        {"columns": {"none": {"type": "text"}}},
        {"columns": {"year": {"type": "date", "lower": 1}}},
        {"ledger": "x"},
    ):
        found = declare(served, "panel", **wrong)
        assert (found.status, found.error) == (400, "invalid_argument"), wrong
    assert declare(served, "a-b").status == 400
    assert served.send("GET", "/v1/tables/panel").status == 404
    assert (served.folder / "discreet.toml").read_text() == before
    # 3. the table is there at once, for tables before it too
    assert declare(served, "panel").status == 200
    assert served.ask("before").status == 200
    body = {"sql": "SELECT COUNT(*) AS n FROM panel", "epsilon": 0.1, "request": "n"}
    assert served.send("POST", "/v1/tables/panel/ask", body).status == 200
    assert read(served.folder / "discreet.toml")["panel"].declaration.caps.rows == 3
    # 4. bounds are suggested for a price, once for each request
    asked = {"epsilon": 20, "request": "bounds"}  # by which the noise hides no bound
    suggested = served.send("POST", "/v1/tables/panel/suggest", asked)
    assert suggested.status == 200, suggested.body
    assert served.send("POST", "/v1/tables/panel/suggest", asked).body == suggested.body
    assert 20.1 <= served.send("GET", "/v1/tables/panel/budget").json["spent"] < 20.1001
    bounds = {one["name"]: one for one in suggested.json["suggested"]}
    assert float(bounds["wage"]["lower"]) < 8 < float(bounds["wage"]["upper"])
    # 5. columns are added; other facts of a declared table stay
    columns = {"wage": {"type": "number", "lower": 0, "upper": 20.5}}
    more = {"facts": json.dumps({"columns": columns})}
    for fixed in ({"unit": "year"}, {"epsilon": 9}, {"source": "wages.parquet"}):
        text = json.dumps({"columns": columns, **fixed})
        assert served.send("PUT", "/v1/tables/panel", {"facts": text}).status == 400, fixed
    assert served.send("PUT", "/v1/tables/panel", more).status == 200
    body = {"sql": "SELECT AVG(wage) AS pay FROM panel", "epsilon": 0.1, "request": "pay"}
    (row,) = served.send("POST", "/v1/tables/panel/ask", body).json["rows"]
    assert 0 <= row["pay_low"] <= row["pay_high"] <= 20.5
    # 6. so is the number of rows of a unit, which is charged once by itself
    assert served.send("PUT", "/v1/tables/panel", {"facts": '{"rows": 1}'}).status == 200
    asked = {"epsilon": 5, "request": "cap", "of": "rows"}
    for _ in range(2):
        found = served.send("POST", "/v1/tables/panel/suggest", asked)
        assert (found.status, found.json["rows_of_unit"], found.json["suggested"]) == (200, 4, [])
    spent = served.send("GET", "/v1/tables/panel/budget").json
    assert (spent["charges"], round(spent["spent"], 3)) == (4, 25.2)
    assert served.send("PUT", "/v1/tables/panel", {"facts": '{"rows": 4}'}).status == 200
    assert served.send("GET", "/v1/tables/panel").json["caps"]["rows"] == 4
    for bad in ("0", "-1", "1.5", '"4"', "true"):
        assert served.send("PUT", "/v1/tables/panel", {"facts": f'{{"rows": {bad}}}'}).status == 400
    Ledger.open(served.folder / "panel.ledger").verify()


def test_questions_go_on_while_a_table_is_declared(served: Served) -> None:
    """Those that a worker has end there, and those that wait get workers of the new declaration."""
    fact = {"facts": '{"rows": 3}'}  # as before
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(served.ask, f"busy {n}") for n in range(5)]
        made = [served.send("PUT", "/v1/tables/wages", fact).status for _ in range(2)]
        asked += [threads.submit(served.ask, f"later {n}") for n in range(2)]
        statuses = [one.result().status for one in asked]
    assert (made, statuses) == ([200] * 2, [200] * 7)
    assert not served.ledger.is_locked


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("bad.parquet", b"no Parquet"),
        ("empty.csv", b""),
        ("twice.csv", b"a,a\n1,2\n"),
        ("latin.csv", b"\xe9,\xe9\n1,2\n"),
    ],
)
def test_a_file_is_shown_by_the_name_that_is_declared(
    served: Served, name: str, rows: bytes
) -> None:
    (served.folder / name).write_bytes(rows)
    looked = served.send("POST", "/v1/sources", {"source": name})
    made = declare(served, "bad", source=name)
    for found in (looked, made):
        assert (found.status, name in found.json["message"]) == (400, True)
        assert str(served.folder) not in found.json["message"]
    (served.folder / name).unlink()


def test_only_an_owner_looks_and_declares(served: Served) -> None:
    token = served.token("ana")
    for method, path, body in (
        ("GET", "/v1/sources", None),
        ("POST", "/v1/sources", {"source": "panel.parquet"}),
        ("PUT", "/v1/tables/other", {"facts": json.dumps(FACTS)}),
        ("POST", "/v1/tables/wages/suggest", {"epsilon": 1, "request": "x"}),
    ):
        assert served.send(method, path, body, token=token).error == "forbidden"


def test_a_file_that_was_changed_by_hand_is_not_overwritten(served: Served) -> None:
    file = served.folder / "discreet.toml"
    before = file.read_text()
    file.write_text(f"{before}\n# by hand\n")
    try:
        found = declare(served, "hand")
        assert found.status == 400
        assert "changed by hand" in found.json["message"]
        assert file.read_text().endswith("# by hand\n")
    finally:
        file.write_text(before)


def test_sources_are_files_of_rows_in_the_folder_only(tmp_path: Path) -> None:
    file = kit.declare(tmp_path)
    (tmp_path / "notes.md").touch()
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "x.parquet").touch()
    assert files_beside(file) == ["fewer.parquet", "wages.parquet"]
    for wrong in ("below/x.parquet", "/etc/passwd", "..", "", "notes.md", "discreet.toml"):
        with pytest.raises(InvalidArgument):
            text_of_source(file, wrong)


@pytest.mark.parametrize(
    "facts",
    [
        *("x", "[]", "1", "{", '{"source": 1}', '{"source": "panel.parquet", "rows": true}'),
        '{"source": "panel.parquet", "columns": []}',
        '{"source": "panel.parquet", "columns": {"a": 1}}',
        *(
            FULL.replace('"in_union": {', f'"in_union": {{{wrong}, ')
            for wrong in (
                *('"null": null', '"null": [[{"a": null}]]', '"null": {"a": 1}', '"null": [1]'),
                *('"keys": [null]', '"keys": [{"a": null}]', '"keys": [[1]]', '"keys": null'),
                *(
                    '"keys": [1.5]',
                    '"keys": [{}]',
                    '"zone": null',
                    '"type": null',
                    '"type": "text"',
                ),
            )
        ),
        *(FULL.replace('"rows": 3', f'"rows": {wrong}') for wrong in ("null", '3, "rows": 3')),
        '{"source": "panel.parquet", "unit": "a", "rows": 1, "epsilon": NaN, "columns": {}}',
        '{"columns": {}}',
        "[" * 100_000,
    ],
)
def test_facts_of_another_form_are_refused(tmp_path: Path, facts: str) -> None:
    file = kit.declare(tmp_path)
    (tmp_path / "panel.parquet").touch()
    text = file.read_text()
    with pytest.raises(InvalidArgument):
        text_with(text, file, "panel", facts)
    text_with(text, file, "panel", FULL)


@pytest.mark.parametrize(
    ("column", "stated"),
    [
        ("year", {"keys": [1980, 1981]}),
        ("year", {"type": "integer", "lower": 1980, "upper": 1982}),
        ("in_union", {"type": "text"}),
        ("wage", {"upper": 99}),
        ("wage", {"type": "number", "lower": 0, "upper": 20.5, "null": 0}),
        ("wage", {"type": "number", "lower": 0, "upper": 20.5, "decimals": 2}),
        ("job", {"type": "integer"}),
        ("job", {"type": "text", "null": "none"}),
    ],
)
def test_no_declared_column_changes(tmp_path: Path, column: str, stated: dict[str, object]) -> None:
    """Also where a form was opened before another one declared the column."""
    columns = {
        **FACTS["columns"],
        "wage": {"type": "number", "lower": 0, "upper": 20.5},
        "job": {"type": "text"},
    }
    file = kit.declare(tmp_path)
    (tmp_path / "panel.parquet").touch()
    text = text_with(file.read_text(), file, "panel", json.dumps({**FACTS, "columns": columns}))
    facts = {"columns": {"more": {"type": "boolean"}, column: stated}}
    with pytest.raises(InvalidArgument, match=f"{column} is declared with another"):
        text_with(text, file, "panel", json.dumps(facts))
    # the same facts are no change, and keys complete a column that has none
    again = text_with(text, file, "panel", json.dumps({"columns": columns}))
    assert read_text(again, file) == read_text(text, file)
    completed = {"columns": {"job": {"type": "text", "keys": ["a", "b"]}}}
    found = read_text(text_with(text, file, "panel", json.dumps(completed)), file)["panel"]
    assert found.declaration.columns["job"].keys == ("a", "b")


def test_a_new_ledger_lies_where_all_others_do(tmp_path: Path) -> None:
    address = "postgresql://owner@example.org/budgets?ledger={}"
    file = kit.declare(tmp_path, addresses=[address.format("a"), address.format("b")])
    (tmp_path / "panel.parquet").touch()
    text = file.read_text()
    new = text_with(text, file, "panel", json.dumps(FACTS))
    assert str(read_text(new, file)["panel"].ledger.address) == address.format("panel")
    assert read_text(new, file)["wages"] == read_text(text, file)["wages"]


# a service that ends, or fails, while it declares a table

OWNER = TokenFacts("1", "owner", Role.OWNER, datetime.now(UTC), is_revoked=False)


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[_desk.Desk]:
    """A desk that looks at no file, with a file to declare."""
    monkeypatch.setattr(_desk, "WorkerPool", kit.NoWorkers)
    monkeypatch.setattr(_desk.Desk, "_looked_at", lambda *_: None)
    folder = tmp_path / "first"
    folder.mkdir()
    file = kit.declare(folder)
    (folder / "panel.parquet").touch()
    desk = _desk.Desk(_desk.DeskSettings(file))
    yield desk
    desk.close()


def body(**facts: object) -> dict[str, str]:
    return {"facts": json.dumps({**FACTS, **facts})}


def test_a_service_that_ends_while_it_declares_binds_no_name(
    alone: _desk.Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each step the table is declared with its limit, or may get another one."""
    copies: list[Path] = []

    def copied() -> None:
        copies.append(tmp_path / f"copy {len(copies)}")
        shutil.copytree(alone.folder, copies[-1])

    def stopped(step: Callable[..., object]) -> Callable[..., object]:
        def wrapped(*arguments: Any, **named: Any) -> object:
            copied()
            return step(*arguments, **named)

        return wrapped

    with monkeypatch.context() as patch:
        patch.setattr(_desk, "WorkerPool", stopped(kit.NoWorkers))
        patch.setattr(_desk, "save", stopped(save))
        patch.setattr(TableFile, "open_ledger", stopped(TableFile.open_ledger))
        alone.declare(OWNER, "panel", body())
    copied()
    assert len(copies) == 4
    limits = []
    for copy in copies:
        desk = _desk.Desk(_desk.DeskSettings(copy / "discreet.toml"))
        if "panel" not in read(copy / "discreet.toml"):
            desk.declare(OWNER, "panel", body(epsilon=2))
        limits.append(desk._ledgers["panel"].spent().limit)
        desk.close()
    assert limits == [Limit(2), Limit(2), Limit(30), Limit(30)]


def test_a_ledger_that_can_not_be_made_declares_nothing(
    alone: _desk.Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: TableFile) -> Ledger:
        raise LedgerError("there is no room")

    before = (alone.folder / "discreet.toml").read_text()
    with monkeypatch.context() as patch:
        patch.setattr(TableFile, "open_ledger", fail)
        with pytest.raises(LedgerError):
            alone.declare(OWNER, "panel", body())
    assert (alone.folder / "discreet.toml").read_text() == before
    alone.declare(OWNER, "panel", body())
    assert "panel" in read(alone.folder / "discreet.toml")


def test_a_ledger_with_another_limit_is_named(alone: _desk.Desk) -> None:
    """An earlier service could leave it behind."""
    Ledger.create(alone.folder / "panel.ledger", unit=Unit("person"), limit=Limit(9))
    with pytest.raises(
        InvalidArgument, match=r"panel, panel\.ledger, is there.* remove it by hand"
    ):
        alone.declare(OWNER, "panel", body())


# by the pages


@pytest.mark.parametrize("unit", [Unit.ROW, Unit.ROW.with_change(Change.REPLACE)], ids=str)
def test_a_suggestion_needs_as_many_rows_as_its_price_says(unit: Unit) -> None:
    """As the finding of too few rows says after it was paid."""
    frame = pd.DataFrame({"pay": [1.5] * 40, "age": [40] * 40})
    ledger = Ledger.in_memory(unit=unit, limit=Limit(epsilon=1))
    found = suggest(frame, unit=unit, ledger=ledger, epsilon=0.2)
    needed = enough_for_bounds(Fraction(1, 10), unit)
    assert f"needs about {needed:,};" in found.left_out["pay"]
    (of_age,) = re.findall(r"needs about ([\d,]+);", found.left_out["age"])
    assert 0.9 * needed < int(of_age.replace(",", "")) <= needed


def test_the_owner_declares_by_the_pages(served: Served) -> None:
    owner = Browser(served).sign_in(served.owner)
    rows = (served.folder / "panel.parquet").read_bytes()
    # 1. a file is uploaded, once, by its own page only
    key = owner.get("/desk/declare").hidden("key")
    sent = {"Content-Type": "application/octet-stream", "X-Form-Key": key}
    here = {**sent, "Origin": owner.origin, "Sec-Fetch-Site": "same-origin"}
    path = "/desk/files/mine.parquet"
    for wrong in ({"X-Form-Key": "x"}, {"Origin": "https://evil.example"}, {"Origin": "null"}):
        assert owner._sent("POST", path, rows, {**here, **wrong}).status == 403
    ana = Browser(served).sign_in(served.token("ana of files"))
    theirs = {**here, "X-Form-Key": ana.get("/tables").hidden("key")}
    assert ana._sent("POST", path, rows, theirs).status == 403
    for name in ("..%2Fmine.csv", "discreet.toml", ".mine.csv", "mine.exe", "a%20b.csv"):
        assert owner._sent("POST", f"/desk/files/{name}", rows, here).status in (400, 404), name
    assert not (served.folder / "mine.parquet").exists()
    assert owner._sent("POST", path, rows, here).status == 201
    assert owner._sent("POST", path, b"other", here).status == 400
    assert (served.folder / "mine.parquet").read_bytes() == rows
    assert (served.folder / "mine.parquet").stat().st_mode & 0o077 == 0
    assert not list(served.folder.glob(".*part"))
    # it can be removed, unlike a file that came in another way, or was replaced since
    assert "mine.parquet has arrived" in owner.get("/desk/declare?chosen=mine.parquet").words
    assert "has arrived" not in owner.get("/desk/declare?chosen=none.parquet").words
    for name in ("panel.parquet", "wages.parquet", "..", "../x.csv", ".mine.parquet.uploaded", ""):
        removed = owner.send("/desk/declare", "/desk/declare/remove", name=name)
        assert (removed.status, (served.folder / "panel.parquet").exists()) == (400, True)
    by_hand = served.folder / "mine.parquet"
    by_hand.unlink()
    by_hand.write_bytes(b"by hand")
    assert owner.send("/desk/declare", "/desk/declare/remove", name="mine.parquet").status == 400
    by_hand.unlink()
    assert owner._sent("POST", path, rows, here).status == 201
    done = owner.send("/desk/declare", "/desk/declare/remove", name="mine.parquet")
    assert (by_hand.exists(), "mine.parquet was removed" in done.words) == (False, True)
    assert not list(served.folder.glob(".*uploaded"))
    assert owner._sent("POST", path, rows, here).status == 201
    # 2. its columns are looked at, and it is declared
    looked = owner.send("/desk/declare", "/desk/declare/look", source="mine.parquet")
    assert looked.status == 200
    places = {one: n for n, one in enumerate(("person", "year", "in_union", "job", "wage"))}
    fields = {f"column-{n}": name for name, n in places.items()}
    fields |= {f"type-{n}": "number" for n in places.values()}
    fields |= {"use-1": "yes", "type-1": "integer", "keys-1": "1980 .. 1982"}
    fields |= {"type-2": "boolean", "use-2": "yes", "type-3": "text", "source": "mine.parquet"}
    fields |= {"key": looked.hidden("key"), "name": "mine", "unit": "0", "rows": "3"}
    for wrong_fields in ({"epsilon": "1,5"}, {"epsilon": ""}, {"epsilon": "2", "unit": "9"}):
        assert owner.post("/desk/declare", {**fields, **wrong_fields}).status == 400
    again = owner.post("/desk/declare", {**fields, "epsilon": "x"})
    assert 'value="1980 .. 1982"' in again.text  # what was typed stays
    # neither who is protected, nor how often, is dropped; an open number is asked for later
    open_rows = {name: text for name, text in fields.items() if name != "rows"}
    made = owner.post("/desk/declare", {**open_rows, "epsilon": "30"})
    assert (made.status, made.to) == (303, "/tables/mine/columns?rows=open"), made.words
    removed = owner.send("/desk/declare", "/desk/declare/remove", name="mine.parquet")
    assert (removed.status, by_hand.exists()) == (400, True)
    shown = owner.get(made.to)
    assert "You left it open, so 1 row of each person counts now" in shown.words
    own = {"key": shown.hidden("key"), "column-0": "hours", "type-0": "number", "use-0": "yes"}
    more = {**own, "lower-0": "0", "upper-0": "80", "rows_open": shown.hidden("rows_open")}
    assert owner.post("/tables/mine/columns", more).to == "/tables/mine/columns?rows=open"
    # an open number of groups stays open, and a given one stays until another is given
    assert re.search(r'name="groups"[^>]* value=""', shown.text)
    caps = {"key": shown.hidden("key"), "caps": "yes", "rows": "3"}
    for groups, words in ((None, ""), ("2", ", in at most 2 groups"), ("3", "")):
        given = {} if groups is None else {"groups": groups}
        assert owner.post("/tables/mine/columns", {**caps, **given}).to == "/tables/mine"
        assert f"One person counts for at most 3 rows{words}." in owner.get("/tables/mine").words
        if groups == "2":
            kept = owner.post("/tables/mine/columns", caps)
            assert (kept.status, "in at most … groups : give a number" in kept.words) == (400, True)
    # 3. suggestions are paid once, and fill the form of further columns
    page = owner.get("/tables/mine/columns")
    assert "it costs a part of the budget, of which ε = 30 is left" in page.words
    fields = {"epsilon": "20", "number-0": "wage"}
    shown = owner.pay(page, "/tables/mine/suggest", **fields)
    assert (shown.status, "This costs ε = 20 . Now ε = 30 is left" in shown.words) == (200, True)
    needed = enough_for_bounds(Fraction(20), Unit("person"))
    assert (
        f"about {needed} different values of person to find the bounds of a column" in shown.words
    )
    found = {owner.pay(shown, "/tables/mine/suggest", **fields).to for _ in range(2)}
    assert len(found) == 1
    assert served.send("GET", "/v1/tables/mine/budget").json["charges"] == 1
    shown = owner.get(found.pop())
    assert "suggested from the rows" in shown.words
    columns = dict(re.findall(r'name="column-(\d+)" value="(\w+)"', shown.text))
    assert set(columns.values()) == {"wage"}  # no other one shared the price
    (wage,) = columns
    upper = re.search(rf'name="upper-{wage}" value="([\d.]+)"', shown.text)
    assert upper is not None
    add = {"key": shown.hidden("key"), f"column-{0}": "wage", "type-0": "number", "use-0": "yes"}
    add |= {"lower-0": "0", "upper-0": upper[1]}
    assert owner.post("/tables/mine/columns", add).to == "/tables/mine"
    assert f"wage number 0 to {float(upper[1]):g}" in owner.get("/tables/mine").words
    # 4. so is the number of rows of each person
    page = owner.get("/tables/mine/columns")
    assert "At most 3 rows of each person count now" in page.words
    assert "the limit of this table has no δ" in page.words
    fields = {"once": page.hidden("once"), "epsilon": "5", "of": "rows"}
    priced = owner.pay(page, "/tables/mine/suggest", **fields)
    assert (
        f"about {enough_for_cap(Fraction(5), Unit('person'))} different values of person;"
        in priced.words
    )
    shown = owner.get(owner.pay(priced, "/tables/mine/suggest", **fields).to)
    (rows,) = re.findall(r'name="rows"[^>]* value="(\d+)"', shown.text)
    other = {**fields, "epsilon": "4", "agreed": "ε = 4"}
    again = owner.pay(priced, "/tables/mine/suggest", **other)
    assert (again.status, "Nothing more was paid" in again.words) == (409, True)
    assert fields["once"] not in again.text
    # 5. what was paid has pages
    links = re.findall(r'href="(/answers/suggest[^"]*)">answer', owner.get("/tables/mine").text)
    assert len(links) == 2
    for link in links:
        assert "Declare what was found" in owner.get(link).words
        assert "suggested from the rows" in owner.get(f"{link}/statement").words
        assert owner.get(f"{link}/receipt.json").status == 200
        assert owner.get(f"{link}/answer.csv").status == 404
    sent = {"key": shown.hidden("key"), "rows": rows}
    assert owner.post("/tables/mine/columns", {**sent, "rows": "x"}).status == 400
    assert owner.post("/tables/mine/columns", sent).to == "/tables/mine"
    assert f"at most {rows} rows" in owner.get("/tables/mine").words


def test_an_empty_service_leads_to_its_first_table(tmp_path: Path) -> None:
    """Its owner knows no bounds: they are left open, found in the rows for a price or typed, and
    declared."""
    rows = "".join(f"{n % 40 / 4},{n % 9},{n % 3}\n" for n in range(3000))
    (tmp_path / "stays.csv").write_text(f"cost,days,floor\n{rows}", encoding="utf-8")
    file = tmp_path / "discreet.toml"
    with kit.serving(file, "--workers", "1") as (port, token, process):
        served = Served(port, token, tmp_path, process)
        owner = Browser(served).sign_in(token)
        # 1. every page leads there
        for page in ("/tables", "/desk", "/receipts"):
            assert "No table is declared yet" in owner.get(page).words
        assert "Declare the first table" in owner.get("/desk").words
        ana = Browser(served).sign_in(served.token("ana"))
        assert "The owner declares them" in ana.get("/tables").words
        # 2. numbers without bounds are left for the next step
        looked = owner.send("/desk/declare", "/desk/declare/look", source="stays.csv")
        fields = {"column-0": "cost", "type-0": "number", "use-0": "yes", "source": "stays.csv"}
        fields |= {"column-2": "floor", "type-2": "number", "unit": "row", "name": "stays"}
        fields |= {"column-1": "days", "type-1": "integer", "use-1": "yes"}
        made = owner.post("/desk/declare", {**fields, "epsilon": "9", "key": looked.hidden("key")})
        assert (made.status, made.to) == (303, "/tables/stays/columns?find=0.1"), made.words
        shown = owner.get(made.to)
        assert re.findall(r'name="number-\d+" value="(\w+)"( checked)?', shown.text) == [
            ("cost", " checked"),
            ("days", " checked"),
            ("floor", ""),
        ]
        (days,) = read(file)["stays"].declaration.columns.values()
        assert days.lower is None
        asked = {"sql": "SELECT COUNT(*) AS n FROM stays", "epsilon": 1, "request": "n"}
        (row,) = served.send("POST", "/v1/tables/stays/ask", asked).json["rows"]
        assert abs(row["n"] - 3000) < 100
        # 3. or typed: each that lacks bounds has fields, those that were left open first
        named = re.findall(r'name="(column-\d)" value="(\w+)"', shown.text)
        assert [name for _, name in named] == ["cost", "days", "floor"]
        typed = {"key": shown.hidden("key"), **dict(named), "use-1": "yes", "type-1": "integer"}
        typed |= {"lower-1": "0", "upper-1": "8"}
        assert owner.post("/tables/stays/columns", typed).to == "/tables/stays"
        assert read(file)["stays"].declaration.columns["days"].upper == 8
        # 4. they are found for a price, and declared
        shown = owner.get("/tables/stays/columns")
        assert [
            name for _, name in re.findall(r'name="(column-\d)" value="(\w+)"', shown.text)
        ] == [
            "cost",
            "floor",
        ]
        fields = {"epsilon": "5", "number-0": "cost"}
        priced = owner.pay(shown, "/tables/stays/suggest", **fields)
        found = owner.get(owner.pay(priced, "/tables/stays/suggest", **fields).to)
        sent = dict(
            re.findall(r'name="((?:column|lower|upper|type)-0)" value="([^"]*)"', found.text)
        )
        assert sent["column-0"] == "cost"
        sent |= {"key": found.hidden("key"), "use-0": "yes", "type-0": "number"}
        assert owner.post("/tables/stays/columns", sent).to == "/tables/stays"
        upper = read(file)["stays"].declaration.columns["cost"].upper
        assert isinstance(upper, Fraction)
        assert 9 <= upper < 100


@pytest.mark.parametrize("of", ["columns", "rows"])
def test_the_pages_pay_for_no_suggestion_before_its_price_was_shown(
    served: Served, of: str
) -> None:
    """The price is that which the form shows, and a text that is none is refused."""
    path = "/tables/wages/suggest"
    owner = Browser(served).sign_in(served.owner)
    shown = owner.get("/tables/wages/columns")
    before = served.send("GET", "/v1/tables/wages/budget").json
    chosen = {"number-0": "hours"} if of == "columns" else {}
    for number in ("0.1", "0.31", "0.2"):
        shown = owner.pay(shown, path, of=of, epsilon=number, **chosen)
        assert (shown.status, shown.hidden("agreed")) == (200, f"ε = {number}")
        assert f"Pay ε = {number} and suggest {of}" in shown.words
    for wrong in ({"epsilon": "1,5"}, {"epsilon": "0"}, {"epsilon": "-1"}, {"delta": "1"},
                  {"delta": "x"}, {"of": "all"}):  # fmt: skip
        fields = {"of": of, "epsilon": "0.2", **chosen, **wrong}
        assert owner.pay(shown, path, **fields).status == 400, wrong
    for choice in ({}, {"text-0": "job"}):  # keys of texts need a delta
        assert owner.pay(shown, path, epsilon="0.2", **choice).status == 400, choice
    assert served.send("GET", "/v1/tables/wages/budget").json == before


def test_suggestions_that_a_crash_lost_are_explained(served: Served) -> None:
    """The charge is recorded, no suggestion is stored: the form says so and does not pay again."""
    owner = Browser(served).sign_in(served.owner)
    fields = {"epsilon": "0.2", "number-0": "hours"}
    shown = owner.pay(owner.get("/tables/wages/columns"), "/tables/wages/suggest", **fields)
    once = shown.hidden("once")
    request = Request(f"suggest {once}", "another body")
    served.ledger.charge(Pure(0.2), purpose="SUGGEST hours", by="owner", request=request)
    before = served.send("GET", "/v1/tables/wages/budget").json
    lost = owner.pay(shown, "/tables/wages/suggest", **fields)
    assert lost.status == 409
    assert "ended before it had stored what was found. Nothing more was paid" in lost.words
    assert lost.hidden("once") != once
    assert served.send("GET", "/v1/tables/wages/budget").json == before


def test_a_wide_table_is_declared_by_the_pages(served: Served) -> None:
    """Also one with a column that has no name, which no page can declare."""
    names = ["id", " ", *(f"measure number {n}" for n in range(600))]
    rows = [",".join(f'"{name}"' for name in names), ",".join("1" for _ in names)]
    (served.folder / "wide.csv").write_text("\n".join(rows))
    owner = Browser(served).sign_in(served.owner)
    looked = owner.send("/desk/declare", "/desk/declare/look", source="wide.csv")
    fields = dict(re.findall(r'name="(column-\d+)" value="([^"]*)"', looked.text))
    assert list(fields.values()) == ["id", *names[2:]]
    numbers = [name.partition("-")[2] for name in fields]
    fields |= {f"{name}-{n}": "" for n in numbers for name in ("lower", "upper", "keys")}
    fields |= {f"type-{n}": "integer" for n in numbers} | {"lower-600": "0", "upper-600": "9"}
    fields |= {"key": looked.hidden("key"), "source": "wide.csv", "name": "wide", "unit": "0"}
    fields |= {"rows": "1", "epsilon": "1"}
    wrong = owner.post("/desk/declare", {**fields, "use-600": "yes", "epsilon": "x"})
    assert (wrong.status, "measure number 599" in wrong.text) == (400, True)
    assert owner.post("/desk/declare", {**fields, "use-600": "yes"}).status == 303
    assert "measure number 599 integer 0 to 9" in owner.get("/tables/wide").words
    every = {f"use-{n}": "yes" for n in numbers[1:]} | {
        f"keys-{n}": "1, " * 60 + "2" for n in numbers[1:]
    }
    refused = owner.post("/tables/wide/columns", {**fields, **every})
    assert (refused.status, "choose fewer" in refused.words) == (400, True)


@pytest.mark.parametrize(
    ("fields", "facts"),
    [
        ({"type": "integer", "keys": "1..3"}, {"keys": "1..3"}),
        ({"type": "integer", "keys": "1, 2"}, {"keys": [1, 2]}),
        ({"type": "text", "keys": 'a, "b, c"'}, {"keys": ["a", "b, c"]}),
        ({"type": "number", "lower": "0", "upper": "1.50"}, {"lower": 0, "upper": Decimal("1.50")}),
        ({"type": "date", "lower": "2020-01-01", "format": "%d"},
         {"lower": "2020-01-01", "format": "%d"}),
        ({"type": "number", "decimals": "2"}, {"decimals": 2}),
        ({"type": "text", "decimals": "2", "format": "%d"}, {}),
    ],
)  # fmt: skip
def test_fields_become_facts(fields: dict[str, str], facts: dict[str, object]) -> None:
    sent = {"column-0": "a", **{f"{name}-0": text for name, text in fields.items()}}
    assert ColumnFields.sent(sent, 0).facts() == {"type": fields["type"], **facts}


@pytest.mark.parametrize("text", ["1,5", "x", "1e999", "nan", "1 2", "²"])
def test_a_bound_that_is_no_number_is_refused(text: str) -> None:
    column = ColumnFields.sent({"column-0": "a", "type-0": "number", "lower-0": text}, 0)
    with pytest.raises(Problem):
        column.facts()
