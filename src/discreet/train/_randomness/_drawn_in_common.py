"""Computes made-up examples with real random numbers, as a step does.

Where a step would refuse the model, this refuses it before the charge. It also finds losses in
which all examples of a batch share random numbers. Such numbers are drawn for each microbatch.
With several microbatches, one more record would move others from one to the next, and so change
much more than its own contribution (docs/proofs/training.md).
"""

from collections.abc import Callable

from torch import Tensor, nn

from discreet.errors import Refused
from discreet.noise import SecureBits
from discreet.train._batches._collated import Microbatch
from discreet.train._clipped_sums._clipping import Clipping
from discreet.train._clipped_sums._engine import captured_sum
from discreet.train._randomness._drawn_unrecorded import WatchfulCapture
from discreet.train._randomness._held_draws import numbers_states
from discreet.train._randomness._secret_draws import SecretDraws, secret_draws
from discreet.train._rules import RULES

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

    def capture_with(draws: SecretDraws, answers: list[bool]) -> WatchfulCapture:
        capture = WatchfulCapture(
            model,
            dict(model.named_parameters()),
            examples,
            RULES,
            batch=microbatch,
            hides_shapes=hides_shapes,
        )
        capture.answers = answers

        def watched(_: None) -> Tensor:
            capture.refuse_set_states()
            before = numbers_states()
            found = losses()
            capture.refuse_set_states()
            others.append(numbers_states() != before)
            return found

        secret = draws.secret(watched)  # as a step has it

        def seeded() -> Tensor:
            found = secret(None)
            after.append(numbers_states())
            return found

        captured_sum(model, capture, seeded, clipping)
        others[-1] |= numbers_states() != after[-1]  # in the backward pass
        return capture

    others = list[bool]()  # whether Python or NumPy drew numbers, in each pass
    after = list[object]()  # their states between forward and backward pass
    # once as it comes, then with each answer to the conditions that random numbers decide
    with secret_draws(SecureBits()) as draws:
        capture = capture_with(draws, [])
        for answer in (True, False) if capture.has_tossed else ():
            try:
                capture_with(draws, [answer] * _COINS)
            except Refused:
                raise
            except Exception:  # noqa: BLE001, S112  numbers that contradict the answer
                continue
    return others[0] or capture.has_unrecorded or capture.tags.draws.are_in_common
