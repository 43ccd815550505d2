"""Writes that leave PyTorch's versions, a sum and a norm as they were, are found everywhere."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from discreet.errors import Refused
from discreet.train import ExactGaussian, FloatGaussian, run
from discreet.train._state._attributes import content_of
from discreet.train._state._checksums import checksums
from tests.mechanisms.kit import FakePayer
from tests.train.steps import data, short
from tests.train.unfollowed import unfollowed

Write = Callable[[Tensor], object]
KINDS = (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int16, torch.bool)
SIZES = (
    2,
    3,
    4095,
    4096,
    4097,
    8192,
    8195,
    40_000,
    300_001,
)  # in one row, in several, in two levels


def moved(bits: Tensor, first: int, second: int) -> Tensor:
    """The same, with two entries in each other's place."""
    order = torch.arange(len(bits))
    order[[first, second]] = order[[second, first]]
    return bits[order]


def negated(bits: Tensor, *places: int) -> Tensor:
    """The same, with these entries negated; of booleans the opposite."""
    found = bits.clone()
    some = found[[*places]]
    found[[*places]] = ~some if bits.dtype is torch.bool else -some
    return found


def values(kind: torch.dtype, size: int) -> Tensor:
    """Numbers of both signs, none 0; the first two and the last differ."""
    found = torch.randn(size, generator=torch.Generator().manual_seed(size)) * 1000 + 0.5
    found[0], found[-1] = -3, 7
    return (found > 0) if kind is torch.bool else found.to(kind)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("size", SIZES)
def test_entries_that_change_places_or_signs_have_other_checksums(
    kind: torch.dtype, size: int
) -> None:
    plain = values(kind, size)
    row = plain.numel() // 2 if size < 4096 else 4096
    changed = [
        moved(plain, 0, size - 1),
        negated(plain, 0),
        negated(plain, 0, size - 1),
        negated(plain, *range(0, size, max(1, row))),
        plain.roll(row) if size > 4097 else moved(plain, 0, size - 1),
        plain.flip(0),
    ]
    (before,) = checksums([plain])
    assert checksums([plain.clone()]) == [before]
    assert before not in [checksums([one])[0] for one in changed if not one.equal(plain)]
    assert not changed[0].equal(plain)


def nested() -> list[Tensor]:
    """A nested tensor in each layout."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch calls them a prototype
        parts = [torch.ones(2), torch.ones(3)]
        return [
            torch.nested.nested_tensor(parts, layout=layout)
            for layout in (torch.strided, torch.jagged)
        ]


def test_tensors_have_checksums_by_their_own_bits() -> None:
    """Among many, of several types, devices and layouts; empty ones too."""
    generator = torch.Generator().manual_seed(0)
    some = [torch.randn(size, generator=generator) for size in (0, 1, 5, 4096, 4097, 0, 7)]
    some += [torch.arange(6).view(2, 3).t(), torch.randn(3, dtype=torch.complex64).conj()]
    some += [torch.eye(3).to_sparse(), torch.randn(9)[2:4]]
    some += [torch.randn(9000, 2)[:, 0], torch.zeros(1).expand(100, 100), *nested()]
    some += [torch.zeros(3, device="meta"), torch.tensor(True)]
    before = checksums(some)
    assert checksums(some) == before
    assert [content_of(one, set()) for one in some] == [content_of(one, set()) for one in some]
    for place, each in enumerate(some):
        if each.numel() and each.layout is torch.strided and not (each.is_meta or each.is_nested):
            other = ~each if each.dtype is torch.bool else each + 1
            now = checksums([*some[:place], other, *some[place + 1 :]])
            assert [n for n, one in enumerate(now) if one != before[n]] == [place]


class Holder(nn.Module):
    """Two weights of each kind that a model has."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.frozen = nn.Linear(3, 2), nn.Linear(3, 2).requires_grad_(False)
        self.register_buffer("table", torch.randn(4))
        self.note, self.counts = torch.randn(4), {"of": torch.tensor([1, 2, 3])}
        self.part, self.few = torch.randn(6)[:2], torch.diag(torch.arange(3.0)).to_sparse()
        self.row = nn.Parameter(torch.randn(6)[:2], requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = (self.layer(x) + self.frozen(x)).sum(1) + self.get_buffer("table").sum()
        return found


def momentum(_: Holder, optimizer: torch.optim.Optimizer) -> Tensor:
    found: Tensor = next(iter(optimizer.state.values()))["exp_avg"]
    return found


def around(part: Tensor) -> Tensor:
    """The memory behind a part of it."""
    base: Any = torch._C.TensorBase  # Any: its types want another source
    whole: Tensor = base.set_(torch.empty(0), part.untyped_storage())
    return whole[len(part) :]


PLACES: dict[str, Callable[[Any, Any], Tensor]] = {  # Any: `Holder`, and an optimizer
    "a weight": lambda m, _: m.layer.weight,
    "a frozen weight": lambda m, _: m.frozen.weight,
    "a buffer": lambda m, _: m.table,
    "an attribute": lambda m, _: m.note,
    "a number in an attribute": lambda m, _: m.counts["of"],
    "the memory around an attribute": lambda m, _: around(m.part),
    "the memory around a weight": lambda m, _: around(m.row),
    "a sparse attribute": lambda m, _: m.few._values(),
    "a momentum": momentum,
    "a count of steps": lambda _, o: next(iter(o.state.values()))["step"],
    "a setting": lambda _, o: o.param_groups[0]["note"],
}
WRITES: dict[str, Write] = {
    "negated": lambda one: one.neg_(),
    "in other places": lambda one: one.view(-1).copy_(one.view(-1).roll(1) - int(one.dim() == 0)),
}


@pytest.mark.parametrize("noise", [FloatGaussian(), ExactGaussian(16)], ids=["plain", "exact"])
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("place", PLACES)
def test_silent_writes_are_refused(place: str, write: str, noise: Any) -> None:
    """Once, in a step whose losses count as compared, where nothing follows the write."""
    model: Any = Holder()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    optimizer.param_groups[0]["note"] = torch.tensor([1.0, -2.0])
    due = list[Write]()

    def losses(part: Any) -> Tensor:  # Any: a microbatch
        found: Tensor = (model(part.x) - part.y) ** 2
        if due:
            where = PLACES[place](model, optimizer).data
            unfollowed(lambda: due.pop()(where))
        return found

    opened = run(model, optimizer, data(), short(noise=noise), losses=losses, payer=FakePayer())
    with opened as training:
        tickets = training.batches()
        training.step(next(tickets))
        due.append(WRITES[write])
        with pytest.raises(Refused, match=r"was written|wrote .* of the optimizer"):
            training.step(next(tickets))
