"""Statements of a computation, and checks of its result."""

import functools
import itertools
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from discreet._unit import Change, Unit
from discreet.audit import SeededBits
from discreet.errors import InvalidArgument, Refused
from discreet.mechanisms import (
    Bounded,
    DiscreteLaplace,
    Gaussian,
    Grid,
    IntegerArray,
    MaxNorm,
    Part,
    Sensitivity,
    Staircase,
    Value,
)
from tests.bad_values import BadValue
from tests.mechanisms.kit import LAPLACE, PERSON, SECRET, number

NOT_WHOLE = [-1, 0.5, float("nan"), float("inf"), True, "1", None, Fraction(1, 2), np.float64(0.5)]


def array(shape: tuple[int, ...] = (3,)) -> Bounded[Any]:  # Any: results of every kind
    return Bounded(
        lambda: np.zeros(shape, dtype=np.int64), sensitivity=1, unit=PERSON, name="a", shape=shape
    )


def joint() -> Bounded[Any]:  # Any: results of every kind
    one, two = Part("one", (), Sensitivity(l1=1)), Part("two", (2,), Sensitivity(l1=2))
    return Bounded.together(dict, parts=(one, two), unit=PERSON, name="both")


# Construction


def test_a_number_states_its_sensitivity_unit_and_basis() -> None:
    bounded = number(sensitivity=3)
    assert bounded.part == Part("people", (), Sensitivity(l0=1, l1=3, l2_squared=9, linf=3))
    assert bounded.unit == PERSON
    assert not bounded.is_joint
    assert bounded.basis == "asserted by the caller"


@pytest.mark.parametrize("wrong", NOT_WHOLE)
def test_a_sensitivity_is_a_whole_number(wrong: BadValue) -> None:
    with pytest.raises(InvalidArgument, match=r"sensitivity = .*whole number"):
        number(sensitivity=wrong)
    for norm in ("l1", "l2_squared", "linf"):
        if wrong is not None:
            with pytest.raises(InvalidArgument, match=f"{norm} = .*whole number"):
                Sensitivity(**{norm: wrong}, length=2)


@pytest.mark.parametrize("wrong", NOT_WHOLE[:-3])
def test_a_length_is_a_whole_number(wrong: BadValue) -> None:
    with pytest.raises(InvalidArgument, match=r"length = .*whole number"):
        Sensitivity(l1=1, length=wrong)


@pytest.mark.parametrize("wrong", [3, "3", None, (-1,), (2.5,), (True,), (2, float("nan"))])
def test_a_shape_is_a_tuple_of_sizes(wrong: BadValue) -> None:
    with pytest.raises(InvalidArgument, match="shape = "):
        Bounded(lambda: 0, sensitivity=1, unit=PERSON, name="a", shape=wrong)
    with pytest.raises(InvalidArgument, match="shape = "):
        Part("a", wrong, Sensitivity(l1=1))


@pytest.mark.parametrize("wrong", ["", "  ", None, 3])
def test_a_name_is_a_text(wrong: BadValue) -> None:
    with pytest.raises(InvalidArgument, match="name = "):
        Bounded(lambda: 0, sensitivity=1, unit=PERSON, name=wrong)
    with pytest.raises(InvalidArgument, match="name = "):
        Part(wrong, (), Sensitivity(l1=1))
    with pytest.raises(InvalidArgument, match="name = "):
        Bounded.together(dict, parts=joint().parts, unit=PERSON, name=wrong)


@pytest.mark.parametrize("wrong", ["person", None, 3])
def test_a_unit_is_a_unit(wrong: BadValue) -> None:
    with pytest.raises(InvalidArgument, match="unit = "):
        Bounded(lambda: 0, sensitivity=1, unit=wrong, name="a")
    with pytest.raises(InvalidArgument, match="unit = "):
        Bounded.together(dict, parts=joint().parts, unit=wrong, name="a")


def test_a_result_in_place_of_a_computation_is_refused_and_not_shown() -> None:
    with pytest.raises(InvalidArgument, match="compute is of type int: give a function") as caught:
        number(int(SECRET))  # type: ignore[arg-type]
    assert SECRET not in str(caught.value)


def test_parts_have_names_of_their_own() -> None:
    part = Part("one", (), Sensitivity(l1=1))
    for parts in ((), (part, part)):
        with pytest.raises(InvalidArgument, match="parts = "):
            Bounded.together(dict, parts=parts, unit=PERSON, name="both")
    with pytest.raises(InvalidArgument, match="sensitivity = 1: give a Sensitivity"):
        Part("one", (), 1)  # type: ignore[arg-type]


def test_nothing_of_a_bounded_can_be_changed() -> None:
    with pytest.raises(AttributeError):
        number().compute = lambda: 1  # type: ignore[misc]
    with pytest.raises(AttributeError):
        number().part.sensitivity.l1 = 0  # type: ignore[misc]


def test_several_parts_are_no_single_one() -> None:
    with pytest.raises(Refused, match="'both' has the parts \\['one', 'two'\\]: use Together"):
        _ = joint().part
    single = Bounded.together(dict, parts=joint().parts[:1], unit=PERSON, name="single")
    with pytest.raises(Refused, match="use Together"):
        _ = single.part  # its value is a mapping


def test_one_part_alone_is_a_computation_of_its_own() -> None:
    two: dict[str, Value] = {"one": 1, "two": np.array([2, 3])}
    both: Bounded[Any] = Bounded.together(
        lambda: two, parts=joint().parts, unit=PERSON, name="both", basis="b"
    )
    alone = both.only("two")
    assert alone.part == both.parts[1]
    assert (alone.unit, alone.basis, alone.is_joint) == (PERSON, "b", False)
    assert np.array_equal(alone.checked(alone.compute()), [2, 3])
    for bounded, name in ((both, "three"), (number(), "people")):
        with pytest.raises(InvalidArgument, match="no named part"):
            bounded.only(name)


def test_reprs_neither_run_the_computation_nor_show_its_data() -> None:
    frame = pd.DataFrame({"x": [int(SECRET)]})
    computations = [
        lambda: 1 / 0,
        functools.partial(int, SECRET),
        frame.x.sum,
    ]
    for compute in computations:
        for text in (repr(number(compute)), str(number(compute)), f"{number(compute)!r:}"):  # type: ignore[arg-type]
            assert SECRET not in text
            assert text.startswith(
                "Bounded('people', unit=Unit('person'), parts=(Part(name='people'"
            )
            assert "asserted by the caller" in text


# Sensitivity

norms = st.one_of(st.none(), st.integers(0, 60))


@st.composite
def statements(draw: st.DrawFn) -> tuple[dict[str, int], int | None]:
    """Norms that may be given together, and a length or none."""
    given = {name: draw(norms) for name in ("l1", "l2_squared", "linf")}
    known = {name: norm for name, norm in given.items() if norm is not None}
    length = draw(st.one_of(st.none(), st.integers(0, 6)))
    assume(known and not (length is None and known.keys() == {"linf"} and known["linf"]))
    return known, length


@given(statements(), st.data())
def test_vectors_within_the_given_norms_are_within_the_derived(
    statement: tuple[dict[str, int], int | None], data: st.DataObject
) -> None:
    known, length = statement
    sensitivity = Sensitivity(**known, length=length)
    most = known.get("linf", 60)
    size = data.draw(st.integers(0, 8)) if length is None else length
    vector = data.draw(st.lists(st.integers(-most, most), min_size=size, max_size=size))
    found = {
        "l1": sum(map(abs, vector)),
        "l2_squared": sum(x * x for x in vector),
        "linf": max(map(abs, vector), default=0),
    }
    assume(all(found[name] <= norm for name, norm in known.items()))
    for name, norm in found.items():
        assert norm <= getattr(sensitivity, name)


@given(statements())
def test_derived_norms_agree_with_given_ones(
    statement: tuple[dict[str, int], int | None],
) -> None:
    known, length = statement
    s = Sensitivity(**known, length=length)
    assert all(getattr(s, name) <= norm for name, norm in known.items())
    again = Sensitivity(l1=s.l1, l2_squared=s.l2_squared, linf=s.linf, length=length)
    assert again == s
    assert s.linf <= s.l1 <= s.l2_squared <= s.l1 * s.linf
    assert s.l2_squared <= s.l1**2


def vectors(length: int, most: int) -> Iterator[tuple[int, ...]]:
    """All vectors up to signs and order."""
    return itertools.combinations_with_replacement(range(most + 1), length)


@pytest.mark.parametrize("length", [0, 1, 2, 3])
def test_no_derived_norm_is_loose(length: int) -> None:
    """By brute force over all vectors: some vector reaches each norm that wasn't given."""
    every = [
        {"l1": sum(v), "l2_squared": sum(x * x for x in v), "linf": max(v, default=0)}
        for v in vectors(length, 6)
    ]
    names = ("l1", "l2_squared", "linf")
    for some in (*itertools.combinations(names, 1), *itertools.combinations(names, 2)):
        for limits in itertools.product(range(7), repeat=len(some)):
            known = dict(zip(some, limits, strict=True))
            fitting = [v for v in every if all(v[n] <= limit for n, limit in known.items())]
            derived = Sensitivity(**known, length=length)
            for name in set(names) - set(some):
                assert getattr(derived, name) == max(v[name] for v in fitting)


def test_known_sensitivities() -> None:
    assert Sensitivity(linf=0) == Sensitivity(l1=0) == Sensitivity(l1=9, linf=9, length=0)
    assert Sensitivity(l1=4, linf=3) == Sensitivity(l1=4, linf=3, l2_squared=10)
    assert Sensitivity(linf=2, length=5).l2_squared == 20
    assert Sensitivity(l2_squared=14, length=6).l1 == 8  # 1 + 1 + 1 + 1 + 2 + 2
    assert Sensitivity(l2_squared=3, length=10).l1 == 3
    assert Sensitivity(l2_squared=10**40, length=1).l1 == 10**20
    with pytest.raises(InvalidArgument, match="with the vector's length"):
        Sensitivity(linf=1)
    with pytest.raises(InvalidArgument, match="give l1 or"):
        Sensitivity(length=3)


# Results


@pytest.mark.parametrize("good", [0, -3, 10**30, np.int64(5), np.uint8(5), np.uint64(2**64 - 1)])
def test_one_integer_of_any_kind_becomes_pythons(good: BadValue) -> None:
    checked = number().checked(good)
    assert type(checked) is int
    assert checked == int(good)


class Shouting(int):
    def __add__(self, other: object) -> int:
        raise RuntimeError(SECRET)


def test_an_integer_of_a_subclass_loses_its_own_ways() -> None:
    assert type(number().checked(Shouting(4))) is int


NOT_ONE_INTEGER = [
    True,
    np.True_,
    1.0,
    np.float64(1),
    float("nan"),
    float("inf"),
    Decimal(1),
    Fraction(1),
    "1",
    b"1",
    None,
    1j,
    [1],
    np.array(1),
    np.array([1]),
    {"people": 1},
    np.timedelta64(1, "ns"),
    np.timedelta64("NaT", "ns"),
    np.datetime64("NaT"),
    pd.NA,
    pd.NaT,
    np.ma.masked,
]


@pytest.mark.parametrize("wrong", NOT_ONE_INTEGER, ids=repr)
def test_anything_else_is_no_integer(wrong: BadValue) -> None:
    with pytest.raises(TypeError, match="part 'people': expected one integer") as caught:
        number().checked(wrong)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", ">i4", "u1", "u2", "u4"])
def test_integers_that_fit_become_int64(dtype: str) -> None:
    values = np.array([0, 1, np.iinfo(dtype).max], dtype=dtype)
    checked = array().checked(values)
    assert checked.dtype == np.int64
    assert checked.dtype.isnative
    assert checked.tolist() == values.tolist()
    assert not np.shares_memory(checked, values)


def wide() -> Bounded[Any]:
    return Bounded(lambda: 0, sensitivity=1, unit=PERSON, name="many", shape=(3,), is_wide=True)


LARGEST = 2**63 - 1
HUGE = DiscreteLaplace(2**80)
CHOSEN_BY_NUMPY: dict[str, tuple[IntegerArray, list[int]]] = {
    "int64": (np.array([LARGEST, -1, 0]), [LARGEST, -1, 0]),
    "uint64": (np.array([2**63, 1, 0], np.uint64), [LARGEST, 1, 0]),
    "uint8": (np.array([255, 1, 0], np.uint8), [255, 1, 0]),
    "object": (np.array([2**64, -(2**70), 0], object), [LARGEST, -LARGEST - 1, 0]),
    "small ones as object": (np.array([1, -1, 0], object), [1, -1, 0]),
}


@pytest.mark.parametrize("kind", CHOSEN_BY_NUMPY)
def test_the_kind_of_integers_that_numpy_chose_shows_nowhere(kind: str) -> None:
    """In the value itself, and in what is released of it."""
    values, within = CHOSEN_BY_NUMPY[kind]
    checked = array().checked(values)
    assert checked.dtype == np.int64
    assert checked.tolist() == within
    exact = wide().checked(values)
    assert exact.dtype == object
    assert exact.tolist() == [int(value) for value in values]
    for mechanism in (
        LAPLACE,
        Gaussian(2),
        HUGE,
        Staircase(epsilon=1, width=2),
        MaxNorm(2, length=3),
    ):
        assert mechanism.sample(checked, SeededBits(1)).dtype == np.int64
        assert mechanism.sample(exact, SeededBits(1)).dtype == object


def test_saturated_numbers_move_no_further() -> None:
    values = [LARGEST + step for step in (-2, -1, 0, 1, 2)] + [-LARGEST - 1 + s for s in (-1, 0, 1)]
    for a in values:
        for b in values:
            one, other = (array().checked(np.array([v, 0, 0], object))[0] for v in (a, b))
            assert abs(int(one) - int(other)) <= abs(a - b)


def test_whether_an_array_is_wide_is_true_or_false() -> None:
    wrong: BadValue = 1
    with pytest.raises(InvalidArgument, match="is_wide = 1: give True or False"):
        Part("one", (3,), Sensitivity(l1=1), is_wide=wrong)


def test_order_and_strides_change_nothing() -> None:
    values = np.arange(6).reshape(2, 3)
    for same in (np.asfortranarray(values), np.repeat(values, 2, axis=1)[:, ::2]):
        assert np.array_equal(array((2, 3)).checked(same), values)


NOT_THREE_INTEGERS = [
    [1, 2, 3],
    (1, 2, 3),
    5,
    None,
    np.zeros(2, dtype=np.int64),
    np.zeros((3, 1), dtype=np.int64),
    np.zeros(3),
    np.zeros(3, dtype=bool),
    np.zeros(3, dtype=complex),
    np.zeros(3, dtype="U3"),
    np.zeros(3, dtype="m8[ns]"),
    np.zeros(3, dtype="M8[ns]"),
    np.array([1, 2, "NaT"], dtype="m8[ns]"),
    np.zeros(3, dtype=[("a", "i8")]),
    np.array([1, 2, True], dtype=object),
    np.array([1, 2, 3.0], dtype=object),
    np.array([1, 2, None], dtype=object),
    np.array([1, 2, np.int64(3)], dtype=object),
    np.array([1, 2, Shouting(3)], dtype=object),
    np.ma.masked_array([1, 2, 3], [False, True, False]),
    np.ma.masked_array([1, 2, 3]),
    np.array([1, 2, 3]).view(np.recarray),
    pd.Series([1, 2, 3]),
    pd.array([1, 2, None], dtype="Int64"),
]


@pytest.mark.parametrize("wrong", NOT_THREE_INTEGERS, ids=repr)
def test_anything_else_is_no_array_of_integers(wrong: BadValue) -> None:
    with pytest.raises(TypeError, match="part 'a': expected"):
        array().checked(wrong)


def test_a_joint_result_has_exactly_its_parts() -> None:
    good = {"two": np.array([2, 3]), "one": 1}
    checked = joint().checked(good)
    assert list(checked) == ["one", "two"]
    for wrong in (
        {"one": 1},
        {**good, "three": 3},
        {**good, "one": None},
        {**good, "two": np.array([2.0, 3.0])},
        {**good, "one": np.array([2, 3]), "two": 1},
        list(good.values()),
        pd.DataFrame({"one": [1], "two": [2]}),
        None,
    ):
        with pytest.raises(TypeError, match="expected"):
            joint().checked(wrong)


def test_an_empty_array_is_an_array() -> None:
    assert array((0,)).part.sensitivity == Sensitivity(l1=0)
    assert array((0, 3)).checked(np.zeros((0, 3), dtype=np.int64)).shape == (0, 3)


def test_row_units_are_units() -> None:
    assert Bounded(lambda: 1, sensitivity=1, unit=Unit.ROW, name="rows").unit is Unit.ROW


REPLACED = PERSON.with_change(Change.REPLACE)
BOTH_UNITS = pytest.mark.parametrize("unit", [PERSON, REPLACED], ids=str)


@BOTH_UNITS
@pytest.mark.parametrize("per_unit", [1, 2, 3])
def test_rows_of_a_unit_move_as_far_as_is_stated(unit: Unit, per_unit: int) -> None:
    """A unit's rows are gone, or others in their place: all alike, or all different."""
    part = Bounded.rows(
        list, columns={"x": Grid(0, 9)}, per_unit=per_unit, unit=unit, name="rows"
    ).part
    fresh = per_unit if unit is REPLACED else 0
    alike = part.moves(part.checked([0] * per_unit), part.checked([5] * fresh))
    apart = part.moves(part.checked([*range(per_unit)]), part.checked([*range(5, 5 + fresh)]))
    stated = part.sensitivity
    assert (sum(alike), max(alike)) == (stated.l1, stated.linf)
    assert (sum(apart), len(apart)) == (stated.l1, stated.l0)
    assert sum(moved**2 for moved in alike) == stated.l2_squared


@BOTH_UNITS
@pytest.mark.parametrize(("per_unit", "most"), [(1, 1), (1, 4), (3, 1), (3, 4)])
def test_keys_of_a_unit_move_as_far_as_is_stated(unit: Unit, per_unit: int, most: int) -> None:
    part = Bounded.keys(dict, per_unit=per_unit, most=most, unit=unit, name="keys").part
    fresh = per_unit if unit is REPLACED else 0
    one, other = dict.fromkeys(range(per_unit), most), dict.fromkeys(range(5, 5 + fresh), most)
    moved, stated = part.moves(part.checked(one), part.checked(other)), part.sensitivity
    assert (len(moved), sum(moved), max(moved)) == (stated.l0, stated.l1, stated.linf)
    assert sum(each**2 for each in moved) == stated.l2_squared
