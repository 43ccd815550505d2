"""RAPPOR: reports again and again about a value that stays the same."""

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

_MOST_ROUNDS = 1000  # for which the loss is computed; more rounds are charged as infinitely many


@frozen
class Rappor(FrequencyEstimator):
    """Each client stores a noisy permanent answer, and reports it with fresh noise in each round.

    Guarantee: all reports ever made from one permanent answer are together
    ``epsilon``-differentially private for their client, and those of one round ``once``; the loss
    of several rounds is computed exactly and lies between the two. It holds as long as the value
    stays the same: a client whose value changes, or that loses its permanent answer and makes
    another, pays again. That a client reports, and when, is not covered.

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
        """Refuse rounds that cost more than all rounds together."""
        if self.once > self.epsilon:
            raise InvalidArgument(
                f"once = {shown(self.once)}: one round can't lose more than all of them, which is "
                f"epsilon = {shown(self.epsilon)}"
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
        """The part that runs on a device. Each of the two bits in which values differ may lose
        half of each epsilon."""
        permanent, reported = (_truth(odds_below(e / 2)) for e in (self.epsilon, self.once))
        instantaneous = (reported - (1 - permanent)) / (2 * permanent - 1)
        return client.Rappor(permanent, instantaneous, self.categories)

    @property
    def rates(self) -> Rates:
        """The probabilities of a set bit in one round, the own one and any other one."""
        reported = _truth(odds_below(self.once / 2))
        return Rates.of(reported, 1 - reported)

    def memoise(self, values: object) -> PermanentAnswers:
        """A permanent answer for one value, or one for each of several: for the clients to store.
        Make it once for each value that a client ever has."""
        return with_our_error(self.client.memoise, values)

    def randomize(self, permanent: PermanentAnswers) -> Reports:
        """The reports of one round, a row of truth values for each permanent answer."""
        return with_our_error(self.client.randomize, permanent)

    def well_formed(self, reports: Reports) -> Reports:
        """The reports that a client can have sent; the others are left out."""
        return boolean_rows(self.categories, reports)

    def supports(self, reports: Reports) -> Integers:
        """How often each bit was set in a round. Rounds share their permanent answers, so that
        the average of several has a larger error than independent ones would have."""
        return column_sums(reports, self.categories)

    def privacy_loss(self, rounds: int | None = None, unit: Unit = ONE_REPORT) -> PrivacyLoss:
        """The privacy loss of all reports of this many rounds together; without a number, of any
        number of rounds.

        It is not the sum over rounds, since they share their permanent answer. It is computed from
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
        """The privacy loss of one report in a single round, seen only among this many others.
        Further rounds use the same permanent answers and nothing is proven of several shuffled
        ones: charge those by `privacy_loss`."""
        return shuffled(self.once, reports, unit)


def _truth(odds: Fraction) -> Fraction:
    """The probability that a bit is true, from its odds."""
    return odds / (odds + 1)
