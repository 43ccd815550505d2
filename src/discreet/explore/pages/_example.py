"""One example, dragged far away: how far it moves a plain model and a private one, and whether a
model gives away that it was there."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby

import numpy as np

from discreet.explore._page import (
    Control,
    ControlValues,
    Experiment,
    ExperimentOutcome,
    Guess,
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
    ClusterSides,
    RunSettings,
    SeparatingLine,
)
from discreet.explore.pages._texts import (
    ABOUT_CLIP,
    ABOUT_NOISE,
    at_most,
    at_most_percent,
    meaning,
    program,
)
from discreet.plots import Chart, Series

_RECORDS, _STEPS, _SEED, _RATE, _REACH = 100, 10, 1, 3, 8.8
_POINTS, _LABELS = _clusters.clusters(_RECORDS, _SEED)
_DIRECTION = (-0.2, -1.0)  # across the circles
_EXAMPLE, _WITHOUT = _clusters.RIGHT, 4  # styles; the example is one of the triangles
_PRIVATE_MAP = 1
_OFTEN = 100  # guesses at once
_RUNS = 8  # drawn in grey

_CODE = """
import numpy as np
from discreet.accounting import Gaussian, PoissonSampled

# every step takes all examples, so that nothing is gained by sampling
run = {steps} * PoissonSampled(Gaussian({noise}), rate=1)
epsilon = run.epsilon({delta})
bound = (1 + run.advantage()) / 2  # so often the best attack guesses right

# the plain line with the example and without it
chance = np.random.default_rng({seed})
y = np.arange(100) % 2 == 1
points = np.where(y, 1, -1)[:, None] * [1.2, 0.9] + chance.normal(size=(100, 2))


def plain(points, y):
    x, weights = np.column_stack([points, np.ones(len(points))]), np.zeros(3)
    for _ in range({steps}):
        wrong = 1 / (1 + np.exp(-(x @ weights))) - y
        weights = weights - {rate} * x.T @ wrong / len(x)
    return weights[:2]


far = {distance} * np.array({direction})
one, two = plain(points, y), plain(np.vstack([points, far]), np.append(y, True))
cosine = one @ two / (np.hypot(*one) * np.hypot(*two))
moved = float(np.degrees(np.arccos(np.clip(cosine, -1, 1))))  # degrees


def train(is_there):
    \"\"\"A private run, with the example or without it; it needs discreet[torch].\"\"\"
    from discreet.train import plan
    from discreet.train.examples._boundaries import private_steps

    made = plan(
        multiplier={noise}, delta={delta}, records=100, batch=100, steps={steps}, clip={clip}
    )
    data = (np.vstack([points, far]), np.append(y, True)) if is_there else (points, y)
    return list(private_steps(*data, made, {rate}))[-1]
"""


def view(values: ControlValues) -> View:
    """The plain model with the example and without it, and what the private run costs."""
    distance, clip, noise = values["distance"], values["clip"], values["noise"]
    before, after = _plain(None), _plain(distance)
    moved, clipped = before.angle(after), _turned(distance, clip)
    apart = _apart(clip, noise)
    epsilon, bound = _price(noise)
    return View(
        says=(
            f"A triangle at distance {distance:g} turns the plain line by {moved:.0f}°. Clipped to "
            f"{clip:g}, it turns the private line by {clipped:.1f}° before any noise; two private "
            f"runs without it differ by {apart:.0f}° in the median. A guess whether it was there "
            f"is right at most {at_most_percent(bound)} of the time."
        ),
        meaning=meaning(_clusters.run_loss(noise, 1, _STEPS), DELTA),
        charts=(
            _map(
                "Plain training",
                "Trained without the example and with it.",
                distance,
                (
                    _clusters.line_series("without it", before, _REACH, _WITHOUT),
                    _clusters.line_series("with it", after, _REACH, PLAIN),
                ),
            ),
            _map(
                "Private training",
                f"A private run each; {_RUNS} simulated ones without the example in grey.",
                distance,
                _spread(clip, noise),
            ),
        ),
        heads=("", "plain", "private"),
        rows=(
            ("the example turns the line by", f"{moved:.0f}°", f"{clipped:.1f}°, before any noise"),
            ("two runs without it differ by", "0°", f"{apart:.0f}° in the median"),
            ("longest gradient of one example", "any", f"{clip:g}"),
            ("ε of a run, at δ = 10⁻⁵", "no bound", at_most(epsilon)),
            ("a guess is right", "always", f"at most {at_most_percent(bound)}"),
        ),
        figures={"epsilon": epsilon, "bound": bound, "moved": moved},
        code=program(
            _CODE,
            distance=distance,
            clip=clip,
            noise=noise,
            delta=DELTA,
            steps=_STEPS,
            seed=_SEED,
            rate=_RATE,
            direction=_DIRECTION,
        ),
    )


def _map(title: str, text: str, distance: float, lines: tuple[Series, ...]) -> Chart:
    points = _clusters.point_series(_POINTS, _LABELS)
    example = Series("the example", "dots", (_example(distance),), _EXAMPLE)
    return _clusters.map_of(title, text, _REACH, (*points, example, *lines))


def _example(distance: float) -> tuple[float, float]:
    across, up = _DIRECTION
    return distance * across, distance * up


def _data(distance: float | None) -> tuple[ClusterPoints, ClusterSides]:
    """The points, with the example if it has a distance."""
    if distance is None:
        return _POINTS, _LABELS
    far = distance * np.array(_DIRECTION)
    return np.vstack([_POINTS, far]), np.append(_LABELS, True)


@lru_cache(maxsize=16)
def _plain(distance: float | None) -> SeparatingLine:
    return _clusters.plain_lines(*_data(distance), rate=_RATE, steps=_STEPS)[-1]


_RunKey = tuple[float | None, float, float, int]  # distance, clip norm, noise, turn


def _private(keys: Iterable[_RunKey]) -> dict[_RunKey, SeparatingLine]:
    """The line of one private run for each of these keys."""
    found: dict[_RunKey, SeparatingLine] = {}
    for _, of_distance in groupby(sorted({*keys}, key=_by_distance), _by_distance):
        wanted = list(of_distance)
        settings = [RunSettings(clip, noise, _RECORDS, _RATE) for _, clip, noise, _ in wanted]
        points, labels = _data(wanted[0][0])
        runs = _clusters.private_lines(points, labels, settings, records=_RECORDS, steps=_STEPS)
        found |= {key: lines[-1] for key, lines in zip(wanted, runs, strict=True)}
    return found


@lru_cache(maxsize=16)
def _price(noise: float) -> tuple[float, float]:
    """Epsilon, and how often the best attack guesses right."""
    run = _clusters.run_loss(noise, 1, _STEPS)
    return run.epsilon(DELTA), (1 + run.advantage()) / 2


def train(values: ControlValues) -> ExperimentOutcome:
    """A private run without the example, and one with it."""
    return next(train_all([values]))


@_clusters.needing_torch
def train_all(many: Sequence[ControlValues]) -> Iterator[ExperimentOutcome]:
    """Two private runs for each of these values. A run without the example does not depend on its
    distance, so other distances share it."""
    keys = _run_keys(many)
    lines = _private(key for one in keys for key in (one, _without(one)))
    for key in keys:
        without, found = lines[_without(key)], lines[key]
        drawn = (
            _clusters.line_series("without it", without, _REACH, _WITHOUT),
            _clusters.line_series("with it", found, _REACH, PRIVATE),
        )
        yield ExperimentOutcome(
            f"The private lines differ by {without.angle(found):.0f}°. Without noise it would be "
            f"{_turned(*key[:2]):.1f}°, by the example alone; the noise of two runs does the rest",
            overlays=tuple(Overlay(_PRIVATE_MAP, one) for one in drawn if one.points),
        )


@lru_cache(maxsize=16)
def _runs_without(clip: float, noise: float) -> tuple[SeparatingLine, ...]:
    """Simulated private runs without the example, the same ones for each view."""
    chance = np.random.default_rng(_SEED)
    weights = _simulated(_data(None), clip, noise, chance, runs=2 * _OFTEN)
    return tuple(SeparatingLine(*map(float, each)) for each in weights)


def _spread(clip: float, noise: float) -> tuple[Series, ...]:
    lines = _runs_without(clip, noise)[:_RUNS]
    return tuple(_clusters.line_series("", line, _REACH, _clusters.LEFT) for line in lines)


def _apart(clip: float, noise: float) -> float:
    """The median angle between two runs without the example, in degrees."""
    runs = _runs_without(clip, noise)
    return float(np.median([a.angle(b) for a, b in zip(runs[::2], runs[1::2], strict=True)]))


def guess(values: ControlValues) -> ExperimentOutcome:
    """An attacker gets a model trained with or without the example, and guesses which."""
    return next(guess_all([values]))


@_clusters.needing_torch
def guess_all(many: Sequence[ControlValues]) -> Iterator[ExperimentOutcome]:
    """A guess for each of these values. Other distances share the runs without the example."""
    coins = np.random.default_rng().integers(2, size=len(many)).astype(bool).tolist()
    keys = _run_keys(many)
    trained_on = [key if coin else _without(key) for key, coin in zip(keys, coins, strict=True)]
    lines = _private(trained_on)
    for values, is_there, key in zip(many, coins, trained_on, strict=True):
        distance, clip, noise = values["distance"], values["clip"], values["noise"]
        is_right = (_pull(lines[key], distance) > _threshold(distance, clip)) == is_there
        # a plain model is one of two that the attacker can compute
        said, truth = ("right" if is_right else "wrong"), ("was" if is_there else "was not")
        yield ExperimentOutcome(
            f"The example {truth} there. The guess from the plain model is right, the one from the "
            f"private model is {said}",
            guesses=_guesses(noise, [is_right]),
        )


def _run_keys(many: Sequence[ControlValues]) -> list[_RunKey]:
    """A key for each of these values; equal values get different turns."""
    names, turns = ("distance", "clip", "noise"), Counter[tuple[float, float, float]]()
    found: list[_RunKey] = []
    for values in many:
        distance, clip, noise = (values[name] for name in names)
        found.append((distance, clip, noise, turns[distance, clip, noise]))
        turns[distance, clip, noise] += 1
    return found


def _without(key: _RunKey) -> _RunKey:
    return None, *key[1:]


def _by_distance(key: _RunKey) -> float:
    return key[0] or 0.0


def guess_often(values: ControlValues) -> ExperimentOutcome:
    """A hundred guesses, each on a model of its own.

    A hundred real runs take too long. So these are simulated: the same steps for all models at
    once, with ordinary random numbers.
    """
    distance, clip, noise = values["distance"], values["clip"], values["noise"]
    chance = np.random.default_rng()
    is_there = chance.integers(2, size=_OFTEN).astype(bool)
    example = np.append(_example(distance), 1.0)
    noisy = {at: _simulated(_data(at), clip, noise, chance, runs=_OFTEN) for at in (None, distance)}
    pulls = np.where(is_there, noisy[distance] @ example, noisy[None] @ example)
    is_right = ((pulls > _threshold(distance, clip)) == is_there).tolist()
    return ExperimentOutcome(
        f"From {_OFTEN} simulated private models, {sum(is_right)} guesses are right. No attack is "
        f"right more often than {at_most_percent(_price(noise)[1])} of the time in the long run",
        guesses=_guesses(noise, is_right),
    )


def _guesses(noise: float, is_right: list[bool]) -> tuple[Guess, ...]:
    """The guesses from a plain model, which are all right, and those from a private one."""
    bound = f"at most {at_most_percent(_price(noise)[1])}"
    private = (Guess("private model", one, bound) for one in is_right)
    return (*[Guess("plain model", True)] * len(is_right), *private)


def _simulated(
    data: tuple[ClusterPoints, ClusterSides],
    clip: float,
    noise: float,
    chance: np.random.Generator,
    *,
    runs: int,
) -> ClusterPoints:
    """The weights after clipped and noisy steps, shape (runs, 3)."""
    return _clusters.simulated(
        *data,
        clip=clip,
        noise=noise,
        batch=_RECORDS,
        records=_RECORDS,
        rate=_RATE,
        steps=_STEPS,
        chance=chance,
        runs=runs,
    )


def _pull(line: SeparatingLine, distance: float) -> float:
    """The score that a model gives the example: training with it pushes this up."""
    return float(line.margins(np.array([_example(distance)]))[0])


@lru_cache(maxsize=64)
def _threshold(distance: float, clip: float) -> float:
    """Half way between the scores of clipped training without noise."""
    lines = [_clipped(_data(at), clip) for at in (None, distance)]
    return sum(_pull(line, distance) for line in lines) / 2


@lru_cache(maxsize=64)
def _turned(distance: float | None, clip: float) -> float:
    """How far the example turns the line of clipped training without noise, in degrees."""
    without, found = (_clipped(_data(at), clip) for at in (None, distance))
    return without.angle(found)


def _clipped(data: tuple[ClusterPoints, ClusterSides], clip: float) -> SeparatingLine:
    """The line after clipped steps without noise, which an attacker can compute."""
    [weights] = _simulated(data, clip, 0, np.random.default_rng(), runs=1)
    return SeparatingLine(*map(float, weights))


PAGE = Page(
    name="example",
    title="One example",
    lead=(
        "One example, moved far away, turns a plain model; private training limits its part, and "
        "adds noise that is larger."
    ),
    question="Can somebody tell from a trained model that I was in its data?",
    answer=(
        "From a plain model, yes: it turns with each example. From a private model nobody "
        "guesses right more often than the ε of its training allows."
    ),
    notes=(
        (
            "Move the example. The further it stands, the longer is its gradient, and the "
            "more it turns the plain line. Private training cuts its gradient to the clip norm, "
            "like everybody else’s. The noise then is larger than what one example can do."
        ),
        (
            "Guess plays an attacker. A coin decides whether the example is in the data. The "
            "attacker knows all other points and gets the trained model. A plain model gives the "
            "answer away each time, since he can train both and compare. From a private model he "
            "guesses by the score it gives to the example; the bound holds for every attack. "
            "A few guesses may all be right by chance; a hundred show the share. Their models are "
            "simulated by the same steps, without discreet.train, since a hundred real runs "
            "take too long."
        ),
        (
            "The two private lines differ even if the example makes no difference: each run has "
            "its own noise. This is what hides the example."
        ),
    ),
    controls=(
        Control(
            "distance",
            "distance of the example",
            (1, 2, 4, 6, 8),
            8,
            term=(
                "How far the one example stands from the middle of the picture. The further, the "
                "longer is its gradient."
            ),
        ),
        Control("clip", "clip norm", (0.1, 0.5, 2, 8), 0.5, term=ABOUT_CLIP),
        Control("noise", "noise multiplier", (2, 4, 8, 16), 8, term=ABOUT_NOISE),
    ),
    presets=(
        Preset("an example among the others", {"distance": 1}),
        Preset("little noise", {"noise": 2}),
    ),
    compute=view,
    experiments=(
        Experiment(
            "train",
            "Train",
            "private runs",
            ("distance", "clip", "noise"),
            train,
            is_immediate=True,
            recorded=2,
            busy="Training…",
            record=train_all,
        ),
        Experiment(
            "guess",
            "Guess",
            "guesses",
            ("distance", "clip", "noise"),
            guess,
            recorded=3,
            busy="Training…",
            record=guess_all,
        ),
        Experiment(
            "often",
            "100 guesses",
            "many guesses",
            ("distance", "clip", "noise"),
            guess_often,
            recorded=3,
        ),
    ),
)
