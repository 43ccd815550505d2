"""Random numbers of items, as in augmentation, are each item's own, whatever a data set seeds."""

import itertools
import random
from collections import OrderedDict, deque
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import ConcatDataset, Subset

from discreet.errors import Refused
from discreet.train import Collated, run
from tests.bad_values import BadValue
from tests.mechanisms.kit import FakePayer
from tests.train.steps import data, linear, pair_losses, pairs, sgd, short

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


def trained(given: BadValue, payer: FakePayer, **changes: BadValue) -> None:
    """Make one step with all items; ``begin`` is called before it."""
    model, begin = linear(), changes.pop("begin", lambda: None)
    facts: BadValue = {"like": pairs(), "losses": pair_losses(model)} | changes
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

    def collate(items: BadValue) -> BadValue:
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

    def losses(part: BadValue) -> Tensor:
        np.random.seed(0)
        return pair_losses(model)(part)

    with pytest.raises(Refused, match="seed NumPy's generator"):
        trained(Items(lambda: np.random.seed(0)), FakePayer(), losses=losses)


class Within:
    """An object that has another one."""

    def __init__(self, inner: object) -> None:
        self.inner = inner


class Calling(Within):
    """An object whose method calls another one."""

    def __call__(self, items: Any) -> Any:
        return self.flip(items)

    def flip(self, items: Any) -> Any:
        return self.inner(items)  # type: ignore[operator]  # a function


class Flip(NamedTuple):
    """A transform with a generator."""

    own: object
    share: float = 0.5


class Slotted:
    """An object without a dictionary."""

    __slots__ = ("own", "unset")

    def __init__(self, own: object) -> None:
        self.own = own

    def __call__(self, items: Any) -> Any:
        return items


class Flipping(nn.Module):
    """A transform as torchvision has them."""

    def __init__(self, own: object) -> None:
        super().__init__()
        self.own = own


def _by_default(generator: Any) -> Callable[..., Any]:
    def collate(items: Any, own: Any = generator) -> Any:
        return own, items

    return collate


def _using(generator: Any) -> Any:
    """A function that uses a global variable, within a function of its own."""
    code = "def use(items):\n    return [OWN for _ in items]"
    names: dict[str, Any] = {"OWN": generator, "__name__": "__main__"}
    exec(code, names)
    return names["use"]


OWN = np.random.default_rng(0)


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
    "a named tuple": lambda own: _with(Flip(own)),
    "a deque": lambda own: _with(deque([own])),
    "an ordered mapping": lambda own: _with(OrderedDict(flip=own)),
    "a slot": lambda own: _with(Slotted(own)),
    "a module": lambda own: _with(nn.Sequential(Flipping(own))),
    "six data sets deep": lambda own: _with(Within([Within([Within([Within(Within(own))])])])),
    "data sets of data sets": lambda own: Subset(
        ConcatDataset([Subset(_with([Within([Within(own)])]), [0])]),  # type: ignore[arg-type]  # as all data sets
        [0],
    ),
    "behind 10 000 paths": lambda own: _with([["path"] * 10_000, own]),
    "an attribute of the class": lambda own: type("Own", (Items,), {"own": own})(lambda: None),
    "an attribute of a base": lambda own: type("Own", (type("Base", (Items,), {"own": own}),), {})(
        lambda: None
    ),
    "a closure": lambda own: _with(_closed_over(own)),
    "a closure of a method": lambda own: _with(Calling(_closed_over(own))),
    "a default argument": lambda own: _with(_by_default(own)),
    "a global variable": lambda own: _with(_using(own)),
    "a global variable of a method": lambda own: type(
        "Own", (Items,), {"__getitem__": _using(own)}
    )(lambda: None),
    "a global variable two calls away": lambda own: _with(_using(_using(own))),
    "a collate function": lambda own: Collated(pairs(), _closed_over(own)),
    "an argument of one": lambda own: Collated(pairs(), partial(_closed_over, own)),
    "its object": lambda own: Collated(pairs(), Items(Within(own)).__getitem__),  # type: ignore[arg-type]  # nothing calls it
    "an object with slots": lambda own: Collated(pairs(), Slotted(own)),
    "collated items": lambda own: Collated(_with(own), torch.utils.data.default_collate),
}
PLACES = [*((kind, "an attribute") for kind in GENERATORS), *(("numpy", one) for one in HOLDERS)]


@pytest.mark.parametrize(("kind", "holder"), PLACES)
def test_generators_of_a_data_set_are_refused_by_name(kind: str, holder: str) -> None:
    payer = FakePayer()
    with pytest.raises(Refused, match=r"^train_set[.\w\[\]']+ is a generator for all items"):
        trained(HOLDERS[holder](GENERATORS[kind]()), payer)
    assert not payer.charges


@pytest.mark.parametrize(
    "own",
    [itertools.cycle([1.0, -1.0]), itertools.count(), iter([1.0]), (one for one in [1.0])],
    ids=["cycle", "count", "a list's", "a generator's"],
)
def test_iterators_of_a_data_set_are_refused_by_name(own: object) -> None:
    payer = FakePayer()
    with pytest.raises(Refused, match=r"^train_set\.generator is an iterator for all items"):
        trained(_with(own), payer)
    assert not payer.charges


class Made(Items):
    """Items that a generator made; reading them draws nothing."""

    def __init__(self) -> None:
        super().__init__(lambda: None)
        self._fill()

    def _fill(self) -> None:
        self.noise = OWN.normal(size=3)


def test_a_generator_that_only_made_the_data_is_no_matter() -> None:
    payer = FakePayer()
    trained(Made(), payer, like=Made())
    assert payer.charges


class Lazy(Items):
    """Items that make a generator when the first one is read."""

    def __init__(self) -> None:
        super().__init__(self.draw)
        self.own: np.random.Generator | None = None

    def draw(self) -> None:
        if self.own is None:
            self.own = np.random.default_rng(0)
        self.own.random()


def test_generators_that_items_make_are_refused_once_one_was_read() -> None:
    """Before the charge, if public examples are read by the same code."""
    payer = FakePayer()
    with pytest.raises(Refused, match=r"^like\.own is a generator for all items"):
        trained(Lazy(), payer, like=Lazy())
    assert not payer.charges
    with pytest.raises(Refused, match=r"^train_set\.own is a generator for all items"):
        trained(Lazy(), payer)


class Counting(Items):
    """Items that change a number; ``change`` gets the number and returns the next."""

    def __init__(self, change: Callable[[float], float]) -> None:
        super().__init__(self.count)
        self.change, self.number, self.inner = change, 0.0, [0.0]

    def count(self) -> None:
        self.number, self.inner = self.change(self.number), [self.change(self.inner[0])]


@pytest.mark.parametrize(
    "change", [lambda n: n + 1, lambda n: 1 - n, lambda n: not n], ids=["count", "turn", "not"]
)
def test_numbers_that_each_item_changes_are_refused(change: Callable[[float], float]) -> None:
    payer = FakePayer()
    with pytest.raises(Refused, match=r"^like\.\S+ changes whenever an item is read"):
        trained(Counting(change), payer, like=Counting(change))
    assert not payer.charges


COUNTS: dict[str, Callable[[], tuple[Any, Callable[[Any], object]]]] = {  # Any: a state of items
    "a tensor": lambda: (torch.zeros(1), lambda state: state.add_(1)),
    "an array": lambda: (np.zeros(2), lambda state: state.__iadd__(1)),
    "a list": lambda: ([], lambda state: state.append("a")),
    "a dictionary": lambda: ({}, lambda state: state.update({f"{len(state)}": "a"})),
    "a set": lambda: (set(), lambda state: state.add(f"{len(state)}")),
    "a queue": lambda: (deque([0.0, 1.0]), lambda state: state.rotate(1)),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_in_collections_and_tensors_are_refused(name: str) -> None:
    def made() -> Items:
        state, change = COUNTS[name]()
        return Items(lambda: change(state))

    payer = FakePayer()
    with pytest.raises(Refused, match=r"^like\S+ changes whenever an item is read"):
        trained(made(), payer, like=made())
    assert not payer.charges


def test_items_may_fill_a_cache() -> None:
    cache = dict[str, float]()
    payer = FakePayer()
    made = Items(lambda: cache.setdefault("a", 1.0))
    trained(made, payer, like=made)
    assert payer.charges


@pytest.mark.parametrize(
    "change", [lambda _: 1.0, lambda _: random.random(), lambda _: torch.rand(()).item()]
)
def test_numbers_that_each_item_sets_anew_may_stay(change: Callable[[float], float]) -> None:
    payer = FakePayer()
    trained(Counting(change), payer, like=Counting(change))
    assert payer.charges


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
