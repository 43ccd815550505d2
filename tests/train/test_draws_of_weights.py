"""Random numbers in weights: each example has its own where weights were repeated for examples.

Whatever the first step would refuse is refused before the charge.
"""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor, nn

import discreet as dp
from discreet.errors import Refused
from discreet.train import Flat, clipped_sum, one_by_one
from discreet.train._checks._microbatch import MicrobatchSize
from discreet.train._checks._model_check import ModelCheck
from tests.train.kit import same
from tests.train.layers import WIDTH, of
from tests.train.recorded import Recorded

NUMBER, STEPS = 5, 3


class Queries(nn.Module):
    """Learned queries, positions and states, and layers that take them."""

    def __init__(self, use: "Use") -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 1)
        self.query = nn.Parameter(torch.randn(1, STEPS, WIDTH))
        self.place = nn.Parameter(torch.randn(40, STEPS, WIDTH))
        self.norm, self.table = nn.LayerNorm(WIDTH), nn.Embedding(STEPS, WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
        self.double()
        self.use = use

    def forward(self, data: Tensor) -> Tensor:
        found: Tensor = self.out(self.use(self, data))
        return found.square().flatten(1).mean(1)


Use = Callable[[Queries, Tensor], Tensor]
Chance = Callable[[Tensor], Tensor]


def of_paths(one: Tensor) -> Tensor:
    """As in stochastic depth."""
    kept = one.new_empty(len(one), *(1,) * (one.dim() - 1)).bernoulli_(0.8)
    return one * kept / 0.8


CHANCES: dict[str, Chance] = {
    "dropout": lambda one: F.dropout(one, 0.4),
    "dropout of channels": lambda one: F.dropout1d(one, 0.4),
    "bernoulli": lambda one: one * torch.bernoulli(torch.full_like(one, 0.6)),
    "in place": lambda one: one * torch.empty_like(one).bernoulli_(0.6),
    "of paths": of_paths,
    "noise like it": lambda one: one + torch.randn_like(one),
    "noise of its size": lambda one: one + torch.randn(one.shape, dtype=one.dtype),
}
GIVEN: dict[str, Use] = {
    "data": lambda _, x: x[:, None].expand(-1, STEPS, -1),
    "layers of data": lambda m, x: m.layer(x)[:, None].expand(-1, STEPS, -1),
    "expanded": lambda m, x: m.query.expand(len(x), -1, -1),
    "repeated": lambda m, x: m.query.repeat(len(x), 1, 1),
    "normalised": lambda m, x: m.norm(m.query.expand(len(x), -1, -1)),
    "layers": lambda m, x: m.layer(m.norm(m.query.expand(len(x), -1, -1))).relu(),
    "looked up": lambda m, x: m.table(torch.arange(STEPS).expand(len(x), -1)),
    "from a table": lambda m, x: m.table.weight.unsqueeze(0).repeat(len(x), 1, 1),
    "attention": lambda m, x: m.attention(*[m.query.expand(len(x), -1, -1)] * 3)[0],
}
COMMON: dict[str, Use] = {
    "once": lambda m, _: m.query,
    "once, normalised": lambda m, _: m.norm(m.query),
    "the table": lambda m, _: m.table.weight[None],
}
BY_PLACE: dict[str, Use] = {
    "places": lambda m, x: m.place[: len(x)],
    "looked up by place": lambda m, x: m.place[torch.arange(len(x))],
    "flipped": lambda m, x: m.place.flip(0)[: len(x)],
}


def drawn_again(one: Tensor) -> Tensor:
    """The same numbers with those of the next example."""
    mask = F.dropout(one, 0.4)
    return mask * mask.flip(0)


USES: dict[str, Callable[[Queries, Tensor, Tensor], Tensor]] = {
    "added": lambda m, x, given: m.layer(x)[:, None] + given,
    "multiplied": lambda m, x, given: x[:, None] * m.layer(given),
    "joined": lambda m, x, given: torch.cat([m.layer(x)[:, None], given], 1),
    "queries": lambda m, x, given: m.attention(given, x[:, None], x[:, None])[0],
    "keys": lambda m, x, given: m.attention(x[:, None], given.expand(len(x), -1, -1), given)[0],
    "products": lambda m, x, given: given @ m.layer(x)[:, :, None] * given,
    "a letter each": lambda m, x, given: (
        torch.einsum("bd,btd->bt", m.layer(x), given)[:, :, None] * given
    ),
}


def charged(model: nn.Module, losses: Callable[[Tensor], Tensor], records: int) -> int:
    """The number of charges of a run, all of which are followed by a step, or raise."""
    ledger = dp.Ledger.in_memory(unit=dp.Unit.ROW, limit=dp.Limit(epsilon=50, delta=1e-5))
    planned = dp.train.plan(multiplier=1, delta=1e-5, records=records, batch=records, steps=1)
    try:
        report = dp.train.fit(
            model,
            torch.optim.SGD(model.parameters(), lr=0.1),
            {"x": of(records, WIDTH)},
            planned,
            losses=lambda _, part: losses(part.x),
            payer=ledger,
            name="a",
        )
    except Refused:
        assert ledger.spent().charges == 0
        return 0
    assert report.taken == 1
    return 1


def is_admitted(model: nn.Module) -> bool:
    """Whether the checks before the charge admit a model; then no step refuses it."""
    data = {"x": of(9, WIDTH)}
    check = ModelCheck(
        model,
        lambda part: model(part.x),
        Flat(1.0),
        data,
        MicrobatchSize(),
        by_unit=False,
        rows=9,
        most_rows=9,
    )
    try:
        check.first()
    except Refused:
        return False
    for number in (1, 4):
        some = of(number, WIDTH)
        clipped_sum(model, lambda: model(some), number, Flat(1.0), batch=some)  # noqa: B023
    return True


def agrees(model: nn.Module) -> None:
    """Engine and loop give the same, where each example has its own numbers."""
    data, numbers = of(NUMBER, WIDTH), Recorded(NUMBER)
    with numbers:
        model(data)

    def alone(place: int) -> Tensor:
        with numbers.again(place):
            found: Tensor = model(data[place : place + 1])
        return found

    norms = one_by_one(model, alone, NUMBER, Flat(1.0)).squared_norms.sqrt()
    clipping = Flat(float(norms.median()))
    wanted = one_by_one(model, alone, NUMBER, clipping)
    with numbers.again():
        found = clipped_sum(model, lambda: model(data), NUMBER, clipping, batch=data)
    same(found, wanted)


@pytest.mark.parametrize(
    ("chance", "given"),
    [("dropout", given) for given in GIVEN]
    + [
        (chance, given)
        for chance in CHANCES
        for given in ("data", "repeated")
        if chance != "dropout"
    ],
)
def test_each_example_has_its_own_numbers(chance: str, given: str) -> None:
    def use(m: Queries, x: Tensor) -> Tensor:
        return USES["added"](m, x, CHANCES[chance](GIVEN[given](m, x)))

    agrees(Queries(use))


@pytest.mark.parametrize("given", ["expanded", "layers"])
@pytest.mark.parametrize("use", USES)
def test_uses_of_weights_with_numbers_agree_with_a_loop(use: str, given: str) -> None:
    def made(m: Queries, x: Tensor) -> Tensor:
        return USES[use](m, x, F.dropout(GIVEN[given](m, x), 0.4))

    agrees(Queries(made))


EVERY = GIVEN | COMMON | BY_PLACE


@pytest.mark.parametrize(
    ("chance", "given"),
    [(chance, given) for chance in ("dropout", "shifted") for given in EVERY]
    + [
        (chance, given)
        for chance in ("in place", "noise of its size")
        for given in ("expanded", "once", "places")
    ],
)
def test_no_step_refuses_what_was_admitted(chance: str, given: str) -> None:
    drawn = (CHANCES | {"shifted": drawn_again})[chance]

    def use(m: Queries, x: Tensor) -> Tensor:
        return USES["added"](m, x, drawn(EVERY[given](m, x)))

    is_right = chance != "shifted" and given not in BY_PLACE
    assert is_admitted(Queries(use)) or not is_right
    if given in BY_PLACE or (chance == "shifted" and given not in COMMON):
        assert not is_admitted(Queries(use))
