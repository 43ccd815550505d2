"""A privacy loss is a formal sum: its algebra, its units, its texts."""

import copy
import json
import math
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, replace
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet._exact import Number, fraction
from discreet._unit import Change, Unit
from discreet.accounting import (
    Approximate,
    DiscreteLaplace,
    Gaussian,
    PoissonSampled,
    PrivacyLoss,
    Pure,
    RandomAllocation,
    SampledWithoutReplacement,
    SampledWithReplacement,
    Shuffled,
    Term,
    TruncatedPoisson,
    TunedNegativeBinomial,
    TunedPoisson,
    Zcdp,
    terms,
)
from discreet.accounting._loss import MOST_NESTED
from discreet.errors import InvalidArgument, WrongUnit
from tests.accounting.examples import ALL_TERMS, some_loss, some_term

PERSON = Unit("person_id")
UNITS = [None, PERSON, Unit("person_id", Change.REPLACE), Unit.ROW]
counts = st.integers(0, 50)


class TestAlgebra:
    @given(some_loss(), some_loss(), some_loss())
    def test_order_and_brackets_are_irrelevant(
        self, a: PrivacyLoss, b: PrivacyLoss, c: PrivacyLoss
    ) -> None:
        assert a + b == b + a
        assert (a + b) + c == a + (b + c)
        assert hash(a + b) == hash(b + a)
        assert repr(a + b) == repr(b + a)
        assert (a + b).to_json() == (b + a).to_json()

    @given(some_loss(), some_loss(), counts, counts)
    def test_counts_distribute(self, a: PrivacyLoss, b: PrivacyLoss, m: int, n: int) -> None:
        assert m * (a + b) == m * a + m * b
        assert (m + n) * a == m * a + n * a
        assert m * (n * a) == (m * n) * a == n * (a * m)

    @given(some_loss())
    def test_ten_times_is_the_sum_of_ten(self, loss: PrivacyLoss) -> None:
        assert 10 * loss == sum([loss] * 10, PrivacyLoss()) == reduce(add, [loss] * 10)

    @given(some_loss())
    def test_nothing_is_neutral(self, loss: PrivacyLoss) -> None:
        assert loss + PrivacyLoss() == PrivacyLoss() + loss == 1 * loss == loss
        assert 0 * loss == PrivacyLoss()

    @given(some_term, some_term, some_loss())
    def test_terms_add_like_losses(self, a: Term, b: Term, loss: PrivacyLoss) -> None:
        assert a + b == PrivacyLoss.of(a, b) == PrivacyLoss.of(a) + b
        assert a + loss == loss + a == PrivacyLoss.of(a) + loss
        assert 3 * a == a * 3 == a + a + a

    @given(some_loss())
    def test_each_term_stands_once(self, loss: PrivacyLoss) -> None:
        terms = [term for term, _ in loss.terms]
        assert len(set(terms)) == len(terms)
        assert all(count >= 1 for _, count in loss.terms)
        assert PrivacyLoss(tuple(reversed(loss.terms))) == loss
        assert PrivacyLoss(loss.terms + loss.terms) == 2 * loss

    def test_counts_are_the_sums_business_alone(self) -> None:
        loss = 3 * Gaussian(4.0) + Pure(0.5) + Gaussian(4)
        assert dict(loss.terms) == {Gaussian(4): 4, Pure(0.5): 1}

    @pytest.mark.parametrize("count", [2, 2.0, Fraction(2), Decimal(2), np.int64(2), np.float64(2)])
    def test_any_whole_number_counts(self, count: int) -> None:
        assert count * Pure(0.1) == Pure(0.1) * count == Pure(0.1) + Pure(0.1)
        assert count * (1 * Pure(0.1)) == (1 * Pure(0.1)) * count == 2 * Pure(0.1)
        assert type((Pure(0.1) * count).terms[0][1]) is int

    @pytest.mark.parametrize(
        "count", [-1, 0.5, math.nan, math.inf, True, "2", None, Pure(1)], ids=repr
    )
    def test_other_counts_are_refused(self, count: int) -> None:
        for left in (Pure(0.1), PrivacyLoss.of(Pure(0.1))):
            with pytest.raises(InvalidArgument, match=r"^count = "):
                left * count

    @pytest.mark.parametrize("other", [1, 0.5, "x", None, [], Unit.ROW], ids=repr)
    def test_only_losses_add(self, other: Term) -> None:
        for left in (Pure(0.1), PrivacyLoss.of(Pure(0.1))):
            with pytest.raises(TypeError):
                left + other
            with pytest.raises(TypeError):
                other + left

    @pytest.mark.parametrize("count", [-1, -(10**20), 1.5, math.nan, True, "1"], ids=repr)
    def test_no_refund_is_ever_made(self, count: int) -> None:
        with pytest.raises(InvalidArgument, match=r"^count = "):
            PrivacyLoss(((Pure(1), count),))

    def test_only_terms_are_summed(self) -> None:
        with pytest.raises(InvalidArgument, match="no term"):
            PrivacyLoss((("Pure(1)", 1),))  # type: ignore[arg-type]  # that is the test
        with pytest.raises(InvalidArgument, match="give a Unit"):
            PrivacyLoss((), "person_id")  # type: ignore[arg-type]  # that is the test


class TestUnits:
    @pytest.mark.parametrize("one", UNITS[1:], ids=repr)
    @pytest.mark.parametrize("other", UNITS[1:], ids=repr)
    def test_different_ones_never_add(self, one: Unit, other: Unit) -> None:
        left, right = PrivacyLoss.of(Pure(1), unit=one), PrivacyLoss.of(Gaussian(1), unit=other)
        if one == other:
            assert (left + right).unit == one
            return
        with pytest.raises(WrongUnit, match="declare one unit for both"):
            left + right
        with pytest.raises(WrongUnit):
            left.for_unit(other)

    def test_a_bare_loss_takes_the_unit_it_meets(self) -> None:
        owned = PrivacyLoss.of(Pure(1), unit=PERSON)
        for bare in (PrivacyLoss.of(Gaussian(2)), PrivacyLoss()):
            assert (owned + bare).unit == (bare + owned).unit == PERSON
        assert (owned + Gaussian(2)).unit == (Gaussian(2) + owned).unit == PERSON
        assert PrivacyLoss.of(Pure(1)).for_unit(PERSON) == owned
        assert owned.for_unit(None) == owned.for_unit(PERSON) == owned
        assert (0 * owned).unit == (3 * owned).unit == PERSON

    def test_the_unit_is_part_of_the_value(self) -> None:
        assert len({PrivacyLoss.of(Pure(1), unit=unit) for unit in UNITS}) == len(UNITS)


class TestTexts:
    @given(some_loss(), st.sampled_from(UNITS))
    def test_json_and_back_is_the_same(self, loss: PrivacyLoss, unit: Unit | None) -> None:
        changes = [term.change for term, _ in loss.terms if term.change is not None]
        if unit and changes:
            unit = unit.with_change(changes[0])
        owned = loss.for_unit(unit)
        assert PrivacyLoss.from_json(owned.to_json()) == owned
        assert PrivacyLoss.from_json(json.dumps(json.loads(owned.to_json()), indent=2)) == owned

    @given(st.fractions(min_value=0), st.floats(0, allow_nan=False, allow_infinity=False))
    def test_json_keeps_numbers_exactly(self, ratio: Fraction, value: float) -> None:
        loss = Pure(ratio) + Zcdp(value)
        assert PrivacyLoss.from_json(loss.to_json()) == loss

    def test_json_looks_like_this(self) -> None:
        loss = (2 * Pure(0.1) + DiscreteLaplace(10, 2)).for_unit(PERSON)
        assert loss.to_json() == (
            '{"terms":[{"count":2,"epsilon":"1/10","term":"Pure"},'
            '{"count":1,"scale":"10","sensitivity":"2","term":"DiscreteLaplace"}],'
            '"unit":{"change":"add_remove","column":"person_id"}}'
        )
        assert PrivacyLoss().to_json() == '{"terms":[],"unit":null}'

    @pytest.mark.parametrize("term", ALL_TERMS, ids=repr)
    def test_a_term_prints_as_it_is_written(self, term: Term) -> None:
        from discreet import accounting

        assert repr(term).startswith(f"accounting.{type(term).__name__}(")
        assert eval(repr(term), {"accounting": accounting}) == term

    @pytest.mark.parametrize(
        ("loss", "text"),
        [
            (1 * Gaussian(4.0), "accounting.Gaussian(multiplier=4)"),
            (1 * Approximate(1, 1e-6), "accounting.Approximate(epsilon=1, delta=1e-06)"),
            (
                Gaussian(4.5) + 3 * Pure(Fraction(1, 3)),
                "3 * accounting.Pure(epsilon=1/3) + accounting.Gaussian(multiplier=4.5)",
            ),
            (PrivacyLoss(), "accounting.PrivacyLoss()"),
        ],
    )
    def test_a_sum_prints_as_it_is_written(self, loss: PrivacyLoss, text: str) -> None:
        assert repr(loss) == text

    @pytest.mark.parametrize("term", ALL_TERMS, ids=repr)
    def test_a_sum_with_a_unit_prints_as_it_is_written(self, term: Term) -> None:
        from discreet import accounting

        names = {"accounting": accounting, "Change": Change, "Unit": Unit}
        for unit in (Unit("person_id"), Unit.ROW):
            of_term = unit.with_change(term.change or Change.REPLACE)
            for loss in (1 * term, 3 * term, term + Pure(7), PrivacyLoss()):
                bound = loss.for_unit(of_term)
                assert eval(repr(bound), names) == bound
                assert str(bound) == str(loss) == repr(loss)

    def test_huge_numbers_print_too(self) -> None:
        huge = Pure(Fraction(10**400, 3))
        assert repr(huge) == f"accounting.Pure(epsilon={10**400}/3)"
        assert PrivacyLoss.from_json((1 * huge).to_json()) == 1 * huge


def changed(**fields: object) -> str:
    """The JSON of a good loss, some fields of its one term being other ones."""
    entry = {"count": 1, "term": "Pure", "epsilon": "1/10", **fields}
    fields = {name: value for name, value in entry.items() if value is not ...}
    return json.dumps({"terms": [fields], "unit": None})


class TestMalformedJson:
    def test_the_good_one_is_good(self) -> None:
        assert PrivacyLoss.from_json(changed()) == 1 * Pure(0.1)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{",
            "null",
            "5",
            "NaN",
            '"terms"',
            "[]",
            "{}",
            "[" * 100_000,
            '{"terms":' * 100_000,
            '{"terms":[]}',
            '{"unit":null}',
            '{"terms":[],"unit":null,"more":1}',
            '{"terms":"","unit":null}',
            '{"terms":{},"unit":null}',
            '{"terms":null,"unit":null}',
            '{"terms":[[]],"unit":null}',
            '{"terms":[null],"unit":null}',
            '{"terms":["Pure"],"unit":null}',
            '{"terms":[{}],"unit":null}',
            '{"terms":[],"unit":0}',
            '{"terms":[],"unit":""}',
            '{"terms":[],"unit":false}',
            '{"terms":[],"unit":{}}',
            '{"terms":[],"unit":"person_id"}',
            '{"terms":[],"unit":{"column":"id"}}',
            '{"terms":[],"unit":{"column":"","change":"replace"}}',
            '{"terms":[],"unit":{"column":5,"change":"replace"}}',
            '{"terms":[],"unit":{"column":"id","change":"swap"}}',
            '{"terms":[],"unit":{"column":"id","change":[]}}',
            '{"terms":[],"unit":{"column":"id","change":"replace","more":1}}',
            changed(term="Free"),
            changed(term="Term"),
            changed(term="pure"),
            changed(term="__all__"),
            changed(term=None),
            changed(term=["Pure"]),
            changed(term=...),
            changed(term="Gaussian"),
            changed(term="Gaussian", multiplier="1"),
            changed(term="DiscreteLaplace", epsilon=..., scale="1"),
            changed(term="DiscreteLaplace", epsilon=..., scale="1", sensitivity="1/2"),
            changed(term="DiscreteLaplace", epsilon=..., scale="0", sensitivity="1"),
            changed(term="Approximate", delta="1"),
            changed(count=...),
            changed(count=0),
            changed(count=-1),
            changed(count=1.0),
            changed(count=True),
            changed(count="1"),
            changed(count=None),
            changed(count=math.inf),
            changed(count=math.nan),
            changed(epsilon=...),
            changed(epsilon=0.1),
            changed(epsilon=1),
            changed(epsilon=True),
            changed(epsilon=None),
            changed(epsilon=[1, 10]),
            changed(epsilon=""),
            changed(epsilon="-1/10"),
            changed(epsilon="+1"),
            changed(epsilon=" 1"),
            changed(epsilon="1/10\n"),
            changed(epsilon="1_0"),
            changed(epsilon="0.1"),
            changed(epsilon="1/0"),
            changed(epsilon="1/00"),
            changed(epsilon="1/-2"),
            changed(epsilon="1/2/3"),
            changed(epsilon="nan"),
            changed(epsilon="inf"),
            changed(epsilon="1e9"),
            changed(epsilon="1e999999999999"),
            changed(epsilon="9" * 2000),
            changed(epsilon="9" * 100_000),
            changed(epsilon="١"),  # noqa: RUF001  # a digit, in Arabic
            changed(sigma="1"),
        ],
        ids=lambda text: text[:60],
    )
    def test_is_refused(self, text: str) -> None:
        with pytest.raises(InvalidArgument, match="not the JSON of a privacy loss"):
            PrivacyLoss.from_json(text)

    @pytest.mark.parametrize("text", [None, 5, {}, b"\xff", Pure(1)], ids=repr)
    def test_json_must_be_text(self, text: str) -> None:
        with pytest.raises(InvalidArgument, match="not the JSON of a privacy loss"):
            PrivacyLoss.from_json(text)

    @given(
        st.text()
        | st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: (
                st.lists(inner)
                | st.dictionaries(
                    st.sampled_from(["terms", "unit", "term", "count", "epsilon"]), inner
                )
            ),
        ).map(json.dumps)
    )
    def test_any_json_is_refused_or_read(self, text: str) -> None:
        try:
            loss = PrivacyLoss.from_json(text)
        except InvalidArgument:
            return
        assert PrivacyLoss.from_json(loss.to_json()) == loss


class TestValues:
    @pytest.mark.parametrize("term", ALL_TERMS, ids=repr)
    def test_copies_are_equal(self, term: Term) -> None:
        for value in (
            term,
            3 * term,
            (2 * term).for_unit(PERSON.with_change(term.change or Change.REPLACE)),
        ):
            for twin in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
                assert twin == value
                assert hash(twin) == hash(value)
                assert type(twin) is type(value)

    def test_stay_as_they_are(self) -> None:
        with pytest.raises(FrozenInstanceError):
            Pure(1).epsilon = Fraction(2)  # type: ignore[misc]  # that is the test
        with pytest.raises(FrozenInstanceError):
            (1 * Pure(1)).terms = ()  # type: ignore[misc]  # that is the test
        assert replace(1 * Pure(1), unit=PERSON) == (1 * Pure(1)).for_unit(PERSON)

    def test_terms_of_other_kinds_differ(self) -> None:
        assert len({Pure(1), Zcdp(1), Gaussian(1), DiscreteLaplace(1), Approximate(1, 0)}) == 5

    @pytest.mark.parametrize(
        "one", [0.1, Decimal("0.1"), Fraction(1, 10), np.float64(0.1), Decimal("0.100")]
    )
    def test_a_number_means_its_shortest_decimal(self, one: Number) -> None:
        assert Pure(one) == Pure(Fraction(1, 10))
        assert hash(Pure(one)) == hash(Pure(0.1))
        assert (10 * Pure(one)).epsilon() == 1.0
        assert PrivacyLoss.of(*[Pure(one)] * 10).epsilon() == 1.0

    @given(st.floats(1e-300, 1e300), st.integers(1, 1000))
    def test_pure_sums_are_exact(self, epsilon: float, count: int) -> None:
        assert fraction((count * Pure(epsilon)).epsilon()) >= count * fraction(epsilon)
        if count * fraction(epsilon) == fraction(float(count * fraction(epsilon))):
            assert (count * Pure(epsilon)).epsilon() == float(count * fraction(epsilon))


SCALES: list[tuple[str, Callable[[float], Term]]] = [
    ("multiplier", Gaussian),
    ("scale", DiscreteLaplace),
]
COSTS: list[tuple[str, Callable[[float], Term]]] = [
    ("epsilon", Pure),
    ("rho", Zcdp),
    ("epsilon", lambda value: Approximate(value, 0)),
]
NEVER = [math.nan, math.inf, -math.inf, -1, -1e-300, True, "1", None, [1], np.float64("nan")]


class TestBadInput:
    @pytest.mark.parametrize(("name", "make"), SCALES + COSTS)
    @pytest.mark.parametrize("value", NEVER, ids=repr)
    def test_is_refused_by_name(
        self, name: str, make: Callable[[float], Term], value: float
    ) -> None:
        with pytest.raises(InvalidArgument, match=f"^{name} = "):
            make(value)

    @pytest.mark.parametrize(("name", "make"), SCALES)
    @pytest.mark.parametrize("value", [0, 0.0, -0.0])
    def test_no_noise_is_refused(
        self, name: str, make: Callable[[float], Term], value: float
    ) -> None:
        with pytest.raises(InvalidArgument, match=f"^{name} = "):
            make(value)

    @pytest.mark.parametrize("value", [*NEVER, 0, 0.5, 1.5])
    def test_a_sensitivity_is_a_whole_number(self, value: float) -> None:
        with pytest.raises(InvalidArgument, match=r"^sensitivity = "):
            DiscreteLaplace(1, value)  # type: ignore[arg-type]

    @pytest.mark.parametrize("value", [*NEVER, 1, 1.0, 1.5])
    def test_a_delta_lies_below_1(self, value: float) -> None:
        with pytest.raises(InvalidArgument, match=r"^delta = "):
            Approximate(1, value)
        with pytest.raises(InvalidArgument, match=r"^delta = "):
            (1 * Pure(1)).epsilon(delta=value)
        with pytest.raises(InvalidArgument, match=r"^delta = "):
            (1 * Pure(1)).explain(delta=value)

    @pytest.mark.parametrize("value", NEVER, ids=repr)
    def test_an_epsilon_is_not_negative(self, value: float) -> None:
        with pytest.raises(InvalidArgument, match=r"^epsilon = "):
            (1 * Pure(1)).delta(epsilon=value)

    @pytest.mark.parametrize(
        "one", [1, 1.0, np.float64(1), np.int64(1), Decimal(1), Fraction(1)], ids=repr
    )
    def test_all_numbers_are_taken(self, one: Number) -> None:
        assert (Gaussian(one), Zcdp(one), Pure(one)) == (Gaussian(1), Zcdp(1), Pure(1))
        assert DiscreteLaplace(one, one) == DiscreteLaplace(1)  # type: ignore[arg-type]
        assert (1 * Pure(2)).delta(one) == (1 * Pure(2)).delta(1)
        half = one / 2
        assert (1 * Pure(2)).epsilon(half) == (1 * Pure(2)).epsilon(0.5)


HOLDERS: dict[str, Callable[[PrivacyLoss], Term]] = {
    "PoissonSampled": lambda inner: PoissonSampled(inner, 0.5),
    "TruncatedPoisson": lambda inner: TruncatedPoisson(inner, 0.5, 50, 100),
    "RandomAllocation": lambda inner: RandomAllocation(inner, 2),
    "SampledWithReplacement": lambda inner: SampledWithReplacement(inner, 5, 50),
    "SampledWithoutReplacement": lambda inner: SampledWithoutReplacement(inner, 5, 50),
    "Shuffled": Shuffled,
    "TunedPoisson": lambda inner: TunedPoisson(inner, 2),
    "TunedNegativeBinomial": lambda inner: TunedNegativeBinomial(inner, 1, 0.5),
}


@pytest.mark.parametrize("name", HOLDERS)
@pytest.mark.parametrize("beside", [PrivacyLoss(), 1 * Pure(0.1)])
def test_terms_nest_to_a_limit(name: str, beside: PrivacyLoss) -> None:
    """Beyond it they are refused before anything is priced."""
    loss = 1 * Gaussian(4)
    for _ in range(MOST_NESTED):
        loss = HOLDERS[name](loss) + beside
        assert PrivacyLoss.from_json(loss.to_json()) == loss
    with pytest.raises(InvalidArgument, match=f"at most {MOST_NESTED} terms may hold one another"):
        HOLDERS[name](loss)


def test_every_term_that_holds_another_has_a_limit() -> None:
    holding = {kind for kind in terms.__all__ if "privacy_loss" in names_of(getattr(terms, kind))}
    assert holding == {*HOLDERS, "Threshold"}  # which holds no sample


def names_of(kind: type[Term]) -> set[str]:
    return {field.name for field in fields(kind)}  # type: ignore[arg-type]  # a dataclass
