"""The best of a secret number of runs, which is Poisson."""

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from discreet import _checks
from discreet._exact import Number
from discreet._unit import Change
from discreet.accounting import _knowledge, _tuning
from discreet.accounting._best_run import Best, change_of, one_run
from discreet.accounting._loss import PrivacyLoss, Term
from discreet.accounting._one_bit import as_one_bit
from discreet.accounting.pld._dominating_pairs import Pair, Side


@dataclass(frozen=True, slots=True, init=False, repr=False)
class TunedPoisson(Term):
    """The best outcome, in some order of all outcomes, of K independent runs of a mechanism, K
    being Poisson with this ``mean``, and shown nowhere but for K = 0, which has nothing to show
    (Papernot and Steinke 2022).

    ``privacy_loss`` is what one run costs, with whatever the order depends on, such as a score.
    Unless ``most`` is 0, a number of runs above it is drawn anew.

    >>> from discreet.accounting import Gaussian
    >>> (1 * TunedPoisson(Gaussian(10), mean=10)).epsilon(1e-6) < 0.79
    True
    """

    privacy_loss: PrivacyLoss
    mean: Fraction
    most: Fraction

    def __init__(self, privacy_loss: PrivacyLoss | Term, mean: Number, most: int = 0) -> None:
        """Keep the numbers at their exact values."""
        object.__setattr__(self, "privacy_loss", one_run(privacy_loss))
        object.__setattr__(self, "mean", _checks.positive(mean=mean))
        object.__setattr__(self, "most", Fraction(_checks.count(most=most)))

    @property
    def change(self) -> Change | None:  # type: ignore[override]  # that of what it holds
        """How neighbours differ: as for one run."""
        return change_of(self.privacy_loss)

    def approximate(self) -> tuple[Fraction, Fraction]:
        """If a run is (epsilon, delta)-private: epsilon + mean tanh(epsilon / 2), and the
        expected number of runs times delta."""
        return self._best.approximate()

    def leak(self) -> Fraction:
        """At most the expected number of runs times that of one."""
        return self._best.leak()

    def zcdp(self) -> Fraction:
        """epsilon squared over 2, if a run is pure."""
        return self._best.zcdp()

    def renyi(self, order: Fraction) -> arb:
        """Papernot and Steinke (2022), Theorem 6, with the outcome of no run counted in."""
        return as_one_bit(self, order, self._best.renyi(order))

    def pairs(self, side: Side) -> tuple[Pair, ...]:
        """From above, the pair of a delta that is bounded by one run's, moved and multiplied (as
        in Koskela, Redberg and Wang 2024)."""
        return self._best.pairs(side)

    def for_group(self, size: int) -> "TunedPoisson":
        """The theorem is of any two laws of a run, and so of a group's."""
        loss = _knowledge.for_group(self.privacy_loss, size)
        return TunedPoisson(loss, self.mean, int(self.most))

    @property
    def _best(self) -> Best:
        return Best(self.privacy_loss, _tuning.Poisson(self.mean), int(self.most))
