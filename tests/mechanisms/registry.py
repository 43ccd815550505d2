"""The mechanisms that add independent noise, one line each: all tables of tests read them here.

A new one is a file with its fields, its law and its price, and a line in `ADDITIVE`.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet._unit import Unit
from discreet.accounting import PrivacyLoss
from discreet.mechanisms import (
    Bounded,
    DiscreteGaussian,
    DiscreteLaplace,
    FixedPoint,
    Gaussian,
    Laplace,
    RealGaussian,
    Staircase,
)
from tests.bad_values import Call
from tests.mechanisms.kit import PERSON

EPSILON = {"epsilon": 1}
BOTH = {"epsilon": 1, "delta": 1e-6}
ERROR = {"error": 5, "confidence": 0.9}


def number(unit: Unit) -> Bounded[int]:
    return Bounded(lambda: 3, sensitivity=1, unit=unit, name="number")


def real(unit: Unit) -> Bounded[FixedPoint]:
    return Bounded.real(lambda: 0, sensitivity=1, step=0.5, unit=unit, name="real")


@dataclass(frozen=True)
class Added:
    """A mechanism that adds noise: how it is made, the privacy that it is asked for, and for what;
    ``scaled`` makes it with noise of a scale, unless that is the first of what is given."""

    kind: Any  # Any: each its own class
    given: Mapping[str, Any]
    privacy: Mapping[str, Any]
    about: Callable[[Unit], Bounded[Any]] = number
    scaled: Callable[[Fraction], Any] | None = None

    def at(self, scale: Fraction) -> Any:
        """The mechanism with noise of this scale."""
        if self.scaled is not None:
            return self.scaled(scale)
        return self.kind(**{**self.given, next(iter(self.given)): scale})

    def price(self, unit: Unit) -> PrivacyLoss:
        """The privacy loss of the mechanism as it is given."""
        loss = self.kind(**self.given).privacy_loss(self.about(unit))
        assert isinstance(loss, PrivacyLoss)
        return loss

    @property
    def made(self) -> Call:
        return self.kind, self.given

    @property
    def by_epsilon(self) -> Call:
        return self.kind.for_epsilon, {**self.privacy, "bounded": self.about(PERSON)}

    @property
    def by_error(self) -> Call:
        wants = inspect.signature(self.kind.for_error).parameters
        about = {"bounded": self.about(PERSON)} if "bounded" in wants else {}
        return self.kind.for_error, {**ERROR, **about}


ADDITIVE: dict[str, Added] = {
    "DiscreteGaussian": Added(DiscreteGaussian, {"stddev": 3}, BOTH),
    "DiscreteLaplace": Added(DiscreteLaplace, {"scale": 3}, EPSILON),
    "Gaussian": Added(Gaussian, {"stddev": 3}, BOTH),
    "Laplace": Added(Laplace, {"scale": 3, "step": 0.5}, EPSILON, real),
    "RealGaussian": Added(RealGaussian, {"stddev": 3, "step": 0.5}, BOTH, real),
    "Staircase": Added(
        Staircase,
        {"epsilon": 1, "width": 3, "top": 2},
        EPSILON,
        scaled=lambda scale: Staircase(epsilon=1 / scale, width=1),
    ),
}
