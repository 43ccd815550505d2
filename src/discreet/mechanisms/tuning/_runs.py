"""Laws of the secret number of runs, and the privacy loss of the best run under each."""

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from itertools import islice
from typing import Annotated, Protocol

from flint import arb

from discreet import _checks
from discreet._bisection import decimal_edge, edge
from discreet._exact import (
    Number,
    ball,
    decimal_down,
    decimal_up,
    precision,
    upper_fraction,
)
from discreet._fields import Converted, Positive, field, frozen
from discreet.accounting import (
    PrivacyLoss,
    Pure,
    Term,
    TunedNegativeBinomial,
    TunedPoisson,
)
from discreet.accounting._bounds import approximate, known
from discreet.accounting.terms import _best_run
from discreet.errors import InvalidArgument
from discreet.noise import Bits, _inversion

_BITS = 128
_DIGITS = 9
_MOST = 10**9


class RunsLaw(Protocol):
    """The law of the number of runs."""

    @property
    def most(self) -> int:
        """The ceiling: a larger number is drawn anew; 0 if there is none."""

    @property
    def law(self) -> _best_run.Runs:
        """The law without the ceiling."""

    def term(self, one_run: PrivacyLoss | Term) -> Term:
        """The privacy loss of the best run, where each run has the privacy loss ``one_run``."""


def _makeable(most: int) -> int:
    """A ceiling on the number of runs; 0 for none."""
    if (found := _checks.count(most=most)) <= _MOST:
        return found
    raise InvalidArgument("most: give at most 10^9 runs")


@frozen
class NegativeBinomialRuns:
    """K = 1, 2, ... with probability proportional to (1 - gamma)^K Gamma(K + eta) / K!.

    ``eta`` is any number above -1; 1 is the geometric law, and 0 the logarithmic law. A larger eta
    makes K vary less around its mean, and costs more: up to (2 + eta) epsilon if each run costs
    epsilon. A smaller gamma makes more runs, at nearly the same pure epsilon. Papernot and Steinke
    (2022), Definition 1.

    >>> NegativeBinomialRuns.for_mean(20, eta=1)
    NegativeBinomialRuns(eta=1, gamma=0.05)
    """

    _: KW_ONLY
    eta: Annotated[Converted[Fraction, Number], _best_run.shape]
    gamma: Positive  # 1 for a single run
    most: Annotated[int, _makeable] = field(default=0, brief=True)  # draws larger numbers anew

    def __post_init__(self) -> None:
        self.term(Pure(1))
        if self.gamma < Fraction(1, _MOST):
            raise InvalidArgument("gamma: give at least 10^-9, for at most 10^9 runs")

    @staticmethod
    def for_mean(mean: Number, *, eta: Number, most: int = 0) -> "NegativeBinomialRuns":
        """The law with the largest gamma, to 9 digits, whose mean is at least this number, which is
        1 or above."""
        wanted, shape = _checks.positive(mean=mean), _best_run.shape(eta=eta)
        if wanted < 1:
            raise InvalidArgument(f"mean = {mean}: give a number, 1 or above")
        if wanted == 1:
            return NegativeBinomialRuns(eta=shape, gamma=1, most=most)

        def is_enough(gamma: Fraction) -> bool:
            with precision(_BITS):
                return not _best_run.NegativeBinomial(shape, gamma).mean() < ball(wanted)

        gamma = _largest_gamma(is_enough)
        if not gamma:
            raise InvalidArgument(f"mean = {mean}: too large a number of runs")
        return NegativeBinomialRuns(eta=shape, gamma=gamma, most=most)

    @staticmethod
    def for_error(
        error: Number, confidence: Number, *, eta: Number, most: int = 0
    ) -> "NegativeBinomialRuns":
        """The law with the fewest runs, by a gamma of 9 digits, whose best run is among the best
        ``error`` (a share) of one run's outcomes at this confidence."""
        share = _checks.probability(error=error)
        missed = 1 - _checks.probability(confidence=confidence)
        shape = _best_run.shape(eta=eta)

        def is_enough(gamma: Fraction) -> bool:
            runs = NegativeBinomialRuns(eta=shape, gamma=gamma, most=most)
            return share_missed(runs, share) <= missed

        gamma = _largest_gamma(is_enough)
        if not gamma:
            raise InvalidArgument(
                f"error = {error}: no law with this eta has enough runs; allow a larger error, or "
                "take a larger eta"
            )
        return NegativeBinomialRuns(eta=shape, gamma=gamma, most=most)

    @property
    def law(self) -> _best_run.NegativeBinomial:
        """The law without the ceiling."""
        return _best_run.NegativeBinomial(self.eta, self.gamma)

    def term(self, one_run: PrivacyLoss | Term) -> TunedNegativeBinomial:
        """`accounting.TunedNegativeBinomial`."""
        return TunedNegativeBinomial(one_run, self.eta, self.gamma, self.most)


@frozen
class PoissonRuns:
    """K = 0, 1, 2, ... is Poisson with this mean; with K = 0 nothing is chosen.

    K is close to its mean; a larger mean costs more. Papernot and Steinke (2022), Theorem 6.

    >>> PoissonRuns(20)
    PoissonRuns(20)
    """

    mean: Positive = field(named=False)
    _: KW_ONLY
    most: Annotated[int, _makeable] = field(default=0, brief=True)  # draws larger numbers anew

    def __post_init__(self) -> None:
        if self.mean > _MOST:
            raise InvalidArgument("mean: give at most 10^9 runs")

    @property
    def law(self) -> _best_run.Poisson:
        """The law without the ceiling."""
        return _best_run.Poisson(self.mean)

    def term(self, one_run: PrivacyLoss | Term) -> TunedPoisson:
        """`accounting.TunedPoisson`."""
        return TunedPoisson(one_run, self.mean, self.most)


def _largest_gamma(is_enough: Callable[[Fraction], bool]) -> Fraction:
    """The largest gamma below 1, to 9 digits, that is enough; 0 if there is none. Smaller ones are
    enough too."""
    low, high = Fraction(1, _MOST), Fraction(1)
    if not is_enough(low):
        return Fraction(0)
    low = edge(is_enough, low, high, _DIGITS + 1)
    above = decimal_up(low, _DIGITS)
    return above if above < 1 and is_enough(above) else decimal_down(low, _DIGITS)


def draw(runs: RunsLaw, bits: Bits) -> int:
    """An exact draw of the number of runs."""
    return _inversion.draw(_NumberOfRuns(runs), bits)


@dataclass(frozen=True, slots=True)
class _NumberOfRuns:
    """The number of runs as a function of U: 1 - U lies between two cumulative probabilities, so
    that words of ones give the fewest runs."""

    runs: RunsLaw

    def resolve(self, numerator: int, size: int) -> int | None:
        with precision(size + _BITS):
            low, high = (ball(Fraction((1 << size) - numerator - i, 1 << size)) for i in (1, 0))
            whole = sum(self._chances(), arb(0)) if self.runs.most else arb(1)
            below = arb(0)
            for outcome, chance in enumerate(self._chances()):
                if not low * whole >= below:
                    return None
                below += chance
                if (outcome and outcome == self.runs.most) or high * whole <= below:
                    return outcome
        raise AssertionError("a law without a ceiling has no last number")

    def _chances(self) -> Iterator[arb]:
        return islice(self.runs.law.chances(), self.runs.most + 1 if self.runs.most else None)


def share_missed(runs: RunsLaw, share: Fraction) -> Fraction:
    """The probability, rounded up, that no run has a property that each run has with probability
    ``share``. With a ceiling: at most that without it, over the probability to stay below it."""
    with precision(_BITS):
        limited = _best_run.Ceiling.of(runs.law, runs.most)
        found = runs.law.generating(ball(1 - share)) / limited.within
        return upper_fraction(found.min(arb(1)))


def best_share(runs: RunsLaw, confidence: Fraction) -> Fraction:
    """The smallest share s, to 9 digits, such that the best run is among the best s of one run's
    outcomes at this confidence; 1 if the probability of no run is too large."""
    missed = 1 - confidence
    found = decimal_edge(
        lambda share: share_missed(runs, share) <= missed, Fraction(1), Fraction(0), digits=_DIGITS
    )
    return min(found, Fraction(1))


def epsilon_of_each(runs: RunsLaw, epsilon: Fraction) -> Fraction:
    """The largest epsilon of one run, to 9 digits, with which the best run costs at most this."""
    return decimal_edge(
        lambda each: known(approximate(PrivacyLoss.of(runs.term(Pure(each)))))[0] <= epsilon,
        Fraction(0),
        epsilon,
        digits=_DIGITS,
    )
