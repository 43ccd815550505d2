"""Budget: questions about salaries, until the ledger refuses."""

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from discreet._budget import Limit
from discreet._unit import Unit
from discreet.accounting import Filter, PrivacyLoss, Pure, Spent
from discreet.errors import BudgetExceeded
from discreet.explore._page import (
    Control,
    ControlValues,
    Experiment,
    ExperimentOutcome,
    History,
    NoisyNumber,
    Overlay,
    Page,
    Preset,
    QuestionStep,
    View,
    shown,
)
from discreet.explore.pages._texts import (
    ABOUT_EPSILON,
    about,
    at_most,
    meaning_of_both,
    program,
)
from discreet.plots import Axis, Chart, RuleLine, Series

if TYPE_CHECKING:
    from discreet.ledger import Ledger
    from discreet.query import Table

STAFF = Path(__file__).parents[1] / "static" / "staff.csv"

_DELTA = 1e-6
_MOST = 22  # questions on the axis
_PRICES = (0.25, 0.5, 1, 2)
_PERSON = Unit("person")
_NOTHING_KNOWN = "Nothing is published yet, so nobody can learn anything about you from these data."
_BASIC, _ADVANCED = "basic composition", "advanced composition"
_LINES: tuple[tuple[str, str, int], ...] = (
    ("the ledger", "dots", 0),
    ("basic", "line", 1),
    ("advanced", "line", 2),
    ("tight", "line", 3),
)

QUESTIONS = {
    "how many people": "SELECT COUNT(*) AS people FROM staff",
    "mean salary": "SELECT AVG(salary) AS pay FROM staff",
    "histogram of salaries": (
        "SELECT WIDTH_BUCKET(salary, 0, 100000, 5) AS bin, COUNT(*) AS people FROM staff "
        "GROUP BY WIDTH_BUCKET(salary, 0, 100000, 5)"
    ),
}
_BINS = ("below 20k", "to 40k", "to 60k", "to 80k", "to 100k", "above")

_CODE = """
import discreet as dp
from discreet.accounting import PrivacyLoss, Pure
from discreet.errors import BudgetExceeded

limit = dp.Limit(epsilon={limit}, delta={delta})
ledger = dp.Ledger.in_memory(unit=dp.Unit("person"), limit=limit)
# the price of each question
asked = [{asked}]
charged, refusal = PrivacyLoss(), ""
for price in asked:
    try:
        ledger.charge(Pure(price), purpose="a question", by="you")
        charged = charged + Pure(price)
    except BudgetExceeded as refused:
        refusal = str(refused)
spent = float(ledger.spent().epsilon)  # by the filter, which decides
left = ledger.count_left(Pure({epsilon}))  # how many more are admitted

# as if all questions had been fixed beforehand:
basic = charged.explain(limit.delta).figures["basic composition"]
advanced = charged.explain(limit.delta).figures["advanced composition"]
tight = charged.epsilon(limit.delta)
"""

Prices = tuple[float, ...]


def view(values: ControlValues) -> View:
    """The budget after these questions, and what one more would do."""
    price, limit, asked = values["epsilon"], values["limit"], values["asked"]
    left, totals = _left(limit, asked, price), _totals(limit, asked)
    spent, basic, advanced, tight = totals
    figures = {"spent": spent, "left": left, "basic": basic, "advanced": advanced, "tight": tight}
    return View(
        says=f"{_history(limit, asked)} {_offer(limit, asked, price)}",
        meaning=meaning_of_both(spent, _DELTA) if asked else _NOTHING_KNOWN,
        charts=(_chart(limit),),
        heads=("question", "price ε", "by the ledger", "basic", "advanced", "tight"),
        rows=(("all together", "", *map(at_most, totals)),),
        figures=figures,
        code=program(
            _CODE, epsilon=price, limit=limit, asked=", ".join(map(shown, asked)), delta=_DELTA
        ),
        idle=("limit",) if asked else (),
        step=_step(limit, asked, price),
    )


def _history(limit: float, asked: Prices) -> str:
    if not asked:
        return f"Nothing is spent of ε = {limit:g}."
    have = "question has" if len(asked) == 1 else "questions have"
    return f"{len(asked)} {have} spent ε = {at_most(_reached(limit, asked))} of {limit:g}."


def _offer(limit: float, asked: Prices, price: float) -> str:
    """The effect of one more question of this price."""
    reached, left = at_most(_reached(limit, _more(asked, price))), _left(limit, asked, price)
    one = "One more" if asked else "A question"
    if not left:
        return f"{one} of ε = {price:g} would reach {reached}, so the ledger will refuse it."
    again = "the last of this price" if left == 1 else f"{left} of this price fit"
    return f"{one} of ε = {price:g} brings it to {reached}; {again}."


def _step(limit: float, asked: Prices, price: float) -> QuestionStep:
    after, number = _more(asked, price), len(asked) + 1
    reached = _reached(limit, after)
    if not _admits(limit, after):
        cheaper = [one for one in _PRICES if _left(limit, asked, one)]
        fits = f" A cheaper one, of ε = {max(cheaper):g}, still fits." if cheaper else ""
        return QuestionStep(
            shown(price),
            (Overlay(0, Series("refused", "dots", ((number, reached),), 3)),),
            refusal=(
                f"Question {number} is refused: with ε = {price:g} more, {at_most(reached)} would "
                f"be spent, and the budget is {limit:g}. No salary was read.{fits}"
            ),
            ledger_words=_words(limit, asked, price),
        )
    totals = _totals(limit, after)
    before_after = zip(_totals(limit, asked), totals, strict=True)
    return QuestionStep(
        shown(price),
        tuple(
            Overlay(0, Series(label, kind, ((number, total),), style))
            for (label, kind, style), total in zip(_LINES, totals, strict=True)
        ),
        row=(shown(price), *(f"+{about(two - one)}" for one, two in before_after)),
    )


def _more(asked: Prices, price: float) -> Prices:
    return tuple(sorted((*asked, price)))


def _chart(limit: float) -> Chart:
    return Chart(
        "What the questions cost together",
        "Each line adds up the same questions in another way; the ledger’s dots stop at the limit.",
        Axis("questions asked", 0, _MOST),
        Axis("epsilon (ε) spent", 0, limit + max(_PRICES)),
        tuple(Series(label, kind, ((0, 0.0),), style) for label, kind, style in _LINES),
        (RuleLine("y", limit, "limit"),),
    )


def _totals(limit: float, asked: Prices) -> tuple[float, float, float, float]:
    """The cost of these questions together, in the order of the lines."""
    return (_reached(limit, asked), *_theorems(asked))


@lru_cache(maxsize=8)
def _filter(limit: float) -> Filter:
    return Filter.for_limit(Limit(epsilon=limit, delta=_DELTA))


@lru_cache(maxsize=4096)
def _spent(limit: float, asked: Prices) -> Spent:
    """The filter's sums after these charges."""
    if not asked:
        return _filter(limit).start
    return _filter(limit).add(_spent(limit, asked[:-1]), PrivacyLoss.of(Pure(asked[-1])))


def _admits(limit: float, asked: Prices) -> bool:
    return _filter(limit).admits(_spent(limit, asked))


@lru_cache(maxsize=4096)
def _reached(limit: float, asked: Prices) -> float:
    return float(_filter(limit).reached(_spent(limit, asked)) or 0)


@lru_cache(maxsize=4096)
def _left(limit: float, asked: Prices, price: float) -> int:
    """How many more questions of this price the ledger admits."""
    return _filter(limit).count_left(_spent(limit, asked), PrivacyLoss.of(Pure(price)))


@lru_cache(maxsize=4096)
def _theorems(asked: Prices) -> tuple[float, float, float]:
    """Basic, advanced and tight composition of these questions."""
    loss = _loss(asked)
    figures = loss.explain(_DELTA).figures
    return figures[_BASIC], figures[_ADVANCED], loss.epsilon(_DELTA)


def _loss(asked: Prices) -> PrivacyLoss:
    return PrivacyLoss.of(*map(Pure, asked))


@lru_cache(maxsize=4096)
def _words(limit: float, asked: Prices, price: float) -> str:
    """The ledger's own words when it refuses one more question of this price."""
    from discreet.ledger import Ledger  # it loads a database

    most = Limit(epsilon=limit, delta=_DELTA)
    ledger = Ledger.in_memory(unit=_PERSON, limit=most)
    for one in asked:
        ledger.charge(Pure(one), purpose="a question", by="you")
    try:
        ledger.charge(Pure(price), purpose="a question", by="you")
    except BudgetExceeded as refused:
        return str(refused)
    raise AssertionError("the filter and the ledger disagree")


# An answer to one question


def ask(values: ControlValues) -> ExperimentOutcome:
    """One fresh answer, and the numbers without noise, which only this page knows."""
    from discreet.ledger import Ledger

    question, epsilon = values["question"], values["epsilon"]
    ledger = Ledger.in_memory(unit=_PERSON, limit=Limit(epsilon=epsilon))
    answer = _table(ledger).sql(QUESTIONS[question], epsilon=epsilon)
    return outcome_of(question, answer.rows())


def outcome_of(question: str, rows: Sequence[Mapping[str, object]]) -> ExperimentOutcome:
    """The rows of an answer as points. A mean is missing if the noisy count is 0 or less."""
    truths = _truths()[question]
    found = [_interval(row) for row in rows]
    if None in found:
        return ExperimentOutcome(
            f"{question}: no number, since the noise left nobody to divide by; it is paid all the "
            "same"
        )
    labels = _BINS if len(truths) > 1 else ("",)
    points = tuple(
        NoisyNumber(label, *ends, truth)
        for label, ends, truth in zip(labels, filter(None, found), truths, strict=True)
    )
    return ExperimentOutcome(f"{question}: {'; '.join(map(_point_text, points))}", points)


def _interval(row: Mapping[str, object]) -> tuple[float, float, float] | None:
    """The noisy number of a row, and the ends of its interval."""
    [name] = [name.removesuffix("_low") for name in row if name.endswith("_low")]
    ends = [row[f"{name}{end}"] for end in ("", "_low", "_high")]
    if None in ends:
        return None
    value, low, high = (float(str(end)) for end in ends)
    return value, low, high


def _point_text(point: NoisyNumber) -> str:
    if point.label:
        return f"{point.label} {point.value:,.0f}"
    ends = f"{point.low:,.0f} to {point.high:,.0f}"
    return f"{point.value:,.0f} ({ends}); without noise {point.truth:,.0f}"


def _table(ledger: "Ledger") -> "Table":
    from discreet.query import Column, Table  # they load an engine

    return Table(
        STAFF,
        name="staff",
        unit=_PERSON,
        columns={"salary": Column.integer(0, 200_000)},
        rows=1,
        ledger=ledger,
    )


@lru_cache(maxsize=1)
def _truths() -> dict[str, tuple[float, ...]]:
    """The answers without noise."""
    with STAFF.open(encoding="utf-8", newline="") as file:
        salaries = [int(row["salary"]) for row in csv.DictReader(file)]
    bins = Counter(min(salary // 20_000, 5) for salary in salaries)
    true = ((len(salaries),), (fmean(salaries),), tuple(bins[place] for place in range(6)))
    return dict(zip(QUESTIONS, true, strict=True))


PAGE = Page(
    name="budget",
    title="Budget",
    lead=(
        "Each answer about 100 salaries costs a little privacy, and when the budget is spent the "
        "ledger refuses to answer."
    ),
    question="Why did one question cost more than another, and why is the last one refused?",
    answer=(
        "A question costs the ε that it was asked with: a larger ε buys less noise. The "
        "ledger adds up what was spent, and refuses the question that would go beyond the "
        "limit."
    ),
    notes=(
        (
            "Why did the fourth question cost more? Each question costs the ε that stood on the "
            "slider when it was asked: a larger ε buys a smaller error and spends more. The table "
            "shows what each one added. At the same price all questions cost the same by the "
            "ledger."
        ),
        (
            "Ask the same question several times. The answers differ, since each has fresh noise. "
            "Their average comes closer to the truth with each one: this is why every answer must "
            "be paid for."
        ),
        (
            "Epsilon (ε) bounds what an attacker can learn about one person. Basic composition "
            "adds up the epsilons. Tight composition is smaller if one accepts a small δ, here "
            "10⁻⁶, and fixes the questions beforehand; here it helps after some "
            "twenty questions: 20 of ε = 0.25 cost 4.9 instead of 5. Advanced composition, an "
            "older bound, charges the first question most: 2.953 for ε = 0.5, and 1.029 for the "
            "fourth one. It is smaller than the sum "
            "only for many questions of a small ε: 50 of ε = 0.1 cost 4.25 instead of 5."
        ),
        (
            "The ledger decides by a filter, which is valid even if each question depends on all "
            "earlier answers. It, too, uses δ, so for many small questions it admits more than the "
            "budget divided by ε: 296 of ε = 0.1 instead of 100, for a budget of 10."
        ),
    ),
    controls=(
        Control("epsilon", "next question’s ε", _PRICES, 0.5, term=ABOUT_EPSILON),
        Control(
            "limit",
            "the whole budget ε",
            (1, 2, 5),
            5,
            "Fixed once the first question is asked.",
            (
                "The most epsilon that all answers together may cost. The ledger refuses a "
                "question that would go beyond."
            ),
        ),
        Control("question", "next question", tuple(QUESTIONS), "mean salary"),
    ),
    presets=(
        Preset("a dear question", {"epsilon": 2}),
        Preset("a small budget", {"limit": 1, "epsilon": 0.25}),
    ),
    compute=view,
    experiments=(
        Experiment(
            "ask",
            "Ask",
            "answers so far",
            ("epsilon", "question"),
            ask,
            is_charged=True,
        ),
    ),
    history=History(
        price="epsilon",
        topic="question",
        fixed=("limit",),
        admits=lambda values: _admits(values["limit"], values["asked"]),
    ),
)
