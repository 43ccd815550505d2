"""Attacks on this library. Nothing here is for production: its bits are not secret.

`_bits` has sources of random words that can be seeded, scripted, recorded and replayed, or that
make all noise zero. `_replay` runs an act on a table and on a neighbouring table with the same
words, and compares everything that may not differ. A `Door` with these bits is insecure, and
each release that comes through it says so.
"""

from discreet.audit._bits import OutOfWords, RecordingBits, ScriptedBits, SeededBits, ZeroNoiseBits
from discreet.audit._replay import Difference, Run, replay

__all__ = [
    "Difference",
    "OutOfWords",
    "RecordingBits",
    "Run",
    "ScriptedBits",
    "SeededBits",
    "ZeroNoiseBits",
    "replay",
]
