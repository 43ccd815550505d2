"""Computations with known sensitivity, the noise that makes them private, and the one door."""

from discreet.mechanisms.bounded import Bounded, IntegerArray, Part, Sensitivity, Value
from discreet.mechanisms.discrete_laplace import DiscreteLaplace
from discreet.mechanisms.door import Door, Trace
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.mechanism import Additive, Mechanism
from discreet.mechanisms.release import Release, release, release_through
from discreet.mechanisms.together import Together

__all__ = [
    "Additive",
    "Bounded",
    "DiscreteLaplace",
    "Door",
    "Gaussian",
    "IntegerArray",
    "Mechanism",
    "Part",
    "Release",
    "Sensitivity",
    "Together",
    "Trace",
    "Value",
    "release",
    "release_through",
]
