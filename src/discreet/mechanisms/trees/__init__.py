"""Sums over ranges, and totals that go on: noise on the nodes of a tree."""

from discreet.mechanisms.trees.counts import Levels, TreeCounts, consistent
from discreet.mechanisms.trees.noise import Noise
from discreet.mechanisms.trees.stream import StreamCounter

__all__ = ["Levels", "Noise", "StreamCounter", "TreeCounts", "consistent"]
