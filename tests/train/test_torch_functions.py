"""Losses and layers of PyTorch's that take rows of examples train as a loop says.

With rows of other examples, or with constants that differ by place, the same calls are refused.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor

from discreet.errors import Refused
from discreet.train import Flat, clipped_sum
from tests.train.kit import agrees_in_batch
from tests.train.layers import WIDTH, Layers, of

NUMBER, STEPS = 5, 3
Beside = Callable[[Tensor, Tensor], Tensor]  # of rows (example, WIDTH), and others beside them


def _labels(rows: Tensor) -> Tensor:
    return (rows.detach()[:, 0] > 0).long()


def _places(rows: Tensor) -> Tensor:
    return (rows.detach() > 0).long()


def _signs(rows: Tensor) -> Tensor:
    return 1.0 - 2.0 * (rows.detach() > 0)


def _steps(rows: Tensor) -> Tensor:
    return rows[None].expand(STEPS, -1, -1).log_softmax(2)


def _lengths(rows: Tensor, most: int) -> Tensor:
    return 1 + _labels(rows) % most


def _ctc(x: Tensor, y: Tensor) -> Tensor:
    labels, one = 1 + _places(y)[:, :2], torch.ones(len(x), dtype=torch.int64)
    return F.ctc_loss(_steps(x), labels, STEPS * one, one, reduction="none")


ROOT = torch.eye(WIDTH).double() * 2 + torch.ones(WIDTH, WIDTH).double().tril(-1)


def _densities(mean: Tensor, root: Tensor, at: Tensor) -> Tensor:
    law: Any = torch.distributions.MultivariateNormal(mean, scale_tril=root)  # Any: has no types
    found: Tensor = law.log_prob(at)
    return found


def _matrices(x: Tensor) -> Tensor:
    """A matrix for each row, far from singular."""
    return x[:, None].tanh() + 9 * torch.eye(WIDTH).double()


BESIDE: dict[str, Beside] = {
    "soft margins": lambda x, y: F.soft_margin_loss(x, _signs(y), reduction="none"),
    "Poisson": lambda x, y: F.poisson_nll_loss(x, y.exp(), reduction="none"),
    "Gaussian": lambda x, y: F.gaussian_nll_loss(x, y, x.exp(), reduction="none"),
    "variances": lambda x, y: F.gaussian_nll_loss(x, x.sin(), y.exp(), reduction="none"),
    "hinges": lambda x, y: F.hinge_embedding_loss(x, _signs(y), reduction="none"),
    "rankings": lambda x, y: F.margin_ranking_loss(x, y, _signs(y), reduction="none"),
    "margins": lambda x, y: F.multi_margin_loss(x, _labels(y), reduction="none"),
    "margins of several": lambda x, y: F.multilabel_margin_loss(x, _places(y), reduction="none"),
    "soft margins of several": lambda x, y: F.multilabel_soft_margin_loss(
        x, _places(y).double(), reduction="none"
    ),
    "cosines": lambda x, y: F.cosine_embedding_loss(x, y, _signs(x)[:, 0], reduction="none"),
    "signs of cosines": lambda x, y: F.cosine_embedding_loss(
        x, x.sin(), _signs(y)[:, 0], reduction="none"
    ),
    "triplets": lambda x, y: F.triplet_margin_loss(x, x.sin(), y, reduction="none"),
    "CTC": _ctc,
    "lengths of CTC": lambda x, y: F.ctc_loss(
        _steps(x),
        torch.ones(len(x), 2).long(),
        STEPS - _labels(y),
        _lengths(y, 1),
        reduction="none",
    ),
    "a bilinear form": lambda x, y: F.bilinear(x, y, torch.ones(2, WIDTH, WIDTH).double()),
    "unpooled": lambda x, y: F.max_unpool1d(
        x[:, None, :2].contiguous(), _places(y)[:, None, :2] + torch.tensor([0, 2]), [2]
    ),
    "cross products": lambda x, y: torch.linalg.cross(x[:, :3], y[:, 1:]),
    "products of vectors": torch.linalg.vecdot,
    "distances": lambda x, y: torch.cdist(x[:, None], y[:, None])[:, 0],
    "solutions": lambda x, y: torch.linalg.solve(_matrices(x), y[:, :, None]),
    "solutions of vectors": lambda x, y: torch.linalg.solve(_matrices(x), y),
    "vectors by matrices beside": lambda x, y: torch.linalg.solve(_matrices(y), x),
    "solutions from the right": lambda x, y: torch.linalg.solve(
        _matrices(x), y[:, None], left=False
    ),
    "solutions with a word": lambda x, y: torch.linalg.solve_ex(_matrices(x), y[:, :, None])[0],
    "triangular systems": lambda x, y: torch.linalg.solve_triangular(
        _matrices(x).tril(), y[:, :, None], upper=False
    ),
    "systems with factors": lambda x, y: torch.cholesky_solve(y[:, :, None], _matrices(x).tril()),
    "several systems": lambda x, y: torch.linalg.solve(_matrices(x)[:, None], y[:, None, :, None]),
    "joined": lambda x, y: torch.hstack([x, y]).tanh(),
    "joined columns": lambda x, y: torch.column_stack([x, y]).tanh(),
    "joined in depth": lambda x, y: torch.dstack([x[:, None], y[:, None]]).tanh(),
}
ALONE: dict[str, Callable[[Tensor], Tensor]] = {
    "folded": lambda x: F.fold(x[:, :, None], (2, 2), 2),
    "windows": lambda x: x.unfold(1, 2, 1),
    "norms of vectors": lambda x: torch.linalg.vector_norm(x, dim=1),
    "norms of matrices": lambda x: torch.linalg.matrix_norm(x[:, None] + torch.eye(WIDTH)),
    "inverses": lambda x: torch.linalg.inv(x[:, None].tanh() + 9 * torch.eye(WIDTH).double()),
    "determinants": lambda x: torch.linalg.det(x[:, None] + torch.eye(WIDTH).double()),
    "eigenvalues": lambda x: torch.linalg.eigvalsh(x[:, :, None] @ x[:, None]),
    "means and deviations": lambda x: torch.stack(torch.std_mean(x, dim=1), 1),
    "extremes": lambda x: torch.stack(torch.aminmax(x, dim=1), 1),
    "areas": lambda x: torch.trapezoid(x, dim=1),
    "mirrored": lambda x: x.fliplr() * torch.arange(WIDTH),
    "filled": lambda x: x.index_fill(1, torch.tensor([1]), 0.5),
    "a diagonal": lambda x: (x[:, None] * x[:, :, None]).diagonal(dim1=1, dim2=2),
    "chosen values": lambda x: x * torch.isin(_places(x), torch.tensor([1])),
    "distances to centres": lambda x: torch.cdist(x, torch.eye(WIDTH).double()),
    "distances of centres": lambda x: torch.cdist(torch.eye(WIDTH).double(), x).t(),
    "products without an arrow": lambda x: torch.einsum("bi,ij", x, torch.eye(WIDTH).double()),
    "lower factors": lambda x: torch.linalg.cholesky_ex(
        x[:, :, None] @ x[:, None] + torch.eye(WIDTH).double()
    )[0],
    "inverses with a word": lambda x: torch.linalg.inv_ex(
        x[:, None].tanh() + 9 * torch.eye(WIDTH).double()
    )[0],
    "columns of a system": lambda x: torch.linalg.solve_triangular(ROOT, x.t(), upper=False).t(),
    "rows of a system": lambda x: torch.linalg.solve(ROOT, x, left=False),
    "columns of factors": lambda x: torch.cholesky_solve(x.t(), ROOT).t(),
    "densities": lambda x: _densities(x, _matrices(x).tril(), x.detach() + 1),
    "densities of one form": lambda x: _densities(x, ROOT, torch.ones(WIDTH).double()),
    "spectra": lambda x: torch.fft.fft2(x[:, None]).abs(),
    "turned": lambda x: x[:, None].rot90(1, (1, 2)) * torch.arange(WIDTH)[:, None],
    "narrowed": lambda x: torch.narrow_copy(x, 1, 1, 2),
    "a grid": lambda x: F.affine_grid(
        x[:, :3].repeat(1, 2).view(-1, 2, 3), [len(x), 1, 2, 2], False
    ),
}


def summed_up(found: Tensor) -> Tensor:
    return found.reshape(len(found), -1).sum(1)


@pytest.mark.parametrize("name", BESIDE)
def test_with_rows_of_their_own_they_train(name: str) -> None:
    agrees_in_batch(
        Layers(lambda m, x: summed_up(BESIDE[name](m.layer(x), x))).double(), of(NUMBER, WIDTH)
    )


@pytest.mark.parametrize("name", ALONE)
def test_functions_of_one_tensor_train(name: str) -> None:
    agrees_in_batch(
        Layers(lambda m, x: summed_up(ALONE[name](m.layer(x)))).double(), of(NUMBER, WIDTH)
    )


OTHERS: dict[str, Callable[[Tensor], Tensor]] = {
    "of other examples": lambda x: x.flip(0),
    "by place": lambda x: (-1.0) ** torch.arange(len(x))[:, None].expand(-1, WIDTH).double(),
    "by chance": lambda x: torch.randperm(len(x))[:, None].expand(-1, WIDTH).double() - 2,
}


@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("name", BESIDE)
def test_with_others_they_are_refused(name: str, others: str) -> None:
    data = of(NUMBER, WIDTH)
    model = Layers(lambda m, x: summed_up(BESIDE[name](m.layer(x), OTHERS[others](x)))).double()
    with pytest.raises(Refused, match="losses"):
        clipped_sum(model, lambda: model(data), NUMBER, Flat(1.0), batch=data)


@pytest.mark.parametrize("name", ALONE)
def test_along_examples_they_are_refused(name: str) -> None:
    """With as many examples as features, so that shapes fit."""
    data = of(WIDTH, WIDTH)
    model = Layers(lambda m, x: summed_up(ALONE[name](m.layer(x).t()))).double()
    with pytest.raises((Refused, RuntimeError)):
        clipped_sum(model, lambda: model(data), WIDTH, Flat(1.0), batch=data)


MIXED_SYSTEMS: dict[str, Callable[[Tensor], Tensor]] = {
    "a matrix of examples": lambda x: torch.linalg.solve(x.tanh() + 9 * ROOT, ROOT),
    "a triangle of examples": lambda x: torch.linalg.solve_triangular(
        x.tril() + 9 * ROOT, ROOT, upper=False
    ),
    "a vector of examples": lambda x: torch.linalg.solve(ROOT, x[:, 0])[:, None],
    "examples that are entries": lambda x: torch.linalg.solve(ROOT, x),
    "entries from the right": lambda x: torch.linalg.solve(ROOT, x.t(), left=False).t(),
    "matrices by all right sides": lambda x: torch.linalg.solve(_matrices(x), x.t()),
    "a factor of examples": lambda x: torch.cholesky_solve(ROOT, x.tril() + 9 * ROOT),
    "a solution's own place": lambda x: torch.linalg.solve(_matrices(x.flip(0)), x),
    "a factor by place": lambda x: torch.cholesky_solve(
        x[:, :, None], ROOT * torch.arange(1.0, 1 + WIDTH).double()[:, None, None]
    ),
}


@pytest.mark.parametrize("name", MIXED_SYSTEMS)
def test_systems_that_mix_examples_are_refused(name: str) -> None:
    """With as many examples as features, so that shapes fit."""
    data = of(WIDTH, WIDTH)
    model = Layers(lambda m, x: summed_up(MIXED_SYSTEMS[name](m.layer(x)))).double()
    with pytest.raises(Refused, match="losses"):
        clipped_sum(model, lambda: model(data), WIDTH, Flat(1.0), batch=data)


@pytest.mark.filterwarnings("ignore:Using torch.cross")
def test_a_dimension_chosen_by_length_is_refused() -> None:
    """`torch.cross` takes the first dimension of length 3, which may be that of examples."""
    data = of(3, 3)
    model = torch.nn.Linear(3, 3).double()
    with pytest.raises(Refused, match="made by cross"):
        clipped_sum(model, lambda: torch.cross(model(data), data).sum(1), 3, Flat(1.0), batch=data)


def test_lengths_in_lists_must_be_equal() -> None:
    data = of(NUMBER, WIDTH)

    def use(m: Layers, x: Tensor) -> Tensor:
        labels = torch.ones(len(x), 2).long()
        lengths = [1 + n % 2 for n in range(len(x))]
        steps = [STEPS] * len(x)
        return F.ctc_loss(_steps(m.layer(x)), labels, steps, lengths, reduction="none")  # type: ignore[arg-type]  # it also takes lists

    model = Layers(use).double()
    with pytest.raises(Refused, match="by place"):
        clipped_sum(model, lambda: model(data), NUMBER, Flat(1.0), batch=data)


def test_a_mask_of_attention_is_of_the_same_examples() -> None:
    """Also where there are as many examples as steps, so that its shape fits."""
    layer = torch.nn.MultiheadAttention(WIDTH, 2, batch_first=True).double()
    data = of(STEPS, STEPS, WIDTH)

    def losses(turn: Callable[[Tensor], Tensor]) -> Tensor:
        mask = turn(data[:, :, 0] > 1)
        found: Tensor = layer(data, data, data, key_padding_mask=mask)[0]
        return found.square().flatten(1).sum(1)

    clipped_sum(layer, lambda: losses(lambda mask: mask), STEPS, Flat(1.0), batch=data)
    with pytest.raises(Refused):
        clipped_sum(layer, lambda: losses(Tensor.t), STEPS, Flat(1.0), batch=data)
