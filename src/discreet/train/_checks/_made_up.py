"""Examples for checks, made-up or public ones, and their neighbours.

A neighbour has the same examples in some places and others elsewhere. Made-up numbers may become
any others. Public examples only change places, since a loss may be defined for few values. A
microbatch is a tensor, or tuples, lists and mappings of tensors: examples come first.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from enum import Enum
from functools import partial

import torch
from torch import Tensor

from discreet.errors import InvalidArgument
from discreet.train._batches._collated import Microbatch

TensorMap = Callable[[Tensor], Tensor]

_SCALES = 1.25, 1.0, 0.8  # of a crowd's numbers, relative to those of an example compared

_GIVE_LIKE = (
    "if their values are the cause, give like=: public examples with values that the model and the "
    "loss are made for"
)


class Values(Enum):
    """The origin of the values of examples in a check, as errors name it."""

    MADE_UP = "made-up examples"  # any numbers of the same shapes and types
    OF_DATA = "made-up examples in the form of the data"  # which those in like don't have
    INVENTED = "made-up inputs"  # words and pixels that suit the model's configuration
    GIVEN = "the examples in like"

    @property
    def are_made_up(self) -> bool:
        return self in (Values.MADE_UP, Values.OF_DATA)

    @property
    def advice(self) -> str:
        """How to mend a check that fails because of the values."""
        if self is Values.OF_DATA:
            return "give like= public examples in the same form"
        if self is Values.GIVEN:
            return "give like= other public examples, which the model and the loss are made for"
        return _GIVE_LIKE


def each(microbatch: Microbatch, change: TensorMap) -> Microbatch:
    """Change each tensor, and keep order and names."""
    if isinstance(microbatch, Tensor):
        return change(microbatch)
    if isinstance(microbatch, dict):
        return {key: each(value, change) for key, value in microbatch.items()}
    if isinstance(microbatch, (list, tuple)):
        values = [each(value, change) for value in microbatch]
        return (
            type(microbatch)(*values)
            if hasattr(microbatch, "_fields")
            else type(microbatch)(values)
        )
    return microbatch


def tensors(microbatch: Microbatch) -> list[Tensor]:
    """All tensors, in order."""
    found: list[Tensor] = []

    def note(one: Tensor) -> Tensor:
        found.append(one)
        return one

    each(microbatch, note)
    return found


def examples_in(like: Microbatch) -> int:
    """The number of examples; raises unless all tensors have the same one."""
    sizes = [len(one) for one in tensors(like)]
    if len(set(sizes)) != 1 or not sizes[0]:
        raise InvalidArgument(
            f"like: its tensors have {sizes} rows; give each the same number of examples, not 0"
        )
    return sizes[0]


def shapes(microbatch: Microbatch) -> Hashable:
    """Names, shapes and types, without the number of examples.

    A length counts as the next power of two, since there may be as many lengths as batches.
    """
    found: list[tuple[torch.dtype, tuple[int, ...]]] = [
        (one.dtype, tuple((n - 1).bit_length() if n else -1 for n in one.shape[1:]))
        for one in tensors(microbatch)
    ]
    return repr(_names(microbatch)), tuple(found)


def other_form(found: Microbatch, like: Microbatch, name: str = "an example") -> str | None:
    """How the form of examples differs from that of those in ``like``, if not in lengths alone."""
    if isinstance(found, dict) and isinstance(like, dict):
        if missing := [key for key in like if key not in found]:
            return f"{name} lacks the field {missing[0]!r} of like"
        pairs = [(found[key], like[key], str(key)) for key in like]
        return next(filter(None, (other_form(*pair) for pair in pairs)), None)
    if _is_tuple(found) and _is_tuple(like) and len(found) == len(like):
        names = getattr(like, "_fields", [f"{name}[{n}]" for n in range(len(like))])
        several = zip(found, like, names, strict=True)
        return next(filter(None, (other_form(*each) for each in several)), None)
    if not (isinstance(found, Tensor) and isinstance(like, Tensor)):
        return f"{name} is a {type(found).__name__}, but in like it is a {type(like).__name__}"
    if found.dtype != like.dtype:
        return f"{name} is {_type_of(found)}, but in like it is {_type_of(like)}"
    if found.dim() != like.dim():
        return f"{name} has {found.dim() - 1} dimensions, but in like it has {like.dim() - 1}"
    return None


def copies_of_first(microbatch: Microbatch, size: int) -> Microbatch:
    """The first example, ``size`` times."""
    return each(microbatch, lambda one: one[:1].expand(size, *one.shape[1:]))


def made_up(like: Microbatch) -> Microbatch:
    """Normal numbers, or zeros and ones, of the same shapes and types."""
    generator = torch.Generator().manual_seed(1)

    def make(one: Tensor) -> Tensor:
        if one.is_floating_point():
            return torch.randn(one.shape, generator=generator).to(one.dtype).to(one.device)
        return torch.randint(2, one.shape, generator=generator).to(one.dtype).to(one.device)

    return each(like, make)


def in_shape(values: Microbatch, shape: Microbatch) -> Microbatch | None:
    """Values repeated or cut to the shapes of another microbatch, or None if its fields differ."""
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


def neighbours(
    microbatch: Microbatch, compared: Sequence[int], *, has_values: bool
) -> Iterator[Microbatch]:
    """Neighbours, with other examples in all places but those compared.

    In the first one, all others are changed. In the rest, all others are alike: copies of a
    compared example, which a mixture of experts routes to the same expert. Each of these has a
    crowd of its own, since an expert's capacity may keep the best examples or the worst. Made-up
    numbers of a crowd are larger or smaller than the example's own, so that a limit can't keep it
    as one of many equals.
    """

    def changed(one: Tensor) -> Tensor:
        if has_values:
            other = one.roll(-1, 0)
        elif one.is_floating_point():
            other = (3 * one.flip(0) + 1).to(one.dtype)
        else:
            other = (1 - one.long()).to(one.dtype)
        return _with(other, one, compared)

    def crowded(one: Tensor, place: int, scale: float) -> Tensor:
        alike = one[place].expand(one.shape).clone()
        if one.is_floating_point():
            alike *= scale
        return _with(alike, one, compared)

    yield each(microbatch, changed)
    can_scale = not has_values and any(one.is_floating_point() for one in tensors(microbatch))
    for place in compared:
        for scale in _SCALES if can_scale else (1.0,):
            yield each(microbatch, partial(crowded, place=place, scale=scale))


def is_same(one: Microbatch, other: Microbatch) -> bool:
    """Whether all numbers are equal."""
    pairs = zip(tensors(one), tensors(other), strict=True)
    return all(torch.equal(mine, theirs) for mine, theirs in pairs)


def _is_tuple(microbatch: Microbatch) -> bool:
    return isinstance(microbatch, (list, tuple))


def _type_of(one: Tensor) -> str:
    return str(one.dtype).removeprefix("torch.")


def _names(microbatch: Microbatch) -> list[object]:
    """Names of fields, in order."""
    if isinstance(microbatch, dict):
        return [(key, _names(value)) for key, value in microbatch.items()]
    if isinstance(microbatch, (list, tuple)):
        return [getattr(microbatch, "_fields", None), *map(_names, microbatch)]
    return []


def _with(other: Tensor, one: Tensor, compared: Sequence[int]) -> Tensor:
    """The other tensor, with some places of this one."""
    places = torch.tensor([*compared], device=one.device)
    return other.index_copy(0, places, one.index_select(0, places))
