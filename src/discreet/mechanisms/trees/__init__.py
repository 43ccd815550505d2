"""Sums over ranges, and totals that go on: noise on the nodes of a tree."""

from discreet.mechanisms.trees._counts import TreeCounts, TreeLevels, consistent
from discreet.mechanisms.trees._noise import TreeNoise
from discreet.mechanisms.trees._stream import StreamCounter

__all__ = ["StreamCounter", "TreeCounts", "TreeLevels", "TreeNoise", "consistent"]
