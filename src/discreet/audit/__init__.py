"""Attacks on this library by itself. Nothing here is for production: no bits here are secret."""

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
