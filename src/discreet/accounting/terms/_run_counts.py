"""Laws of the secret, random number of runs of which the best one is shown.

A law enters the bounds by its mean, by its generating function f(x) = E[x^K], and by its single
probabilities if there is a ceiling. docs/proofs/terms.md has the argument, under "Tuned".
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from discreet import _checks
from discreet._exact import ball, decimal_down, precision
from discreet.errors import InvalidArgument

_DIGITS_OF_GAMMA, _BITS_OF_GAMMA = 15, 56
_BITS = 256
_LARGEST = 10**6


def shape(**named: object) -> Fraction:
    """One named shape of `NegativeBinomial`: above -1, and small enough for balls."""
    if -1 < (exact := _checks.finite(**named)) <= _LARGEST:
        return exact
    raise InvalidArgument(f"{next(iter(named))}: give a number above -1 and up to 10^6")


@dataclass(frozen=True, slots=True)
class NegativeBinomial:
    """P(k) proportional to (1 - gamma)^k Gamma(k + eta) / k! for k from 1 on, with eta above -1.
    Eta 1 is the geometric law, eta 0 the logarithmic one; at gamma 1 there is one run."""

    eta: Fraction
    gamma: Fraction

    @staticmethod
    def of_mean(eta: Fraction, mean: Fraction) -> "NegativeBinomial":
        """The law with this mean, which is at least 1; the mean may be rounded up a little."""
        if eta == 1:
            return NegativeBinomial(eta, 1 / mean)
        low = high = Fraction(1)
        with precision(_BITS):
            while not NegativeBinomial(eta, low).mean() >= ball(mean):
                low, high = low / 2, low
            while high - low > low / 2**_BITS_OF_GAMMA:
                middle = (low + high) / 2
                is_enough = NegativeBinomial(eta, middle).mean() >= ball(mean)
                low, high = (middle, high) if is_enough else (low, middle)
        return NegativeBinomial(eta, decimal_down(low, _DIGITS_OF_GAMMA))

    def chances(self) -> Iterator[arb]:
        """The probabilities of 0, 1, 2, ... runs."""
        yield arb(0)
        gamma, rest = ball(self.gamma), ball(1 - self.gamma)
        if self.gamma == 1:
            chance = arb(1)
        elif self.eta == 0:
            chance = -rest / gamma.log()
        else:
            chance = ball(self.eta) * rest / (-ball(self.eta) * gamma.log()).expm1()
        runs = 1
        while True:
            yield chance
            chance *= rest * ball((runs + self.eta) / (runs + 1))
            runs += 1

    def mean(self) -> arb:
        """The expected number, eta (1 - gamma) / (gamma (1 - gamma^eta))."""
        if self.gamma == 1:
            return arb(1)
        if self.eta == 1:
            return ball(1 / self.gamma)
        gamma, rest = ball(self.gamma), ball(1 - self.gamma)
        if self.eta == 0:
            return -rest / gamma / gamma.log()
        return -ball(self.eta) * rest / gamma / (ball(self.eta) * gamma.log()).expm1()

    def generating(self, x: arb) -> arb:
        """f(x) = ((1 - (1 - gamma) x)^-eta - 1) / (gamma^-eta - 1)."""
        if self.gamma == 1:
            return x
        logs = [-(1 - ball(1 - self.gamma) * each).log() for each in (x, arb(1))]
        if self.eta:
            logs = [(ball(self.eta) * each).expm1() for each in logs]
        return logs[0] / logs[1]

    def thinned(self, failure: Fraction) -> "NegativeBinomial":
        """The law, given that no run fails, if each one fails with this probability."""
        return NegativeBinomial(self.eta, 1 - (1 - self.gamma) * (1 - failure))


@dataclass(frozen=True, slots=True)
class Poisson:
    """P(k) = e^-mean mean^k / k!; there may be no run."""

    expected: Fraction

    def chances(self) -> Iterator[arb]:
        """The probabilities of 0, 1, 2, ... runs."""
        chance, runs = ball(-self.expected).exp(), 0
        while True:
            yield chance
            runs += 1
            chance *= ball(self.expected / runs)

    def mean(self) -> arb:
        """The expected number."""
        return ball(self.expected)

    def generating(self, x: arb) -> arb:
        """f(x) = e^(mean (x - 1))."""
        return (ball(self.expected) * (x - 1)).exp()

    def thinned(self, failure: Fraction) -> "Poisson":
        """The law, given that no run fails, if each one fails with this probability."""
        return Poisson(self.expected * (1 - failure))


Runs = NegativeBinomial | Poisson


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A law of runs with a ceiling: a number above the ceiling is drawn anew.

    Under the law before the ceiling, ``none`` and ``within`` are the probabilities of no run and of
    a number within the ceiling, ``mean`` is the expected number, and ``share`` is the part of this
    mean within the ceiling.
    """

    none: arb
    within: arb
    mean: arb
    share: arb

    @staticmethod
    def of(runs: Runs, most: int) -> "Ceiling":
        """A ceiling of ``most`` runs; no ceiling if that is 0."""
        none, mean = next(runs.chances()), runs.mean()
        if not most:
            return Ceiling(none, arb(1), mean, arb(1))
        within = counted = arb(0)
        for number, chance in zip(range(most + 1), runs.chances(), strict=False):
            within += chance
            counted += number * chance
        return Ceiling(none, within.min(arb(1)), mean, (counted / mean).min(arb(1)))

    def divergence(self, order: Fraction, one_run: arb, spread: arb) -> arb:
        """The Renyi divergence of the best run, from the divergence of one run and from the spread,
        a bound on ln f'(q) / f'(q')."""
        power = ball(order - 1)
        grown = power * (one_run + spread - self.share.log()) + self.mean.log()
        other = (self.none * (-grown).exp()).log1p()
        return (grown + other - self.within.log()) / power
