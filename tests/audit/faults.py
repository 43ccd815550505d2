"""Faults of private mechanisms as small stand-ins, each beside its right version.

Each is a function of a dataset and a number of outputs, or of a dataset alone. A dataset is a list
of numbers, one for each person. Real noise is rounded to a grid in right versions, since the low
bits of float noise reveal the value.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.accounting import Gaussian, PrivacyLoss, Term
from tests.audit.laws import generator, on_grid

Function = Callable[..., Any]  # Any: outputs of any kind
Data = list[float]

RANDOM = generator()
FEW, MANY = 1_500, 30_000
ONE_MORE = ([1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 1.0])
OUTLIER = ([1.0, 0.0], [1.0, 0.0, 1e6])
ROWS = [(owner, value) for owner in range(1, 11) for value in (0.0, 1.0)]


@dataclass(frozen=True)
class Fault:
    """A broken and a right mechanism, two neighbouring datasets, and what both claim."""

    broken: Function
    right: Function
    pair: tuple[Any, Any] = ONE_MORE
    claim: float | Term | PrivacyLoss = 1.0
    delta: float = 0.0
    samples: int = FEW


def laplace(scale: float, count: int | None = None) -> Any:  # Any: a number or an array
    return on_grid(RANDOM.laplace(0, scale, count))


def clipped(data: Data, most: float = 1.0) -> list[float]:
    return [min(max(value, 0.0), most) if value == value else 0.0 for value in data]


def summed(scale: float = 1.0, most: float = 1.0) -> Function:
    """The sum of clipped values with Laplace noise."""
    return lambda data, count: sum(clipped(data, most)) + laplace(scale, count)


def without_noise_at_times(data: Data, count: int) -> Any:
    is_lost = RANDOM.random(count) < 0.001
    return sum(clipped(data)) + np.where(is_lost, 0, laplace(2, count))


def seeded(seed: Callable[[Data], int]) -> Function:
    def draw(data: Data) -> float:
        return len(data) + round(np.random.default_rng(seed(data)).laplace(0, 1), 6)

    return draw


def groups(*, only_known: bool, in_order: bool) -> Function:
    """Noisy counts of the values 0, 1 and 2."""

    def draw(data: Data) -> Any:
        counts = {key: data.count(key) for key in (0.0, 1.0, 2.0)}
        keys = [key for key in counts if counts[key] or not only_known]
        if in_order:
            keys.sort(key=lambda key: -counts[key])
        return {key: counts[key] + laplace(1) for key in keys}

    return draw


def mean(*, fails: bool) -> Function:
    def draw(data: Data) -> Any:
        ones = sum(value == 1.0 for value in data) if fails else max(1.0, len(data) + laplace(2))
        return round(1 / ones, 6) + laplace(2)

    return draw


def noisy_max(scale: float, *, shows_score: bool) -> Function:
    """The place of the largest noisy count, of 0 and of 1."""

    def draw(data: Data, count: int) -> Any:
        scores = np.array([data.count(0.0), data.count(1.0)])
        best = np.argmax(scores + RANDOM.laplace(0, scale, (count, 2)), axis=1)
        return np.column_stack([best, scores[best]]) if shows_score else best

    return draw


def exponential(rate: float) -> Function:
    def draw(data: Data, count: int) -> Any:
        weights = np.exp(rate * np.array([data.count(0.0), data.count(1.0)]))
        return RANDOM.choice(2, count, p=weights / weights.sum())

    return draw


def sparse(*, query_noise: float, stops: bool) -> Function:
    """Which answers are above a noisy threshold, up to the first one or all; the data are the
    answers themselves."""

    def draw(answers: Data, count: int) -> Any:
        noise = RANDOM.laplace(0, query_noise, (count, len(answers))) if query_noise else 0
        above = np.array(answers) + noise >= RANDOM.laplace(0, 2, (count, 1))
        if not stops:
            return above
        return np.where(above.any(axis=1), above.argmax(axis=1), len(answers))

    return draw


def answers(times: int, epsilon: float) -> Function:
    lie = 1 / (1 + math.exp(epsilon / times))

    def draw(data: Data, count: int) -> Any:
        return (data[0] + (RANDOM.random((count, times)) < lie)) % 2

    return draw


def vector(stddev: float) -> Function:
    def draw(data: Data, count: int) -> Any:
        return on_grid(sum(data) * np.ones(9) + RANDOM.normal(0, stddev, (count, 9)))

    return draw


def repeated(times: int, scale: float) -> Function:
    return lambda data, count: on_grid(len(data) + RANDOM.laplace(0, scale, (count, times)))


def shown_keys(*, noise: bool) -> Function:
    def draw(data: Data) -> Any:
        return data.count(1.0) + (laplace(0.5) if noise else 0) > 2.5

    return draw


def histogram(*, all_cells: bool) -> Function:
    def draw(data: Data) -> list[float]:
        counts = [data.count(float(key)) for key in range(3)]
        return [count + laplace(1) if count or all_cells else 0.0 for count in counts]

    return draw


def local_noise(data: Data, count: int) -> Any:
    return laplace(max(clipped(data), default=0.0) + 0.01, count)


def sampled(rate: float) -> Function:
    """A sum over a Poisson sample, with Laplace noise of scale 1."""

    def draw(data: Data, count: int) -> Any:
        return RANDOM.binomial(len(data), rate, count) + laplace(1, count)

    return draw


def truncated(data: Data, count: int) -> Any:
    return on_grid(len(data) + np.clip(RANDOM.normal(0, 1, count), -1, 1))


def masked(*, by_place: bool) -> Function:
    """A sum of values, of which a mask leaves out half: every second place, or by a coin each."""

    def draw(data: Data, count: int) -> Any:
        kept = sum(clipped(data[::2])) if by_place else RANDOM.binomial(int(sum(data)), 0.5, count)
        return kept + laplace(1, count)

    return draw


def one_row_each(*, sorts_owners: bool) -> Function:
    """A sum of each owner's last value; if only the column of owners is sorted, then rows are
    credited to others."""

    def draw(rows: list[tuple[int, float]], count: int) -> Any:
        owners = [owner for owner, _ in rows]
        credited = sorted(owners) if sorts_owners else owners
        last = dict(zip(credited, (value for _, value in rows), strict=True))
        return sum(last.values()) + laplace(1, count)

    return draw


def session(*, keeps_noise: bool) -> Function:
    """Two answers of one session: all people, and those with 1."""

    def draw(data: Data, count: int) -> Any:
        noise = [laplace(2, count), laplace(2, count)]
        second = noise[0 if keeps_noise else 1]
        return np.column_stack([len(data) + noise[0], data.count(1.0) + second])

    return draw


def suppressed(data: Data) -> float | None:
    return len(data) + laplace(1) if len(data) > 3 else None


AMPLIFIED = math.log1p(0.2 * math.expm1(1.0))  # sampling at 0.2, of epsilon 1

FAULTS = {
    "noise halved": Fault(summed(0.5), summed()),
    "a tenth less noise": Fault(summed(0.9), summed(), samples=200_000),
    "scale epsilon, not 1 / epsilon": Fault(summed(0.5), summed(2), claim=0.5),
    "no noise once in a thousand": Fault(
        without_noise_at_times, summed(2), claim=0.5, samples=100_000
    ),
    "sensitivity too small": Fault(summed(1, most=4), summed(4, most=4), ([1.0], [1.0, 4.0])),
    "NaN passes": Fault(lambda data: sum(data) + laplace(1), summed(), ([1.0], [1.0, math.nan])),
    "clip skipped": Fault(lambda data: sum(data) + laplace(1), summed(), OUTLIER),
    "infinity passes": Fault(
        lambda data: sum(data) + laplace(1), summed(), ([1.0], [1.0, math.inf])
    ),
    "negative values pass": Fault(
        lambda data: sum(min(value, 1.0) for value in data) + laplace(1),
        summed(),
        ([1.0], [1.0, -9]),
    ),
    "seed known": Fault(seeded(lambda _: 1), summed()),
    "seed from the data": Fault(seeded(len), summed()),
    "float noise on the value": Fault(
        lambda data, count: len(data) + RANDOM.laplace(0, 1, count),
        lambda data, count: len(data) + laplace(1, count),
        ([], [1.0]),
        samples=MANY,
    ),
    "grid from the data": Fault(
        lambda data: round(len(data) + laplace(1), 2 if len(data) > 3 else 4),
        lambda data: round(len(data) + laplace(1), 2),
    ),
    "keys of the data": Fault(
        groups(only_known=True, in_order=False),
        groups(only_known=False, in_order=False),
        ([1.0], [1.0, 2.0]),
    ),
    "order of the data": Fault(
        groups(only_known=False, in_order=True),
        groups(only_known=False, in_order=False),
        ([0.0, 0.0, 1.0, 2.0], [0.0, 0.0, 1.0, 2.0, 2.0]),
    ),
    "error from the data": Fault(mean(fails=True), mean(fails=False), ([0.0], [0.0, 1.0])),
    "type from the data": Fault(
        lambda data: len(data) if len(data) > 3 else float(len(data)) + laplace(1), summed()
    ),
    "length from the data": Fault(
        lambda data: [laplace(1) for _ in data], lambda _: [laplace(1) for _ in range(3)]
    ),
    "noisy maximum with half the noise": Fault(
        noisy_max(0.5, shows_score=False),
        noisy_max(2, shows_score=False),
        ([1.0], [1.0, 1.0]),
        samples=MANY,
    ),
    "score of the maximum without noise": Fault(
        noisy_max(2, shows_score=True), noisy_max(2, shows_score=False)
    ),
    "exponential mechanism at twice the rate": Fault(
        exponential(2.0), exponential(0.5), ([0.0, 1.0], [0.0, 1.0, 1.0]), samples=MANY
    ),
    "sparse vector without noise on queries": Fault(
        sparse(query_noise=0, stops=False),
        sparse(query_noise=4, stops=True),
        ([0.0, 1.0], [1.0, 0.0]),
    ),
    "sparse vector goes on after its hit": Fault(
        sparse(query_noise=4, stops=False),
        sparse(query_noise=4, stops=True),
        ([0.0, 1.0] * 30, [1.0, 0.0] * 30),
        samples=MANY,
    ),
    "answers repeated with fresh noise": Fault(answers(1, 3), answers(3, 1), ([0.0], [1.0])),
    "noise for one coordinate": Fault(vector(1), vector(3), claim=Gaussian(1)),
    "a count of ten forgotten": Fault(repeated(10, 1), repeated(10, 10)),
    "threshold without noise": Fault(shown_keys(noise=False), shown_keys(noise=True), claim=2.0),
    "batch size shown": Fault(
        lambda data: (len(data), len(data) + laplace(1)), lambda data: (0, len(data) + laplace(1))
    ),
    "empty cells without noise": Fault(
        histogram(all_cells=False), histogram(all_cells=True), ([1.0], [1.0, 2.0])
    ),
    "noise of one sign": Fault(lambda data, count: len(data) + np.abs(laplace(1, count)), summed()),
    "uniform noise": Fault(
        lambda data, count: on_grid(len(data) + RANDOM.uniform(-3, 3, count)),
        summed(),
        samples=MANY,
    ),
    "noise from local sensitivity": Fault(
        local_noise, lambda _, count: laplace(1.01, count), ([0.0], [0.0, 1.0])
    ),
    "amplification without sampling": Fault(
        sampled(1.0), sampled(0.2), ([], [1.0]), claim=AMPLIFIED, samples=MANY
    ),
    "tails cut off": Fault(
        truncated,
        lambda data, count: on_grid(len(data) + RANDOM.normal(0, 1, count)),
        claim=Gaussian(1),
        samples=MANY,
    ),
    "mask by the place in the batch": Fault(
        masked(by_place=True), masked(by_place=False), ([1.0, 0.0] * 5, [0.0] + [1.0, 0.0] * 5)
    ),
    "rows credited to others": Fault(
        one_row_each(sorts_owners=True),
        one_row_each(sorts_owners=False),
        (ROWS, [*ROWS, (0, 0.0)]),
    ),
    "noise kept between calls": Fault(
        session(keeps_noise=True), session(keeps_noise=False), ([1.0], [1.0, 0.0])
    ),
    "small groups suppressed": Fault(suppressed, summed()),
    "replaced, not added": Fault(
        lambda data, count: sum(2 * x - 1 for x in data) + laplace(1, count),
        lambda data, count: sum(2 * x - 1 for x in data) + laplace(2, count),
        ([1.0, 0.0], [1.0, 1.0]),
    ),
    "noise clamped around the value": Fault(
        lambda data, count: len(data) + np.clip(laplace(1, count), -0.5, 0.5), summed()
    ),
    "largest value shown": Fault(
        lambda data: (max(data), laplace(1)), lambda data: (1.0, laplace(1)), OUTLIER
    ),
    "range from the data": Fault(
        lambda data, count: np.clip(sum(clipped(data)) + laplace(1, count), 0, len(data)),
        lambda data, count: np.clip(sum(clipped(data)) + laplace(1, count), 0, 3),
    ),
    "delta a hundred times too small": Fault(
        lambda data, count: np.where(RANDOM.random(count) < 0.05, len(data), laplace(1, count)),
        lambda data, count: np.where(RANDOM.random(count) < 0.0005, len(data), 0.0),
        claim=1.0,
        delta=0.0005,
        samples=MANY,
    ),
}
