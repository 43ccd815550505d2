"""Thresholds: numbers that are asked one by one, and private keys."""

from discreet.mechanisms.thresholds._gaussian_threshold import GaussianThreshold
from discreet.mechanisms.thresholds._laplace_threshold import LaplaceThreshold
from discreet.mechanisms.thresholds._numeric_sparse_vector import NumericSparseVector
from discreet.mechanisms.thresholds._partition_selection import PartitionSelection
from discreet.mechanisms.thresholds._set_union import SetUnion, WeightsPart, sets_of_keys
from discreet.mechanisms.thresholds._sparse_vector import SparseVector

__all__ = [
    "GaussianThreshold",
    "LaplaceThreshold",
    "NumericSparseVector",
    "PartitionSelection",
    "SetUnion",
    "SparseVector",
    "WeightsPart",
    "sets_of_keys",
]
