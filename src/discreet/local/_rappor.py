"""RAPPOR: repeated reports of a value that stays the same."""

from fractions import Fraction

from discreet import _checks, accounting
from discreet._exact import Number, shown
from discreet._fields import field, frozen
from discreet._unit import Unit
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.local import _forecast, client
from discreet.local._estimate import Rates
from discreet.local._mechanism import (
    ONE_REPORT,
    Categories,
    FrequencyEstimator,
    Reports,
    boolean_rows,
    column_sums,
    replaced,
    shuffled,
    with_our_error,
)
from discreet.local._odds import LocalEpsilon, epsilon_above, local_epsilon, odds_below
from discreet.local.client import PermanentAnswers
from discreet.local.client._bits import Integers

_MOST_ROUNDS = 1000  # more rounds are charged as infinitely many


@frozen
class Rappor(FrequencyEstimator):
    """Each client stores a noisy permanent answer, and reports it with fresh noise in each round.

    Guarantee: all reports ever made from one permanent answer are together
    ``epsilon``-differentially private for their client, and the reports of one round are
    ``once``-differentially private. The loss of several rounds lies between the two and is computed
    exactly. The guarantee holds as long as the value stays the same. A client pays again if its
    value changes, or if it loses its permanent answer and makes another. That a client reports, and
    when, is not covered.

    The permanent answers are the clients' state. `memoise` returns them to the caller, who stores
    them on the client's device; `randomize` takes them in place of values and stores nothing. A
    report is a row of truth values, one for each category (Basic RAPPOR: without a Bloom filter).

    >>> mechanism = Rappor(4, once=1, categories=64)
    >>> permanent = mechanism.memoise([3, 3, 7])
    >>> monday, tuesday = mechanism.randomize(permanent), mechanism.randomize(permanent)
    >>> mechanism.estimate(monday).values.shape
    (64,)
    >>> [round(mechanism.privacy_loss(rounds=n).epsilon(), 2) for n in (1, 2, 3, 10, None)]
    [1.0, 1.91, 2.65, 3.98, 4.0]

    Erlingsson, Pihur and Korolova (2014).
    """

    epsilon: LocalEpsilon = field(named=False)
    once: LocalEpsilon = field(kw_only=True)
    categories: Categories = field(kw_only=True)

    def __post_init__(self) -> None:
        if self.once > self.epsilon:
            raise InvalidArgument(
                f"once = {shown(self.once)}: one round can't cost more than all rounds; give at "
                f"most epsilon = {shown(self.epsilon)}"
            )

    @staticmethod
    def for_error(
        error: Number, confidence: Number, reports: int, *, epsilon: Number, categories: int
    ) -> "Rappor":
        """The mechanism of this epsilon over all rounds, and of the smallest ``once`` whose `error`
        in a round is at most this; `InvalidArgument` if that would exceed epsilon."""
        total = local_epsilon(epsilon=epsilon)

        def make(once: Fraction) -> Rappor:
            return Rappor(max(once, total), once=once, categories=categories)

        found = _forecast.for_error(make, error, confidence, reports)
        return Rappor(total, once=found.once, categories=categories)

    @property
    def client(self) -> client.Rappor:
        """The part that runs on a device. Two values differ in two bits, and each bit may cost half
        of each epsilon."""
        permanent, reported = (_truth(odds_below(e / 2)) for e in (self.epsilon, self.once))
        instantaneous = (reported - (1 - permanent)) / (2 * permanent - 1)
        return client.Rappor(permanent, instantaneous, self.categories)

    @property
    def rates(self) -> Rates:
        """The probabilities of a set bit in one round, the own one and any other one."""
        reported = _truth(odds_below(self.once / 2))
        return Rates.of(reported, 1 - reported)

    def memoise(self, values: object) -> PermanentAnswers:
        """Permanent answers for one value or for several, which the clients must store. Make one
        for each value that a client ever has."""
        return with_our_error(self.client.memoise, values)

    def randomize(self, permanent: PermanentAnswers) -> Reports:
        """The reports of one round, a row of truth values for each permanent answer."""
        return with_our_error(self.client.randomize, permanent)

    def well_formed(self, reports: Reports) -> Reports:
        """The reports that a client can have sent; the others are left out."""
        return boolean_rows(self.categories, reports)

    def supports(self, reports: Reports) -> Integers:
        """The number of reports of a round that set each bit. Rounds share their permanent answers,
        so the mean of several rounds has a larger error than with independent reports."""
        return column_sums(reports, self.categories)

    def privacy_loss(self, rounds: int | None = None, unit: Unit = ONE_REPORT) -> PrivacyLoss:
        """The privacy loss of all reports of this many rounds together; without a number, of any
        number of rounds.

        It is not the sum over rounds, since rounds share their permanent answers. It is computed
        from the joint probabilities of all rounds: two bits, each with half of the loss.
        """
        if rounds is not None and _checks.positive_count(rounds=rounds) == 1:
            each: Fraction = self.once / 2
        elif rounds is None or rounds > _MOST_ROUNDS:
            each = self.epsilon / 2
        else:
            each = min(self.epsilon, epsilon_above(self.client.worst_ratio(rounds))) / 2
        return PrivacyLoss(((accounting.Pure(each), 2),), replaced(unit))

    def shuffled(self, reports: int, unit: Unit = ONE_REPORT) -> PrivacyLoss:
        """The privacy loss of one report in a single round, seen only among this many others.
        Further rounds use the same permanent answers, and no theorem covers several shuffled
        rounds: charge these by `privacy_loss`."""
        return shuffled(self.once, reports, unit)


def _truth(odds: Fraction) -> Fraction:
    """The probability that a bit is true, from its odds."""
    return odds / (odds + 1)
