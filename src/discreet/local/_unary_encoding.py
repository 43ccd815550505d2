"""Unary encodings: a noisy bit for each category."""

from dataclasses import dataclass
from fractions import Fraction

from discreet import accounting
from discreet._exact import Number
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.local import _forecast, client
from discreet.local._estimate import Rates
from discreet.local._mechanism import (
    FrequencyEstimator,
    ReportingMechanism,
    Reports,
    added_up,
    half_told,
    rows_of_truths,
    several,
    written,
)
from discreet.local._odds import costs_at_most, in_reach, odds_below
from discreet.local.client._bits import Integers

HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True, repr=False)
class UnaryEncoding(ReportingMechanism, FrequencyEstimator):
    """Each client tells one bit for each category, set more often for the own one.

    Guarantee: each report is epsilon-differentially private for its client whatever the others
    do, if a client reports once; this is checked from the client's exact probabilities. That
    someone reports, and when, is not covered. A report is a row of truth values, one for each
    category; ``np.packbits`` makes bytes of them for the way.

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

    epsilon: Fraction
    client: client.UnaryEncoding

    def __post_init__(self) -> None:
        """Refuse a client that loses more than epsilon."""
        object.__setattr__(self, "epsilon", in_reach(self.epsilon))
        several(self.client.categories)
        if not costs_at_most(self.client.worst_ratio(), self.epsilon):
            raise InvalidArgument(
                f"epsilon = {self.epsilon}: the client's probabilities differ by up to a factor "
                f"of {float(self.client.worst_ratio())}, which is more than e^epsilon"
            )

    @staticmethod
    def symmetric(epsilon: Number, categories: int) -> "UnaryEncoding":
        """Every bit is told as it is with odds e^(epsilon / 2)."""
        exact = in_reach(epsilon)
        odds = odds_below(exact / 2)
        chances = odds / (odds + 1), 1 / (odds + 1)
        return UnaryEncoding(exact, client.UnaryEncoding(*chances, several(categories)))

    @staticmethod
    def optimised(epsilon: Number, categories: int) -> "UnaryEncoding":
        """The own bit is set half of the time, the others as seldom as epsilon allows: that has
        the least variance for rare categories."""
        exact = in_reach(epsilon)
        added = 1 / (odds_below(exact) + 1)
        return UnaryEncoding(exact, client.UnaryEncoding(HALF, added, several(categories)))

    @staticmethod
    def for_error(
        error: Number, confidence: Number, reports: int, categories: int
    ) -> "UnaryEncoding":
        """The optimised one of the smallest epsilon whose `error` is at most this."""
        return _forecast.for_error(
            lambda epsilon: UnaryEncoding.optimised(epsilon, categories), error, confidence, reports
        )

    @property
    def rates(self) -> Rates:
        """As the client's bits are set."""
        return Rates.of(self.client.kept, self.client.added)

    def well_formed(self, reports: Reports) -> Reports:
        """Those that are a row of truth values, one for each category."""
        return rows_of_truths(self.client.categories, reports)

    def supports(self, reports: Reports) -> Integers:
        """How often each bit was set."""
        return added_up(reports, self.client.categories)

    def spent(self) -> PrivacyLoss:
        """Two bits differ. If both are told alike, that is two randomized responses of half the
        epsilon. If the own bit is set by a fair coin, half of all pairs of bits tell nothing, as
        in a randomized response over e^epsilon + 3 categories."""
        if self.client.kept + self.client.added == 1:
            return 2 * accounting.RandomizedResponse(self.epsilon / 2)
        if self.client.kept == HALF:
            return half_told(self.epsilon)
        return PrivacyLoss.of(accounting.Pure(self.epsilon))

    def __repr__(self) -> str:
        """As in code."""
        return written(self, client=self.client)
