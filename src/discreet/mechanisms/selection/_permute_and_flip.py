"""Permute-and-flip: on average never worse than the exponential mechanism."""

from discreet import noise
from discreet._exact import Number
from discreet.accounting import PrivacyLoss
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._fixed_point import IntegerArray
from discreet.mechanisms._parts import Key
from discreet.mechanisms.selection._choice import ChoiceByRate
from discreet.mechanisms.selection._gaps import flip_chance, smallest_gap
from discreet.mechanisms.selection._scores import noisy_max, score_range
from discreet.noise import Bits


class PermuteAndFlip(ChoiceByRate):
    """Visits the candidates in random order, and takes each with probability
    exp(rate * (its score - the largest)); the first one taken is the choice.

    The choice is the largest of the scores with exponential noise of scale 1 / rate on each, and is
    drawn in this way (Ding, Kifer, Saghaian, Steinke, Wang, Xiao and Zhang 2021). The computation
    gives one integer for each candidate, in their order; the candidates are public.

    Guarantee: epsilon-DP with epsilon = rate * D, where D is the distance by which a unit can move
    two scores apart, as in `ExponentialMechanism`. No interval of this length holds its privacy
    loss, so several choices together cost more. The guarantee covers both relations, as the
    sensitivity does. The running time, which depends a little on the number of scores close to the
    largest, is not covered. McKenna and Sheldon (2020).

    >>> import numpy as np
    >>> from discreet import Unit
    >>> votes = Bounded(
    ...     lambda: np.array([5, 4, 3]), sensitivity=1, unit=Unit("id"), name="votes", shape=(3,)
    ... )
    >>> mechanism = PermuteAndFlip.for_epsilon(1, votes, ["red", "blue", "green"])
    >>> mechanism, mechanism.error(0.95)
    (PermuteAndFlip(('red', 'blue', 'green'), rate=1), 2)
    """

    __slots__ = ()

    def privacy_loss(self, bounded: Bounded[IntegerArray]) -> PrivacyLoss:
        """One `accounting.ReportNoisyMax`; raises unless there is a score for each candidate."""
        apart = score_range(bounded, (len(self.candidates),), self.moves)
        return PrivacyLoss.of(noisy_max(1 / self.rate, apart, self.moves), unit=bounded.unit)

    def sample(self, value: IntegerArray, bits: Bits) -> Key:
        """The chosen candidate."""
        return self.candidates[noise.permute_and_flip(value, self.rate, bits)]

    def error(self, confidence: Number) -> int:
        """The smallest whole q with the chosen score at most q below the largest one at this
        confidence, for any scores. Equal scores of all but the best candidate attain it."""
        return smallest_gap(flip_chance(self.rate, len(self.candidates) - 1), confidence)
