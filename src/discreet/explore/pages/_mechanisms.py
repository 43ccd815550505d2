"""Mechanisms: the laws of the output for two neighbouring tables, and their ratio."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from discreet._html import up
from discreet._unit import Unit
from discreet.explore._page import Control, ControlValues, Page, Preset, View
from discreet.explore.pages._mechanism_facts import (
    LOSS_CODE,
    guess_is_right,
    loss_rows,
    of_loss,
    ratio_chart,
)
from discreet.explore.pages._noisy_counts import GAUSSIAN, LAPLACE, QUESTIONS, noise_view
from discreet.explore.pages._texts import (
    ABOUT_DELTA,
    ABOUT_EPSILON,
    WHICH_VALUE,
    at_most,
    meaning,
    percent,
    program,
)
from discreet.local import RandomizedResponse
from discreet.mechanisms import Bounded, IntegerArray, Sensitivity
from discreet.mechanisms.selection import ExponentialMechanism
from discreet.plots import Axis, Chart, Series

_PERSON = Unit("person")
_CANDIDATES = ("red", "blue", "green", "yellow")
_VOTES = (9, 7, 5, 3)

RESPONSE, EXPONENTIAL = "randomized response", "exponential mechanism"

_CODES = {
    RESPONSE: """
from discreet.local import RandomizedResponse

mechanism = RandomizedResponse({epsilon})
truth = float(mechanism.client.truth)  # the probability of the true answer
error = mechanism.error(0.95, reports=1000)  # of a share among 1000 people
loss = mechanism.privacy_loss()
""",
    EXPONENTIAL: """
import discreet as dp
import numpy as np
from discreet.mechanisms import Sensitivity
from discreet.mechanisms.selection import ExponentialMechanism

votes = np.array([9, 7, 5, 3])
scores = dp.Bounded(
    lambda: votes,
    sensitivity=Sensitivity(linf={sensitivity}, length=4),
    unit=dp.Unit("person"),
    name="votes",
    shape=(4,),
)
mechanism = ExponentialMechanism.for_epsilon({epsilon}, scores, ["red", "blue", "green", "yellow"])
weights = np.exp(float(mechanism.rate) * votes)
truth = float(weights[0] / weights.sum())  # the probability of red, which has most votes
chances = weights / weights.sum()
gaps = votes.max() - votes
error = int(min(gap for gap in gaps if chances[gaps <= gap].sum() >= 0.95))
loss = mechanism.privacy_loss(scores)
""",
}


def view(values: ControlValues) -> View:
    """Both laws at this epsilon."""
    return _KINDS[values["mechanism"]](values)


def _response(values: ControlValues) -> View:
    mechanism = RandomizedResponse(values["epsilon"])
    truth = float(mechanism.client.truth)
    loss = mechanism.privacy_loss()
    figures = {
        **of_loss(loss, 0),
        "truth": truth,
        "error": mechanism.error(0.95, reports=1000),
    }
    yours, other = (truth, 1 - truth), (1 - truth, truth)
    return View(
        says=(
            f"A person who means yes says yes with probability {percent(truth)}. One who means no "
            f"also says yes, with probability {percent(1 - truth)}. A yes proves nothing about you."
        ),
        meaning=meaning(loss, guess=WHICH_VALUE),
        charts=_choice_charts(("yes", "no"), yours, other, values["epsilon"], labels=("yes", "no")),
        heads=("fact", "value"),
        rows=(
            *loss_rows(figures, 0),
            ("probability of the truth", percent(truth)),
            (
                "error of a share among 1,000 people, at 95 %",
                f"± {up(100 * figures['error'], 3)} percentage points",
            ),
        ),
        figures=figures,
        code=_code(values),
        idle=("sensitivity", "delta", "questions"),
    )


def _exponential(values: ControlValues) -> View:
    sensitivity = values["sensitivity"]
    votes = np.array(_VOTES)
    scores = Bounded(
        lambda: votes,
        sensitivity=Sensitivity(linf=sensitivity, length=len(_VOTES)),
        unit=_PERSON,
        name="votes",
        shape=(len(_VOTES),),
    )
    mechanism = ExponentialMechanism.for_epsilon(values["epsilon"], scores, list(_CANDIDATES))
    first = _chances(votes, float(mechanism.rate))
    moved = votes + np.array([-sensitivity, sensitivity, 0, 0])
    second = _chances(moved, float(mechanism.rate))
    figures = {
        **of_loss(mechanism.privacy_loss(scores), 0),
        "truth": first[0],
        "error": _gap(votes, first),
    }
    names = tuple(f"{name} ({score})" for name, score in zip(_CANDIDATES, _VOTES, strict=True))
    return View(
        says=(
            f"Red has most votes and wins with probability {percent(first[0])}. You may take "
            f"{sensitivity} from one and give {sensitivity} to another; no probability changes by "
            "more than a factor of e^ε."
        ),
        meaning=meaning(mechanism.privacy_loss(scores)),
        charts=_choice_charts(
            names, first, second, values["epsilon"], labels=("as is", "your votes moved")
        ),
        heads=("candidate (votes)", "probability", "with your votes moved"),
        rows=(
            *((n, percent(a), percent(b)) for n, a, b in zip(names, first, second, strict=True)),
            ("ε, proven", at_most(figures["epsilon"]), ""),
            ("a guess between the two is right", guess_is_right(figures["advantage"]), ""),
            ("votes below the best, at 95 %", f"at most {figures['error']}", ""),
        ),
        figures=figures,
        code=_code(values),
        idle=("delta", "questions"),
    )


_KINDS: dict[str, Callable[[ControlValues], View]] = {
    LAPLACE: noise_view,
    GAUSSIAN: noise_view,
    RESPONSE: _response,
    EXPONENTIAL: _exponential,
}


def _code(values: ControlValues) -> str:
    template = _CODES[values["mechanism"]].rstrip() + LOSS_CODE
    return program(template, epsilon=values["epsilon"], sensitivity=values["sensitivity"], delta=0)


def _choice_charts(
    names: Sequence[str],
    first: Sequence[float],
    second: Sequence[float],
    epsilon: float,
    *,
    labels: tuple[str, str],
) -> tuple[Chart, Chart]:
    x = Axis("outcome", categories=tuple(names))
    logs = [math.log(b / a) for a, b in zip(first, second, strict=True)]
    return (
        Chart(
            "Two laws of the outcome",
            "The closer the bars, the less an outcome says about you.",
            x,
            Axis("probability", 0, 1),
            (
                Series(labels[0], "bars", tuple(zip(names, first, strict=True)), 0),
                Series(labels[1], "bars", tuple(zip(names, second, strict=True)), 1),
            ),
        ),
        ratio_chart(
            x, Series("ln ratio", "dots", tuple(zip(names, logs, strict=True)), 2), epsilon
        ),
    )


def _gap(scores: IntegerArray, chances: Sequence[float]) -> int:
    """The choice has at most this many votes less than the best, with probability 95 %."""
    gaps, likely = scores.max() - scores, np.array(chances)
    return int(min(gap for gap in gaps if likely[gaps <= gap].sum() >= 0.95))


def _chances(scores: IntegerArray, rate: float) -> tuple[float, ...]:
    weights = np.exp(rate * scores)
    return tuple(map(float, weights / weights.sum()))


PAGE = Page(
    name="mechanisms",
    title="Mechanisms",
    lead=(
        "A mechanism draws its output at random, so that the output is about as likely with your "
        "data as without them."
    ),
    question="How can an answer be useful if it hardly depends on you?",
    answer=(
        "The noise is about as large as one person’s part, divided by ε. That hides one "
        "person, and it is little beside the count of many."
    ),
    notes=(
        (
            "The picture shows the output’s law twice: for a table without you and for the "
            "same table with you. An attacker who sees an output can only weigh one line "
            "against the other. The second picture shows this weight for each output."
        ),
        (
            "Laplace noise, randomized response and the exponential mechanism keep the ratio below "
            "e^ε for every output. Gaussian noise does not: there the probability of any set of "
            "outputs is at most e^ε times that for the other table, plus δ. Outputs with a larger "
            "ratio are together more likely than δ: it bounds only what is beyond e^ε. "
            "In return it shares ε better among many questions: its error grows with the square "
            "root of their number, that of Laplace noise with the number itself."
        ),
        "The noise is drawn on whole numbers, and each has exactly its stated probability.",
    ),
    controls=(
        Control("mechanism", "mechanism", (LAPLACE, GAUSSIAN, RESPONSE, EXPONENTIAL), LAPLACE),
        Control(
            "epsilon",
            "epsilon (ε)",
            (0.1, 0.2, 0.35, 0.5, 0.7, 1, 1.4, 2, 3),
            0.5,
            term=ABOUT_EPSILON,
        ),
        Control(
            "sensitivity",
            "sensitivity",
            (1, 3, 8),
            1,
            "How much one person changes the true answer. Randomized response has none.",
        ),
        Control(
            "delta",
            "delta (δ)",
            (1e-9, 1e-6, 1e-3),
            1e-6,
            "Only Gaussian noise needs it.",
            ABOUT_DELTA,
        ),
        Control(
            "questions",
            "number of questions",
            QUESTIONS,
            1,
            "The chosen ε pays for all answers together.",
        ),
    ),
    presets=(
        Preset("hardly any privacy", {"epsilon": 3}),
        Preset("a hundred questions", {"mechanism": GAUSSIAN, "questions": 100}),
        Preset("one answer by a coin", {"mechanism": RESPONSE}),
    ),
    compute=view,
)
