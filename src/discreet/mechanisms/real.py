"""What mechanisms for real numbers on a public grid share."""

from fractions import Fraction
from typing import cast

from discreet.errors import InvalidArgument
from discreet.exact import shown
from discreet.mechanisms.bounded import Bounded
from discreet.mechanisms.fixed_point import FixedPoint
from discreet.mechanisms.parts import RealPart, Value


def step_of(bounded: Bounded[FixedPoint], expected: Fraction | None = None) -> Fraction:
    """The step of the computation's grid; raises for integers, and for another grid."""
    part = bounded.part
    if not isinstance(part, RealPart):
        raise InvalidArgument(
            f"{bounded.name!r} gives {part.gives}: state real numbers by Bounded.real, or use a "
            "mechanism for integers, as DiscreteLaplace or Gaussian"
        )
    if expected is not None and part.step != expected:
        raise InvalidArgument(
            f"step = {shown(expected)}: {bounded.name!r} is on multiples of {shown(part.step)}, "
            "give that step"
        )
    return part.step


def in_steps(bounded: Bounded[FixedPoint]) -> Bounded[Value]:
    """The same computation as one that gives whole numbers of steps."""
    step_of(bounded)
    part = bounded.part
    return Bounded(
        lambda: bounded.checked(bounded.compute()).steps,
        sensitivity=part.sensitivity,
        unit=bounded.unit,
        name=bounded.name,
        shape=cast(RealPart, part).shape,
        basis=bounded.basis,
    )
