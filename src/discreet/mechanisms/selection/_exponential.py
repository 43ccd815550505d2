"""The exponential mechanism: a candidate by its score, larger ones more likely."""

from discreet import noise
from discreet._exact import Number
from discreet.accounting import BoundedRange, PrivacyLoss
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._fixed_point import IntegerArray
from discreet.mechanisms._parts import Key
from discreet.mechanisms.selection._choice import ChoiceByRate
from discreet.mechanisms.selection._gaps import exponential_chance, smallest_gap
from discreet.mechanisms.selection._scores import score_range
from discreet.noise import Bits


class ExponentialMechanism(ChoiceByRate):
    """Chooses one candidate, each with probability proportional to exp(rate * its score).

    It is the largest of the scores with Gumbel noise of scale 1 / rate on each. The computation
    gives one integer for each candidate, in their order; the candidates are public.

    Guarantee: the privacy loss lies in an interval of length rate * D, so epsilon is at most this.
    D is the distance by which a unit can move two scores apart: twice the L-infinity
    sensitivity, the L1 sensitivity, or the root of twice the squared L2 sensitivity, whichever is
    least; once the L-infinity sensitivity with `Moves.TOGETHER`. It holds when a unit comes, goes
    or is replaced, as the sensitivity does. The probabilities are exact. The running time is not
    covered. McSherry and Talwar (2007); Durfee and Rogers (2019) for the interval.

    >>> import numpy as np
    >>> from discreet.mechanisms import Sensitivity
    >>> from discreet import Unit
    >>> votes = Bounded(
    ...     lambda: np.array([5, 4, 3, 2]), sensitivity=Sensitivity(linf=1, length=4),
    ...     unit=Unit("voter_id"), name="votes", shape=(4,),
    ... )
    >>> colours = ["red", "blue", "green", "yellow"]
    >>> mechanism = ExponentialMechanism.for_epsilon(1, votes, colours)
    >>> mechanism, mechanism.error(0.95)
    (ExponentialMechanism(('red', 'blue', 'green', 'yellow'), rate=0.5), 8)
    >>> mechanism.privacy_loss(votes).epsilon()
    1.0
    """

    __slots__ = ()

    def privacy_loss(self, bounded: Bounded[IntegerArray]) -> PrivacyLoss:
        """One `accounting.BoundedRange`; raises unless there is a score for each candidate."""
        apart = score_range(bounded, (len(self.candidates),), self.moves)
        return PrivacyLoss.of(BoundedRange(self.rate * apart), unit=bounded.unit)

    def sample(self, value: IntegerArray, bits: Bits) -> Key:
        """The chosen candidate; of 100 000, in some milliseconds."""
        return self.candidates[noise.exponential_choice(value, self.rate, bits)]

    def error(self, confidence: Number) -> int:
        """The smallest whole q with the chosen score at most q below the largest one at this
        confidence, for any scores. Equal scores of all but the best candidate attain it."""
        return smallest_gap(exponential_chance(self.rate, len(self.candidates) - 1), confidence)
