"""The k best candidates at once."""

from collections.abc import Sequence
from dataclasses import KW_ONLY
from enum import Enum
from fractions import Fraction
from typing import Annotated

import numpy as np

from discreet._exact import Number
from discreet._fields import Positive, PositiveCount, field, frozen
from discreet.accounting import BoundedRange, DiscreteLaplace, PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.mechanisms._accuracy import at_epsilon, at_error
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._fixed_point import IntegerArray
from discreet.mechanisms._parts import Key
from discreet.mechanisms.selection._gaps import smallest_gap, top_chance
from discreet.mechanisms.selection._races import race_chance
from discreet.mechanisms.selection._scores import (
    CandidatesField,
    Moves,
    MovesField,
    candidates_as_code,
    public,
    score_range,
    scores_part,
    with_laplace,
)
from discreet.noise import Bits
from discreet.noise._pieces import pieces_of

_CONFIDENCE = Fraction(95, 100)
_LEAST_RATE = Fraction(1, 10**200)


class TopKNoise(Enum):
    """The law of the noise on the scores, which decides the privacy loss of the k best."""

    GUMBEL = "gumbel"  # k times the privacy loss of one choice
    LAPLACE = "laplace"  # the privacy loss of all scores by their L1 sensitivity, for any k


def _checked_noise(noise: TopKNoise) -> TopKNoise:
    if not isinstance(noise, TopKNoise):
        raise InvalidArgument(f"noise = {noise!r}: give TopKNoise.GUMBEL or TopKNoise.LAPLACE")
    return noise


@frozen
class TopK:
    """Chooses ``k`` candidates, the best first: those with the largest scores after noise of
    scale 1 / rate on each score, in that order.

    The computation gives one integer for each candidate, in their order; the candidates are
    public. Only the names come out, without their noisy scores.

    Guarantee with `TopKNoise.GUMBEL`: that of k choices of `ExponentialMechanism` with the same
    rate, each among the candidates that are left, which has the same law (Durfee and Rogers 2019).
    Pure epsilon is k * rate * D, where D is the distance by which a unit can move two scores apart;
    with a delta, several choices cost far less than k times one.

    Guarantee with `TopKNoise.LAPLACE`: that of `DiscreteLaplace` on all scores, since the choice is
    post-processing of the noisy scores: pure epsilon is rate * (L1 sensitivity), for any k. It
    costs less if a unit moves few scores, as in a histogram in which it counts once.

    The running time is not covered. `docs/proofs/mechanisms.md` has the proof.

    >>> from discreet import Unit
    >>> votes = Bounded(
    ...     lambda: np.arange(50), sensitivity=1, unit=Unit("id"), name="votes", shape=(50,)
    ... )
    >>> mechanism = TopK.for_epsilon(1, votes, range(50), k=5)
    >>> mechanism, mechanism.error(0.95)
    (TopK(range(0, 50), k=5, rate=1, noise=TopKNoise.LAPLACE), 8)
    >>> print(mechanism.privacy_loss(votes))
    accounting.DiscreteLaplace(scale=1, sensitivity=1)
    >>> print(TopK(range(50), k=5, rate=0.2).privacy_loss(votes))
    5 * accounting.BoundedRange(eta=0.2)
    """

    candidates: CandidatesField = field(named=False, text=candidates_as_code)
    k: PositiveCount
    rate: Positive  # for one unit of score
    _: KW_ONLY
    moves: MovesField = field(default=Moves.ANYHOW, brief=True)
    noise: Annotated[TopKNoise, _checked_noise] = field(default=TopKNoise.GUMBEL, brief=True)

    def __post_init__(self) -> None:
        if self.k >= len(self.candidates):
            raise InvalidArgument(
                f"k = {self.k}: give at most {len(self.candidates) - 1}, fewer than there are "
                "candidates"
            )

    @staticmethod
    def for_epsilon(
        epsilon: Number,
        bounded: Bounded[IntegerArray],
        candidates: Sequence[Key],
        *,
        k: int,
        moves: Moves = Moves.ANYHOW,
        noise: TopKNoise | None = None,
    ) -> "TopK":
        """The mechanism whose k choices from this computation's scores cost exactly this pure
        epsilon. Without ``noise`` it has the noise with the smaller error at a confidence of 95 %,
        and Gumbel noise if both errors are equal."""

        def make(law: TopKNoise) -> TopK:
            return at_epsilon(
                lambda scale: TopK(names, k, 1 / scale, moves=moves, noise=law), epsilon, bounded
            )

        names = public(candidates=candidates)
        if noise is not None:
            return make(noise)
        gumbel, laplace = make(TopKNoise.GUMBEL), make(TopKNoise.LAPLACE)
        return laplace if _is_closer(laplace, gumbel) else gumbel

    @staticmethod
    def for_error(
        error: Number,
        confidence: Number,
        candidates: Sequence[Key],
        *,
        k: int,
        moves: Moves = Moves.ANYHOW,
        noise: TopKNoise = TopKNoise.GUMBEL,
    ) -> "TopK":
        """The mechanism with the most noise of this law whose error at ``confidence`` is at most
        ``error``."""
        names = public(candidates=candidates)
        return at_error(
            lambda scale: TopK(names, k, 1 / scale, moves=moves, noise=noise), error, confidence
        )

    def privacy_loss(self, bounded: Bounded[IntegerArray]) -> PrivacyLoss:
        """With Gumbel noise k times one `accounting.BoundedRange`, with Laplace noise one
        `accounting.DiscreteLaplace`; raises unless there is a score for each candidate."""
        apart = score_range(bounded, (len(self.candidates),), self.moves)
        if self.noise is TopKNoise.GUMBEL:
            return PrivacyLoss.of(BoundedRange(self.rate * apart), unit=bounded.unit) * self.k
        moved = scores_part(bounded, (len(self.candidates),)).sensitivity.l1
        term = DiscreteLaplace(1 / self.rate, max(moved, 1))
        return PrivacyLoss.of(term, unit=bounded.unit)

    def sample(self, value: IntegerArray, bits: Bits) -> tuple[Key, ...]:
        """The chosen candidates, the first choice first; of equal noisy scores the first."""
        if self.noise is TopKNoise.LAPLACE:
            noisy = with_laplace(value, 1 / self.rate, bits)
            best = np.argsort(-noisy, kind="stable")[: self.k]
            return tuple(self.candidates[int(place)] for place in best)
        left = pieces_of(np.ones(len(self.candidates), np.int64), value, self.rate)
        names, chosen = np.arange(len(self.candidates)), list[Key]()
        for _ in range(self.k):
            place = left.choose(bits)
            chosen.append(self.candidates[int(names[place])])
            left, names = left.without(place), np.delete(names, place)
        return tuple(chosen)

    def error(self, confidence: Number) -> int:
        """The smallest whole q with all chosen scores at most q below the k-th largest at this
        confidence, for any scores (with Laplace noise, to some thousandths). It is attained if the
        k best scores are equal, and all others are equal."""
        others = len(self.candidates) - self.k
        if self.noise is TopKNoise.GUMBEL:
            return smallest_gap(top_chance(self.rate, self.k, others), confidence)
        scale = 1 / self.rate
        overtaken = race_chance(scale, scale, confidence, under=others, lowest_of=self.k)
        return smallest_gap(overtaken, confidence)


def _is_closer(laplace: TopK, gumbel: TopK) -> bool:
    """Whether Laplace noise has the smaller error. Only noise of a smaller scale can have it. If no
    error is forecast, the scale decides."""
    if laplace.rate <= gumbel.rate or gumbel.rate < _LEAST_RATE:
        return laplace.rate > gumbel.rate
    return laplace.error(_CONFIDENCE) < gumbel.error(_CONFIDENCE)
