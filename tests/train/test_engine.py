"""One pass, nothing left behind, and no contribution above its bound."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.overrides import _get_current_function_mode_stack

from discreet.errors import InvalidArgument
from discreet.train import L1, Automatic, Clipping, Flat, PerGroup, PerLayer, clipped_sum
from discreet.train._rules._gradients import gram_norms, squared_of_outer
from tests.train.kit import Case, double, same


def small() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.LayerNorm(6), nn.Linear(6, 3))


ALL: list[Clipping] = [
    Flat(0.5),
    PerLayer(0.5),
    PerGroup({"0": 0.3, "": 0.4}),
    Automatic(),
    L1(0.7),
]


@given(cuts=st.lists(st.integers(0, 9), max_size=4), clipping=st.sampled_from(ALL))
@settings(max_examples=30)
def test_any_splitting_gives_the_same_sum(cuts: list[int], clipping: Clipping) -> None:
    case = double(small(), 9, 5, 4)
    whole = case.clipped(clipping)
    bounds = [0, *sorted(cuts), 9]
    parts = [
        Case(case.model, case.data[start:stop]).clipped(clipping)
        for start, stop in pairwise(bounds)
    ]
    sums = tuple(torch.stack(each).sum(0) for each in zip(*(p.sums for p in parts), strict=True))
    same(type(whole)(sums, torch.cat([p.squared_norms.double() for p in parts], 1)), whole)


def test_no_examples_give_zeros() -> None:
    model = small()
    found = clipped_sum(model, lambda: pytest.fail("called"), 0, Flat(1.0))
    assert [each.shape for each in found.sums] == [p.shape for p in model.parameters()]
    assert not any(each.any() or each.requires_grad for each in found.sums)
    assert found.squared_norms.shape == (1, 0)


@pytest.mark.parametrize("clipping", ALL, ids=lambda each: type(each).__name__)
@given(size=st.floats(-12, 12), seed=st.integers(0, 10**6), time=st.sampled_from([1, 2, 40]))
@settings(max_examples=40)
def test_the_stored_contribution_is_never_longer_than_its_bound(
    clipping: Clipping, size: float, seed: int, time: int
) -> None:
    torch.manual_seed(seed)
    case = Case(small(), torch.randn(1, time, 4) * 10**size)
    found = case.clipped(clipping)
    flat = torch.cat([each.double().flatten() for each in found.sums])
    assert float(flat.norm(clipping.order)) <= clipping.sensitivity


@pytest.mark.parametrize("time", [1, 2, 16])
@pytest.mark.parametrize("width", [512, 1024, 4096])
def test_equal_numbers_whose_round_off_adds_up_are_not_longer(time: int, width: int) -> None:
    """As of images that are blank: of a loss that is a sum, the gradient has strides of 0."""
    model = nn.Linear(width, 1024, bias=False)
    for number in (0, 2, 8, 15):
        data = torch.full((1, time, width), 1 + number / 37)
        losses = partial(steep, model, data, 50 * (1 + number / 29))
        found = clipped_sum(model, losses, 1, Flat(1.0))
        assert 1 - 1e-4 <= float(found.sums[0].double().norm()) <= 1


def summed_squares(model: nn.Module, data: Tensor) -> Tensor:
    losses: Tensor = model(data).square().sum(1)
    return losses


def steep(model: nn.Module, data: Tensor, slope: float) -> Tensor:
    losses: Tensor = model(data).sum((1, 2)) * slope
    return losses


@pytest.mark.parametrize("time", [1, 3, 200])
@pytest.mark.parametrize("width", [64, 512])
def test_numbers_too_small_to_be_squared_count_beside_large_ones(time: int, width: int) -> None:
    """The square of 2e-23 is 0 in float32, and an output's gradient may be as large as that is
    small, as with targets that nobody bounded."""
    for model in (nn.Linear(width, 512, bias=False), nn.Conv1d(time, 512, width, bias=False)):
        data = torch.full((1, time, width), 2e-23)
        found = clipped_sum(model, partial(steep, model, data, 1e17), 1, Flat(1e-4))
        assert float(found.sums[0].double().norm()) <= 1e-4


@pytest.fixture
def flushing() -> Iterator[None]:
    """A processor that takes numbers below the normal ones for 0, as some devices always do."""
    assert torch.set_flush_denormal(True)
    yield
    torch.set_flush_denormal(False)


@pytest.mark.usefixtures("flushing")
@pytest.mark.parametrize("time", [1, 2, 200])
@pytest.mark.parametrize("is_swapped", [True, False])
def test_squares_that_a_processor_flushes_count_too(time: int, *, is_swapped: bool) -> None:
    """The square of 1e-19 is below the normal numbers: nothing is left of it."""
    small, large = torch.full((1, time, 3), 1e-19), torch.full((1, time, 2), 1e17)
    inputs, outputs = (large, small) if is_swapped else (small, large)
    exact = (outputs.double().mT @ inputs.double()).square().sum()
    assert float(gram_norms(inputs, outputs)) >= float(exact)
    if time == 1:
        assert float(squared_of_outer(inputs, outputs)) >= float(exact)


def test_a_clip_norm_below_what_squares_keep_holds() -> None:
    model = nn.Linear(300, 1)
    data = torch.full((2, 300), 1e-23)
    found = clipped_sum(model, lambda: 1e-23 * model(data)[:, 0], 2, Flat(1e-24))
    assert float(torch.cat([each.flatten() for each in found.sums]).double().norm()) <= 2e-24


def test_long_gradients_are_not_longer_either() -> None:
    """PyTorch's own norm of this many equal numbers in float32 is 2 in 1000 too small."""
    weight = nn.Parameter(torch.zeros((1 << 22) + 99))
    data = torch.full((1, (1 << 22) + 99), 0.1)
    found = clipped_sum(nn.ParameterList([weight]), lambda: (data * weight).sum(1), 1, Flat(1.0))
    assert 1 - 1e-5 <= float(found.sums[0].double().norm()) <= 1


def test_outer_products_that_cancel_are_clipped_by_what_is_left() -> None:
    torch.manual_seed(0)
    row = torch.randn(1, 1, 300)
    data = torch.cat([row, row * (1 + 1e-6)], 1)
    model = nn.Linear(300, 200, bias=False)
    sign = torch.tensor([1.0, -1.0])[:, None]
    found = clipped_sum(model, lambda: (model(data) * sign).sum((1, 2)), 1, Flat(1e-3))
    assert float(found.sums[0].double().norm()) <= 1e-3


SECOND: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "einsum": lambda data, weight: torch.einsum("bti,oi->bto", data, weight),
    "elementwise": lambda data, weight: (data[:, :, None] * weight).sum(3),
}


@pytest.mark.parametrize("use", SECOND)
@pytest.mark.parametrize("clipping", [Flat(1e-3), L1(1e-3)], ids=["L2", "L1"])
@pytest.mark.parametrize("seed", range(5))
def test_uses_that_cancel_are_clipped_by_what_is_left(
    use: str, clipping: Clipping, seed: int
) -> None:
    torch.manual_seed(seed)
    model, data, scale = nn.Linear(30, 20, bias=False), 1e3 * torch.randn(1, 7, 30), torch.randn(20)

    def losses() -> Tensor:
        other = SECOND[use](data * (1 + 3e-7), model.weight)
        left: Tensor = (1e4 * scale * (model(data) - other)).sum((1, 2))
        return left

    found = clipped_sum(model, losses, 1, clipping)
    assert float(found.sums[0].double().flatten().norm(clipping.order)) <= 1e-3


@pytest.mark.parametrize("size", [1e12, 3e15, 1e19])
def test_parametrizations_whose_gradients_cancel_are_clipped_by_what_is_left(size: float) -> None:
    for seed in range(5):
        torch.manual_seed(seed)
        model = nn.utils.parametrizations.orthogonal(nn.Linear(5, 5))
        losses = partial(summed_squares, model, size * torch.randn(1, 5).sign())
        found = clipped_sum(model, losses, 1, L1(0.7))
        assert float(torch.cat([each.double().flatten() for each in found.sums]).norm(1)) <= 0.7


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 3e38])
def test_a_non_finite_example_counts_as_zero(bad: float) -> None:
    model = small()
    data = torch.randn(6, 5, 4)
    spoiled = data.clone()
    spoiled[2, 1, 3] = bad
    factors = spoiled.new_tensor([1, 1, bad, 1, 1, 1])
    rest = Case(model, data[[0, 1, 3, 4, 5]]).clipped(Flat(0.1))

    def losses() -> Tensor:
        return Case(model, spoiled).losses(spoiled) * factors

    found = clipped_sum(model, losses, 6, Flat(0.1))
    for one, other in zip(found.sums, rest.sums, strict=True):
        torch.testing.assert_close(one, other)
    assert not found.squared_norms[0, 2].isfinite()


def test_unused_weights_get_zeros() -> None:
    model = nn.ModuleDict({"used": nn.Linear(2, 1), "unused": nn.Linear(2, 1)})
    found = clipped_sum(model, lambda: model["used"](torch.ones(3, 2)).squeeze(1), 3, Flat(1.0))
    assert found.sums[0].any()
    assert not found.sums[2].any()
    nothing = clipped_sum(model, lambda: torch.zeros(3), 3, Flat(1.0))
    assert not any(each.any() for each in nothing.sums)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, None])
def test_nothing_is_left_on_the_model(error: type[BaseException] | None) -> None:
    model = small()
    model[0].weight.requires_grad_(False)
    model[0].bias.grad = torch.full((6,), 7.0)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    data = torch.randn(5, 4)

    def losses() -> Tensor:
        outcome: Tensor = model(data).square().sum(1)
        if error is not None:
            raise error
        return outcome

    if error is None:
        clipped_sum(model, losses, 5, Flat(1.0))
    else:
        with pytest.raises(error):
            clipped_sum(model, losses, 5, Flat(1.0))
    assert model.training
    assert [p.requires_grad for p in model.parameters()][:2] == [False, True]
    assert torch.equal(model[0].bias.grad, torch.full((6,), 7.0))
    assert all(p.grad is None for p in [*model.parameters()][2:])
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not any(m._forward_hooks or m._backward_hooks for m in model.modules())
    assert not any(p._backward_hooks for p in model.parameters())
    assert not _get_current_function_mode_stack()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(
    ("shrink", "mend"),
    [
        (lambda losses: losses.mean(), "use reduction='none'"),
        (lambda losses: losses[:, None], r"one loss for each, \(5,\)"),
        (lambda losses: losses[:3], r"shape \(3,\) for 5 examples"),
        (lambda losses: [*losses], "returned list"),
        (lambda losses: losses.argsort(), "returned torch.int64"),
    ],
)
def test_each_example_needs_one_loss(shrink: object, mend: str) -> None:
    model, data = small(), torch.randn(5, 4)
    with pytest.raises(InvalidArgument, match=mend):
        clipped_sum(model, lambda: shrink(model(data).square().sum(1)), 5, Flat(1.0))  # type: ignore[operator]


@pytest.mark.parametrize("wrong", [0, -1.0, float("nan"), float("inf"), True, "1"])
def test_norms_are_checked_by_name(wrong: float) -> None:
    for make in (Flat, L1, PerLayer, Automatic, lambda norm: PerGroup({"": norm})):
        with pytest.raises(InvalidArgument, match="norm = "):
            make(wrong)


def test_groups_have_all_parameters_and_each_has_some() -> None:
    names = ["encoder.0.weight", "encoder.1.weight", "encoder2.weight"]
    assert PerGroup({"encoder": 1, "": 2, "encoder.1": 3}).groups(names) == (0, 2, 1)
    for wrong in ({"encoder": 1.0}, {"": 1.0, "decoder": 1.0}, {}):
        with pytest.raises(InvalidArgument, match="norms"):
            PerGroup(wrong).groups(names)
    assert PerLayer(1.0).groups(["a.weight", "a.bias", "b.weight"]) == (0, 0, 1)


def test_a_weight_penalty_is_a_part_of_each_loss() -> None:
    case = double(small(), 5, 4)
    weight = case.model.get_parameter("0.weight")

    def losses(data: Tensor) -> Tensor:
        penalised: Tensor = case.model(data).square().sum(1) + 30 * weight.square().sum()
        return penalised

    found = clipped_sum(case.model, lambda: losses(case.data), 5, Flat(0.5))
    wanted = [torch.zeros_like(p) for p in case.model.parameters()]
    for row in case.data:
        alone = torch.autograd.grad(losses(row[None]).sum(), [*case.model.parameters()])
        factor = min(1.0, 0.5 / float(torch.cat([g.flatten() for g in alone]).norm()))
        wanted = [w + factor * g for w, g in zip(wanted, alone, strict=True)]
    for one, other in zip(found.sums, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_mixed_precision_is_clipped_and_summed_in_single() -> None:
    model, data = small(), torch.randn(8, 5, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = clipped_sum(model, lambda: model(data).float().square().mean((1, 2)), 8, Flat(0.1))
    plain = clipped_sum(model, lambda: model(data).square().mean((1, 2)), 8, Flat(0.1))
    for one, other in zip(mixed.sums, plain.sums, strict=True):
        assert one.dtype == torch.float32
        assert float((one - other).norm()) <= 0.05 * float(other.norm()) + 1e-4
    model.bfloat16()
    halves = clipped_sum(
        model, lambda: model(data.bfloat16()).float().square().mean((1, 2)), 8, Flat(0.1)
    )
    assert {each.dtype for each in halves.sums} == {torch.float32}
    assert float(torch.cat([s.flatten() for s in halves.sums]).norm()) <= 0.8


def test_checkpointed_parts_are_computed_again_by_the_same_rules() -> None:
    from torch.utils.checkpoint import checkpoint

    case = double(small(), 5, 4)

    def losses() -> Tensor:
        outcome = checkpoint(case.model, case.data, use_reentrant=False)
        target = torch.linspace(-1, 1, 3, dtype=torch.float64)
        result: Tensor = (outcome - target).square().mean(1)
        return result

    same(clipped_sum(case.model, losses, 5, Flat(0.5)), case.clipped(Flat(0.5)))


def test_an_unchanged_model_trains_by_the_sums_alone() -> None:
    model, data, label = small(), torch.randn(64, 4), torch.randint(3, (64,))
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    first = F.cross_entropy(model(data), label)
    for _ in range(30):
        found = clipped_sum(
            model, lambda: F.cross_entropy(model(data), label, reduction="none"), 64, Flat(1.0)
        )
        for parameter, total in zip(model.parameters(), found.sums, strict=True):
            parameter.grad = total / 64
        optimizer.step()
    assert F.cross_entropy(model(data), label) < first - 0.02


@pytest.mark.parametrize("bad", [0, -0.005, math.nan, math.inf])
def test_clipping_takes_positive_numbers_only(bad: float) -> None:
    """A negative stability would make contributions longer than their bound."""
    for made in (
        lambda: Flat(bad),
        lambda: L1(bad),
        lambda: PerLayer(bad),
        lambda: PerGroup({"": bad}),
        lambda: Automatic(bad),
        lambda: Automatic(stability=bad),
    ):
        with pytest.raises(InvalidArgument):
            made()
