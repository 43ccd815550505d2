"""Hadamard response: a small report for many categories at a small epsilon."""

from fractions import Fraction

import numpy as np

from discreet._exact import Number
from discreet._fields import frozen
from discreet.accounting import PrivacyLoss
from discreet.local import _forecast, client
from discreet.local._estimate import Rates
from discreet.local._mechanism import (
    Categories,
    FrequencyEstimator,
    ReportingMechanism,
    Reports,
    half_informative,
    histogram,
    integers_below,
)
from discreet.local._odds import LocalEpsilon, odds_below
from discreet.local.client._bits import Integers


@frozen
class HadamardResponse(ReportingMechanism, FrequencyEstimator):
    """Each client reports a number that fits the own category's row of a Hadamard matrix.

    Guarantee: each report is epsilon-differentially private for its client whatever the others
    do, if a client reports once. That a client reports, and when, is not covered. A report is a
    number of log2(categories) + 1 bits. It is best for an epsilon up to 1. Another category fits
    half of the time, so an epsilon above 3 improves the estimate only a little.

    >>> mechanism = HadamardResponse(0.5, 1000)
    >>> reports = mechanism.randomize([3, 3, 7])
    >>> mechanism.estimate(reports).values.shape
    (1000,)

    Acharya, Sun and Zhang (2019), for high privacy (one block).
    """

    epsilon: LocalEpsilon
    categories: Categories

    @staticmethod
    def for_error(
        error: Number, confidence: Number, reports: int, categories: int
    ) -> "HadamardResponse":
        """The mechanism of the smallest epsilon whose `error` is at most ``error``."""
        return _forecast.for_error(
            lambda epsilon: HadamardResponse(epsilon, categories), error, confidence, reports
        )

    @property
    def client(self) -> client.HadamardResponse:
        """The part that runs on a device."""
        return client.HadamardResponse(odds_below(self.epsilon), self.categories)

    @property
    def rates(self) -> Rates:
        """The probabilities that a report fits the own row, and another one: two rows agree in
        exactly half of their places."""
        odds = odds_below(self.epsilon)
        return Rates.of(odds / (odds + 1), Fraction(1, 2))

    def well_formed(self, reports: Reports) -> Reports:
        """The reports that a client can have sent; the others are left out."""
        return integers_below(self.client.size, reports)

    def supports(self, reports: Reports) -> Integers:
        """The number of reports that fit each category's row, by a Walsh-Hadamard transform."""
        counts = histogram(reports, self.client.size)
        more = _transformed(counts)[1 : self.categories + 1]
        return np.asarray((more + int(counts.sum())) // 2)

    def spent(self) -> PrivacyLoss:
        """Two categories differ in half of the reports."""
        return half_informative(self.epsilon)


def _transformed(counts: Integers) -> Integers:
    """For each row, the number of reports that fit minus the number of reports that don't."""
    found, half = counts, 1
    while half < counts.size:
        pairs = found.reshape(-1, 2, half)
        found = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1)
        half *= 2
    return found.reshape(-1)
