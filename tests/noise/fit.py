"""How well draws fit a law: what honest draws look as bad as with a probability below 10^-9.

Outcomes are sorted into cells. How many fall into a cell, or up to one, or how many neighbours
fall into a pair of them, is binomial under the law; its exact tail is multiplied by the number of
tails looked at.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from discreet._arrays import FloatArray
from discreet.noise import Words

ALPHA = 1e-9

Draws = npt.NDArray[np.int64]


class QuickBits:
    """The same words for the same seed, quickly: NumPy's PCG64."""

    width = 64

    def __init__(self, seed: int) -> None:
        self._generator = np.random.PCG64(seed)

    def word(self) -> int:
        """One."""
        return int(self._generator.random_raw())

    def words(self, count: int) -> Words:
        """The next words, this many."""
        found: Words = self._generator.random_raw(count)
        return found


@dataclass(frozen=True)
class Expected:
    """Cells between edges, each of them from its edge on, and their chances."""

    edges: Draws
    chances: FloatArray

    def cells(self, found: Draws) -> npt.NDArray[np.intp]:
        """The number of each draw's cell."""
        return np.searchsorted(self.edges, found, side="right")


def false_alarm(found: Draws, expected: Expected) -> float:
    """A bound on the probability that honest draws look as bad as these."""
    cells, chances = expected.cells(found), expected.chances
    size = len(chances)
    assert abs(chances.sum() - 1) < 1e-12
    counts = np.bincount(cells, minlength=size)
    orders = slice(None), slice(None, None, -1)
    tails = [
        two_sided(counts, found.size, chances),
        *(two_sided(counts[o].cumsum(), found.size, chances[o].cumsum()) for o in orders),
    ]
    for i in range(size // 2):  # cells i from both ends: magnitudes, if the law is symmetric
        beyond = counts[: i + 1].sum() + counts[size - i - 1 :].sum()
        chance = chances[: i + 1].sum() + chances[size - i - 1 :].sum()
        tails.append(two_sided(np.array([beyond]), found.size, np.array([chance])))
    for apart in (1, 4, 1 << 16):  # neighbours, whose words are or the next ones, and far ones
        some = cells[: cells.size // (2 * apart) * 2 * apart].reshape(-1, 2, apart)
        if some.size:
            pairs = np.bincount((some[:, 0] * size + some[:, 1]).ravel(), minlength=size**2)
            tails.append(two_sided(pairs, some.size // 2, np.outer(chances, chances).ravel()))
    every = np.concatenate(tails)
    return float(every.min()) * 2 * every.size


def two_sided(often: npt.NDArray[np.int64], of: int, chances: FloatArray) -> FloatArray:
    """The smaller of both binomial tails."""
    chances = np.minimum(chances, 1)
    return np.minimum(binom.cdf(often, of, chances), binom.sf(often - 1, of, chances))
