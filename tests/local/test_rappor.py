"""Permanent answers are the caller's, and rounds cost what all of them tell together."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet._exact import ball, fraction, precision
from discreet.accounting import Pure
from discreet.errors import InvalidArgument
from discreet.local import PermanentAnswers, Rappor
from tests.local.kit import lost, rappor, worst

MECHANISM = Rappor(3, once=1, categories=2)


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_rounds_lose_no_more_than_is_charged(rounds: int) -> None:
    """Over all rows of bits of all rounds."""
    laws = [rappor(MECHANISM.client, value, rounds) for value in (0, 1)]
    charged = MECHANISM.privacy_loss(rounds)
    with precision(256):
        epsilon = ball(fraction(charged.epsilon()))
        assert (
            ball(worst(laws)) <= epsilon.exp() <= ball(worst(laws)) * ball(Fraction(10001, 10000))
        )
        for guess in (Fraction(1, 2), Fraction(1)):
            assert lost(laws[0], laws[1], guess) <= ball(fraction(charged.delta(guess)))


def test_the_charge_of_one_round_would_not_do_for_two() -> None:
    laws = [rappor(MECHANISM.client, value, 2) for value in (0, 1)]
    with precision(256):
        assert ball(worst(laws)) > ball(fraction(MECHANISM.privacy_loss(1).epsilon())).exp()


def test_the_loss_grows_to_that_of_all_rounds() -> None:
    found = [MECHANISM.privacy_loss(rounds).epsilon() for rounds in (1, 2, 5, 20, 1000, 1001, None)]
    assert found == sorted(found)
    assert found[0] == 1
    assert found[-2:] == [3, 3]
    assert found[1] < 2
    assert (10 * MECHANISM.privacy_loss()).epsilon(1e-6) < (10 * Pure(3)).epsilon(1e-6)


def test_nothing_is_hidden() -> None:
    """The same permanent answers give fresh reports; a second memoise gives other answers."""
    mechanism = Rappor(2, once=1, categories=500)
    kept = mechanism.memoise([3, 4])
    assert isinstance(kept, PermanentAnswers)
    assert kept.bits.shape == (2, 500)
    monday, tuesday = mechanism.randomize(kept), mechanism.randomize(kept)
    assert (monday != tuesday).any()
    assert (mechanism.memoise([3, 4]).bits != kept.bits).any()
    stored = np.packbits(kept.bits, axis=1)
    again = PermanentAnswers(np.unpackbits(stored, axis=1, count=500).astype(np.bool_))
    assert (again.bits == kept.bits).all()


def test_the_memoised_bits_are_reported_where_one_round_may_cost_the_whole() -> None:
    mechanism = Rappor(2, once=2, categories=50)
    kept = mechanism.memoise([3, 4])
    assert (mechanism.randomize(kept) == kept.bits).all()


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), "1", True, 2.1])
def test_wrong_costs_of_a_round_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"once|epsilon"):
        Rappor(2, once=wrong, categories=5)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "1", True])
def test_wrong_numbers_of_rounds_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidArgument, match="rounds"):
        MECHANISM.privacy_loss(wrong)


def test_values_in_place_of_permanent_answers_are_refused() -> None:
    wrong: Any = [1, 0]
    with pytest.raises(InvalidArgument, match="memoise"):
        MECHANISM.randomize(wrong)


def test_estimates_hold_the_true_shares() -> None:
    mechanism = Rappor(6, once=2, categories=30)
    kept = mechanism.memoise(np.repeat([0, 29], [80_000, 20_000]))
    found = mechanism.estimate(mechanism.randomize(kept)).interval(1 - 1e-12)
    for category, share in (0, 0.8), (29, 0.2), (5, 0.0):
        assert found.lower[category] <= share <= found.upper[category]
    assert found.lower[0] > 0.7
