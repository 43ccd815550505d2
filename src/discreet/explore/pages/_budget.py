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
from discreet.accounting import Filter, PrivacyLoss, Pure
from discreet.errors import BudgetExceeded
from discreet.explore._page import (
    Control,
    ControlValues,
    Experiment,
    ExperimentOutcome,
    NoisyNumber,
    Page,
    View,
)
from discreet.explore.pages._texts import at_most, program
from discreet.plots import Axis, Chart, RuleLine, Series

if TYPE_CHECKING:
    from discreet.ledger import Ledger
    from discreet.query import Table

STAFF = Path(__file__).parents[1] / "static" / "staff.csv"

_DELTA = 1e-6
_MOST = 24
_PERSON = Unit("person")
_BASIC, _ADVANCED = "basic composition", "advanced composition"

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
from discreet.accounting import Pure
from discreet.errors import BudgetExceeded

limit = dp.Limit(epsilon={limit}, delta={delta})
ledger = dp.Ledger.in_memory(unit=dp.Unit("person"), limit=limit)
charged, refusal = 0, ""
for question in range({asked}):
    try:
        ledger.charge(Pure({epsilon}), purpose="a question", by="you")
        charged += 1
    except BudgetExceeded as refused:
        refusal = str(refused)
spent = float(ledger.spent().epsilon)   # by the filter, which decides
left = ledger.count_left(Pure({epsilon}))  # how many more are admitted

asked = {asked} * Pure({epsilon})       # were they all fixed beforehand:
basic = asked.explain(limit.delta).figures["basic composition"]
advanced = asked.explain(limit.delta).figures["advanced composition"]
tight = asked.epsilon(limit.delta)
"""


def view(values: ControlValues) -> View:
    """The budget after some questions of this epsilon."""
    epsilon, limit, asked = values["epsilon"], values["limit"], values["asked"]
    charged, refusal, reached, left = _charged(epsilon, limit)[asked]
    theorems = [_theorems(epsilon, count) for count in range(_MOST + 1)]
    basic, advanced, tight = theorems[asked]
    words = f"# the refusal: {refusal}\n" if refusal else ""
    figures = {
        "charged": charged,
        "spent": reached,
        "left": left,
        "basic": basic,
        "advanced": advanced,
        "tight": tight,
    }
    if refusal:
        says = (
            f"Question {charged + 1} is refused: ε = {epsilon:g} more would exceed the budget of "
            f"{limit:g}. The ledger’s own words stand under “How this is computed”."
        )
    else:
        noun = "question" if charged == 1 else "questions"
        more = "no more question" if not left else f"{left} more"
        says = (
            f"After {charged} {noun} of ε = {epsilon:g} each, ε = {at_most(reached)} of "
            f"{limit:g} is spent. The ledger admits {more} of this price."
        )
    return View(
        says=says,
        charts=(_chart(epsilon, limit, asked, theorems),),
        heads=(
            "way to add up",
            f"ε of {asked} question{'' if asked == 1 else 's'}",
            "when it is valid",
        ),
        rows=(
            ("the ledger’s filter", at_most(reached), f"always; it admitted {charged}"),
            ("basic composition", at_most(basic), "always"),
            ("advanced composition", at_most(advanced), "at δ = 10⁻⁶, fixed beforehand"),
            ("tight (best of all)", at_most(tight), "at δ = 10⁻⁶, fixed beforehand"),
        ),
        figures=figures,
        code=program(_CODE, epsilon=epsilon, limit=limit, asked=asked, delta=_DELTA) + words,
        is_refused=bool(refusal),
    )


def _chart(
    epsilon: float, limit: float, asked: int, theorems: list[tuple[float, float, float]]
) -> Chart:
    steps = _charged(epsilon, limit)
    ways = zip(("basic", "advanced", "tight"), zip(*theorems, strict=True), strict=True)
    lines = [
        Series(name, "line", tuple(enumerate(line)), style)
        for style, (name, line) in enumerate(ways, 1)
    ]
    admitted = tuple((count, step[2]) for count, step in enumerate(steps) if not step[1])
    return Chart(
        "What the questions cost together",
        "Each line adds up the same questions in another way; the ledger’s dots stop at the limit.",
        Axis("questions asked", 0, _MOST),
        Axis("epsilon (ε) spent", 0, limit * 1.5),
        (*lines, Series("the ledger", "dots", admitted, 0)),
        (RuleLine("y", limit, "limit"), RuleLine("x", asked, "asked")),
    )


@lru_cache(maxsize=64)
def _charged(epsilon: float, limit: float) -> tuple[tuple[int, str, float, int], ...]:
    """After each number of questions: those charged, the refusal, the epsilon spent, those left."""
    from discreet.ledger import Ledger  # it loads a database

    most = Limit(epsilon=limit, delta=_DELTA)
    filter_, each = Filter.for_limit(most), PrivacyLoss.of(Pure(epsilon))
    admitted, spent = filter_.count_left(filter_.start, each), filter_.start
    found = [(0, "", 0.0, admitted)]
    for count in range(1, min(admitted, _MOST) + 1):
        spent = filter_.add(spent, each)
        found.append((count, "", float(filter_.reached(spent) or 0), admitted - count))
    # the refusal in the ledger's own words
    ledger = Ledger.in_memory(unit=_PERSON, limit=most)
    ledger.charge(admitted * each, purpose="all questions", by="you")
    try:
        ledger.charge(each, purpose="one more", by="you")
    except BudgetExceeded as refused:
        last = (admitted, str(refused), found[-1][2], 0)
        found += [last] * (_MOST + 1 - len(found))
    return tuple(found)


@lru_cache(maxsize=256)
def _theorems(epsilon: float, count: int) -> tuple[float, float, float]:
    """Basic, advanced and tight composition of this many questions."""
    loss = count * Pure(epsilon)
    figures = loss.explain(_DELTA).figures
    return figures[_BASIC], figures[_ADVANCED], loss.epsilon(_DELTA)


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
    return ExperimentOutcome(f"{question}: {'; '.join(map(_said, points))}", points)


def _interval(row: Mapping[str, object]) -> tuple[float, float, float] | None:
    """The noisy number of a row, and the ends of its interval."""
    [name] = [name.removesuffix("_low") for name in row if name.endswith("_low")]
    ends = [row[f"{name}{end}"] for end in ("", "_low", "_high")]
    if None in ends:
        return None
    value, low, high = (float(str(end)) for end in ends)
    return value, low, high


def _said(point: NoisyNumber) -> str:
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
    question="Why is the last question refused, although nobody has learned a salary?",
    notes=(
        (
            "Ask the same question several times. The answers differ, since each has fresh noise. "
            "Their average comes closer to the truth with each one: this is why every answer must "
            "be paid for."
        ),
        (
            "Epsilon (ε) bounds what an attacker can learn about one person. Basic composition "
            "adds up the epsilons. Tight composition is smaller if one accepts a small failure "
            "probability δ and fixes the questions beforehand. Advanced composition, an older "
            "bound, is smaller than the sum only for many questions of a small ε: 50 of ε = 0.1 "
            "cost 4.25 instead of 5; for the 24 questions drawn here it never helps."
        ),
        (
            "The ledger decides by a filter, which is valid even if each question depends on all "
            "earlier answers. It, too, uses δ, so for many small questions it admits more than the "
            "budget divided by ε: 296 of ε = 0.1 instead of 100, for a budget of 10."
        ),
    ),
    controls=(
        Control("epsilon", "ε of each question", (0.1, 0.25, 0.5, 1, 2), 0.5),
        Control("limit", "the whole budget ε", (1, 2, 5, 10), 5),
        Control("asked", "questions asked", tuple(range(_MOST + 1)), 0),
        Control("question", "next question", tuple(QUESTIONS), "mean salary"),
    ),
    compute=view,
    experiments=(
        Experiment(
            "ask",
            "Ask",
            "answers so far",
            ("epsilon", "question"),
            ask,
            advances="asked",
            unit="people, or salary",
        ),
    ),
)
