"""Choosing one of many by private scores."""

from discreet.mechanisms.selection._best_of_each_group import BestOfEachGroup
from discreet.mechanisms.selection._densest_interval import DensestInterval
from discreet.mechanisms.selection._exponential import ExponentialMechanism
from discreet.mechanisms.selection._flipped_pieces import flip_piece
from discreet.mechanisms.selection._noisy_max import NoisyMax
from discreet.mechanisms.selection._permute_and_flip import PermuteAndFlip
from discreet.mechanisms.selection._pieces import choose_piece
from discreet.mechanisms.selection._scores import Moves
from discreet.mechanisms.selection._top_k import TopK, TopKNoise

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
