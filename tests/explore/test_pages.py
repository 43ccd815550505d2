"""Every number on a page is the library's: the lines that a page shows give the same figures."""

import json
import math
import re
import sys
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain, islice, pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import pyplot

from discreet import Ledger, Limit, Unit, explore, plots
from discreet._exact import precision
from discreet.accounting import PrivacyLoss, Pure, _theorems
from discreet.accounting.pld import _distribution
from discreet.accounting.pld._dominating_pairs import Side
from discreet.accounting.pld._tilt import CountedPairs
from discreet.errors import BudgetExceeded, InvalidArgument
from discreet.explore import pages
from discreet.explore._page import ControlPlaces, Page, View, read, shown, to_json, written
from discreet.explore._rendering import index
from discreet.explore.pages import (
    _attacks,
    _budget,
    _composition,
    _noisy_counts,
    _survey,
    _temperature,
    _training,
)
from discreet.explore.pages._budget import outcome_of
from discreet.explore.pages._clusters import SeparatingLine
from discreet.explore.pages._mechanism_facts import on_axis
from discreet.explore.pages._texts import about, at_least, at_most, meaning
from discreet.plots import Axis

SOME = 4
COSTLY = ("composition", "trust")  # their lines take seconds


def some_places(page: Page, count: int = SOME) -> list[ControlPlaces]:
    """The first view, and others spread over all of them."""
    everywhere = list(page.all_places())
    return [page.start, *everywhere[:: max(1, len(everywhere) // count)], everywhere[-1]]


def several() -> Iterator[tuple[str, ControlPlaces]]:
    for name in pages.NAMES:
        page = pages.page(name)
        few = (page.start, list(page.all_places())[-1])
        for places in few if name in COSTLY else dict.fromkeys(some_places(page)):
            yield name, places


def more() -> Iterator[tuple[str, ControlPlaces]]:
    for name in COSTLY:
        for places in some_places(pages.page(name), 8):
            yield name, places


def executed(code: str) -> dict[str, object]:
    names: dict[str, object] = {}
    exec(compile(code, "page", "exec"), names)
    return names


@pytest.mark.parametrize(("name", "places"), list(several()))
def test_the_lines_shown_give_the_figures_shown(name: str, places: ControlPlaces) -> None:
    view = pages.view(name, places)
    found = executed(view.code)
    assert view.figures
    assert {figure: found.get(figure) for figure in view.figures} == dict(view.figures)
    if view.is_refused:
        assert str(found["refusal"]) in view.code
    check_form(view)


@pytest.mark.long
@pytest.mark.parametrize(("name", "places"), list(more()))
def test_more_lines_give_the_figures_shown(name: str, places: ControlPlaces) -> None:
    test_the_lines_shown_give_the_figures_shown(name, places)


@pytest.mark.parametrize("name", pages.NAMES)
def test_each_preset_shows_another_view(name: str) -> None:
    page = pages.page(name)
    assert 2 <= len(page.presets) <= 3
    first = explore.view(name)
    assert all(explore.view(name, preset.values) != first for preset in page.presets)


@pytest.mark.parametrize(
    ("noise", "rate", "target"), [(1, 0.01, 2), (5, 0.01, 2), (5, 0.1, 8), (2.5, 0.03, 0.5)]
)
def test_a_quarter_more_noise_buys_as_many_steps_as_the_page_says(
    noise: float, rate: float, target: float
) -> None:
    assert "at least one and a half times as long" in pages.page("composition").answer
    steps, longer = (_composition._most_steps(one, rate, target) for one in (noise, 1.25 * noise))
    assert 20 <= 1.5 * steps <= longer < 100_000


@pytest.mark.parametrize(("name", "most"), [("composition", 90), ("trust", 18)])
def test_a_new_view_needs_few_distributions(
    name: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes 1 to 15 milliseconds, and the server should answer within 100."""
    plain, asked = _distribution.epsilon, list[Side]()

    def noted(
        pairs: CountedPairs, delta: float, tolerance: float, side: Side, *, enough: float = 0.0
    ) -> float:
        asked.append(side)
        return plain(pairs, delta, tolerance, side, enough=enough)

    monkeypatch.setattr(_distribution, "epsilon", noted)
    page = pages.page(name)
    for places in some_places(page, 1):
        asked.clear()
        for cached in (_theorems, sys.modules[page.compute.__module__]):
            for one in vars(cached).values():
                if hasattr(one, "cache_clear"):
                    one.cache_clear()
        page.view(places)
        assert 0 < len(asked) <= most


def check_form(view: View) -> None:
    """Numbers are finite, rows fit their heads, and every series lies on its axes."""
    assert view.says.endswith((".", "!"))
    assert view.rows
    assert {len(row) for row in view.rows} == {len(view.heads)}
    for chart in view.charts:
        assert chart.title
        assert chart.about
        for series in chart.series:
            assert series.points
            for x, *heights in series.points:
                assert all(chart.y.low <= float(y) <= chart.y.high for y in heights)
                assert all(isinstance(y, int | float) and math.isfinite(y) for y in heights)
                if chart.x.categories:
                    assert x in chart.x.categories
                else:
                    assert isinstance(x, int | float)
                    assert chart.x.low <= x <= chart.x.high


@pytest.mark.parametrize(("name", "places"), list(several()))
def test_each_view_says_in_the_same_words_what_its_epsilon_means(
    name: str, places: ControlPlaces
) -> None:
    said = pages.view(name, places).meaning
    if said.startswith(("Exact answers have no ε", "Rows without names have no ε")):
        assert name in {"attacks", "linking"}
        return
    if said.startswith("Nothing is published"):
        assert name == "budget"
        return
    found = re.fullmatch(
        r"ε = ([\d.]+) means: your data change the probability of any outcome by at most a factor "
        r"of e\^ε, about ([\d.,]+|10[⁰¹²³⁴⁵⁶⁷⁸⁹]+)(, and δ = \S+ more)?\. "
        r"A guess [a-z ]+ is right at most ([\d.]+)\xa0% of the time, instead of 50\xa0%\.",
        said,
    )
    assert found
    epsilon, factor, more, right = found.groups()
    if not factor.startswith("10") or len(factor) < 3:
        named = float(factor.replace(",", ""))
        assert named == pytest.approx(math.exp(float(epsilon)), rel=0.02)
    # (e^epsilon + delta) / (1 + e^epsilon) bounds each guess; the loss itself may say less
    assert 50 <= float(right) <= 100 / (1 + math.exp(-float(epsilon))) * 1.01 + 0.1
    assert more is not None or float(epsilon) > 0


@pytest.mark.parametrize(("name", "places"), list(several()))
def test_a_view_states_facts_and_asks_for_nothing(name: str, places: ControlPlaces) -> None:
    """It stays while buttons are pressed, so it must be true before and after."""
    said = pages.view(name, places).says
    assert not re.search(r"\b(Press|press|Click|Drag|Move)\b", said)


@pytest.mark.parametrize("name", pages.NAMES)
def test_texts_hold_no_markup(name: str) -> None:
    page = pages.page(name)
    view = page.view(page.start)
    abouts = (chart.about for chart in view.charts)
    hints = (text for control in page.controls for text in (control.hint, control.term))
    labels = (one.label for one in page.presets)
    for text in (
        page.lead,
        page.question,
        page.answer,
        view.says,
        *page.notes,
        *abouts,
        *hints,
        *labels,
    ):
        assert not set("`*<>") & set(text)


def test_the_first_view_shows_what_its_page_says() -> None:
    """One example stands far away, and turns the plain line plainly."""
    assert explore.view("example").figures["moved"] > 15


def test_the_first_page_says_what_epsilon_means() -> None:
    assert meaning(PrivacyLoss.of(Pure(1))) in index(is_export=False)


def test_the_meaning_is_rounded_against_us() -> None:
    assert meaning(PrivacyLoss.of(Pure(1))).startswith("ε = 1 means")
    for epsilon in (0.01, 0.5, math.log(3), 9, 40):
        said = meaning(PrivacyLoss.of(Pure(epsilon)))
        right = float(said.partition("right at most ")[2].partition("\xa0%")[0])
        assert right >= 100 / (1 + math.exp(-epsilon)) - 1e-9


def test_a_wrong_figure_would_be_found() -> None:
    view = pages.view("survey", pages.page("survey").start)
    assert executed(view.code.replace("0.95", "0.9"))["error"] != view.figures["error"]


@pytest.mark.parametrize("name", pages.NAMES)
def test_a_page_is_a_sentence_a_question_and_few_controls(name: str) -> None:
    page = pages.page(name)
    assert page.name == name
    assert page.lead.count(". ") == 0
    assert page.lead.endswith(".")
    assert page.question.endswith("?")
    assert page.answer.endswith(".")
    assert 3 <= len(page.controls) <= 5
    for control in page.controls:
        assert control.start in control.values
        assert len(set(control.texts)) == len(control.values)


@pytest.mark.parametrize("name", pages.NAMES)
def test_each_slider_is_explained(name: str) -> None:
    for control in pages.page(name).controls:
        assert control.hint or control.term or not control.is_slider


@pytest.mark.parametrize("name", pages.NAMES)
def test_each_control_changes_the_view_or_an_outcome(name: str) -> None:
    page = pages.page(name)
    for place, control in enumerate(page.controls):
        moved = [*page.start]
        moved[place] = (moved[place] + 1) % len(control.values)
        is_for_outcomes = any(control.name in one.controls for one in page.experiments)
        # delta and sensitivity matter to some mechanisms only
        changes = page.view(tuple(moved)) != page.view(page.start)
        assert changes or is_for_outcomes or control.name == "delta"


@pytest.mark.parametrize("name", ["attacks", "linking", "mechanisms"])
def test_the_controls_that_rest_are_those_that_change_nothing(name: str) -> None:
    """In a view with each value of the first control; and some rest somewhere."""
    page, resting = pages.page(name), 0
    for first in range(len(page.controls[0].values)):
        here = (first, *page.start[1:])
        view = page.view(here)
        for place, control in enumerate(page.controls):
            is_still = all(
                page.view((*here[:place], at, *here[place + 1 :])) == view
                for at in reversed(range(len(control.values)))
            )
            assert (control.name in view.idle) == is_still
            resting += is_still
    assert resting


def test_the_choice_lacks_no_more_votes_than_are_possible() -> None:
    """The row and the four probabilities beside it agree, for each setting."""
    page = pages.page("mechanisms")
    epsilons, sensitivities = page.controls[1].values, page.controls[2].values
    for epsilon, sensitivity in product(epsilons, sensitivities):
        asked = {"mechanism": "exponential mechanism", "epsilon": epsilon}
        view = page.compute({**asked, "sensitivity": sensitivity, "delta": 1e-6})
        error, chances = view.figures["error"], executed(view.code)["chances"]
        assert isinstance(chances, np.ndarray)
        within = [c for c, gap in zip(chances.tolist(), (0, 2, 4, 6), strict=True) if gap <= error]
        assert error in (0, 2, 4, 6)
        assert sum(within) >= 0.95
        assert not error or sum(within[:-1]) < 0.95


@pytest.mark.parametrize("mechanism", ["Laplace noise", "Gaussian noise"])
def test_the_window_shows_most_of_the_noise(mechanism: str) -> None:
    page = pages.page("mechanisms")
    for epsilon, sensitivity in product((0.1, 0.5, 3), (1, 8)):
        asked = {"mechanism": mechanism, "epsilon": epsilon, "delta": 1e-6, "questions": 1}
        view = page.compute({**asked, "sensitivity": sensitivity})
        for chart in view.charts[:1]:
            for series in chart.series:
                heights = [y for _, y in series.points]
                ends = (heights[0], heights[-1])
                assert max(map(float, ends)) < 0.2 * max(map(float, heights))
            assert f"40 and {40 + sensitivity}" in chart.rules[0].label
            centres = {int(rule.at) for rule in chart.rules}
            assert centres <= {x for x, _ in chart.series[0].points}


def test_a_drag_of_epsilon_keeps_half_of_the_axes() -> None:
    """To change axes takes the browser longer than to move the lines on them."""
    epsilons = pages.page("mechanisms").controls[1].values
    views = [explore.view("mechanisms", {"epsilon": one}) for one in epsilons]
    axes = [[(chart.x, chart.y) for chart in view.charts] for view in views]
    changed = [before != after for before, after in pairwise(axes)]
    assert 2 * sum(changed) <= len(changed)


def test_an_attack_is_drawn_as_a_dot_at_its_questions() -> None:
    run = pages.page("attacks").experiment("attack").run
    asked = {"attack": "rebuild a table", "noise": "exact answers", "epsilon": 1, "questions": 200}
    [overlay] = run(asked).overlays
    assert overlay.series.points == ((200, 100.0),)
    dot, interval = run({**asked, "noise": "with noise"}).overlays
    [(_, right)], [(_, low), (_, high)] = dot.series.points, interval.series.points
    assert float(low) <= float(right) <= float(high)
    assert float(low) < float(high)


def test_wilsons_interval_solves_its_equation() -> None:
    """Its ends are the shares whose distance from the found one is 1.96 standard deviations."""
    for right in range(101):
        low, high = _attacks._share_interval(right, 100)
        assert low <= right / 100 <= high
        for end in (low, high):
            distance, variance = right / 100 - end, end * (1 - end) / 100
            assert distance**2 == pytest.approx(1.96**2 * variance, abs=1e-12)


@pytest.mark.parametrize("right", [0, 3, 50, 100])
def test_no_share_is_drawn_at_another_height(right: int) -> None:
    """However many points are right: a wrong line may have few."""
    points, labels = _training._POINTS, _training._LABELS
    scores = np.sort(points @ [1, 0])
    lines = tuple(SeparatingLine(sign, 0, -sign * at) for sign in (1, -1) for at in scores[::20])
    drawn = _training._accuracy("", lines, 0).points
    assert min(float(y) for _, y in drawn) < 40
    expected = [100 * line.right(points, labels) for line in lines]
    assert [float(y) for _, y in drawn] == pytest.approx(expected)
    beyond = on_axis([(1, right)], Axis("", 3, 50))
    assert beyond == (((1, right),) if right in (3, 50) else ())


def test_the_log_loss_in_words_is_not_cut_to_the_picture() -> None:
    """A model that is sure of wrong sides has a log loss far beyond the axis."""
    page = pages.page("temperature")
    wrong = SeparatingLine(-50, -50, 0)
    outcome = _temperature._fitted(wrong, page.values(page.start))
    found = _temperature._losses(wrong, is_public=True).mean(axis=0)
    assert found[_temperature._TEMPERATURES.index(1)] > 10
    assert f"was {about(float(found[_temperature._TEMPERATURES.index(1)]))} at" in outcome.says
    axis = page.view(page.start).charts[0].y
    heights = [float(y) for one in outcome.overlays for _, y in one.series.points]
    assert all(axis.low <= y <= axis.high for y in heights)


@given(st.floats(1e-6, 1e6), st.integers(1, 5))
def test_bounds_are_rounded_away_from_the_truth(bound: float, digits: int) -> None:
    lower, upper = at_least(bound, digits), at_most(bound, digits)
    assert Fraction(lower) <= Fraction(repr(bound)) <= Fraction(upper)


@pytest.mark.parametrize("name", pages.NAMES)
def test_each_column_is_rounded_as_its_head_says(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cell under "at least" is rounded down, and every other bound up."""
    page = pages.page(name)
    module = sys.modules[page.compute.__module__]
    for function in ("at_least", "at_most"):
        if hasattr(module, function):
            monkeypatch.setattr(module, function, lambda *_, said=function: f"<{said}>")
    view = page.compute(page.values(page.start))
    for row in view.rows:
        for head, cell in zip(view.heads, row, strict=True):
            assert ("at_least" not in cell) or "at least" in head
            assert ("at_most" not in cell) or "at least" not in head
    assert name != "composition" or [row[1:3] for row in view.rows] == [
        ("<at_least>", "<at_most>")
    ] * len(view.rows)


_AS_A_PROBABILITY = re.compile(
    r"except with probability δ|probability δ\b|failure probability|bound of epsilon may fail|"
    r"how often (it|the ratio)|(δ|[Dd]elta) is a (small )?probability|are rare"
)


@pytest.mark.parametrize("name", pages.NAMES)
def test_no_text_calls_delta_a_probability_of_failure(name: str) -> None:
    """(ε, δ) bounds a probability by e^ε times the other plus δ. How often the ratio exceeds e^ε
    is another number, and larger."""
    page = pages.page(name)
    terms = (text for control in page.controls for text in (control.hint, control.term))
    views = [page.view(places) for places in some_places(page)]
    said = (text for view in views for text in (view.says, view.meaning))
    abouts = (chart.about for view in views for chart in view.charts)
    for text in (page.lead, page.answer, *page.notes, *terms, *said, *abouts):
        assert not _AS_A_PROBABILITY.search(text)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 3])
def test_outputs_beyond_the_ratio_are_more_likely_than_delta(epsilon: float) -> None:
    """As the page on mechanisms says of its Gaussian noise."""
    law = _noisy_counts._calibrated(epsilon, 1e-6, 1, 1).law
    with precision(256):
        chances = [_noisy_counts._chance(law, abs(out)) for out in range(-400, 401)]
        pairs = list(pairwise(chances))
        beyond = float(sum(one for one, other in pairs if float((one / other).log()) > epsilon))
        excess = float(
            sum(max(float(one - other * math.exp(epsilon)), 0.0) for one, other in pairs)
        )
    assert beyond > 3e-6
    assert 0 < excess <= 1.000001e-6
    # rounding moves the edge by less than one output
    shown = explore.view("mechanisms", {"mechanism": "Gaussian noise", "epsilon": epsilon})
    assert beyond / 3 < shown.figures["beyond"] < 3 * beyond


@pytest.mark.parametrize("questions", [1, 100])
@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_the_chance_of_a_larger_ratio_is_the_slope_of_delta(questions: int, delta: float) -> None:
    """delta(x) is E(1 - e^(x - L))+, so the probability of L > x is delta(x) - delta'(x)."""
    asked = {"mechanism": "Gaussian noise", "delta": delta, "questions": questions}
    view = explore.view("mechanisms", asked)
    loss = executed(view.code)["loss"]
    assert isinstance(loss, PrivacyLoss)
    step = 1e-3
    before, here, after = (loss.delta(epsilon=0.5 + one) for one in (-step, 0, step))
    assert view.figures["beyond"] == pytest.approx(here - (after - before) / (2 * step), rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.1, 1, 5])
def test_the_bound_of_linking_is_reached_by_the_best_guess(epsilon: float) -> None:
    """Two laws that lie one apart differ by the probability of the noise 0."""
    asked = {"publish": "noisy counts", "epsilon": epsilon}
    figures = explore.view("linking", asked).figures
    with precision(256):
        law = _noisy_counts._calibrated(epsilon, 0, 1, 9).law
        zero = float(_noisy_counts._chance(law, 0))
    assert figures["bound"] == pytest.approx((1 + zero) / 2, rel=1e-9)
    # nine counts move by 1 each: more than one of them, and less than one count by 9
    assert figures["bound"] < figures["present"] < 1 / (1 + math.exp(-epsilon))


@pytest.mark.parametrize("name", pages.NAMES)
def test_experiments_draw_anew_and_name_the_truth(name: str) -> None:
    """All of 41 outcomes are equal with probability below 1e-9, if none is likelier than 0.59."""
    page = pages.page(name)
    for experiment in page.experiments:
        assert set(experiment.controls) <= {control.name for control in page.controls}
        values = page.values(page.start)
        first, *others = [experiment.run(values) for _ in range(2)]
        for outcome in (first, *others):
            assert outcome.says
            for point in outcome.points:
                assert point.low <= point.value <= point.high
        more = chain(others, (experiment.run(values) for _ in range(39)))
        assert not first.points or any(one.points != first.points for one in more)


prices = st.lists(st.sampled_from(pages.page("budget").prices), max_size=8)


@given(prices, st.sampled_from([1, 2, 5]))
@settings(max_examples=8)
def test_a_question_costs_its_own_price_and_a_refused_one_nothing(
    asked: list[float], limit: float
) -> None:
    """Beside a ledger that is charged the same questions in the same order."""
    view = explore.view("budget", {"limit": limit}, asked=asked)
    ledger = Ledger.in_memory(unit=Unit("person"), limit=Limit(epsilon=limit, delta=1e-6))
    admitted, is_refused = [], False
    for price in asked:
        try:
            ledger.charge(Pure(price), purpose="a question", by="you")
            admitted.append(price)
            is_refused = False
        except BudgetExceeded:
            is_refused = True
    spent = ledger.spent().epsilon
    assert view.figures["spent"] == float(spent or 0)
    assert view.is_refused == is_refused
    rows = [row[1] for row in view.rows[1:]]
    assert rows == [shown(price) for price in admitted]
    [dots] = [one for one in view.charts[0].series if one.label == "the ledger"]
    assert len(dots.points) == len(admitted) + 1
    assert dots.points[-1] == (len(admitted), float(spent or 0))
    last = [one for one in view.charts[0].series if one.label == "refused"]
    assert [[x for x, _ in one.points] for one in last] == [[len(admitted) + 1]] * is_refused


@given(prices)
@settings(max_examples=5)
def test_the_lines_shown_after_questions_give_the_figures_shown(asked: list[float]) -> None:
    view = explore.view("budget", {"limit": 2}, asked=asked)
    found = executed(view.code)
    assert {figure: found[figure] for figure in view.figures} == dict(view.figures)
    if view.is_refused:
        assert str(found["refusal"]) in view.code


def test_only_the_page_on_budgets_remembers_questions() -> None:
    with pytest.raises(InvalidArgument, match="remembers no questions"):
        explore.view("survey", asked=[1])
    with pytest.raises(InvalidArgument, match="the prices are"):
        explore.view("budget", asked=[7])


def test_no_view_has_more_questions_than_the_ledger_admits() -> None:
    page = pages.page("budget")
    ends = [places for places in page.all_places() if places[:3] == (1, 1, 0)]
    assert len(ends) == len(set(ends)) == 36
    for places in ends:
        values = page.values(places)
        assert float(sum(values["asked"])) <= values["limit"]
    with pytest.raises(InvalidArgument, match="no such view"):
        page.view((1, 1, 0, 0, 0, 0, 2))


def test_the_notes_on_composition_name_the_librarys_numbers() -> None:
    notes = " ".join(pages.page("budget").notes)
    advanced = [0, *(_budget._theorems((0.5,) * count)[1] for count in (1, 3, 4))]
    assert f"{at_most(advanced[1])} for ε = 0.5, and {advanced[3] - advanced[2]:.4g} for" in notes
    assert f"50 of ε = 0.1 cost {at_most(_budget._theorems((0.1,) * 50)[1], 3)} instead" in notes
    assert f"{_budget._left(10, (), 0.1)} of ε = 0.1 instead of 100" in notes
    after = explore.view("budget", asked=[0.25] * 20).figures
    assert f"20 of ε = 0.25 cost {at_most(after['tight'], 3)} instead of 5" in notes


def test_the_fourth_question_is_shown_with_what_it_added() -> None:
    view = explore.view("budget", asked=[0.5, 0.5, 0.5, 1])
    added = [row[2] for row in view.rows[1:]]
    assert added == ["+0.5", "+0.5", "+0.5", "+1"]
    assert view.rows[0][2] == "2.5"


@pytest.mark.parametrize("missing", ["pay", "pay_low", "pay_high"])
def test_a_mean_without_a_value_is_told_in_words(missing: str) -> None:
    """Noise can make the count that it is divided by 0 or less."""
    row = {"pay": 5.0, "pay_low": 1.0, "pay_high": 9.0}
    assert len(outcome_of("mean salary", [row]).points) == 1
    found = outcome_of("mean salary", [{**row, missing: None}])
    assert found.points == ()
    assert "no number" in found.says


@pytest.mark.parametrize("odds", pages.page("survey").controls[0].values)
@pytest.mark.parametrize("people", [10, 300, 100_000])
def test_the_survey_draws_the_line_of_its_odds_and_a_dot_at_its_crowd(
    odds: float, people: int
) -> None:
    view = pages.page("survey").compute({"odds": odds, "people": people})
    line, *_, dot = view.charts[0].series
    assert line.label == f"odds {odds:g}: yours"
    assert dot.kind == "dots"
    assert dot.points == ((people, 100 * view.figures["error"]),)
    assert dot.points[0] in line.points


@given(st.floats(-300, 400), st.tuples(st.floats(0, 300), st.floats(0, 300)), st.integers(0, 100))
def test_a_survey_names_no_share_beyond_its_ends_without_the_reason(
    value: float, around: tuple[float, float], truth: int
) -> None:
    ends = (value - around[0], value + around[1])
    outcome = _survey._counted("7 of 10 said yes.", value, ends, truth)
    point = outcome.points[0]
    assert 0 <= point.low <= point.value <= point.high <= 100
    said = re.search("is (.*)\xa0%, between (.*)\xa0% and (.*)\xa0%; ", outcome.says)
    assert said
    assert said.groups() == tuple(f"{one:.1f}" for one in (point.value, point.low, point.high))
    assert ("By chance" in outcome.says) == (not 0 <= value <= 100)


@pytest.mark.long
@pytest.mark.parametrize("name", pages.NAMES)
def test_every_experiment_runs_everywhere(name: str) -> None:
    page = pages.page(name)
    for experiment in page.experiments:
        for places in page.own_places(experiment):
            for _ in range(5):
                to_json(experiment.run(page.values(places)))


@pytest.mark.parametrize(
    ("places", "problem"),
    [
        ("", "whole numbers"),
        ("1-2-x-0", "whole numbers"),
        ("1--2", "whole numbers"),
        ("²-0-0-0", "whole numbers"),
        ("0" * 41, "whole numbers"),
        ("0-0-0", "no such view"),
        ("0-0-99-0", "no such view"),
    ],
)
def test_places_of_no_view_are_refused(places: str, problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem):
        pages.page("budget").view(read(places))


def test_places_survive_their_text() -> None:
    for places in islice(pages.page("budget").all_places(), 50):
        assert read(written(places)) == places


def test_a_view_is_json_without_nan() -> None:
    view = pages.view("survey", pages.page("survey").start)
    assert json.loads(to_json(view))["figures"] == dict(view.figures)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("yes", "yes"),
        (0.5, "0.5"),
        (1, "1"),
        (10_000, "10,000"),
        (1e-6, "10⁻⁶"),
        (3e-5, "3 · 10⁻⁵"),
        (0.001, "0.001"),
        (0, "0"),
    ],
)
def test_values_are_shown_as_people_write_them(value: float | str, text: str) -> None:
    assert shown(value) == text


def test_exact_answers_give_the_table_away_and_noise_does_not() -> None:
    """Half of 200 exact counts determine the secrets, except with probability below 2^-90. With
    noise all questions cost epsilon 0.3, so that each guess is right with probability at most
    0.575, whatever the other secrets are: 90 right of 100 have a probability below 1e-11."""
    run = pages.page("attacks").experiment("attack").run
    asked = {"attack": "rebuild a table", "epsilon": 0.01}
    exact = run({**asked, "noise": "exact answers", "questions": 200})
    noisy = run({**asked, "noise": "with noise", "questions": 30})
    assert exact.says.startswith("100 of 100")
    assert int(noisy.says.split()[0]) < 90


@pytest.mark.parametrize("name", pages.NAMES)
def test_a_view_in_python_is_the_pages_and_can_be_drawn(name: str) -> None:
    """Each picture of a page, drawn by `discreet.plots` from the same view."""
    page = pages.page(name)
    found = explore.view(name)
    assert found is pages.view(name, page.start)
    last = {one.name: one.values[-1] for one in page.controls}
    ends = (len(one.values) - 1 for one in page.controls)
    assert explore.view(name, last) is pages.view(name, (*ends, *page.none_asked))
    axes = plots.charts(found.charts)
    for ax, chart in zip(axes, found.charts, strict=True):
        assert ax.get_title(loc="left") == chart.title
        lines = {str(one.get_label()): one for one in ax.get_lines()}
        for series in chart.series:
            if series.label and series.kind in ("line", "dots") and not chart.x.categories:
                drawn = np.asarray(lines[series.label].get_xydata()).tolist()
                assert [tuple(point) for point in drawn] == [tuple(p) for p in series.points]
    pyplot.close("all")


@pytest.mark.parametrize("controls", [{"people": 7}, {"nothing": 1}, {"odds": "3"}])
def test_a_view_of_other_values_is_refused(controls: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument, match=r"the values are|survey has"):
        explore.view("survey", controls)


def test_no_page_of_this_name() -> None:
    with pytest.raises(InvalidArgument, match="no page"):
        pages.page("../budget")


def test_the_pages_use_plain_numbers() -> None:
    """No exponent such as 1e-06 is left in a text."""
    for name, places in several():
        view = pages.view(name, places)
        texts = [
            view.says,
            *view.heads,
            *(cell for row in view.rows for cell in row),
        ]
        assert [text for text in texts if re.search(r"\de[-+]?\d", text)] == []
