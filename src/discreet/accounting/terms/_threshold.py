"""Groups that are not known beforehand, shown where their noisy count reaches a threshold."""

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from discreet import _checks
from discreet._exact import Number, ball, decimal_up, precision, root_down, upper_fraction
from discreet._unit import Change
from discreet.accounting import _knowledge
from discreet.accounting._loss import PrivacyLoss, Term, inner_loss
from discreet.accounting._sampling import or_everything, whole_pairs
from discreet.accounting.pld._dominating_pairs import Pair, Side
from discreet.accounting.terms._discrete_laplace import DiscreteLaplace
from discreet.accounting.terms._gaussian import Gaussian
from discreet.errors import InvalidArgument, WrongUnit

_BITS = 256
_DIGITS = 12


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Threshold(Term):
    """Keys that stand in the data only, each shown if its noisy number of units reaches a
    threshold, with that number and any other noisy figures of it; absent keys are never shown.

    ``privacy_loss`` is what the noise costs on all keys that a unit may touch, as if they were
    public; ``leak`` is at least the probability that one of them is shown although nobody else
    has it. `discrete_laplace` and `rounded_gaussian` compute both. A unit that is replaced
    touches the keys of its old and of its new rows: twice as many for the noise, but not for the
    leak.

    >>> keys = Threshold.discrete_laplace(scale=4, threshold=80, keys=2)
    >>> keys.privacy_loss, float(keys.leak_probability) < 1e-8
    (accounting.DiscreteLaplace(scale=4, sensitivity=2), True)
    """

    privacy_loss: PrivacyLoss
    leak_probability: Fraction

    def __init__(self, privacy_loss: PrivacyLoss | Term, leak_probability: Number) -> None:
        """Keep the leak at its exact value; the noise is of no relation between neighbours."""
        loss = inner_loss(privacy_loss, Change.ADD_REMOVE)
        if any(term.change is not None for term, _ in loss.terms):
            raise WrongUnit(
                f"privacy_loss = {loss!r}: give what noise alone costs; a sample is taken around "
                "the whole, as in PoissonSampled(Threshold(...), rate)"
            )
        object.__setattr__(self, "privacy_loss", loss)
        leak = _checks.delta(leak_probability=leak_probability)
        object.__setattr__(self, "leak_probability", leak)

    @classmethod
    def discrete_laplace(cls, *, scale: Number, threshold: int, keys: int) -> "Threshold":
        """A unit is in the counts of at most so many ``keys``, once in each; a key is shown if its
        count with discrete Laplace noise of this scale is ``threshold`` or more."""
        steps = _steps(threshold)
        with precision(_BITS):
            inverse = 1 / ball(_checks.positive(scale=scale))
            each = (-inverse * steps).exp() / (1 + (-inverse).exp())
        return cls(DiscreteLaplace(scale, keys), _any_of(each, keys))

    @classmethod
    def rounded_gaussian(cls, *, stddev: Number, threshold: int, keys: int) -> "Threshold":
        """The same with rounded Gaussian noise of this standard deviation on each count."""
        steps = _steps(threshold)
        sigma = _checks.positive(stddev=stddev)
        with precision(_BITS):
            each = (ball((steps - Fraction(1, 2)) / sigma) / arb(2).sqrt()).erfc() / 2
        multiplier = root_down(sigma**2 / _checks.positive_count(keys=keys))
        return cls(Gaussian(multiplier), _any_of(each, keys))

    def approximate(self) -> tuple[Fraction, Fraction]:
        """The noise's, but for the leak."""
        epsilon, delta = _knowledge.approximate(self.privacy_loss)
        return epsilon, self._with_leak(delta)

    def leak(self) -> Fraction:
        """That of the keys, and the noise's own."""
        return self._with_leak(_knowledge.leak(self.privacy_loss))

    def renyi(self, order: Fraction) -> arb:
        """The noise's, apart from the leak."""
        return _knowledge.renyi(self.privacy_loss, order)

    def zcdp(self) -> Fraction:
        """The noise's, apart from the leak."""
        return _knowledge.zcdp(self.privacy_loss)

    def pairs(self, side: Side) -> tuple[Pair, ...]:
        """The noise's pair, unless everything is told."""
        inner = whole_pairs(self.privacy_loss, side)
        return tuple(or_everything(pair, self.leak_probability) for pair in inner)

    @property
    def is_mirrored(self) -> bool:
        """If the noise is so: the leak is the same in both orders."""
        return _knowledge.is_mirrored(self.privacy_loss)

    def _with_leak(self, delta: Fraction) -> Fraction:
        return delta + self.leak_probability * (1 - min(delta, Fraction(1)))


def _steps(threshold: int) -> int:
    """How far a count of one unit lies below the threshold."""
    found = _checks.positive_count(threshold=threshold)
    if found < 2:
        raise InvalidArgument(f"threshold = {found}: give a whole number, 2 or above")
    return found - 1


def _any_of(each: arb, keys: int) -> Fraction:
    """1 - (1 - each)^keys, rounded up to a decimal."""
    with precision(_BITS):
        count = _checks.positive_count(keys=keys)
        found = upper_fraction(-(count * (-each).log1p()).expm1())
    return decimal_up(found, _DIGITS)
