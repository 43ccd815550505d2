"""Calls right before and after each step of an optimizer, also of a wrapped one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from discreet.train._state._trials import unwrapped


@contextmanager
def around_steps(
    optimizer: torch.optim.Optimizer,
    *,
    before: Callable[[], None] = lambda: None,
    after: Callable[[], None] = lambda: None,
) -> Iterator[None]:
    """Call both around each step within the block; Ctrl-C can't come before ``after``."""
    inner = unwrapped(optimizer)
    hooks = (
        inner.register_step_pre_hook(lambda *_: before()),
        inner.register_step_post_hook(lambda *_: after()),
    )
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
