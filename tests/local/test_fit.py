"""A million reports from the operating system's words against their law.

How often each report comes is binomial under the law; its exact tail, times the number of tails
looked at, bounds the probability of a false alarm by 10^-9. The same test has to reject reports of
an epsilon that is 5 % too large (10 % for the 1024 places of the piecewise mean); those come from
seeded words, so that its answer never varies.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom

from discreet.local import (
    CountMeanSketch,
    HadamardResponse,
    LocalHashing,
    RandomizedResponse,
    Rappor,
    SketchReports,
    UnaryEncoding,
)
from tests.local.kit import MEANS, Make, drawn, law_of

ALPHA = 1e-9
MANY = 1_000_000

KINDS: dict[str, Make] = {
    "randomized response": lambda e: RandomizedResponse(e, 5),
    "symmetric unary": lambda e: UnaryEncoding.symmetric(e, 3),
    "optimised unary": lambda e: UnaryEncoding.optimised(e, 3),
    "hadamard": lambda e: HadamardResponse(e, 5),
    "hashing": lambda e: LocalHashing(e, 5, 3),
    "rappor": lambda e: Rappor(3 * e, once=e, categories=3),
    "sketch": lambda e: CountMeanSketch(e, 5, buckets=3),
    **MEANS,
}


def value_of(mechanism: Any) -> tuple[Any, int]:  # Any: a number
    """A value, and how its law names it."""
    if hasattr(mechanism.client, "lower"):
        return -1 + 4 * 0.875, 7 << 27
    return 2, 2


def coded(reports: Any) -> npt.NDArray[np.int64]:
    """Each report as one number."""
    if isinstance(reports, SketchReports):
        return reports.functions << 20 | coded(reports.bits)
    if reports.ndim == 2:
        found: npt.NDArray[np.int64] = reports @ (1 << np.arange(reports.shape[1]))
        return found
    return np.asarray(reports).astype(np.int64)


def code_of(report: Any) -> int:
    """The same number, from the law's name."""
    if not isinstance(report, tuple):
        return int(report)
    if isinstance(report[0], bool):
        return sum(bit << place for place, bit in enumerate(report))
    return int(report[0] << 20 | code_of(report[1:]))


def false_alarm(found: npt.NDArray[np.int64], law: dict[Any, Any]) -> float:
    """A bound on the probability that honest reports look as bad as these."""
    codes, counts = np.unique(found, return_counts=True)
    chances = {code_of(report): float(chance) for report, chance in law.items()}
    assert set(codes.tolist()) <= set(chances)
    seen = dict(zip(codes.tolist(), counts.tolist(), strict=True))
    k = np.array([seen.get(code, 0) for code in chances])
    p = np.array(list(chances.values()))
    tails = np.minimum(binom.cdf(k, found.size, p), binom.sf(k - 1, found.size, p))
    return min(1.0, 2 * len(chances) * float(tails.min()))


@pytest.mark.parametrize("name", KINDS)
def test_reports_follow_their_law(name: str) -> None:
    mechanism = KINDS[name](1)
    value, named = value_of(mechanism)
    values = np.full(MANY, value)
    given = mechanism.memoise(values) if isinstance(mechanism, Rappor) else values
    found = coded(mechanism.randomize(given))
    assert false_alarm(found, law_of(mechanism.client, named)) > ALPHA


@pytest.mark.parametrize("name", KINDS)
def test_reports_of_another_epsilon_are_rejected(name: str) -> None:
    mechanism = KINDS[name](1.1 if name == "piecewise" else 1.05)
    value, named = value_of(mechanism)
    found = coded(drawn(mechanism, np.full(MANY, value), seed=11))
    assert false_alarm(found, law_of(KINDS[name](1).client, named)) < ALPHA
