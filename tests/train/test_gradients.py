"""Norms by any way are those of what is written out, and what goes on gives the same sums."""

import gc
import weakref

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor, nn

from discreet.train import Flat, clipped_sum
from discreet.train._clipped_sums._clipping import ROUND_OFF
from discreet.train._rules import _gradients
from discreet.train._rules._gradients import (
    CachedSquares,
    DenseGradients,
    RankOne,
    SumOfOuter,
    gram_norms,
    squared,
)


def normal(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def test_norms_in_strides_are_as_good_as_others() -> None:
    """PyTorch adds up what is not in one block one after the other: 60 units of round-off off."""
    for rows in (
        torch.tensor([[1.225]]).expand(1, 4096),
        torch.full((4096, 3), 1.225).t(),
        torch.full((2, 9000), 1.225)[:, ::2],
    ):
        exact = rows.double().square().sum(1)
        assert float((1 - squared(rows) / exact).abs().max()) <= 12 * torch.finfo(torch.float32).eps


@pytest.mark.parametrize("time", [1, 2, 127, 128, 129, 300, 515])
def test_gram_matrices_by_halves_give_the_norm(time: int) -> None:
    inputs, outputs = normal(3, time, 4), normal(3, time, 5)
    wanted = squared(outputs.mT @ inputs)
    found = gram_norms(inputs, outputs)
    assert (found >= wanted).all()
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=0)


WAYS = {  # shapes (example, time, in, out), and whether gradients are kept
    "thin, one step": ((3, 1, 4, 50), True),
    "thin": ((3, 20, 50, 5), True),
    "thin, narrow inside": ((3, 20, 5, 50), True),
    "one step": ((3, 1, 40, 50), False),
    "kept": ((3, 200, 40, 50), True),
    "by Gram matrices": ((3, 2, 40, 50), False),
    "one by one": ((300, 60, 40, 40), False),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("transposed", [False, True])
def test_every_way_agrees(way: str, transposed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    (examples, time, wide_in, wide_out), is_kept = WAYS[way]
    if way == "one by one":
        monkeypatch.setattr(_gradients, "KEPT", 0)
    shape = (wide_in, wide_out) if transposed else (wide_out, wide_in)
    inputs, outputs = normal(examples, time, wide_in), normal(examples, time, wide_out)
    piece = SumOfOuter(inputs, outputs, shape, transposed)
    written, factors = piece.rows(0, examples), normal(examples).abs()
    norms, after = piece.squared_norms()
    torch.testing.assert_close(norms, squared(written), rtol=1e-10, atol=0)
    assert isinstance(after, DenseGradients) == is_kept
    wanted = torch.einsum("e,eio->io", factors, written)
    torch.testing.assert_close(after.weighted_sum(factors), wanted, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(after.rows(1, 3), written[1:3])


@pytest.mark.parametrize("width", [4, 32, 33, 40, 200])
@pytest.mark.parametrize("time", [1, 2, 20])
def test_steps_of_zeros_change_no_norm(width: int, time: int) -> None:
    """However it is measured: how long others are would change each one's factor otherwise."""
    inputs, outputs = normal(3, time, width).float(), normal(3, time, width).float()
    plain = SumOfOuter(inputs, outputs, (width, width)).squared_norms()[0]
    for more in (1, 60, 600):
        filled = [F.pad(each, (0, 0, 0, more)) for each in (inputs, outputs)]
        found = SumOfOuter(filled[0], filled[1], (width, width)).squared_norms()[0]
        torch.testing.assert_close(found, plain, rtol=1e-6, atol=0)


def test_data_is_released_once_gradients_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the collector of cycles, which comes late."""
    model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 4))
    data, total = torch.randn(3, 20, 4), DenseGradients.weighted_sum
    inner: list[weakref.ref[Tensor]] = []
    alive: list[bool] = []

    def noted(self: DenseGradients, factors: Tensor) -> Tensor:
        alive.append(inner[0]() is not None)
        return total(self, factors)

    def losses() -> Tensor:
        found = model[0](data)
        inner.append(weakref.ref(found))
        result: Tensor = model[2](model[1](found)).square().mean((1, 2))
        return result

    monkeypatch.setattr(DenseGradients, "weighted_sum", noted)
    gc.collect()
    gc.disable()
    try:
        clipped_sum(model, losses, 3, Flat(1.0))
    finally:
        gc.enable()
    assert alive
    assert not any(alive)


def test_single_outer_products_are_sums_over_one_step() -> None:
    inputs, outputs, factors = normal(5, 4), normal(5, 3), normal(5).abs()
    piece = RankOne(inputs, outputs, CachedSquares(outputs), (3, 4))
    wide = RankOne(outputs, inputs, CachedSquares(inputs), (4, 3))
    for each in (piece, wide):
        written = each.rows(0, 5)
        norms, after = each.squared_norms()
        torch.testing.assert_close(norms, squared(written), rtol=1e-10, atol=0)
        torch.testing.assert_close(after.rows(1, 3), written[1:3])
        wanted = torch.einsum("e,eoi->oi", factors, written)
        torch.testing.assert_close(after.weighted_sum(factors), wanted)
    kept = torch.tensor([True, False, True, True, False])
    left = piece.masked(kept).weighted_sum(factors)
    torch.testing.assert_close(left, torch.einsum("e,eoi->oi", factors * kept, piece.rows(0, 5)))
    assert piece.squares() is piece.squares()


@pytest.mark.parametrize("size", [10, 511, 1023, 1024, 1537, 100_000])
def test_norms_of_rows_of_any_length_lie_within_the_round_off_that_factors_spare(size: int) -> None:
    """Of numbers that are all the same too, whose rounding is all one way."""
    for rows in (normal(4, size).float(), torch.full((4, size), 0.1), torch.full((4, size), 0.3)):
        found, wanted = squared(rows).double().sqrt(), rows.double().norm(dim=1)
        assert ((found / wanted - 1).abs() <= ROUND_OFF * torch.finfo(torch.float32).eps).all()
