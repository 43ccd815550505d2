"""Words of ones: what is drawn by them ends, whatever the numbers are, and is as without noise."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.audit import ZeroNoiseBits
from discreet.mechanisms import DiscreteLaplace, Grid, MaxNorm, Rows, Staircase
from discreet.mechanisms.framework import MedianOfBlocks
from discreet.mechanisms.quantiles import InterQuartileRange, Quantile, Quantiles
from discreet.mechanisms.selection import DensestInterval
from discreet.mechanisms.tuning import NegativeBinomialRuns, PoissonRuns, Scored, Tuning
from tests.mechanisms.kit import PERSON
from tests.mechanisms.registry import CASES as MECHANISMS

GRID = Grid(0, 10**6)
TABLE = [1000, 3007, 5011, 5012, 90_000]
ROWS = Rows.of(np.array(TABLE), (("x", GRID),), "rows")
RUN: Scored[int, int] = Scored(
    DiscreteLaplace(20), lambda n, noisy: -abs(n - noisy), DiscreteLaplace(20), 1
)
CANDIDATES = dict.fromkeys("abc", RUN)
ONE_RUN = {"score": 0, "value": 41, "candidate": "a"}
NUMBERS = np.array([3, -(10**6), 10**12])

CASES: dict[str, tuple[Any, Any, Any]] = {  # Any: each its own
    "quantile": (Quantile(scale=1, grid=GRID), ROWS, 5011),
    "quantiles": (Quantiles([0.3, 0.5, 0.7], scale=1, grid=GRID), ROWS, [3007, 5011, 5012]),
    "range": (InterQuartileRange(scale=1, grid=GRID), ROWS, 5012 - 3007),
    "interval": (DensestInterval(GRID, width=3, rate=1), ROWS, 5010),
    "blocks": (MedianOfBlocks(1, grid=GRID), np.array(TABLE), 5011),
    "staircase": (Staircase(epsilon=1, width=1000), NUMBERS, NUMBERS.tolist()),
    "cube": (MaxNorm(Fraction(1000, 3), length=3), NUMBERS, NUMBERS.tolist()),
    "runs": (Tuning(CANDIDATES, NegativeBinomialRuns(eta=1, gamma=0.1)), 41, ONE_RUN),
    "no run": (Tuning(CANDIDATES, PoissonRuns(3)), 41, None),
    "all runs": (Tuning(CANDIDATES, NegativeBinomialRuns(eta=0, gamma=0.1, most=3)), 41, ONE_RUN),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("width", [8, 64])
def test_without_noise_the_answer_is_the_datas_own(case: str, width: int) -> None:
    mechanism, value, answer = CASES[case]
    for _ in range(2):
        found = mechanism.sample(value, ZeroNoiseBits(width))
        assert (found.tolist() if isinstance(found, np.ndarray) else found) == answer


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("width", [1, 8, 64])
def test_every_draw_ends(name: str, width: int) -> None:
    """And is the same each time."""
    case = MECHANISMS[name]
    mechanism = case.made

    def drawn() -> Any:  # Any: each its own
        bits = ZeroNoiseBits(width)
        if case.is_session:
            return mechanism.begin(bits)(3)
        stated = case.about(PERSON)
        return mechanism.sample(stated.checked(stated.compute()), bits)

    assert repr(drawn()) == repr(drawn())
