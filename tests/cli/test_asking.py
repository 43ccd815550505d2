"""``discreet ask`` answers on stdout, tells on stderr, and is paid first."""

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from discreet._budget import Limit, Receipt
from discreet._unit import Unit
from discreet.accounting import Pure
from discreet.cli import _asking
from discreet.ledger import Ledger, _store
from discreet.query import Question
from discreet.query._bounding import _compiled_plan
from tests.cli.kit import BY_UNION, COUNT, DECLARE, Run

LEDGER = Path("wages.ledger")


@pytest.fixture
def ask(run: Run) -> Run:
    """Asks a declared table."""
    run(*DECLARE)
    return lambda *arguments: run("ask", "wages", *arguments)


def test_an_answer_is_on_stdout_and_its_cost_on_stderr(ask: Run) -> None:
    ended = ask(BY_UNION, "--epsilon", "0.5")
    assert ended.code == 0
    head, false, true = ended.out.splitlines()
    assert head.split() == ["in_union", "pay", "interval", "n", "interval"]
    assert false.split()[0] == "false"
    assert true.split()[0] == "true"
    assert "this question cost ε = 0.5" in ended.err
    assert "spent ε = 0.5 of ε = 2, δ = 1e-06; one more question may cost at most" in ended.err
    assert "repeat it with --request" in ended.err
    assert Ledger.open(LEDGER).spent().charges == 1


@pytest.mark.parametrize("command", ["ask", "explain"])
@pytest.mark.parametrize("more", [(), ("--json",), ("--epsilon", "1")])
def test_a_question_without_a_table_names_the_one_that_is_declared(
    run: Run, command: str, more: tuple[str, ...]
) -> None:
    none = run(command, COUNT, *more)
    run(*DECLARE)
    one = run(command, COUNT, *more)
    assert none.code == one.code == 2
    for ended, name in ((none, "TABLE"), (one, "wages")):
        said = " ".join((ended.err + ended.out).replace("│", " ").replace("\\", "").split())
        assert f'discreet {command} {name} "SELECT ..."' in said
    assert "Missing argument" not in one.err


def test_json(ask: Run) -> None:
    ended = ask(BY_UNION, "--epsilon", "0.5", "--json", "--confidence", "0.9")
    answer = json.loads(ended.out)
    assert answer["confidence"] == 0.9
    assert [row["in_union"] for row in answer["rows"]] == [False, True]
    assert set(answer["rows"][0]) >= {"pay", "pay_low", "pay_high", "n", "n_error"}


def test_csv(ask: Run) -> None:
    ended = ask(BY_UNION, "--epsilon", "0.5", "--csv")
    rows = list(csv.DictReader(io.StringIO(ended.out)))
    assert [row["in_union"] for row in rows] == ["false", "true"]
    assert all(int(row["n_low"]) <= int(row["n"]) <= int(row["n_high"]) for row in rows)


def test_parquet(ask: Run) -> None:
    ended = ask(BY_UNION, "--epsilon", "0.5", "--parquet", "answer.parquet")
    assert ended.out == ""
    assert "wrote answer.parquet" in ended.err
    assert pq.read_table("answer.parquet").num_rows == 2


def test_a_request_is_answered_once(ask: Run) -> None:
    first = ask(COUNT, "--epsilon", "0.5", "--csv", "--request", "r1", "--by", "ana")
    again = ask(COUNT, "--epsilon", "0.5", "--csv", "--request", "r1", "--by", "ana")
    assert again.code == 0
    assert again.out == first.out
    assert "free now" in again.err
    assert Ledger.open(LEDGER).spent().charges == 1
    other = ask(COUNT, "--epsilon", "0.25", "--csv", "--request", "r1", "--by", "ana")
    assert other.code == 3
    assert other.out == ""


def test_each_asking_has_a_request_of_its_own(ask: Run) -> None:
    said = [ask(COUNT, "--epsilon", "0.1").err for _ in range(3)]
    assert ["created the ledger" in text for text in said] == [True, False, False]
    ids = [re.findall(r"request (\w+):", text) for text in said]
    assert len({request for (request,) in ids}) == 3
    for (request,) in ids:
        assert ask(COUNT, "--epsilon", "0.1", "--request", request).code == 0
    assert Ledger.open(LEDGER).spent().charges == 3


FREE = "for the same answer, free of charge"


@pytest.mark.parametrize(
    "refused",
    ["budget", "locked", "reused", "unread", "unwritable", "undeclared", "failing"],
)
def test_nothing_is_called_free_that_is_not(
    refused: str, ask: Run, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every error, before the charge and behind it, whatever it is."""
    spent = "1"
    match refused:
        case "budget":
            assert ask(COUNT, "--epsilon", "1.5").code == 0
        case "locked":
            ledger = Ledger.open_or_create(LEDGER, unit=Unit("person"), limit=Limit(2, 1e-6))
            ledger.lock(ledger.charge(Pure(0.1), purpose="x", by="y"))
        case "reused":
            assert ask(COUNT, "--epsilon", "0.1", "--request", "r").code == 0
        case "unread":
            Path("wages.parquet").write_bytes(b"no table")
        case "unwritable":
            LEDGER.write_bytes(b"no ledger")
        case "undeclared":
            spent = "-1"
        case "failing":
            monkeypatch.setattr(_compiled_plan.CompiledPlan, "compute", lambda *_: 1 / 0)
    ended = ask(BY_UNION, "--epsilon", spent, "--request", "r")
    assert ended.code != 0
    assert FREE not in ended.err
    assert "request r:" not in ended.err


@pytest.mark.parametrize("last", ["before", "charge", "compute", "keep", "after"])
def test_a_stopped_request_tells_what_became_of_it(
    last: str, ask: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C at each stage: the message says what asking again will do, and it does that."""

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    def stopped_behind(real: Callable[..., object]) -> Callable[..., None]:
        def call(*given: object, **named: object) -> None:
            real(*given, **named)
            raise KeyboardInterrupt

        return call

    asked = (COUNT, "--epsilon", "0.5", "--request", "r1")
    with monkeypatch.context() as planted:
        match last:
            case "before":
                planted.setattr(Ledger, "charge", stop)
            case "charge":
                planted.setattr(Ledger, "charge", stopped_behind(Ledger.charge))
            case "compute":
                planted.setattr(_compiled_plan.CompiledPlan, "compute", stop)
            case "keep":
                planted.setattr(Ledger, "keep", stopped_behind(Ledger.keep))
            case "after":
                planted.setattr(_asking, "show_answer", stop)
        ended = ask(*asked)
    assert (ended.code, ended.out) == (130, "")
    assert "stopped; what was paid stays paid" in ended.err
    charges = Ledger.open(LEDGER).spent().charges
    assert ("request r1" in ended.err) == (charges == 1) == (last != "before")
    with monkeypatch.context() as planted:  # programs get the id, too
        if last == "keep":
            planted.setattr(Question, "release", stop)
            failed = json.loads(ask(*asked, "--json").out)
            assert (failed["error"], failed["request"]) == ("interrupted", "r1")
            assert FREE in failed["advice"]
    again = ask(*asked)
    assert (FREE in ended.err) == ("paid before, and free now" in again.err)
    assert (
        ("ask again and pay again" in ended.err)
        == (again.code == 3)
        == (last in ("charge", "compute"))
    )


def test_a_forecast_spends_and_reads_nothing(ask: Run) -> None:
    Path("wages.parquet").unlink()
    ended = ask(BY_UNION, "--epsilon", "0.5", "--forecast")
    assert ended.code == 0
    assert [line.split()[0] for line in ended.out.splitlines()] == ["aggregate", *["pay"] * 3, "n"]
    assert "it would cost ε = 0.5; nothing was spent or read" in ended.err
    assert [path.name for path in Path().iterdir()] == ["discreet.toml"]


def test_a_forecast_for_a_group_in_json(ask: Run) -> None:
    arguments = (BY_UNION, "--epsilon", "0.5", "--forecast", "--json", "--group-size", "50")
    weighted = json.loads(ask(*arguments, "--weight", "n=3").out)
    assert weighted["epsilon"] == pytest.approx(0.5, rel=1e-3)
    assert [(line["name"], line["group_size"]) for line in weighted["expected"]] == [
        ("pay", 50),
        ("n", None),
    ]
    equal = json.loads(ask(*arguments).out)
    assert weighted["expected"][1]["stddev"] < equal["expected"][1]["stddev"]


def test_a_delta_allows_gaussian_noise(ask: Run) -> None:
    ended = ask(COUNT, "--epsilon", "0.5", "--delta", "1e-7", "--noise", "gaussian")
    assert ended.code == 0
    assert "this question cost ε = 0.5, δ = 1e-07" in ended.err


def test_an_explanation_is_in_words(run: Run) -> None:
    run(*DECLARE)
    ended = run("explain", "wages", BY_UNION, "--epsilon", "0.5")
    assert ended.code == 0
    for words in ("Who is protected", "clamped to 0 .. 60", "epsilon 0.5", "not covered", "± "):
        assert words in ended.out
    assert not LEDGER.exists()


def test_nothing_is_asked_beyond_the_budget(ask: Run) -> None:
    assert ask(COUNT, "--epsilon", "1.5").code == 0
    ended = ask(COUNT, "--epsilon", "0.6")
    assert ended.code == 4
    assert ended.out == ""
    assert "the limit is 2" in ended.err
    assert ask(COUNT, "--epsilon", "0.5").code == 0


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT MODE(wage) FROM wages", "MODE"),
        ("SELECT wage FROM wages", "wage"),
        ("SELECT AVG(hours) FROM wages", "'hours' is not declared"),
        ("SELECT COUNT(*) FROM wages GROUP BY wage", "FLOOR(x / 10)"),
        ("SELECT SUM(year) FROM wages", "--bound year="),
        ("DROP TABLE wages", "DROP"),
    ],
)
def test_a_question_without_a_rule_is_refused(sql: str, message: str, ask: Run) -> None:
    for more in ((), ("--forecast",)):
        ended = ask(sql, "--epsilon", "0.1", *more)
        assert ended.code == 3
        assert ended.out == ""
        assert message in ended.err
    assert not LEDGER.exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([], "Missing option '--epsilon'"),
        (["--epsilon", "-1"], "'--epsilon': '-1': give a finite number above 0"),
        (["--epsilon", "inf"], "'--epsilon'"),
        (["--epsilon", "true"], "'--epsilon'"),
        (["--epsilon", "1e999999999"], "'--epsilon'"),
        (["--epsilon", "1", "--delta", "1.5"], "'--delta'"),
        (["--epsilon", "1", "--confidence", "1"], "'--confidence': '1': give a number strictly"),
        (["--epsilon", "1", "--noise", "gauss"], "'--noise'"),
        (["--epsilon", "1", "--noise", "gaussian"], "'--noise': gaussian needs a delta"),
        (["--epsilon", "1", "--weight", "x=2"], "'--weight': 'x=2': give NAME=NUMBER for one of n"),
        (["--epsilon", "1", "--weight", "n=0"], "'--weight': '0'"),
        (["--epsilon", "1", "--group-size", "0"], "'--group-size'"),
        (["--epsilon", "1", "--forecast", "--group-size", "0"], "'--group-size'"),
        (["--epsilon", "1", "--forecast", "--csv"], "'--forecast': use it without --csv"),
        (["--epsilon", "1", "--csv", "--json"], "give one of them"),
        (["--epsilon", "1", "--parquet", "gone/a.parquet"], "'--parquet'"),
        (["--epsilon", "1", "--parquet", "."], "'--parquet'"),
        (["--epsilon", "1", "--request", ""], "'--request'"),
        (["--epsilon", "1", "--request", "x" * 201], "'--request'"),
        (["--epsilon", "1", "--by", " "], "'--by'"),
        (["--epsilon", "1", "--file", "gone.toml"], "gone.toml: there is no such file"),
    ],
)
def test_a_mistake_costs_nothing(more: list[str], message: str, ask: Run) -> None:
    ended = ask(COUNT, *more)
    assert ended.code == 2
    if "--json" in more:
        assert json.loads(ended.out)["error"] == "usage"
    else:
        assert ended.out == ""
    assert message in ended.message
    assert not LEDGER.exists()


def test_an_unknown_table(run: Run) -> None:
    run(*DECLARE)
    ended = run("ask", "wage", COUNT, "--epsilon", "1")
    assert ended.code == 2
    assert "no table 'wage' (did you mean wages?); it declares wages" in ended.message


def test_a_source_that_is_gone_costs_nothing(ask: Run) -> None:
    Path("wages.parquet").unlink()
    ended = ask(COUNT, "--epsilon", "1")
    assert ended.code == 2
    assert "wages.parquet: there is no such file" in ended.message
    assert not LEDGER.exists() or Ledger.open(LEDGER).spent().charges == 0


def test_an_answer_that_cannot_be_written_is_not_lost(
    ask: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.write_table", full)
    ended = ask(COUNT, "--epsilon", "1", "--parquet", "a.parquet", "--request", "r")
    assert ended.code == 5
    assert "a.parquet: it can't be written (No space left on device)" in ended.err
    assert ask(COUNT, "--epsilon", "1", "--csv", "--request", "r").code == 0


def test_ctrl_c_leaves_paid_what_was_paid(ask: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(COUNT, "--epsilon", "0.5")

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Question, "release", stopped)
    ended = ask(COUNT, "--epsilon", "0.5")
    assert ended.code == 130
    assert "what was paid stays paid" in ended.err
    assert "Traceback" not in ended.err
    assert Ledger.open(LEDGER).spent().charges == 1


def test_a_column_is_checked_and_paid_as_one_count(run: Run) -> None:
    lines = [f"{person};{'1,5' if person % 4 else '2'}\n" for person in range(4_000)]
    Path("visits.csv").write_text("person;pay\n" + "".join(lines))
    run(
        *(
            "declare",
            "visits.csv",
            "--unit",
            "person",
            "--rows",
            "9",
            "--delimiter",
            ";",
            "--epsilon",
            "2",
        ),
        *("--type", "pay=number", "--bound", "pay=0..9"),
    )
    once = ("--epsilon", "1", "--confidence", "0.999999999", "--request", "one")
    ended = run("check", "visits", "pay", *once)
    assert ended.code == 0, ended.err
    assert ended.out.startswith("about 7")
    assert "of pay became NULL (between 7" in ended.out
    assert "this check cost ε = 1" in ended.message
    again = run("check", "visits", "pay", *once, "--json")
    assert "paid before, and free now" in again.message
    found = json.loads(again.out)
    assert found["share_low"] <= 0.75 <= found["share_high"] <= found["share_low"] + 0.2
    assert run("check", "visits", "pay", "--epsilon", "1.5").code == 4
    assert run("check", "visits", "gone", "--epsilon", "0.1").code == 3


def test_a_stopped_check_names_its_request(
    ask: Run, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = Ledger.keep

    def stopped(ledger: Ledger, receipt: Receipt, answer: str) -> None:
        keep(ledger, receipt, answer)
        raise KeyboardInterrupt

    ask(COUNT, "--epsilon", "0.5")
    checked = ("check", "wages", "wage", "--epsilon", "0.5", "--json")
    with monkeypatch.context() as planted:
        planted.setattr(Ledger, "keep", stopped)
        failed = json.loads(run(*checked).out)
    assert FREE in failed["advice"]
    again = run(*checked, "--request", failed["request"])
    assert "paid before, and free now" in again.message


def test_asking_reads_no_chain(ask: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The receipt tells what is left, however many entries there are."""
    said = ask(COUNT, "--epsilon", "0.5").err

    def reading(_: object) -> None:
        raise AssertionError("the whole chain was read")

    monkeypatch.setattr(_store.Transaction, "links", reading)
    for ended in (ask(COUNT, "--epsilon", "0.5"), ask(COUNT, "--epsilon", "0.1", "--request", "r")):
        assert ended.code == 0
        assert "one more question may cost at most" in ended.err
    assert "spent ε = 0.5 of" in said
    assert "spent ε = 1.1 of" in ended.err
