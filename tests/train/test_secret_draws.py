"""Draws within a step are secret, whatever was seeded, and global generators stay as they were."""

import random
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from numpy.random import mtrand
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from discreet._unit import Unit
from discreet.errors import Refused
from discreet.noise import SecureBits
from discreet.train import Collated, ExactGaussian, Units, check, fit, run
from discreet.train._randomness._secret_draws import secret_draws
from tests.bad_values import BadValue
from tests.mechanisms.kit import FakePayer
from tests.train.steps import data, known, linear, losses_of, pair_losses, pairs, sgd, short

SOURCES: dict[str, Callable[[], float]] = {
    "torch": lambda: float(torch.rand((), dtype=torch.float64)),
    "torch, normal": lambda: float(torch.randn(8, dtype=torch.float64)[0]),
    "dropout": lambda: float(nn.functional.dropout(torch.ones(100)) @ (2.0 ** torch.arange(100))),
    "numpy": lambda: float(np.random.random()),  # the global one is what it is about
    "numpy, normal": lambda: float(np.random.normal()),
    "python": random.random,
    "python, normal": lambda: random.gauss(0, 1),
}


def seed() -> None:
    """Seed all global generators with a public number."""
    torch.manual_seed(42)
    np.random.seed(42)
    random.seed(42)


def states() -> list[Any]:  # Any: of three libraries
    """Of all global generators."""
    numbers = np.random.get_state()
    return [torch.get_rng_state().tolist(), [np.asarray(one).tolist() for one in numbers],
            random.getstate()]  # fmt: skip


class Items:
    """Items that are augmented as they are read."""

    def __init__(self, draw: Callable[[], float], found: list[float]) -> None:
        self.inner, self.draw, self.found = data(), draw, found

    def __len__(self) -> int:
        return len(self.inner["x"])

    def __getitem__(self, place: int) -> tuple[Tensor, Tensor]:
        self.found.append(self.draw())
        return self.inner["x"][place], self.inner["y"][place]


def drawn_in(place: str, draw: Callable[[], float], plan: BadValue) -> list[float]:
    """The draws of a run with known seeds, whose batches contain every example."""
    found: list[float] = []
    model = linear()
    given: BadValue = Items(draw, found) if place == "items" else data()
    if place == "collate":

        def collate(items: BadValue) -> BadValue:
            found.append(draw())
            return torch.utils.data.default_collate(items)

        given = Collated(Items(lambda: 0.0, []), collate)
    plain = losses_of(model) if place == "losses" else pair_losses(model)

    def losses(part: Any) -> Tensor:
        if place == "losses":
            found.append(draw())
        return plain(part)

    like = None if place == "losses" else pairs()
    facts: BadValue = {"losses": losses, "payer": FakePayer(), "like": like}
    seed()
    with run(model, sgd(model), given, plan, **facts) as training:
        for ticket in training.batches():
            seed()
            found.clear()
            training.step(ticket)
    return found


EVERYBODY = {"records": 60, "batch": 60, "steps": 2}


@pytest.mark.parametrize("place", ["items", "collate", "losses"])
@pytest.mark.parametrize("source", SOURCES)
def test_known_seeds_tell_no_draw(source: str, place: str) -> None:
    """No source gives the same number twice, nor one from the seed; by chance with 2^-50."""
    draw, plan = SOURCES[source], short(**EVERYBODY)
    one, other = (drawn_in(place, draw, plan) for _ in range(2))
    seed()
    known = {draw() for _ in range(500)}
    assert one
    assert not set(one) & set(other)
    assert not known & {*one, *other}


@pytest.mark.parametrize("source", SOURCES)
def test_known_seeds_tell_no_draw_of_exact_noise(source: str) -> None:
    plan = short(**EVERYBODY | {"steps": 1}, noise=ExactGaussian(16))
    one, other = (drawn_in("losses", SOURCES[source], plan) for _ in range(2))
    assert len(set(one)) == 60
    assert not set(one) & set(other)


def test_the_attack_with_a_known_seed_fails() -> None:
    """Two data sets are one example apart: who knows the seed knows each sum, and compares."""

    def released() -> Tensor:
        """The gradient of a step in which hardly any noise hides the masks."""
        model = nn.Linear(64, 1, bias=False)
        nn.init.ones_(model.weight)
        x = torch.ones(60, 64)
        torch.manual_seed(42)

        def losses(part: Any) -> BadValue:
            return model(nn.functional.dropout(part.x))[:, 0]

        facts: BadValue = {"losses": losses, "payer": FakePayer()}
        with run(model, sgd(model), {"x": x}, short(**EVERYBODY), **facts) as training:
            torch.manual_seed(42)
            training.step(next(training.batches()))
        assert model.weight.grad is not None
        return model.weight.grad

    one, other = released(), released()
    assert (one - other).abs().max() > 1e-3  # a chance of 60 choose 30 / 2^60, to the power 64


class Stop(Exception):  # it is none of ours
    """Of a loss that fails."""


@pytest.mark.parametrize("way", ["fit", "step", "step, failing", "look, failing"])
def test_global_generators_are_as_before(way: str) -> None:
    np.random.normal()  # of two numbers one waits
    random.gauss(0, 1)
    torch.randn(1)
    model = linear()
    before, numbers = states(), mtrand.get_bit_generator()

    def losses(model: nn.Module, part: Any) -> Tensor:
        for draw in SOURCES.values():
            draw()
        if way.endswith("failing"):
            raise Stop
        return losses_of(model)(part)

    with ExitStack() as stack:
        if way.endswith("failing"):
            stack.enter_context(pytest.raises(Refused, match="Stop"))
        if way.startswith("step"):
            own = partial(losses, model)
            training = stack.enter_context(known(model, data(), short(), losses=own))
            training.step(next(training.batches()))
        else:
            fit(model, sgd(model), data(), short(), losses=losses, payer=FakePayer())
    assert states() == before
    assert mtrand.get_bit_generator() is numbers


def test_generators_of_other_kinds_are_as_before() -> None:
    """NumPy's global one may be of any kind."""
    before = mtrand.get_bit_generator()
    try:
        mine = np.random.PCG64(3)
        mtrand.set_bit_generator(mine)
        state = mine.state
        with secret_draws(SecureBits()):
            np.random.random()
        assert mtrand.get_bit_generator() is mine
        assert mine.state == state
    finally:
        mtrand.set_bit_generator(before)


def test_all_of_pytorchs_state_is_secret() -> None:
    """Not 32 bits of it: of two states hardly any number is the same, and draws are uniform."""
    found = []
    for _ in range(2):
        with secret_draws(SecureBits()):
            found.append(torch.get_rng_state().view(torch.int64)[3:627])
            draws = torch.rand(20_000, dtype=torch.float64)
    assert (found[0] == found[1]).sum() <= 3  # a chance of (624 choose 4) 2^-128
    assert all(int(each.max()) < 2**32 for each in found)
    assert abs(float(draws.mean()) - 0.5) < 6.2 * (12 * 20_000) ** -0.5  # a chance below 1e-9
    assert torch.default_generator.initial_seed() != found[0][0]


def test_all_of_numpys_state_is_secret() -> None:
    """Not the 128 bits of a seed of its own: of two states hardly any number is the same."""
    found = []
    with secret_draws(SecureBits()) as draws:
        for _ in range(2):
            draws.renew()
            found.append(mtrand.get_bit_generator().state["state"]["key"])
            uniform = np.random.random(20_000)
        assert (found[0][1:] == found[1][1:]).sum() <= 3  # a chance of (623 choose 4) 2^-128
        torch_s = torch.get_rng_state().view(torch.int64)[3:627]
        assert (torch_s[1:] == torch.from_numpy(found[1][1:].astype(np.int64))).sum() <= 3
    assert abs(uniform.mean() - 0.5) < 6.2 * (12 * 20_000) ** -0.5  # a chance below 1e-9


class Calls(TorchFunctionMode):
    """Counts calls of PyTorch's functions."""

    number = 0

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # Any: PyTorch's functions and what they take
        self.number += 1
        return func(*args, **(kwargs or {}))


def test_new_seeds_are_no_calls_of_the_losses() -> None:
    """A step must see the same calls as the check: numbers of the seeds looked like data's."""
    with secret_draws(SecureBits()) as draws, Calls() as calls:
        draws.renew()
        draws.secret(lambda _: 0)(None)
        assert calls.number == 0


def listed(*numbers: float) -> Tensor:
    return torch.tensor([*numbers])


FROM_LISTS: dict[str, Callable[[nn.Linear, Tensor], Tensor]] = {
    "times a list": lambda m, x: m(x * listed(1, 2, 3)),
    "weights times a list": lambda m, x: x @ (m.weight[0] * listed(1, 2, 3))[:, None],
    "weights by indices": lambda m, x: x @ m.weight[:, torch.tensor([2, 1, 0])].t(),
    "draws times a list": lambda m, x: m(x * torch.randn(len(x), 3) * listed(1, 2, 3)),
    "chances": lambda m, x: m(x * (torch.rand(len(x), 3) < listed(0.2, 0.5, 0.7))),
    "classes": lambda m, x: (
        m(x) * torch.multinomial(listed(0.1, 0.9), len(x), replacement=True)[:, None]
    ),
    "a law": lambda m, x: m(x) * torch.distributions.Beta(2.0, 2.0).sample((len(x), 1)),
    "a generator": lambda m, x: m(torch.randn(len(x), 3) + listed(1, 2, 3)) * x[:, :1],
    "an embedding": lambda m, x: m(x) * F.embedding(torch.tensor([0]), m.weight).sum(),
}


@pytest.mark.parametrize("name", FROM_LISTS)
def test_steps_take_numbers_from_lists_as_checks_do(name: str) -> None:
    model = linear()

    def losses(model: Any, part: Any) -> Tensor:
        found: Tensor = (FROM_LISTS[name](model, part.x)[:, 0] - part.y) ** 2
        return found

    report = fit(model, sgd(model), data(), short(), losses=losses, payer=FakePayer())
    assert report.taken == short().steps


def own_generator(x: Tensor) -> Tensor:
    return x * torch.rand(x.shape, generator=torch.Generator().manual_seed(42))


def seeds(x: Tensor) -> Tensor:
    torch.manual_seed(42)
    return x * (torch.rand(x.shape) + 0.5)


def seeds_for_a_while(x: Tensor) -> Tensor:
    with torch.random.fork_rng():
        torch.manual_seed(42)
        return nn.functional.dropout(x)


def seeds_at_the_end(x: Tensor) -> Tensor:
    found = x * 2
    torch.manual_seed(42)
    return found


def draws_in_place(x: Tensor) -> Tensor:
    return x * torch.empty_like(x).uniform_(generator=torch.Generator().manual_seed(42))


def seeds_numpy(x: Tensor) -> Tensor:
    np.random.seed(42)
    return x * (1 + float(np.random.random()))


def by_place_in_call(x: Tensor) -> Tensor:
    return x * torch.poisson(torch.ones_like(x), torch.Generator().manual_seed(42))


def shares_by_place(x: Tensor) -> Tensor:
    own = torch.Generator().manual_seed(42)
    found: Tensor = torch._sample_dirichlet(torch.ones(len(x), 3), own)
    return x * found


KNOWN = [
    by_place_in_call,
    shares_by_place,
    own_generator,
    seeds,
    seeds_for_a_while,
    seeds_at_the_end,
    draws_in_place,
    seeds_numpy,
]


@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("way", ["fit", "items", "persons", "exact"])
def test_known_draws_in_the_model_are_refused(known: Callable[[Tensor], Tensor], way: str) -> None:
    """Before the charge."""
    model, payer, like = linear(), FakePayer(), dict[str, BadValue]()
    more: BadValue = {"noise": ExactGaussian(16)} if way == "exact" else {}
    given: BadValue = data()
    if way == "items":
        given = Items(lambda: 0.0, [])
        like = {"like": [given[row] for row in range(5)]}
    if way == "persons":
        given, more = Units(data(), [*range(60)], "person", 2), {"unit": Unit("person")}

    def losses(model: nn.Module, part: Any) -> Tensor:
        x, y = (part[0], part[1]) if way == "items" else (part.x, part.y)
        return nn.functional.mse_loss(model(known(x))[:, 0], y, reduction="none")

    with pytest.raises(Refused, match=r"generator.*leave it out"):
        fit(model, sgd(model), given, short(**more), losses=losses, payer=payer, **like)
    assert not payer.charges


@pytest.mark.parametrize("known", KNOWN[:-1])
def test_check_refuses_known_draws(known: Callable[[Tensor], Tensor]) -> None:
    model = linear()
    with pytest.raises(Refused, match=r"generator.*leave it out"):
        check(model, lambda x: model(known(x)).sum(1), torch.zeros(5, 3))


OWN = torch.Generator().manual_seed(42)


def own_draw() -> float:
    """A draw from a generator that no search finds, since its name is a text."""
    return float(torch.rand((), generator=vars(sys.modules[__name__])["OWN"]))


def test_items_may_not_draw_from_generators_of_their_own() -> None:
    model = linear()
    given: BadValue = Items(own_draw, [])
    own_losses: BadValue = pair_losses(model)
    with (
        known(model, given, short(), losses=own_losses, like=pairs()) as training,
        pytest.raises(Refused, match=r"rand draws from a generator of its own.*leave it out"),
    ):
        training.step(next(training.batches()))


def test_seeds_of_items_do_not_seed_the_model() -> None:
    """An item may draw the same each time: only others' draws must not follow from it."""
    found: list[set[float]] = []

    class Seeding(Items):
        def __getitem__(self, place: int) -> tuple[Tensor, Tensor]:
            seed()
            return super().__getitem__(place)

    for _ in range(2):
        model, given = linear(), Seeding(lambda: 0.0, [])

        def losses(part: Any, model: nn.Module = model) -> Tensor:
            found[-1] = {draw() for draw in SOURCES.values()}  # the last are a real part's
            return pair_losses(model)(part)

        found.append(set())
        facts: BadValue = {"losses": losses, "payer": FakePayer(), "like": pairs()}
        with run(model, sgd(model), given, short(), **facts) as training:
            training.step(next(training.batches()))
    assert [*map(len, found)] == [len(SOURCES)] * 2
    assert not set.intersection(*found)
