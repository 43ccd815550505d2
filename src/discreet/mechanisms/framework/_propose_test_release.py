"""Propose-test-release: noise for a sensitivity that holds near most tables only."""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any, ClassVar, cast

from discreet import _checks, accounting
from discreet._exact import Number
from discreet._fields import Positive, PositiveCount, frozen
from discreet._unit import Unit
from discreet.accounting import PrivacyLoss, Threshold
from discreet.errors import InvalidArgument
from discreet.mechanisms._bounded import ASSERTED, Bounded, stated
from discreet.mechanisms._discrete_laplace import DiscreteLaplace
from discreet.mechanisms._parts import Part
from discreet.mechanisms._sensitivity import Sensitivity
from discreet.mechanisms.thresholds._keys import failure_probability, least_missing
from discreet.noise import Bits, DiscreteLaplaceLaw

Proposed = Mapping[str, tuple[int, int]]
"""The distance and the integer of a computation, by the name of its part."""


@dataclass(frozen=True, slots=True)
class ProposedPart:
    """An integer, and the distance to the nearest table where its move may exceed ``bound``.

    Between neighbours the integer moves by at most ``bound``, unless both have the distance 0. The
    distance moves by at most 1.
    """

    gives: ClassVar[str] = "an integer with a proposed bound"

    name: str
    bound: int
    sensitivity: Sensitivity

    def checked(self, result: object) -> tuple[int, int]:
        """The distance and the integer, as Python integers."""
        if type(result) is not tuple or len(result) != 2:
            raise TypeError(f"part {self.name!r}: expected a distance and an integer")
        whole = Part(self.name, (), self.sensitivity)
        distance, value = (cast(int, whole.checked(number)) for number in result)
        return max(distance, 0), value

    def moves(self, one: tuple[int, int], other: tuple[int, int]) -> list[int]:
        """The move of the distance; and, unless both distances are 0, twice the excess of the
        integer's move over the bound."""
        excess = max(0, abs(one[1] - other[1]) - self.bound) if max(one[0], other[0]) else 0
        return [abs(one[0] - other[0]), 2 * excess]


def proposed(
    compute: Callable[[], tuple[int, int]],
    *,
    bound: int,
    unit: Unit,
    name: str,
    basis: str = ASSERTED,
) -> Bounded[Proposed]:
    """State an integer with a bound on its sensitivity that need not hold for all tables.

    ``compute()`` gives a distance and the integer. The distance is an integer, for example the
    smallest number of units that must change to reach a table with a neighbour whose integer
    differs by more than ``bound``. The caller asserts two facts: the distances of neighbours differ
    by at most 1; and if the integers of two neighbours differ by more than the bound, both
    distances are 0 (or below).
    """
    part = ProposedPart(
        _checks.text(name=name), _checks.positive_count(bound=bound), Sensitivity(l1=1)
    )

    def named() -> Mapping[str, Any]:  # Any: checked by the part
        return {name: compute()}

    if not callable(compute):
        raise InvalidArgument("compute: give a function without arguments")
    parts = cast(tuple[Part, ...], (part,))
    return cast(
        "Bounded[Proposed]",
        Bounded.together(named, parts=parts, unit=unit, name=name, basis=basis),
    )


@frozen
class ProposeTestRelease:
    """Releases the integer with discrete Laplace noise of ``value_scale`` if the distance, with
    discrete Laplace noise of ``distance_scale``, is ``threshold`` or more; otherwise ``None``.

    Guarantee, under either relation: `privacy_loss` covers two cases. If the integers of two
    neighbours differ by more than the bound, both distances are 0, and an integer is released with
    probability at most ``failure_probability``. Otherwise the mechanism is a composition of two
    discrete Laplace mechanisms. ``None`` costs as much as an integer. The caller asserts that the
    distance is right. The running time is not covered. Dwork and Lei (2009).

    >>> pay = proposed(lambda: (31, 250), bound=4, unit=Unit("person"), name="median pay")
    >>> mechanism = ProposeTestRelease.for_epsilon(1, 1e-6, pay)
    >>> mechanism, mechanism.error(0.95)
    (ProposeTestRelease(distance_scale=2, value_scale=8, threshold=27), 24)
    >>> 0.999 < mechanism.privacy_loss(pay).epsilon(delta=1e-6) <= 1
    True
    """

    _: KW_ONLY
    distance_scale: Positive
    value_scale: Positive
    threshold: PositiveCount

    @staticmethod
    def for_epsilon(
        epsilon: Number, delta: Number, bounded: Bounded[Proposed]
    ) -> "ProposeTestRelease":
        """The mechanism whose release costs (epsilon, delta), half of the epsilon for the test."""
        half = _checks.positive(epsilon=epsilon) / 2
        return ProposeTestRelease(
            distance_scale=1 / half,
            value_scale=_part(bounded).bound / half,
            threshold=_least_threshold(1 / half, _checks.probability(delta=delta)),
        )

    @staticmethod
    def for_error(
        error: Number, confidence: Number, *, distance_scale: Number, delta: Number
    ) -> "ProposeTestRelease":
        """The mechanism with the most noise on the integer whose error, if there is an answer, is
        at most this at this confidence. The test has ``distance_scale``, and the smallest threshold
        whose failure probability is at most delta."""
        exact = _checks.positive(distance_scale=distance_scale)
        return ProposeTestRelease(
            distance_scale=exact,
            value_scale=DiscreteLaplace.for_error(error, confidence).scale,
            threshold=_least_threshold(exact, _checks.probability(delta=delta)),
        )

    def privacy_loss(self, bounded: Bounded[Proposed]) -> PrivacyLoss:
        """One `accounting.Threshold` term: the two mechanisms, and the failure probability as
        delta."""
        moves = accounting.DiscreteLaplace(self.distance_scale) + accounting.DiscreteLaplace(
            self.value_scale, _part(bounded).bound
        )
        return PrivacyLoss.of(Threshold(moves, self.failure_probability), unit=bounded.unit)

    def sample(self, value: Proposed, bits: Bits) -> int | None:
        """The integer with noise, or ``None``; both noises are drawn in either case."""
        ((distance, integer),) = value.values()
        noisy_distance = distance + DiscreteLaplaceLaw(self.distance_scale).draw(bits)
        noisy = integer + DiscreteLaplaceLaw(self.value_scale).draw(bits)
        return noisy if noisy_distance >= self.threshold else None

    def error(self, confidence: Number) -> int:
        """The smallest whole q with the integer's noise in [-q, q] at this confidence. The noise of
        the test is independent of it."""
        return DiscreteLaplace(self.value_scale).error(confidence)

    @property
    def failure_probability(self) -> Fraction:
        """The probability, rounded up to 12 digits, that a table at distance 0 passes."""
        return failure_probability(DiscreteLaplaceLaw(self.distance_scale), self.threshold, keys=1)


def _least_threshold(scale: Fraction, delta: Fraction) -> int:
    law = DiscreteLaplaceLaw(scale)
    return least_missing(lambda threshold: failure_probability(law, threshold, keys=1), delta=delta)


def _part(bounded: Bounded[Proposed]) -> ProposedPart:
    parts: tuple[object, ...] = stated(bounded).parts
    if len(parts) == 1 and isinstance(parts[0], ProposedPart):
        return parts[0]
    raise InvalidArgument(f"{bounded.name!r} has no proposed bound: state it by proposed(...)")
