"""The questions of `benchmarks.mechanisms`: the same data, public facts and budget for all
contestants. The data are made up, from a fixed seed."""

import math

import numpy as np

EPSILON = 1.0
DELTA = 1e-6
MANY = 100_000
FEW = 1000

_random = np.random.default_rng(2022)

COUNTS = _random.integers(0, 1000, MANY)  # a unit changes one of them by 1
REALS = COUNTS / 8.0
AGES = np.clip(_random.normal(40, 15, MANY).round(), 0, 100).astype(int)  # public: 0 to 100
AGE_GRID = np.arange(0, 10001) / 100
SOME_AGES = np.clip(_random.normal(40, 15, FEW), 0, 100).round(2)  # public: hundredths, 0 to 100
_AGE_ERRORS = np.abs(AGE_GRID - np.median(SOME_AGES))
SCORES = _random.integers(0, 1000, MANY)  # a unit changes each by at most 1
CLOSE_SCORES = np.array([100, 99, 99, 98, 97, 96, 95, 95, 94, 92, 90, 88, 85, 80, 80, 75, 70, 60])
WORDS = np.repeat(np.arange(1, 1001), np.maximum(4000 // np.arange(1, 1001), 1))  # one a unit
BITS = _random.integers(0, 2, MANY)
CATEGORIES = 8

_x = _random.beta(2, 2, 10_000)
LINE = np.stack([_x, np.clip(0.2 + 0.5 * _x + _random.normal(0, 0.1, _x.size), 0, 1)], axis=1)
_hidden = _random.normal(0, 1, (10_000, 1)) * np.array([1.0, 0.8, 0.6, 0.4, 0.2])
_points = 0.25 * _hidden + _random.normal(0, 0.1, (10_000, 5))
POINTS = _points / np.maximum(1.0, np.linalg.norm(_points, axis=1, keepdims=True))  # norm at most 1
SECOND_MOMENTS = POINTS.T @ POINTS


def discrete_laplace(scale: float) -> float:
    """The mean absolute value of integer noise with P(x) proportional to exp(-|x| / scale)."""
    return 1 / math.sinh(1 / scale)


def gaussian(stddev: float) -> float:
    """The mean absolute value of normal noise."""
    return stddev * math.sqrt(2 / math.pi)


def rounded_gaussian(stddev: float) -> float:
    """The mean absolute value of rounded normal noise: the sum of P(|Z| > k - 1/2)."""
    far = math.ceil(40 * stddev)
    return sum(math.erfc((k - 0.5) / stddev / math.sqrt(2)) for k in range(1, far))


def median_by_weights(rate: float) -> float:
    """The mean distance of a median by the exponential mechanism from the true one. The candidates
    are the hundredths; a candidate's miss is the number of rows by which too many lie below it or
    above it."""
    weights = np.exp(-rate * _missing_rows())
    return float(weights / weights.sum() @ _AGE_ERRORS)


def median_by_flips(rate: float) -> float:
    """The same by permute-and-flip."""
    return _error_of_flips(_missing_rows(), _AGE_ERRORS, rate)


def median_by_flips_of_balance(rate: float) -> float:
    """The same, where the miss is half the difference of the numbers of rows below and above."""
    below, above = _below_and_above()
    return _error_of_flips(np.abs(below - above) / 2, _AGE_ERRORS, rate)


def median_between_rows(rate: float) -> float:
    """The same by the exponential mechanism over the gaps between rows, weighted by their length,
    with a uniform point within the gap."""
    ends = np.sort(np.concatenate([[0.0], SOME_AGES, [100.0]]))
    low, high, middle = ends[:-1], ends[1:], float(np.median(SOME_AGES))
    weights = (high - low) * np.exp(-rate * np.abs(np.arange(FEW + 1) - FEW / 2))
    before, after = middle - low, high - middle
    areas = (before * np.abs(before) + after * np.abs(after)) / 2  # of |x - middle| over each gap
    means = np.divide(areas, high - low, out=np.zeros_like(areas), where=high > low)
    return float(weights / weights.sum() @ means)


def _missing_rows() -> np.ndarray:
    below, above = _below_and_above()
    missed: np.ndarray = np.maximum(np.maximum(below, above) - FEW / 2, 0)
    return missed


def _below_and_above() -> tuple[np.ndarray, np.ndarray]:
    rows = np.sort(SOME_AGES)
    return np.searchsorted(rows, AGE_GRID, "left"), FEW - np.searchsorted(rows, AGE_GRID, "right")


def keys_lost(scale: float, threshold: int) -> float:
    """The expected number of words that are not released, if a word is released when its count with
    integer Laplace noise is at least the threshold."""
    ratio = math.exp(-1 / scale)
    missing = threshold - 1 - np.unique(WORDS, return_counts=True)[1]  # this noise hides it
    hidden = np.where(
        missing < 0,
        ratio ** np.abs(missing.astype(float)) / (1 + ratio),
        1 - ratio ** (np.abs(missing) + 1.0) / (1 + ratio),
    )
    return float(hidden.sum())


def keys_hidden() -> float:
    """The expected number of words that are not released, if each is released with the largest
    probability that is allowed."""
    times, number = np.unique(np.unique(WORDS, return_counts=True)[1], return_counts=True)
    released = [0.0]
    while len(released) <= times.max():
        grown = math.exp(EPSILON) * released[-1] + DELTA
        released.append(min(grown, 1 - math.exp(-EPSILON) * (1 - released[-1] - DELTA), 1.0))
    return float(number @ (1 - np.array(released)[times]))


def line_error(intercept: float, slope: float) -> float:
    """The mean distance of the line from that of least squares, at the two ends."""
    x, y = LINE.T
    best, start = np.polyfit(x, y, 1)
    ends = (intercept - start, intercept + slope - start - best)
    return float(np.abs(ends).mean())


def direction_error(direction: np.ndarray) -> float:
    """The share of the variance along the first principal direction that this direction misses."""
    unit = direction / np.linalg.norm(direction)
    largest = float(np.linalg.eigvalsh(SECOND_MOMENTS)[-1])
    return 1 - float(unit @ SECOND_MOMENTS @ unit) / largest


def gap_of_softmax(scores: np.ndarray, rate: float) -> float:
    """The expected gap between the best score and the choice of the exponential mechanism."""
    weights = np.exp(rate * (scores - scores.max()))
    return float((weights / weights.sum()) @ (scores.max() - scores))


def gap_of_flips(scores: np.ndarray, rate: float) -> float:
    """The same for permute-and-flip, which chooses the largest score with exponential noise."""
    gaps = (scores.max() - scores).astype(float)
    return _error_of_flips(gaps, gaps, rate)


def _error_of_flips(gaps: np.ndarray, errors: np.ndarray, rate: float) -> float:
    """The mean error. A candidate wins where its noisy score has its density and none lies above;
    this is integrated from the largest score on, where all noise begins."""
    different, which, times = np.unique(gaps, return_inverse=True, return_counts=True)
    mean = np.bincount(which, errors) / times
    near = different < different[0] + 80 / rate  # others win with probability below e^-80
    different, times, mean = different[near], times[near], mean[near]
    top = np.linspace(0, 60 / rate, 40_001)[1:]
    beyond = np.exp(-rate * (top + (different - different[0])[:, np.newaxis]))
    none_above = np.exp((times[:, np.newaxis] * np.log1p(-beyond)).sum(axis=0))
    chance = np.trapezoid(rate * beyond / (1 - beyond) * none_above, top, axis=1) * times
    return float(chance @ mean / chance.sum())
