"""Finds the errors that PyTorch's functions raise for some values of their arguments.

The function itself is asked: one tensor at a time gets bad values, such as an index beyond all
sizes, zeros, or numbers that are none. So each error has its own type and text. All arguments are
copies on the processor, since a bad index ends all work on an accelerator.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from discreet.train._calls._arguments import Args, Function, Keywords, replaced, tensors_in
from discreet.train._flow import name_of

_BAD_FLOATS = (0.0, -1.0, 2.0, math.nan)  # singular, negative, above 1, not finite
_MOST = 1 << 20  # beyond which no number among arguments counts as one of classes
_COUNTS_ENTRIES = ("take", "put", "max_unpool")  # of a whole tensor, not of one dimension


def errors_for_values(
    function: Function,
    args: Args,
    keywords: Keywords,
    of_data: list[Tensor],
    *,
    dims_of: Callable[[Tensor], range],
) -> list[Exception]:
    """The errors of a call if tensors of data had other values, or other sizes in these dimensions.

    None if the call fails as it is.
    """
    most = 1 + max([1, *_sizes((args, keywords))])
    if name_of(function).startswith(_COUNTS_ENTRIES):
        most = 1 + 8 * max(one.numel() for one in tensors_in((args, keywords)))
    several = {id(one): one for one in of_data}.values()
    found = list[Exception]()
    with torch._C.DisableTorchFunction(), torch.no_grad(), torch.random.fork_rng(devices=[]):  # noqa: SLF001  has no public name
        if _error(function, args, keywords, {}) is not None:
            return []
        for one in several:
            for bad in _bad_copies(one, most, dims_of(one)):
                error = _error(function, args, keywords, {id(one): bad()})
                found += [] if error is None else [error]
    return found


def _error(
    function: Function, args: Args, keywords: Keywords, instead: dict[int, Tensor]
) -> Exception | None:
    def copied(one: Tensor) -> Tensor:
        return instead.get(id(one), one).detach().to("cpu", copy=True)

    try:
        function(*replaced(args, copied), **replaced(keywords, copied))
    except Exception as error:  # noqa: BLE001  of any kind
        return error.with_traceback(None)
    return None


def _bad_copies(tensor: Tensor, most: int, dims: range) -> Iterator[Callable[[], Tensor]]:
    if tensor.layout != torch.strided or tensor.is_nested:
        return
    if not tensor.numel():
        pass
    elif tensor.dtype == torch.bool:
        yield from (partial(torch.full_like, tensor, value) for value in (False, True))
    elif tensor.is_floating_point() or tensor.is_complex():
        yield from (partial(torch.full_like, tensor, value) for value in _BAD_FLOATS)
    else:  # one bad index is enough, such as the last of ends that grow
        limits = torch.iinfo(tensor.dtype)
        several = {max(limits.min, min(value, limits.max)) for value in (0, most, -1, -most)}
        for place in {0, -1 % tensor.numel()}:
            yield from (partial(_changed, tensor, place, value) for value in sorted(several))
    for dim in dims:  # one row less, and one more
        if size := tensor.shape[dim]:
            yield partial(tensor.narrow, dim, 0, size - 1)
        row = tensor.new_zeros([1 if n == dim else each for n, each in enumerate(tensor.shape)])
        yield partial(torch.cat, [tensor, row], dim)


def _changed(tensor: Tensor, place: int, value: int) -> Tensor:
    found = tensor.detach().clone(memory_format=torch.contiguous_format)
    found.view(-1)[place] = value
    return found


def _sizes(values: Any) -> Iterator[int]:  # Any: nested arguments
    """All sizes of tensors, and all whole numbers, among arguments."""
    if isinstance(values, Tensor):
        yield from values.shape
    elif isinstance(values, dict):
        yield from _sizes([*values.values()])
    elif isinstance(values, (list, tuple)):
        for each in values:
            yield from _sizes(each)
    elif type(values) is int:
        yield min(values, _MOST)
