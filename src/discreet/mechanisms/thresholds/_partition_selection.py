"""Partition selection: private keys, each shown with the optimal probability for its count."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil

import numpy as np
from flint import arb

from discreet import _checks
from discreet._exact import Number, ball, precision, shown, upper_fraction
from discreet._fields import Positive, Probability, frozen
from discreet.accounting import Approximate, PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.mechanisms._accuracy import at_error
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._parts import Key
from discreet.mechanisms.selection._gaps import smallest_gap
from discreet.mechanisms.thresholds._keys import in_order, keys_part
from discreet.noise import Bits
from discreet.noise import _steps as noise_steps
from discreet.noise._steps import Edges, Stepped

_BITS = 128
_LARGEST = 1 << 62


@frozen
class PartitionSelection:
    """Shows each key independently, with the largest probability that (epsilon, delta)-DP allows
    for its number of units; only the keys, in order, without their counts.

    Guarantee: each key of a unit costs ``epsilon`` and ``delta``. A key without units is never
    shown, and a key of one unit is shown with probability delta. No mechanism that decides each key
    by its count shows any key more often. The guarantee covers both relations; a replaced unit pays
    for the keys of its old and its new rows. Counts must be numbers of units. The probabilities are
    exact. The running time is not covered. Desfontaines, Voss, Gipson and Mandayam (2022).

    >>> from discreet import Unit
    >>> towns = Bounded.keys(
    ...     lambda: {"Elsewhere": 9000, "Here": 2, "There": 700}, per_unit=1,
    ...     unit=Unit("person_id"), name="towns",
    ... )
    >>> mechanism = PartitionSelection.for_epsilon(1, 1e-6, towns)
    >>> mechanism, mechanism.error(0.95)
    (PartitionSelection(epsilon=1, delta=1e-06), 15)
    >>> from discreet.audit import SeededBits
    >>> mechanism.sample({"Elsewhere": 9000, "Here": 2, "There": 700}, SeededBits(1))
    ('Elsewhere', 'There')
    """

    epsilon: Positive  # of a single key, as delta
    delta: Probability

    @staticmethod
    def for_epsilon(
        epsilon: Number, delta: Number, bounded: Bounded[Mapping[Key, int]]
    ) -> "PartitionSelection":
        """The mechanism whose release of these keys is (epsilon, delta)-DP, both shared evenly
        among the keys that a unit can touch."""
        touched = _touched(bounded)
        share = _checks.positive(epsilon=epsilon) / touched
        return PartitionSelection(share, _checks.probability(delta=delta) / touched)

    @staticmethod
    def for_error(error: Number, confidence: Number, delta: Number) -> "PartitionSelection":
        """The mechanism with this delta for a key and the smallest epsilon whose error at this
        confidence is at most this, which is 1 or above."""
        wanted = _checks.finite(error=error)
        if wanted < 1:
            raise InvalidArgument(f"error = {shown(wanted)}: give 1 or above")
        return at_error(lambda scale: PartitionSelection(1 / scale, delta), wanted, confidence)

    def privacy_loss(self, bounded: Bounded[Mapping[Key, int]]) -> PrivacyLoss:
        """One `accounting.Approximate` for each key that a unit can touch; raises unless each
        unit counts once under a key."""
        each, term = _touched(bounded), Approximate(self.epsilon, self.delta)
        return PrivacyLoss.of(term, unit=bounded.unit) * each

    def sample(self, value: Mapping[Key, int], bits: Bits) -> tuple[Key, ...]:
        """The keys that are shown, in order; 100 000 take some tens of milliseconds."""
        keys, surely = in_order(value), self._surely()
        alike = [min(max(value[key], 0), surely) for key in keys]
        counts = np.array(alike, np.int64 if surely < _LARGEST else object)
        order = np.argsort(counts, kind="stable")
        starts = np.flatnonzero(np.diff(counts[order])) + 1
        is_shown = np.zeros(len(keys), dtype=bool)
        for places in np.split(order, starts):  # of keys with the same chance
            if places.size:
                is_shown[places] = self._law(alike[places[0]]).draws(bits, places.size)
        return tuple(itertools.compress(keys, is_shown.tolist()))

    def error(self, confidence: Number) -> int:
        """The smallest whole q such that a key with more than q units is shown at this confidence,
        each key by itself."""
        return smallest_gap(lambda count: 1 - self._law(count).probability(), confidence)

    def _law(self, count: int) -> "_ShowingLaw":
        return _ShowingLaw(self.epsilon, self.delta, count)

    def _surely(self) -> int:
        """A count, slightly more than needed, from which on a key is always shown. With each
        further unit, the probability to be left out falls by the factor e^epsilon and by delta."""
        with precision(_BITS):
            turn = _turn(self.epsilon, self.delta)
            steps = (1 + ball(self.epsilon).expm1() / ball(self.delta)).log() / ball(self.epsilon)
            return turn + ceil(upper_fraction(steps)) + 1


@dataclass(frozen=True, slots=True)
class _ShowingLaw(Stepped):
    """1 with the largest allowed probability for a key with ``count`` units, else 0.

    With p(0) = 0, it is p(n + 1) = min(e^epsilon p(n) + delta, 1 - e^-epsilon (1 - p(n) - delta),
    1): the first up to the turn, where p(n) passes (1 - delta) / (1 + e^epsilon).
    """

    epsilon: Fraction
    delta: Fraction
    count: int
    _made: list[Edges] = field(default_factory=list, repr=False, compare=False)

    @property
    def steps(self) -> int:
        """One threshold."""
        return 1

    @property
    def is_narrow(self) -> bool:
        """False: a guide would be cached under this law, and its count is private."""
        return False

    def threshold(self, _: int) -> Fraction | arb:
        """1 - p, or 1 for a key without units."""
        return 1 - self.probability() if self.count > 0 else Fraction(1)

    def probability(self) -> arb:
        """p(count), at the precision in force."""
        epsilon, delta = ball(self.epsilon), ball(self.delta)
        turn, grown = _turn(self.epsilon, self.delta), ball(self.epsilon).expm1()
        rising = delta * (min(self.count, turn) * epsilon).expm1() / grown
        if self.count <= turn:
            return rising
        left = (-(self.count - turn) * epsilon).exp()
        return ((1 - left) * (1 + delta / grown) + left * rising).min(arb(1))

    def edges(self) -> Edges:
        """The threshold to 64 bits."""
        if not self._made:
            self._made.append(noise_steps.edges(self))
        return self._made[0]


def _turn(epsilon: Fraction, delta: Fraction) -> int:
    """The last count for which p(n + 1) = e^epsilon p(n) + delta holds. The loop ends: e^epsilon is
    transcendental, so the logarithm is not an integer."""
    size = _BITS
    while True:
        with precision(size):
            grown = ball(epsilon).expm1()
            ratio = 1 + (1 - ball(delta)) * grown / (ball(delta) * (2 + grown))
            whole = (ratio.log() / ball(epsilon)).floor().unique_fmpz()
        if whole is not None:
            return 1 + int(whole)
        size *= 2


def _touched(bounded: Bounded[Mapping[Key, int]]) -> int:
    """The number of keys that a unit can change, by one count each."""
    sensitivity = keys_part(bounded).sensitivity
    if sensitivity.linf != 1:
        raise InvalidArgument(
            f"{bounded.name!r} has up to {sensitivity.linf} of a unit under one key: give counts "
            "of units, with most=1"
        )
    return sensitivity.l0
