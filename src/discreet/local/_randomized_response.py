"""Randomized response: a report is one category."""

from fractions import Fraction
from typing import Annotated

from discreet import _checks, accounting
from discreet._exact import Number
from discreet._fields import Converted, field, frozen, optional
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.local import _forecast, client
from discreet.local._estimate import Rates
from discreet.local._mechanism import (
    Categories,
    FrequencyEstimator,
    ReportingMechanism,
    Reports,
    histogram,
    integers_below,
)
from discreet.local._odds import LocalEpsilon, costs_at_most, epsilon_above, odds_below
from discreet.local.client._bits import Integers


def _above_one(**named: object) -> Fraction:
    exact = _checks.positive(**named)
    if exact > 1:
        return exact
    (name,) = named
    raise InvalidArgument(f"{name} = {_checks.quoted(exact)}: give a number above 1")


@frozen
class RandomizedResponse(ReportingMechanism, FrequencyEstimator):
    """Each client reports its own category with odds e^epsilon to 1 against each other one.

    Guarantee: each report is epsilon-differentially private for its client whatever the others
    do, and whoever collects it, if a client reports once. That a client reports, and when, is not
    covered. It is best for few categories, up to about 3 e^epsilon. A report is a category. The
    odds are just below e^epsilon, or exact by `with_odds`.

    Example with odds 3: the client flips a coin, and answers truthfully at heads. At tails a second
    coin decides the answer.

    >>> import numpy as np
    >>> coins = RandomizedResponse.with_odds(3)
    >>> coins.privacy_loss().epsilon()  # ln 3, rounded up
    1.0986122886681098
    >>> values = np.repeat([0, 1], [600, 400])
    >>> answer = coins.estimate(coins.randomize(values))
    >>> found = answer.interval(1 - 1e-9)
    >>> bool(found.lower[1] <= 0.4 <= found.upper[1])
    True

    Warner (1965); Kairouz, Bonawitz and Ramage (2016) for more than two categories.
    """

    epsilon: LocalEpsilon
    categories: Categories = 2
    odds: Annotated[Converted[Fraction | None, Number | None], optional(_above_one)] = field(
        default=None, kw_only=True, brief=True
    )

    def __post_init__(self) -> None:
        if self.odds is not None and not costs_at_most(self.odds, self.epsilon):
            raise InvalidArgument(
                f"odds = {_checks.quoted(self.odds)}: with epsilon = "
                f"{_checks.quoted(self.epsilon)} give at most e^epsilon, or use with_odds"
            )

    @staticmethod
    def with_odds(odds: Number, categories: int = 2) -> "RandomizedResponse":
        """The mechanism that reports the truth with exactly these odds to 1 against each other
        category."""
        exact = _above_one(odds=odds)
        return RandomizedResponse(epsilon_above(exact), categories, odds=exact)

    @staticmethod
    def for_error(
        error: Number, confidence: Number, reports: int, categories: int = 2
    ) -> "RandomizedResponse":
        """The mechanism of the smallest epsilon whose `error` is at most ``error``."""
        return _forecast.for_error(
            lambda epsilon: RandomizedResponse(epsilon, categories), error, confidence, reports
        )

    @property
    def client(self) -> client.RandomizedResponse:
        """The part that runs on a device."""
        odds = odds_below(self.epsilon) if self.odds is None else self.odds
        return client.RandomizedResponse(odds, self.categories)

    @property
    def rates(self) -> Rates:
        """The probabilities of the own category, and of any other one."""
        own = self.client.truth
        return Rates.of(own, own / self.client.odds)

    def well_formed(self, reports: Reports) -> Reports:
        """The reports that a client can have sent; the others are left out."""
        return integers_below(self.categories, reports)

    def supports(self, reports: Reports) -> Integers:
        """The number of reports of each category."""
        return histogram(reports, self.categories)

    def spent(self) -> PrivacyLoss:
        """One `accounting.RandomizedResponse`; smaller odds only add noise."""
        return PrivacyLoss.of(accounting.RandomizedResponse(self.epsilon, self.categories))
