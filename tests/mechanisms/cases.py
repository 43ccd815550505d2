"""An entry of the registry of mechanisms: how tests build, ask and attack a mechanism."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from discreet._unit import Unit
from discreet.accounting import PrivacyLoss
from tests.bad_values import Call
from tests.mechanisms import attack, worst_case
from tests.mechanisms.attack import Attack
from tests.mechanisms.computations import (
    number,
    real,
)
from tests.mechanisms.kit import PERSON
from tests.mechanisms.worst_case import Forecast

Arguments = Mapping[str, Any]  # Any: each its own
About = Callable[[Unit], Any]  # Any: a computation, or the unit itself for a session


@dataclass(frozen=True)
class Case:
    """A mechanism, as every table of tests reads it.

    ``epsilon`` and ``error`` are the arguments of ``for_epsilon`` and ``for_error``, without the
    computation. Where the mechanism has no ``for_epsilon``, ``for_error`` or ``error``, the field
    is None, and ``without`` says why. ``variants`` have a price of another form. ``unanswered``
    names questions about the price that no theorem answers, with the reason.
    """

    kind: Any  # Any: each its own class
    given: Arguments
    about: About
    epsilon: Arguments | None
    error: Arguments | None
    attack: Attack
    forecast: Forecast | None
    without: str = ""
    variants: Mapping[str, tuple[Any, About]] = field(default_factory=dict)
    unanswered: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return str(self.kind.__name__)

    @property
    def is_session(self) -> bool:
        return hasattr(self.kind, "begin")

    @property
    def made(self) -> Any:
        return self.kind(**self.given)

    @property
    def by_epsilon(self) -> Call | None:
        return None if self.epsilon is None else self._asked(self.kind.for_epsilon, self.epsilon)

    @property
    def by_error(self) -> Call | None:
        return None if self.error is None else self._asked(self.kind.for_error, self.error)

    def price(self, unit: Unit) -> PrivacyLoss:
        """The privacy loss of the mechanism as it is given."""
        return price(self.made, self.about, unit)

    def _asked(self, function: Callable[..., Any], given: Arguments) -> Call:
        wanted = inspect.signature(function).parameters
        about = {"bounded": self.about(PERSON), "unit": PERSON}
        return function, {**given, **{name: about[name] for name in about if name in wanted}}


def price(mechanism: Any, about: About, unit: Unit) -> PrivacyLoss:
    loss = mechanism.privacy_loss(about(unit))
    assert isinstance(loss, PrivacyLoss)
    return loss


def session(unit: Unit) -> Unit:
    """A session is priced for a unit, before it has a computation."""
    return unit


EPSILON: Arguments = {"epsilon": 1}
BOTH: Arguments = {"epsilon": 1, "delta": 1e-6}
ERROR: Arguments = {"error": 5, "confidence": 0.9}


def added(
    kind: Any,
    given: Arguments,
    privacy: Arguments,
    about: About = number,
    scaled: Callable[[Fraction], Any] | None = None,
    variants: Mapping[str, tuple[Any, About]] | None = None,
) -> Case:
    """A mechanism that adds independent noise. ``scaled`` builds it with noise of a scale, unless
    the scale is the first of the arguments ``given``."""

    def at(scale: Fraction) -> Any:
        return kind(**{**given, next(iter(given)): scale}) if scaled is None else scaled(scale)

    is_real = about is real
    return Case(
        kind,
        given,
        about,
        epsilon=privacy,
        error=ERROR,
        attack=Attack(attack.real, 0.0, 1.0, at) if is_real else Attack(attack.number, 0, 1, at),
        forecast=Forecast(
            at(Fraction(100)), worst_case.real_noise if is_real else worst_case.noise, is_batch=True
        ),
        variants=variants or {},
    )


OWN_PARTS = "it is made of mechanisms, each with constructors and an error of its own"
KEYS_OF_A_GROUP: Arguments = {
    "for_group": "a key that several units of a group have is shown with another probability than "
    "a key of a single unit, and the term knows the latter only"
}
