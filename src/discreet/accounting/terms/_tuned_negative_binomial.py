"""The best of a secret number of runs: negative binomial, and so geometric or logarithmic."""

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
from discreet.errors import InvalidArgument


@dataclass(frozen=True, slots=True, init=False, repr=False)
class TunedNegativeBinomial(Term):
    """The best outcome, in some order of all outcomes, of K independent runs of a mechanism, K
    being k from 1 on with probability proportional to (1 - gamma)^k Gamma(k + eta) / k!, and shown
    nowhere (Papernot and Steinke 2022).

    ``privacy_loss`` is what one run costs, with whatever the order depends on, such as a score.
    ``eta`` lies above -1; 1 is the geometric law (Liu and Talwar 2019), 0 the logarithmic one.
    Unless ``most`` is 0, a number of runs above it is drawn anew.

    >>> from discreet.accounting import Gaussian, Pure
    >>> (1 * TunedNegativeBinomial(Pure(0.1), eta=1, gamma=0.01)).epsilon()
    0.296033195239
    >>> (1 * TunedNegativeBinomial(Gaussian(10), eta=0, gamma=0.01)).epsilon(1e-6) < 0.64
    True
    """

    privacy_loss: PrivacyLoss
    eta: Fraction
    gamma: Fraction
    most: Fraction

    def __init__(
        self, privacy_loss: PrivacyLoss | Term, eta: Number, gamma: Number, most: int = 0
    ) -> None:
        """Keep the numbers at their exact values; gamma is at most 1, which is a single run."""
        object.__setattr__(self, "privacy_loss", one_run(privacy_loss))
        object.__setattr__(self, "eta", _tuning.shape(eta=eta))
        object.__setattr__(self, "gamma", _checks.positive(gamma=gamma))
        object.__setattr__(self, "most", Fraction(_checks.count(most=most)))
        if self.gamma > 1:
            raise InvalidArgument(f"gamma = {gamma}: give a number above 0 and up to 1")

    @property
    def change(self) -> Change | None:  # type: ignore[override]  # that of what it holds
        """How neighbours differ: as for one run."""
        return change_of(self.privacy_loss)

    def approximate(self) -> tuple[Fraction, Fraction]:
        """If a run is (epsilon, delta)-private: epsilon + (1 + eta) ln((gamma + e^epsilon) / (1 +
        gamma e^epsilon)), which is less than (2 + eta) epsilon, and the expected number of runs
        times delta."""
        return self._best.approximate()

    def leak(self) -> Fraction:
        """At most the expected number of runs times that of one."""
        return self._best.leak()

    def zcdp(self) -> Fraction:
        """epsilon squared over 2, if a run is pure."""
        return self._best.zcdp()

    def renyi(self, order: Fraction) -> arb:
        """Papernot and Steinke (2022), Theorem 2, or a smaller bound of the same kind."""
        return as_one_bit(self, order, self._best.renyi(order))

    def pairs(self, side: Side) -> tuple[Pair, ...]:
        """From above, the pair of a delta that is bounded by one run's, moved and multiplied (as
        in Koskela, Redberg and Wang 2024)."""
        return self._best.pairs(side)

    def for_group(self, size: int) -> "TunedNegativeBinomial":
        """The theorems are of any two laws of a run, and so of a group's."""
        loss = _knowledge.for_group(self.privacy_loss, size)
        return TunedNegativeBinomial(loss, self.eta, self.gamma, int(self.most))

    @property
    def _best(self) -> Best:
        runs = _tuning.NegativeBinomial(self.eta, self.gamma)
        return Best(self.privacy_loss, runs, int(self.most))
