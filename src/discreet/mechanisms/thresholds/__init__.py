"""Thresholds: the sparse vector technique, and the release of private keys.

To read the files in order:

1. `_sparse_vector`: which of many questions have an answer above a threshold; at most ``hits`` of
   them are paid for. `_numeric_sparse_vector` also releases these answers.
2. `_keys`: private keys, their order, and the probability that a unit's own key is shown.
3. `_noisy_counts`: keys with noisy counts; `_laplace_threshold` and `_gaussian_threshold`.
4. `_partition_selection` and `_set_union`: keys without counts.
5. `_keys_first`: keys with noisy counts, and then further sums of the released keys.
"""

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
