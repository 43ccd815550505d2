"""What is done right before and after each step of an optimizer, whatever it is wrapped in."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch


@contextmanager
def around_steps(
    optimizer: torch.optim.Optimizer,
    *,
    before: Callable[[], None] = lambda: None,
    after: Callable[[], None] = lambda: None,
) -> Iterator[None]:
    """Call both with each step made within the block; a step and what follows are one to Ctrl-C."""
    inner: torch.optim.Optimizer = getattr(
        optimizer, "optimizer", optimizer
    )  # Accelerate's is in it
    hooks = (
        inner.register_step_pre_hook(lambda *_: before()),
        inner.register_step_post_hook(lambda *_: after()),
    )
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
