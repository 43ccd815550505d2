"""Computations with known sensitivity, the noise that makes them private, and the one door."""

from discreet.mechanisms.bounded import Bounded
from discreet.mechanisms.discrete_gaussian import DiscreteGaussian
from discreet.mechanisms.discrete_laplace import DiscreteLaplace
from discreet.mechanisms.door import Door, Trace
from discreet.mechanisms.fixed_point import FixedPoint, FloatArray, IntegerArray
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.max_norm import MaxNorm
from discreet.mechanisms.mechanism import Additive, Interactive, Mechanism
from discreet.mechanisms.parts import AnyPart, Key, KeysPart, Part, RealPart, RowsPart, Value
from discreet.mechanisms.real_gaussian import RealGaussian
from discreet.mechanisms.release import Release, rehearse, release, release_through
from discreet.mechanisms.rows import Grid, Rows
from discreet.mechanisms.sensitivity import RealSensitivity, Sensitivity
from discreet.mechanisms.session import Session, session, session_through
from discreet.mechanisms.staircase import Staircase
from discreet.mechanisms.together import Together

__all__ = [
    "Additive",
    "AnyPart",
    "Bounded",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Door",
    "FixedPoint",
    "FloatArray",
    "Gaussian",
    "Grid",
    "IntegerArray",
    "Interactive",
    "Key",
    "KeysPart",
    "Laplace",
    "MaxNorm",
    "Mechanism",
    "Part",
    "RealGaussian",
    "RealPart",
    "RealSensitivity",
    "Release",
    "Rows",
    "RowsPart",
    "Sensitivity",
    "Session",
    "Staircase",
    "Together",
    "Trace",
    "Value",
    "rehearse",
    "release",
    "release_through",
    "session",
    "session_through",
]
