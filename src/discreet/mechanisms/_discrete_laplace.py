"""The discrete Laplace mechanism: pure differential privacy for integers."""

from typing import TypeVar

from discreet import accounting
from discreet._exact import Number
from discreet._fields import Positive, frozen
from discreet.accounting import PrivacyLoss
from discreet.mechanisms._accuracy import at_epsilon
from discreet.mechanisms._additive import ScaledNoise
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._parts import Value
from discreet.mechanisms._sensitivity import Sensitivity
from discreet.noise import DiscreteLaplaceLaw

V = TypeVar("V", bound=Value)


@frozen
class DiscreteLaplace(ScaledNoise):
    """Adds to each integer a random integer x with probability proportional to exp(-|x| / scale).

    ``scale`` is in the units of the answer.

    Guarantee: epsilon-DP with epsilon = L1 sensitivity / scale, for single numbers and for arrays.
    The noise is exact and drawn from secure bits. The running time is not covered. Ghosh,
    Roughgarden and Sundararajan (2009).

    >>> from discreet import Unit
    >>> patients = Bounded(lambda: 41, sensitivity=1, unit=Unit("patient_id"), name="patients")
    >>> mechanism = DiscreteLaplace.for_epsilon(0.5, patients)
    >>> mechanism, mechanism.error(0.95)
    (DiscreteLaplace(scale=2), 6)
    >>> mechanism.privacy_loss(patients).epsilon()
    0.5
    """

    scale: Positive  # in the units of the answer

    @staticmethod
    def for_epsilon(epsilon: Number, bounded: Bounded[V]) -> "DiscreteLaplace":
        """The mechanism whose release of ``bounded`` costs exactly ``epsilon``."""
        return at_epsilon(DiscreteLaplace, epsilon, bounded)

    def _privacy_loss(self, sensitivity: Sensitivity) -> PrivacyLoss:
        """One `accounting.DiscreteLaplace` term of this scale and the L1 sensitivity."""
        return PrivacyLoss.of(accounting.DiscreteLaplace(self.scale, max(sensitivity.l1, 1)))

    @property
    def law(self) -> DiscreteLaplaceLaw:
        """The law of the noise."""
        return DiscreteLaplaceLaw(self.scale)
