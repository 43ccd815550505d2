"""The exact privacy of finite laws, against closed forms and against sums over all events."""

import itertools
import math
from collections.abc import Callable, Hashable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet._exact import Number, fraction
from discreet.accounting import Approximate, Gaussian, PrivacyLoss, Pure, RandomizedResponse
from discreet.audit import exact
from discreet.errors import InvalidArgument

Law = Mapping[Hashable, Number]
Table = Mapping[Hashable, Fraction]


def response(odds: int, values: int = 2) -> list[dict[Hashable, Number]]:
    """Randomized response: the law for each true value."""
    whole = odds + values - 1
    return [
        {told: Fraction(odds if told == truth else 1, whole) for told in range(values)}
        for truth in range(values)
    ]


def pair(odds: int) -> tuple[Law, Law]:
    one, other = response(odds)
    return one, other


def weights(size: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, 9), min_size=size, max_size=size).filter(any)


def law(counts: list[int]) -> Table:
    return {place: Fraction(count, sum(counts)) for place, count in enumerate(counts)}


def over_all_events(one: Table, other: Table, factor: Fraction) -> Fraction:
    """The largest p(E) - factor q(E) of all events, both ways round."""
    events = itertools.chain.from_iterable(
        itertools.combinations(one, size) for size in range(len(one) + 1)
    )
    return max(
        sum((p[y] - factor * q[y] for y in event), Fraction(0))
        for event in events
        for p, q in ((one, other), (other, one))
    )


@settings(max_examples=30)
@given(weights(4), weights(4), st.fractions(1, 20))
def test_delta_is_the_largest_over_all_events(
    one: list[int], other: list[int], factor: Fraction
) -> None:
    p, q = law(one), law(other)
    found = exact([(p, q)])
    largest = over_all_events(p, q, factor)
    smallest = found.factor(largest) if largest < 1 else Fraction(1)
    assert smallest is not None
    assert smallest <= factor
    epsilon = Fraction(math.log(factor)).limit_denominator(10**6)
    assert abs(found.delta(epsilon) - float(largest)) < 1e-4
    assert fraction(found.delta(0)) >= over_all_events(p, q, Fraction(1))


@settings(max_examples=30)
@given(weights(4), weights(4), st.sampled_from([Fraction(0), Fraction(1, 10), Fraction(1, 2)]))
def test_the_factor_is_the_smallest_for_its_delta(
    one: list[int], other: list[int], delta: Fraction
) -> None:
    p, q = law(one), law(other)
    found = exact([(p, q)])
    factor, event = found.factor(delta), found.worst_event(delta)
    if factor is None:
        assert event.unlikely == 0
        assert event.likely > delta
        return
    assert over_all_events(p, q, factor) <= delta
    if factor > 1:
        assert over_all_events(p, q, factor * Fraction(999, 1000)) > delta
        assert event.likely - factor * event.unlikely == delta
    first, second = (p, q) if event.is_first else (q, p)
    assert event.likely == sum(first[y] for y in event.outcomes)
    assert event.unlikely == sum(second[y] for y in event.outcomes)


@pytest.mark.parametrize("values", [2, 5])
@pytest.mark.parametrize("odds", [2, 3, 50])
def test_randomized_response_has_its_closed_form(odds: int, values: int) -> None:
    laws = response(odds, values)
    found = exact(list(itertools.combinations(laws, 2)))
    assert found.factor() == odds
    lower, upper = found.interval()
    assert lower <= math.log(odds) <= upper <= lower * (1 + 1e-15)
    assert not found.interval().is_wide
    assert found.delta(0) == pytest.approx((odds - 1) / (odds + values - 1))
    assert found.exceeds(Pure(Fraction(str(round(math.log(odds) - 1e-6, 6)))))
    assert not found.exceeds(Pure(found.epsilon()))


def test_the_curves_agree_with_the_accountant() -> None:
    found = exact([pair(3)])
    term = PrivacyLoss.of(RandomizedResponse(found.epsilon()))
    assert not found.exceeds(term)
    for epsilon in (0, 0.1, 0.5, 1, 2):
        assert found.profile().delta(epsilon) == pytest.approx(term.delta(epsilon), abs=1e-9)
    for error in (0.01, 0.1, 0.3, 0.7):
        assert found.trade_off().type_two(error) == pytest.approx(
            term.trade_off().type_two(error), abs=1e-6
        )


def test_an_outcome_of_one_dataset_only_needs_its_delta() -> None:
    leak = Fraction(1, 1000)
    found = exact([({"a": 1}, {"a": 1 - leak, "b": leak})])
    assert found.factor() is None
    assert found.epsilon() == math.inf
    assert found.worst_event().outcomes == ("b",)
    assert found.worst_event().pair == 0
    assert found.factor(leak) == 1
    assert found.delta(0) == found.delta(10**6) == 0.001
    assert not found.exceeds(Approximate(0, 0.001))
    assert found.exceeds(Approximate(0, 0.000999))
    assert found.exceeds(Gaussian(4000))


def test_the_worst_of_several_pairs_counts() -> None:
    found = exact([pair(2), pair(7), pair(2)])
    assert found.factor() == 7
    assert found.worst_event().pair == 1
    assert "e^epsilon = 7" in repr(found)


@pytest.mark.parametrize(
    ("pairs", "text"),
    [
        ([], "pairs"),
        ([({"a": 1},)], "pairs"),
        ([({"a": 1}, [1])], "type list"),
        ([({"a": 1}, {"a": 0.5})], "sum to 0.5"),
        ([({"a": 1}, {"a": 1.5, "b": -0.5})], "probability"),
        ([({"a": 1}, {"a": math.nan})], "probability"),
    ],
)
def test_wrong_laws_are_refused(pairs: Any, text: str) -> None:
    with pytest.raises(InvalidArgument, match=text):
        exact(pairs)


@pytest.mark.parametrize("wrap", [lambda one: one, lambda one: ("a", one), lambda one: ((one,), 1)])
@pytest.mark.parametrize("kind", [float, Decimal, lambda text: complex(0, float(text))])
def test_outcomes_that_differ_from_themselves_are_refused(
    kind: Callable[[str], Hashable], wrap: Callable[[Hashable], Hashable]
) -> None:
    """Equal laws would seem infinitely different."""
    laws: list[dict[Hashable, Number]] = [{wrap(kind("nan")): 0.5, 0: 0.5} for _ in range(2)]
    with pytest.raises(InvalidArgument, match="is NaN"):
        exact([(laws[0], laws[1])])
    assert exact([({wrap(kind("inf")): 1}, {wrap(kind("inf")): 1})]).epsilon() == 0


@pytest.mark.parametrize("odds", [2, 3, 5, 7, 9])
def test_a_logarithm_as_a_float_is_claimed_rightly(odds: int) -> None:
    """Half of these floats lie a little below the logarithm."""
    assert not exact([pair(odds)], claim=math.log(odds)).is_refuted
    assert exact([pair(odds)], claim=math.log(odds) * (1 - 1e-12)).is_refuted
