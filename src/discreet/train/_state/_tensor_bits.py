"""Notices each change of some tensors' bits between two times.

Copies are compared at a fraction of the cost of checksums. They need memory, so large tensors are
copied up to a limit and on processors only; checksums are compared of the others.
"""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from discreet.train._state._checksums import PLAIN, SortedTensors, bits_of, bits_together

_MOST_COPIED = 2**26  # bytes of large tensors


class TensorBits:
    """The bits of some tensors when this is made, or when they were noted last."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._sorted = few = SortedTensors(tensors)
        left = _MOST_COPIED
        self._copied: list[int] = []  # the large parts that are copied
        for number in few.large:
            part = few.parts[number]
            if part.device.type == "cpu" and type(part) in PLAIN and part.nbytes <= left:
                self._copied.append(number)
                left -= part.nbytes
        self._summed = sorted({*few.large} - {*self._copied})
        self.note()

    @torch.no_grad()
    def note(self) -> None:
        """Take the present bits as those before."""
        parts = self._sorted.parts
        self._versions = self._sorted.versions()
        self._small = [self._together(few).clone() for few in self._sorted.small.values()]
        self._copies = [bits_of(parts[number]).clone() for number in self._copied]
        self._sums = self._sorted.large_checksums(self._summed)

    @torch.no_grad()
    def written(self) -> list[bool]:
        """For each tensor, whether its bits differ from those before."""
        parts = self._sorted.parts
        sums = self._sorted.versions() | self._sorted.large_checksums(self._summed)
        before = self._versions | self._sums
        found = {number for number, total in sums.items() if total != before[number]}
        for numbers, words in zip(self._sorted.small.values(), self._small, strict=True):
            if not (now := self._together(numbers)).equal(words):
                lengths = [parts[number].numel() for number in numbers]
                found |= _differing(numbers, torch.split(words, lengths), torch.split(now, lengths))
        found |= _differing(
            self._copied, self._copies, (bits_of(parts[number]) for number in self._copied)
        )
        return [
            number in found if isinstance(number, int) else not found.isdisjoint(number)
            for number in self._sorted.numbers
        ]

    def _together(self, numbers: Sequence[int]) -> Tensor:
        return bits_together([self._sorted.parts[number] for number in numbers])


def _differing(numbers: Sequence[int], before: Iterable[Tensor], now: Iterable[Tensor]) -> set[int]:
    """The numbers of the parts whose words differ."""
    each = zip(numbers, before, now, strict=True)
    return {number for number, one, other in each if not one.equal(other)}
