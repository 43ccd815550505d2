"""Sums over ranges, and running totals: noise on the nodes of a tree.

Use `TreeCounts` for a histogram whose ranges are asked for, and `StreamCounter` for a total that is
released after each step. To read the files in order:

1. `_noise`: the noise of each node, and the privacy loss of all levels.
2. `_counts`: the tree of a histogram, and `consistent`, which combines its noisy sums.
3. `_stream`: the tree over time, as an interactive mechanism.
"""

from discreet.mechanisms.trees._counts import TreeCounts, TreeLevels, consistent
from discreet.mechanisms.trees._noise import TreeNoise
from discreet.mechanisms.trees._stream import StreamCounter

__all__ = ["StreamCounter", "TreeCounts", "TreeLevels", "TreeNoise", "consistent"]
