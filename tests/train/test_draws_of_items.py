"""Random numbers of items, as in augmentation, are each item's own, whatever a data set seeds."""

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from discreet.errors import Refused
from discreet.train import Collated, run
from tests.mechanisms.kit import FakePayer
from tests.train.steps import Wrong, data, linear, pair_losses, pairs, sgd, short

EVERYBODY = {"records": 60, "batch": 60, "steps": 1}
SEEDS: dict[str, Callable[[], object]] = {
    "torch": lambda: torch.manual_seed(0),
    "torch, default generator": lambda: torch.default_generator.manual_seed(0),
    "torch, state": partial(torch.set_rng_state, torch.get_rng_state()),
    "numpy": lambda: np.random.seed(0),
    "python": lambda: random.seed(0),
}
DRAWS: dict[str, Callable[[], float]] = {
    "torch": lambda: float(torch.rand((), dtype=torch.float64)),
    "numpy": lambda: float(np.random.random()),
    "python": random.random,
}


class Items:
    """Pairs of rows; each call of ``act`` reads one."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.rows, self.act = data(), act

    def __len__(self) -> int:
        return len(self.rows["x"])

    def __getitem__(self, place: int) -> tuple[Tensor, Tensor]:
        self.act()
        return self.rows["x"][place], self.rows["y"][place]


def trained(given: Wrong, payer: FakePayer, **changes: Wrong) -> None:
    """Make one step with all items; ``begin`` is called before it."""
    model, begin = linear(), changes.pop("begin", lambda: None)
    facts: Wrong = {"like": pairs(), "losses": pair_losses(model)} | changes
    with run(model, sgd(model), given, short(**EVERYBODY), payer=payer, **facts) as training:
        begin()
        training.step(next(training.batches()))


@pytest.mark.parametrize("place", ["items", "collate"])
@pytest.mark.parametrize("way", SEEDS)
def test_an_item_that_seeds_tells_nothing_of_later_ones(way: str, place: str) -> None:
    """A worker's seed, set at the first item, made all others known. By chance with 2^-50."""
    draw, found = DRAWS[way.partition(",")[0]], list[float]()

    def act() -> None:
        if not found:
            SEEDS[way]()
        found.append(draw())

    def collate(items: Wrong) -> Wrong:
        act()
        return torch.utils.data.default_collate(items)

    given = Items(act) if place == "items" else Collated(Items(lambda: None), collate)
    trained(given, FakePayer(), begin=found.clear)
    SEEDS[way]()
    known = {draw() for _ in range(200)}
    assert len(found) == 60
    assert found[0] in known  # so the test sees what the seed gives
    assert not known & {*found[1:]}


def test_a_seed_of_numpys_in_an_item_hides_none_in_the_losses() -> None:
    model = linear()

    def losses(part: Wrong) -> Tensor:
        np.random.seed(0)
        return pair_losses(model)(part)

    with pytest.raises(Refused, match="seed NumPy's generator"):
        trained(Items(lambda: np.random.seed(0)), FakePayer(), losses=losses)


class Within:
    """An object that has another one."""

    def __init__(self, inner: object) -> None:
        self.inner = inner


def _closed_over(generator: Any) -> Callable[[Any], Any]:
    def collate(items: Any) -> Any:
        return generator, items

    return collate


def _with(generator: object) -> Items:
    items = Items(lambda: None)
    items.generator = generator  # type: ignore[attr-defined]  # as users do
    return items


GENERATORS: dict[str, Callable[[], object]] = {
    "torch": torch.Generator,
    "numpy": lambda: np.random.default_rng(0),
    "numpy, old": lambda: np.random.RandomState(0),
    "numpy, bits": lambda: np.random.PCG64(0),
    "python": lambda: random.Random(0),
}
HOLDERS: dict[str, Callable[[Any], Any]] = {
    "an attribute": _with,
    "a data set within": lambda own: _with(Within(_with(own))),
    "a list of transforms": lambda own: _with([Within(None), Within(own)]),
    "a mapping": lambda own: _with({"flip": own}),
    "a collate function": lambda own: Collated(pairs(), _closed_over(own)),
    "an argument of one": lambda own: Collated(pairs(), partial(_closed_over, own)),
    "its object": lambda own: Collated(pairs(), Items(Within(own)).__getitem__),  # type: ignore[arg-type]  # nothing calls it
    "collated items": lambda own: Collated(_with(own), torch.utils.data.default_collate),
}


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("kind", GENERATORS)
def test_generators_of_a_data_set_are_refused_by_name(kind: str, holder: str) -> None:
    payer = FakePayer()
    with pytest.raises(Refused, match=r"^train_set[.\w\[\]']+ is a generator for all items"):
        trained(HOLDERS[holder](GENERATORS[kind]()), payer)
    assert not payer.charges


@pytest.mark.parametrize(
    "own",
    [random, np.random, random.SystemRandom(), torch.default_generator, np.random.mtrand._rand],
    ids=["random", "numpy.random", "the system's", "PyTorch's", "NumPy's"],
)
def test_global_generators_may_have_another_name(own: object) -> None:
    payer = FakePayer()
    trained(_with(own), payer)
    assert payer.charges


def test_a_generator_made_by_an_item_for_all_is_refused_before_the_charge() -> None:
    """As Transformers' collator for masked words does with a seed."""
    payer = FakePayer()

    def drawing() -> Items:
        made = list[torch.Generator]()

        def draw() -> None:
            if not made:
                made.append(torch.Generator())
            torch.rand(1, generator=made[0])

        return Items(draw)

    for given in (drawing(), Collated(drawing(), torch.utils.data.default_collate)):
        with pytest.raises(Refused, match="rand draws from a generator of its own"):
            trained(given, payer, like=drawing())
    assert not payer.charges


class Invented(Items):
    """Public examples that a generator of their own makes."""

    def __init__(self) -> None:
        super().__init__(lambda: torch.rand(1, generator=self.own))
        self.own = torch.Generator().manual_seed(0)


def test_public_examples_of_another_kind_may_have_a_generator() -> None:
    payer = FakePayer()
    trained(Items(lambda: None), payer, like=Invented())
    assert payer.charges
