"""The sparse vector technique."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from flint import arb

from discreet import _checks
from discreet._exact import Number
from discreet.accounting._loss import Term
from discreet.accounting._one_bit import randomized_response_renyi
from discreet.accounting.pld._dominating_pairs import Pair, Side, randomized_response
from discreet.errors import InvalidArgument, NoBound


@dataclass(frozen=True, slots=True, init=False, repr=False)
class SparseVector(Term):
    """Any number of questions told to be above or below a threshold, until ``hits`` of them were
    above (Lyu, Su and Li 2017, Algorithm 7).

    The threshold gets Laplace noise of ``threshold_scale`` once, each answer fresh noise of
    ``query_scale``; or discrete Laplace noise, all thresholds, answers and the sensitivity being
    whole numbers. A unit moves each answer by at most ``sensitivity``; with ``monotone``, all of
    them the same way.

    It covers questions and public thresholds that are chosen with earlier answers in view, and
    questions to other mechanisms in between, if this is paid before the first question. The
    noisy answers themselves are not covered: each that is told takes fresh noise and a term of
    its own.

    >>> (1 * SparseVector(10, 40, hits=3)).epsilon()
    0.25
    >>> (1 * SparseVector(10, 40, hits=3, monotone=True)).epsilon()
    0.175
    """

    is_mirrored: ClassVar[bool] = True

    threshold_scale: Fraction
    query_scale: Fraction
    hits: Fraction
    sensitivity: Fraction
    monotone: bool

    def __init__(
        self,
        threshold_scale: Number,
        query_scale: Number,
        hits: int,
        sensitivity: Number = 1,
        *,
        monotone: bool = False,
    ) -> None:
        """Keep all at their exact values."""
        scale = _checks.positive(threshold_scale=threshold_scale)
        object.__setattr__(self, "threshold_scale", scale)
        object.__setattr__(self, "query_scale", _checks.positive(query_scale=query_scale))
        object.__setattr__(self, "hits", Fraction(_checks.positive_count(hits=hits)))
        object.__setattr__(self, "sensitivity", _checks.positive(sensitivity=sensitivity))
        if not isinstance(monotone, bool):
            raise InvalidArgument(f"monotone = {monotone!r}: give True or False")
        object.__setattr__(self, "monotone", monotone)

    def approximate(self) -> tuple[Fraction, Fraction]:
        """Moving the noisy threshold by the sensitivity leaves the answers below it what they
        were, and each one above by two sensitivities, or one, nearer (docs/proofs/terms.md)."""
        moves = self.hits * (1 if self.monotone else 2)
        return self.sensitivity * (1 / self.threshold_scale + moves / self.query_scale), Fraction(0)

    def renyi(self, order: Fraction) -> arb:
        """What is known of any pure mechanism."""
        return randomized_response_renyi(self.approximate()[0], order)

    def zcdp(self) -> Fraction:
        """epsilon squared over 2 (Bun and Steinke 2016, Proposition 1.4)."""
        return self.approximate()[0] ** 2 / 2

    def pairs(self, side: Side) -> tuple[Pair, ...]:
        """Randomized response, which dominates any pure mechanism; interactive ones too (Vadhan
        and Wang 2021)."""
        if side is Side.LOWER:
            raise NoBound(f"no pair is known that {self!r} attains")
        return (randomized_response(self.approximate()[0]),)

    def for_group(self, size: int) -> "SparseVector":
        """``size`` times the sensitivity, and so epsilon: those of the steps add up."""
        return SparseVector(
            self.threshold_scale,
            self.query_scale,
            int(self.hits),
            size * self.sensitivity,
            monotone=self.monotone,
        )
