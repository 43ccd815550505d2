"""Ways to privacy for functions of which little is known."""

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
