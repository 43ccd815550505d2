"""The sparse vector technique: which numbers are above a threshold, paid for the hits only."""

from collections.abc import Callable
from dataclasses import KW_ONLY
from fractions import Fraction
from typing import Annotated

from discreet import _checks, accounting
from discreet._exact import Number, decimal_up, shown
from discreet._fields import Positive, PositiveCount, field, frozen
from discreet._unit import Change, Unit
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument, Refused
from discreet.mechanisms._accuracy import most_noise
from discreet.mechanisms._additive import integers
from discreet.mechanisms._bounded import Bounded, change_of
from discreet.mechanisms.selection._gaps import smallest_gap
from discreet.mechanisms.selection._races import race_chance
from discreet.mechanisms.selection._scores import Moves, MovesField, checked
from discreet.noise import Bits, DiscreteLaplaceLaw

_DIGITS = 9
_MOST = 1 << 53


def whole(threshold: int) -> int:
    """The threshold, if it is an integer; it may be negative."""
    exact = _checks.finite(threshold=threshold)
    if exact.denominator != 1:
        raise InvalidArgument(f"threshold = {shown(exact)}: give a whole number")
    return int(exact)


def _modest(**named: object) -> int:
    """A whole number above 0 that float64 holds."""
    if (found := _checks.positive_count(**named)) > _MOST:
        raise InvalidArgument(f"{next(iter(named))}: give at most 2^53")
    return found


@frozen
class SparseVector:
    """Answers for each number whether it is above a threshold, until ``hits`` numbers were above.
    With one hit this is AboveThreshold.

    The threshold gets discrete Laplace noise of ``threshold_scale`` once, each number fresh noise
    of ``query_scale``. The answer is "above" if the noisy number is at least the noisy threshold.
    Numbers below cost nothing more.

    Guarantee: epsilon-DP for the whole session with epsilon = s / threshold_scale +
    2 hits s / query_scale, for numbers of at most the ``sensitivity`` s. With `Moves.TOGETHER`, if
    no number falls when a unit comes, the factor 2 becomes 1. The guarantee covers both relations,
    questions that depend on earlier answers, and other mechanisms in between (Lyu 2022; Haney et
    al. 2023). The noise is exact. The running time is not covered. Lyu, Su and Li (2017), Algorithm
    7; the paper also shows which variants are not private.

    >>> from discreet import Ledger, Limit
    >>> from discreet.mechanisms import session
    >>> unit = Unit("patient_id")
    >>> ledger = Ledger.in_memory(unit=unit, limit=Limit(epsilon=1))
    >>> alarm = SparseVector.for_epsilon(1, threshold=50)
    >>> alarm.error(0.95, questions=30)
    20
    >>> with session(alarm, ledger, unit=unit, name="patients a day") as opened:
    ...     for day in (3, 5, 90):
    ...         patients = Bounded(lambda: day, sensitivity=1, unit=unit, name="patients")
    ...         if opened.ask(patients):
    ...             break
    >>> day
    90
    """

    threshold: Annotated[int, whole] = field(named=False)
    _: KW_ONLY
    threshold_scale: Positive  # in the units of the numbers, as the other one
    query_scale: Positive
    hits: Annotated[int, _modest] = 1
    sensitivity: PositiveCount = 1
    moves: MovesField = field(default=Moves.ANYHOW, brief=True)

    @staticmethod
    def for_epsilon(
        epsilon: Number,
        threshold: int,
        *,
        hits: int = 1,
        sensitivity: int = 1,
        moves: Moves = Moves.ANYHOW,
    ) -> "SparseVector":
        """The mechanism whose session costs exactly epsilon, shared between threshold and answers
        for the least variance of their difference (Lyu, Su and Li 2017)."""
        move = _checks.positive_count(sensitivity=sensitivity)
        times = _times(hits, moves)
        own = _checks.positive(epsilon=epsilon) / (1 + times * _ratio(times))
        return SparseVector(
            threshold,
            threshold_scale=move / own,
            query_scale=move / (own * _ratio(times)),
            hits=hits,
            sensitivity=move,
            moves=moves,
        )

    @staticmethod
    def for_error(
        error: Number,
        confidence: Number,
        threshold: int,
        *,
        questions: int = 1,
        hits: int = 1,
        sensitivity: int = 1,
        moves: Moves = Moves.ANYHOW,
    ) -> "SparseVector":
        """The mechanism with the most noise whose error for this number of questions is at most
        ``error`` at ``confidence``, shared as by `for_epsilon`."""
        times = _times(hits, moves)

        def make(scale: Fraction) -> SparseVector:
            return SparseVector(
                threshold,
                threshold_scale=scale * _ratio(times),
                query_scale=scale,
                hits=hits,
                sensitivity=sensitivity,
                moves=moves,
            )

        return make(
            most_noise(
                lambda scale: make(scale).error(confidence, questions=questions), error, confidence
            )
        )

    def privacy_loss(self, unit: Unit) -> PrivacyLoss:
        """One `accounting.SparseVector`; raises for `Moves.TOGETHER` with a replaced unit."""
        is_monotone = self.moves is Moves.TOGETHER
        if change_of(unit) is not Change.ADD_REMOVE and is_monotone:
            raise Refused(
                f"moves = {self.moves}: numbers rise or fall together when a unit comes or goes; "
                f"for {unit} some may rise while others fall, use Moves.ANYHOW"
            )
        term = accounting.SparseVector(
            self.threshold_scale,
            self.query_scale,
            self.hits,
            self.sensitivity,
            monotone=is_monotone,
        )
        return PrivacyLoss.of(term, unit=unit)

    def check(self, bounded: Bounded[int]) -> None:
        """Raise unless it is one integer, of at most the sensitivity in the privacy loss."""
        part = integers(bounded)
        if part.shape != () or part.sensitivity.linf > self.sensitivity:
            raise InvalidArgument(
                f"{bounded.name!r} has shape {part.shape} and sensitivity {part.sensitivity.linf}: "
                f"ask for one integer of sensitivity {self.sensitivity} at most"
            )

    def begin(self, bits: Bits) -> Callable[[int], tuple[bool, bool]]:
        """A function that takes each number in turn, and gives whether it is above, and whether
        another may follow."""
        return finding(self, bits)

    def error(self, confidence: Number, *, questions: int = 1) -> int:
        """The smallest whole q, up to some hundredths, such that at this confidence the first
        ``questions`` answers are right for all numbers more than q from the threshold.

        In the worst case all numbers lie q + 1 from the threshold, half of them above it (at most
        ``hits``). The product of the probabilities is log-convex and symmetric in the number above,
        so its mean is least in the middle.
        """
        many = _modest(questions=questions)
        over = min(self.hits, many // 2)
        chance = race_chance(
            self.threshold_scale, self.query_scale, confidence, under=many - over, over=over
        )
        return smallest_gap(chance, confidence)


def finding(mechanism: SparseVector, bits: Bits) -> Callable[[int], tuple[bool, bool]]:
    """The answering function of a session. Its secret state is the noisy threshold and the number
    of hits left."""
    line = mechanism.threshold + DiscreteLaplaceLaw(mechanism.threshold_scale).draw(bits)
    law, left = DiscreteLaplaceLaw(mechanism.query_scale), mechanism.hits

    def answer(value: int) -> tuple[bool, bool]:
        nonlocal left
        is_above = value + law.draw(bits) >= line
        left -= is_above
        return is_above, left > 0

    return answer


def _times(hits: int, moves: Moves) -> int:
    """The number of sensitivities that the answers above cost together."""
    times = _modest(hits=hits)
    return times if checked(moves) is Moves.TOGETHER else 2 * times


def _ratio(times: int) -> Fraction:
    """The ratio of the threshold's scale to the query's scale with the least variance:
    times^(-1/3)."""
    return decimal_up(Fraction(times ** (-1 / 3)), _DIGITS)
