"""Constants that differ by place in the batch don't meet rows of examples.

If an example leaves the batch, those behind it move. So the sum must not depend on their places,
also where only rare values show it. The law: without its first example, a batch has the sum of the
others, each clipped as before.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor

from discreet.errors import Refused
from discreet.train import Flat, check, clipped_sum, one_by_one
from tests.train.kit import same
from tests.train.layers import WIDTH, Layers, Use, of, put_back, summed


def _written(number: int) -> Tensor:
    found = torch.zeros(number, dtype=torch.float64)
    found[1:] = 1
    return found


MAKE: dict[str, Callable[[int], Tensor]] = {
    "counted": lambda n: torch.arange(n).double(),
    "counted from elsewhere": lambda n: torch.arange(3, n + 3).double(),
    "levels": lambda n: torch.linspace(0, 1, n, dtype=torch.float64),
    "counted by ones": lambda n: torch.ones(n, dtype=torch.float64).cumsum(0),
    "a list": lambda n: torch.tensor([float(k) for k in range(n)], dtype=torch.float64),
    "a list of numbers": lambda n: torch.stack([torch.tensor(1.0 + k) for k in range(n)]).double(),
    "written by place": _written,
    "a diagonal": lambda n: torch.eye(n, dtype=torch.float64)[:, 0],
    "a triangle": lambda n: torch.ones(n, n, dtype=torch.float64).tril().sum(1),
    "a mask": lambda n: (torch.arange(n) > 0).double(),
    "sorted": lambda n: torch.arange(n).flip(0).sort().values.double(),
    "a weight": lambda n: torch.arange(n).double() * 1e-3,
}
SHARED_DRAWS: dict[str, Callable[[int], Tensor]] = {  # by several examples
    "draws in pairs": lambda n: torch.rand(n, dtype=torch.float64)[torch.arange(n) // 2],
    "draws by a list": lambda n: torch.rand(n, dtype=torch.float64)[[k // 2 for k in range(n)]],
    "draws, repeated": lambda n: torch.rand(-(-n // 2), dtype=torch.float64).repeat(2)[:n],
    "draws, each repeated": lambda n: torch.rand(-(-n // 2), dtype=torch.float64).repeat_interleave(
        2
    )[:n],
}
ALIKE: dict[str, Callable[[int], Tensor]] = {
    "zeros": lambda n: torch.zeros(n, dtype=torch.float64),
    "ones, doubled": lambda n: torch.ones(n, dtype=torch.float64).mul_(2),
    "full": lambda n: torch.full((n,), 0.5, dtype=torch.float64),
    "expanded": lambda n: torch.tensor(0.5, dtype=torch.float64).expand(n),
    "repeated": lambda n: torch.tensor([0.5], dtype=torch.float64).repeat(n),
    "a mask": lambda n: (torch.zeros(n) == 0).double(),
    "draws": lambda n: torch.rand(n, dtype=torch.float64),
    "paths that are dropped": lambda n: (torch.rand(n, dtype=torch.float64) + 0.5).floor_() / 0.5,
    "draws in place": lambda n: torch.empty(n, dtype=torch.float64).bernoulli_(0.5),
    "masks that are dropped": lambda n: F.dropout(torch.ones(n, dtype=torch.float64), 0.5),
    "Gumbel's noise": lambda n: -torch.empty(n, dtype=torch.float64).exponential_().log(),
}


def excess(x: Tensor) -> Tensor:
    """Zeros for ordinary values."""
    return F.relu(x - 1e6)


Combine = Callable[[Tensor, Tensor], Tensor]  # rows (row, WIDTH), and a constant (row,)
COMBINE: dict[str, Combine] = {
    "a product": lambda x, c: excess(x) * c[:, None],
    "a sum": lambda x, c: excess(x) + c[:, None],
    "in place": lambda x, c: excess(x).clone().mul_(c[:, None]),
    "where": lambda x, c: torch.where(c[:, None] % 2 > 0, excess(x), 0.0),
    "a filled mask": lambda x, c: excess(x).masked_fill(c[:, None] % 2 > 0, 1.0),
    "joined": lambda x, c: torch.cat([excess(x), c[:, None]], 1),
    "stacked": lambda x, c: torch.stack([excess(x)[:, 0], c], 1),
    "a product of matrices": lambda x, c: (
        excess(x)[:, None] @ c[:, None, None].expand(-1, WIDTH, 2)
    )[:, 0],
    "einsum": lambda x, c: torch.einsum("ij,i->ij", excess(x), c),
    "written": lambda x, c: _into(excess(x), c),
    "clamped": lambda x, c: excess(x).clamp(max=c[:, None]),
    "a loss": lambda x, c: F.mse_loss(excess(x)[:, 0], c, reduction="none")[:, None],
    "labels": lambda x, c: F.cross_entropy(excess(x), _label(c), reduction="none")[:, None],
}


def _label(constant: Tensor) -> Tensor:
    return (1001 * constant).long() % 2


def _into(rows: Tensor, constant: Tensor) -> Tensor:
    found = rows.clone()
    found[:, 0] = constant
    return found


def of_all_rows(combine: Combine, make: Callable[[int], Tensor]) -> Use:
    return lambda m, x: summed(m.layer(x)) * (1 + combine(x, make(len(x))).sum(1))


def of_picked_rows(combine: Combine, make: Callable[[int], Tensor]) -> Use:
    def use(m: Layers, x: Tensor) -> Tensor:
        (places,) = torch.where(x[:, 0] > -9)
        picked = x[places]
        found = m.layer(picked) * (1 + combine(picked, make(len(picked))).sum(1, keepdim=True))
        return summed(put_back(x, places, found))

    return use


WAYS = {"all": of_all_rows, "picked": of_picked_rows}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", COMBINE)
def test_no_constant_differs_by_place(name: str, way: str) -> None:
    for make in MAKE.values():
        model, data = Layers(WAYS[way](COMBINE[name], make)).double(), of(5, WIDTH)
        with pytest.raises(Refused, match="by place"):
            clipped_sum(model, lambda: model(data), 5, Flat(1.0), batch=data)  # noqa: B023


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["a product", "a sum", "in place", "joined", "einsum"])
@pytest.mark.parametrize("made", SHARED_DRAWS)
def test_no_draw_is_shared_by_place(made: str, name: str, way: str) -> None:
    """If an example leaves the batch, others would share."""
    use = WAYS[way](COMBINE[name], SHARED_DRAWS[made])
    model, data = Layers(use).double(), of(5, WIDTH)
    with pytest.raises(Refused, match="by place"):
        clipped_sum(model, lambda: model(data), 5, Flat(1.0), batch=data)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", COMBINE)
def test_constants_that_are_alike_train(name: str, way: str) -> None:
    for make in ALIKE.values():
        model, data = Layers(WAYS[way](COMBINE[name], make)).double(), of(5, WIDTH)
        clipped_sum(model, lambda: model(data), 5, Flat(1.0), batch=data)  # noqa: B023


Write = Callable[[Tensor, Tensor], Tensor]  # rows (row, WIDTH), and a mask of some (row,)


def set_in_place(rows: Tensor, index: Any, factor: float = 0.0) -> Tensor:  # Any: an index
    found = rows.clone()
    found[index] = found[index] * factor if factor else 0.0
    return found


def alone(rows: Tensor, index: Tensor) -> Tensor:
    """These rows, and zeros in the places of all others."""
    found = torch.zeros(len(rows), WIDTH, dtype=rows.dtype)
    found[index] = rows[index]
    return found


def zeros(index: Tensor) -> Tensor:
    return torch.zeros(len(index), WIDTH, dtype=torch.float64)


def places(mask: Tensor) -> Tensor:
    return mask.nonzero()[:, 0]


WRITE: dict[str, Write] = {
    "a mask": set_in_place,
    "an index": lambda x, mask: set_in_place(x, places(mask)),
    "an index and others": lambda x, mask: set_in_place(x, (places(mask), slice(1, None))),
    "own rows, longer": lambda x, mask: set_in_place(x, mask, 30.0),
    "index_put": lambda x, mask: x.index_put((mask,), torch.zeros((), dtype=torch.float64)),
    "added": lambda x, mask: x.index_put(
        (mask,), torch.tensor(30.0, dtype=torch.float64), accumulate=True
    ),
    "index_copy": lambda x, mask: x.index_copy(0, places(mask), zeros(places(mask))),
    "own values": lambda x, mask: x.index_copy(0, places(mask), x[places(mask)].detach()),
    "index_add": lambda x, mask: x.index_add(0, places(mask), zeros(places(mask)) + 30),
    "put back": lambda x, mask: alone(x, places(mask)),
}
OWNERS: dict[str, Callable[[Layers, Tensor, Write, Tensor], Tensor]] = {
    "data": lambda m, x, write, mask: summed(m.layer(write(x, mask))),
    "losses": lambda m, x, write, mask: write(m.layer(x), mask).square().sum(1),
    "a weight, repeated": lambda m, x, write, mask: summed(
        m.layer(x) * write(m.scale.expand(len(x), -1).clone(), mask)
    ),
    "constants": lambda m, x, write, mask: summed(
        m.layer(x) * write(torch.ones(len(x), WIDTH, dtype=x.dtype), mask)
    ),
}


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("name", WRITE)
def test_nothing_is_written_by_place(name: str, owner: str) -> None:
    """No pattern that misses the examples that a check compares."""

    def use(m: Layers, x: Tensor) -> Tensor:
        return OWNERS[owner](m, x, WRITE[name], torch.arange(len(x)) % 7 == 5)

    model, data = Layers(use).double(), of(8, WIDTH)
    if (name, owner) == ("own values", "constants"):  # these are equal, and have no gradients
        check(model, model, data)
        return
    with pytest.raises(Refused, match=r"by place|rows of several examples|unknown places"):
        clipped_sum(model, lambda: model(data), 8, Flat(1.0), batch=data)


ELSEWHERE = torch.ones(WIDTH, dtype=torch.float64)
VALUE: dict[str, Callable[[Layers, Tensor], float | Tensor]] = {  # of no example
    "a number": lambda m, x: 0.0,
    "a constant": lambda m, x: torch.zeros(WIDTH, dtype=x.dtype),
    "a constant of elsewhere": lambda m, x: ELSEWHERE,
    "computed from one of elsewhere": lambda m, x: ELSEWHERE * 2,
    "rows of it": lambda m, x: ELSEWHERE.repeat(1, 1),
    "a weight": lambda m, x: m.scale,
    "drawn": lambda m, x: torch.rand(WIDTH, dtype=x.dtype),
}
WRITE_SLICE: dict[str, Callable[[Tensor, Any], Tensor]] = {  # Any: numbers, or a tensor
    "a slice": lambda x, value: _changed(x, slice(5, 6), value),
    "to the end": lambda x, value: _changed(x, slice(5, None), value),
    "every other": lambda x, value: _changed(x, slice(None, None, 2), value),
    "a column": lambda x, value: _changed(x, (slice(5, 6), slice(0, WIDTH)), value),
    "a row": lambda x, value: _changed(x, 5, value),
}


def _changed(x: Tensor, index: Any, value: Any) -> Tensor:  # Any: as above
    found = x.clone()
    found[index] = value
    return found


@pytest.mark.parametrize("name", VALUE)
def test_nothing_of_no_example_is_written_to_a_slice(name: str) -> None:
    for write in WRITE_SLICE.values():

        def use(m: Layers, x: Tensor) -> Tensor:
            return summed(m.layer(write(x, VALUE[name](m, x))))  # noqa: B023

        model, data = Layers(use).double(), of(8, WIDTH)
        with pytest.raises(Refused, match=r"by place|in place"):
            clipped_sum(model, lambda: model(data), 8, Flat(1.0), batch=data)  # noqa: B023


def test_no_memory_of_a_weight_is_exchanged() -> None:
    """Its version stays, and with it what was known of its rows."""

    def use(m: Layers, x: Tensor) -> Tensor:
        repeated = m.scale.expand(len(x), -1) * 1.0
        repeated.data = torch.ones_like(repeated) + (torch.arange(len(x)) % 7 == 5)[:, None]
        return summed(m.layer(x) * repeated)

    model, data = Layers(use).double(), of(8, WIDTH)
    with pytest.raises(Refused, match=r"scale was changed within the losses.*\.data"):
        clipped_sum(model, lambda: model(data), 8, Flat(1.0), batch=data)


@pytest.mark.parametrize("name", ["a mask", "an index and others", "index_put", "added"])
def test_writes_for_all_examples_train(name: str) -> None:
    def use(m: Layers, x: Tensor) -> Tensor:
        mask = torch.zeros(len(x)) == 0
        return summed(m.layer(WRITE[name](x, mask)))

    model, data = Layers(use).double(), of(5, WIDTH)
    check(model, model, data)


def square(constant: Tensor) -> Tensor:
    """All rows of it are the same."""
    return constant.expand(len(constant), -1)


def on_diagonal(constant: Tensor) -> Tensor:
    return torch.eye(len(constant)) > 0


DIAGONALS: dict[str, Combine] = {  # of equal rows, which aren't equal
    "einsum": lambda x, c: torch.einsum("ii,ij->ij", square(c), excess(x)),
    "einsum of three": lambda x, c: torch.einsum(
        "iki,ij->ij", square(c)[:, None].expand(-1, 2, -1), excess(x)
    ),
    "a mask": lambda x, c: square(c)[on_diagonal(c)][:, None] * excess(x),
    "a mask first": lambda x, c: square(c)[on_diagonal(c), None] * excess(x),
    "a mask behind a slice": lambda x, c: (
        square(c)[None][:, on_diagonal(c)][0][:, None] * excess(x)
    ),
    "a mask behind dots": lambda x, c: square(c)[..., on_diagonal(c)][:, None] * excess(x),
    "selected": lambda x, c: square(c).masked_select(on_diagonal(c))[:, None] * excess(x),
    "diagonal": lambda x, c: square(c).diagonal()[:, None] * excess(x),
    "gathered": lambda x, c: (
        square(c).gather(1, torch.arange(len(c))[:, None].expand(-1, 2))[:, :1] * excess(x)
    ),
    "pairs": lambda x, c: (
        square(c)[torch.arange(len(c)), torch.arange(len(c))][:, None] * excess(x)
    ),
    "places": lambda x, c: (square(c) + 1).nonzero()[:: len(c), :1] * excess(x),
    "places of where": lambda x, c: (
        torch.where(square(c) >= 0)[0].view(len(c), -1)[:, :1] * excess(x)
    ),
    "a triangle": lambda x, c: square(c).tril().amax(1)[:, None] * excess(x),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", DIAGONALS)
def test_no_diagonal_of_equal_rows_is_taken_for_equal(name: str, way: str) -> None:
    model = Layers(WAYS[way](DIAGONALS[name], MAKE["counted"])).double()
    data = of(5, WIDTH)
    with pytest.raises(Refused, match="losses"):
        clipped_sum(model, lambda: model(data), 5, Flat(1.0), batch=data)


ROWS_OF: dict[str, Callable[[Tensor], Tensor]] = {
    "a column": lambda mask: mask.nonzero()[:, 0],
    "squeezed": lambda mask: mask.nonzero().squeeze(1),
    "selected": lambda mask: mask.nonzero().select(1, 0),
    "unbound": lambda mask: mask.nonzero().unbind(1)[0],
    "of two dimensions": lambda mask: mask[:, None].nonzero()[:, 0],
    "where": lambda mask: torch.where(mask)[0],
    "a tuple": lambda mask: mask.nonzero(as_tuple=True)[0],
    "copied": lambda mask: torch.argwhere(mask)[:, 0].clone(),
    "changed in place": lambda mask: torch.where(mask)[0].add_(0),
    "its view changed": lambda mask: _with_changed_view(torch.where(mask)[0]),
}


def _with_changed_view(rows: Tensor) -> Tensor:
    rows.view(-1).add_(0)
    return rows


NUMBERS: dict[str, Combine] = {  # uses of the numbers of rows (row,), beside rows
    **{name: COMBINE[name] for name in ("a product", "where", "joined", "written", "labels")},
    "a table": lambda x, c: excess(x) * torch.arange(9)[c][:, None],
    "an embedding": lambda x, c: excess(x) * F.embedding(c, torch.eye(9, dtype=x.dtype))[:, :WIDTH],
    "one_hot": lambda x, c: excess(x) * F.one_hot(c, 9).argmax(1)[:, None],
    "an index of columns": lambda x, c: excess(x)[:, :1] * x[c, c % WIDTH][:, None],
    "a remainder": lambda x, c: excess(x) * (c % 2)[:, None],
    "rows by two": lambda x, c: excess(x) * (c // 2)[:, None],
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_rows_are_no_values(name: str) -> None:
    """Row i's number is i: without its first example, the batch has others."""
    for rows_of in ROWS_OF.values():

        def use(m: Layers, x: Tensor) -> Tensor:
            mask = x[:, 0] > -9
            found = torch.zeros_like(x)
            rows = rows_of(mask)  # noqa: B023
            scale = NUMBERS[name](x[mask], rows)
            found[mask] = m.layer(x[mask]) * (1 + scale.sum(1, keepdim=True))
            return summed(found)

        model, data = Layers(use).double(), of(5, WIDTH)
        with pytest.raises(Refused, match=r"by place|index|gets data after|losses"):
            clipped_sum(model, lambda: model(data), 5, Flat(1.0), batch=data)  # noqa: B023


def _written_at(mask: Tensor, values: Tensor) -> Tensor:
    found = values.new_zeros(len(mask), *values.shape[1:])
    found[mask] = values
    return found


OF_MASKS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {  # by a mask of all rows, and a constant
    "written": _written_at,
    "written, wide": lambda mask, c: _written_at(mask, c[:, None].expand(-1, 2))[:, 0],
    "picked and written": lambda mask, c: _written_at(mask, c[mask]),
    "picked": lambda mask, c: c[mask],
    "picked, wide": lambda mask, c: c[:, None].expand(-1, 2)[mask][:, 0],
    "selected": lambda mask, c: c.masked_select(mask),
}


def with_masks(taken: Callable[[Tensor, Tensor], Tensor], make: Callable[[int], Tensor]) -> Use:
    def use(m: Layers, x: Tensor) -> Tensor:
        mask = x[:, 0] > -9
        scale = taken(mask, make(len(x)))
        found = torch.zeros_like(x)
        if taken in (OF_MASKS["picked"], OF_MASKS["picked, wide"], OF_MASKS["selected"]):
            found[mask] = m.layer(x[mask]) * (1 + scale[:, None])
            return summed(found)
        return summed(m.layer(x) * (1 + scale[:, None]))

    return use


@pytest.mark.parametrize("name", OF_MASKS)
def test_no_constant_behind_a_mask_differs_by_place(name: str) -> None:
    data = of(5, WIDTH)
    for make in (*MAKE.values(), *SHARED_DRAWS.values()):
        model = Layers(with_masks(OF_MASKS[name], make)).double()
        with pytest.raises(Refused, match="by place"):
            clipped_sum(model, lambda: model(data), 5, Flat(1.0), batch=data)  # noqa: B023
    for make in (ALIKE["zeros"], ALIKE["expanded"], ALIKE["full"]):
        model = Layers(with_masks(OF_MASKS[name], make)).double()
        clipped_sum(model, lambda: model(data), 5, Flat(1.0), batch=data)  # noqa: B023


def test_places_within_an_example_are_its_own() -> None:
    """Rows are steps of all examples; their numbers modulo the number of steps are times."""
    table = torch.randn(3, WIDTH, dtype=torch.float64)

    def use(m: Layers, x: Tensor) -> Tensor:
        mask, flat = x[:, :, 0] > 0, x.flatten(0, 1)
        rows = mask.flatten().nonzero()[:, 0]
        found = m.layer(flat[rows] + table[rows % 3])
        first = torch.zeros_like(flat).index_add(0, rows, found).view(x.shape)
        examples, steps = mask.nonzero().unbind(1)
        second = torch.zeros_like(x)
        second[examples, steps] = m.layer(x[examples, steps] + table[steps])
        return summed(first) + summed(second)

    model, data = Layers(use).double(), of(4, 3, WIDTH)
    every = clipped_sum(model, lambda: model(data), 4, Flat(1.0), batch=data)
    each = [
        clipped_sum(model, lambda: model(one), 1, Flat(1.0), batch=one)  # noqa: B023
        for one in (data[n : n + 1] for n in range(4))
    ]
    sums = tuple(torch.stack([*some]).sum(0) for some in zip(*(e.sums for e in each), strict=True))
    squares = torch.cat([one.squared_norms for one in each], 1)
    same(every, type(every)(sums, squares))


def test_numbers_of_repetitions_are_no_index() -> None:
    """They pick other rows than those that they repeat."""

    def use(m: Layers, x: Tensor) -> Tensor:
        times = torch.ones_like(x[:, 0], dtype=torch.int64) + 0 * x[:, 0].long()
        tall = m.layer(x).repeat_interleave(times, 0)
        return summed(tall * x[times])

    model, data = Layers(use).double(), of(5, WIDTH)
    with pytest.raises(Refused, match="an index that depends on other examples"):
        clipped_sum(model, lambda: model(data), 5, Flat(1.0), batch=data)


def test_masks_of_other_dimensions_keep_rows_equal() -> None:
    def use(m: Layers, x: Tensor) -> Tensor:
        rows = torch.arange(6.0, dtype=x.dtype).expand(len(x), -1)
        return summed(m.layer(x)) * rows[:, torch.arange(6) > 2].sum(1)

    model, data = Layers(use).double(), of(5, WIDTH)
    clipped_sum(model, lambda: model(data), 5, Flat(1.0), batch=data)


def test_how_many_rows_are_picked_decides_nothing() -> None:
    """With picked rows, a constant is refused even if it has the same values for all of them."""

    def zeros(number: int) -> Tensor:
        return torch.arange(number) * 0.0

    data = of(5, WIDTH)
    for way, is_refused in (("all", False), ("picked", True)):
        model = Layers(WAYS[way](COMBINE["a product"], zeros)).double()
        try:
            clipped_sum(model, lambda: model(data), 5, Flat(1.0), batch=data)  # noqa: B023
        except Refused:
            assert is_refused
        else:
            assert not is_refused


def test_the_refusal_names_the_constant() -> None:
    """Before it is paid."""
    model = Layers(of_all_rows(COMBINE["a product"], MAKE["counted"])).double()
    with pytest.raises(Refused, match="a constant that differs by place in the batch"):
        check(model, model, of(5, WIDTH))


@pytest.mark.parametrize("number", [1, 3])
def test_constants_of_steps_in_time_train(number: int) -> None:
    """Each example has the same ones, in whichever order time and examples lie."""

    def use(m: Layers, x: Tensor) -> Tensor:
        steps = torch.arange(x.shape[1], dtype=x.dtype)
        first = m.layer(x.flatten(0, 1)) * steps.repeat(len(x))[:, None]
        second = m.layer(x.transpose(0, 1).flatten(0, 1)) * steps.repeat_interleave(len(x))[:, None]
        return summed(first.view(x.shape)) + summed(second.view(-1, *x[:, 0].shape).transpose(0, 1))

    model, data = Layers(use).double(), of(number, 6, WIDTH)
    clipped_sum(model, lambda: model(data), number, Flat(1.0), batch=data)


def test_a_batch_without_its_first_example_has_the_sum_of_the_others() -> None:
    """The power of the law: a product with places, which is refused, would break it."""
    model, data = Layers(of_all_rows(COMBINE["a product"], ALIKE["full"])).double(), of(5, WIDTH)
    every = clipped_sum(model, lambda: model(data), 5, Flat(1.0), batch=data)
    one, others = data[:1], data[1:]
    rest = clipped_sum(model, lambda: model(others), 4, Flat(1.0), batch=others)
    first = clipped_sum(model, lambda: model(one), 1, Flat(1.0), batch=one)
    sums = tuple(a + b for a, b in zip(first.sums, rest.sums, strict=True))
    squares = torch.cat([first.squared_norms, rest.squared_norms], 1)
    same(every, type(every)(sums, squares))


ROWS: dict[str, Callable[[Tensor], Tensor]] = {
    "a column": lambda mask: mask.nonzero()[:, 0],
    "squeezed": lambda mask: mask.nonzero().squeeze(1),
    "unbound": lambda mask: mask.nonzero().unbind(1)[0],
    "where": lambda mask: torch.where(mask)[0],
    "a tuple": lambda mask: mask.nonzero(as_tuple=True)[0],
    "a table": lambda mask: mask.nonzero(),
    "cloned": lambda mask: torch.where(mask)[0].clone()[:],
    "halved": lambda mask: torch.where(mask)[0] // 2,
}
USED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {  # with the picked rows
    "parity": lambda rows, x: x * (rows % 2).view(-1, 1),
    "comparison": lambda rows, x: x * (rows < 2).view(-1, 1),
    "sum": lambda rows, x: x + rows.view(-1, 1),
    "floats": lambda rows, x: x * rows.double().view(-1, 1),
    "look-up": lambda rows, x: x * torch.arange(9.0).double()[rows].view(-1, 1),
    "embedding": lambda rows, x: x * F.embedding(rows.flatten(), torch.eye(9)[:, :1].double()),
    "one hot": lambda rows, x: x * F.one_hot(rows.flatten(), 9)[:, :1],
    "columns": lambda rows, x: x[torch.arange(len(x)), rows.flatten() % WIDTH, None] * x,
    "gathered": lambda rows, x: x.gather(1, rows.view(-1, 1) % WIDTH) * x,
    "choice": lambda rows, x: torch.where(rows.view(-1, 1) > 2, x, -x),
    "written": lambda rows, x: torch.zeros_like(x).index_copy(
        1, torch.tensor([0]), rows.view(-1, 1).double()
    ),
    "filled": lambda rows, x: x.masked_fill(rows.view(-1, 1) == 1, 0),
    "filled by": lambda rows, x: torch.full_like(x, 2.0).mul_(rows.view(-1, 1)) * x,
}


def by_row_number(rows_of: Callable[[Tensor], Tensor], used: Callable[..., Tensor]) -> Use:
    def use(m: Layers, x: Tensor) -> Tensor:
        mask = x[:, 0] > -2
        (places,) = torch.where(mask)
        found: Tensor = used(rows_of(mask), m.layer(x[places]))
        return summed(torch.zeros_like(x).index_add(0, places, found))

    return use


@pytest.mark.parametrize("name", USED)
@pytest.mark.parametrize("form", ROWS)
def test_row_numbers_are_no_values(form: str, name: str) -> None:
    """The number of row i, as `nonzero` gives it, is its place."""
    model = Layers(by_row_number(ROWS[form], USED[name])).double()
    data = of(6, WIDTH)
    with pytest.raises(Refused, match=r"by place|depends on (other|all) examples|not known which"):
        clipped_sum(model, lambda: model(data), 6, Flat(1.0), batch=data)


def test_steps_within_examples_are_values_of_their_own() -> None:
    """A remainder by the number of steps is the step."""

    def use(m: Layers, x: Tensor) -> Tensor:
        flat = x.reshape(-1)
        (places,) = torch.where(flat > 0)
        rows = flat[places] * (places % WIDTH)
        found = torch.zeros_like(flat).index_add(0, places, rows)
        return summed(m.layer(found.view(x.shape)))

    model, data = Layers(use).double(), of(6, WIDTH)
    wanted = one_by_one(model, lambda n: model(data[n : n + 1]), 6, Flat(1.0))
    same(clipped_sum(model, lambda: model(data), 6, Flat(1.0), batch=data), wanted)


WRITTEN: dict[str, Callable[[int], Tensor]] = {
    "counted": lambda n: torch.arange(n).double(),
    "picked": lambda n: torch.arange(n).double()[torch.arange(n) >= 0],
    "levels": lambda n: torch.linspace(0, 1, n, dtype=torch.float64),
    "columns": lambda n: torch.arange(2 * n).view(n, 2).double(),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_constants_by_place_are_not_written_where_masks_point(name: str) -> None:
    def use(m: Layers, x: Tensor) -> Tensor:
        values = WRITTEN[name](len(x))
        found = torch.zeros_like(values)
        found[x[:, 0] > -2] = values
        return summed(m.layer(x) * found.view(len(x), -1)[:, :1])

    model, data = Layers(use).double(), of(6, WIDTH)
    with pytest.raises(Refused, match="by place"):
        clipped_sum(model, lambda: model(data), 6, Flat(1.0), batch=data)


TABLES: dict[str, Callable[[int], tuple[Tensor, ...]]] = {  # rows by more than one dimension
    "rows of a mask": lambda n: (torch.ones(n, dtype=torch.bool).nonzero(),),
    "counted": lambda n: (torch.arange(n)[:, None],),
    "a mask beside columns": lambda n: (
        torch.ones(n, dtype=torch.bool),
        torch.zeros(n, dtype=torch.int64),
    ),
    "counted beside columns": lambda n: (torch.arange(n), torch.zeros(n, dtype=torch.int64)),
    "tables beside columns": lambda n: (
        torch.arange(n)[:, None],
        torch.zeros(n, 1, dtype=torch.int64),
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_constants_by_place_are_not_written_where_tables_point(name: str) -> None:
    def use(values: Callable[[int], Tensor], *, is_alike: bool = False) -> Use:
        def used(m: Layers, x: Tensor) -> Tensor:
            at, rows = TABLES[name](len(x)), excess(x).clone()
            shape = len(x), *(1,) * (rows[at].dim() - 1)
            rows[at] = torch.full(shape, 0.5).double() if is_alike else values(len(x)).view(shape)
            return summed(m.layer(x)) * (1 + rows[:, 0])

        return used

    data = of(6, WIDTH)
    for make in MAKE.values():
        model = Layers(use(make)).double()
        with pytest.raises(Refused, match=r"by place|an index"):
            clipped_sum(model, lambda: model(data), 6, Flat(1.0), batch=data)  # noqa: B023
    model = Layers(use(MAKE["levels"], is_alike=True)).double()
    clipped_sum(model, lambda: model(data), 6, Flat(1.0), batch=data)
