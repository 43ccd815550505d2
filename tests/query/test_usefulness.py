"""A forecast says which answers will tell nothing, and which epsilon would help."""

import re
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pandas as pd
import pytest

import discreet as dp
from discreet.errors import UselessAnswerWarning
from discreet.query import AggregateFunction, Noise, Question, QuestionPrice, plan_workload
from discreet.query._answers._forecast import Forecast, ForecastLine
from discreet.query._answers._ranges import answer_range
from discreet.query._expressions._aggregates import ESTIMATORS
from discreet.query._questions._usefulness import needed_price
from discreet.query._selection import Selection
from discreet.query._statistics._statistic import Statistic
from tests.query.test_accuracy import DECLARATION, TABLE


def asked(kind: str, argument: str) -> Question:
    return TABLE.question(f"SELECT {kind}({argument}) AS x, COUNT(*) AS n FROM t GROUP BY place")


@pytest.mark.parametrize("function", AggregateFunction)
def test_every_function_has_a_range(function: AggregateFunction) -> None:
    """At the most noise its interval fills the range, and at little noise it doesn't."""
    forms = {AggregateFunction.COUNT_UNITS: "*", AggregateFunction.QUANTILE: "wage, 0.3"}
    forms[AggregateFunction.MODE] = "age"
    pair = "wage, age" if ESTIMATORS[function].takes_two else "wage"
    question = asked(function.value, forms.get(function, pair))
    aggregate = question.query.aggregates[0]
    assert answer_range(aggregate, DECLARATION, 500) is not None
    for epsilon, is_useless in ((1e-6, True), (1000, False)):
        line = question.forecast(epsilon=epsilon, group_size=500).lines[0]
        assert line.is_useless == is_useless
        assert line.judged_size == 500
    known = answer_range(aggregate, DECLARATION, 500)
    line = question.forecast(epsilon=1e-6, group_size=500).lines[0]
    if not (ESTIMATORS[function].has_stddev or ESTIMATORS[function].is_key):  # it is cut there
        assert 2 * line.half_width == pytest.approx(known, rel=1e-3)


@pytest.mark.parametrize(
    ("kind", "argument", "epsilon", "size", "delta"),
    [
        ("COUNT", "wage", 1e-5, None, 0),
        ("SUM", "wage * 2 - age", 0.003, 500, 1e-8),
        ("AVG", "age / 7", 0.003, 500, 0),
        ("AVG", "age", 0.05, 20, 1e-3),
        ("VARIANCE", "wage", 0.05, 500, 0),
        ("STDDEV_POP", "age", 0.003, 1000, 0),
    ],
)
def test_the_named_epsilon_is_enough_and_less_is_not(
    kind: str, argument: str, epsilon: float, size: int | None, delta: float
) -> None:
    question = asked(kind, argument)

    def predicted(price: QuestionPrice) -> Forecast:
        return question.forecast(price, group_size=size)

    price = QuestionPrice(epsilon, delta)
    found = predicted(price)
    useless = {name for name in ("x", "n") if is_useless(found, name)}
    warned = {warning.partition(":")[0] for warning in found.warnings}
    assert warned == useless
    assert useless
    needed = needed_price(question.plan, price, found, useless)
    if needed is None:
        return
    assert needed.epsilon > price.epsilon
    assert not any(is_useless(predicted(needed), name) for name in useless)
    less = QuestionPrice(needed.epsilon * Fraction(99, 100), needed.delta, noise=needed.noise)
    assert any(is_useless(predicted(less), name) for name in useless)
    named = re.search(r"at least epsilon ([\d.e+-]+)", found.warnings[0])
    assert named is not None
    assert needed.epsilon <= Fraction(named[1]) <= needed.epsilon * Fraction(102, 100)


def is_useless(found: Forecast, name: str) -> bool:
    """Whether the aggregate is useless at each size of the forecast."""
    return all(line.is_useless for line in found.lines if line.name == name)


def test_gaussian_noise_is_proposed_where_it_helps_and_is_enough() -> None:
    names = ", ".join(f"SUM(age + {number}) AS x{number}" for number in range(30))
    question = TABLE.question(f"SELECT {names} FROM t")
    found = question.forecast(epsilon=0.5, group_size=1500)
    assert len(found.warnings) == 30
    assert "or delta 1e-06 for Gaussian noise" in found.warnings[0]
    gaussian = question.forecast(epsilon=0.5, delta=1e-6, noise=Noise.GAUSSIAN, group_size=1500)
    assert gaussian.warnings == ()


def test_an_explanation_has_the_warnings() -> None:
    explanation = asked("AVG", "wage").explain(epsilon=1e-5)
    assert [text.partition(":")[0] for text in explanation.forecast.warnings] == ["x", "n"]
    assert f"warning: {explanation.forecast.warnings[0]}" in str(explanation)


def test_where_no_epsilon_helps_other_ways_are_named() -> None:
    """One row can't have a mean: the noise of the count alone is as large."""
    (warning, *_) = asked("AVG", "wage").forecast(epsilon=1, group_size=1).warnings
    assert "no epsilon up to 100 helps" in warning


# --- the warning of a release ---


def _table(epsilon: float) -> tuple[dp.Table, dp.Ledger]:
    ledger = dp.Ledger.in_memory(unit=dp.Unit.ROW, limit=dp.Limit(epsilon=epsilon))
    columns = {"age": dp.Column.integer(0, 90)}
    rows = pd.DataFrame({"age": range(50)})
    return dp.Table(rows, name="t", unit=dp.Unit.ROW, columns=columns, ledger=ledger), ledger


_CALLS: dict[str, Callable[[dp.Table], object]] = {
    "sql": lambda table: table.sql("SELECT AVG(age) AS x FROM t", epsilon=1e-4),
    "release": lambda table: table.agg(x=dp.mean("age")).release(epsilon=1e-4),
    "quantiles": lambda table: table.quantiles("age", [0.5], epsilon=1e-4),
    "correlation": lambda table: (
        table.where(dp.col("age") > 3).agg(x=dp.stddev("age")).release(epsilon=1e-4)
    ),
    "plan": lambda table: plan_workload(
        table, ["SELECT AVG(age) AS x FROM t", "SELECT COUNT(*) AS n FROM t"], epsilon=2e-4
    ).release(),
}


@pytest.mark.parametrize("name", _CALLS)
def test_a_useless_answer_is_announced_once_and_before_it_is_paid(name: str) -> None:
    table, ledger = _table(9)
    with pytest.warns(UselessAnswerWarning, match="at least epsilon|no epsilon") as seen:
        _CALLS[name](table)
    assert len(seen) == 1
    assert {one.filename for one in seen} == {__file__}
    paid = ledger.spent()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UselessAnswerWarning)
        with pytest.raises(UselessAnswerWarning):
            _CALLS[name](table)
    assert ledger.spent() == paid


def test_useful_and_repeated_answers_are_silent() -> None:
    table, _ = _table(9)
    question = table.agg(x=dp.mean("age"))
    with pytest.warns(UselessAnswerWarning):
        first = question.release(epsilon=1e-4, request="a")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UselessAnswerWarning)
        assert question.release(epsilon=1e-4, request="a").to_arrow() == first.to_arrow()
        question.release(epsilon=3)


# --- statistics of rows ---

_STATISTICS: dict[str, Callable[[Selection], Statistic[Any]]] = {
    "contingency": lambda rows: rows.group_by("k", "j").contingency(),
    "top_k": lambda rows: rows.group_by("k").top_k(1),
    "mode": lambda rows: rows.mode("k"),
    "moments": lambda rows: rows.moments("x", "y"),
    "regression": lambda rows: rows.regression("y", on=["x"]),
}
_HAS_NO_FORECAST = {"bounds"}
_HOPELESS = 1e-5


def _rows() -> tuple[Selection, dp.Ledger]:
    ledger = dp.Ledger.in_memory(unit=dp.Unit.ROW, limit=dp.Limit(epsilon=1000))
    columns = {name: dp.Column.integer(keys=[0, 1]) for name in "kj"}
    columns |= {name: dp.Column.integer(0, 90) for name in "xy"}
    rows = pd.DataFrame({name: [0, 1] * 20 for name in columns})
    return dp.Table(rows, unit=dp.Unit.ROW, columns=columns, ledger=ledger).where(), ledger


def test_each_statistic_is_listed() -> None:
    rows, _ = _rows()
    asked = {
        name
        for name, method in vars(Selection).items()
        if "Statistic[" in str(getattr(method, "__annotations__", {}).get("return", ""))
    }
    assert asked == {*_STATISTICS, *_HAS_NO_FORECAST, "_statistic"}
    with warnings.catch_warnings():
        warnings.simplefilter("error", UselessAnswerWarning)
        rows.bounds("x").release(epsilon=1)


@pytest.mark.parametrize("name", _STATISTICS)
def test_a_useless_statistic_is_announced_once_and_before_it_is_paid(name: str) -> None:
    rows, ledger = _rows()
    asked = _STATISTICS[name](rows)
    with pytest.warns(UselessAnswerWarning, match="10,000 rows") as seen:
        asked.release(epsilon=_HOPELESS, request="a")
    assert len(seen) == 1
    assert seen[0].filename == __file__
    paid = ledger.spent()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UselessAnswerWarning)
        asked.release(epsilon=_HOPELESS, request="a")
        with pytest.raises(UselessAnswerWarning):
            asked.release(epsilon=_HOPELESS)
        assert ledger.spent() == paid
        asked.release(epsilon=5)


@pytest.mark.parametrize("name", _STATISTICS)
def test_the_epsilon_that_is_named_for_a_statistic_is_enough_and_less_is_not(name: str) -> None:
    asked = _STATISTICS[name](_rows()[0])
    (warning,) = asked.forecast(epsilon=_HOPELESS, group_size=300).warnings
    assert f"warning: {warning}" in repr(asked.forecast(epsilon=_HOPELESS, group_size=300))
    named = re.search(r"at least epsilon ([\d.e+-]+)$", warning)
    assert named is not None
    needed = Fraction(named[1])
    assert asked.forecast(epsilon=needed, group_size=300).warnings == ()
    assert asked.forecast(epsilon=needed * Fraction(98, 100), group_size=300).warnings


@pytest.mark.parametrize(
    ("half_width", "text"),
    [
        (0.00123, "± 0.00123"),
        (9876.4, "± 9,876"),
        (11_980.4, "± 11,980"),
        (9999.99, "± 10,000"),
        (123_456_789, "± 123,500,000"),
        (1.5e12, "± 1.5e+12"),
    ],
)
def test_widths_are_read_without_exponents(half_width: float, text: str) -> None:
    assert ForecastLine("n", None, half_width, None).width == text
    assert ForecastLine("n", None, half_width, None, worst=half_width).width == (
        f"{text} (at most {text})"
    )
