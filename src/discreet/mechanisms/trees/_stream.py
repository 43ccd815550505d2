"""A running total: after each step, the sum of all numbers up to now."""

from collections.abc import Callable
from dataclasses import KW_ONLY
from fractions import Fraction
from typing import Annotated, ClassVar

from discreet import _checks
from discreet._exact import Number
from discreet._fields import PositiveCount, frozen
from discreet._ownership import Owned
from discreet._unit import Unit
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.mechanisms._accuracy import at_epsilon, at_error
from discreet.mechanisms._additive import integers
from discreet.mechanisms._bounded import Bounded, tables_of
from discreet.mechanisms._discrete_laplace import DiscreteLaplace
from discreet.mechanisms._sensitivity import Sensitivity
from discreet.mechanisms.trees._noise import TreeNoise, checked_noise, summed_loss
from discreet.noise import Bits, NoiseLaw
from discreet.noise._sums import sum_half_width


@frozen
class StreamCounter:
    """Answers each step's number with the noisy total up to now, for at most ``steps`` steps.

    Each total is the sum of at most log2(steps) + 1 noisy sums over runs of 1, 2, 4, ... steps,
    and each step is in at most this number of runs.

    Guarantee: all totals together cost the sum of the privacy losses of all lengths of runs, even
    if later numbers depend on earlier totals. A unit moves the numbers of at most ``per_unit``
    steps, each by at most ``most``; a replaced unit moves twice as many. The caller asserts
    ``per_unit``. The running time is not covered. Chan, Shi and Song (2011); Dwork, Naor, Pitassi
    and Rothblum (2010).

    >>> unit = Unit("patient_id")
    >>> counter = StreamCounter.for_epsilon(1, unit, steps=365)
    >>> counter.noise, counter.error(0.95), counter.privacy_loss(unit).epsilon()
    (DiscreteLaplace(scale=9), 71, 1.0)
    """

    noise: Annotated[TreeNoise, checked_noise]  # of each sum
    _: KW_ONLY
    steps: PositiveCount
    per_unit: PositiveCount = 1
    most: PositiveCount = 1

    def __post_init__(self) -> None:
        if self.steps >= 1 << 63:
            raise InvalidArgument("steps: give fewer than 2^63")

    @staticmethod
    def for_epsilon(
        epsilon: Number, unit: Unit, *, steps: int, per_unit: int = 1, most: int = 1
    ) -> "StreamCounter":
        """The counter with discrete Laplace noise that costs this unit exactly epsilon."""

        def make(scale: Fraction) -> StreamCounter:
            noise = DiscreteLaplace(scale)
            return StreamCounter(noise, steps=steps, per_unit=per_unit, most=most)

        return at_epsilon(make, epsilon, unit)

    @staticmethod
    def for_error(
        error: Number, confidence: Number, *, steps: int, per_unit: int = 1, most: int = 1
    ) -> "StreamCounter":
        """The counter with the most discrete Laplace noise whose error at ``confidence`` is at
        most ``error`` after each step."""

        def make(scale: Fraction) -> StreamCounter:
            noise = DiscreteLaplace(scale)
            return StreamCounter(noise, steps=steps, per_unit=per_unit, most=most)

        return at_error(make, error, confidence)

    def privacy_loss(self, unit: Unit) -> PrivacyLoss:
        """The sum of the privacy losses of all lengths of runs."""
        return summed_loss(self.noise, self._levels(unit), unit)

    def check(self, bounded: Bounded[int]) -> None:
        """Raise unless the step gives one integer that a unit moves by at most ``most``."""
        part = integers(bounded)
        if part.shape != () or part.sensitivity.linf > self.most:
            raise InvalidArgument(
                f"{bounded.name!r} has the shape {part.shape} and sensitivity "
                f"{part.sensitivity.linf}: give one integer that moves by at most {self.most}"
            )

    def begin(self, bits: Bits) -> Callable[[int], tuple[int, bool]]:
        """A function that turns each step's number into the noisy total up to now."""
        return _Totals(self.noise.law, self.steps, bits).add

    def error(self, confidence: Number) -> int:
        """A whole q with the noise of each total in [-q, q] at this confidence, each total by
        itself, for the step with the most sums; hardly above the smallest q."""
        return self._error(self._most_sums(), confidence)

    def error_after(self, step: int, confidence: Number) -> int:
        """`error` for the total after this step, counted from 1."""
        if not 1 <= _checks.count(step=step) <= self.steps:
            raise InvalidArgument(f"step = {step}: give 1 up to {self.steps}")
        return self._error(step.bit_count(), confidence)

    def _error(self, sums: int, confidence: Number) -> int:
        return sum_half_width(self.noise.law, sums, _checks.probability(confidence=confidence))

    def _most_sums(self) -> int:
        """The largest number of binary ones in a number up to ``steps``."""
        length = self.steps.bit_length()
        return max(self.steps.bit_count(), length - 1)

    def _levels(self, unit: Unit) -> list[Sensitivity]:
        """The sensitivities of the sums over runs of 1, 2, 4, ... steps."""
        places = min(tables_of(unit) * self.per_unit, self.steps)
        return [
            Sensitivity(l0=places, l1=places * self.most, linf=min(places, 1 << level) * self.most)
            for level in range(self.steps.bit_length())
        ]


class _Totals(Owned):
    """The sums of open runs, with and without noise; index i holds the run of 2^i steps."""

    __slots__ = ("_bits", "_exact", "_law", "_noisy", "_steps", "_taken")

    described: ClassVar[str] = "the counter of a stream"

    def __init__(self, law: NoiseLaw, steps: int, bits: Bits) -> None:
        self._law, self._steps, self._bits, self._taken = law, steps, bits, 0
        self._exact = [0] * steps.bit_length()
        self._noisy = [0] * steps.bit_length()

    def add(self, value: int) -> tuple[int, bool]:
        """Merge the runs that end at this step into one noisy sum, and add all sums."""
        self.check_process()
        self._taken += 1
        ends = (self._taken & -self._taken).bit_length() - 1
        run = value + sum(self._exact[:ends])
        self._exact[: ends + 1] = [0] * ends + [run]
        self._noisy[: ends + 1] = [0] * ends + [run + self._law.draw(self._bits)]
        return sum(self._noisy), self._taken < self._steps
