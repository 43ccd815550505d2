"""RAPPOR: reports again and again about a value that stays the same."""

from dataclasses import dataclass
from fractions import Fraction

from discreet import _checks, accounting
from discreet._exact import Number, shown
from discreet._unit import Unit
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.local import _forecast, client
from discreet.local._estimate import Rates
from discreet.local._mechanism import (
    ONE_REPORT,
    FrequencyEstimator,
    Reports,
    added_up,
    asked,
    replaced,
    rows_of_truths,
    several,
    shuffled,
)
from discreet.local._odds import epsilon_above, in_reach, odds_below
from discreet.local.client import PermanentAnswers
from discreet.local.client._bits import Integers

_MOST_ROUNDS = 1000  # of which the loss is computed; that of more is charged as that of any number


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Rappor(FrequencyEstimator):
    """Each client keeps a noisy permanent answer, and tells it with fresh noise in each round.

    Guarantee: all reports ever made from one permanent answer are together
    ``epsilon``-differentially private for their client, and those of one round ``once``; the loss
    of some rounds is computed exactly, and grows from the one to the other. It holds as long as
    the value stays: a client whose value changes, or who loses the permanent answer and makes
    another, pays again. That someone reports, and when, is not covered.

    The permanent answers are the clients' state. `memoise` hands them to the caller, who stores
    them on the client's device; `randomize` takes them in place of values, and keeps nothing. A
    report is a row of truth values, one for each category (Basic RAPPOR: without a Bloom filter).

    >>> mechanism = Rappor(4, once=1, categories=64)
    >>> kept = mechanism.memoise([3, 3, 7])
    >>> monday, tuesday = mechanism.randomize(kept), mechanism.randomize(kept)
    >>> mechanism.estimate(monday).values.shape
    (64,)
    >>> [round(mechanism.privacy_loss(rounds=n).epsilon(), 2) for n in (1, 2, 3, 10, None)]
    [1.0, 1.91, 2.65, 3.98, 4.0]

    Erlingsson, Pihur and Korolova (2014).
    """

    epsilon: Fraction
    once: Fraction
    client: client.Rappor

    def __init__(self, epsilon: Number, *, once: Number, categories: int) -> None:
        """Each of the two bits in which values differ may lose half of each epsilon."""
        object.__setattr__(self, "epsilon", in_reach(epsilon))
        object.__setattr__(self, "once", in_reach(once, "once"))
        if self.once > self.epsilon:
            raise InvalidArgument(
                f"once = {shown(self.once)}: one round can't lose more than all of them, which is "
                f"epsilon = {shown(self.epsilon)}"
            )
        kept, reported = (_told(odds_below(e / 2)) for e in (self.epsilon, self.once))
        told = (reported - (1 - kept)) / (2 * kept - 1)
        object.__setattr__(self, "client", client.Rappor(kept, told, several(categories)))

    @staticmethod
    def for_error(
        error: Number, confidence: Number, reports: int, *, epsilon: Number, categories: int
    ) -> "Rappor":
        """The one of this epsilon over all rounds, and of the smallest ``once`` whose `error` in a
        round is at most this; `InvalidArgument` if that would exceed epsilon."""
        total = in_reach(epsilon)

        def make(once: Fraction) -> Rappor:
            return Rappor(max(once, total), once=once, categories=categories)

        found = _forecast.for_error(make, error, confidence, reports)
        return Rappor(total, once=found.once, categories=categories)

    @property
    def rates(self) -> Rates:
        """Of one round."""
        reported = _told(odds_below(self.once / 2))
        return Rates.of(reported, 1 - reported)

    def memoise(self, values: object) -> PermanentAnswers:
        """A permanent answer for one value, or one for each of several: for the clients to keep.
        Make it once for each value that a client ever has."""
        return asked(self.client.memoise, values)

    def randomize(self, permanent: PermanentAnswers) -> Reports:
        """The reports of one round, a row of truth values for each permanent answer."""
        return asked(self.client.randomize, permanent)

    def well_formed(self, reports: Reports) -> Reports:
        """Those that are a row of truth values, one for each category."""
        return rows_of_truths(self.client.categories, reports)

    def supports(self, reports: Reports) -> Integers:
        """How often each bit was set in a round. Rounds share their permanent answers, so that
        an average of them is off by more than independent ones would be."""
        return added_up(reports, self.client.categories)

    def privacy_loss(self, rounds: int | None = None, unit: Unit = ONE_REPORT) -> PrivacyLoss:
        """What the reports of so many rounds cost together, or those of any number of rounds.

        It is not the sum of single rounds, which share their permanent answer, but computed from
        the probabilities of all of them: two bits, each with half of the loss.
        """
        if rounds is not None and _checks.positive_count(rounds=rounds) == 1:
            each: Fraction = self.once / 2
        elif rounds is None or rounds > _MOST_ROUNDS:
            each = self.epsilon / 2
        else:
            each = min(self.epsilon, epsilon_above(self.client.worst_ratio(rounds))) / 2
        return PrivacyLoss(((accounting.Pure(each), 2),), replaced(unit))

    def shuffled(self, reports: int, unit: Unit = ONE_REPORT) -> PrivacyLoss:
        """What one report costs in the only round that there is, if it is only seen among so many
        others. Further rounds are of the same permanent answers: nothing is proven of several, so
        charge those by `privacy_loss`."""
        return shuffled(self.once, reports, unit)

    def __repr__(self) -> str:
        """As in code."""
        return (
            f"Rappor({shown(self.epsilon)}, once={shown(self.once)}, "
            f"categories={self.client.categories})"
        )


def _told(odds: Fraction) -> Fraction:
    return odds / (odds + 1)
