"""Principal components of a matrix that was released, and the nearest matrix that can be one."""

from dataclasses import dataclass

import numpy as np

from discreet import _checks
from discreet.errors import InvalidArgument
from discreet.noise._arrays import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """Directions and how much of a matrix lies in each, the largest first."""

    values: FloatArray
    """The eigenvalues, (direction)."""
    directions: FloatArray
    """Of length 1 each, (direction, column); the entry furthest from 0 is above 0."""


def principal_components(matrix: FloatArray, count: int) -> Components:
    """The first ``count`` eigenvectors of a symmetric matrix, as post-processing."""
    size = _checks.positive_count(count=count)
    if size > len(matrix):
        raise InvalidArgument(f"count = {count}: there are {len(matrix)} directions")
    values, vectors = np.linalg.eigh(np.asarray(matrix, dtype=np.float64))
    chosen = vectors[:, ::-1][:, :size].T
    furthest = np.take_along_axis(chosen, np.abs(chosen).argmax(axis=1)[:, np.newaxis], axis=1)
    return Components(values[::-1][:size], chosen * np.where(furthest < 0, -1.0, 1.0))


def nearest_positive(matrix: FloatArray) -> FloatArray:
    """The nearest symmetric matrix without eigenvalues below 0."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
