"""Nothing that a computation can reach is altered between the price and the draw."""

import gc
import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from discreet import Ledger, Limit, release
from discreet._frozen import FrozenMapping
from discreet._unit import Unit
from discreet.accounting import Pure
from discreet.errors import InvalidArgument
from discreet.mechanisms import Bounded, DiscreteLaplace, Part, Sensitivity, Together
from discreet.mechanisms.tuning import PoissonRuns, Scored, Tuning
from discreet.query import Caps, Column, Declaration
from discreet.query._expressions._aggregates import AggregateFunction
from discreet.query._expressions._expressions import Aggregate, ColumnRef
from discreet.query._expressions._query import Query
from discreet.query._plan._plan import plan
from discreet.query._plan._price import Noise, QuestionPrice, price_plan
from tests.mechanisms.kit import PERSON
from tests.mechanisms.registry import CASES

PARTS = (Part("a", (), Sensitivity(l1=1)), Part("b", (3,), Sensitivity(l1=1)))
_OTHERS = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CodeType)


def offers() -> dict[str, Callable[[], object]]:
    """Offers and prices of queries, which are priced and then drawn as well."""
    columns = {"wage": Column.number(0, 10), "sex": Column.text(keys=["f", "m"])}
    declared = Declaration("t", Unit("person"), Caps(4, groups=2, rows_per_group=2), columns)
    query = Query("t", (Aggregate(AggregateFunction.AVG, ColumnRef("wage"), "x"),), ("sex",))
    made = plan(query, declared)
    return {
        "QuestionPrice": lambda: QuestionPrice(1, weights={"people": 2}),
        "PricedPlan": lambda: price_plan(made, QuestionPrice(1), Fraction(95, 100)),
        "PricedPlan, Gaussian": lambda: price_plan(
            made, QuestionPrice(1, 1e-6, noise=Noise.GAUSSIAN), Fraction(95, 100)
        ),
    }


VALUES: dict[str, Callable[[], object]] = {
    **{name: partial(case.kind, **case.given) for name, case in CASES.items()},
    "Bounded": lambda: Bounded.together(dict, parts=PARTS, unit=PERSON, name="x"),
    **offers(),
}


def inner(value: object) -> Iterator[object]:
    """All objects that a value refers to: by its attributes, and by the garbage collector, which
    also finds hidden ones."""
    yield from gc.get_referents(value)
    if is_dataclass(value):
        yield from (getattr(value, field.name) for field in fields(value))
    if isinstance(value, np.ndarray):
        yield value.base


def reachable(value: object) -> list[object]:
    """Everything below a value, but for classes, functions and modules: they are the program."""
    found, left = {}, [value]
    while left:
        one = left.pop()
        if id(one) in found or isinstance(one, _OTHERS):
            continue
        found[id(one)] = one
        left.extend(inner(one))
    return list(found.values())


def is_mutable(value: object) -> bool:
    """Whether ordinary code may change it in place."""
    if isinstance(value, list | dict | set | bytearray):
        return True
    if isinstance(value, np.ndarray):
        return value.flags.writeable or (value.base is None and _unlocks(value))
    return False


def _unlocks(array: np.ndarray[Any, Any]) -> bool:
    """Whether an array that is its own owner can be made writeable again."""
    try:
        array.flags.writeable = True
    except ValueError:
        return False
    array.flags.writeable = False
    return True


@pytest.mark.parametrize("name", VALUES)
def test_nothing_mutable_is_reached_from_what_is_priced(name: str) -> None:
    value = VALUES[name]()
    mutable = [one for one in reachable(value) if is_mutable(one)]
    assert not [(type(one).__name__, repr(one)[:80]) for one in mutable]


@pytest.mark.parametrize("name", VALUES)
def test_no_attribute_can_be_set(name: str) -> None:
    for one in reachable(VALUES[name]()):
        if is_dataclass(one) and not inspect.isclass(one):
            for field in fields(one):
                with pytest.raises((AttributeError, TypeError)):
                    setattr(one, field.name, getattr(one, field.name))


def altered(mechanism: object, to: object) -> None:
    """Try to put another mechanism in the place of each that is reached."""
    for one in reachable(mechanism):
        writes: list[Any] = [dict.__setitem__, getattr(type(one), "__setitem__", None)]
        for write in writes:
            for key in list(one) if isinstance(one, Mapping) else ():
                try:
                    write(one, key, to)
                except (TypeError, AttributeError):
                    continue


def test_the_attack_on_together_gives_noise_all_the_same() -> None:
    """It was charged at scale 10^9, and drew at a scale of nearly 0."""
    given = {"a": DiscreteLaplace(10**9)}
    mechanism = Together(given)
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(1))

    def compute() -> dict[str, int]:
        altered(mechanism, DiscreteLaplace(Fraction(1, 1000)))
        given["a"] = DiscreteLaplace(Fraction(1, 1000))
        return {"a": 0}

    bounded = Bounded.together(compute, parts=PARTS[:1], unit=PERSON, name="x")
    before = repr(mechanism)
    answers = [release(bounded, mechanism, ledger).value["a"] for _ in range(3)]
    assert repr(mechanism) == before
    assert all(abs(int(answer)) > 3 for answer in answers)  # false alarm: 3 * 7 / 2e9


def test_the_attack_on_tuning_gives_noise_all_the_same() -> None:
    def scored(scale: float) -> Scored[int, int]:
        return Scored(DiscreteLaplace(scale), lambda n, _: 0, DiscreteLaplace(scale), 1)

    given = {"a": scored(10**10)}
    mechanism = Tuning(given, PoissonRuns(30))
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(1, 1e-9))

    def compute() -> int:
        altered(mechanism, scored(0.001))
        given["a"] = scored(0.001)
        return 0

    bounded = Bounded(compute, sensitivity=1, unit=PERSON, name="x")
    answer = release(bounded, mechanism, ledger).value
    assert answer is not None  # false alarm: e^-30
    assert abs(answer["value"]) > 3  # false alarm: 7 / 2e10


def test_a_mapping_that_changes_as_it_is_read_is_read_once() -> None:
    class Changing(dict[str, Any]):
        reads = 0

        def items(self) -> Any:
            self.reads += 1
            return {"a": DiscreteLaplace(2) if self.reads == 1 else Pure(1)}.items()

    for make in (Together, lambda given: Tuning(given, PoissonRuns(2))):
        try:
            made: Any = make(Changing(a=1))
        except InvalidArgument:
            continue
        held = made.mechanisms if isinstance(made, Together) else made.candidates
        assert held == {"a": DiscreteLaplace(2)}


def test_a_frozen_mapping_is_a_mapping() -> None:
    frozen = FrozenMapping({"a": 1, "b": 2})
    assert (dict(frozen), len(frozen), list(frozen), frozen["b"]) == (
        {"a": 1, "b": 2},
        2,
        ["a", "b"],
        2,
    )
    assert frozen == {"b": 2, "a": 1} == frozen
    assert hash(frozen) == hash(FrozenMapping({"b": 2, "a": 1}))
    assert repr(frozen) == "{'a': 1, 'b': 2}"
    with pytest.raises(KeyError):
        frozen["c"]
