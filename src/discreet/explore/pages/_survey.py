"""Survey: randomized response by coins, for yourself and for a crowd."""

from functools import lru_cache

import numpy as np

from discreet._html import up
from discreet.explore._page import (
    Control,
    ControlValues,
    Experiment,
    ExperimentOutcome,
    NoisyNumber,
    Page,
    Preset,
    View,
)
from discreet.explore.pages._texts import (
    WHICH_VALUE,
    at_most,
    meaning,
    percent,
    program,
)
from discreet.local import RandomizedResponse
from discreet.plots import Axis, Chart, RuleLine, Series

_CROWDS = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000)
_ODDS = (1.5, 2, 3, 5, 9, 19)
_ANSWERS = ("no", "yes")

_CODE = """
from discreet.local import RandomizedResponse

survey = RandomizedResponse.with_odds({odds})
epsilon = survey.privacy_loss().epsilon()
truth = float(survey.client.truth)         # the probability of the true answer
error = survey.error(0.95, reports={people})  # of the estimated share of yes
"""


def view(values: ControlValues) -> View:
    """The price and the error of a survey with these coins."""
    odds, people = values["odds"], values["people"]
    survey = RandomizedResponse.with_odds(odds)
    truth = float(survey.client.truth)
    epsilon, error = survey.privacy_loss().epsilon(), _error(odds, people)
    if error < 1:
        can_tell = (
            f"Yet the estimated share of yes among {people:,} people is off by at most "
            f"{_points(error)} in 95 % of surveys."
        )
    else:
        can_tell = f"{people:,} people are too few to tell the share of yes at all."
    return View(
        says=(
            f"Each person answers truthfully with probability {percent(truth)}, else the opposite. "
            f"A yes is {odds:g} times as likely from one who means it as from one who does not. "
            f"{can_tell}"
        ),
        meaning=meaning(survey.privacy_loss(), guess=WHICH_VALUE),
        charts=(_chart(odds, people),),
        heads=("people", "error in 95 % of surveys", "what a person loses"),
        rows=tuple(
            (
                f"{count:,}",
                f"± {_points(_error(odds, count))}",
                f"ε = {at_most(epsilon)}, however many take part",
            )
            for count in (100, 1000, 10_000, 100_000)
        ),
        figures={"epsilon": epsilon, "truth": truth, "error": error},
        code=program(_CODE, odds=odds, people=people),
    )


def _points(error: float) -> str:
    """The error of a share, rounded up."""
    return f"{up(100 * error, 3)} percentage points"


def _chart(odds: float, people: int) -> Chart:
    others = [
        _error_line(f"odds {other:g}", other, style)
        for style, other in ((1, _ODDS[0]), (2, _ODDS[-1]))
        if other != odds
    ]
    yours = ((people, 100 * _error(odds, people)),)
    return Chart(
        "Error of the crowd’s share of yes",
        "Both axes are logarithmic: a hundred times as many people, a tenth of the error.",
        Axis("people in the crowd", _CROWDS[0], _CROWDS[-1], is_log=True),
        Axis("error at 95 %, in percentage points", 0.1, 300, is_log=True),
        (
            _error_line(f"odds {odds:g}: yours", odds, 0),
            *others,
            Series("your crowd", "dots", yours, 0),
        ),
        (RuleLine("x", people, "your crowd"),),
    )


def _error_line(label: str, odds: float, style: int) -> Series:
    points = tuple((count, 100 * _error(odds, count)) for count in _CROWDS)
    return Series(label, "line", points, style)


@lru_cache(maxsize=256)
def _error(odds: float, people: int) -> float:
    """The error of the estimated share, at 95 %."""
    return RandomizedResponse.with_odds(odds).error(0.95, people)


def flip(values: ControlValues) -> ExperimentOutcome:
    """One report for your own answer."""
    mine = _ANSWERS.index(values["mine"])
    report = int(RandomizedResponse.with_odds(values["odds"]).randomize(mine))
    return ExperimentOutcome(
        f"You mean {values['mine']}. The coins make you say {_ANSWERS[report]}."
    )


def crowd(values: ControlValues) -> ExperimentOutcome:
    """The estimate from one survey of a made-up crowd."""
    survey, people = RandomizedResponse.with_odds(values["odds"]), values["people"]
    yes = round(people * values["share"])
    answers = np.repeat([1, 0], [yes, people - yes])
    reports = survey.randomize(answers)
    estimate = survey.estimate(reports)
    ends = estimate.interval(0.95)
    value, low, high = (100 * float(one[1]) for one in (estimate.values, ends.lower, ends.upper))
    said = f"{int(reports.sum()):,} of {people:,} said yes."
    return _counted(said, value, (low, high), 100 * yes / people)


def _counted(said: str, value: float, ends: tuple[float, float], truth: float) -> ExperimentOutcome:
    """An estimate in percent. One beyond 0 and 100 is shown as the nearest share, with the reason.

    A share below 0 or above 100 % makes no sense, and moving it to the nearest one costs nothing.
    """
    low, high = (min(max(end, 0.0), 100.0) for end in ends)
    point = NoisyNumber("", min(max(value, low), high), low, high, truth)
    if 0 <= value <= 100:
        reason = ""
    else:
        beyond = "fewer yes than if nobody" if value < 0 else "more yes than if everybody"
        reason = f" By chance the coins gave {beyond} meant it, so the nearest share is shown."
    return ExperimentOutcome(
        f"{said} The estimate is {point.value:.1f}\N{NO-BREAK SPACE}%, between "
        f"{low:.1f}\N{NO-BREAK SPACE}% and {high:.1f}\N{NO-BREAK SPACE}%; "
        f"{truth:.1f}\N{NO-BREAK SPACE}% meant it.{reason}",
        (point,),
    )


PAGE = Page(
    name="survey",
    title="Survey",
    lead=(
        "Everyone answers an embarrassing question by coins, and the crowd’s answer still comes "
        "out."
    ),
    question="How can a survey learn something if no answer can be trusted?",
    answer=(
        "No single answer can be trusted, but coins fall as often as probability says, so "
        "their effect on a crowd can be subtracted."
    ),
    notes=(
        (
            "Flip for yourself a few times: sometimes the coins make you say what you do not "
            "mean. So nobody can hold your answer against you. The protection does not depend "
            "on whoever collects the answers: it happens on your side."
        ),
        (
            "The crowd’s coins fall as often as probability says, so their effect can be "
            "subtracted. What remains is chance, and it shrinks with the square root of the "
            "number of people. Odds of 3 are the classic two coins: heads, tell the truth; "
            "tails, let a second coin answer."
        ),
        (
            "The stated error is known before anybody is asked: it is that of the coins. The "
            "interval of one survey is found from its reports alone. It holds for all independent "
            "reports, and is a little wider for that."
        ),
    ),
    controls=(
        Control(
            "odds",
            "true answers for each false one",
            _ODDS,
            3,
            "These odds are the privacy: ε is their logarithm.",
        ),
        Control(
            "people",
            "people in the crowd",
            _CROWDS,
            1000,
            term=(
                "How many people take part. Their coins even out, so a larger crowd gives a surer "
                "share."
            ),
        ),
        Control(
            "share",
            "share who mean yes",
            (0.05, 0.1, 0.2, 0.3, 0.5, 0.8),
            0.3,
            "The survey does not know it: ask the crowd.",
        ),
        Control("mine", "your own answer", ("yes", "no"), "yes"),
    ),
    presets=(Preset("a large crowd", {"people": 100_000}), Preset("hide more", {"odds": 1.5})),
    compute=view,
    experiments=(
        Experiment("flip", "Flip for me", "your reports", ("odds", "mine"), flip),
        Experiment(
            "crowd",
            "Ask the crowd",
            "surveys",
            ("odds", "people", "share"),
            crowd,
            unit="yes, in %",
        ),
    ),
)
