"""What is above a threshold: numbers that are asked one by one, and keys that nobody knows."""

from discreet.mechanisms.thresholds.gaussian_threshold import GaussianThreshold
from discreet.mechanisms.thresholds.laplace_threshold import LaplaceThreshold
from discreet.mechanisms.thresholds.numeric_sparse_vector import NumericSparseVector
from discreet.mechanisms.thresholds.partition_selection import PartitionSelection
from discreet.mechanisms.thresholds.set_union import SetUnion, WeightsPart, sets_of_keys
from discreet.mechanisms.thresholds.sparse_vector import SparseVector

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
