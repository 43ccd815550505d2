"""Mechanisms for functions whose sensitivity is not known, or is large for some tables only.

To read the files in order:

1. `_sample_and_aggregate`: runs any function on blocks of the table, each unit in one block.
2. `_blocks`: releases the median or the mean of the blocks' values.
3. `_propose_test_release`: proposes a bound on the local sensitivity, tests whether the table is
   far from violating it, and releases the value only then.
"""

from discreet.mechanisms.framework._blocks import MeanOfBlocks, MedianOfBlocks
from discreet.mechanisms.framework._propose_test_release import (
    Proposed,
    ProposedPart,
    ProposeTestRelease,
    proposed,
)
from discreet.mechanisms.framework._sample_and_aggregate import sample_and_aggregate

__all__ = [
    "MeanOfBlocks",
    "MedianOfBlocks",
    "ProposeTestRelease",
    "Proposed",
    "ProposedPart",
    "proposed",
    "sample_and_aggregate",
]
