"""The two coins that everybody can do by hand; and odds that are given."""

import copy
import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import accounting
from discreet.errors import InvalidArgument
from discreet.local import RandomizedResponse

COINS = RandomizedResponse.with_odds(3)


def test_two_coins_cost_the_logarithm_of_three() -> None:
    """Heads: the truth; tails: the second coin. So 3 in 4 of those whose truth is yes say yes."""
    assert COINS.client.truth == Fraction(3, 4)
    assert COINS.client.worst_ratio() == 3
    found = COINS.privacy_loss().epsilon()
    assert math.log(3) <= found <= math.log(3) * (1 + 1e-14)
    [(term, count)] = COINS.privacy_loss().terms
    assert (term, count) == (accounting.RandomizedResponse(COINS.epsilon, 2), 1)


def test_reports_recover_four_in_ten_of_a_thousand() -> None:
    """With a false alarm at 10^-9, and on average with an error of 0.03."""
    people = np.repeat([0, 1], [600, 400])
    answer = COINS.estimate(COINS.randomize(people))
    found = answer.interval(1 - 1e-9)
    assert found.lower[1] <= 0.4 <= found.upper[1]
    assert answer.values.sum() == pytest.approx(1)
    assert answer.stddev[1] == pytest.approx(math.sqrt(3 / 16 / 1000) / 0.5, rel=1e-9)
    assert COINS.error(0.95, reports=1000, share=0.4) == pytest.approx(0.054)
    assert COINS.error(0.95, reports=1000) == pytest.approx(0.054)
    narrow = answer.interval(0.95)
    assert narrow.upper[1] - narrow.lower[1] < 0.13


def test_an_answer_by_hand() -> None:
    """500 of 1000 say yes: 250 would anyway, the other 250 are half of those who mean it."""
    answer = COINS.estimate(np.repeat([0, 1], [500, 500]))
    assert answer.values.tolist() == [0.5, 0.5]
    assert COINS.estimate(np.ones(10, np.int64)).values.tolist() == [-0.5, 1.5]


@pytest.mark.parametrize("wrong", [1, 0.5, 0, -3, float("nan"), float("inf"), True, "3", 10**20])
def test_odds_that_tell_nothing_or_all_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"odds = |epsilon = "):
        RandomizedResponse.with_odds(wrong)


def test_many_categories() -> None:
    mechanism = RandomizedResponse(5, 1000)
    answer = mechanism.estimate(mechanism.randomize(np.repeat([7, 999], 50_000)))
    found = answer.interval(1 - 1e-12)
    assert found.lower[7] <= 0.5 <= found.upper[7]
    assert found.lower[0] == 0
    assert found.upper[0] < 0.05


@pytest.mark.parametrize("odds", [1, Fraction(1, 2), 0, -3, math.inf, "3", 2.72])
def test_odds_that_epsilon_does_not_allow_are_refused(odds: Any) -> None:
    with pytest.raises(InvalidArgument, match="odds"):
        RandomizedResponse(1, odds=odds)


def test_odds_are_a_field_like_others() -> None:
    """A mechanism of given odds is written, compared and copied as what it is."""
    assert repr(COINS) == "RandomizedResponse(epsilon=1.0986122886681098, categories=2, odds=3)"
    assert RandomizedResponse(COINS.epsilon, odds=3) == COINS
    assert RandomizedResponse(COINS.epsilon) != COINS
    assert copy.copy(COINS) == pickle.loads(pickle.dumps(COINS)) == COINS
    assert RandomizedResponse(1, odds=2).client.odds == 2
