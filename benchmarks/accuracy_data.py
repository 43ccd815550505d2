"""The two data sets of scikit-learn for `benchmarks.accuracy`, scaled to [-1, 1] by constants.

No constant is computed from the training examples, since a private run could not do that. The
pixels of the digits are from 0 to 16 by definition. For the measurements of breast cancer we
declare round ranges that contain most tumours. We chose them with the published summary of these
data in view, as an owner with some experience would; values outside are clamped.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import train_test_split

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

TEST_SHARE = 0.2

# In the order of scikit-learn's columns: radius, texture, perimeter, area, smoothness, compactness,
# concavity, concave points, symmetry and fractal dimension; their means, their standard errors, and
# the mean of their three largest values.
RANGES = (
    *((7, 28), (10, 40), (45, 190), (150, 2500), (0.06, 0.15)),
    *((0.02, 0.35), (0, 0.45), (0, 0.2), (0.1, 0.3), (0.05, 0.1)),
    *((0.1, 2.5), (0.4, 4), (1, 20), (7, 300), (0.002, 0.02)),
    *((0.003, 0.12), (0, 0.3), (0, 0.05), (0.008, 0.06), (0.001, 0.02)),
    *((8, 36), (12, 50), (50, 250), (200, 4000), (0.08, 0.22)),
    *((0.03, 1), (0, 1.2), (0, 0.3), (0.15, 0.6), (0.055, 0.2)),
)


@dataclass(frozen=True, slots=True)
class Split:
    """Training examples and test examples."""

    x: Floats
    y: Ints
    test_x: Floats
    test_y: Ints

    @property
    def classes(self) -> int:
        """The number of classes, which is public."""
        return int(self.y.max()) + 1


@cache
def digits() -> tuple[Floats, Ints]:
    """1797 images of 8 x 8 pixels, scaled, with their digits."""
    x, y = load_digits(return_X_y=True)
    return x / 8 - 1, y


@cache
def breast_cancer() -> tuple[Floats, Ints]:
    """569 tumours with 30 measurements each, on a logarithmic scale, and whether each is benign."""
    x, y = load_breast_cancer(return_X_y=True)
    low, high = np.array(RANGES).T
    shift = (high - low) / 10  # so that the logarithm of 0 is finite
    share = np.log((x + shift) / (low + shift)) / np.log((high + shift) / (low + shift))
    return np.clip(2 * share - 1, -1, 1), y


DATA: dict[str, Callable[[], tuple[Floats, Ints]]] = {
    "digits": digits,
    "breast cancer": breast_cancer,
}


@cache
def split(name: str, seed: int) -> Split:
    """A stratified split: a fifth of the examples is for the test."""
    x, y = DATA[name]()
    train_x, test_x, train_y, test_y = train_test_split(
        x, y, test_size=TEST_SHARE, random_state=seed, stratify=y
    )
    return Split(train_x, train_y, test_x, test_y)
