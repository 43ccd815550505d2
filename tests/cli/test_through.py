"""``discreet declare --through`` writes what a hand-written declaration of links says."""

import tomllib
from pathlib import Path

import pytest

from tests.cli.kit import Run

FILE = Path("discreet.toml")
ORDERS = ("declare", "orders.csv", "--unit", "customer", "--rows", "3", "--epsilon", "9")
PURCHASES = ("declare", "purchases.csv", "--rows", "2", "--bound", "x=0..9")


@pytest.fixture
def declared(run: Run) -> Run:
    """A table with ids is declared, and a file with its keys is there."""
    Path("orders.csv").write_text("customer,id,shop\nu,1,a\nu,2,a\nv,3,b\n")
    Path("purchases.csv").write_text("id,order,shop,x\n1,1,a,3\n2,1,a,4\n3,3,b,5\n")
    assert run(*ORDERS).code == 0
    return run


@pytest.mark.parametrize(
    ("texts", "on"),
    [
        (["id=orders"], "id"),
        (["id=orders.id"], "id"),
        (["order=orders.id"], {"order": "id"}),
        (["id=orders", "shop=orders.shop"], ["id", "shop"]),
        (["order=orders.id", "shop=orders"], {"order": "id", "shop": "shop"}),
    ],
    ids=str,
)
def test_the_key_is_written_in_its_shortest_form(
    declared: Run, texts: list[str], on: object
) -> None:
    options = [part for text in texts for part in ("--through", text)]
    ended = declared(*PURCHASES, *options)
    assert ended.code == 0, ended.err
    table = tomllib.loads(FILE.read_text())["tables"]["purchases"]
    keys = [text.partition("=")[0] for text in texts]
    columns = {name for name in ("id", "order", "shop", "x") if name not in keys}
    assert table.pop("columns").keys() == columns
    assert table == {
        "source": "purchases.csv",
        "through": {"table": "orders", "on": on},
        "rows": 2,
    }
    assert "one customer counts for at most 3 values" in " ".join(ended.out.split())
    asked = ("ask", "purchases", "SELECT SUM(x) FROM purchases", "--epsilon", "1")
    assert declared(*asked).code == 0


def test_the_same_once_more_changes_nothing_and_other_settings_change(declared: Run) -> None:
    first = (*PURCHASES, "--through", "order=orders.id")
    for again in (first, first, PURCHASES):
        assert declared(*again).code == 0
        written = tomllib.loads(FILE.read_text())["tables"]["purchases"]
        assert written["rows"] == 2
    assert declared("declare", "purchases.csv", "--rows", "5").code == 0
    changed = tomllib.loads(FILE.read_text())["tables"]["purchases"]
    assert changed == written | {"rows": 5}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--through", "order=other.id", "--rows", "2"], "tables with ids: orders"),
        (["--through", "order=orders.", "--rows", "2"], "tables with ids: orders"),
        (["--through", "order", "--rows", "2"], "begin with the column's name"),
        (["--through", "nothing=orders", "--rows", "2"], "no column 'nothing'"),
        (["--through", "order=orders.nothing", "--rows", "2"], "'nothing' is no column"),
        (["--through", "order=orders.id"], "give the most rows that one order may count for"),
        (["--through", "order=orders.id", "--rows", "2", "--groups", "1"], "leave it out"),
        (["--through", "order=orders.id", "--rows", "2", "--unit", "id"], "that of orders counts"),
        (["--through", "order=orders.id", "--rows", "2", "--row"], "that of orders counts"),
        (["--through", "order=orders.id", "--rows", "2", "--epsilon", "3"], "that of orders"),
        (["--through", "order=orders.id", "--rows", "2", "--ledger", "l"], "that of orders"),
        (["--through", "order=orders.id", "--suggest", "0.1"], "keys in place of ids"),
        (["--row", "--epsilon", "1", "--through", "x=orders.id", "--rows", "1"], "leave it out"),
        (["--rows", "2", "--epsilon", "1"], "need --through"),
    ],
    ids=str,
)
def test_a_wrong_way_is_refused(declared: Run, options: list[str], said: str) -> None:
    before = FILE.read_text()
    ended = declared("declare", "purchases.csv", *options)
    assert ended.code != 0
    assert said in ended.message
    assert FILE.read_text() == before
    assert not Path("orders.ledger").exists()


def test_the_table_with_the_ids_comes_first(run: Run) -> None:
    Path("purchases.csv").write_text("order,x\n1,3\n")
    ended = run(*PURCHASES, "--through", "order=orders.id")
    assert ended.code == 2
    assert "none yet: declare it first, with --unit" in ended.message
    assert not FILE.exists()


def test_a_declared_way_is_changed_by_hand_only(declared: Run) -> None:
    assert declared(*PURCHASES, "--through", "order=orders.id").code == 0
    for text, table in (("id=orders", "purchases"), ("id=orders.id", "orders")):
        ended = declared("declare", f"{table}.csv", "--through", text, "--rows", "3")
        assert ended.code == 2
        assert f"{table} is declared already" in ended.message
