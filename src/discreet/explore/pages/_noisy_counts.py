"""Counts with noise, for the page on mechanisms: one answer, or many that share one epsilon."""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from flint import arb
from scipy.special import ndtr

from discreet._exact import precision
from discreet._unit import Unit
from discreet.explore._page import ControlValues, View, shown
from discreet.explore.pages._mechanism_facts import (
    LOSS_CODE,
    loss_rows,
    of_loss,
    ratio_chart,
    round_top,
)
from discreet.explore.pages._texts import about, at_most, meaning, program
from discreet.mechanisms import Bounded, DiscreteLaplace, Gaussian, IntegerArray, Sensitivity
from discreet.noise import NoiseLaw
from discreet.plots import Axis, Chart, RuleLine, Series

_WITHOUT = 40  # people counted, without you
_REACH = 30  # outputs to each side, for little noise
_PERSON = Unit("person")
_BITS = 256

LAPLACE, GAUSSIAN = "Laplace noise", "Gaussian noise"
QUESTIONS = (1, 3, 10, 30, 100)

_COUNT = """
import discreet as dp
import numpy as np
from discreet.mechanisms import Sensitivity

person = dp.Unit("person")
count = dp.Bounded(lambda: 40, sensitivity={sensitivity}, unit=person, name="one count")
counts = dp.Bounded(
    lambda: np.full({questions}, 40),
    sensitivity=Sensitivity(linf={sensitivity}, length={questions}),
    unit=person,
    name="all counts",
    shape=({questions},),
)
"""
_NOISE = """
loss = mechanism.privacy_loss(counts)
alone = mechanism.privacy_loss(count).epsilon({delta})  # of one of the answers
error = mechanism.error(0.95)  # of each answer
stddev = mechanism.stddev_of_noise()
"""
_CODES = {
    LAPLACE: "mechanism = dp.DiscreteLaplace.for_epsilon({epsilon}, counts)",
    GAUSSIAN: "mechanism = dp.Gaussian.for_epsilon({epsilon}, {delta}, counts)",
}
_BEYOND = """
# the probability that the ratio of all answers together exceeds e^epsilon, before rounding
from scipy.special import ndtr

multiplier = float(mechanism.stddev) / ({sensitivity} * {questions} ** 0.5)
beyond = float(ndtr(1 / (2 * multiplier) - {epsilon} * multiplier))
"""


def noise_view(values: ControlValues) -> View:
    """Both laws of a noisy count, and the errors of many."""
    sensitivity, questions = values["sensitivity"], values["questions"]
    is_gaussian = values["mechanism"] == GAUSSIAN
    delta = values["delta"] if is_gaussian else 0
    mechanism = _mechanism(values, questions, is_gaussian=is_gaussian)
    loss = mechanism.privacy_loss(_counts(sensitivity, questions))
    figures = {
        **of_loss(loss, delta),
        "alone": mechanism.privacy_loss(_one_count(sensitivity)).epsilon(delta),
        "error": mechanism.error(0.95),
        "stddev": mechanism.stddev_of_noise(),
    }
    beyond = "0"
    if isinstance(mechanism, Gaussian):
        figures["beyond"] = _beyond(mechanism, sensitivity, questions, values["epsilon"])
        beyond = f"{about(figures['beyond'] / delta)} δ"
    reach = _reach(figures["stddev"], sensitivity)
    return View(
        says=_noise_says(values, mechanism.error(0.95), is_gaussian=is_gaussian),
        meaning=meaning(loss, delta),
        charts=(
            *_number_charts(mechanism.law, sensitivity, values["epsilon"], reach),
            _error_chart(values, is_gaussian=is_gaussian),
        ),
        heads=("fact", "value"),
        rows=(
            *loss_rows(figures, delta),
            ("probability of a ratio above e^ε, before rounding", beyond),
            ("ε of one answer alone", at_most(figures["alone"])),
            ("error of each answer, at 95 %", f"± {figures['error']:,}"),
            ("standard deviation of the noise", about(figures["stddev"])),
        ),
        figures=figures,
        code=program(
            _COUNT
            + _CODES[values["mechanism"]]
            + _NOISE.rstrip()
            + LOSS_CODE
            + (_BEYOND if is_gaussian else ""),
            epsilon=values["epsilon"],
            sensitivity=sensitivity,
            delta=delta,
            questions=questions,
        ),
    )


def _beyond(noise: Gaussian, sensitivity: int, questions: int, epsilon: float) -> float:
    """The probability, with you in the data, of outputs whose ratio exceeds e^epsilon.

    Before rounding, the logarithm of the ratio of all answers together is normal, with mean 1 /
    (2 m^2) and standard deviation 1 / m, m being the multiplier.
    """
    multiplier = float(noise.stddev) / (sensitivity * math.sqrt(questions))
    return float(ndtr(1 / (2 * multiplier) - epsilon * multiplier))


def _noise_says(values: ControlValues, error: int, *, is_gaussian: bool) -> str:
    other = _mechanism(values, values["questions"], is_gaussian=not is_gaussian).error(0.95)
    name = "Laplace" if is_gaussian else "Gaussian"
    many = values["questions"] > 1
    subject = f"Each of {values['questions']} answers" if many else "The answer"
    if is_gaussian:
        tail = (
            "The ratio grows without end, but the probability of any set of outputs is at most e^ε "
            f"times that for the other table, plus δ = {shown(values['delta'])}."
        )
    elif many:
        tail = f"Each answer alone gets ε = {about(values['epsilon'] / values['questions'])}."
    else:
        tail = "Beyond the two true answers the ratio is e^ε exactly: there the bound is tight."
    errors = f"at most {error:,} in 95 % of cases; with {name} noise by {other:,}"
    return f"{subject} is off by {errors}. {tail}"


def _one_count(sensitivity: int) -> Bounded[int]:
    return Bounded(lambda: _WITHOUT, sensitivity=sensitivity, unit=_PERSON, name="one count")


def _counts(sensitivity: int, questions: int) -> Bounded[IntegerArray]:
    """Counts that one person changes by up to the sensitivity each."""
    return Bounded(
        lambda: np.full(questions, _WITHOUT),
        sensitivity=Sensitivity(linf=sensitivity, length=questions),
        unit=_PERSON,
        name="all counts",
        shape=(questions,),
    )


def _mechanism(
    values: ControlValues, questions: int, *, is_gaussian: bool
) -> Gaussian | DiscreteLaplace:
    """The noise with which this many answers together cost the chosen epsilon."""
    delta = values["delta"] if is_gaussian else 0
    return _calibrated(values["epsilon"], delta, values["sensitivity"], questions)


@lru_cache(maxsize=8192)
def _calibrated(
    epsilon: float, delta: float, sensitivity: int, questions: int
) -> Gaussian | DiscreteLaplace:
    counts = _counts(sensitivity, questions)
    if delta:
        return Gaussian.for_epsilon(epsilon, delta, counts)
    return DiscreteLaplace.for_epsilon(epsilon, counts)


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
            Axis("probability of the output", 0, round_top(max(laws[0]))),
            (
                Series("without you", "steps", _points(outputs, laws[0]), 0),
                Series("with you", "steps", _points(outputs, laws[1]), 1),
            ),
            (
                RuleLine("x", _WITHOUT, f"true answers: {_WITHOUT} and {shifted}"),
                RuleLine("x", shifted, ""),
            ),
        ),
        ratio_chart(x, Series("ln ratio", "line", _points(outputs, logs), 2), epsilon),
    )


def _points(outputs: Sequence[int], heights: Sequence[float]) -> tuple[tuple[int, float], ...]:
    """Points to draw, to five digits, which is finer than a picture shows."""
    return tuple((x, float(f"{y:.5g}")) for x, y in zip(outputs, heights, strict=True))


def _error_chart(values: ControlValues, *, is_gaussian: bool) -> Chart:
    def errors(label: str, style: int, *, is_gaussian: bool) -> Series:
        found = (
            _mechanism(values, count, is_gaussian=is_gaussian).error(0.95) for count in QUESTIONS
        )
        return Series(label, "line", tuple(zip(QUESTIONS, found, strict=True)), style)

    lines = (
        errors("Laplace noise", 0, is_gaussian=False),
        errors("Gaussian noise", 1, is_gaussian=True),
    )
    chosen = lines[int(is_gaussian)].points[QUESTIONS.index(values["questions"])]
    return Chart(
        "Error of each answer, if ε pays for many",
        f"At 95 %; both axes are logarithmic. Gaussian noise spends δ = {shown(values['delta'])}.",
        Axis("questions", QUESTIONS[0], QUESTIONS[-1], is_log=True),
        Axis("error", 1, 100_000, is_log=True),
        (*lines, Series("yours", "dots", (chosen,), 0)),
    )


def _chance(law: NoiseLaw, magnitude: int) -> arb:
    """The probability of this outcome, and of its negative."""
    if not magnitude:
        return 1 - law.tail(1)
    return (law.tail(magnitude) - law.tail(magnitude + 1)) / 2
