"""All changes of tensors' bits are noticed, by copies or by checksums."""

import pytest
import torch
from torch import Tensor

from discreet.train._state import _tensor_bits
from discreet.train._state._tensor_bits import TensorBits

KINDS = (torch.float32, torch.float64, torch.bfloat16, torch.int16, torch.bool, torch.complex64)
SIZES = (1, 2, 4096, 4097, 9000)
LIMITS = (2**26, 2**14, 0)  # bytes of large tensors that are copied: all, some, none


def made(kind: torch.dtype, *sizes: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(len(sizes))
    real = (torch.randn(size, generator=generator) * 100 for size in sizes)
    return [one > 0 if kind is torch.bool else one.to(kind) for one in real]


def some() -> list[Tensor]:
    """Tensors of each size and type; some of them share one memory."""
    alone = [one for kind in KINDS for one in made(kind, *SIZES)]
    whole = torch.arange(9000.0)
    views = [torch.arange(6.0).view(2, 3).t(), torch.ones(3, dtype=torch.complex64).conj()]
    views += [whole[2:4], whole.view(90, 100)[:, :7], torch.zeros(2, 3)[0], torch.tensor(1.0)]
    return [*alone, *views, torch.ones(0), torch.eye(3).to_sparse(), torch.zeros(3, device="meta")]


def flipped(one: Tensor, place: int) -> None:
    """Flip the lowest bit of one entry, by a write that PyTorch doesn't count."""
    one = torch.view_as_real(one).data if one.is_complex() else one.data
    entry = one[(..., -1)] if not one.is_contiguous() else one.view(-1)[place]
    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    entry.view(kinds[one.element_size()]).bitwise_xor_(1)


@pytest.mark.parametrize("limit", LIMITS)
def test_one_flipped_bit_is_noticed_at_its_tensor(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among many tensors, and again after it was noted."""
    monkeypatch.setattr(_tensor_bits, "_MOST_COPIED", limit)
    tensors = some()
    bits = TensorBits(tensors)
    assert not any(bits.written())
    for number, one in enumerate(tensors):
        if one.layout is torch.strided and one.numel() and not (one.is_meta or one.is_conj()):
            flipped(one, one.numel() - 1)
            found = bits.written()
            assert found[number]
            assert all(
                _shares(one, each) for each, is_in in zip(tensors, found, strict=True) if is_in
            )
            bits.note()
            assert not any(bits.written())


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_tensor_alone_is_no_copy_of_itself(
    kind: torch.dtype, size: int, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyTorch joins one tensor by handing out its own memory."""
    monkeypatch.setattr(_tensor_bits, "_MOST_COPIED", limit)
    (one,) = made(kind, size)
    bits = TensorBits([one])
    for place in {0, size - 1}:
        flipped(one, place)
        assert bits.written() == [True]
        bits.note()
        assert bits.written() == [False]


def test_zeros_of_both_signs_and_nan_are_told_apart() -> None:
    for first, second in ((0.0, -0.0), (float("nan"), float("inf"))):
        for size in SIZES:
            one = torch.full((size,), first)
            bits = TensorBits([one])
            assert bits.written() == [False]
            one.data.fill_(second)
            assert bits.written() == [True]


def _shares(one: Tensor, other: Tensor) -> bool:
    """Whether they lie in one memory."""
    if other.layout is not torch.strided or other.is_meta:
        return False
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
