"""Two clusters of made-up points and the lines that separate them, for the pages on training."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from discreet.accounting import Gaussian, PoissonSampled, PrivacyLoss
from discreet.explore._page import ControlValues, ExperimentOutcome, RecordOutcomes
from discreet.plots import Axis, Chart, Series

ClusterPoints = npt.NDArray[np.float64]
ClusterSides = npt.NDArray[np.bool_]

DELTA = 1e-5
LEFT, RIGHT, PLAIN, PRIVATE = 4, 3, 1, 0  # styles
_TOGETHER = 24  # runs
_ONE_AT_A_TIME = threading.Lock()  # training sets the process's generators of random numbers

NEEDS = (
    "Private training runs by PyTorch, which is not installed here: "
    "pip install 'discreet[torch]'. The price and the plain model need nothing more."
)


def needing_torch(record: RecordOutcomes) -> RecordOutcomes:
    """The same outcomes; without PyTorch, words that say how to install it."""

    def or_advice(many: Sequence[ControlValues]) -> Iterator[ExperimentOutcome]:
        try:
            yield from record(many)
        except ImportError as missing:
            if missing.name != "torch":
                raise
            yield from [ExperimentOutcome(NEEDS)] * len(many)

    return or_advice


@dataclass(frozen=True, slots=True)
class SeparatingLine:
    """The line across * x + up * y + offset = 0; its positive side belongs to the one cluster."""

    across: float
    up: float
    offset: float

    def margins(self, points: ClusterPoints) -> ClusterPoints:
        """The model's score of each point."""
        found: ClusterPoints = points @ np.array([self.across, self.up]) + self.offset
        return found

    def right(self, points: ClusterPoints, labels: ClusterSides) -> float:
        """The share of points on the right side."""
        return float(((self.margins(points) > 0) == labels).mean())

    def within(self, reach: float) -> tuple[tuple[float, float], ...]:
        """The two ends of the part inside a square around the middle; none if it is elsewhere."""
        normal = np.array([self.across, self.up])
        length = float(np.hypot(*normal))
        if length < 1e-9:
            return ()
        nearest = -self.offset * normal / length**2
        along = np.array([-self.up, self.across]) / length
        first, last = -4 * reach, 4 * reach
        for at, step in zip(nearest, along, strict=True):
            if abs(step) < 1e-12:
                if abs(at) > reach:
                    return ()
                continue
            low, high = sorted(((-reach - at) / step, (reach - at) / step))
            first, last = max(first, low), min(last, high)
        if first >= last:
            return ()
        ends = [np.clip(nearest + part * along, -reach, reach) for part in (first, last)]
        return tuple((round(float(x), 3), round(float(y), 3)) for x, y in ends)

    def angle(self, other: "SeparatingLine") -> float:
        """The angle between two lines, in degrees, from 0 to 180."""
        one, two = np.array([self.across, self.up]), np.array([other.across, other.up])
        cosine = one @ two / (np.hypot(*one) * np.hypot(*two))
        return float(np.degrees(np.arccos(np.clip(cosine, -1, 1))))


@lru_cache(maxsize=8)
def clusters(count: int, seed: int) -> tuple[ClusterPoints, ClusterSides]:
    """Made-up points of two normal clusters, and whether each belongs to the right one."""
    chance = np.random.default_rng(seed)
    labels = np.arange(count) % 2 == 1
    centres = np.where(labels, 1, -1)[:, None] * [1.2, 0.9]
    return centres + chance.normal(size=(count, 2)), labels


def plain_lines(
    points: ClusterPoints, labels: ClusterSides, *, rate: float, steps: int
) -> tuple[SeparatingLine, ...]:
    """The line after each step of plain gradient descent on all points."""
    x, weights, found = np.column_stack([points, np.ones(len(points))]), np.zeros(3), []
    for _ in range(steps):
        wrong = 1 / (1 + np.exp(-(x @ weights))) - labels
        weights = weights - rate * x.T @ wrong / len(x)
        found.append(SeparatingLine(*map(float, weights)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The settings of a private run: clip norm, noise multiplier, batch and learning rate."""

    clip: float
    noise: float
    batch: int
    rate: float


def private_lines(
    points: ClusterPoints,
    labels: ClusterSides,
    settings: Sequence[RunSettings],
    *,
    records: int,
    steps: int,
) -> Iterator[tuple[SeparatingLine, ...]]:
    """The line after each step of a private run, for each of these settings.

    ``records`` is public: it decides the sampling rate, so it must not be counted from the points
    if one of them is a secret. Runs on the same points are phases of one plan, so that the model is
    checked once for all. Raises `ImportError` without PyTorch.
    """
    from discreet.train import Stage, plan  # they load PyTorch
    from discreet.train.examples._boundaries import private_runs

    for first in range(0, len(settings), _TOGETHER):
        some = settings[first : first + _TOGETHER]
        stages = [Stage(steps, one.batch, one.clip, one.noise) for one in some]
        made = plan(multiplier=1, delta=DELTA, records=records, stages=stages)
        with _ONE_AT_A_TIME:
            runs = list(private_runs(points, labels, made, [one.rate for one in some]))
        for run in runs:
            yield tuple(SeparatingLine(*one.normal, one.offset) for one in run)


def simulated(  # noqa: PLR0913  # a plan, its data, and how many runs
    points: ClusterPoints,
    labels: ClusterSides,
    *,
    clip: float,
    noise: float,
    batch: int,
    records: int,
    rate: float,
    steps: int,
    chance: np.random.Generator,
    runs: int,
) -> ClusterPoints:
    """The weights after clipped and noisy steps of many runs at once, shape (runs, 3).

    These are the steps of `private_lines` with ordinary random numbers, without `discreet.train`.
    """
    x, weights = np.column_stack([points, np.ones(len(points))]), np.zeros((runs, 3))
    reach = np.linalg.norm(x, axis=1)
    for _ in range(steps):
        wrong = 1 / (1 + np.exp(-(weights @ x.T))) - labels
        clipped = np.sign(wrong) * np.minimum(np.abs(wrong), clip / reach)
        if batch < records:
            clipped = clipped * (chance.random(clipped.shape) < batch / records)
        total = clipped @ x + chance.normal(0, noise * clip, (runs, 3))
        weights = weights - rate * total / batch
    return weights


def run_loss(noise: float, rate: float, steps: int) -> PrivacyLoss:
    """The privacy loss of a private run, as its plan states it."""
    return steps * PoissonSampled(Gaussian(noise), rate=rate)


def point_series(points: ClusterPoints, labels: ClusterSides) -> tuple[Series, Series]:
    """The points of both clusters."""
    rounded = np.round(points, 2)
    left, right = (
        tuple((float(x), float(y)) for x, y in rounded[labels == side]) for side in (False, True)
    )
    return Series("", "points", left, LEFT), Series("", "points", right, RIGHT)


def map_of(title: str, about: str, reach: float, series: Sequence[Series]) -> Chart:
    """A map of the plane."""
    plane = Axis("", -reach, reach)
    return Chart(title, about, plane, plane, tuple(one for one in series if one.points), (), True)


def line_series(label: str, line: SeparatingLine, reach: float, style: int) -> Series:
    """A boundary inside the map."""
    return Series(label, "line", line.within(reach), style)
