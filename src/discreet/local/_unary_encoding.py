"""Unary encodings: a report has a noisy bit for each category."""

from fractions import Fraction

from discreet import accounting
from discreet._exact import Number, shown
from discreet._fields import frozen
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.local import _forecast, client
from discreet.local._estimate import Rates
from discreet.local._mechanism import (
    FrequencyEstimator,
    ReportingMechanism,
    Reports,
    boolean_rows,
    category_count,
    column_sums,
    half_informative,
)
from discreet.local._odds import LocalEpsilon, costs_at_most, local_epsilon, odds_below
from discreet.local.client._bits import Integers

_HALF = Fraction(1, 2)


@frozen
class UnaryEncoding(ReportingMechanism, FrequencyEstimator):
    """Each client reports one bit for each category, set more often for the own one.

    Guarantee: each report is epsilon-differentially private for its client whatever the others
    do, if a client reports once; this is checked from the client's exact probabilities. That
    a client reports, and when, is not covered. A report is a row of booleans, one for each
    category; ``np.packbits`` packs them into bytes for sending.

    >>> mechanism = UnaryEncoding.optimised(1, 64)
    >>> reports = mechanism.randomize([3, 3, 7])
    >>> reports.shape, mechanism.estimate(reports).values.shape
    ((3, 64), (64,))
    >>> rare = {"reports": 1_000_000, "share": 0}
    >>> mechanism.error(0.95, **rare) < UnaryEncoding.symmetric(1, 64).error(0.95, **rare)
    True

    Erlingsson, Pihur and Korolova (2014) for the symmetric one; Wang, Blocki, Li and Jha (2017)
    for the optimised one.
    """

    epsilon: LocalEpsilon
    client: client.UnaryEncoding

    def __post_init__(self) -> None:
        category_count(categories=self.client.categories)
        worst = self.client.worst_ratio()
        if not costs_at_most(worst, self.epsilon):
            raise InvalidArgument(
                f"epsilon = {shown(self.epsilon)}: the client's probabilities differ by a factor "
                f"of {float(worst)}; give a client with at most e^epsilon"
            )

    @staticmethod
    def symmetric(epsilon: Number, categories: int) -> "UnaryEncoding":
        """The encoding that reports each bit unchanged with odds e^(epsilon / 2)."""
        exact, count = local_epsilon(epsilon=epsilon), category_count(categories=categories)
        odds = odds_below(exact / 2)
        return UnaryEncoding(exact, client.UnaryEncoding(odds / (odds + 1), 1 / (odds + 1), count))

    @staticmethod
    def optimised(epsilon: Number, categories: int) -> "UnaryEncoding":
        """The encoding that sets the own bit with probability 1/2, and the others as rarely as
        epsilon allows. It has the least variance for rare categories."""
        exact, count = local_epsilon(epsilon=epsilon), category_count(categories=categories)
        other = 1 / (odds_below(exact) + 1)
        return UnaryEncoding(exact, client.UnaryEncoding(_HALF, other, count))

    @staticmethod
    def for_error(
        error: Number, confidence: Number, reports: int, categories: int
    ) -> "UnaryEncoding":
        """The optimised encoding of the smallest epsilon whose `error` is at most this."""
        return _forecast.for_error(
            lambda epsilon: UnaryEncoding.optimised(epsilon, categories), error, confidence, reports
        )

    @property
    def rates(self) -> Rates:
        """The probabilities of a set bit, the own one and any other one."""
        return Rates.of(self.client.own, self.client.other)

    def well_formed(self, reports: Reports) -> Reports:
        """The reports that a client can have sent; the others are left out."""
        return boolean_rows(self.client.categories, reports)

    def supports(self, reports: Reports) -> Integers:
        """The number of reports that set each bit."""
        return column_sums(reports, self.client.categories)

    def spent(self) -> PrivacyLoss:
        """Two bits differ. In the symmetric encoding they are two randomized responses, each with
        half of epsilon. If the own bit is set by a fair coin, half of all pairs of bits are
        independent of the value, as in randomized response over e^epsilon + 3 categories."""
        if self.client.own + self.client.other == 1:
            return 2 * accounting.RandomizedResponse(self.epsilon / 2)
        if self.client.own == _HALF:
            return half_informative(self.epsilon)
        return PrivacyLoss.of(accounting.Pure(self.epsilon))
