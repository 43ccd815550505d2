"""Temperature: after private training one number is fitted, on public points or on private ones."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from discreet._budget import Limit
from discreet._unit import Unit
from discreet.accounting import BoundedRange, PrivacyLoss
from discreet.explore._page import (
    Control,
    ControlValues,
    Experiment,
    ExperimentOutcome,
    Overlay,
    Page,
    Preset,
    View,
)
from discreet.explore.pages import _clusters
from discreet.explore.pages._clusters import (
    DELTA,
    PLAIN,
    PRIVATE,
    ClusterPoints,
    RunSettings,
    SeparatingLine,
)
from discreet.explore.pages._mechanism_facts import on_axis
from discreet.explore.pages._texts import (
    ABOUT_EPSILON,
    ABOUT_NOISE,
    about,
    at_most,
    meaning,
    program,
)
from discreet.mechanisms import Bounded, IntegerArray, Sensitivity, release
from discreet.mechanisms.selection import ExponentialMechanism, Moves
from discreet.plots import Axis, Chart, Series

_RECORDS, _STEPS, _CLIP, _RATE = 200, 20, 0.1, 0.75
_LOG_LOSS = Axis("log loss", 0.03, 2.0, is_log=True)
_PRIVATE_POINTS = _clusters.clusters(_RECORDS, 1)
_PUBLIC_POINTS = _clusters.clusters(100, 9)
_TEMPERATURES = (0.01, 0.03, 0.06, 0.1, 0.2, 0.35, 0.6, 1, 3)
_FINE = 50  # steps of a score in a log loss of 1
_LONGEST = 3  # longer log losses of one example count as this
_CURVE = 0  # place of the chart

PUBLIC, PRIVATE_POINTS = "public points", "private points"

_CODE = """
from discreet.accounting import BoundedRange, Gaussian, PoissonSampled

training = {steps} * PoissonSampled(Gaussian({noise}), rate=1)  # every step takes all examples
epsilon = training.epsilon({delta})
{then}
total = both.epsilon({delta})
"""
_FREE = "both = training  # a temperature fitted on public points adds nothing"
_CHARGED = "both = training + BoundedRange({choice})  # the choice by the exponential mechanism"


def view(values: ControlValues) -> View:
    """The prices of training, of fitting, and of both."""
    noise, choice, is_public = values["noise"], values["choice"], values["data"] == PUBLIC
    epsilon, total = (_epsilon(noise, one) for one in (0, 0 if is_public else choice))
    if is_public:
        then = "Fitting the temperature on public points reads no private point: it is free"
    else:
        then = (
            f"Fitting it on private points reads them again: with the choice, ε = {at_most(total)}"
        )
    return View(
        says=(
            f"Training cost ε = {at_most(epsilon)}. A temperature above 1 makes the model less "
            f"sure of itself, one below 1 surer. {then}."
        ),
        meaning=_meaning(noise, 0 if is_public else choice),
        charts=(
            Chart(
                "How wrong the model’s probabilities are",
                (
                    f"Log loss on the {values['data']}: the average of minus the logarithm of the "
                    "probability that the model gives to a point’s true side. Lower is better, "
                    "and what lies beyond 2 is not drawn; "
                    "dots are the temperatures chosen."
                ),
                Axis("temperature", _TEMPERATURES[0], _TEMPERATURES[-1], is_log=True),
                _LOG_LOSS,
                (_curve("plain model", _plain(), PLAIN, is_public=is_public),),
            ),
            Chart(
                "What it costs",
                "Epsilon at δ = 10⁻⁵, before the temperature is fitted and after.",
                Axis("", categories=("trained", "and fitted")),
                Axis("epsilon (ε)", 0, 1.1 * _epsilon(noise, 4)),
                (Series("", "bars", (("trained", epsilon), ("and fitted", total)), 0),),
            ),
        ),
        heads=("", "ε at δ = 10⁻⁵"),
        rows=(
            ("the trained model", at_most(epsilon)),
            ("used ten times more, drawn, rounded or published", at_most(epsilon)),
            ("with a temperature fitted on public points", at_most(epsilon)),
            (
                f"with a temperature fitted on private points, at ε = {choice:g}",
                at_most(_epsilon(noise, choice)),
            ),
        ),
        figures={"epsilon": epsilon, "total": total},
        code=program(
            _CODE,
            steps=_STEPS,
            noise=noise,
            delta=DELTA,
            then=_FREE if is_public else _CHARGED.format(choice=choice),
        ),
    )


@lru_cache(maxsize=64)
def _epsilon(noise: float, choice: float) -> float:
    return _loss(noise, choice).epsilon(DELTA)


@lru_cache(maxsize=64)
def _meaning(noise: float, choice: float) -> str:
    return meaning(_loss(noise, choice), DELTA)


def _loss(noise: float, choice: float) -> PrivacyLoss:
    run = _clusters.run_loss(noise, 1, _STEPS)
    return run + BoundedRange(choice) if choice else run


@lru_cache(maxsize=1)
def _plain() -> SeparatingLine:
    return _clusters.plain_lines(*_PRIVATE_POINTS, rate=_RATE, steps=_STEPS)[-1]


def _losses(line: SeparatingLine, *, is_public: bool) -> ClusterPoints:
    """The log loss of each point at each temperature, shape (point, temperature)."""
    points, labels = _PUBLIC_POINTS if is_public else _PRIVATE_POINTS
    towards = line.margins(points) * np.where(labels, 1, -1)
    found: ClusterPoints = np.logaddexp(0, -towards[:, None] / np.array(_TEMPERATURES))
    return found


def _curve(label: str, line: SeparatingLine, style: int, *, is_public: bool) -> Series:
    means = _losses(line, is_public=is_public).mean(axis=0)
    points = ((t, round(float(m), 4)) for t, m in zip(_TEMPERATURES, means, strict=True))
    return Series(label, "line", on_axis(points, _LOG_LOSS), style)


def fit(values: ControlValues) -> ExperimentOutcome:
    """A private run, and a temperature for its model."""
    return next(fit_all([values]))


@_clusters.needing_torch
def fit_all(many: Sequence[ControlValues]) -> Iterator[ExperimentOutcome]:
    """A private run and a temperature for each of these values. A run depends on the noise alone,
    so other values of the other controls share it."""
    turns, keys = Counter[tuple[str, float, float]](), list[tuple[float, int]]()
    for values in many:
        own = values["data"], values["choice"], values["noise"]
        keys.append((values["noise"], turns[own]))
        turns[own] += 1
    wanted = list(dict.fromkeys(keys))
    settings = [RunSettings(_CLIP, noise, _RECORDS, _RATE) for noise, _ in wanted]
    runs = _clusters.private_lines(*_PRIVATE_POINTS, settings, records=_RECORDS, steps=_STEPS)
    lines = {key: run[-1] for key, run in zip(wanted, runs, strict=True)}
    for key, values in zip(keys, many, strict=True):
        yield _fitted(lines[key], values)


def _fitted(line: SeparatingLine, values: ControlValues) -> ExperimentOutcome:
    """A temperature for this model."""
    is_public = values["data"] == PUBLIC
    losses = _losses(line, is_public=is_public)
    means = losses.mean(axis=0)
    best = int(means.argmin())
    chosen = best if is_public else _chosen(losses, values["choice"])
    curve = _curve("private model", line, PRIVATE, is_public=is_public)
    at_one, at_chosen = (float(means[n]) for n in (_TEMPERATURES.index(1), chosen))
    point = on_axis([(_TEMPERATURES[chosen], round(at_chosen, 4))], _LOG_LOSS)
    drawn = (curve, Series("chosen", "dots", point, PRIVATE))
    return ExperimentOutcome(
        f"Temperature {_TEMPERATURES[chosen]:g}: the log loss is {about(at_chosen)}, and "
        f"was {about(at_one)} at temperature 1",
        overlays=tuple(Overlay(_CURVE, one) for one in drawn if one.points),
    )


def _chosen(losses: ClusterPoints, epsilon: float) -> int:
    """The place of a temperature, by the exponential mechanism.

    A point has up to 150 units of loss at each temperature, and its loss lowers all scores.
    """
    from discreet.ledger import Ledger  # it loads a database

    units = np.rint(_FINE * np.minimum(losses, _LONGEST)).astype(np.int64)

    def scores() -> IntegerArray:
        found: IntegerArray = -units.sum(axis=0)
        return found

    asked = Bounded(
        scores,
        sensitivity=Sensitivity(linf=_FINE * _LONGEST, length=len(_TEMPERATURES)),
        unit=Unit.ROW,
        name="log losses by temperature",
        shape=(len(_TEMPERATURES),),
    )
    places = list(range(len(_TEMPERATURES)))
    mechanism = ExponentialMechanism.for_epsilon(epsilon, asked, places, moves=Moves.TOGETHER)
    ledger = Ledger.in_memory(unit=Unit.ROW, limit=Limit(epsilon=2 * epsilon))
    return int(str(release(asked, mechanism, ledger).value))


PAGE = Page(
    name="temperature",
    title="After training",
    lead=(
        "A privately trained model can be used and changed at no further cost, unless the change "
        "looks at private data again."
    ),
    question="What is free after training, and what must be paid again?",
    answer=(
        "All that is computed from the released model and from public points is free. "
        "Whatever looks at the private points again must be paid."
    ),
    notes=(
        (
            "A model states probabilities, and clipping makes it state them too timidly. "
            "Its scores divided by one number, the temperature, state better ones. Whatever is "
            "computed from the released model and from public points costs nothing: this is "
            "post-processing."
        ),
        (
            "A temperature that fits the private points best says something about these points. "
            "So it is chosen at random, better ones more likely, by the exponential mechanism, and "
            "the choice is charged. The same holds for early stopping, for the choice of a "
            "checkpoint and for settings tuned on private data."
        ),
    ),
    controls=(
        Control("data", "fit the temperature on", (PUBLIC, PRIVATE_POINTS), PUBLIC),
        Control(
            "choice",
            "ε of the choice",
            (0.1, 0.3, 1, 3),
            1,
            "Only private points need it.",
            ABOUT_EPSILON,
        ),
        Control("noise", "noise multiplier of training", (2, 4, 8, 16), 8, term=ABOUT_NOISE),
    ),
    presets=(
        Preset("fit on private points", {"data": PRIVATE_POINTS}),
        Preset("pay less for the choice", {"data": PRIVATE_POINTS, "choice": 0.1}),
    ),
    compute=view,
    experiments=(
        Experiment(
            "fit",
            "Train and fit",
            "fitted models",
            ("data", "choice", "noise"),
            fit,
            is_immediate=True,
            recorded=3,
            busy="Training…",
            record=fit_all,
        ),
    ),
)
