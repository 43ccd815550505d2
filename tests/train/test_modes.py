"""Ways to compute a model that change nothing: compiled, checkpointed, in bfloat16, in parts."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import TensorDataset

from discreet._unit import Unit
from discreet.errors import Refused
from discreet.train import Flat, Units, check, clipped_sum, fit
from tests.bad_values import BadValue
from tests.mechanisms.kit import FakePayer
from tests.train.kit import Case, agrees, double, median_norm, same
from tests.train.steps import data, known, linear, losses_of, sgd, short, weights
from tests.train.unfollowed import unfollowed

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # of compiling


class Blocks(nn.Module):
    """Two blocks, of which each may be checkpointed."""

    def __init__(self, reentrant: bool | None = None) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 4))
            for _ in range(2)
        )
        self.last, self.reentrant = nn.Linear(4, 2), reentrant

    def forward(self, data: Tensor) -> Tensor:
        for block in self.blocks:
            if self.reentrant is None:
                data = data + block(data)
            else:
                given = data.requires_grad_() if data.is_leaf else data
                data = data + checkpoint(block, given, use_reentrant=self.reentrant)
        found: Tensor = self.last(data)
        return found


def case(model: nn.Module) -> Case:
    return double(model, 5, 3, 4)


# Compiled


def test_compiled_models_agree_with_a_loop() -> None:
    """By whatever compiles them: nothing is compiled, so that none needs to be here."""
    torch._dynamo.reset()
    plain = case(Blocks())
    made = case(torch.compile(Blocks()))  # type: ignore[arg-type]
    clipping = Flat(median_norm(plain))
    same(made.clipped(clipping), plain.looped(clipping))
    check(made.model, made.losses, made.data)


def test_compiled_models_run_compiled_elsewhere() -> None:
    torch._dynamo.reset()
    calls: list[int] = []

    def counted(graph: Any, inputs: Any) -> Any:  # Any: a backend's
        calls.append(1)
        return graph.forward

    made = case(torch.compile(Blocks(), backend=counted))  # type: ignore[arg-type]
    made.clipped(Flat(1.0))
    assert not calls
    made.losses(made.data)
    assert calls


@pytest.mark.usefixtures("drawn")
def test_a_compiled_model_trains_as_ever() -> None:
    torch._dynamo.reset()
    found = []
    for is_compiled in (False, True):
        model: BadValue = linear()
        model = torch.compile(model) if is_compiled else model
        fit(
            model,
            sgd(model),
            data(),
            short(),
            losses=lambda model, part: losses_of(model)(part),
            payer=FakePayer(),
        )
        found.append(weights(model))
    assert torch.equal(*found)


# Checkpointed


def test_checkpointed_parts_agree_with_a_loop() -> None:
    made = case(Blocks(reentrant=False))
    agrees(made)
    same(made.clipped(Flat(1.0)), case(Blocks()).looped(Flat(1.0)))


def test_reentrant_checkpoints_are_refused_by_name() -> None:
    made = case(Blocks(reentrant=True))
    for ask in (
        lambda: made.clipped(Flat(1.0)),
        lambda: check(made.model, made.losses, made.data),
    ):
        with pytest.raises(Refused, match=r"use_reentrant=True.*; give use_reentrant=False"):
            ask()
    given = Units(TensorDataset(made.data.detach()), [0] * 5, column="person", most=2)
    plan = short(unit=Unit("person"), records=1, batch=1)
    like = Units(TensorDataset(made.data.detach()), [0] * 5, column="person", most=2)
    with (
        pytest.raises(Refused, match="use_reentrant"),
        known(made.model, given, plan, losses=lambda part: made.losses(part[0]), like=like),
    ):
        raise AssertionError
    assert all(parameter.grad is None for parameter in made.model.parameters())


# In bfloat16


def test_bfloat16_agrees_with_a_loop_in_it() -> None:
    """As closely as its eight bits allow; sums are in float32, and norms are of what is summed."""
    torch.manual_seed(0)
    plain = Case(Blocks().float(), torch.randn(32, 3, 4))

    class Auto(Case):
        def losses(self, data: Tensor) -> Tensor:
            with torch.autocast("cpu", torch.bfloat16):
                return super().losses(data)

    auto = Auto(plain.model, plain.data)
    clipping = Flat(median_norm(plain))
    found, wanted = auto.clipped(clipping), auto.looped(clipping)
    size = torch.stack([each.norm() for each in wanted.sums]).norm()
    for one, other in zip(found.sums, wanted.sums, strict=True):
        assert one.dtype == torch.float32
        assert float((one - other).norm()) <= 0.02 * float(size)
    exact = plain.clipped(clipping)
    assert any(not torch.allclose(*pair) for pair in zip(found.sums, exact.sums, strict=True))
    alone = [clipped_alone(auto, number, clipping.norm) for number in range(32)]
    assert max(alone) <= clipping.norm
    assert min(alone) < 0.9 * clipping.norm < max(alone)


def clipped_alone(case: Case, number: int, norm: float) -> float:
    """The norm of one example's contribution, as it is released."""
    found = clipped_sum(case.model, lambda: case.of(number), 1, Flat(norm))
    return float(torch.stack([each.double().norm() for each in found.sums]).norm())


def noise_alone(dtype: torch.dtype) -> list[Tensor]:
    """The gradients of a step in which no example has any."""
    model = linear().to(dtype)

    def losses(part: Any) -> Tensor:
        found: Tensor = part.y.to(dtype) * model(part.x.to(dtype))[:, 0]
        return found

    given = {**data(), "y": torch.zeros(60)}  # made-up ones aren't 0, so that a look sees something
    with known(model, given, short(multiplier=1), losses=losses) as training:
        training.step(next(training.batches()))
    return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]


def test_a_model_in_bfloat16_gets_noise_in_single() -> None:
    """Rounded only once it is there: to what the same noise in float32 is rounded to."""
    found, wanted = noise_alone(torch.bfloat16), noise_alone(torch.float32)
    assert {each.dtype for each in found} == {torch.bfloat16}
    assert len(found) == len(wanted) == 2
    for one, other in zip(found, wanted, strict=True):
        assert torch.equal(one, other.bfloat16())
        assert other.abs().min() > 0


# In parts


def test_parts_added_by_hand_are_the_whole() -> None:
    made = case(Blocks())
    clipping = Flat(median_norm(made))
    whole = made.clipped(clipping)
    total = [torch.zeros_like(each) for each in whole.sums]
    for part in torch.split(made.data, 2):
        for sums, more in zip(total, Case(made.model, part).clipped(clipping).sums, strict=True):
            sums.add_(more)
    torch.testing.assert_close(total, [*whole.sums])


def test_gradients_accumulated_by_hand_are_not_in_a_step() -> None:
    """A user's own backward pass has no noise: its gradients are gone before and after."""
    found = []
    for is_accumulating in (False, True):
        model = linear()

        def losses(part: Any, model: nn.Module = model, by: bool = is_accumulating) -> Any:
            if by:
                unfollowed(lambda: (100 * model(part.x)).sum().backward())
            return losses_of(model)(part)

        with known(model, data(), short(), losses=losses) as training:
            for ticket in training.batches():
                if is_accumulating:
                    (100 * model(torch.ones(2, 3))).sum().backward()
                training.step(ticket)
            found.append(weights(model))
    assert torch.equal(*found)
