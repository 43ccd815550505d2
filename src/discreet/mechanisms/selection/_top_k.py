"""The k best candidates at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet import _checks
from discreet._exact import Number
from discreet.accounting import BoundedRange, PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.mechanisms._accuracy import most_noise
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._fixed_point import IntegerArray
from discreet.mechanisms._parts import Key
from discreet.mechanisms.selection._gaps import smallest_gap, top_chance
from discreet.mechanisms.selection._pieces import pieces_of
from discreet.mechanisms.selection._scores import (
    Candidates,
    Moves,
    checked,
    public,
    spread,
    written,
)
from discreet.noise import Bits


@dataclass(frozen=True, slots=True, init=False, repr=False)
class TopK:
    """Chooses ``k`` candidates, the best first: those with the largest scores after Gumbel noise
    of scale 1 / rate on each, in that order.

    That is one draw of noise with the law of k exponential mechanisms, each among the candidates
    that are left (Durfee and Rogers 2019), and it is priced and drawn so. The
    computation gives one integer for each candidate, in their order; the candidates are public.

    Guarantee: that of k choices of `ExponentialMechanism` with the same rate: pure epsilon adds
    up to k * rate * D, and with a delta several choices cost far less than that. The running time
    is not covered.

    >>> from discreet import Unit
    >>> votes = Bounded(
    ...     lambda: np.arange(50), sensitivity=1, unit=Unit("id"), name="votes", shape=(50,)
    ... )
    >>> mechanism = TopK.for_epsilon(1, votes, range(50), k=5)
    >>> mechanism, mechanism.error(0.95)
    (TopK(range(0, 50), k=5, rate=0.2), 37)
    >>> mechanism.privacy_loss(votes)
    5 * accounting.BoundedRange(eta=0.2)
    """

    candidates: Candidates
    k: int
    rate: Fraction
    moves: Moves

    def __init__(
        self,
        candidates: Sequence[Key],
        k: int,
        rate: Number,
        *,
        moves: Moves = Moves.ANYHOW,
    ) -> None:
        """Keep the rate at its exact value; k is less than there are candidates, since the order
        of all but one tells the last."""
        names, many = public(candidates), _checks.positive_count(k=k)
        if many >= len(names):
            raise InvalidArgument(
                f"k = {many}: give at most {len(names) - 1}, fewer than there are candidates"
            )
        object.__setattr__(self, "candidates", names)
        object.__setattr__(self, "k", many)
        object.__setattr__(self, "rate", _checks.positive(rate=rate))
        object.__setattr__(self, "moves", checked(moves))

    @staticmethod
    def for_epsilon(
        epsilon: Number,
        bounded: Bounded[IntegerArray],
        candidates: Sequence[Key],
        *,
        k: int,
        moves: Moves = Moves.ANYHOW,
    ) -> "TopK":
        """The mechanism whose k choices from this computation's scores cost exactly epsilon, in
        pure differential privacy."""
        names = public(candidates)
        apart = spread(bounded, (len(names),), checked(moves)) * _checks.positive_count(k=k)
        return TopK(names, k, _checks.positive(epsilon=epsilon) / apart, moves=moves)

    @staticmethod
    def for_error(
        error: Number,
        confidence: Number,
        candidates: Sequence[Key],
        *,
        k: int,
        moves: Moves = Moves.ANYHOW,
    ) -> "TopK":
        """The mechanism with the most noise whose error at this confidence is at most this."""
        names = public(candidates)
        scale = most_noise(
            lambda scale: TopK(names, k, 1 / scale).error(confidence), error, confidence
        )
        return TopK(names, k, 1 / scale, moves=moves)

    def privacy_loss(self, bounded: Bounded[IntegerArray]) -> PrivacyLoss:
        """k times one `accounting.BoundedRange`; raises unless there is a score for each
        candidate."""
        apart = spread(bounded, (len(self.candidates),), self.moves)
        return PrivacyLoss.of(BoundedRange(self.rate * apart), unit=bounded.unit) * self.k

    def sample(self, value: IntegerArray, bits: Bits) -> tuple[Key, ...]:
        """The chosen candidates, the first choice first."""
        left = pieces_of(np.ones(len(self.candidates), np.int64), value, self.rate)
        names, chosen = np.arange(len(self.candidates)), list[Key]()
        for _ in range(self.k):
            place = left.choose(bits)
            chosen.append(self.candidates[int(names[place])])
            left, names = left.without(place), np.delete(names, place)
        return tuple(chosen)

    def error(self, confidence: Number) -> int:
        """The smallest whole q with the scores of all the chosen at most q below the k-th largest
        at this confidence, whatever the scores: if the k best are equal, and all others are and
        fall behind by q + 1, no smaller one will do."""
        others = len(self.candidates) - self.k
        return smallest_gap(top_chance(self.rate, self.k, others), confidence)

    def __repr__(self) -> str:
        """The mechanism as it is written in code."""
        numbers: dict[str, Number] = {"k": self.k, "rate": self.rate}
        return written("TopK", self.candidates, numbers, self.moves)
