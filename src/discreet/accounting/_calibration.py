"""Calibration: the least noise, the most steps, the highest rate within a target.

A family says what each value of one number costs, such as ``lambda sigma: 1000 * Gaussian(sigma)``.
Its cost must only rise or only fall with the number; which of the two is found from its values.
A value is returned only if its own cost was computed and fits, so that a guess never decides.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count, pairwise
from typing import Generic, TypeVar

from discreet import _checks, _html
from discreet._exact import Number, decimal_down, decimal_up, float_down, shown
from discreet.accounting._loss import PrivacyLoss, Term
from discreet.errors import InvalidArgument, NoBound

_DECADES = (0, 1, -1, 2, -2, 4, -4, 8, -8, 16, -16, 32, -32)
_DECADES_OF_COUNTS = range(17)  # no larger steps: distributions of more terms take longer
_DIGITS = 6
_TOLERANCE = 1e-3
_TURNS_PER_HALVING = 8  # each such turn takes the middle, so that the search always ends

Value = TypeVar("Value", Fraction, int)


@dataclass(frozen=True, slots=True)
class Calibration(Generic[Value]):
    """A number that was found, and its cost: ``epsilon``, rounded up, at ``delta``.

    ``is_least`` says which numbers don't fit: smaller ones (as of noise, where more costs less), or
    else larger ones.
    """

    value: Value
    loss: PrivacyLoss
    epsilon: float
    delta: Fraction
    is_least: bool

    _repr_html_ = _html.shown


def calibrate(
    family: Callable[[Fraction], PrivacyLoss | Term],
    *,
    epsilon: Number,
    delta: Number = 0,
    name: str = "value",
) -> Calibration[Fraction]:
    """The least noise, the highest rate, or another number that fits within (epsilon, delta).

    The number found has at most six digits, and its cost is at most epsilon and at most 0.1 %
    below it; it is further below only where the cost jumps over epsilon, or where the family
    allows no more: it may refuse numbers by `InvalidArgument` or `NoBound`. Raises `NoBound` if
    no number fits, or all do, and `InvalidArgument` if the cost is found to rise and fall.
    ``name`` is what errors call the number.

    >>> from discreet.accounting import Gaussian, Pure, calibrate
    >>> found = calibrate(lambda sigma: 1000 * Gaussian(sigma), epsilon=3, delta=1e-5)
    >>> round(float(found.value)), found.is_least
    (44, True)
    >>> calibrate(lambda each: 10 * Pure(each), epsilon=3).loss
    10 * accounting.Pure(epsilon=0.3)
    """
    search = _Search(family, *_target(epsilon, delta), name, is_whole=False)
    probe, is_least = search.closest(_DECADES)
    return Calibration(probe.value, probe.loss, probe.epsilon, search.delta, is_least)


def calibrate_count(
    family: Callable[[int], PrivacyLoss | Term],
    *,
    epsilon: Number,
    delta: Number = 0,
    name: str = "count",
) -> Calibration[int]:
    """The most steps, or another whole number from 1 on that fits within (epsilon, delta).

    The next one does not fit, or the family does not allow it. Otherwise as `calibrate`.

    >>> from discreet.accounting import Gaussian, calibrate_count
    >>> calibrate_count(lambda steps: steps * Gaussian(8), epsilon=3, delta=1e-5).value
    33
    """
    search = _Search(lambda n: family(int(n)), *_target(epsilon, delta), name, is_whole=True)
    probe, is_least = search.closest(_DECADES_OF_COUNTS)
    return Calibration(int(probe.value), probe.loss, probe.epsilon, search.delta, is_least)


def _target(epsilon: Number, delta: Number) -> tuple[float, Fraction]:
    return float_down(_checks.positive(epsilon=epsilon)), _checks.delta(delta=delta)


@dataclass(frozen=True, slots=True)
class _Probe:
    """The cost of one value, or the ``refusal`` of a family that doesn't allow it."""

    value: Fraction
    loss: PrivacyLoss
    epsilon: float
    fits: bool
    refusal: InvalidArgument | NoBound | None = None


@dataclass(frozen=True, slots=True)
class _Search:
    """A search: a family of costs and the limit on them."""

    family: Callable[[Fraction], PrivacyLoss | Term]
    epsilon: float
    delta: Fraction
    name: str
    is_whole: bool

    def closest(self, decades: Sequence[int]) -> tuple[_Probe, bool]:
        """The value nearest to the target that fits, and whether it is the least such value."""
        # 1. Bracket the limit.
        probes, rises = self._surroundings(decades)
        ends = list(self._ends(probes, rises=rises))  # one that fits, and one that doesn't

        # 2. Interpolate by the Illinois rule: halve the weight of an end that did not move.
        weights, last_side = [1.0, 1.0], -1
        for turn in count(1):
            share = self._share(ends, weights) if turn % _TURNS_PER_HALVING else None
            value = None if self._is_enough(ends[0]) else self._between(ends, share)
            if value is None:
                break
            probes.append(probe := self._look(value))
            if probe.refusal and not (ends[0].refusal or ends[1].refusal):
                raise probe.refusal
            side = 0 if probe.fits or (probe.refusal and ends[0].refusal) else 1
            if side == last_side:
                weights[1 - side] /= 2
            ends[side], weights[side], last_side = probe, 1.0, side

        # 3. Check that a value fits, and that the costs only rise or only fall.
        if ends[0].refusal:
            raise self._none_fits(ends[1])
        self._check_order(probes, rises=rises)
        return ends[0], not rises

    def _look(self, value: Fraction) -> _Probe:
        try:
            cost = self.family(value)
            if not isinstance(cost, PrivacyLoss | Term):
                raise InvalidArgument(
                    f"the family of {self.name} gave {cost!r}, which is no privacy loss"
                )
            loss = PrivacyLoss() + cost
            epsilon = loss.epsilon(self.delta)
        except (InvalidArgument, NoBound) as refusal:
            return _Probe(value, PrivacyLoss(), math.inf, False, refusal)
        return _Probe(value, loss, epsilon, epsilon <= self.epsilon)

    def _surroundings(self, decades: Sequence[int]) -> tuple[list[_Probe], bool]:
        """Tries powers of ten until one fits and one doesn't, or further ones can't help. Also
        returns whether the cost rises with the value."""
        probes: list[_Probe] = []
        rises: bool | None = None
        for decade in decades:
            allowed = sorted((p for p in probes if not p.refusal), key=lambda p: p.value)
            if len({probe.fits for probe in allowed}) == 2:
                break
            if rises is None or (decade > 0) == (rises == allowed[0].fits):
                probes.append(self._look(Fraction(10) ** decade))
                rises = _rises(probes)
        if all(probe.refusal for probe in probes):
            raise probes[0].refusal or AssertionError
        if rises is None:
            costs = next(probe.epsilon for probe in probes if not probe.refusal)
            raise NoBound(
                f"{self.name}: each value that was tried costs {self._cost_text(costs)}, so that "
                "none is the limit" + _hint(costs)
            )
        return probes, rises

    def _ends(self, probes: list[_Probe], *, rises: bool) -> tuple[_Probe, _Probe]:
        """Narrows to two neighbouring values with the limit between them. One of them may be
        refused; then the limit may be the family's own."""
        self._check_order(probes, rises=rises)
        ordered = sorted(probes, key=lambda probe: probe.value, reverse=not rises)
        fitting = [n for n, probe in enumerate(ordered) if probe.fits]
        others = [n for n, probe in enumerate(ordered) if not (probe.fits or probe.refusal)]
        first = max(fitting) if fitting else min(others) - 1
        second = min(others) if fitting and others else first + 1
        if first < 0:
            raise self._none_fits(ordered[second])
        if second == len(ordered):
            raise NoBound(
                f"{self.name}: every value that was tried fits, up to {shown(ordered[-1].value)}"
            )
        return ordered[first], ordered[second]

    def _is_enough(self, inside: _Probe) -> bool:
        if self.is_whole or inside.refusal:
            return False
        return inside.epsilon >= self.epsilon * (1 - _TOLERANCE)

    def _share(self, ends: Sequence[_Probe], weights: Sequence[float]) -> float | None:
        """The expected place of the limit between inside (0) and outside (1), if the cost were a
        power of the value; `None` if the costs don't show it. Just above the target, the aim is
        slightly below it."""
        inside, outside = ends[0].epsilon, ends[1].epsilon
        if not (0 < inside <= outside < math.inf):
            return None
        is_near = not self.is_whole and outside <= self.epsilon * (1 + _TOLERANCE)
        aim = math.log(self.epsilon * (1 - _TOLERANCE / 2) if is_near else self.epsilon)
        below, above = aim - math.log(inside), math.log(outside) - aim
        if not is_near:
            below, above = below * weights[0], above * weights[1]
        return below / (below + above) if below >= 0 < above else None

    def _between(self, ends: Sequence[_Probe], share: float | None) -> Fraction | None:
        """A value strictly between, at that share of the way or halfway; `None` if there is
        none."""
        inside, outside = ends[0].value, ends[1].value
        low, high = min(inside, outside), max(inside, outside)
        if share is None and high < 2 * low:
            guess = (low + high) / 2
        else:
            way = float(outside / inside) ** (0.5 if share is None else share)
            guess = inside * Fraction(way)
        if self.is_whole:
            whole = min(max(Fraction(round(guess)), low + 1), high - 1)
            return whole if low < whole < high else None
        near = sorted(
            (decimal_down(guess, _DIGITS), decimal_up(guess, _DIGITS)),
            key=lambda value: abs(value - guess),
        )
        return next((value for value in near if low < value < high), None)

    def _check_order(self, probes: list[_Probe], *, rises: bool) -> None:
        """Refuse costs that both rise and fall by more than their rounding errors."""
        allowed = [probe for probe in probes if not probe.refusal]
        ordered = sorted(allowed, key=lambda probe: probe.value, reverse=not rises)
        for one, other in pairwise(ordered):
            if one.epsilon > other.epsilon * (1 + _TOLERANCE):
                raise InvalidArgument(
                    f"{self.name}: the cost must only rise or only fall with it, and does not: "
                    f"{shown(one.value)} costs {self._cost_text(one.epsilon)}, and "
                    f"{shown(other.value)} costs {self._cost_text(other.epsilon)}"
                )

    def _none_fits(self, nearest: _Probe) -> NoBound:
        return NoBound(
            f"{self.name}: no value fits; even {shown(nearest.value)} costs "
            f"{self._cost_text(nearest.epsilon)}, and the limit is {self.epsilon:.6g}"
            + _hint(nearest.epsilon)
        )

    def _cost_text(self, epsilon: float) -> str:
        return f"epsilon = {epsilon:.6g} at delta = {float(self.delta):g}"


def _rises(probes: list[_Probe]) -> bool | None:
    """Whether the largest value costs more than the smallest; `None` if that is not known yet."""
    allowed = sorted((probe for probe in probes if not probe.refusal), key=lambda p: p.value)
    if not allowed:
        return None
    first, last = allowed[0].epsilon, allowed[-1].epsilon
    is_mixed = len({probe.fits for probe in allowed}) == 2
    if not is_mixed and math.isclose(first, last, rel_tol=_TOLERANCE):
        return None
    return first < last


def _hint(epsilon: float) -> str:
    return "; give a larger delta" if math.isinf(epsilon) else ""
