"""Sums over ranges, and totals that go on: noise on the nodes of a tree."""

from discreet.mechanisms.trees._counts import Levels, TreeCounts, consistent
from discreet.mechanisms.trees._noise import Noise
from discreet.mechanisms.trees._stream import StreamCounter

__all__ = ["Levels", "Noise", "StreamCounter", "TreeCounts", "consistent"]
