"""Rebuilding bits from counts: everything without noise, little with enough of it."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from discreet import DiscreteLaplace, Gaussian
from discreet.audit import exposed, group_matrix, reconstruct
from discreet.errors import InvalidArgument
from tests.audit.laws import generator

PEOPLE, COUNTS = 60, 240


def random_counts(people: int = PEOPLE, counts: int = COUNTS) -> tuple[Any, Any]:
    random = generator()
    return random.integers(0, 2, (counts, people)), random.integers(0, 2, people)


def test_counts_without_noise_tell_everything() -> None:
    groups, secret = random_counts()
    found = reconstruct(groups, secret)
    assert found.right == found.certain == PEOPLE
    assert found.common < 40
    assert found.privacy_loss is None


def test_more_noise_rebuilds_less() -> None:
    """Noise of a tenth rounds away; noise of epsilon 1/2 leaves nearly nothing but the total."""
    groups, secret = random_counts()
    most = int(groups.sum(axis=0).max())
    little = reconstruct(groups, secret, DiscreteLaplace(0.3))
    much = reconstruct(groups, secret, DiscreteLaplace(2 * most))
    assert little.right == PEOPLE
    assert much.privacy_loss is not None
    assert much.privacy_loss.epsilon() == 0.5
    # a guess of a random bit is right with probability e^0.5 / (1 + e^0.5) at most
    odds = math.exp(0.5)
    assert much.right <= binom.isf(1e-9, PEOPLE, odds / (1 + odds)) < PEOPLE
    assert "epsilon 0.5" in repr(much)
    assert "accounting.Gaussian" in repr(reconstruct(groups, secret, Gaussian(50)))


def test_two_counts_that_differ_in_one_person_expose_this_person() -> None:
    groups = [[1, 1, 1, 1], [1, 1, 1, 0]]
    (found,) = exposed(groups)
    assert found.person == 3
    assert found.spread == pytest.approx(math.sqrt(2))
    assert found.counts == 2


@pytest.mark.parametrize("repeats", [1, 4])
def test_repeated_counts_have_less_spread(repeats: int) -> None:
    found = exposed([[1, 0, 0], [0, 1, 1]] * repeats)
    assert [one.person for one in found] == [0]
    assert found[0].spread == pytest.approx(1 / math.sqrt(repeats))


def test_exposure_is_what_linear_algebra_allows() -> None:
    """A person is exposed exactly if the counts' row space has the person's unit vector."""
    random = generator()
    for _ in range(30):
        groups = random.integers(0, 2, (4, 6))
        rank = np.linalg.matrix_rank(groups)
        units = np.eye(6)
        inside = [
            person
            for person in range(6)
            if np.linalg.matrix_rank(np.vstack([groups, units[person]])) == rank
        ]
        assert [one.person for one in exposed(groups)] == inside


def test_tables_with_a_unique_cell_expose_a_person() -> None:
    street = ["a", "a", "a", "b", "b"]
    job = ["cook", "cook", "clerk", "cook", "clerk"]
    assert exposed(group_matrix(street, job)) == ()
    both = list(zip(street, job, strict=True))
    assert [one.person for one in exposed(group_matrix(street, job, both))] == [2, 3, 4]


@pytest.mark.parametrize(
    ("groups", "secret", "text"),
    [
        ([1, 0], [1, 0], "groups"),
        ([[2, 0]], [1, 0], "groups"),
        ([[]], [], "groups"),
        ([[1, 0]], [1], "secret"),
        ([[1, 0]], [1, 0.5], "secret"),
        ([[1, math.nan]], [1, 0], "groups"),
    ],
)
def test_wrong_arguments_are_refused(groups: Any, secret: Any, text: str) -> None:
    with pytest.raises(InvalidArgument, match=text):
        reconstruct(groups, secret)


def test_tables_of_different_length_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="one key for each person"):
        group_matrix(["a"], ["a", "b"])
