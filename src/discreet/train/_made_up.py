"""Batches for checks: made-up numbers or public examples, and neighbours of them.

A neighbour has the same examples in some places and others elsewhere. Made-up numbers may change to
any others. Public examples change places only, since a loss may be defined for few values.
"""

from collections.abc import Callable, Hashable, Sequence
from enum import Enum
from typing import Any

import torch
from torch import Tensor

from discreet.errors import InvalidArgument

Batch = Any  # a tensor, or tuples, lists and mappings of them: examples in each first dimension
Change = Callable[[Tensor], Tensor]

_GIVE_LIKE = (
    "if their values are the cause, give like=: public examples with values that the model and the "
    "loss are made for"
)


class Values(Enum):
    """Where the values of examples in a check come from."""

    MADE_UP = "made-up examples"  # any numbers of the same shapes and types
    INVENTED = "made-up inputs"  # words and pixels that suit the model's configuration
    GIVEN = "the examples in like"

    @property
    def advice(self) -> str:
        """How to mend a check that fails because of the values."""
        if self is Values.GIVEN:
            return "give like= other public examples, which the model and the loss are made for"
        return _GIVE_LIKE


def each(batch: Batch, change: Change) -> Batch:
    """The change of each tensor, in the same order and names."""
    if isinstance(batch, Tensor):
        return change(batch)
    if isinstance(batch, dict):
        return {key: each(value, change) for key, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        values = [each(value, change) for value in batch]
        return type(batch)(*values) if hasattr(batch, "_fields") else type(batch)(values)
    return batch


def examples_in(like: Batch) -> int:
    """The number of examples, if all tensors have the same one."""
    sizes = [len(one) for one in tensors(like)]
    if len(set(sizes)) != 1 or not sizes[0]:
        raise InvalidArgument(f"like has {sizes} examples: give tensors of one number, above 0")
    return sizes[0]


def shapes(batch: Batch) -> Hashable:
    """Shapes and types of a batch, without the number of examples. Lengths count as the next power
    of two, since there may be as many lengths as batches."""
    found: list[tuple[torch.dtype, tuple[int, ...]]] = [
        (one.dtype, tuple((n - 1).bit_length() if n else -1 for n in one.shape[1:]))
        for one in tensors(batch)
    ]
    return tuple(found)


def repeated(batch: Batch, size: int) -> Batch:
    """The first example, so many times."""
    return each(batch, lambda one: one[:1].expand(size, *one.shape[1:]))


def made_up(like: Batch) -> Batch:
    """Normal numbers, or zeros and ones, of the same shapes and types."""
    generator = torch.Generator().manual_seed(1)

    def made(one: Tensor) -> Tensor:
        if one.is_floating_point():
            return torch.randn(one.shape, generator=generator).to(one.dtype).to(one.device)
        return torch.randint(2, one.shape, generator=generator).to(one.dtype).to(one.device)

    return each(like, made)


def in_shape(values: Batch, shape: Batch) -> Batch | None:
    """Public values, repeated or cut to the shapes of another batch with the same fields, if it has
    the same fields."""
    wanted = tensors(shape)
    if _names(values) != _names(shape):
        return None
    if [(v.dtype, v.dim()) for v in tensors(values)] != [(w.dtype, w.dim()) for w in wanted]:
        return None
    if not all(one.numel() for one in (*tensors(values), *wanted)):
        return None
    left = iter(wanted)

    def fitted(one: Tensor) -> Tensor:
        like = next(left)
        for dim in range(one.dim()):
            places = torch.arange(like.shape[dim], device=one.device) % one.shape[dim]
            one = one.index_select(dim, places)
        return one

    return each(values, fitted)


def neighbours(batch: Batch, compared: Sequence[int], *, has_values: bool) -> list[Batch]:
    """Batches with other examples in all places but those compared.

    In the last one all others are copies of an example compared, as where each of them wants the
    same one of several experts.
    """

    def changed(one: Tensor) -> Tensor:
        if has_values:
            other = one.roll(-1, 0)
        elif one.is_floating_point():
            other = (3 * one.flip(0) + 1).to(one.dtype)
        else:
            other = (1 - one.long()).to(one.dtype)
        return _with(other, one, compared)

    def crowded(one: Tensor) -> Tensor:
        last = one[compared[-1]]
        return _with(last.expand(one.shape).clone(), one, compared)

    return [each(batch, changed), each(batch, crowded)]


def is_same(one: Batch, other: Batch) -> bool:
    """Whether all numbers are equal."""
    pairs = zip(tensors(one), tensors(other), strict=True)
    return all(torch.equal(mine, theirs) for mine, theirs in pairs)


def tensors(batch: Batch) -> list[Tensor]:
    """All of a batch, in order."""
    found: list[Tensor] = []

    def note(one: Tensor) -> Tensor:
        found.append(one)
        return one

    each(batch, note)
    return found


def _names(batch: Batch) -> list[object]:
    """Names of fields, in order."""
    if isinstance(batch, dict):
        return [(key, _names(value)) for key, value in batch.items()]
    if isinstance(batch, (list, tuple)):
        return [getattr(batch, "_fields", None), *map(_names, batch)]
    return []


def _with(other: Tensor, one: Tensor, compared: Sequence[int]) -> Tensor:
    places = torch.tensor([*compared], device=one.device)
    return other.index_copy(0, places, one.index_select(0, places))
