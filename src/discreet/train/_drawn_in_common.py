"""Computes made-up examples with real random numbers, as a step does.

Where a step would refuse the model, this refuses it before the charge. It also finds losses in
which all examples of a batch share random numbers. Such numbers are drawn for each microbatch.
With several microbatches, one more record would move others from one to the next, and so change
much more than its own contribution (docs/proofs/training.md).
"""

import random
from collections.abc import Callable

from numpy.random import mtrand
from torch import Tensor, nn

from discreet.errors import Refused
from discreet.noise import SecureBits
from discreet.train._clipping import Clipping
from discreet.train._collated import Microbatch
from discreet.train._drawn_unrecorded import WatchfulCapture
from discreet.train._engine import captured_sum
from discreet.train._rules import RULES
from discreet.train._secret_draws import secret_draws

_COINS = 100  # conditions that are answered alike; a loop may wait for the other answer


def draw_in_common(  # noqa: PLR0917  # called in one place
    model: nn.Module,
    losses: Callable[[], Tensor],
    microbatch: Microbatch,
    examples: int,
    clipping: Clipping,
    *,
    hides_shapes: bool = False,
) -> bool:
    """Whether the losses of these examples share random numbers: of PyTorch, or any of Python's or
    NumPy's, which are not followed.

    Where random numbers decide a condition of Python's, both branches are computed.
    """

    def drawn(answers: list[bool]) -> WatchfulCapture:
        capture = WatchfulCapture(
            model,
            dict(model.named_parameters()),
            examples,
            RULES,
            batch=microbatch,
            hides_shapes=hides_shapes,
        )
        capture.answers = answers

        def watched() -> Tensor:
            found = losses()
            capture.refuse_set_states()
            return found

        capture.refuse_set_states()
        captured_sum(model, capture, watched, clipping)
        return capture

    with secret_draws(SecureBits()):
        before = _states()
        capture = drawn([])
        is_drawn_otherwise = _states() != before
        for answer in (True, False) if capture.has_tossed else ():
            try:
                drawn([answer] * _COINS)
            except Refused:
                raise
            except Exception:  # noqa: BLE001, S112  numbers that contradict the answer
                continue
    is_drawn_otherwise |= capture.has_unrecorded
    return is_drawn_otherwise or capture.tags.draws.are_in_common


def _states() -> tuple[object, str]:
    return random.getstate(), str(mtrand.get_bit_generator().state)
