"""Gradients of inputs within the losses, as adversarial training has them.

Where the engine accepts a use, its sum is that of a plain loop, and no example moves another one.
"""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from discreet.errors import Refused
from discreet.train import ExactGaussian, Flat, check, clipped_sum, fit
from tests.bad_values import BadValue
from tests.mechanisms.kit import FakePayer
from tests.train.layers import WIDTH, Layers, of, summed
from tests.train.steps import sgd, short
from tests.train.test_tags import agrees_with_a_loop

Losses = Callable[[Layers, Tensor], Tensor]


def scores(m: Layers, x: Tensor) -> Tensor:
    return summed(m.norm(m.layer(torch.tanh(m.first(x)))) * m.scale)


def free(x: Tensor) -> Tensor:
    return x.detach().clone().requires_grad_()


def gradient(total: Tensor, x: Tensor, **options: BadValue) -> Tensor:
    found: Tensor = torch.autograd.grad(total, x, **options)[0]
    return found


# Each example's own


def of_a_sum(m: Layers, x: Tensor) -> Tensor:
    moved = free(x)
    return scores(m, x + 0.1 * gradient(scores(m, moved).sum(), moved).sign())


def of_rows_with_ones(m: Layers, x: Tensor) -> Tensor:
    moved = free(x)
    rows = scores(m, moved)
    return scores(m, x + gradient(rows, moved, grad_outputs=torch.ones_like(rows)))


def of_rows_with_own_factors(m: Layers, x: Tensor) -> Tensor:
    moved = free(x)
    return scores(m, x + gradient(scores(m, moved), moved, grad_outputs=x[:, 0].exp()))


def in_steps(m: Layers, x: Tensor) -> Tensor:
    shift = torch.zeros_like(x)
    for _ in range(3):
        shift = free(shift)
        shift = (shift + 0.1 * gradient(scores(m, x + shift).sum(), shift).sign()).clamp(-0.2, 0.2)
    return scores(m, x + shift.detach())


def of_hidden_rows(m: Layers, x: Tensor) -> Tensor:
    """Weights of features by their gradients, as class activation maps have them."""
    hidden = m.first(x)
    found = gradient(summed(m.layer(hidden)).sum(), hidden, retain_graph=True)
    return summed(m.layer(hidden * found))


def of_time_steps(m: Layers, x: Tensor) -> Tensor:
    steps = free(x[:, None].expand(-1, 3, -1) + torch.arange(3)[:, None])
    rows = m.norm(m.layer(m.first(steps)).tanh()).exp().sum((1, 2))
    return summed(m.layer(gradient(rows.sum(), steps)))


def of_one_example_at_a_time(m: Layers, x: Tensor) -> Tensor:
    found = []
    for row in x:
        moved = free(row)
        found.append(gradient(scores(m, moved[None]).sum(), moved))
    return scores(m, x + torch.stack(found))


def through_steps(unit: Callable[[Layers, Tensor], Tensor]) -> Losses:
    """Losses that move the inputs of a recurrent layer, or of another part in between."""

    def losses(m: Layers, x: Tensor) -> Tensor:
        steps = x[:, None].expand(-1, 3, -1) * torch.arange(1, 4)[:, None]
        moved = free(steps)
        rows = m.layer(unit(m, moved)).tanh().sum((1, 2))
        return summed(m.layer(unit(m, steps + 0.1 * gradient(rows.sum(), moved).sign())))

    losses.__name__ = f"through_{unit.__name__}"
    return losses


def gru(m: Layers, steps: Tensor) -> Tensor:
    found: Tensor = m.unit(steps)[0]
    return found


def lstm(m: BadValue, steps: Tensor) -> Tensor:
    found: Tensor = m.memory(steps)[0]
    return found


def rnn(m: BadValue, steps: Tensor) -> Tensor:
    found: Tensor = m.plain(steps)[0]
    return found


def a_checkpoint(m: Layers, steps: Tensor) -> Tensor:
    found: Tensor = checkpoint(lambda rows: m.norm(gru(m, rows)).exp(), steps, use_reentrant=False)
    return found


def a_checkpointed_layer(m: Layers, steps: Tensor) -> Tensor:
    found: Tensor = checkpoint(lambda rows: m.norm(rows).exp(), steps, use_reentrant=False)
    return found


class Recurrent(Layers):
    """Layers, and recurrent ones of other kinds."""

    def __init__(self, use: Losses) -> None:
        super().__init__(use)
        self.memory = nn.LSTM(WIDTH, 2, 2, batch_first=True, bidirectional=True)
        self.plain = nn.RNN(WIDTH, WIDTH, batch_first=True, nonlinearity="relu")


@pytest.mark.parametrize("unit", [gru, lstm, rnn, a_checkpointed_layer])
def test_gradients_pass_through_recurrent_layers(unit: Callable[[Layers, Tensor], Tensor]) -> None:
    model, data = Recurrent(through_steps(unit)).double(), of(5, WIDTH)
    agrees_with_a_loop(model, data)
    check(model, model, data)


def test_a_reentrant_checkpoint_is_refused_by_name() -> None:
    def unit(m: Layers, steps: Tensor) -> Tensor:
        found: Tensor = checkpoint(m.layer, steps, use_reentrant=True)
        return found

    model, data = Layers(through_steps(unit)).double(), of(5, WIDTH)
    with pytest.raises(Refused, match="use_reentrant=False"):
        check(model, model, data)


OWN: list[Losses] = [
    of_a_sum,
    of_rows_with_ones,
    of_rows_with_own_factors,
    in_steps,
    of_hidden_rows,
    of_time_steps,
    of_one_example_at_a_time,
]


@pytest.mark.parametrize("number", [1, WIDTH, 6])
@pytest.mark.parametrize("losses", OWN, ids=lambda one: one.__name__)
def test_gradients_of_inputs_are_each_examples_own(losses: Losses, number: int) -> None:
    model, data = Layers(losses).double(), of(number, WIDTH)
    agrees_with_a_loop(model, data)
    check(model, model, data)


def test_adversarial_training_is_a_run() -> None:
    model, payer = Layers(of_a_sum), FakePayer()
    data = {"x": torch.randn(40, WIDTH)}
    plan = short(steps=2, records=40)
    fit(model, sgd(model), data, plan, losses=lambda m, part: m(part.x), payer=payer)
    assert len(payer.charges) == 1


# Of several examples, or of weights in ways that are not recorded


def of_a_mean(m: Layers, x: Tensor) -> Tensor:
    moved = free(x)
    return scores(m, x + gradient(scores(m, moved).mean(), moved))


def of_a_squared_sum(m: Layers, x: Tensor) -> Tensor:
    moved = free(x)
    return scores(m, x + gradient(scores(m, moved).sum().square(), moved))


def of_a_sum_of_mixed_rows(m: Layers, x: Tensor) -> Tensor:
    moved = free(x)
    rows = scores(m, moved)
    return scores(m, x + gradient((rows * rows.roll(1)).sum(), moved))


def of_a_cumulated_sum(m: Layers, x: Tensor) -> Tensor:
    moved = free(x)
    return scores(m, x + gradient(scores(m, moved).cumsum(0).sum(), moved))


def with_factors_of_others(m: Layers, x: Tensor) -> Tensor:
    moved = free(x)
    rows = scores(m, moved)
    return scores(m, x + gradient(rows, moved, grad_outputs=x[:, 0].roll(1)))


def with_factors_by_place(m: Layers, x: Tensor) -> Tensor:
    moved = free(x)
    rows = scores(m, moved)
    return scores(m, x + gradient(rows, moved, grad_outputs=torch.arange(len(x)).to(x)))


def with_a_factor_of_all(m: Layers, x: Tensor) -> Tensor:
    moved = free(x)
    return scores(m, x + gradient(scores(m, moved).sum(), moved, grad_outputs=x.amax()))


def with_random_factors(m: Layers, x: Tensor) -> Tensor:
    moved, factor = free(x), torch.rand((), dtype=x.dtype)
    return scores(m, x + gradient(scores(m, moved).sum(), moved, grad_outputs=factor))


def of_a_shared_shift(m: Layers, x: Tensor) -> Tensor:
    """One perturbation for all examples."""
    shift = torch.zeros(WIDTH, dtype=x.dtype, requires_grad=True)
    return scores(m, x + gradient(scores(m, x + shift).sum(), shift))


def of_shifts_by_place(m: Layers, x: Tensor) -> Tensor:
    shift = torch.zeros(6, WIDTH, dtype=x.dtype, requires_grad=True)
    return scores(m, x + gradient(scores(m, x + shift[: len(x)]).sum(), shift)[: len(x)])


def of_rows_in_another_order(m: Layers, x: Tensor) -> Tensor:
    moved = free(x)
    turned = moved.flip(0)
    return scores(m, x + gradient(scores(m, turned).sum(), turned))


def of_batches(m: Layers, x: Tensor) -> Tensor:
    moved = free(x)
    rows = scores(m, moved)
    several = torch.eye(len(x), dtype=x.dtype)
    found = gradient(rows, moved, grad_outputs=several, is_grads_batched=True)
    return scores(m, x + found.sum(0))


def by_a_penalty(m: Layers, x: Tensor) -> Tensor:
    moved = free(x)
    found = gradient(scores(m, moved).sum(), moved, create_graph=True)
    penalty: Tensor = (found.norm(dim=1) - 1).square()
    return penalty


def by_a_residual(m: Layers, x: Tensor) -> Tensor:
    moved = free(x)
    rows = scores(m, moved)
    return (gradient(rows.sum(), moved, create_graph=True)[:, 0] - rows).square()


REFUSED: list[Losses] = [
    of_a_mean,
    of_a_squared_sum,
    of_a_sum_of_mixed_rows,
    of_a_cumulated_sum,
    with_factors_of_others,
    with_factors_by_place,
    with_a_factor_of_all,
    with_random_factors,
    of_a_shared_shift,
    of_shifts_by_place,
    of_rows_in_another_order,
    of_batches,
    by_a_penalty,
    by_a_residual,
]


@pytest.mark.parametrize("losses", REFUSED, ids=lambda one: one.__name__)
def test_gradients_that_may_mix_are_refused(losses: Losses) -> None:
    model, data = Layers(losses).double(), of(6, WIDTH)
    with pytest.raises(Refused):
        clipped_sum(model, lambda: losses(model, data), 6, Flat(1.0), batch=data)


def of_weights(m: Layers, x: Tensor) -> Tensor:
    rows = scores(m, x)
    found: Tensor = rows + gradient(rows.sum(), m.layer.weight).square().sum()
    return found


def through_a_replaced_checkpoint(m: Layers, x: Tensor) -> Tensor:
    return through_steps(a_checkpoint)(m, x)


MASK = torch.arange(WIDTH) % 2 > 0


def with_a_masked_weight(m: Layers, x: Tensor) -> Tensor:
    m.layer.weight.data *= MASK
    return scores(m, x)


def with_a_weight_in_place(m: Layers, x: Tensor) -> Tensor:
    with torch.no_grad():
        m.layer.weight.mul_(MASK)
    return scores(m, x)


def with_another_weight(m: Layers, x: Tensor) -> Tensor:
    m.layer.weight.data = m.layer.weight.data * MASK
    return scores(m, x)


def with_numbers_one_by_one(m: Layers, x: Tensor) -> Tensor:
    return scores(m, x * torch.stack([torch.rand(WIDTH, dtype=x.dtype) for _ in x]))


ADVICE: dict[Losses, str] = {
    of_a_mean: r"losses\.sum\(\)",
    by_a_penalty: "gradient penalties.*ExactGaussian.*differences",
    by_a_residual: "PINN.*ExactGaussian",
    of_weights: "of weights within the losses adds up all examples; take gradients of inputs",
    through_a_replaced_checkpoint: "leave the checkpoint out",
    with_a_masked_weight: r"layer.weight was changed.*weight \* mask.*prune",
    with_a_weight_in_place: r"layer.weight was changed.*weight \* mask.*prune",
    with_another_weight: r"layer.weight was changed.*weight \* mask.*prune",
    with_numbers_one_by_one: r"drawn one by one; .*for all examples together",
}


@pytest.mark.parametrize("losses", ADVICE, ids=lambda one: one.__name__)
def test_the_refusal_costs_nothing_and_names_a_way(losses: Losses) -> None:
    model, payer = Layers(losses), FakePayer()
    data, plan = {"x": torch.randn(40, WIDTH)}, short(steps=2, records=40)
    with pytest.raises(Refused, match=ADVICE[losses]):
        fit(model, sgd(model), data, plan, losses=lambda m, part: m(part.x), payer=payer)
    assert not payer.charges


def test_exact_noise_trains_by_penalties() -> None:
    """It computes each example alone, so that gradients of gradients are this example's own."""
    model, payer = Layers(by_a_penalty), FakePayer()
    before = [each.detach().clone() for each in model.parameters()]
    data = {"x": torch.randn(40, WIDTH)}
    plan = short(steps=2, records=40, noise=ExactGaussian(16))
    fit(model, sgd(model), data, plan, losses=lambda m, part: m(part.x), payer=payer)
    assert any(not torch.equal(*pair) for pair in zip(before, model.parameters(), strict=True))


class Doubled(torch.autograd.Function):
    """Its backward mixes examples."""

    @staticmethod
    def forward(ctx: BadValue, x: Tensor) -> Tensor:
        return 2 * x

    @staticmethod
    def backward(ctx: BadValue, gradient: Tensor) -> Tensor:
        return gradient + gradient.flip(0)


def test_functions_of_ones_own_have_no_gradients_there() -> None:
    def losses(x: Tensor) -> Tensor:
        moved = free(x)
        double: BadValue = Doubled.apply
        return scores(model, x + gradient(scores(model, double(moved)).sum(), moved))

    model, data = Layers(of_a_sum).double(), of(6, WIDTH)
    with pytest.raises(Refused, match="can't be followed there"):
        clipped_sum(model, lambda: losses(data), 6, Flat(1.0), batch=data)
