"""Assertions as users write them: pytest rewrites those of its own files."""

import torch
from torch import Tensor


def raised(bad: Tensor) -> None:
    if bad.any():
        raise ValueError(f"{tuple(bad.shape)} {'a' if bad.dim() else 'b'}")


def raised_beside(bad: Tensor) -> None:
    for turn in range(2):
        if turn and bad.dtype == torch.bool and bad.any():
            reason = f"not good: {turn}"
            raise ValueError(reason)


def asserted(good: Tensor) -> None:
    assert good.all(), "not good"


def asserted_with_others(good: Tensor) -> None:
    assert isinstance(good, Tensor)
    assert good.all() and bool(good.any()), f"{good.shape}"  # noqa: PT018  two jumps to one error


def caught(good: Tensor) -> None:
    try:
        assert good.all()
    except AssertionError:
        raise ValueError from None
