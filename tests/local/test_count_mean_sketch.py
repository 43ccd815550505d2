"""Collisions are as rare as stated, for every pair; and sketches add up."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.local import CountMeanSketch, SketchReports
from tests.local.kit import law_of


@pytest.mark.parametrize(("categories", "prime"), [(5, 7), (49, 7), (125, 5), (81, 3)])
def test_two_categories_meet_under_few_functions(categories: int, prime: int) -> None:
    client = CountMeanSketch(1, categories, prime).client
    values = np.arange(categories)
    found = client.bucket(values, np.arange(prime)[:, None])
    met = [int((found[:, a] == found[:, b]).sum()) for a, b in combinations(values, 2)]
    assert max(met) == client.digits - 1
    if categories == prime**client.digits and client.digits > 1:
        average = sum(met) / len(met)  # nearly one function of all
        assert average == pytest.approx(
            prime * (prime ** (client.digits - 1) - 1) / (prime**client.digits - 1)
        )


def test_support_is_as_likely_as_the_rates_say() -> None:
    """From the law of each value: exactly so for the own category, within the ends for others."""
    mechanism = CountMeanSketch(1, 27, buckets=3)
    rates, values = mechanism.rates, np.arange(27)
    functions = mechanism.client.bucket(values, np.arange(3)[:, None])
    for value in range(27):
        mean = np.zeros(27, object)
        for (function, *bits), chance in law_of(mechanism.client, value).items():
            mean += chance * np.array(bits)[functions[function]].astype(int)
        assert mean[value] == rates.own
        others = np.delete(mean, value)
        assert rates.least == others.min()
        assert others.max() == rates.most


def test_a_sketch_counts_bits_by_function() -> None:
    mechanism = CountMeanSketch(1, 25, buckets=5)
    reports = mechanism.randomize(np.arange(500) % 25)
    whole = mechanism.sketch(reports)
    for function in range(5):
        mine = reports.functions == function
        assert whole[function].tolist() == reports.bits[mine].sum(axis=0).tolist()
    parts = [SketchReports(reports.functions[at::2], reports.bits[at::2]) for at in (0, 1)]
    assert np.array_equal(sum(map(mechanism.sketch, parts)), whole)


def test_estimates_hold_the_true_shares_among_very_many() -> None:
    mechanism = CountMeanSketch(3, 1 << 62, buckets=257)
    common = (1 << 62) - 1
    reports = mechanism.randomize(np.repeat([common, 12345], [16_000, 4_000]))
    answer = mechanism.estimate(reports, [common, 12345, 999])
    found = answer.interval(1 - 1e-12)
    for place, share in enumerate((0.8, 0.2, 0.0)):
        assert found.lower[place] <= share <= found.upper[place]
    assert found.lower[0] > 0.7
    assert found.upper[2] < 0.2


@pytest.mark.parametrize("wrong", [0, 1, 4, 8193, -3, 2.5, "3", True])
def test_buckets_that_are_no_prime_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidArgument, match="buckets = "):
        CountMeanSketch(1, 64, wrong)


@pytest.mark.parametrize("wrong", [0, 1, -3, 2.5, "3", True, (1 << 62) + 1])
def test_wrong_numbers_of_categories_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidArgument, match="categories = "):
        CountMeanSketch(1, wrong)


@pytest.mark.parametrize("wrong", [[], 27, -1, 0.5, True, "3", None, [[1]]])
def test_categories_that_are_none_are_refused(wrong: Any) -> None:
    mechanism = CountMeanSketch(1, 27, buckets=3)
    reports = mechanism.randomize([1, 2])
    with pytest.raises(InvalidArgument, match="categories: "):
        mechanism.estimate(reports, wrong)
