"""Everything that a question meets is a table in notebooks, and no text of it becomes markup."""

import importlib
import json
import pkgutil
from collections.abc import Hashable, Mapping
from enum import Enum
from fractions import Fraction
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import discreet as dp
from discreet import Ledger, Limit, Unit, audit, explore, local, train
from discreet._exact import Number
from discreet.accounting import calibrate
from discreet.accounting.terms import Laplace
from discreet.mechanisms import Bounded, DiscreteLaplace, release
from discreet.query import Column, Noise, Table, count, plan_workload, suggest
from discreet.query import sum as total
from discreet.service import RemoteAnswer, RemoteTable, RemoteTables
from discreet.service._transport import ServiceAddress

ODD = "<script>alert(1)</script> & \"'\u202e\u0301 ✓"
UNIT = Unit("<b>id</b>")
Law = Mapping[Hashable, Number]
ROWS = {"<b>id</b>": [1, 2, 3], "wage": [1.0, 2.0, 3.0], "place": [ODD, "b", ODD]}
ROWS |= {ODD: [1.0, 2.0, 2.0], "is": [True, False, True]}


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    ledger = Ledger.in_memory(unit=UNIT, limit=Limit(9, 1e-6))
    columns = {"wage": Column.number(0, 9), "place": Column.text(keys=[ODD, "b"])}
    columns |= {ODD: Column.number(0, 2), "is": Column.boolean()}
    table = Table(pa.table(ROWS), name="<i>t", unit=UNIT, columns=columns, rows=1, ledger=ledger)
    question = table.question('SELECT place, AVG(wage) AS "<u>x" FROM "<i>t" GROUP BY place')
    ledger.grant(ODD, limit=Limit(1), by="owner")
    single = Bounded(lambda: 3, sensitivity=1, unit=UNIT, name=ODD)
    answer = question.release(epsilon=1, by=ODD, request=ODD)
    calls = table.where()
    released = release(single, DiscreteLaplace(2), ledger, by=ODD)
    return {
        "Table": table,
        "Question": question,
        "Diagnosis": table.diagnose(epsilon=0.1),
        "Suggestion": suggest(pa.table(ROWS), unit=UNIT, ledger=ledger, epsilon=0.1),
        "TopGroups": table.top_k("place", 1, epsilon=0.1),
        "Modes": table.mode("place", epsilon=0.1),
        "Contingency": table.contingency("place", "is", epsilon=0.1),
        "Correlations": table.correlation("wage", ODD, epsilon=0.1),
        "Regression": table.regression("wage", on=[ODD], epsilon=0.1),
        "StatisticForecast": calls.regression("wage", on=[ODD]).forecast(epsilon=0.1),
        "Answer": answer,
        "Receipt": answer.receipt,
        "Release": released,
        "processed": released.processed(lambda value: [value, ODD], ODD),
        "Balance": ledger.spent(),
        "Forecast": question.forecast(epsilon=1e-4),
        "QuestionExplanation": question.explain(epsilon=1e-4),
        "Workload": plan_workload(table, [question], epsilon=1),
        "PrivacyLoss": answer.privacy_loss,
        "Selection": table.where(dp.col(ODD) > 1).group_by("place", far=dp.col("wage") > 3),
        "Statistic": calls.regression("wage", on=[ODD]),
        "Moments": calls.moments("wage", ODD).release(epsilon=0.1),
        "Ledger": ledger,
        "ShareBalance": ledger.shares()[0],
        "PublicTable": dp.PublicTable(pd.DataFrame({ODD: [1, 2]}), name="<i>p"),
        **_others(),
    }


def _others() -> dict[str, Any]:
    """Results of audits, a plan, reports of devices, a page and an answer of a service."""
    odd: Law = {ODD: Fraction(3, 4), "no": Fraction(1, 4)}
    other: Law = {ODD: Fraction(1, 4), "no": Fraction(3, 4)}
    service = RemoteTables(ServiceAddress("http://127.0.0.1:9", "<b>secret"))
    table = RemoteTable(service.service, ODD)
    facts = {
        "columns": ["place", "n", "n_low", "n_high"],
        "rows": [{"place": ODD, "n": 3, "n_low": 1, "n_high": 5}],
        "privacy_loss": json.loads(dp.PrivacyLoss.of(Laplace(1)).to_json()),
        "receipt": {},
        "notes": [ODD],
        "request": "r",
    }
    coins = local.RandomizedResponse.with_odds(3)
    return {
        "ExactPrivacy": audit.exact([(odd, other)]),
        "MisuseResult": audit.MisuseResult((audit.MisuseAttempt(ODD, None, is_refused=True),)),
        "PipelineResult": audit.PipelineResult(
            3, 1.0, (audit.PairDifference(0, ODD, ODD, is_certain=True),)
        ),
        "Reconstruction": audit.Reconstruction(4, 3, 2, 1, None),
        "TrainingPlan": train.plan(records=1000, multiplier=2, delta=1e-6, steps=10, batch=100),
        "Estimate": coins.estimate(np.array([0, 1, 1])),
        "Calibration": calibrate(lambda scale: Laplace(1 / scale), epsilon=1),
        "View": explore.view("budget"),
        "Exposure": audit.Exposure(1, 2.0, 3),
        "RemoteAnswer": RemoteAnswer(facts),
        "RemoteTables": service,
        "RemoteTable": table,
        "RemoteQuestion": table.question(ODD),
        "RemoteLedger": table.ledger,
    }


class Read(HTMLParser):
    """The tags and the text of a piece of HTML."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


NAMES = ["Answer", "Receipt", "Release", "processed", "Balance", "Forecast"]
NAMES += ["QuestionExplanation", "Workload", "PrivacyLoss", "Table", "Question", "Diagnosis"]
NAMES += ["Suggestion", "TopGroups", "Modes", "Contingency", "Correlations", "Regression"]
NAMES += ["StatisticForecast"]
NAMES += ["Selection", "Statistic", "Moments", "Ledger", "ShareBalance", "PublicTable"]
NAMES += ["ExactPrivacy", "MisuseResult", "PipelineResult", "Reconstruction", "TrainingPlan"]
NAMES += ["Estimate", "Calibration", "View", "RemoteTables", "RemoteTable", "RemoteQuestion"]
NAMES += ["RemoteLedger", "RemoteAnswer", "Exposure"]


@pytest.mark.parametrize("name", NAMES)
def test_answers_are_tables_of_harmless_tags(shown: dict[str, Any], name: str) -> None:
    read = Read(shown[name]._repr_html_())
    assert "table" in read.tags
    assert set(read.tags) <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "p", "br"}
    assert read.open == []
    assert read.text.strip()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Answer", ODD),
        ("Receipt", ODD),
        ("Receipt", "digest"),
        ("Release", ODD),
        ("processed", "after"),
        ("Balance", "one more charge without a delta may cost at most"),
        ("Forecast", "warning: <u>x: in a group of 10,000 rows"),
        ("Forecast", "as wide as the range"),
        ("QuestionExplanation", "Who is protected"),
        ("QuestionExplanation", "<b>id</b>"),
        ("Workload", 'FROM "<i>t"'),
        ("Table", f"{ODD}number0 .. 2"),
        ("Question", 'FROM "<i>t"'),
        ("Diagnosis", f"{ODD} lie above 2"),
        ("Contingency", ODD),
        ("Correlations", f"wage, {ODD}"),
        ("Regression", ODD),
        ("StatisticForecast", ODD),
        ("Selection", "place, (wage > 3) AS far"),
        ("Statistic", "an epsilon, or an epsilon and a delta"),
        ("Moments", f"mean of {ODD}"),
        ("Ledger", "<b>id</b>"),
        ("Ledger", "one more charge without a delta may cost at most"),
        ("ShareBalance", f"share {ODD}"),
        ("PublicTable", ODD),
        ("ExactPrivacy", "worst event"),
        ("MisuseResult", ODD),
        ("TrainingPlan", "records1000"),
        ("RemoteAnswer", ODD),
        ("RemoteQuestion", ODD),
    ],
)
def test_texts_are_whole(shown: dict[str, Any], name: str, text: str) -> None:
    assert text in Read(shown[name]._repr_html_()).text


def test_every_public_object_of_a_question_is_listed(shown: dict[str, Any]) -> None:
    assert set(NAMES) == set(shown)


# Classes whose line of text says all; values made by `frozen` fields are their own Python
PLAIN = {
    "parts of an object that is a table": {
        *("CutShare", "NoisyEstimate", "PlannedQuestion", "Query"),
        *("FigureTable", "GuessCount", "MisuseAttempt", "PairDifference", "RightGuesses"),
        *("WorstEvent", "NoisyShare", "StepTicket", "EstimateInterval", "Entry", "Share"),
        *("Axis", "RuleLine", "Series", "Part", "RowsPart", "KeysPart", "RealPart", "WeightsPart"),
        *("ProposedPart", "Phase", "Contribution", "Spent"),
    },
    "short values": {
        *("Column", "Declaration", "Unit"),
        *("Request", "ListenAddress", "ChargeOrder", "ExportCheck", "ReceiptCheck", "ChiSquare"),
        *("Components", "Expression"),
        *("Term", "Filter", "FixedPoint", "OnGrid"),
    },
    "computations and settings, not yet run": {
        *("Together", "Rows", "Tuning", "Scored", "Trained", "Collated", "Units"),
        *("UnitOfExample", "Automatic", "Flat", "PerGroup", "PerLayer", "L1", "Adaptive"),
        *("PoissonSampling", "TruncatedPoissonSampling", "ShuffledBatches", "AllocatedBatches"),
        *("WithoutReplacement", "ExactGaussian", "FloatGaussian", "FloatLaplace", "NotPrivate"),
        *("Stage", "StagedComputation", "Chart", "SketchReports"),
    },
    "objects that draw, or hold secrets": {
        *("Door", "Session", "Run", "PermanentAnswers"),
        *("SecureBits", "SeededBits", "ScriptedBits", "RecordingBits"),
        "ZeroNoiseBits",
    },
}
# Classes with a table that are made by slower tests, or by others
ELSEWHERE = {
    *("CompiledSql", "Interval", "NullShare", "AuditReport", "BlackBoxResult", "MembershipResult"),
    *("TrainingRun", "Report"),
}


def _public_classes() -> set[type]:
    """All public classes but roles, choices and errors; mechanisms, terms and laws are left out,
    too: each is a value of `frozen` fields, whose text is the Python that makes it."""
    parts = [
        importlib.import_module(found.name)
        for found in pkgutil.walk_packages(dp.__path__, "discreet.")
        if not any(part.startswith("_") for part in found.name.split(".")[1:])
        and found.name != "discreet.local.client"  # which stands alone, on devices
    ]
    classes = {
        one
        for part in (dp, *parts)
        for name in getattr(part, "__all__", ())
        if isinstance(one := getattr(part, name), type) and not issubclass(one, Exception | Enum)
    }
    return {
        one
        for one in classes
        if not getattr(one, "_is_protocol", False) and not hasattr(one, "__declared_fields__")
    }


def test_every_public_class_is_a_table_in_notebooks_or_has_a_reason() -> None:
    classes = {one.__name__: one for one in _public_classes()}
    without = {name for name, one in classes.items() if not hasattr(one, "_repr_html_")}
    plain = set[str]().union(*PLAIN.values())
    assert without == plain
    assert classes.keys() - without <= set(NAMES) | ELSEWHERE


def test_a_long_answer_shows_its_ends() -> None:
    ledger = Ledger.in_memory(unit=Unit("p"), limit=Limit(epsilon=10))
    for keys in (60, 61, 5_000):
        table = Table(
            pa.table({"p": [1], "k": [0]}),
            unit=Unit("p"),
            rows=1,
            columns={"k": Column.integer(keys=range(keys))},
            ledger=ledger,
        )
        answer = table.group_by("k").agg(n=count()).release(epsilon=1)
        said = f"{keys - 60:,} of {keys:,} rows are not shown"
        for text, line in ((repr(answer), "\n"), (answer._repr_html_(), "<tr>")):
            assert (said in text) == (keys > 60)
            assert 60 <= text.count(line) <= 70
        assert len(answer.cells()) == keys + 1
        assert repr(answer).splitlines()[1].split()[0] == "0"
        ends = [row[0] for row in answer.cells(60)]
        assert ends[-1] == str(keys - 1)
        assert ("…" in ends) == (keys > 60)


def test_a_statement_is_for_people_who_are_not_specialists() -> None:
    ledger = Ledger.in_memory(unit=Unit("p"), limit=Limit(10**6, 1e-6))
    rows = pa.table({"p": [1, 2], "x": [3, 4]})
    columns = {"x": Column.integer(0, 9)}
    table = Table(rows, name="t", unit=Unit("p"), rows=2, columns=columns, ledger=ledger)
    asked = table.agg(n=count(), s=total("x"))
    plain = asked.release(epsilon=0.5, by="ana").in_words
    assert "Question: SELECT COUNT(*) AS n, SUM(x) AS s FROM t" in plain
    assert "all rows of one 'p'" in plain
    assert "epsilon 0.5. With or without one p" in plain
    assert "at most 1.65 times the other." in plain
    assert "one p counts for at most 2 rows; x is clamped to 0 .. 9" in plain
    assert "by ana; digest" in plain
    gaussian = asked.release(epsilon=1, delta=1e-6, noise=Noise.GAUSSIAN).in_words
    assert "but for a probability of 0.000001" in gaussian or "1e-06" in gaussian
    assert "none worth the name" in asked.release(epsilon=1_000).in_words


@pytest.mark.parametrize("by", [(), ("k",)])
def test_many_numbers_stand_below_one_another(by: tuple[str, ...]) -> None:
    """A description of a column has six of them: beside one another they leave the page."""
    frame = pd.DataFrame({"k": [0, 1] * 50, "x": range(100), "y": range(100)})
    columns = {"k": dp.Column.integer(keys=[0, 1])}
    columns |= {name: dp.Column.integer(0, 99) for name in "xy"}
    ledger = dp.Ledger.in_memory(unit=dp.Unit.ROW, limit=dp.Limit(epsilon=99))
    table = dp.Table(frame, unit=dp.Unit.ROW, columns=columns, ledger=ledger)
    answer = table.describe("x", "y", by=by, epsilon=9)
    lines = repr(answer).splitlines()
    assert max(map(len, lines[: 12 * (1 + len(by))])) <= 60
    assert "x_count" in lines[1]
    assert "x_mean" in lines[2]
    html = answer._repr_html_()
    assert html.count("<th>") == 3 + len(by)
    for name in answer.plan.query.columns:
        assert html.count(f"<td>{name}</td>") == (2 if by else 1)
