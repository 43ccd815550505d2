"""Choosing one of many by private scores."""

from discreet.mechanisms.selection.best_of_each_group import BestOfEachGroup
from discreet.mechanisms.selection.densest_interval import DensestInterval
from discreet.mechanisms.selection.exponential import ExponentialMechanism
from discreet.mechanisms.selection.flipped_pieces import flip_piece
from discreet.mechanisms.selection.noisy_max import NoisyMax
from discreet.mechanisms.selection.permute_and_flip import PermuteAndFlip
from discreet.mechanisms.selection.pieces import choose_piece
from discreet.mechanisms.selection.scores import Moves
from discreet.mechanisms.selection.top_k import TopK

__all__ = [
    "BestOfEachGroup",
    "DensestInterval",
    "ExponentialMechanism",
    "Moves",
    "NoisyMax",
    "PermuteAndFlip",
    "TopK",
    "choose_piece",
    "flip_piece",
]
