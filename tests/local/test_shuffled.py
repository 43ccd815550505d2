"""Shuffled reports of each mechanism, every outcome of a few clients summed."""

import itertools
from collections import defaultdict
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from discreet.mechanisms import FloatArray
from tests.local.kit import ALL, law_of, values_of
from tests.mechanisms.kit import lost

SHARES = 0.0, 0.2, 0.5, 0.8, 0.97  # of epsilon
ROUND_OFF = 1e-12


def likelihoods(mechanism: Any) -> FloatArray:  # Any: each mechanism
    """The probabilities of reports, (value, kind of report). Reports are of one kind if the ratios
    of their probabilities are the same for all values: the value doesn't matter between them."""
    laws = [law_of(mechanism.client, value) for value in values_of(mechanism)]
    found: dict[Any, list[Fraction]] = defaultdict(lambda: [Fraction(0)] * len(laws))
    for report in dict.fromkeys(itertools.chain(*laws)):
        chances = [law.get(report, Fraction(0)) for law in laws]
        ratios = tuple(chance / sum(chances) for chance in chances)
        found[ratios] = [a + b for a, b in zip(found[ratios], chances, strict=True)]
    return np.array([[float(chance) for chance in column] for column in found.values()]).T


def most_lost(each: FloatArray, reports: int, epsilon: float) -> list[float]:
    """At each share of epsilon: over all values of the other clients, and all two of one's own."""
    numbers: dict[tuple[int, ...], int] = {}
    places = itertools.product(range(each.shape[1]), repeat=reports)
    unordered = [numbers.setdefault(tuple(sorted(row)), len(numbers)) for row in places]

    @cache
    def law(*held: int) -> FloatArray:
        joint = np.ones(1)
        for value in held:
            joint = np.outer(joint, each[value]).ravel()
        return np.bincount(unordered, weights=joint).astype(np.float64)

    values = range(len(each))
    pairs = [
        (law(*sorted((one, *others))), law(*sorted((other, *others))))
        for others in itertools.combinations_with_replacement(values, reports - 1)
        for one, other in itertools.permutations(values, 2)
    ]
    return [max(lost(p, q, share * epsilon) for p, q in pairs) for share in SHARES]


@pytest.mark.parametrize("epsilon", [0.5, 3])
@pytest.mark.parametrize("name", ALL)
def test_few_reports_lose_no_more_than_is_charged(name: str, epsilon: float) -> None:
    """Those of a larger epsilon do."""
    mechanism, generous = (likelihoods(ALL[name](times * epsilon)) for times in (1, 1.5))
    for reports in (1, 2, 3):
        loss = ALL[name](epsilon).shuffled(reports)
        charged = [loss.delta(share * epsilon) + ROUND_OFF for share in SHARES]
        found = most_lost(mechanism, reports, epsilon)
        assert all(f <= c for f, c in zip(found, charged, strict=True))
        caught = most_lost(generous, reports, epsilon)
        assert any(f > 1.05 * c for f, c in zip(caught, charged, strict=True))
