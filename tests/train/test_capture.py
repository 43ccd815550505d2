"""Uses of weights and constants are noted, or refused by the weight's name."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor, nn

from discreet.errors import Refused
from discreet.train import Flat, clipped_sum
from tests.train.kit import agrees, double


class Used(nn.Module):
    """A weight (4, 4), and what is done with it and with data."""

    def __init__(self, use: Callable[[Tensor, Tensor], Tensor], dtype: torch.dtype) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.weight = nn.Parameter(torch.randn(4, 4, dtype=dtype))
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 3)
        self.use = use

    def forward(self, data: Tensor) -> Tensor:
        found: Tensor = self.last(torch.tanh(self.use(self.first(data), self.weight)))
        return found


def filled_by_copies(data: Tensor, weight: Tensor) -> Tensor:
    """Numbers that are the same for all data until data comes into them, by views."""
    found = torch.zeros(data.shape[0], 2, 4, dtype=data.dtype)
    found[:, 0].copy_(data)
    found.select(1, 1).add_(data.tanh())
    return F.layer_norm(found, (4,), weight[0]).sum(1)


def filled_in_sums(data: Tensor, weight: Tensor) -> Tensor:
    found = torch.zeros(data.shape[0], 4, dtype=data.dtype)
    found += data
    return F.layer_norm(found, (4,), weight[0])


def filled_by_weights(data: Tensor, weight: Tensor) -> Tensor:
    found = torch.zeros(4, 4, dtype=data.dtype)
    found[0] = weight[1]
    found[1:].copy_(weight[1:] * 2)
    return data * found[0]


def test_a_tensor_that_took_a_result_is_data() -> None:
    """Then only the example that is not finite is left out."""
    torch.manual_seed(0)
    model, data = nn.LayerNorm(4), torch.randn(5, 4)
    data[2] = float("nan")

    def losses() -> Tensor:
        filled: Tensor = model(torch.mul(data, 2, out=torch.empty(5, 4)))
        return filled.square().sum(1)

    found = clipped_sum(model, losses, 5, Flat(1.0))
    assert all(each.isfinite().all() for each in found.sums)
    assert found.squared_norms.isfinite().tolist() == [[True, True, False, True, True]]


def filtered_in_parts(data: Tensor, weight: Tensor) -> Tensor:
    """A product of spectra, real and imaginary parts apart."""
    spectrum = torch.fft.rfft(data)
    product = spectrum * weight[0, :3] + 1j * (spectrum * weight[1, :3])
    found: Tensor = torch.fft.irfft(product, n=4)
    return found


def multiplied(data: Tensor, weight: Tensor) -> Tensor:
    """By a copy of the weight for each example, and added to what another one gives."""
    for_each, several = weight.expand(len(data), -1, -1), data[:, None]
    found: Tensor = torch.baddbmm(weight[None, :1], several.bmm(for_each), for_each)
    return found.squeeze(1)


def attended(data: Tensor, weight: Tensor) -> Tensor:
    """With learned queries, and learned scores of all shapes."""
    several = torch.stack([data, data.tanh(), 2 * data], 1)[:, None]  # (example, 1, time, feature)
    queries = weight[None, None].expand(len(data), -1, -1, -1)
    found = F.scaled_dot_product_attention(queries, several, several, weight[:, 1:][None, None])
    for scores in (weight[None, :, 1:], weight[:, 1:]):
        found = found + F.scaled_dot_product_attention(queries, several, several, attn_mask=scores)
    return found.sum((1, 2))


@pytest.mark.parametrize(
    "use",
    [
        filled_by_copies,
        filled_in_sums,
        filled_by_weights,
        filtered_in_parts,
        multiplied,
        attended,
    ],
)
def test_uses_of_weights_agree_with_a_loop(
    use: Callable[[Tensor, Tensor], Tensor],
) -> None:
    agrees(double(Used(use, torch.float64), 5, 4))


def expanded_and_added(data: Tensor, weight: Tensor) -> Tensor:
    found = weight[0].expand(data.shape[0], -1).contiguous()
    found += data
    return found


def mapped_alone(data: Tensor, weight: Tensor) -> Tensor:
    """Within each example there are as many rows as there are examples."""
    several = data.unsqueeze(1).expand(-1, 5, -1)
    found: Tensor = torch.vmap(lambda rows: F.linear(rows, weight))(several)
    return found.sum(1)


def filtered(data: Tensor, weight: Tensor) -> Tensor:
    """As above, by numbers that are complex or become so."""
    of_weight = weight[0, :3] if weight.is_complex() else torch.complex(weight[0], weight[1])[:3]
    found: Tensor = torch.fft.irfft(torch.fft.rfft(data) * of_weight, n=4)
    return found


def decayed(data: Tensor, weight: Tensor) -> Tensor:
    found: Tensor = data * weight.exp().real[0]
    return found


REFUSED: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], torch.dtype, str]] = {
    "changed in place": (expanded_and_added, torch.float64, "add_, which changes .* in place"),
    "within vmap": (mapped_alone, torch.float64, r"within torch\.vmap"),
    "complex": (filtered, torch.complex128, "complex numbers; keep real and imaginary"),
    "made complex": (filtered, torch.float64, "complex numbers; keep real and imaginary"),
    "complex at first": (decayed, torch.complex128, "complex numbers; keep real and imaginary"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_uses_without_gradients_of_single_examples_are_refused_by_name(name: str) -> None:
    use, dtype, told = REFUSED[name]
    model = Used(use, dtype)
    model.first.double()
    model.last.double()
    data = torch.randn(5, 4, dtype=torch.float64)
    with pytest.raises(Refused, match=rf"^weight .*{told}"):
        clipped_sum(model, lambda: model(data).sum(1), 5, Flat(1.0))
