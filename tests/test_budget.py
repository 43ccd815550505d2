"""Limits and requests: the values that a ledger is given."""

import copy
import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from discreet._budget import AnyLimit, Limit, MuLimit, RenyiLimit, Request, RhoLimit
from discreet._exact import Number
from discreet.errors import InvalidArgument


@pytest.mark.parametrize(
    "epsilon", [0, -1, math.nan, math.inf, True, "1", None, Decimal("sNaN")], ids=repr
)
def test_a_limit_needs_an_epsilon(epsilon: float) -> None:
    with pytest.raises(InvalidArgument, match=r"^epsilon = "):
        Limit(epsilon)


@pytest.mark.parametrize("delta", [-1e-9, 1, 1.5, math.nan, True, "0", None], ids=repr)
def test_a_limit_needs_a_delta_below_1(delta: float) -> None:
    with pytest.raises(InvalidArgument, match=r"^delta = "):
        Limit(1, delta)


def test_a_limit_is_exact() -> None:
    limit = Limit(epsilon=0.1, delta=np.float64(1e-6))
    assert (limit.epsilon, limit.delta) == (Fraction(1, 10), Fraction(1, 10**6))
    assert limit == Limit(Fraction(1, 10), Decimal("0.000001"))
    assert hash(limit) == hash(Limit(Decimal("0.1"), Fraction(1, 10**6)))
    assert limit != Limit(0.1)


def test_a_limit_prints_as_it_is_written() -> None:
    assert repr(Limit(2, 1e-6)) == "Limit(epsilon=2, delta=1e-06)"
    assert repr(Limit(0.5)) == "Limit(epsilon=0.5, delta=0)"
    assert repr(Limit(Fraction(1, 3))) == "Limit(epsilon=1/3, delta=0)"


def test_a_limit_stays_as_it_is() -> None:
    limit = Limit(1)
    with pytest.raises(AttributeError):
        limit.epsilon = Fraction(2)  # type: ignore[misc]  # that is the test
    for twin in (copy.copy(limit), copy.deepcopy(limit), pickle.loads(pickle.dumps(limit))):
        assert twin == limit


@pytest.mark.parametrize(
    "number", [0, -1, math.nan, math.inf, True, "1", None, Decimal("sNaN")], ids=repr
)
def test_other_limits_need_a_number_above_0(number: float) -> None:
    with pytest.raises(InvalidArgument, match=r"^rho = "):
        RhoLimit(number)
    with pytest.raises(InvalidArgument, match=r"^mu = "):
        MuLimit(number)
    with pytest.raises(InvalidArgument, match=r"^bound = "):
        RenyiLimit({2: number})


@pytest.mark.parametrize(
    "bounds",
    [{}, None, 1, [(2, 1)], {1: 1}, {0.5: 1}, {math.inf: 1}, {True: 1}, {"2": 1}, {2: 1, 1: 1}],
    ids=repr,
)
def test_a_renyi_limit_needs_orders_above_1(bounds: dict[Number, Number]) -> None:
    with pytest.raises(InvalidArgument, match=r"^(bounds|order) = "):
        RenyiLimit(bounds)


def test_a_renyi_limit_has_each_order_once() -> None:
    with pytest.raises(InvalidArgument, match="above 1, each once"):
        RenyiLimit({0.1 + 1: 1, Decimal("1.1"): 2})


OTHERS: list[tuple[AnyLimit, str, str, str, Fraction]] = [
    (Limit(2, 1e-6), "Limit(epsilon=2, delta=1e-06)", "ε = 2, δ = 1e-06", "ε", Fraction(2)),
    (Limit(2), "Limit(epsilon=2, delta=0)", "ε = 2", "ε", Fraction(2)),
    (RhoLimit(0.5), "RhoLimit(rho=0.5)", "ρ = 0.5", "ρ", Fraction(1, 2)),
    (MuLimit(1), "MuLimit(mu=1)", "μ = 1", "μ", Fraction(1)),
    (
        RenyiLimit({8: 1, 2: 0.25}),
        "RenyiLimit({2: 0.25, 8: 1})",
        "0.25 at order 2, 1 at order 8",
        "share",
        Fraction(1),
    ),
]


@pytest.mark.parametrize(("limit", "code", "words", "symbol", "most"), OTHERS)
def test_limits_show_themselves(
    limit: AnyLimit, code: str, words: str, symbol: str, most: Fraction
) -> None:
    assert (repr(limit), str(limit)) == (code, words)
    assert (limit.symbol, limit.most) == (symbol, most)
    for twin in (copy.copy(limit), copy.deepcopy(limit), pickle.loads(pickle.dumps(limit))):
        assert twin == limit
        assert hash(twin) == hash(limit)


def test_limits_of_different_kinds_are_different() -> None:
    limits: set[AnyLimit] = {Limit(1), RhoLimit(1), MuLimit(1), RenyiLimit({2: 1})}
    assert len(limits) == 4
    assert RenyiLimit({2: 0.1}) == RenyiLimit({2.0: Fraction(1, 10)}) != RenyiLimit({3: 0.1})


@pytest.mark.parametrize("id_", ["", "x" * 201, None, 5, b"x"], ids=lambda value: repr(value)[:9])
def test_a_request_has_an_id(id_: str) -> None:
    with pytest.raises(InvalidArgument, match="1 to 200 characters"):
        Request(id_, "digest")


def test_a_request_of_any_fair_id() -> None:
    assert Request("x" * 200, "digest").body == "digest"
    assert Request("a", "b") != Request("a", "c")
