"""The choice of one or several candidates by private scores.

To read the files in order:

1. `_scores`: public candidates, and how far a unit moves scores apart; `_choice`, the base.
2. The mechanisms: `_exponential`, `_permute_and_flip`, `_noisy_max`, `_top_k`,
   `_best_of_each_group`, `_densest_interval`.
3. Forecasts of errors: `_gaps` and `_races`.
"""

from discreet.mechanisms.selection._best_of_each_group import BestOfEachGroup
from discreet.mechanisms.selection._densest_interval import DensestInterval
from discreet.mechanisms.selection._exponential import ExponentialMechanism
from discreet.mechanisms.selection._noisy_max import NoisyMax
from discreet.mechanisms.selection._permute_and_flip import PermuteAndFlip
from discreet.mechanisms.selection._scores import Moves
from discreet.mechanisms.selection._top_k import TopK, TopKNoise
from discreet.noise._flipped_pieces import flip_piece
from discreet.noise._pieces import choose_piece

__all__ = [
    "BestOfEachGroup",
    "DensestInterval",
    "ExponentialMechanism",
    "Moves",
    "NoisyMax",
    "PermuteAndFlip",
    "TopK",
    "TopKNoise",
    "choose_piece",
    "flip_piece",
]
