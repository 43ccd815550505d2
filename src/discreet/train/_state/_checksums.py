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
from typing import Any

import torch
from torch import Tensor, nn

from discreet.train._calls._in_place import version_of

_WIDTH = 4096  # words in a row, each with other numbers
_ROWS_AT_ONCE = 32  # which stay in a processor's cache
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by bytes
_PLAIN = (Tensor, nn.Parameter)
_COMMON = (torch.float32, torch.int64, torch.bfloat16, torch.float16, torch.float64, torch.bool)

Checksum = int | tuple[int, ...]  # of the entries, and of the memory around them, if there is any


def checksums(tensors: Sequence[Tensor]) -> list[Checksum]:
    """A checksum of each tensor."""
    return TensorBits(tensors).checksums()


class TensorBits:
    """Some tensors, sorted by size and type once for all their checksums."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._parts: list[Tensor] = []  # whose checksums are computed
        self._numbers: list[int | tuple[int, ...]] = []  # of each tensor's parts
        self._unreadable: list[int] = []  # parts that have no bits, but versions
        self._small: dict[tuple[torch.device, torch.dtype], list[int]] = {}
        self._large: dict[torch.device, list[int]] = {}
        memories: dict[int, int] = {}  # the part that is the whole of a memory, by its address
        for one in tensors:
            numbers = [self._add(part) for part in _parts_of(one)]
            if (whole := _memory_around(one)) is not None:
                address = whole.data_ptr()
                if address not in memories:
                    memories[address] = self._add(whole)
                numbers.append(memories[address])
            self._numbers.append(numbers[0] if len(numbers) == 1 else tuple(numbers))
        few = [[self._parts[number] for number in numbers] for numbers in self._small.values()]
        self._ends = [
            torch.tensor([*accumulate(each.numel() for each in some)], device=some[0].device)
            for some in few
        ]

    def _add(self, part: Tensor) -> int:
        number = len(self._parts)
        self._parts.append(part)
        if part.layout is not torch.strided or part.is_quantized or part.is_meta:
            self._unreadable.append(number)
        elif part.numel() > _WIDTH or part.dtype not in _COMMON or type(part) not in _PLAIN:
            self._large.setdefault(part.device, []).append(number)
        elif part.numel():
            self._small.setdefault((part.device, part.dtype), []).append(number)
        return number

    @torch.no_grad()
    def checksums(self) -> list[Checksum]:
        """A checksum of each tensor now, or its version if its bits can't be read."""
        found = [0] * len(self._parts)
        for number in self._unreadable:
            found[number] = version_of(self._parts[number])
        sums = [
            (numbers, _together([self._parts[number] for number in numbers], ends))
            for numbers, ends in zip(self._small.values(), self._ends, strict=True)
        ]
        sums += [
            (numbers, torch.stack([_checksum(self._parts[number]) for number in numbers]))
            for numbers in self._large.values()
        ]
        for numbers, totals in sums:
            for number, total in zip(numbers, totals.cpu().tolist(), strict=True):
                found[number] = total
        return [
            found[number] if isinstance(number, int) else tuple(found[each] for each in number)
            for number in self._numbers
        ]


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
    if not is_plain or type(one) not in _PLAIN:
        return None
    memory = one.untyped_storage()
    if memory.nbytes() <= one.numel() * one.element_size():
        return None
    whole: Any = torch.empty(0, dtype=torch.uint8, device=one.device)  # Any: types want a tensor
    return torch._C.TensorBase.set_(whole, memory)  # noqa: SLF001  `closed_contexts` closes ours


def _together(few: list[Tensor], ends: Tensor) -> Tensor:
    """The checksums of tensors of one type and at most `_WIDTH` entries, which end at these
    numbers of entries: (tensor,)."""
    flat: Tensor = torch._C._nn.flatten_dense_tensors(few)  # noqa: SLF001  has no other name
    words = flat.view(_INTEGERS[flat.element_size()]).long()
    whole = len(words) // _WIDTH * _WIDTH
    rows = words[:whole].view(whole // _WIDTH, _WIDTH)
    mixed = torch.cat([_mixed(rows).view(-1), _mixed(words[whole:])])
    totals = mixed.cumsum(0)[ends - 1]
    return totals.diff(prepend=totals.new_zeros(1))


def _checksum(one: Tensor) -> Tensor:
    """The checksum of a tensor of any size."""
    if one.is_complex():
        one = torch.view_as_real(one.resolve_conj())
    flat = one.detach().resolve_neg().reshape(-1).contiguous()
    bits = flat.view(_INTEGERS[one.element_size()])
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
