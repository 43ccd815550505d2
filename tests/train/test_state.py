"""A model that stores something about its data is refused, whichever code writes it. State that
depends on weights alone may change, and random layers are not taken for mixing."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from discreet._unit import Unit
from discreet.errors import Refused
from discreet.train import Flat, Units, check, clipped_sum
from tests.bad_values import BadValue
from tests.train.steps import Replaceable, known, short, weights

torch_ao: BadValue = torch.ao.quantization  # without types


class Writing(nn.Module):
    """Keeps something of what it sees."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.kind, self.last = kind, nn.Linear(3, 1)
        self.frozen = nn.Parameter(torch.zeros(3), requires_grad=False)
        self.mean: Tensor
        self.register_buffer("mean", torch.zeros(3))
        self.seen = torch.zeros(3)

    def forward(self, data: Tensor) -> Tensor:
        found, mean = self.last(data), data.detach().mean(0)
        with torch.no_grad():
            if self.kind == "buffer":
                self.mean.add_(mean)
            elif self.kind == "another buffer":
                self.mean = self.mean + mean
            elif self.kind == "frozen":
                self.frozen.add_(mean)
            elif self.kind == "trained":
                self.last.weight.mul_(1 - 1e-9 * mean.square().sum())
            elif self.kind == "used":
                self.seen = self.seen + mean
        result: Tensor = found if self.kind != "used" else found * self.seen.sum()
        return result


def observed(watching: nn.Module) -> nn.Module:
    return nn.Sequential(watching, nn.Linear(3, 1))


KEEPING: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "buffer": (lambda: Writing("buffer"), "Writing.mean was written"),
    "another buffer": (lambda: Writing("another buffer"), "Writing.mean was written"),
    "frozen": (lambda: Writing("frozen"), "frozen was written .*(load the model anew|let the opt)"),
    "trained": (
        lambda: Writing("trained"),
        "weight was (written|changed)|differ from|depends on others",
    ),
    "used": (lambda: Writing("used"), "depends on others|mixes|differ from|was written"),
    "batch norm": (lambda: observed(nn.BatchNorm1d(3)), "normalises each example|was written"),
    "tracked instance norm": (
        lambda: nn.Sequential(
            nn.Unflatten(1, (3, 1)),
            nn.InstanceNorm1d(3, track_running_stats=True),
            nn.Flatten(),
            nn.Linear(3, 1),
        ),
        "running statistics|Expected more than 1 spatial",
    ),
    "observer": (lambda: observed(torch_ao.MinMaxObserver()), r"MinMaxObserver\.max_val.* written"),
    "fake quantization": (
        lambda: observed(torch_ao.FakeQuantize()),
        r"FakeQuantize.*(mixes|was written)|Observer.*was written",
    ),
}


def losses_of(model: nn.Module) -> BadValue:
    return lambda part: model(part[0]).square().sum(1)


def by_weights_of(model: nn.Module) -> BadValue:
    """Losses that use all weights and don't call the model."""
    return lambda part: sum(one.sum() for one in model.parameters()) * part[0].sum(1)


@pytest.mark.filterwarnings("ignore:.*torch.ao.quantization:DeprecationWarning")
@pytest.mark.parametrize(
    ("name", "is_of_persons"),  # a plain attribute is not looked at where nothing is compared
    [
        (name, which)
        for name in KEEPING
        for which in (False, True)
        if not (which and name == "used")
    ],
)
@pytest.mark.parametrize("is_paid", [False, True])
def test_a_run_refuses_what_keeps_data(name: str, is_of_persons: bool, is_paid: bool) -> None:
    """Before it is paid, and also if the losses call the model only later."""
    make, told = KEEPING[name]
    model, rows = make(), torch.randn(60, 3, generator=torch.Generator().manual_seed(1)) + 1
    buffers = {key: one.clone() for key, one in model.named_buffers()}
    given: BadValue = (rows, rows[:, 0])
    made = short(multiplier=1)
    if is_of_persons:
        given = Units(given, list(range(60)), column="person", most=2)
        made = short(multiplier=1, unit=Unit("person"))
    losses = Replaceable(by_weights_of(model) if is_paid else losses_of(model))
    refused = pytest.raises((Refused, ValueError), match=told)
    if is_paid:
        with known(model, given, made, losses=losses) as training, refused:
            losses.step(training, losses_of(model))
    else:
        with refused, known(model, given, made, losses=losses):
            raise AssertionError
    for key, one in model.named_buffers():
        assert torch.equal(one, buffers[key]), key
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("make", [nn.Embedding, nn.EmbeddingBag])
@pytest.mark.parametrize("is_frozen", [False, True])
def test_tables_that_shrink_what_is_looked_up_are_refused(make: BadValue, is_frozen: bool) -> None:
    table = make(10, 4, max_norm=0.1).requires_grad_(not is_frozen)
    model = nn.Sequential(table, nn.Flatten(), nn.Linear(12 if make is nn.Embedding else 4, 1))
    before = weights(model)
    given = torch.randint(10, (6, 3), generator=torch.Generator().manual_seed(0))

    def losses(part: Tensor) -> Tensor:
        found: Tensor = model(part).square().sum(1)
        return found

    for look in (
        lambda: clipped_sum(model, lambda: losses(given), 6, Flat(1.0)),
        lambda: check(model, losses, given),
    ):
        with pytest.raises(Refused, match=r"^0\.weight has max_norm.*; leave max_norm out"):
            look()
    assert torch.equal(weights(model), before)


def test_spectral_norms_go_on_while_they_are_trained() -> None:
    """Their iteration sees weights alone."""
    torch.manual_seed(0)
    model = nn.Sequential(parametrizations.spectral_norm(nn.Linear(3, 4)), nn.Linear(4, 1))
    before = {key: one.clone() for key, one in model.named_buffers()}
    rows = torch.randn(60, 3)
    given, losses = (rows, rows[:, 0]), losses_of(model)
    with known(model, given, short(multiplier=1), losses=losses) as training:
        for ticket in training.batches():
            training.step(ticket)
    assert all(module.training for module in model.modules())
    assert any(not torch.equal(one, before[key]) for key, one in model.named_buffers())


class Blended(nn.Module):
    """Each example with another one, by draws that look harmless where all are the same."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 3)

    def forward(self, data: Tensor) -> Tensor:
        found: Tensor = self.first(data)
        return found + found[torch.rand(len(data)).argsort(stable=True)]


def test_examples_that_are_shuffled_mix() -> None:
    model = Blended()
    with pytest.raises(Refused, match=r"mixes examples|depends on others"):
        check(model, lambda part: model(part).square().sum(1), torch.zeros(6, 4))


class Chance(nn.Module):
    """Draws something for each example; `is_mixing`, what it gives is of all others too."""

    def __init__(self, kind: str, *, is_mixing: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.kind, self.is_mixing, self.first = kind, is_mixing, nn.Linear(4, 3)

    def drawn(self, found: Tensor) -> Tensor:
        given = {
            "slopes": lambda: F.rrelu(found, training=True),
            "normal, alike": lambda: found + torch.randn_like(found),
            "uniform, alike": lambda: found * torch.rand_like(found, dtype=found.dtype),
            "of a size": lambda: found + torch.randn(len(found), 3) * torch.rand((len(found), 3)),
            "of a law": lambda: torch.distributions.Normal(found, found.exp()).rsample(),
            "coins": lambda: found * torch.bernoulli(torch.sigmoid(found.detach())),
            "into a tensor": lambda: found + torch.empty_like(found).uniform_(),
            "around": lambda: found + torch.normal(torch.zeros_like(found), 1.0),
            "dropped": lambda: F.dropout(found, 0.5),
        }
        return given[self.kind]()

    def forward(self, data: Tensor) -> Tensor:
        found = self.drawn(self.first(data))
        return found - found.mean(0) if self.is_mixing else found


@pytest.mark.parametrize(
    "kind",
    [
        *("slopes", "normal, alike", "uniform, alike", "of a size", "of a law", "coins"),
        *("into a tensor", "around", "dropped"),
    ],
)
def test_chance_is_no_mixing(kind: str) -> None:
    model, given = Chance(kind), torch.zeros(6, 4)
    torch.manual_seed(3)
    check(model, lambda part: model(part).square().sum(1), given)
    first = torch.rand(3)
    torch.manual_seed(3)
    assert torch.equal(first, torch.rand(3))
    mixing = Chance(kind, is_mixing=True)
    with pytest.raises(Refused, match=r"mixes examples|depends on others"):
        check(mixing, lambda part: mixing(part).square().sum(1), given)
