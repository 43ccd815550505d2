"""Units of several examples give what a plain loop over units gives, whatever the layers are."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import accumulate, pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from discreet import Unit
from discreet.errors import InvalidArgument, Refused
from discreet.train import (
    Clipping,
    Contribution,
    Flat,
    UnitOfExample,
    check,
    clipped_sum,
    fit,
    one_by_one,
)
from discreet.train._checks import _model_check
from discreet.train._clipped_sums import _engine
from discreet.train._clipped_sums import _unit_of_example as module
from tests.train import steps
from tests.train.kit import EXACT, SINGLE, Case, double, places, same
from tests.train.test_rules import CASES, CLIPPINGS, CONVOLUTIONS, IN_SINGLE, Bare, Reused, stacks


def counted(examples: int) -> list[int]:
    """Units of different sizes that have this many examples together."""
    return [2, 1, examples - 3] if examples > 3 else [examples]


def together(case: Case, counts: Sequence[int], clipping: Clipping) -> Contribution:
    losses, units = partial(case.losses, case.data), UnitOfExample.of(counts)
    return clipped_sum(case.model, losses, len(case.data), clipping, units=units)


def looped(case: Case, counts: Sequence[int], clipping: Clipping) -> Contribution:
    spans = [*pairwise(accumulate(counts, initial=0))]

    def of(unit: int) -> Tensor:
        return torch.cat([case.of(number) for number in range(*spans[unit])]).sum()

    return one_by_one(case.model, of, len(spans), clipping)


def agrees(
    case: Case, counts: Sequence[int], clipping: Clipping | None = None, within: float = EXACT
) -> None:
    """Engine and loop give the same, and some but not all units are clipped."""
    middle = float(looped(case, counts, Flat(1.0)).squared_norms.sqrt().median())
    limit = clipping or Flat(middle or 1.0)
    same(together(case, counts, limit), looped(case, counts, limit), within)


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("name", CASES)
def test_a_layer_agrees_with_a_loop(name: str) -> None:
    torch.manual_seed(0)
    case = CASES[name]()
    agrees(case, counted(len(case.data)), within=SINGLE if name in IN_SINGLE else EXACT)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions_agree_with_a_loop(dimensions: int, groups: int) -> None:
    torch.manual_seed(0)
    for kind in CONVOLUTIONS[dimensions]:
        made = kind(4, 6, 3, padding=1, groups=groups)
        agrees(double(made, 6, 4, *(5, 4, 3)[:dimensions]), [1, 3, 2])


@pytest.mark.parametrize("clipping", CLIPPINGS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize(
    "make", [lambda: double(Bare(), 5, 4, 4), lambda: places(Reused(), 9, 5, 4)]
)
def test_every_clipping_agrees_with_a_loop(clipping: Flat, make: Callable[[], Case]) -> None:
    torch.manual_seed(0)
    agrees(make(), [2, 1, 2], clipping)


@given(case=stacks(), clipping=st.sampled_from(CLIPPINGS[:2]), data=st.data())
@settings(max_examples=40)
def test_random_stacks_agree_with_a_loop(case: Case, clipping: Flat, data: st.DataObject) -> None:
    cuts = data.draw(st.sets(st.integers(1, len(case.data))))
    bounds = sorted({0, len(case.data), *cuts})
    agrees(case, [stop - start for start, stop in pairwise(bounds)], clipping)


SINGLES = {name: CASES[name] for name in ("convolution, in place", "bare parameters", "bags, mean")}
SINGLES["linear, ghost"] = lambda: double(nn.Linear(64, 63), 5, 2, 64)


@pytest.mark.parametrize("name", SINGLES)
def test_single_precision_agrees_with_a_loop(name: str) -> None:
    torch.manual_seed(0)
    exact = SINGLES[name]()
    data = exact.data.float() if exact.data.is_floating_point() else exact.data
    agrees(Case(exact.model.float(), data), [2, 3], within=SINGLE)


@pytest.mark.parametrize("name", ["convolution, ghost", "bare parameters", "weight norm"])
def test_the_size_of_dense_parts_changes_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in (_engine, module):
        monkeypatch.setattr(place, "AT_ONCE", 1)
    torch.manual_seed(0)
    agrees(CASES[name](), [1, 3, 1])


LAYERS: dict[str, Callable[[], nn.Module]] = {
    "linear": lambda: nn.Linear(300, 20, bias=False),
    "outer products over time": lambda: nn.Sequential(
        nn.Unflatten(1, (3, 100)), nn.Linear(100, 20, bias=False)
    ),
    "written out": lambda: nn.LayerNorm(300, bias=False),
    "convolution": lambda: nn.Sequential(nn.Unflatten(1, (3, 100)), nn.Conv1d(3, 20, 5)),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("seed", range(5))
def test_examples_that_cancel_are_clipped_by_what_is_left(name: str, seed: int) -> None:
    torch.manual_seed(seed)
    row = 1e3 * torch.randn(1, 300)
    data = torch.cat([row, row * (1 + 3e-7)])
    model, sign = LAYERS[name](), torch.tensor([1e4, -1e4])
    found = clipped_sum(
        model,
        lambda: model(data).flatten(1).square().sum(1) * sign,
        2,
        Flat(1e-3),
        units=UnitOfExample.of([2]),
    )
    flat = torch.cat([each.double().flatten() for each in found.sums])
    assert float(flat.norm()) <= 1e-3


@pytest.mark.parametrize("name", LAYERS)
def test_removing_a_unit_moves_the_sum_by_at_most_the_norm(name: str) -> None:
    torch.manual_seed(0)
    model, data, counts = LAYERS[name](), 30 * torch.randn(9, 300), [4, 1, 3, 1]

    def summed(kept: list[int]) -> Tensor:
        rows = torch.arange(4).repeat_interleave(torch.tensor(counts))
        part = data[torch.isin(rows, torch.tensor(kept))]
        found = clipped_sum(
            model,
            lambda: model(part).flatten(1).square().sum(1),
            len(part),
            Flat(0.5),
            units=UnitOfExample.of([counts[unit] for unit in kept]),
        )
        return torch.cat([each.double().flatten() for each in found.sums])

    whole = summed([0, 1, 2, 3])
    for gone in range(4):
        moved = whole - summed([unit for unit in range(4) if unit != gone])
        assert 0.499 <= float(moved.norm()) <= 0.5 * (1 + 1e-5)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("size", [1, 300])
def test_a_unit_of_many_examples_changes_no_other(name: str, size: int) -> None:
    """By no more than floats are rounded by: the norm that clips allows for round-off, which must
    not be that of the longest unit. This one adds nothing, since its losses are not finite."""
    torch.manual_seed(0)
    model, data = LAYERS[name](), torch.randn(9 + size, 300)

    def summed(rows: int, counts: list[int]) -> Tensor:
        weights = torch.where(torch.arange(rows) < 9, 1.0, float("nan"))
        found = clipped_sum(
            model,
            lambda: model(data[:rows]).flatten(1).square().sum(1) * weights,
            rows,
            Flat(0.1),
            units=UnitOfExample.of(counts),
        )
        return torch.cat([each.double().flatten() for each in found.sums])

    plain = summed(9, [1, 2, 1, 3, 2])
    moved = summed(9 + size, [1, 2, 1, 3, 2, size]) - plain
    assert float(moved.norm()) <= 2e-6 * float(plain.norm())


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", LAYERS)
def test_a_unit_with_an_example_that_is_not_finite_counts_as_zero(name: str, bad: float) -> None:
    torch.manual_seed(0)
    model, data = LAYERS[name](), torch.randn(5, 300)
    spoiled = data.clone()
    spoiled[2, 7] = bad

    def summed(part: Tensor, counts: list[int]) -> Contribution:
        return clipped_sum(
            model,
            lambda: model(part).flatten(1).square().sum(1) * (part.abs().amax(1) + 1),
            len(part),
            Flat(0.1),
            units=UnitOfExample.of(counts),
        )

    found, rest = summed(spoiled, [1, 3, 1]), summed(data[[0, 4]], [1, 1])
    for one, other in zip(found.sums, rest.sums, strict=True):
        torch.testing.assert_close(one, other)
    assert found.squared_norms.isfinite().tolist() == [[True, False, True]]


@pytest.mark.parametrize("wrong", [[], [0, 5], [2.5, 2.5], [[5]], [-1, 6]])
def test_units_have_examples(wrong: list[int]) -> None:
    with pytest.raises(InvalidArgument, match="counts"):
        UnitOfExample.of(wrong)


def test_units_are_of_all_examples() -> None:
    with pytest.raises(InvalidArgument, match="as many examples"):
        together(double(nn.Linear(4, 3), 5, 4), [2, 2], Flat(1.0))


@pytest.mark.parametrize("planted", [1.0, 1.1])
def test_a_check_looks_at_units_too(planted: float, monkeypatch: pytest.MonkeyPatch) -> None:
    case = double(nn.Linear(4, 3), 5, 4)
    summed = UnitOfExample.summed
    monkeypatch.setattr(UnitOfExample, "summed", lambda self, rows: planted * summed(self, rows))
    check(case.model, case.losses, case.data)
    told = "gradients of one unit's examples together differ"
    with pytest.raises(Refused, match=told) if planted > 1 else nullcontext():
        check(case.model, case.losses, case.data, by_unit=True)


@pytest.mark.parametrize("by_unit", [False, True])
def test_a_run_by_units_is_checked_by_units(by_unit: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(_model_check, "compare", lambda *_, by_unit, **__: asked.append(by_unit))
    model, source = steps.linear(), steps.of_persons() if by_unit else steps.data()
    by_people = {"unit": Unit("person"), "records": 12, "batch": 4}
    made = steps.short(**by_people if by_unit else {})
    with steps.known(model, source, made) as training:
        training.step(next(training.batches()))
    fit(
        model,
        steps.sgd(model),
        source,
        made,
        losses=lambda model, part: steps.losses_of(model)(part),
        payer=steps.book(made.unit),
    )
    assert asked == [by_unit] * 2
