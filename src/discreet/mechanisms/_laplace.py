"""The Laplace mechanism for real numbers: discrete Laplace noise on a public grid."""

from discreet._exact import Number
from discreet._fields import Positive, frozen
from discreet.mechanisms._accuracy import at_epsilon
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._discrete_laplace import DiscreteLaplace
from discreet.mechanisms._fixed_point import FixedPoint
from discreet.mechanisms._real import NoiseOnGrid, step_of


@frozen
class Laplace(NoiseOnGrid):
    """Rounds each real number to a multiple of ``step``, and adds a random multiple of it.

    The noise x has probability proportional to exp(-|x| / scale). ``scale`` and ``step`` are in the
    units of the answer.

    Guarantee: epsilon-DP with epsilon = L1 sensitivity / scale, where the sensitivity includes the
    effect of rounding. Numbers become floats only after the noise, so their low bits reveal
    nothing (Mironov 2012). The running time is not covered. Dwork, McSherry, Nissim and Smith
    (2006).

    >>> from discreet import Change, Unit
    >>> unit = Unit("patient_id", Change.REPLACE)
    >>> mean = Bounded.real(lambda: 51.34, sensitivity=1.2, step=0.01, unit=unit, name="mean age")
    >>> Laplace.for_epsilon(0.1, mean)
    Laplace(scale=12, step=0.01)
    """

    scale: Positive  # in the units of the answer, as the step
    step: Positive

    @staticmethod
    def for_epsilon(epsilon: Number, bounded: Bounded[FixedPoint]) -> "Laplace":
        """The mechanism whose release of ``bounded`` costs exactly ``epsilon``."""
        step = step_of(bounded)
        return at_epsilon(lambda scale: Laplace(scale, step), epsilon, bounded)

    @property
    def in_steps(self) -> DiscreteLaplace:
        """The same noise in steps."""
        return DiscreteLaplace(self.scale / self.step)
