"""Mechanisms of known privacy: functions of a dataset and a number of outputs, for black boxes.

Real numbers are rounded to a grid, since the low bits of float noise reveal the value.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

GRID = 2**20
Batch = Callable[[Any, int], Any]  # Any: outputs of any kind


def generator(seed: int = 24) -> np.random.Generator:
    return np.random.default_rng(seed)


def on_grid(values: Any) -> Any:  # Any: arrays
    return np.round(values * GRID) / GRID


def randomized_response(epsilon: float, seed: int = 24) -> Batch:
    random = generator(seed)
    lie = 1 / (1 + math.exp(epsilon))
    return lambda bit, count: bit ^ (random.random(count) < lie).astype(int)


def laplace(epsilon: float, seed: int = 24) -> Batch:
    random = generator(seed)
    return lambda value, count: on_grid(value + random.laplace(0, 1 / epsilon, count))


def geometric(epsilon: float, seed: int = 24) -> Batch:
    random = generator(seed)
    p = 1 - math.exp(-epsilon)

    def draw(value: int, count: int) -> Any:  # Any: an array
        return value + random.geometric(p, count) - random.geometric(p, count)

    return draw


def gaussian(stddev: float, seed: int = 24) -> Batch:
    random = generator(seed)
    return lambda value, count: on_grid(value + random.normal(0, stddev, count))
