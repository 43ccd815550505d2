"""Several questions to one table planned together: common sums are paid and drawn once.

Questions with equal keys and conditions become one question with all their aggregates. The whole
price is shared by the number of aggregates. Where a delta is allowed, the epsilons with Gaussian
noise are raised as far as the exact composition of all questions allows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from discreet import _html
from discreet._bisection import edge
from discreet._budget import AnyLimit, has_paid
from discreet._exact import Number, decimal_down, decimal_up, fraction, shown
from discreet.accounting import Filter, PrivacyLoss, Spent
from discreet.errors import BudgetExceeded, InvalidArgument, NoBound
from discreet.mechanisms.quantiles import QuantileIntervals
from discreet.query._answers._answer import Answer
from discreet.query._answers._forecast import Forecast
from discreet.query._expressions._expressions import Aggregate
from discreet.query._expressions._query import PostProcessing, Query
from discreet.query._plan._price import ChoiceOfKeys, Noise, PartMechanism, QuestionPrice
from discreet.query._plan._private_keys import refuse_private_keys
from discreet.query._questions._admission import admits_all, count_together
from discreet.query._questions._question import Question, announce_useless, released
from discreet.query._table import Table

_MOST_COUNTED = 10_000
_HIGHEST = 16  # times the equal share: no composition gains more
_FACTORS = Fraction(1), Fraction(1, 2), Fraction(1, 16)  # one of them fits
_CONFIDENCE = Fraction(95, 100)  # at which kinds of noise are compared
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class PlannedQuestion:
    """One question of a workload with its price; ``serves`` are the places of the given questions
    that it answers."""

    question: Question
    price: QuestionPrice
    privacy_loss: PrivacyLoss
    serves: tuple[int, ...]

    def forecast(self, *, confidence: Number = 0.95, group_size: int | None = None) -> Forecast:
        """The expected errors at this price."""
        return self.question.forecast(self.price, confidence=confidence, group_size=group_size)


@dataclass(frozen=True, slots=True)
class Workload:
    """A plan of several questions to one table, which costs nothing and reads no data.

    ``epsilon`` bounds the cost of all its questions together, at ``delta``. ``release`` asks all of
    them, ``planned.question.release(planned.price)`` one.
    """

    questions: tuple[PlannedQuestion, ...]
    asked: tuple[str, ...]
    epsilon: Fraction
    delta: Fraction

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The privacy loss of all questions together."""
        return _together(self.questions)

    def count_left(self, chosen: Filter, spent: Spent | None = None) -> int:
        """The number of times that a ledger with this filter admits the whole workload, its
        questions charged one by one; at most 10,000."""
        losses = [one.privacy_loss for one in self.questions]
        sums = chosen.start if spent is None else spent
        return count_together(chosen, losses, sums, most=_MOST_COUNTED)

    def count_in(self, limit: AnyLimit) -> int:
        """The same for a new ledger with this limit."""
        return self.count_left(Filter.for_limit(limit))

    def release(self, *, by: str = "owner", request: str | None = None) -> tuple[Answer, ...]:
        """The private answers, in the order of ``questions``; each is charged before it reads rows.

        Before the first charge, the ledger's filter must admit all of them. A charge by somebody
        else in the meantime can still have a later question refused; then ``request`` pays no
        answer twice: the same id gives the same answers.
        """
        ledger = self.questions[0].question.table.ledger
        requests = [request and f"{request}/{place}" for place in range(len(self.questions))]
        losses = (one.privacy_loss for one in self.questions)
        if not admits_all(ledger, list(zip(losses, requests, strict=True)), by):
            raise BudgetExceeded(
                f"the ledger does not admit all {len(self.questions)} questions of this plan, so "
                "none was asked; plan with a smaller epsilon, or ask fewer"
            )
        for one, own in zip(self.questions, requests, strict=True):
            if not has_paid(ledger, own, by):
                announce_useless(one.question, one.price)
        return tuple(
            released(one.question, one.price, by=by, request=own, is_announced=True)
            for one, own in zip(self.questions, requests, strict=True)
        )

    def rows(self) -> list[list[str]]:
        """For each planned question, as texts: the given questions, SQL, and the cost."""
        return [
            [
                ", ".join(str(place + 1) for place in one.serves),
                str(one.question.query),
                shown(decimal_up(one.price.epsilon, _DIGITS)),
            ]
            for one in self.questions
        ]

    def __str__(self) -> str:
        lines = [f"  ε = {cost}  {sql}  (for {serves})" for serves, sql, cost in self.rows()]
        return "\n".join([_summary(self), *lines])

    def _repr_html_(self) -> str:
        """The plan as a table in notebooks."""
        return _html.table(_summary(self), ("for questions", "asked", "epsilon"), self.rows())


def plan_workload(
    table: Table, questions: Sequence[Question | str], *, epsilon: Number, delta: Number = 0
) -> Workload:
    """A plan that pays for several questions together at most this epsilon and delta; it costs
    nothing and reads no data.

    Questions with equal keys and conditions are asked as one, so that common sums are paid once.
    With a ``delta``, Gaussian noise is tried, too, at the exact composition of all questions.
    """
    whole, given = QuestionPrice(epsilon, delta), _checked(table, questions)
    merged = _merged(table, given)
    laplace = _at(merged, whole, Noise.LAPLACE, Fraction(1))
    if whole.delta == 0:
        return Workload(laplace, _texts(given), whole.epsilon, whole.delta)

    def fits(factor: Fraction) -> bool:
        try:
            offered = _at(merged, whole, Noise.GAUSSIAN, factor)
            return _together(offered).epsilon(whole.delta) <= whole.epsilon
        except (InvalidArgument, NoBound):
            return False

    offers = [laplace]
    if (good := next((factor for factor in _FACTORS if fits(factor)), None)) is not None:
        factor = edge(fits, good, Fraction(_HIGHEST), digits=3)
        offers.append(_at(merged, whole, Noise.GAUSSIAN, factor))
    best = min(offers, key=_noise_of)
    return Workload(best, _texts(given), whole.epsilon, whole.delta)


def _at(
    merged: Sequence[tuple[Question, tuple[int, ...]]],
    whole: QuestionPrice,
    kind: Noise,
    factor: Fraction,
) -> tuple[PlannedQuestion, ...]:
    """The questions by this kind of noise, each at its share of the epsilon times the factor."""
    asked = [len(set(question.plan.sources)) for question, _ in merged]
    planned = []
    for (question, serves), aggregates in zip(merged, asked, strict=True):
        share = Fraction(aggregates, sum(asked))
        epsilon = decimal_down(whole.epsilon * share * factor, digits=12)
        delta = whole.delta if kind is Noise.GAUSSIAN else 0
        price = QuestionPrice(epsilon, delta, noise=kind)
        loss = question.price(price, _CONFIDENCE).privacy_loss
        planned.append(PlannedQuestion(question, price, loss, serves))
    return tuple(planned)


def _together(questions: Sequence[PlannedQuestion]) -> PrivacyLoss:
    terms = tuple(pair for one in questions for pair in one.privacy_loss.terms)
    return PrivacyLoss(terms, questions[0].privacy_loss.unit)


def _noise_of(questions: Sequence[PlannedQuestion]) -> float:
    """A measure of all noise together: the sum of the logarithms of its standard deviations."""
    priced = (one.question.price(one.price, _CONFIDENCE) for one in questions)
    return math.fsum(
        math.log(_width(mechanism)) for plan in priced for mechanism in plan.mechanisms.values()
    )


def _width(mechanism: PartMechanism) -> float:
    if isinstance(mechanism, QuantileIntervals):
        return mechanism.padding
    if isinstance(mechanism, ChoiceOfKeys):
        return max(mechanism.error(_CONFIDENCE), 0.5)
    return mechanism.stddev_of_noise()


def _texts(questions: Sequence[Question]) -> tuple[str, ...]:
    return tuple(str(question.query) for question in questions)


def _checked(table: Table, questions: Sequence[Question | str]) -> list[Question]:
    """The questions, each to this table."""
    if isinstance(questions, str) or not isinstance(questions, Sequence) or not questions:
        raise InvalidArgument("questions: give a list of at least one question or SQL text")
    found = [table.question(one) if isinstance(one, str) else one for one in questions]
    for one in found:
        if not isinstance(one, Question):
            raise InvalidArgument(f"a question is of type {type(one).__name__}: give SQL")
        refuse_private_keys(one.plan, "a plan of several questions")
        if one.table.declaration != table.declaration:
            raise InvalidArgument("a question is for another table: plan each table by itself")
    return found


def _merged(table: Table, questions: Sequence[Question]) -> list[tuple[Question, tuple[int, ...]]]:
    """One question for all that have these keys and this condition, with their places. A question
    that computes something from its answer stays as it is."""
    found: dict[Query, list[int]] = {}
    for place, question in enumerate(questions):
        asked = question.query
        common = replace(asked, aggregates=()) if asked.after == PostProcessing() else asked
        found.setdefault(common, []).append(place)
    merged = []
    for common, places in found.items():
        if common.aggregates:
            merged.append((questions[places[0]], tuple(places)))
            continue
        keys, where = common.keys, common.where
        aggregates = [one for place in places for one in questions[place].query.aggregates]
        names = questions[places[0]].query.key_names
        query = Query(table.declaration.name, _distinct(aggregates, names), keys, where)
        merged.append((Question.of(table, query), tuple(places)))
    return merged


def _distinct(aggregates: Sequence[Aggregate], keys: Sequence[str]) -> tuple[Aggregate, ...]:
    """Each function of an argument once, under a name that no other one has."""
    found: dict[tuple[object, ...], Aggregate] = {}
    taken = set(keys)
    for one in aggregates:
        if (asked := (one.function, one.arguments, one.level)) in found:
            continue
        name, number = one.name, 2
        while name in taken:
            name, number = f"{one.name}_{number}", number + 1
        taken.add(name)
        found[asked] = replace(one, name=name)
    return tuple(found.values())


def _summary(plan: Workload) -> str:
    delta = f", δ = {shown(plan.delta)}" if plan.delta else ""
    reached = fraction(plan.privacy_loss.epsilon(plan.delta))
    return (
        f"{len(plan.asked)} questions, asked as {len(plan.questions)}, cost together "
        f"ε = {shown(decimal_up(reached, _DIGITS))}{delta}"
    )
