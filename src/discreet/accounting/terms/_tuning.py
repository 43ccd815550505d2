"""The best of a secret, random number of runs, which is Poisson or negative binomial."""

from fractions import Fraction
from typing import Annotated

from flint import arb

from discreet import _checks
from discreet._exact import Number
from discreet._fields import Converted, Count, Positive, field, frozen
from discreet._unit import Change
from discreet.accounting import _tuning
from discreet.accounting._best_run import Best
from discreet.accounting._bounds import Unknown
from discreet.accounting._loss import PrivacyLoss, Term, change_of, group_loss, inner_loss
from discreet.accounting._renyi import at_most_pure
from discreet.accounting.pld._dominating_pairs import Pair, Side
from discreet.errors import InvalidArgument


def _run_loss(**named: PrivacyLoss | Term) -> PrivacyLoss:
    """One named privacy loss of a run, for any relation between neighbours."""
    ((_, given),) = named.items()
    known = PrivacyLoss.of(given) if isinstance(given, Term) else given
    change = change_of(known) if isinstance(known, PrivacyLoss) else None
    return inner_loss(given, change or Change.ADD_REMOVE)


def _gamma(**named: object) -> Fraction:
    exact = _checks.positive(**named)
    if exact > 1:
        ((name, value),) = named.items()
        raise InvalidArgument(f"{name} = {value}: give a number above 0 and up to 1")
    return exact


RunLoss = Annotated[Converted[PrivacyLoss, PrivacyLoss | Term], _run_loss]


class _BestOfRuns(Term):
    """The methods of the terms below: all follow from `Best`."""

    __slots__ = ()

    privacy_loss: PrivacyLoss

    @property
    def _best(self) -> Best:
        raise NotImplementedError

    @property
    def change(self) -> Change | None:  # type: ignore[override]  # that of one run
        """The relation between neighbours, which is that of one run."""
        return change_of(self.privacy_loss)

    def approximate(self) -> tuple[Fraction, Fraction] | Unknown:
        """For one (epsilon, delta)-private run: epsilon with the spread of `pure_spread`, and the
        expected number of runs times delta."""
        return self._best.approximate()

    def failure_probability(self) -> Fraction:
        """At most the expected number of runs times that of one."""
        return self._best.failure_probability()

    def zcdp(self) -> Fraction | Unknown:
        """epsilon squared over 2, if a run is pure; or that of ``most`` runs."""
        return self._best.zcdp()

    def renyi(self, order: Fraction) -> arb | Unknown:
        """Papernot and Steinke (2022), Theorems 2 and 6, or a smaller bound of the same kind, with
        the outcome of no run counted in; or that of ``most`` runs."""
        found = self._best.renyi(order)
        return found if isinstance(found, Unknown) else at_most_pure(self, order, found)

    def pairs(self, side: Side) -> tuple[Pair, ...] | Unknown:
        """From above, the pair of a delta that is bounded by one run's, moved and multiplied (as
        in Koskela, Redberg and Wang 2024)."""
        return self._best.pairs(side)


@frozen
class TunedPoisson(_BestOfRuns):
    """The best outcome, in some order of all outcomes, of K independent runs of a mechanism, K
    being Poisson with this ``mean``, and shown nowhere but for K = 0, which has nothing to show
    (Papernot and Steinke 2022).

    ``privacy_loss`` is that of one run, with all that the order depends on, such as a score.
    Unless ``most`` is 0, a number of runs above it is drawn anew, and the best one costs at most
    ``most`` runs.

    If a run is (epsilon, delta)-private, the best one is so with epsilon + mean tanh(epsilon / 2)
    and mean * delta.

    >>> from discreet.accounting import Gaussian
    >>> (1 * TunedPoisson(Gaussian(10), mean=10)).epsilon(1e-6) < 0.79
    True
    """

    privacy_loss: RunLoss
    mean: Positive
    most: Count = field(default=0)

    def for_group(self, size: int) -> "TunedPoisson | Unknown":
        """The theorem is of any two laws of a run, and so of a group's."""
        loss = group_loss(self.privacy_loss, size)
        return loss if isinstance(loss, Unknown) else TunedPoisson(loss, self.mean, self.most)

    @property
    def _best(self) -> Best:
        return Best(self.privacy_loss, _tuning.Poisson(self.mean), self.most)


@frozen
class TunedNegativeBinomial(_BestOfRuns):
    """The best outcome, in some order of all outcomes, of K independent runs of a mechanism, K
    being k from 1 on with probability proportional to (1 - gamma)^k Gamma(k + eta) / k!, and shown
    nowhere (Papernot and Steinke 2022).

    ``privacy_loss`` is that of one run, with all that the order depends on, such as a score.
    ``eta`` lies above -1; 1 is the geometric law (Liu and Talwar 2019), 0 the logarithmic one.
    Unless ``most`` is 0, a number of runs above it is drawn anew, and the best one costs at most
    ``most`` runs.

    If a run is (epsilon, delta)-private, the best one is so with epsilon + (1 + eta) ln((gamma +
    e^epsilon) / (1 + gamma e^epsilon)), which is less than (2 + eta) epsilon, and with the expected
    number of runs times delta.

    >>> from discreet.accounting import Gaussian, Pure
    >>> (1 * TunedNegativeBinomial(Pure(0.1), eta=1, gamma=0.01)).epsilon()
    0.296033195239
    >>> (1 * TunedNegativeBinomial(Gaussian(10), eta=0, gamma=0.01)).epsilon(1e-6) < 0.64
    True
    """

    privacy_loss: RunLoss
    eta: Annotated[Converted[Fraction, Number], _tuning.shape]
    gamma: Annotated[Converted[Fraction, Number], _gamma]
    most: Count = field(default=0)

    def for_group(self, size: int) -> "TunedNegativeBinomial | Unknown":
        """The theorems are of any two laws of a run, and so of a group's."""
        loss = group_loss(self.privacy_loss, size)
        if isinstance(loss, Unknown):
            return loss
        return TunedNegativeBinomial(loss, self.eta, self.gamma, self.most)

    @property
    def _best(self) -> Best:
        runs = _tuning.NegativeBinomial(self.eta, self.gamma)
        return Best(self.privacy_loss, runs, self.most)
