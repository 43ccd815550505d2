"""The discrete Gaussian mechanism on integers."""

from fractions import Fraction
from typing import TypeVar

from discreet import _checks, accounting
from discreet._exact import Number, decimal_up, root_down
from discreet._fields import Positive, frozen
from discreet.accounting import PrivacyLoss, calibrate
from discreet.mechanisms._additive import ScaledNoise, integers
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._parts import Value
from discreet.mechanisms._sensitivity import Sensitivity
from discreet.noise import DiscreteGaussianLaw

V = TypeVar("V", bound=Value)

_DIGITS = 12
_SPARE = 1 + Fraction(1, 2**50)  # above the effect of rounding a root down


@frozen
class DiscreteGaussian(ScaledNoise):
    """Adds to each integer a random integer x with probability proportional to exp(-x^2 / (2
    stddev^2)).

    ``stddev`` is in the units of the answer.

    Guarantee: rho-zCDP with rho = squared L2 sensitivity / (2 stddev^2), for single numbers and for
    arrays, under either relation; and smaller privacy losses that follow from the exact law of the
    noise. Continuous Gaussian noise does not dominate it, so its privacy loss differs from that of
    `Gaussian`, whose rounded noise continuous noise does dominate. The running time is not covered.
    Canonne, Kamath and Steinke (2020).

    >>> from discreet import Unit
    >>> patients = Bounded(lambda: 41, sensitivity=1, unit=Unit("patient_id"), name="patients")
    >>> mechanism = DiscreteGaussian.for_zcdp(0.02, patients)
    >>> mechanism, mechanism.error(0.95)
    (DiscreteGaussian(stddev=5), 10)
    >>> mechanism.privacy_loss(patients).zcdp()
    0.02
    """

    stddev: Positive  # the law's parameter, a little above the noise's standard deviation

    @staticmethod
    def for_zcdp(rho: Number, bounded: Bounded[V]) -> "DiscreteGaussian":
        """The mechanism with the least noise, to 12 digits, whose release of this computation
        costs at most rho."""
        moved = max(integers(bounded).sensitivity.l2_squared, 1)
        square = moved / (2 * _checks.positive(rho=rho))
        root = root_down(square)
        exact = root**2 == square
        return DiscreteGaussian(root if exact else decimal_up(root * _SPARE, digits=_DIGITS))

    @staticmethod
    def for_epsilon(epsilon: Number, delta: Number, bounded: Bounded[V]) -> "DiscreteGaussian":
        """The mechanism with the least noise, to six digits, whose release of this computation is
        (epsilon, delta)-DP by itself; delta must lie above 0."""
        found = calibrate(
            lambda stddev: DiscreteGaussian(stddev).privacy_loss(bounded),
            epsilon=epsilon,
            delta=_checks.probability(delta=delta),
            name="stddev",
        )
        return DiscreteGaussian(found.value)

    def _privacy_loss(self, sensitivity: Sensitivity) -> PrivacyLoss:
        """One `accounting.DiscreteGaussian` term for each entry that can move, if all of them can
        move by linf at once; else one `accounting.DiscreteGaussianVector` term."""
        square = max(sensitivity.l2_squared, 1)
        places, most = max(sensitivity.l0, 1), max(sensitivity.linf, 1)
        if places * most**2 == square:  # all moves together cost as much as one by one
            return PrivacyLoss.of(accounting.DiscreteGaussian(self.stddev, most)) * places
        return PrivacyLoss.of(accounting.DiscreteGaussianVector(self.stddev, square))

    @property
    def law(self) -> DiscreteGaussianLaw:
        """The law of the noise."""
        return DiscreteGaussianLaw(self.stddev)
