"""The Gaussian mechanism on integers: rounded Gaussian noise."""

from fractions import Fraction
from typing import TypeVar

from discreet import _checks, accounting
from discreet._exact import Number, decimal_down, decimal_up, root_down
from discreet._fields import Positive, frozen
from discreet.accounting import PrivacyLoss
from discreet.accounting._analytic import gaussian_multiplier
from discreet.mechanisms._additive import ScaledNoise, integers
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._parts import Value
from discreet.mechanisms._sensitivity import Sensitivity
from discreet.noise import RoundedGaussianLaw

V = TypeVar("V", bound=Value)

_SPARE = 1 + Fraction(1, 10**10)  # above the effect of rounding a multiplier down


@frozen
class Gaussian(ScaledNoise):
    """Adds to each integer a normal number, rounded to an integer.

    ``stddev`` is the standard deviation before rounding, in the units of the answer.

    Guarantee: the same as for the continuous Gaussian mechanism with this ``stddev``, for single
    numbers and for arrays, because v + round(Z) = round(v + Z) for every integer v. The running
    time is not covered. Balle and Wang (2018) for the law of its privacy loss.

    >>> from discreet import Unit
    >>> patients = Bounded(lambda: 41, sensitivity=1, unit=Unit("patient_id"), name="patients")
    >>> mechanism = Gaussian.for_epsilon(0.5, 1e-6, patients)
    >>> mechanism.error(0.95)
    16
    >>> mechanism.privacy_loss(patients).epsilon(delta=1e-6) <= 0.5
    True
    """

    stddev: Positive  # in the units of the answer

    @staticmethod
    def for_epsilon(epsilon: Number, delta: Number, bounded: Bounded[V]) -> "Gaussian":
        """The mechanism with the least noise whose release of this computation is
        (epsilon, delta)-DP by itself; delta must lie above 0."""
        target = _checks.positive(epsilon=epsilon), _checks.probability(delta=delta)
        return Gaussian.for_multiplier(gaussian_multiplier(*target), bounded)

    @staticmethod
    def for_multiplier(multiplier: Number, bounded: Bounded[V]) -> "Gaussian":
        """The mechanism whose term has at least this multiplier (stddev over L2 sensitivity)."""
        wanted = _checks.positive(multiplier=multiplier)
        return Gaussian(stddev_for(wanted, max(integers(bounded).sensitivity.l2_squared, 1)))

    def _privacy_loss(self, sensitivity: Sensitivity) -> PrivacyLoss:
        """One `accounting.Gaussian` term, its multiplier rounded down to 12 digits."""
        return PrivacyLoss.of(gaussian_term(self.stddev, max(sensitivity.l2_squared, 1)))

    @property
    def law(self) -> RoundedGaussianLaw:
        """The law of the noise."""
        return RoundedGaussianLaw(self.stddev)


def stddev_for(multiplier: Fraction, l2_squared: int) -> Fraction:
    """A standard deviation slightly above ``multiplier`` times the L2 sensitivity."""
    return decimal_up(root_down(multiplier**2 * l2_squared) * _SPARE, digits=9)


def gaussian_term(stddev: Fraction, l2_squared: int) -> accounting.Gaussian:
    """The privacy loss of noise of this standard deviation, its multiplier rounded down to 12
    digits."""
    return accounting.Gaussian(decimal_down(root_down(stddev**2 / l2_squared), digits=12))
