"""Attacks: a table is rebuilt from many answers, a salary from two, without noise and with it."""

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from discreet._budget import Limit
from discreet._unit import Change, Unit
from discreet.accounting import DiscreteLaplace as DiscreteLaplaceTerm
from discreet.explore._page import (
    Control,
    ControlValues,
    Experiment,
    ExperimentOutcome,
    NoisyNumber,
    Overlay,
    Page,
    Preset,
    View,
)
from discreet.explore.pages._texts import (
    ABOUT_EPSILON,
    WHICH_VALUE,
    at_most,
    at_most_percent,
    meaning,
    no_meaning,
    program,
)
from discreet.mechanisms import Bounded, DiscreteLaplace, IntegerArray, release
from discreet.plots import Axis, Chart, RuleLine, Series

if TYPE_CHECKING:
    from discreet.ledger import Ledger

_PERSON = Unit("person", Change.REPLACE)
_PEOPLE = 100
_HIGHEST = 200_000  # of a salary
_QUESTIONS = (2, 10, 30, 100, 200, 400)
_SURE = 1.96  # standard deviations, for 95 %

DIFFERENCE, REBUILD = "whose salary is it?", "rebuild a table"
OFF, ON = "exact answers", "with noise"

_CODE = """
from discreet.accounting import DiscreteLaplace

# each question is a count with noise of scale 1 / epsilon
asked = {questions} * DiscreteLaplace(scale={scale})
epsilon = asked.epsilon()
advantage = asked.advantage()  # of the best possible attack on one person's yes or no
bound = (1 + advantage) / 2    # so often it guesses right
"""
_CODE_EXACT = """
# an exact answer has no bound: enough of them show everything
bound = 1.0
"""


def view(values: ControlValues) -> View:
    """The best that any attack can do."""
    each, is_noisy = values["epsilon"], values["noise"] == ON
    is_difference = values["attack"] == DIFFERENCE
    count = 2 if is_difference else values["questions"]
    bound = _bound(each, count) if is_noisy else 1.0
    code = program(_CODE, questions=count, scale=_scale(each)) if is_noisy else _CODE_EXACT.lstrip()
    figures = {"bound": bound}
    if is_noisy:
        figures |= {"epsilon": _cost(each, count), "advantage": _advantage(each, count)}
    return View(
        says=_says(is_noisy=is_noisy, is_difference=is_difference, count=count, bound=bound),
        meaning=_meaning(each, count) if is_noisy else no_meaning(WHICH_VALUE, "Exact answers"),
        charts=(_chart(each, count),),
        heads=(
            "questions",
            "ε of all, by adding up",
            "right with noise, at most",
            "with exact answers",
        ),
        rows=tuple(
            (
                f"{several:,}",
                at_most(_cost(each, several)),
                at_most_percent(_bound(each, several)),
                "100 %",
            )
            for several in _QUESTIONS
        ),
        figures=figures,
        code=code,
        idle=("questions",) if is_difference else (),
    )


def _says(*, is_noisy: bool, is_difference: bool, count: int, bound: float) -> str:
    if is_difference:
        how = "One total is published before somebody joins, and one after."
    else:
        how = (
            f"{count:,} counts of yes, each among a random half of {_PEOPLE} people, are published."
        )
    if not is_noisy:
        shows = (
            "Their difference is the salary"
            if is_difference
            else "Each is an equation, and enough equations give everybody’s secret"
        )
        return f"{how} {shows}. Nothing bounds what exact answers reveal."
    return (
        f"{how} However clever the attack: of two equally likely guesses about a person it is "
        f"right at most {at_most_percent(bound)} of the time."
    )


def _chart(each: float, count: int) -> Chart:
    noisy = tuple((k, 100 * _bound(each, k)) for k in _QUESTIONS)
    exact = tuple((k, 100.0) for k in _QUESTIONS)
    return Chart(
        "How often an attack can be right",
        (
            "Of two equally likely guesses about one person: yes or no, or one salary or another. "
            f"A dot is one attack on {_PEOPLE} people, and chance may carry it over the line. With "
            "noise it has a 95 % interval, as if its guesses were independent."
        ),
        Axis("questions", _QUESTIONS[0], _QUESTIONS[-1], is_log=True),
        Axis("right, in %", 0, 105),
        (
            Series("exact answers: there is no bound", "line", exact, 1),
            Series("with noise: no attack is above this on average", "line", noisy, 0),
        ),
        (RuleLine("x", count, "asked"), RuleLine("y", 50, "blind guess")),
    )


def _scale(each: float) -> float:
    return float(DiscreteLaplace.for_epsilon(each, _counts(np.zeros(1, np.int64))).scale)


def _counts(answers: IntegerArray) -> Bounded[IntegerArray]:
    """Counts of groups: one person is in some of them, and changes each by at most 1."""
    count = len(answers)
    return Bounded(lambda: answers, sensitivity=count, unit=_PERSON, name="groups", shape=(count,))


def _total(total: int) -> Bounded[int]:
    return Bounded(lambda: total, sensitivity=_HIGHEST, unit=_PERSON, name="all salaries")


@cache
def _loss(each: float, count: int) -> tuple[float, float]:
    asked = count * DiscreteLaplaceTerm(scale=_scale(each))
    return asked.epsilon(), asked.advantage()


@cache
def _meaning(each: float, count: int) -> str:
    return meaning(count * DiscreteLaplaceTerm(scale=_scale(each)), guess=WHICH_VALUE)


def _cost(each: float, count: int) -> float:
    return _loss(each, count)[0]


def _advantage(each: float, count: int) -> float:
    return _loss(each, count)[1]


def _bound(each: float, count: int) -> float:
    return (1 + _advantage(each, count)) / 2


# The attacks


def attack(values: ControlValues) -> ExperimentOutcome:
    """One attack on fresh answers."""
    if values["attack"] == DIFFERENCE:
        return _difference(values["epsilon"], is_noisy=values["noise"] == ON)
    return _rebuild(values["epsilon"], values["questions"], is_noisy=values["noise"] == ON)


def _difference(each: float, *, is_noisy: bool) -> ExperimentOutcome:
    """Subtract the total before somebody joined from the total after."""
    salary = int(np.random.default_rng().integers(20, 180)) * 1000
    totals, error = [4_900_000, 4_900_000 + salary], 0
    if is_noisy:
        noise = DiscreteLaplace.for_epsilon(each, _total(0))
        ledger = _ledger(2 * each)
        totals = [release(_total(total), noise, ledger).value for total in totals]
        error = 2 * noise.error(0.975)  # both are within theirs at 95 %
    found = totals[1] - totals[0]
    return ExperimentOutcome(
        f"The totals differ by {found:,}; the salary is {salary:,}",
        (NoisyNumber("", found, found - error, found + error, salary),),
    )


def _rebuild(each: float, count: int, *, is_noisy: bool) -> ExperimentOutcome:
    """Find everyone's yes or no from counts of random groups, by least squares."""
    chance = np.random.default_rng()
    secrets = chance.integers(0, 2, _PEOPLE)
    groups = chance.integers(0, 2, (count, _PEOPLE))
    answers = groups @ secrets
    if is_noisy:
        asked = _counts(answers)
        noise = DiscreteLaplace.for_epsilon(each * count, asked)
        answers = release(asked, noise, _ledger(each * count)).value
        variance = noise.stddev_of_noise() ** 2
    else:
        variance = 1e-6
    # towards not knowing: a secret by itself has variance 1 / 4
    known = groups.T @ groups + 4 * variance * np.eye(_PEOPLE)
    guessed = np.linalg.solve(known, groups.T @ (answers - groups.sum(axis=1) / 2)) > 0
    right = int((guessed == secrets).sum())
    says = f"{right} of {_PEOPLE} secrets are guessed right"
    drawn = [Series("this attack", "dots", ((count, 100 * right / _PEOPLE),), 2)]
    if is_noisy:
        low, high = (100 * end for end in _share_interval(right, _PEOPLE))
        drawn.append(Series("", "line", ((count, low), (count, high)), 2))
        says += f", by chance: a share of {low:.0f} to {high:.0f}\N{NO-BREAK SPACE}% fits that"
    return ExperimentOutcome(says, overlays=tuple(Overlay(0, one) for one in drawn))


def _share_interval(right: int, count: int) -> tuple[float, float]:
    """Wilson's interval of a share at 95 %, for independent guesses."""
    share, under = right / count, 1 + _SURE**2 / count
    middle = (share + _SURE**2 / (2 * count)) / under
    half = _SURE * (share * (1 - share) / count + (_SURE / count) ** 2 / 4) ** 0.5 / under
    # It contains the share, which rounding could break at 0 and at 1.
    return max(min(middle - half, share), 0.0), min(max(middle + half, share), 1.0)


def _ledger(epsilon: float) -> "Ledger":
    from discreet.ledger import Ledger  # it loads a database

    return Ledger.in_memory(unit=_PERSON, limit=Limit(epsilon=epsilon))


PAGE = Page(
    name="attacks",
    title="Attacks",
    lead=(
        "Answers about groups can give away a single person, and noise bounds every attack, also "
        "those that nobody has thought of."
    ),
    question="Why is it not enough to publish only totals?",
    answer=(
        "Two totals can be subtracted, and many solved like equations: then they show single "
        "people. Noise bounds what any attack can find out."
    ),
    notes=(
        (
            "Whose salary is it? A company publishes the total of all salaries before and after "
            "somebody joins. Neither names a person; their difference does."
        ),
        (
            "Rebuild a table: 100 people have a secret yes or no. Counts of random groups are "
            "equations; about as many as there are people determine everybody’s secret. Press "
            "Attack with exact answers first, then with noise."
        ),
        (
            "The line for noise is no attack but a proof: on average no method whatever "
            "guesses better. It rises with the number of questions, which is why a budget must "
            "end some day. The attack here is one of many, and may stay far below the line."
        ),
        (
            "Two more attacks have pages of their own: Linking finds a person in ratings without "
            "names, and One example tells from a trained model who was in its data."
        ),
    ),
    controls=(
        Control("attack", "attack", (DIFFERENCE, REBUILD), REBUILD),
        Control("noise", "publish", (OFF, ON), OFF),
        Control(
            "epsilon",
            "ε of each question",
            (0.01, 0.03, 0.1, 0.25, 0.5, 1, 2),
            0.1,
            term=ABOUT_EPSILON,
        ),
        Control(
            "questions",
            "counts of groups",
            _QUESTIONS,
            200,
            term=(
                "How many counts are published. Each counts the yes among a random half of the "
                "people."
            ),
        ),
    ),
    presets=(
        Preset("the same with noise", {"noise": ON}),
        Preset("two totals", {"attack": DIFFERENCE}),
    ),
    compute=view,
    experiments=(
        Experiment(
            "attack",
            "Attack",
            "attacks",
            ("attack", "noise", "epsilon", "questions"),
            attack,
            unit="salary",
        ),
    ),
)
