"""The price that is found for an accuracy meets it, and a lower one does not."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet._unit import Unit
from discreet.errors import InvalidArgument
from discreet.query import (
    Caps,
    Column,
    Declaration,
    Noise,
    Question,
    QuestionPrice,
    Table,
    median,
)
from discreet.query._expressions._aggregates import ESTIMATORS, AggregateFunction
from discreet.query._plan._plan import Plan
from discreet.query._plan._price import price_plan
from tests.query.kit import arrow

DECLARATION = Declaration(
    "t",
    Unit("person"),
    Caps(6, groups=3),
    {
        "wage": Column.number(-20, 60),
        "age": Column.integer(0, 100),
        "member": Column.boolean(),
        "place": Column.text(keys=["a", "b"]),
    },
)
TABLE = Table.declared(arrow([]), DECLARATION)
ARGUMENTS = ["wage", "age", "wage * 2 - age", "age / 7"]
KINDS = [function.value for function, one in ESTIMATORS.items() if not one.is_in_ranks]
KINDS.remove("COUNT_UNITS")  # it takes no argument
KINDS.remove("MODE")  # it takes keys
LEAST = Fraction(1, 10**6)


@st.composite
def questions(draw: st.DrawFn) -> Question:
    """A question with one to three aggregates of any kind."""
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
    several = [2 if ESTIMATORS[AggregateFunction(kind)].takes_two else 1 for kind in kinds]
    asked = [
        f"{kind}({', '.join(draw(st.sampled_from(ARGUMENTS)) for _ in range(count))}) AS x{number}"
        for number, (kind, count) in enumerate(zip(kinds, several, strict=True))
    ]
    keys = draw(st.sampled_from(["", "GROUP BY member", "GROUP BY place, member"]))
    return TABLE.question(f"SELECT {', '.join(asked)} FROM t {keys}")


def half_widths(question: Question, price: QuestionPrice, level: Any, size: int) -> list[float]:
    found = question.forecast(price, confidence=level, group_size=size)
    return [line.promised for line in found.lines]


WANTED = (
    questions(),
    st.sampled_from([0.5, 1, 7, 100, 4000]),
    st.sampled_from([100, 2000, 10**6]),
    st.sampled_from([0.8, 0.95, 0.999]),
    st.sampled_from([0, 1e-9, 1e-3]),
    st.sampled_from([None, {"x0": 3}]),
)


@settings(max_examples=6)
@given(*WANTED)
def test_the_price_meets_the_accuracy_and_a_lower_one_does_not(
    question: Question, within: float, size: int, level: float, delta: float, weights: Any
) -> None:
    _check_price(question, within, size, level, delta, weights)


@pytest.mark.long
@settings(max_examples=400)
@given(*WANTED)
def test_many_prices_meet_the_accuracy_and_lower_ones_do_not(
    question: Question, within: float, size: int, level: float, delta: float, weights: Any
) -> None:
    _check_price(question, within, size, level, delta, weights)


def _check_price(
    question: Question, within: float, size: int, level: float, delta: float, weights: Any
) -> None:
    def reaches(price: QuestionPrice) -> bool:
        return all(wide <= within for wide in half_widths(question, price, level, size))

    try:
        price = question.for_error(
            within=within, group_size=size, confidence=level, delta=delta, weights=weights
        )
    except InvalidArgument:
        for epsilon in (1, 100, 10**4):  # none is enough
            assert not reaches(QuestionPrice(epsilon, noise=Noise.LAPLACE, weights=weights))
        return
    assert reaches(price)
    assert price.delta == (0 if price.noise is Noise.LAPLACE else Fraction(str(delta)))
    if price.epsilon > LEAST:
        for kind in Noise if delta else [Noise.LAPLACE]:
            lower = QuestionPrice(
                price.epsilon * Fraction(99, 100),
                delta if kind is Noise.GAUSSIAN else 0,
                noise=kind,
                weights=weights,
            )
            assert not reaches(lower)


def test_each_aggregate_may_have_its_own_accuracy() -> None:
    question = TABLE.question("SELECT COUNT(*) AS n, AVG(age) AS age FROM t")
    price = question.for_error(within={"n": 50, "age": 2}, group_size=1000)
    widths = half_widths(question, price, 0.95, 1000)
    assert widths[0] <= 50
    assert widths[1] <= 2
    alone = question.for_error(within={"n": 50})
    assert alone.epsilon <= price.epsilon
    assert half_widths(question, alone, 0.95, 1000)[0] <= 50


def test_the_price_is_a_value_that_all_methods_take() -> None:
    question = TABLE.question("SELECT COUNT(*) AS n FROM t")
    price = question.for_error(within=10, delta=1e-6, noise=Noise.GAUSSIAN)
    assert price.noise is Noise.GAUSSIAN
    loss = question.forecast(price).privacy_loss
    assert loss == question.explain(price).forecast.privacy_loss
    assert loss.epsilon(1e-6) <= price.epsilon


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"within": 0}, "within"),
        ({"within": float("nan")}, "within"),
        ({"within": {}}, "nothing"),
        ({"within": {"m": 1}}, "'m' is no aggregate"),
        ({"within": {"n": 1, 3: 2}}, "3 is no aggregate"),
        ({"within": {"n": -1}}, "within"),
        ({"within": True}, "within"),
        ({"within": 1}, "group_size: give"),
        ({"within": 1, "group_size": 0}, "group_size"),
        ({"within": 1, "group_size": 9, "confidence": 1}, "confidence"),
        ({"within": 1, "group_size": 9, "noise": Noise.GAUSSIAN}, "delta"),
        ({"within": 1e-9, "group_size": 9}, "no epsilon up to 10,000"),
    ],
)
def test_wrong_accuracies_are_refused(given: dict[str, Any], message: str) -> None:
    question = TABLE.question("SELECT COUNT(*) AS n, AVG(wage) AS age FROM t")
    with pytest.raises(InvalidArgument, match=message):
        question.for_error(**given)


@pytest.mark.parametrize("verb", ["forecast", "explain", "release"])
def test_a_price_is_given_once(verb: str) -> None:
    method = getattr(TABLE.question("SELECT COUNT(*) AS n FROM t"), verb)
    price = QuestionPrice(1, 1e-6)
    for more in (
        {"epsilon": 1},
        {"delta": 1e-6},
        {"noise": Noise.LAPLACE},
        {"weights": {"n": 2}},
    ):
        with pytest.raises(InvalidArgument, match="give either"):
            method(price, **more)
    with pytest.raises(InvalidArgument, match="epsilon: give the price"):
        method()
    with pytest.raises(InvalidArgument, match="give a QuestionPrice"):
        method(0.5)


def test_the_error_of_a_quantile_is_a_share_of_rows() -> None:
    question = TABLE.agg(pay=median("wage"))
    with pytest.raises(InvalidArgument, match="share of its group's rows"):
        question.for_error(within=0.1, group_size=1_000)
    price = question.for_error(within={"pay": 0.1}, group_size=1_000)
    (line,) = question.forecast(price, group_size=1_000).lines
    assert line.is_in_ranks
    assert line.half_width <= 0.1
    less = QuestionPrice(price.epsilon * Fraction("0.99"))
    assert question.forecast(less, group_size=1_000).lines[0].half_width > 0.09


def test_a_price_goes_in_by_position() -> None:
    question = TABLE.question("SELECT COUNT(*) FROM t")
    found: Any = QuestionPrice(1)
    with pytest.raises(InvalidArgument, match="give it by position"):
        question.forecast(epsilon=found)
    assert question.forecast(found) == question.forecast(epsilon=1)


def test_the_parts_of_a_question_are_described_once_for_a_price(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the time of a forecast grows with the square of the number of aggregates."""
    described = []
    whole = Plan.bounded

    def counted(plan: Plan) -> Any:  # Any: as `Plan.bounded`
        described.append(plan)
        return whole(plan)

    monkeypatch.setattr(Plan, "bounded", counted)
    names = ", ".join(f"SUM(wage * {number}) AS x{number}" for number in range(2, 12))
    made = TABLE.question(f"SELECT {names} FROM t").plan
    assert len(price_plan(made, QuestionPrice(1, 1e-6), 0.95).mechanisms) == 10
    assert len(described) == 1
