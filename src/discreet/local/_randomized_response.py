"""Randomized response, told by one category."""

from dataclasses import dataclass
from fractions import Fraction

from discreet import _checks, accounting
from discreet._exact import Number
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.local import _forecast, client
from discreet.local._estimate import Rates
from discreet.local._mechanism import (
    FrequencyEstimator,
    ReportingMechanism,
    Reports,
    counted,
    places_below,
    several,
    written,
)
from discreet.local._odds import epsilon_above, in_reach, odds_below
from discreet.local.client._bits import Integers


@dataclass(frozen=True, slots=True, init=False, repr=False)
class RandomizedResponse(ReportingMechanism, FrequencyEstimator):
    """Each client tells the own category with odds e^epsilon to 1 against each other one.

    Guarantee: each report is epsilon-differentially private for its client whatever the others
    do, and whoever collects it, if a client reports once. Best for few categories, up to some
    3 e^epsilon. That someone reports, and when, is not covered. A report is a category.

    Two coins, the question answered truly at heads and by the second coin at tails, have odds 3:

    >>> import numpy as np
    >>> coins = RandomizedResponse.with_odds(3)
    >>> coins.privacy_loss().epsilon()  # ln 3, rounded up
    1.0986122886681098
    >>> people = np.repeat([0, 1], [600, 400])
    >>> answer = coins.estimate(coins.randomize(people))
    >>> found = answer.interval(1 - 1e-9)
    >>> bool(found.lower[1] <= 0.4 <= found.upper[1])
    True

    Warner (1965); Kairouz, Bonawitz and Ramage (2016) for more than two categories.
    """

    epsilon: Fraction
    client: client.RandomizedResponse

    def __init__(self, epsilon: Number, categories: int = 2) -> None:
        """Odds just below e^epsilon."""
        object.__setattr__(self, "epsilon", in_reach(epsilon))
        odds = odds_below(self.epsilon)
        object.__setattr__(self, "client", client.RandomizedResponse(odds, several(categories)))

    @staticmethod
    def with_odds(odds: Number, categories: int = 2) -> "RandomizedResponse":
        """The truth with exactly these odds to 1 against each other category."""
        exact = _checks.positive(odds=odds)
        if exact <= 1:
            raise InvalidArgument(f"odds = {odds}: give a number above 1")
        made = RandomizedResponse(epsilon_above(exact), categories)
        object.__setattr__(made, "client", client.RandomizedResponse(exact, several(categories)))
        return made

    @staticmethod
    def for_error(
        error: Number, confidence: Number, reports: int, categories: int = 2
    ) -> "RandomizedResponse":
        """The one of the smallest epsilon whose `error` is at most this."""
        return _forecast.for_error(
            lambda epsilon: RandomizedResponse(epsilon, categories), error, confidence, reports
        )

    @property
    def rates(self) -> Rates:
        """The truth, and any other."""
        truth = self.client.truth
        return Rates.of(truth, truth / self.client.odds)

    def well_formed(self, reports: Reports) -> Reports:
        """Those that are one of a client's reports."""
        return places_below(self.client.categories, reports)

    def supports(self, reports: Reports) -> Integers:
        """How often each category was told."""
        return counted(reports, self.client.categories)

    def spent(self) -> PrivacyLoss:
        """The term of that name; with lesser odds it is one with these, and more noise."""
        return PrivacyLoss.of(accounting.RandomizedResponse(self.epsilon, self.client.categories))

    def __repr__(self) -> str:
        """As in code."""
        return written(self, categories=self.client.categories)
