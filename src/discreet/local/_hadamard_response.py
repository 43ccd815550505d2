"""Hadamard response: a small report for many categories at a small epsilon."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet._exact import Number
from discreet.accounting import PrivacyLoss
from discreet.local import _forecast, client
from discreet.local._estimate import Rates
from discreet.local._mechanism import (
    FrequencyEstimator,
    ReportingMechanism,
    Reports,
    counted,
    half_told,
    places_below,
    several,
    written,
)
from discreet.local._odds import in_reach, odds_below
from discreet.local.client._bits import Integers


@dataclass(frozen=True, slots=True, init=False, repr=False)
class HadamardResponse(ReportingMechanism, FrequencyEstimator):
    """Each client tells a number that fits the own category's row of a Hadamard matrix.

    Guarantee: each report is epsilon-differentially private for its client whatever the others
    do, if a client reports once. That someone reports, and when, is not covered. A report is a
    number of log2(categories) + 1 bits. Best for an epsilon up to 1: as another category fits
    half of the time, more of it helps little beyond 3.

    >>> mechanism = HadamardResponse(0.5, 1000)
    >>> reports = mechanism.randomize([3, 3, 7])
    >>> mechanism.estimate(reports).values.shape
    (1000,)

    Acharya, Sun and Zhang (2019), for high privacy (one block).
    """

    epsilon: Fraction
    client: client.HadamardResponse

    def __init__(self, epsilon: Number, categories: int) -> None:
        """Odds just below e^epsilon."""
        object.__setattr__(self, "epsilon", in_reach(epsilon))
        odds = odds_below(self.epsilon)
        object.__setattr__(self, "client", client.HadamardResponse(odds, several(categories)))

    @staticmethod
    def for_error(
        error: Number, confidence: Number, reports: int, categories: int
    ) -> "HadamardResponse":
        """The one of the smallest epsilon whose `error` is at most this."""
        return _forecast.for_error(
            lambda epsilon: HadamardResponse(epsilon, categories), error, confidence, reports
        )

    @property
    def rates(self) -> Rates:
        """Two rows agree in exactly half of their places."""
        odds = self.client.odds
        return Rates.of(odds / (odds + 1), Fraction(1, 2))

    def well_formed(self, reports: Reports) -> Reports:
        """Those that are one of a client's reports."""
        return places_below(self.client.size, reports)

    def supports(self, reports: Reports) -> Integers:
        """For each category, how many reports fit its row: by a Walsh-Hadamard transform."""
        counts = counted(reports, self.client.size)
        more = _transformed(counts)[1 : self.client.categories + 1]
        return np.asarray((more + int(counts.sum())) // 2)

    def spent(self) -> PrivacyLoss:
        """Two categories differ in half of the reports."""
        return half_told(self.epsilon)

    def __repr__(self) -> str:
        """As in code."""
        return written(self, categories=self.client.categories)


def _transformed(counts: Integers) -> Integers:
    """For each row, how many more fit than don't."""
    found, half = counts, 1
    while half < counts.size:
        pairs = found.reshape(-1, 2, half)
        found = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1)
        half *= 2
    return found.reshape(-1)
