"""How long a draw takes does not tell how large it is.

Pearson's correlation of the time of a draw and the size of its outcome has to stay below
`LIMIT`. Sizes are first replaced by normal numbers in the same order: then the correlation of n of
them with times that don't depend on them has exactly the law of Student's t with n - 2 degrees of
freedom, whatever the times are like. The same correlation is large for samplers that count up to
their outcome.

Single draws are not free of it altogether: the parts of a table that are rarely used are not in
the processor's cache. There the correlation is about 0.02, and 0.1 to 0.35 between the ranks.
"""

import gc
import math
from collections.abc import Callable
from fractions import Fraction
from time import perf_counter_ns

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from discreet.noise import Law, SecureBits
from tests.noise.registry import NOISE

LIMIT = 0.15
COUNT = 2000
ALPHA = 1e-9

Draw = Callable[[], npt.NDArray[np.int64] | int]

WIDE: list[Law] = [at(Fraction(10**4)) for at in NOISE.values()]
NARROW: list[Law] = [at(Fraction(1000)) for at in NOISE.values()]


def correlation(draw: Draw) -> float:
    """Of the times of draws and the sizes of what they give."""
    times, sizes = measured(draw)
    some = np.random.default_rng(1)
    in_order = np.lexsort((some.random(COUNT), sizes))  # equal ones in random order
    normal = np.empty(COUNT)
    normal[in_order] = np.sort(some.standard_normal(COUNT))
    return float(np.corrcoef(times, normal)[0, 1])


def measured(draw: Draw) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    times, sizes = np.empty(COUNT), np.empty(COUNT)
    for _ in range(COUNT // 10):
        draw()
    gc.collect()
    gc.disable()
    try:
        for i in range(COUNT):
            start = perf_counter_ns()
            found = draw()
            times[i] = perf_counter_ns() - start
            sizes[i] = np.abs(found).mean()
    finally:
        gc.enable()
    return times, sizes


def test_chance_alone_does_not_reach_the_limit() -> None:
    """By the law of r: r sqrt((n - 2) / (1 - r^2)) is Student's t."""
    reached = LIMIT * math.sqrt((COUNT - 2) / (1 - LIMIT**2))
    assert 1e-11 < 2 * stats.t.sf(reached, COUNT - 2) < ALPHA / (3 * len(WIDE))


@pytest.mark.parametrize("law", WIDE, ids=repr)
def test_the_time_of_a_single_draw_does_not_tell_its_size(law: Law) -> None:
    bits = SecureBits()
    assert abs(correlation(lambda: law.draw(bits))) < LIMIT


@pytest.mark.parametrize("law", WIDE, ids=repr)
def test_the_time_of_an_array_does_not_tell_its_mean_size(law: Law) -> None:
    bits = SecureBits()
    assert abs(correlation(lambda: law.draws(bits, 256))) < LIMIT


@pytest.mark.parametrize("law", NARROW, ids=repr)
def test_nor_does_that_of_an_array_from_a_guide(law: Law) -> None:
    """There more digits are drawn for some outcomes, and which ones depends on them."""
    bits = SecureBits()
    assert abs(correlation(lambda: law.draws(bits, 1 << 15))) < LIMIT


def test_a_sampler_that_counts_up_to_its_outcome_is_flagged() -> None:
    """A geometric law by trials. An interruption may hide it, but not each time."""
    bits, success = SecureBits(), int(2**64 / 1000)

    def by_trials() -> int:
        trials = 0
        while bits.word() >= success:
            trials += 1
        return trials

    assert any(abs(correlation(by_trials)) >= LIMIT for _ in range(5))
