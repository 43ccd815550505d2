"""Compares the bits of tensors at several times: PyTorch's versions don't show all writes.

A word is multiplied by an odd number of its place, plus another number of its place, and mixed; the
results are added up. So a write shows that only moves entries, changes signs, or adds to one entry
what it takes from another. These numbers are secret: no model can be written so that its writes
cancel.
"""

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, cast

import torch
from torch import Tensor, nn

from discreet.train._calls._in_place import version_of

_WIDTH = 4096  # words in a row, each with other numbers
_ROWS_AT_ONCE = 32  # which stay in a processor's cache
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by bytes
PLAIN = (Tensor, nn.Parameter)
_COMMON = (torch.float32, torch.int64, torch.bfloat16, torch.float16, torch.float64, torch.bool)

Checksum = int | tuple[int, ...]  # of the entries, and of the memory around them, if there is any


@torch.no_grad()
def checksums(tensors: Sequence[Tensor]) -> list[Checksum]:
    """A checksum of each tensor, or its version if its bits can't be read."""
    few = SortedTensors(tensors)
    found = dict.fromkeys(range(len(few.parts)), 0) | few.versions()  # 0 if it is empty
    for numbers in few.small.values():
        found |= zip(numbers, _together([few.parts[each] for each in numbers]), strict=True)
    found |= few.large_checksums(few.large)
    return [
        found[number] if isinstance(number, int) else tuple(found[each] for each in number)
        for number in few.numbers
    ]


class SortedTensors:
    """The parts of some tensors, sorted by size and type, with a number for each part."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.parts: list[Tensor] = []  # whose bits are compared
        self.numbers: list[int | tuple[int, ...]] = []  # of each tensor's parts
        self.unreadable: list[int] = []  # parts that have no bits, but versions
        self.small: dict[tuple[torch.device, torch.dtype], list[int]] = {}
        self.large: list[int] = []
        memories: dict[int, int] = {}  # the part that is the whole of a memory, by its address
        for one in tensors:
            numbers = [self._add(part) for part in _parts_of(one)]
            if (whole := _memory_around(one)) is not None:
                address = whole.data_ptr()
                if address not in memories:
                    memories[address] = self._add(whole)
                numbers.append(memories[address])
            self.numbers.append(numbers[0] if len(numbers) == 1 else tuple(numbers))

    def _add(self, part: Tensor) -> int:
        number = len(self.parts)
        self.parts.append(part)
        if part.layout is not torch.strided or part.is_quantized or part.is_meta:
            self.unreadable.append(number)
        elif part.numel() > _WIDTH or part.dtype not in _COMMON or type(part) not in PLAIN:
            self.large.append(number)
        elif part.numel():
            self.small.setdefault((part.device, part.dtype), []).append(number)
        return number

    def versions(self) -> dict[int, int]:
        """The present versions of parts without bits."""
        return {number: version_of(self.parts[number]) for number in self.unreadable}

    def large_checksums(self, numbers: Sequence[int]) -> dict[int, int]:
        """The present checksums of some large parts; each device is waited for once."""
        by_device: dict[torch.device, list[int]] = {}
        for number in numbers:
            by_device.setdefault(self.parts[number].device, []).append(number)
        found: dict[int, int] = {}
        for some in by_device.values():
            totals = torch.stack([_checksum(self.parts[number]) for number in some])
            found |= zip(some, totals.cpu().tolist(), strict=True)
        return found


def _parts_of(one: Tensor) -> Iterator[Tensor]:
    """The tensor, or the tensors of which a sparse or nested one consists."""
    if one.is_nested:
        nested: Any = one  # Any: PyTorch's types lack its methods
        is_jagged = one.layout is torch.jagged
        yield from (one.values(), nested.offsets() if is_jagged else nested._nested_tensor_size())  # noqa: SLF001  has no public name
    elif one.layout is torch.sparse_coo:
        yield from (one._indices(), one._values())  # noqa: SLF001  the other names copy
    elif one.layout in (torch.sparse_csr, torch.sparse_bsr):
        yield from (one.crow_indices(), one.col_indices(), one.values())
    elif one.layout in (torch.sparse_csc, torch.sparse_bsc):
        yield from (one.ccol_indices(), one.row_indices(), one.values())
    else:
        yield one


def _memory_around(one: Tensor) -> Tensor | None:
    """The bytes of a memory of which the tensor is a part: files hold them all."""
    is_plain = one.layout is torch.strided and not (one.is_meta or one.is_nested)
    if not is_plain or type(one) not in PLAIN:
        return None
    memory = one.untyped_storage()
    if memory.nbytes() <= one.numel() * one.element_size():
        return None
    whole: Any = torch.empty(0, dtype=torch.uint8, device=one.device)  # Any: types want a tensor
    return torch._C.TensorBase.set_(whole, memory)  # noqa: SLF001  `closed_contexts` closes ours


def bits_together(few: list[Tensor]) -> Tensor:
    """The words of small tensors of one type; of one tensor, maybe in its own memory: (word,)."""
    flat: Tensor = torch._C._nn.flatten_dense_tensors(few)  # noqa: SLF001  has no other name
    return flat.view(_INTEGERS[flat.element_size()])


def bits_of(one: Tensor) -> Tensor:
    """The words of a tensor of any size, in its own memory if they lie there in order: (word,)."""
    if one.is_complex():
        one = torch.view_as_real(one.resolve_conj())
    flat = one.detach().resolve_neg().reshape(-1).contiguous()
    return flat.view(_INTEGERS[one.element_size()])


def _together(few: list[Tensor]) -> list[int]:
    """The checksums of tensors of one type and at most `_WIDTH` entries."""
    words = bits_together(few).long()
    whole = len(words) // _WIDTH * _WIDTH
    rows = words[:whole].view(whole // _WIDTH, _WIDTH)
    mixed = torch.cat([_mixed(rows).view(-1), _mixed(words[whole:])])
    ends = torch.tensor([*accumulate(each.numel() for each in few)], device=words.device)
    totals = mixed.cumsum(0)[ends - 1]
    return cast("list[int]", totals.diff(prepend=totals.new_zeros(1)).cpu().tolist())


def _checksum(one: Tensor) -> Tensor:
    """The checksum of a tensor of any size."""
    bits = bits_of(one)
    # 1. words of 64 bits, for less work, and the rest
    each = 8 // bits.element_size()
    if bits.storage_offset() % each:
        bits = bits.clone()  # begins a storage of its own
    joined = bits.numel() // each * each
    words, rest = bits[:joined].view(torch.int64), bits[joined:].long()
    # 2. a sum for each row of words, then for each row of sums
    words = torch.cat([_folded(words), rest])
    while len(words) > _WIDTH:
        words = _folded(words)
    return _mixed(words).sum()


def _folded(words: Tensor) -> Tensor:
    """A sum for each whole row of words, and the words of the last row."""
    whole = len(words) // _WIDTH * _WIDTH
    parts = torch.split(words[:whole].view(whole // _WIDTH, _WIDTH), _ROWS_AT_ONCE)
    return torch.cat([*(_mixed(part).sum(1) for part in parts), words[whole:]])


def _mixed(words: Tensor) -> Tensor:
    """A hash of each word, by the numbers of its place in the last dimension."""
    summands, factors = _numbers(words.device)[:, : words.shape[-1]]
    spread = torch.addcmul(summands, words, factors)
    spread ^= spread >> 31  # so that the highest bits count as much as the lowest
    return spread


@lru_cache(maxsize=16)
def _numbers(device: torch.device) -> Tensor:
    """A summand and an odd factor of 64 bits for each place in a row: (2, place)."""
    words = torch.frombuffer(bytearray(os.urandom(16 * _WIDTH)), dtype=torch.int64)
    return words.view(2, _WIDTH).bitwise_or(torch.tensor([[0], [1]])).to(device)
