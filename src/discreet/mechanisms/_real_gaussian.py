"""The Gaussian mechanism for real numbers: rounded Gaussian noise on a public grid."""

from discreet._exact import Number
from discreet._fields import Positive, frozen
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._fixed_point import FixedPoint
from discreet.mechanisms._gaussian import Gaussian
from discreet.mechanisms._real import NoiseOnGrid, in_steps, step_of


@frozen
class RealGaussian(NoiseOnGrid):
    """Rounds each real number to a multiple of ``step``, and adds a normal number, rounded too.

    ``stddev`` is the standard deviation before rounding. It and ``step`` are in the units of the
    answer.

    Guarantee: the same as for the continuous Gaussian mechanism with this ``stddev`` and an L2
    sensitivity that includes the effect of rounding. Numbers become floats only after the noise,
    so their low bits reveal nothing (Mironov 2012). The running time is not covered. Balle and Wang
    (2018) for the law of its privacy loss.

    >>> from discreet import Unit
    >>> mean = Bounded.real(lambda: 51.34, sensitivity=1.2, step=0.01, unit=Unit("id"), name="age")
    >>> mechanism = RealGaussian.for_epsilon(0.5, 1e-6, mean)
    >>> mechanism.privacy_loss(mean).epsilon(delta=1e-6) <= 0.5
    True
    """

    stddev: Positive  # in the units of the answer, as the step
    step: Positive

    @staticmethod
    def for_epsilon(epsilon: Number, delta: Number, bounded: Bounded[FixedPoint]) -> "RealGaussian":
        """The mechanism with the least noise whose release of this computation is
        (epsilon, delta)-DP by itself; delta must lie above 0."""
        step = step_of(bounded)
        return RealGaussian(
            Gaussian.for_epsilon(epsilon, delta, in_steps(bounded)).stddev * step, step
        )

    @staticmethod
    def for_multiplier(multiplier: Number, bounded: Bounded[FixedPoint]) -> "RealGaussian":
        """The mechanism whose term has at least this multiplier (stddev over L2 sensitivity)."""
        step = step_of(bounded)
        return RealGaussian(
            Gaussian.for_multiplier(multiplier, in_steps(bounded)).stddev * step, step
        )

    @property
    def in_steps(self) -> Gaussian:
        """The same noise in steps."""
        return Gaussian(self.stddev / self.step)
