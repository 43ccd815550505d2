"""Principal components of a released matrix, and the nearest positive semidefinite matrix."""

from dataclasses import dataclass

import numpy as np

from discreet import _checks
from discreet._arrays import FloatArray
from discreet.errors import InvalidArgument


@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """Eigenvalues and eigenvectors of a matrix, the largest eigenvalue first."""

    values: FloatArray
    """The eigenvalues, (direction)."""
    directions: FloatArray
    """Unit vectors, shape (direction, column); their entries furthest from 0 are positive."""


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
