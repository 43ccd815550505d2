"""Mechanisms: the laws of the output for two neighbouring tables, and their ratio."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from flint import arb

from discreet._exact import precision
from discreet._unit import Unit
from discreet.accounting import PrivacyLoss
from discreet.explore._page import (
    Control,
    ControlValues,
    Page,
    View,
    shown,
)
from discreet.explore.pages._texts import (
    WHICH_VALUE,
    about,
    at_most,
    at_most_percent,
    meaning,
    percent,
    program,
)
from discreet.local import RandomizedResponse
from discreet.mechanisms import Bounded, DiscreteLaplace, Gaussian, IntegerArray, Sensitivity
from discreet.mechanisms.selection import ExponentialMechanism
from discreet.noise import NoiseLaw
from discreet.plots import Axis, Chart, RuleLine, Series

_WITHOUT = 40  # people counted, without you
_REACH = 30  # outputs to each side, for little noise
_PERSON = Unit("person")
_CANDIDATES = ("red", "blue", "green", "yellow")
_VOTES = (9, 7, 5, 3)
_BITS = 256

LAPLACE, GAUSSIAN = "Laplace noise", "Gaussian noise"
RESPONSE, EXPONENTIAL = "randomized response", "exponential mechanism"

_COUNT = """
import discreet as dp

count = dp.Bounded(lambda: 40, sensitivity={sensitivity}, unit=dp.Unit("person"), name="a count")
"""
_NOISE = """
loss = mechanism.privacy_loss(count)
error = mechanism.error(0.95)
stddev = mechanism.stddev_of_noise()
hundred = (100 * loss).epsilon({many_delta})  # of a hundred such answers together
"""
_LOSS = """
epsilon = loss.epsilon({delta})
advantage = loss.advantage()
"""
_CODES = {
    LAPLACE: _COUNT + "mechanism = dp.DiscreteLaplace.for_epsilon({epsilon}, count)" + _NOISE,
    GAUSSIAN: _COUNT + "mechanism = dp.Gaussian.for_epsilon({epsilon}, {delta}, count)" + _NOISE,
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
from flint import arb
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


def _noise(values: ControlValues) -> View:
    epsilon, delta, sensitivity = values["epsilon"], values["delta"], values["sensitivity"]
    is_gaussian = values["mechanism"] == GAUSSIAN
    count = Bounded(lambda: _WITHOUT, sensitivity=sensitivity, unit=_PERSON, name="a count")
    mechanism = (
        Gaussian.for_epsilon(epsilon, delta, count)
        if is_gaussian
        else DiscreteLaplace.for_epsilon(epsilon, count)
    )
    loss = mechanism.privacy_loss(count)
    figures = {
        **_of_loss(loss, delta if is_gaussian else 0),
        "error": mechanism.error(0.95),
        "stddev": mechanism.stddev_of_noise(),
        "hundred": (100 * loss).epsilon(delta),
    }
    reach = _reach(figures["stddev"], sensitivity)
    charts = _number_charts(mechanism.law, sensitivity, epsilon, reach)
    if is_gaussian:
        tail = (
            "The ratio grows without end, but outputs where it exceeds e^ε are rare: δ = "
            f"{shown(delta)} pays for them. In return a hundred such answers cost "
            f"ε = {at_most(figures['hundred'])} together, not {100 * epsilon:g}."
        )
    else:
        tail = "Beyond the two true answers the ratio is e^ε exactly: there the bound is tight."
    return View(
        says=f"You change the true answer by up to {sensitivity}. {tail}",
        meaning=meaning(loss, delta if is_gaussian else 0),
        charts=charts,
        heads=("fact", "value"),
        rows=(
            *_loss_rows(figures, delta if is_gaussian else 0),
            ("error at 95 %", f"± {figures['error']:,}"),
            ("standard deviation of the noise", about(figures["stddev"])),
            (f"ε of 100 such answers, at δ = {shown(delta)}", at_most(figures["hundred"])),
        ),
        figures=figures,
        code=_code(values, is_gaussian=is_gaussian),
    )


def _response(values: ControlValues) -> View:
    mechanism = RandomizedResponse(values["epsilon"])
    truth = float(mechanism.client.truth)
    loss = mechanism.privacy_loss()
    figures = {
        **_of_loss(loss, 0),
        "truth": truth,
        "error": mechanism.error(0.95, reports=1000),
    }
    yours, other = (truth, 1 - truth), (1 - truth, truth)
    return View(
        says=(
            f"Who means yes says yes with probability {percent(truth)}; who means no says it, too, "
            f"with probability {percent(1 - truth)}. A yes proves nothing about you."
        ),
        meaning=meaning(loss, guess=WHICH_VALUE),
        charts=_choice_charts(("yes", "no"), yours, other, values["epsilon"], labels=("yes", "no")),
        heads=("fact", "value"),
        rows=(
            *_loss_rows(figures, 0),
            ("probability of the truth", percent(truth)),
            (
                "error of a share among 1,000 people, at 95 %",
                f"± {at_most_percent(figures['error'])}",
            ),
        ),
        figures=figures,
        code=_code(values, is_gaussian=False),
        idle=("sensitivity", "delta"),
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
        **_of_loss(mechanism.privacy_loss(scores), 0),
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
            ("best attack’s advantage", f"at most {at_most_percent(figures['advantage'])}", ""),
            ("votes below the best, at 95 %", f"at most {figures['error']}", ""),
        ),
        figures=figures,
        code=_code(values, is_gaussian=False),
        idle=("delta",),
    )


_KINDS: dict[str, Callable[[ControlValues], View]] = {
    LAPLACE: _noise,
    GAUSSIAN: _noise,
    RESPONSE: _response,
    EXPONENTIAL: _exponential,
}


def _of_loss(loss: PrivacyLoss, delta: float) -> dict[str, float]:
    return {"epsilon": loss.epsilon(delta), "advantage": loss.advantage()}


def _loss_rows(figures: dict[str, float], delta: float) -> tuple[tuple[str, str], ...]:
    at = f" at δ = {shown(delta)}" if delta else ""
    return (
        (f"ε, proven{at}", at_most(figures["epsilon"])),
        ("best attack’s advantage", f"at most {at_most_percent(figures['advantage'])}"),
    )


def _code(values: ControlValues, *, is_gaussian: bool) -> str:
    delta = values["delta"] if is_gaussian else 0
    template = _CODES[values["mechanism"]].rstrip() + _LOSS
    return program(
        template,
        epsilon=values["epsilon"],
        sensitivity=values["sensitivity"],
        delta=delta,
        many_delta=values["delta"],
    )


# Pictures


def _reach(stddev: float, sensitivity: int) -> int:
    """How far the pictures reach to each side, so that they show most of the noise."""
    reach = _REACH
    while reach < 2.5 * stddev + sensitivity:
        reach *= 2
    return reach


def _number_charts(
    law: NoiseLaw, sensitivity: int, epsilon: float, reach: int
) -> tuple[Chart, Chart]:
    step, shifted = reach // _REACH, _WITHOUT + sensitivity
    outputs = sorted({*range(_WITHOUT - reach, _WITHOUT + reach + 1, step), shifted})
    with precision(_BITS):
        without, added = (
            [_chance(law, abs(out - centre)) for out in outputs] for centre in (_WITHOUT, shifted)
        )
        logs = [float((b / a).log()) for a, b in zip(without, added, strict=True)]
        laws = [tuple(map(float, one)) for one in (without, added)]
    x = Axis("output", outputs[0], outputs[-1])
    drawn = f" Of {step} outputs one is drawn." if step > 1 else ""
    return (
        Chart(
            "Two laws of the output",
            f"The closer the lines, the less an output says about you.{drawn}",
            x,
            Axis("probability of the output", 0, max(laws[0]) * 1.1),
            (
                Series("without you", "steps", tuple(zip(outputs, laws[0], strict=True)), 0),
                Series("with you", "steps", tuple(zip(outputs, laws[1], strict=True)), 1),
            ),
            (
                RuleLine("x", _WITHOUT, f"true answers: {_WITHOUT} and {shifted}"),
                RuleLine("x", shifted, ""),
            ),
        ),
        _ratio(x, Series("ln ratio", "line", tuple(zip(outputs, logs, strict=True)), 2), epsilon),
    )


def _chance(law: NoiseLaw, magnitude: int) -> arb:
    """The probability of this outcome, and of its negative."""
    if not magnitude:
        return 1 - law.tail(1)
    return (law.tail(magnitude) - law.tail(magnitude + 1)) / 2


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
        _ratio(x, Series("ln ratio", "dots", tuple(zip(names, logs, strict=True)), 2), epsilon),
    )


def _ratio(x: Axis, line: Series, epsilon: float) -> Chart:
    return Chart(
        "Their ratio",
        "The logarithm of (with you / without you). Privacy keeps it between −ε and ε.",
        x,
        Axis("ln ratio", -1.5 * epsilon, 1.5 * epsilon),
        (line,),
        (RuleLine("y", epsilon, "ε"), RuleLine("y", -epsilon, "−ε")),
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
    notes=(
        (
            "The picture shows the output’s law twice: for a table without you and for the "
            "same table with you. An attacker who sees an output can only weigh one line "
            "against the other. The second picture shows this weight for each output."
        ),
        (
            "Laplace noise, randomized response and the exponential mechanism keep the ratio below "
            "e^ε for every output. Gaussian noise does not: there δ bounds how often it is larger. "
            "In return many Gaussian answers together cost less, as the page on composition shows."
        ),
        "The noise is drawn on whole numbers, and each has exactly its stated probability.",
    ),
    controls=(
        Control("mechanism", "mechanism", (LAPLACE, GAUSSIAN, RESPONSE, EXPONENTIAL), LAPLACE),
        Control("epsilon", "epsilon (ε)", (0.1, 0.2, 0.35, 0.5, 0.7, 1, 1.4, 2, 3), 0.5),
        Control(
            "sensitivity",
            "sensitivity",
            (1, 2, 3, 5, 8),
            1,
            "How much one person changes the true answer. Randomized response has none.",
        ),
        Control(
            "delta",
            "delta (δ)",
            (1e-9, 1e-6, 1e-4, 1e-2),
            1e-6,
            "Gaussian noise needs it, and so do many answers together.",
        ),
    ),
    compute=view,
)
