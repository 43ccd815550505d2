"""Limits and requests: what a ledger is told."""

import copy
import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.payment import Limit, Request


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


@pytest.mark.parametrize("id_", ["", "x" * 201, None, 5, b"x"], ids=lambda value: repr(value)[:9])
def test_a_request_has_an_id(id_: str) -> None:
    with pytest.raises(InvalidArgument, match="1 to 200 characters"):
        Request(id_, "digest")


def test_a_request_of_any_fair_id() -> None:
    assert Request("x" * 200, "digest").body == "digest"
    assert Request("a", "b") != Request("a", "c")
