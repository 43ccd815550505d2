"""Hash functions that put two categories together exactly as often as they should."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.local import LocalHashing
from discreet.local.client._hashing import is_prime


def buckets(mechanism: LocalHashing) -> Any:
    """Of each seed (rows) and category (columns)."""
    client = mechanism.client
    seeds = np.arange(client.buckets**client.digits)[:, None]
    values = np.broadcast_to(np.arange(client.categories), (len(seeds), client.categories))
    return client._hashed(values, np.broadcast_to(seeds, values.shape))


@pytest.mark.parametrize(
    ("categories", "prime"), [(2, 2), (9, 2), (9, 3), (11, 3), (30, 5), (5, 7)]
)
def test_one_in_g_functions_puts_two_categories_together(categories: int, prime: int) -> None:
    found = buckets(LocalHashing(1, categories, prime))
    for one, other in combinations(range(categories), 2):
        assert prime * (found[:, one] == found[:, other]).sum() == len(found)


@pytest.mark.parametrize(("categories", "prime"), [(2, 2), (9, 2), (11, 3), (30, 5), (5, 7)])
def test_supports_are_counted_report_by_report(categories: int, prime: int) -> None:
    mechanism = LocalHashing(1, categories, prime)
    reports = np.random.default_rng(1).integers(0, mechanism.client.size, 500)
    fits = buckets(mechanism)[reports // prime] == (reports % prime)[:, None]
    assert mechanism.supports(reports).tolist() == fits.sum(axis=0).tolist()


@pytest.mark.parametrize(("epsilon", "prime"), [(0.1, 2), (1, 3), (2, 7), (3, 23), (4, 53)])
def test_the_best_number_of_buckets_is_near_that_of_the_paper(epsilon: float, prime: int) -> None:
    """e^epsilon + 1, which is no prime most of the time."""
    mechanism = LocalHashing(epsilon, 3000)
    assert mechanism.client.buckets == prime
    assert abs(prime - np.exp(epsilon) - 1) <= 4
    for other in (2, 3, 5, 7, 19):
        assert mechanism.stddev(99, 0) <= LocalHashing(epsilon, 3000, other).stddev(99, 0)


@pytest.mark.parametrize("wrong", [0, 1, 4, 9, -3, 2.5, "3", True, 1 << 30])
def test_buckets_that_are_no_prime_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidArgument, match="buckets = "):
        LocalHashing(1, 64, wrong)


def test_uncountable_reports_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="different reports"):
        LocalHashing(1, 1 << 20, 61)
    with pytest.raises(InvalidArgument, match="CountMeanSketch"):
        LocalHashing(1, (1 << 23) + 1)
    assert LocalHashing(6, 1 << 20).client.size <= 1 << 24


def test_primes_are_found() -> None:
    assert [n for n in range(30) if is_prime(n)] == [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]
    assert not is_prime(49)
    assert not is_prime(61 * 67)
    assert is_prime(7919)


def test_estimates_hold_the_true_shares() -> None:
    mechanism = LocalHashing(2, 3000)
    answer = mechanism.estimate(mechanism.randomize(np.repeat([0, 2999], [80_000, 20_000])))
    found = answer.interval(1 - 1e-12)
    for category, share in (0, 0.8), (2999, 0.2), (5, 0.0):
        assert found.lower[category] <= share <= found.upper[category]
    assert found.lower[0] > 0.7
