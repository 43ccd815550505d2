"""Sensitivities hold for every pair of what a unit can contribute, and are reached."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet._unit import Change, Unit
from discreet.errors import InvalidArgument, QueryRefused
from discreet.query import Caps, Column, Declaration, Noise, Query, QuestionPrice
from discreet.query._expressions._aggregates import AggregateFunction
from discreet.query._expressions._expressions import (
    Aggregate,
    Arithmetic,
    Both,
    ColumnRef,
    Comparison,
    Literal,
    Operator,
    Relation,
)
from discreet.query._plan._plan import Plan, plan
from discreet.query._plan._price import price_plan
from discreet.query._plan._sum_grids import total_grid
from discreet.query._plan._sums import sensitivity

GROUPS = 3
COLUMNS = {
    "x": Column.integer(-3, 5),
    "g": Column.integer(keys=range(GROUPS)),
    "f": Column.number(0, 60),
}


def _contributions(ends: tuple[int, int], caps: Caps) -> Iterator[tuple[int, ...]]:
    """Every vector of totals that one unit's rows can make within the caps, nothing scaled."""
    most = min(caps.rows_per_group, caps.rows or caps.rows_per_group)
    counts = (
        c
        for c in itertools.product(range(most + 1), repeat=GROUPS)
        if sum(map(bool, c)) <= caps.groups
    )
    for rows in counts:
        if caps.rows is None or sum(rows) <= caps.rows:
            yield from itertools.product(*(range(n * ends[0], n * ends[1] + 1) for n in rows))


@pytest.mark.parametrize("change", list(Change))
@pytest.mark.parametrize("ends", [(0, 1), (-1, 2), (1, 2), (-2, -1)])
@pytest.mark.parametrize(
    "caps",
    [
        Caps(1),
        Caps(2, rows_per_group=1),
        Caps(4, groups=2, rows_per_group=2),
        Caps(2, groups=3),
        Caps(2, groups=5, rows_per_group=1),
        Caps(2, groups=1, rows_per_group=3),
    ],
)
def test_no_neighbour_is_further_than_the_sensitivity(
    change: Change, ends: tuple[int, int], caps: Caps
) -> None:
    declared = Declaration("t", Unit("p", change), caps, COLUMNS)
    stated = sensitivity(ends, declared, GROUPS)
    units = set(_contributions(ends, caps))
    nothing = (0,) * GROUPS
    pairs = (
        [(one, nothing) for one in units]
        if change is Change.ADD_REMOVE
        else itertools.combinations(units, 2)
    )
    moves = [[abs(a - b) for a, b in zip(*pair, strict=True)] for pair in pairs]
    largest = [
        max(map(sum, moves)),
        max(sum(m * m for m in move) for move in moves),
        max(map(max, moves)),
    ]
    assert largest[0] <= stated.l1
    assert largest[1] <= stated.l2_squared
    assert largest[2] <= stated.linf
    if change is Change.ADD_REMOVE:
        assert largest[0] == stated.l1
        assert largest[2] == stated.linf


def _planned(*aggregates: Aggregate, keys: tuple[str, ...] = (), caps: Caps | None = None) -> Plan:
    return plan(
        Query("t", aggregates, keys),
        Declaration("t", Unit("p"), caps or Caps(4, groups=2, rows_per_group=2), COLUMNS),
    )


COUNT = Aggregate(AggregateFunction.COUNT, None, "n")
MEAN = Aggregate(AggregateFunction.AVG, ColumnRef("x"), "m")


def test_shared_parts_are_drawn_once() -> None:
    again = Aggregate(AggregateFunction.COUNT, None, "again")
    made = _planned(COUNT, again)
    assert [one.name for one in made.sums] == ["count(*)"]
    assert price_plan(made, QuestionPrice(1), 0.95).privacy_loss.epsilon() == 1


def test_a_mean_is_centred() -> None:
    total = _planned(MEAN).sum_named("centred sum(x)")
    assert total.grid is not None
    assert (total.grid.center, total.grid.lower, total.grid.upper) == (1, -4, 4)


def test_a_query_without_groups_has_one_group() -> None:
    assert _planned(COUNT).groups == ((),)
    assert _planned(COUNT).sums[0].sensitivity.l1 == 2


@pytest.mark.parametrize("rows", [1, 10**3, 10**6, 10**9])
def test_no_units_total_leaves_64_bits(rows: int) -> None:
    made = _planned(
        Aggregate(AggregateFunction.SUM, ColumnRef("f"), "s"),
        keys=("g",),
        caps=Caps(rows, groups=3),
    )
    grid = made.sums[0].grid
    assert grid is not None
    assert grid.largest * rows < 2**62
    assert grid.largest >= 2**9


@pytest.mark.parametrize("rows", [1, 16, 10**3, 10**6])
@pytest.mark.parametrize(
    "column",
    [
        Column.number(-(2**40), 1),
        Column.number(-1, 2**40),
        Column.number(-60, 0),
        Column.number(Fraction(-1, 9), 2**70),
        Column.integer(-(2**45), 1),
        Column.integer(-1, 2**45),
        Column.integer(-(2**58) - 1, 1),
    ],
)
def test_no_total_leaves_its_room_whichever_end_is_larger(column: Column, rows: int) -> None:
    """A cast that overflowed would fail for the rows of one unit only."""
    declared, f = Declaration("t", Unit("p"), Caps(rows), {"f": column}), ColumnRef("f")
    (total,) = plan(Query("t", (Aggregate(AggregateFunction.SUM, f, "s"),)), declared).sums
    assert total.grid is not None
    assert total.grid.largest * rows < 2**62
    of_unit = total_grid(f, declared)
    assert 2**9 <= of_unit.largest <= of_unit.largest * rows <= 2**53  # exact in a float


@pytest.mark.parametrize("keys", [("g",), ("name",)])
def test_rows_of_a_replaced_unit_count_twice(keys: tuple[str, ...]) -> None:
    """Those that went, and those that came; under declared keys and under private ones."""
    columns = {**COLUMNS, "name": Column.text()}
    median = Aggregate(AggregateFunction.MEDIAN, ColumnRef("f"), "m")
    moved = {}
    for change in Change:
        declared = Declaration("t", Unit("p", change), Caps(4), columns)
        parts = {part.name: part for part in plan(Query("t", (median,), keys), declared).parts}
        moved[change] = next(one for name, one in parts.items() if "quantile" in name).sensitivity
    assert (moved[Change.ADD_REMOVE].l1, moved[Change.ADD_REMOVE].linf) == (4, 4)
    assert (moved[Change.REPLACE].l1, moved[Change.REPLACE].linf) == (8, 4)


def test_caps_too_large_are_refused() -> None:
    with pytest.raises(QueryRefused, match="caps are too large"):
        _planned(Aggregate(AggregateFunction.SUM, ColumnRef("f"), "s"), caps=Caps(10**12, groups=1))


@pytest.mark.parametrize("function", ["SUM", "AVG", "STDDEV"])
@pytest.mark.parametrize("start", [10**9, -(10**9) - 10, 10**15])
def test_a_condition_that_leaves_such_bounds_leaves_the_declared_ones(
    function: str, start: int
) -> None:
    wide = Declaration("t", Unit("p"), Caps(4), {"f": Column.number(-(10**16), 10**16)})
    aggregate = Aggregate(AggregateFunction(function), ColumnRef("f"), "s")
    where = Both(
        Comparison(Relation.AT_LEAST, ColumnRef("f"), Literal(Fraction(start))),
        Comparison(Relation.AT_MOST, ColumnRef("f"), Literal(Fraction(start + 10))),
    )
    made = plan(Query("t", (aggregate,), (), where), wide)
    assert made.sums == plan(Query("t", (aggregate,)), wide).sums


@pytest.mark.parametrize("function", ["SUM", "AVG", "STDDEV"])
@pytest.mark.parametrize("start", [10**9, -(10**9) - 10, 10**15])
def test_bounds_far_from_0_and_close_together_are_refused(function: str, start: int) -> None:
    """The grid would have few points, or a single one, which moves nothing and says nothing."""
    far = Declaration(
        "t", Unit("p"), Caps(4), {"f": Column.number(start, start + 10), "x": Column.integer(0, 9)}
    )
    aggregate = Aggregate(AggregateFunction(function), ColumnRef("f"), "s")
    with pytest.raises(QueryRefused, match="far from 0 and close together"):
        plan(Query("t", (aggregate,)), far)
    less = Arithmetic(Operator.SUBTRACT, ColumnRef("f"), Literal(Fraction(start)))
    made = plan(Query("t", (replace(aggregate, argument=less),)), far)
    assert all(one.sensitivity.l1 > 2**9 for one in made.sums if one.grid is not None)
    whole = replace(aggregate, argument=ColumnRef("x"))
    assert plan(Query("t", (whole,)), far).sums[0].ends[1] > 0


def test_too_many_groups_are_refused() -> None:
    columns = {"a": Column.integer(keys=range(2000)), "b": Column.integer(keys=range(2000))}
    with pytest.raises(QueryRefused, match="1,000,000 groups"):
        plan(Query("t", (COUNT,), ("a", "b")), Declaration("t", Unit.ROW, Caps(1), columns))


def test_names_that_would_collide_in_the_answer_are_refused() -> None:
    with pytest.raises(QueryRefused, match="two columns 'n_low'"):
        _planned(COUNT, Aggregate(AggregateFunction.COUNT, None, "n_low"))
    with pytest.raises(QueryRefused, match="two columns 'g'"):
        _planned(Aggregate(AggregateFunction.COUNT, None, "g"), keys=("g",))


X = ColumnRef("x")


@pytest.mark.parametrize(
    ("aggregate", "says"),
    [
        (Aggregate(AggregateFunction.SUM, ColumnRef("g"), "s"), "no declared lower and upper"),
        (Aggregate(AggregateFunction.SUM, ColumnRef("y"), "s"), "'y' is not declared"),
        (
            Aggregate(AggregateFunction.SUM, Arithmetic(Operator.DIVIDE, X, X), "s"),
            "division by a number",
        ),
        (
            Aggregate(
                AggregateFunction.SUM, Arithmetic(Operator.DIVIDE, X, Literal(Fraction(0))), "s"
            ),
            "division by a number",
        ),
        (
            Aggregate(AggregateFunction.SUM, Arithmetic(Operator.ADD, X, Literal("a")), "s"),
            "arithmetic is defined for numbers",
        ),
        (Aggregate(AggregateFunction.SUM, Literal(Fraction(3)), "s"), "of a constant"),
        (Aggregate(AggregateFunction.AVG, Literal("a"), "s"), "is text"),
        (Aggregate(AggregateFunction.SUM, None, "s"), "need a column"),
        (
            Aggregate(
                AggregateFunction.SUM,
                Arithmetic(Operator.MULTIPLY, X, Literal(Fraction(10) ** 200)),
                "s",
            ),
            "1e150",
        ),
    ],
)
def test_aggregates_without_a_rule_are_refused_by_name(aggregate: Aggregate, says: str) -> None:
    with pytest.raises(QueryRefused, match=says):
        _planned(aggregate)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1, 7])
@pytest.mark.parametrize("delta", [0, 1e-9, 1e-3])
def test_no_more_is_spent_than_was_named(epsilon: float, delta: float) -> None:
    made = _planned(COUNT, MEAN, Aggregate(AggregateFunction.SUM, ColumnRef("f"), "s"), keys=("g",))
    kinds = [None, Noise.LAPLACE] if delta == 0 else [None, *Noise]
    for noise in kinds:
        offered = price_plan(
            made, QuestionPrice(epsilon, delta, noise=noise, weights={"s": 3.5}), 0.9
        )
        at = 0 if offered.noise is Noise.LAPLACE else delta
        assert 0.999 * epsilon < offered.privacy_loss.epsilon(delta=at) <= epsilon
        assert noise in (None, offered.noise)


def test_the_noise_with_the_smaller_error_is_taken() -> None:
    many = _planned(
        *(
            Aggregate(
                AggregateFunction.SUM,
                Arithmetic(Operator.MULTIPLY, X, Literal(Fraction(k))),
                f"s{k}",
            )
            for k in range(1, 40)
        )
    )
    assert price_plan(many, QuestionPrice(1, 1e-6), 0.95).noise is Noise.GAUSSIAN
    assert price_plan(many, QuestionPrice(1), 0.95).noise is Noise.LAPLACE
    assert price_plan(_planned(COUNT), QuestionPrice(1, 1e-6), 0.95).noise is Noise.LAPLACE


def test_weights_share_the_price() -> None:
    made = _planned(COUNT, MEAN)
    shares = price_plan(made, QuestionPrice(1, weights={"m": 3}), 0.95).shares
    assert shares == {
        "count(*)": Fraction(1, 4),
        "centred sum(x)": Fraction(3, 8),
        "count(x)": Fraction(3, 8),
    }
    known = Aggregate(AggregateFunction.COUNT, ColumnRef("x"), "known")
    shares = price_plan(_planned(known, MEAN), QuestionPrice(1), 0.95).shares
    assert shares == {"count(x)": Fraction(1, 2), "centred sum(x)": Fraction(1, 2)}
    with pytest.raises(InvalidArgument, match="'q' is no aggregate"):
        price_plan(made, QuestionPrice(1, weights={"q": 3}), 0.95)


NAN = float("nan")


@pytest.mark.parametrize(
    ("price", "says"),
    [
        (lambda: QuestionPrice(0), "epsilon"),
        (lambda: QuestionPrice(-1), "epsilon"),
        (lambda: QuestionPrice(NAN), "epsilon"),
        (lambda: QuestionPrice(float("inf")), "epsilon"),
        (lambda: QuestionPrice(True), "epsilon"),
        (lambda: QuestionPrice("1"), "epsilon"),  # type: ignore[arg-type]  # the point of the test
        (lambda: QuestionPrice(1, 1), "delta"),
        (lambda: QuestionPrice(1, NAN), "delta"),
        (lambda: QuestionPrice(1, noise=Noise.GAUSSIAN), "delta above 0"),
        (lambda: QuestionPrice(1, noise="laplace"), "noise"),  # type: ignore[arg-type]  # the point of the test
        (lambda: QuestionPrice(1, weights=[2]), "weights"),  # type: ignore[arg-type]  # the point of the test
        (lambda: QuestionPrice(1, weights={"n": 0}), "weight"),
    ],
)
def test_a_bad_price_is_refused_by_name(price: Callable[[], QuestionPrice], says: str) -> None:
    with pytest.raises(InvalidArgument, match=says):
        price()


@given(st.integers(1, 50), st.none() | st.integers(1, 60), st.none() | st.integers(1, 60))
def test_tighter_caps_are_never_larger(rows: int, groups: int | None, each: int | None) -> None:
    caps = Caps(rows, groups=groups, rows_per_group=each)
    assert caps.groups == (rows if groups is None else min(groups, rows))
    assert caps.rows_per_group == (rows if each is None else min(each, rows))
    assert Caps(caps.rows, groups=caps.groups, rows_per_group=caps.rows_per_group) == caps


def test_caps_in_words() -> None:
    caps = Caps(1200, groups=9, rows_per_group=2)
    every = "at most 1,200 rows, in at most 9 groups, with at most 2 rows in each group"
    here = "so at most 18 rows in this question"
    assert caps.in_words() == every
    assert caps.in_words(10) == f"{every}, {here}"
    assert caps.in_words(9) == f"at most 1,200 rows, with at most 2 rows in each group, {here}"
    assert (
        Caps(18, rows_per_group=2).in_words(9)
        == "at most 18 rows, with at most 2 rows in each group"
    )
    assert Caps(1).in_words() == Caps(1).in_words(5) == "at most 1 row"
