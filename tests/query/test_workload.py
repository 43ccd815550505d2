"""Questions planned together: common sums once, tightly composed, and counted as charged."""

from collections.abc import Sequence
from functools import lru_cache

import pytest

from discreet import Ledger, Limit, Unit
from discreet.errors import BudgetExceeded, InvalidArgument, QueryRefused
from discreet.ledger import Share
from discreet.query import Noise, Question, Table, Workload, plan_workload
from tests.query.kit import arrow
from tests.query.test_accuracy import DECLARATION, TABLE

QUESTIONS = [
    "SELECT COUNT(*) AS n FROM t",
    "SELECT AVG(age) AS mean FROM t",
    "SELECT AVG(age) AS again, SUM(wage) AS n FROM t",
    "SELECT place, COUNT(*) AS n FROM t GROUP BY place",
    "SELECT COUNT(*) AS n FROM t WHERE age > 5",
]
LIMITS = [Limit(2), Limit(2, 1e-6), Limit(0.4, 1e-6)]
PRICES = [(0.5, 0), (0.1, 1e-8)]


@lru_cache
def planned_at(count: int, epsilon: float, delta: float) -> Workload:
    return plan_workload(TABLE, QUESTIONS[:count], epsilon=epsilon, delta=delta)


def workload(questions: Sequence[str | Question], *, epsilon: float, delta: float = 0) -> Workload:
    return plan_workload(TABLE, questions, epsilon=epsilon, delta=delta)


def test_questions_of_equal_keys_and_condition_are_one() -> None:
    planned = workload(QUESTIONS, epsilon=1)
    assert [one.serves for one in planned.questions] == [(0, 1, 2), (3,), (4,)]
    together = planned.questions[0].question.query
    assert [one.name for one in together.aggregates] == ["n", "mean", "n_2"]
    assert (
        together
        == TABLE.question("SELECT COUNT(*) AS n, AVG(age) AS mean, SUM(wage) AS n_2 FROM t").query
    )


def test_common_aggregates_cost_once() -> None:
    once = workload(QUESTIONS[:1], epsilon=1)
    thrice = workload(QUESTIONS[:1] * 3, epsilon=1)
    assert once.privacy_loss == thrice.privacy_loss
    assert [one.price for one in once.questions] == [one.price for one in thrice.questions]


@pytest.mark.parametrize(("epsilon", "delta"), PRICES)
@pytest.mark.parametrize("count", [1, 4])
def test_all_together_cost_at_most_the_price(epsilon: float, delta: float, count: int) -> None:
    planned = planned_at(count, epsilon, delta)
    reached = planned.privacy_loss.epsilon(delta)
    assert 0.9 * epsilon < reached <= epsilon
    parts = [one.question.forecast(one.price).privacy_loss for one in planned.questions]
    assert parts == [one.privacy_loss for one in planned.questions]


def test_exact_composition_gives_more_than_equal_shares() -> None:
    """With a delta, many questions get more epsilon each than they would add up to."""
    many = [f"SELECT COUNT(*) AS n FROM t WHERE age > {n}" for n in range(24)]
    planned = workload(many, epsilon=1, delta=1e-6)
    assert sum(one.price.epsilon for one in planned.questions) > 2
    assert {one.price.noise for one in planned.questions} == {Noise.GAUSSIAN}
    assert planned.privacy_loss.epsilon(1e-6) <= 1


@pytest.mark.parametrize("limit", LIMITS, ids=str)
@pytest.mark.parametrize(("epsilon", "delta"), PRICES)
def test_a_workload_fits_as_often_as_the_ledger_admits_it(
    limit: Limit, epsilon: float, delta: float
) -> None:
    planned = planned_at(4, epsilon, delta)
    if limit.delta == 0 and delta:
        return
    count = planned.count_in(limit)
    ledger = Ledger.in_memory(unit=Unit("person"), limit=limit)
    for left in range(count, 0, -1):
        assert planned.count_left(ledger.filter, ledger.sums) == left
        charge(ledger, planned)
    assert planned.count_left(ledger.filter, ledger.sums) == 0
    with pytest.raises(BudgetExceeded):
        charge(ledger, planned)


def charge(ledger: Ledger, planned: Workload) -> None:
    for one in planned.questions:
        ledger.charge(one.privacy_loss, purpose="x", by="ana")


@pytest.mark.parametrize("terms", ["Pure(0.07)", "Gaussian(8)", "Gaussian(30)", "Zcdp(0.002)"])
def test_one_charge_fits_as_often_as_counted(terms: str) -> None:
    from discreet.accounting import parse

    loss = parse(terms)
    ledger = Ledger.in_memory(unit=Unit("person"), limit=Limit(2, 1e-6))
    count = ledger.count_left(loss)
    for _ in range(count):
        ledger.charge(loss, purpose="x", by="ana")
    with pytest.raises(BudgetExceeded):
        ledger.charge(loss, purpose="x", by="ana")


def _planned(limit: float) -> Workload:
    return _planned_for(Ledger.in_memory(unit=Unit("person"), limit=Limit(limit)))


def _planned_for(ledger: Ledger | Share) -> Workload:
    rows = [{"person": n, "wage": 5.0, "age": 30, "member": True, "place": "a"} for n in range(9)]
    return plan_workload(Table.declared(_arrow(rows), DECLARATION, ledger), QUESTIONS, epsilon=1)


def _ledger(planned: Workload) -> Ledger:
    found = planned.questions[0].question.table.ledger
    assert isinstance(found, Ledger)
    return found


def test_a_planned_workload_is_released() -> None:
    planned = _planned(2)
    answers = planned.release(by="ana")
    assert _ledger(planned).spent().reached == 1
    assert [one.plan.query for one in answers] == [one.question.query for one in planned.questions]
    losses = [one.privacy_loss for one in planned.questions]
    assert [one.privacy_loss for one in answers] == losses


@pytest.mark.parametrize("limit", [0.3, 0.999])
def test_a_workload_that_does_not_fit_is_refused_before_its_first_question(limit: float) -> None:
    planned = _planned(limit)
    with pytest.raises(BudgetExceeded, match="3 questions"):
        planned.release()
    assert _ledger(planned).spent().reached == 0


@pytest.mark.parametrize(("whole", "own"), [(2, 0.9), (0.9, 2)])
def test_a_workload_over_a_share_asks_both_filters_before_its_first_question(
    whole: float, own: float
) -> None:
    ledger = Ledger.in_memory(unit=Unit("person"), limit=Limit(whole))
    ledger.grant("ana", limit=Limit(own), by="owner")
    planned = _planned_for(ledger.share("ana"))
    with pytest.raises(BudgetExceeded, match="3 questions"):
        planned.release(by="ana")
    assert ledger.spent().reached == 0


def test_a_workload_is_asked_once_under_its_request() -> None:
    """Also where a part of it was asked before, and little is left."""
    planned = _planned(1)
    first = planned.questions[0]
    one = first.question.release(first.price, by="ana", request="may/0")
    answers = planned.release(by="ana", request="may")
    assert answers[0].table == one.table
    again = planned.release(by="ana", request="may")
    assert [a.table for a in again] == [a.table for a in answers]
    assert _ledger(planned).spent().reached == 1
    with pytest.raises(BudgetExceeded):
        planned.release(by="ben", request="may")


def _arrow(rows: Sequence[dict[str, object]]) -> object:
    import pyarrow as pa

    return pa.Table.from_pylist(list(rows))


@pytest.mark.parametrize(
    "questions", [[], "SELECT COUNT(*) FROM t", [3], None, [None], {"a": "SELECT COUNT(*) FROM t"}]
)
def test_other_lists_are_refused(questions: object) -> None:
    with pytest.raises(InvalidArgument):
        workload(questions, epsilon=1)  # type: ignore[arg-type]  # what a caller may do


def test_a_question_without_a_rule_is_refused() -> None:
    with pytest.raises(QueryRefused):
        workload(["SELECT COUNT(*) FROM t", "SELECT secret FROM t"], epsilon=1)


def test_questions_of_another_table_are_refused() -> None:
    from dataclasses import replace

    other = Table.declared(arrow([]), replace(DECLARATION, name="other"))
    with pytest.raises(InvalidArgument, match="for another table"):
        workload([other.question("SELECT COUNT(*) FROM other")], epsilon=1)


def test_a_workload_prints_its_questions_and_cost() -> None:
    planned = workload(QUESTIONS, epsilon=1)
    assert "5 questions, asked as 3, cost together ε = 1" in str(planned)
    assert "(for 1, 2, 3)" in str(planned)
    assert "age &gt; 5" in planned._repr_html_()
