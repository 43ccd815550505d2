"""Composition: epsilon against steps of private training, and the noise for a target."""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

from discreet.accounting import (
    Gaussian,
    PoissonSampled,
    PrivacyLoss,
    calibrate,
    calibrate_count,
)
from discreet.errors import NoBound
from discreet.explore._page import (
    Control,
    ControlValues,
    Page,
    Preset,
    View,
    shown,
)
from discreet.explore.pages._mechanism_facts import on_axis
from discreet.explore.pages._texts import (
    ABOUT_EPSILON,
    ABOUT_NOISE,
    about,
    at_least,
    at_most,
    meaning_of_both,
    program,
)
from discreet.plots import Axis, Chart, RuleLine, Series

_DELTA = 1e-6
_MOST = 100_000  # larger counts take long to compute
_STEPS = (1, 10, 100, 1000, 10_000, _MOST)
_TOLERANCE = 0.01
_SHOWN = (100, 1000, 10_000)
_LOW, _HIGH = 0.01, 1000
_RENYI = "Renyi"

_CODE = """
from discreet.accounting import Gaussian, PoissonSampled, calibrate, calibrate_count
from discreet.errors import NoBound

step = PoissonSampled(Gaussian({noise}), rate={rate})   # one step of DP-SGD
run = 1000 * step
lower, upper = run.interval({delta}, tolerance=0.01)    # certified: the truth lies between
renyi = run.explain({delta}).figures["Renyi"]


def most(noise):
    \"\"\"How many steps fit into the target; {most} if more do.\"\"\"
    step = PoissonSampled(Gaussian(noise), rate={rate})
    if ({most} * step).epsilon({delta}) <= {target}:
        return {most}
    try:
        return calibrate_count(lambda n: n * step, epsilon={target}, delta={delta}).value
    except NoBound:
        return 0


steps, longer = most({noise}), most(1.25 * {noise})     # also with a quarter more noise
# which noise 1000 steps need
needed = calibrate(
    lambda noise: 1000 * PoissonSampled(Gaussian(noise), rate={rate}),
    epsilon={target},
    delta={delta},
).value
multiplier = float(needed)
"""


def view(values: ControlValues) -> View:
    """Epsilon by steps for this noise and rate."""
    noise, rate, target = values["noise"], values["rate"], values["target"]
    # 1. compute
    steps, longer = (_most_steps(more * noise, rate, target) for more in (1, 1.25))
    multiplier = _least_noise(rate, target)
    (lower, upper), renyi = _interval(noise, rate, 1000), _renyi(noise, rate, 1000)
    figures = {
        "lower": lower,
        "upper": upper,
        "renyi": renyi,
        "steps": steps,
        "longer": longer,
        "multiplier": multiplier,
    }
    # 2. say
    return View(
        says=(
            f"With noise multiplier {noise:g} at sampling rate {rate:g}, "
            f"{_fits(steps, longer, target)}. For 1,000 steps the noise multiplier must be "
            f"{about(multiplier, 6)}."
        ),
        meaning=meaning_of_both(target, _DELTA),
        charts=(_chart(noise, rate, target),),
        heads=("steps", "certified: at least", "at most", "by Renyi alone"),
        rows=tuple(
            (
                f"{count:,}",
                at_least(_lower(noise, rate, count)),
                *map(at_most, (_upper(noise, rate, count), _renyi(noise, rate, count))),
            )
            for count in _SHOWN
        ),
        figures={name: value for name, value in figures.items() if math.isfinite(value)},
        code=program(_CODE, noise=noise, rate=rate, target=target, delta=_DELTA, most=_MOST),
    )


def _fits(steps: int, longer: int, target: float) -> str:
    if not longer:
        return f"not one step fits into ε = {target:g}, nor with a quarter more noise"
    if steps == _MOST:
        return f"{_MOST:,} steps or more fit into ε = {target:g}"
    fits = f"{steps:,} steps fit" if steps else "not one step fits"
    more = " or more" if longer == _MOST else ""
    return f"{fits} into ε = {target:g}, and {longer:,}{more} with a quarter more noise"


def _chart(noise: float, rate: float, target: float) -> Chart:
    y = Axis("epsilon (ε)", _LOW, _HIGH, is_log=True)

    def points(
        of: Callable[[float, float, int], float], counts: Sequence[int]
    ) -> tuple[tuple[float, float], ...]:
        return on_axis(((count, of(noise, rate, count)) for count in counts), y)

    return Chart(
        "Epsilon by steps",
        (
            f"At δ = {shown(_DELTA)}. Both axes are logarithmic; what is above {_HIGH:,} is not "
            "drawn. The certified ends mostly coincide."
        ),
        Axis("steps", _STEPS[0], _STEPS[-1], is_log=True),
        y,
        (
            Series("Renyi", "line", points(_renyi, _STEPS), 1),
            Series("certified: at most", "line", points(_upper, _STEPS), 0),
            Series("certified: at least", "dots", points(_lower, _SHOWN), 2),
        ),
        (RuleLine("y", target, "target"),),
    )


def _step(noise: float, rate: float) -> PrivacyLoss:
    return PrivacyLoss.of(PoissonSampled(Gaussian(noise), rate=rate))


def _upper(noise: float, rate: float, steps: int) -> float:
    return _interval(noise, rate, steps)[1] if steps in _SHOWN else _epsilon(noise, rate, steps)


def _lower(noise: float, rate: float, steps: int) -> float:
    return _interval(noise, rate, steps)[0]


@lru_cache(maxsize=1024)
def _epsilon(noise: float, rate: float, steps: int) -> float:
    return (steps * _step(noise, rate)).epsilon(_DELTA)


@lru_cache(maxsize=1024)
def _interval(noise: float, rate: float, steps: int) -> tuple[float, float]:
    """The certified ends, of which the lower one takes long."""
    lower, upper = (steps * _step(noise, rate)).interval(_DELTA, _TOLERANCE)
    return lower, upper


@lru_cache(maxsize=1024)
def _renyi(noise: float, rate: float, steps: int) -> float:
    """The bound by Renyi divergences alone."""
    return (steps * _step(noise, rate)).explain(_DELTA).figures["Renyi"]


@lru_cache(maxsize=1024)
def _most_steps(noise: float, rate: float, target: float) -> int:
    step = _step(noise, rate)
    if _epsilon(noise, rate, _MOST) <= target:
        return _MOST
    try:
        return calibrate_count(lambda count: count * step, epsilon=target, delta=_DELTA).value
    except NoBound:  # not even one step fits
        return 0


@lru_cache(maxsize=256)
def _least_noise(rate: float, target: float) -> float:
    found = calibrate(lambda noise: 1000 * _step(float(noise), rate), epsilon=target, delta=_DELTA)
    return float(found.value)


PAGE = Page(
    name="composition",
    title="Composition",
    lead=(
        "Private training takes thousands of noisy steps, and their privacy losses add up more "
        "slowly than one might fear."
    ),
    question="How much longer can a model train if the noise is a little larger?",
    answer=(
        "With a quarter more noise a model can train at least one and a half times as long, "
        "and many times as long where the noise is small."
    ),
    notes=(
        (
            "Each step of DP-SGD draws a random batch, clips each example’s gradient and adds "
            "Gaussian noise. The noise multiplier is the noise’s standard deviation over the "
            "clip norm. The sampling rate is the probability that an example is in the batch."
        ),
        (
            "Each dot is an attack that exists; the line through the dots is a proof. The true "
            "epsilon lies between them. Renyi divergences, the older way to add up, give a larger "
            "bound."
        ),
        (
            "Drag the target: the page then finds the number of steps that fit, and the least "
            "noise with which 1,000 steps fit."
        ),
    ),
    controls=(
        Control(
            "noise",
            "noise multiplier",
            (0.5, 0.64, 0.8, 1, 1.25, 1.6, 2, 2.5, 4, 5),
            1,
            term=ABOUT_NOISE,
        ),
        Control(
            "rate",
            "sampling rate",
            (0.003, 0.01, 0.03, 0.1),
            0.01,
            term=(
                "The probability that an example is in the batch of a step. A smaller one is more "
                "private, since fewer steps see you."
            ),
        ),
        Control("target", "target ε", (0.5, 1, 2, 4, 8), 2, term=ABOUT_EPSILON),
    ),
    presets=(
        Preset("a quarter more noise", {"noise": 1.25}),
        Preset("larger batches", {"rate": 0.03}),
        Preset("a strict target", {"target": 0.5}),
    ),
    compute=view,
)
