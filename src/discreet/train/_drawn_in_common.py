"""Finds losses in which all examples of a batch share random numbers.

Such numbers are drawn for each microbatch. With several microbatches, one more record would move
others from one to the next, and so change much more than its own contribution
(docs/proofs/training.md).
"""

import random
from collections.abc import Callable

import torch
from numpy.random import mtrand
from torch import Tensor, nn

from discreet.noise import SecureBits
from discreet.train._capture import Capture
from discreet.train._collated import Microbatch
from discreet.train._eager import eager
from discreet.train._rules import RULES
from discreet.train._rules._packed import packing
from discreet.train._secret_draws import secret_draws


def draw_in_common(
    model: nn.Module, losses: Callable[[], Tensor], part: Microbatch, examples: int
) -> bool:
    """Whether the losses of these made-up examples share random numbers: of PyTorch, or any of
    Python's or NumPy's, which are not followed."""
    capture = Capture(model, dict(model.named_parameters()), examples, RULES, batch=part)
    with secret_draws(SecureBits()), eager(), packing(capture, model), torch.enable_grad():
        before = _states()
        with capture:
            losses()
        is_drawn_otherwise = _states() != before
    capture.uses.clear()  # breaks a reference cycle
    return is_drawn_otherwise or capture.tags.draws.are_in_common


def _states() -> tuple[object, str]:
    return random.getstate(), str(mtrand.get_bit_generator().state)
