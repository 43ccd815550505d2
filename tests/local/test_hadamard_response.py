"""The transform counts what each row fits."""

import numpy as np
import pytest

from discreet.local import HadamardResponse


@pytest.mark.parametrize("categories", [2, 3, 4, 15, 16, 100])
def test_supports_are_counted_row_by_row(categories: int) -> None:
    mechanism = HadamardResponse(1, categories)
    reports = np.random.default_rng(1).integers(0, mechanism.client.size, 500)
    rows = np.arange(1, categories + 1)
    fits = np.bitwise_count(reports[:, None] & rows) % 2 == 0
    assert mechanism.supports(reports).tolist() == fits.sum(axis=0).tolist()
    assert mechanism.client.size > categories


def test_estimates_hold_the_true_shares() -> None:
    mechanism = HadamardResponse(1, 300)
    answer = mechanism.estimate(mechanism.randomize(np.repeat([0, 299], [80_000, 20_000])))
    found = answer.interval(1 - 1e-12)
    for category, share in (0, 0.8), (299, 0.2), (5, 0.0):
        assert found.lower[category] <= share <= found.upper[category]
    assert found.lower[0] > 0.7
