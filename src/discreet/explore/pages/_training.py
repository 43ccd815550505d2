"""Training: logistic regression on two clusters, plain and private, side by side."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from discreet.explore._page import (
    Control,
    ControlValues,
    Experiment,
    ExperimentOutcome,
    Overlay,
    Page,
    Preset,
    StepPoints,
    View,
)
from discreet.explore.pages import _clusters
from discreet.explore.pages._clusters import (
    DELTA,
    PLAIN,
    PRIVATE,
    RunSettings,
    SeparatingLine,
)
from discreet.explore.pages._texts import (
    ABOUT_CLIP,
    ABOUT_NOISE,
    about,
    at_most,
    meaning,
    percent,
    program,
)
from discreet.plots import Axis, Chart, Series

_RECORDS, _STEPS, _SEED, _REACH = 200, 20, 1, 4.2
_POINTS, _LABELS = _clusters.clusters(_RECORDS, _SEED)
_RUNS = 12  # simulated ones
_PLAIN_MAP, _PRIVATE_MAP, _EPSILONS, _ACCURACY = range(4)  # places of the charts

_CODE = """
import numpy as np
from discreet.accounting import Gaussian, PoissonSampled

step = PoissonSampled(Gaussian({noise}), rate={batch} / 200)
epsilon = ({steps} * step).epsilon({delta})
early = (10 * step).epsilon({delta})
scale = {noise} * {clip}  # of the noise on the sum of clipped gradients

# plain gradient descent on the same two clusters
chance = np.random.default_rng({seed})
y = np.arange(200) % 2 == 1
points = np.where(y, 1, -1)[:, None] * [1.2, 0.9] + chance.normal(size=(200, 2))
x, weights = np.column_stack([points, np.ones(200)]), np.zeros(3)
for _ in range({steps}):
    wrong = 1 / (1 + np.exp(-(x @ weights))) - y
    weights = weights - {rate} * x.T @ wrong / 200
plain = float(((points @ weights[:2] + weights[2] > 0) == y).mean())


def train():
    \"\"\"A private run; each call draws fresh noise and needs discreet[torch].\"\"\"
    from discreet.train import plan
    from discreet.train.examples._boundaries import private_steps

    made = plan(
        multiplier={noise}, delta={delta}, records=200, batch={batch}, steps={steps}, clip={clip}
    )
    return list(private_steps(points, y, made, {rate}))  # the boundary after each step
"""


def view(values: ControlValues) -> View:
    """The price of private training, and the plain model."""
    clip, noise, batch, rate = (values[name] for name in ("clip", "noise", "batch", "rate"))
    lines = _plain(rate)
    plain = lines[-1].right(_POINTS, _LABELS)
    spent = {steps: _epsilon(noise, batch, steps) for steps in range(1, _STEPS + 1)}
    epsilon, scale = spent[_STEPS], noise * clip
    return View(
        says=(
            f"A private step takes about {batch} of {_RECORDS} examples, clips each one’s gradient "
            f"to length {clip:g}, and adds noise of standard deviation {about(scale)} to their "
            f"sum. {_STEPS} steps cost ε = {at_most(epsilon)} at δ = 10⁻⁵."
        ),
        meaning=_meaning(noise, batch),
        charts=(
            _map("Plain training", "It settles at the same line every time.", lines[-1]),
            _map(
                "Private training",
                f"One real run, and {_RUNS} simulated ones in grey.",
                None,
                _spread(clip, noise, batch, rate),
            ),
            _epsilon_chart(spent),
            Chart(
                "Right answers by step",
                "The share of points on the right side.",
                Axis("step", 0, _STEPS),
                Axis("right, in %", 0, 102),
                (_accuracy("plain", lines, PLAIN),),
            ),
        ),
        heads=("", "plain", "private"),
        rows=(
            ("examples in a step", f"all {_RECORDS}", f"about {batch}, drawn at random"),
            ("longest gradient of one example", "any", f"{clip:g}"),
            ("noise on the sum, standard deviation", "none", about(scale)),
            ("ε after 10 steps", "no bound", at_most(spent[10])),
            (f"ε after {_STEPS} steps", "no bound", at_most(epsilon)),
            ("right answers", percent(plain), "differs from run to run"),
        ),
        figures={"epsilon": epsilon, "early": spent[10], "scale": scale, "plain": plain},
        code=program(
            _CODE,
            clip=clip,
            noise=noise,
            batch=batch,
            rate=rate,
            delta=DELTA,
            steps=_STEPS,
            seed=_SEED,
        ),
    )


def _map(
    title: str, text: str, line: SeparatingLine | None, others: tuple[Series, ...] = ()
) -> Chart:
    drawn = [] if line is None else [_clusters.line_series("plain", line, _REACH, PLAIN)]
    points = _clusters.point_series(_POINTS, _LABELS)
    return _clusters.map_of(title, text, _REACH, (*points, *others, *drawn))


def _spread(clip: float, noise: float, batch: int, rate: float) -> tuple[Series, ...]:
    """Where runs end, by ordinary random numbers, the same ones for each view."""
    weights = _clusters.simulated(
        _POINTS,
        _LABELS,
        clip=clip,
        noise=noise,
        batch=batch,
        records=_RECORDS,
        rate=rate,
        steps=_STEPS,
        chance=np.random.default_rng(_SEED),
        runs=_RUNS,
    )
    lines = (SeparatingLine(*map(float, each)) for each in weights)
    found = (_clusters.line_series("", line, _REACH, _clusters.LEFT) for line in lines)
    return tuple(found)


def _epsilon_chart(spent: dict[int, float]) -> Chart:
    return Chart(
        "Epsilon by step",
        "The second axis is logarithmic.",
        Axis("step", 0, _STEPS),
        Axis("epsilon (ε)", 0.01, 100, is_log=True),
        (Series("private", "line", tuple(spent.items()), PRIVATE),),
    )


def _accuracy(label: str, lines: tuple[SeparatingLine, ...], style: int) -> Series:
    found = (line.right(_POINTS, _LABELS) for line in lines)
    points = tuple((step, round(100 * one, 1)) for step, one in enumerate(found, 1))
    return Series(label, "line", points, style)


@lru_cache(maxsize=8)
def _plain(rate: float) -> tuple[SeparatingLine, ...]:
    return _clusters.plain_lines(_POINTS, _LABELS, rate=rate, steps=_STEPS)


@lru_cache(maxsize=512)
def _epsilon(noise: float, batch: int, steps: int) -> float:
    return _clusters.run_loss(noise, batch / _RECORDS, steps).epsilon(DELTA)


@lru_cache(maxsize=64)
def _meaning(noise: float, batch: int) -> str:
    return meaning(_clusters.run_loss(noise, batch / _RECORDS, _STEPS), DELTA)


def train(values: ControlValues) -> ExperimentOutcome:
    """Train privately, once."""
    return next(train_all([values]))


@_clusters.needing_torch
def train_all(many: Sequence[ControlValues]) -> Iterator[ExperimentOutcome]:
    """A private run for each of these values."""
    names = ("clip", "noise", "batch", "rate")
    settings = [RunSettings(*(values[name] for name in names)) for values in many]
    runs = _clusters.private_lines(_POINTS, _LABELS, settings, records=_RECORDS, steps=_STEPS)
    for one, lines in zip(settings, runs, strict=True):
        yield _outcome(one, lines)


def _outcome(settings: RunSettings, lines: tuple[SeparatingLine, ...]) -> ExperimentOutcome:
    plain = _plain(settings.rate)
    boundary = _clusters.line_series("private", lines[-1], _REACH, PRIVATE)
    return ExperimentOutcome(
        f"The private model is right on {percent(lines[-1].right(_POINTS, _LABELS))} of the "
        f"points, the plain one on {percent(plain[-1].right(_POINTS, _LABELS))}; the lines differ "
        f"by {plain[-1].angle(lines[-1]):.0f}°",
        overlays=(
            *([Overlay(_PRIVATE_MAP, boundary)] if boundary.points else []),
            Overlay(_ACCURACY, _accuracy("private", lines, PRIVATE)),
        ),
        steps=tuple(
            f"Step {step} of {_STEPS}: ε = "
            f"{at_most(_epsilon(settings.noise, settings.batch, step))}; right answers: private "
            f"{percent(private.right(_POINTS, _LABELS))}, plain "
            f"{percent(other.right(_POINTS, _LABELS))}."
            for step, (private, other) in enumerate(zip(lines, plain, strict=True), 1)
        ),
        frames=(
            StepPoints(_PLAIN_MAP, "plain", tuple(line.within(_REACH) for line in plain)),
            StepPoints(_PRIVATE_MAP, "private", tuple(line.within(_REACH) for line in lines)),
        ),
    )


PAGE = Page(
    name="training",
    title="Training",
    lead=(
        "Private training learns nearly the same line between two clusters, from clipped and noisy "
        "steps."
    ),
    question="Which of these controls buy privacy, and which only accuracy?",
    answer=(
        "More noise and smaller batches buy privacy, and fewer steps would. The clip norm and"
        " the learning rate change the accuracy only."
    ),
    notes=(
        (
            "Each step moves the line along the examples’ gradients. Private training first clips "
            "each gradient, so that no example counts for more than the clip norm, and then adds "
            "Gaussian noise in proportion to it. Train a few times, or press Play: the private "
            "line wobbles by the noise, the plain line does not. The grey lines show how much, for "
            "twelve runs that are simulated without discreet.train."
        ),
        (
            "The price depends on the noise multiplier, the batch and the number of steps, not on "
            "the clip norm or the learning rate. A clip norm that is too small slows learning "
            "down; one that is too large lets in much noise."
        ),
        (
            "The points are made up. With real ones, the points and the plain line would be "
            "private; only the private line could be shown."
        ),
    ),
    controls=(
        Control("clip", "clip norm", (0.1, 0.5, 2, 8), 0.5, term=ABOUT_CLIP),
        Control("noise", "noise multiplier", (0.5, 1, 2, 4, 8), 4, term=ABOUT_NOISE),
        Control(
            "batch",
            "examples in a step",
            (20, 50, 100),
            50,
            term=(
                "How many of the 200 examples a step draws, on average. Fewer are more private, "
                "since fewer steps see you."
            ),
        ),
        Control(
            "rate",
            "learning rate",
            (0.2, 1, 5),
            1,
            term="How far a step moves the model along its noisy gradient. It changes no privacy.",
        ),
    ),
    presets=(
        Preset("much noise", {"noise": 8}),
        Preset("hardly any clipping", {"clip": 8}),
        Preset("small batches", {"batch": 20}),
    ),
    compute=view,
    experiments=(
        Experiment(
            "train",
            "Train",
            "private runs",
            ("clip", "noise", "batch", "rate"),
            train,
            is_immediate=True,
            recorded=2,
            busy="Training…",
            record=train_all,
            timelines=(_EPSILONS, _ACCURACY),
        ),
    ),
)
