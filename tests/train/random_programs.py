"""Random programs of tensor operations on a batch, whose tags are compared for two batches.

A tag states which rows of a tensor belong to which example. `wrong_tag` runs a program on two
batches that differ in one example, or in the order of the examples. The rows of each example that
both have must be equal, and so must all tensors that depend on no example by their tag.

The limits that `docs/limits.md` states are left out where the place or the number of examples
changes: numbers computed from ``len(x)``, and slices or constant indices by place in the batch
(`_limits`). Programs have no weights, no random numbers and no conditions of Python's.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor, nn

from discreet.train._forward._capture import Capture
from discreet.train._rules import RULES
from discreet.train._tags._tag import ExampleRows, OneExample, Tag, UntrackedRows

MOST = 2000  # entries of a tensor
MODEL = nn.Linear(1, 1)


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation on tensors of the pool.

    Attributes:
        sources: the number of tensors that it takes.
        apply: the operation, on the number of examples, a choice and the tensors.
        choices: parameters, such as dimensions, of which each step draws one.
        places: what selects places of the first tensor: the source (None: the choice), and the
            dimension (None: the choice is the dimension).
    """

    name: str
    sources: int
    apply: Callable[..., Tensor]
    choices: Sequence[Any] = (None,)  # Any: an operation's own parameters
    places: tuple[tuple[int | None, int | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """An operation on the tensors of these numbers in the pool."""

    operation: Operation
    sources: tuple[int, ...]
    choice: Any  # Any: as above


Program = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """All tensors after a program, their tags, and which steps select examples by place."""

    pool: list[Tensor]
    tags: list[Tag | None]
    given: int  # tensors before the first step
    uses_places: list[bool]  # by step


# The operations

DIMS = (0, 1, 2, -1, -2)
FIRST = (0, 1, -1)
_WORKS: list[Operation] = []


def _add(
    name: str,
    sources: int,
    apply: Callable[..., Tensor],
    choices: Sequence[Any] = (None,),  # Any: as above
    places: tuple[tuple[int | None, int | None], ...] = (),
    weight: int = 1,
) -> None:
    _WORKS.extend([Operation(name, sources, apply, choices, places)] * weight)


def _over_dimensions() -> None:
    for name in ("softmax", "cumsum", "logsumexp", "sum", "mean", "amax", "prod", "std", "argmax"):
        function = getattr(torch, name)
        _add(name, 1, lambda _, dim, x, f=function: f(x.float(), dim), DIMS)
    for name in ("sum", "amin"):
        function = getattr(torch, name)
        _add(f"{name}, kept", 1, lambda _, dim, x, f=function: f(x, dim, keepdim=True), DIMS)
    _add("flip", 1, lambda _, dim, x: x.flip(dim), DIMS)
    _add("roll", 1, lambda _, dim, x: x.roll(1, dim), DIMS)
    _add("diff", 1, lambda _, dim, x: x.float().diff(dim=dim), DIMS)
    _add("sort", 1, lambda _, dim, x: x.sort(dim=dim, stable=True)[0], DIMS, weight=2)
    _add("argsort", 1, lambda _, dim, x: x.argsort(dim=dim, stable=True), DIMS, weight=3)
    _add("topk", 1, lambda _, dim, x: x.topk(2, dim)[0], DIMS)
    _add("kthvalue", 1, lambda _, dim, x: x.float().kthvalue(1, dim)[0], DIMS)
    _add("restacked", 1, lambda _, dim, x: torch.stack(x.unbind(dim), dim), DIMS)
    _add("cat", 2, lambda _, dim, x, y: torch.cat([x, y], dim), DIMS, weight=2)
    _add("stack", 2, lambda _, dim, x, y: torch.stack([x, y], dim), DIMS, weight=2)


def _entry_by_entry() -> None:
    _add("add", 2, lambda _, __, x, y: x + y, weight=3)
    _add("mul", 2, lambda _, __, x, y: x * y, weight=2)
    _add("gt", 2, lambda _, __, x, y: x > y, weight=2)
    _add("where", 3, lambda _, __, x, y, z: torch.where(x.bool(), y, z), weight=2)
    _add("lerp", 3, lambda _, __, x, y, z: torch.lerp(x.float(), y.float(), z.float()))
    _add("above", 1, lambda _, least, x: x > least, (0, 1, -1), weight=3)
    _add("equal", 1, lambda _, value, x: x == value, (0, 1, 2), weight=2)
    _add("nowhere 0", 1, lambda _, value, x: x.long() * 0 + value, (1, -1), weight=2)
    _add("remainder", 1, lambda _, by, x: x % by, (2, 3), weight=2)
    _add("quotient", 1, lambda _, by, x: x // by, (2, 3), weight=2)
    _add("long", 1, lambda _, most, x: x.long().clamp(0, most), (0, 1, 2, 4), weight=3)
    _add("like", 1, lambda _, value, x: torch.full_like(x, value), (0, 1))
    _add("new", 1, lambda number, _, x: x.new_zeros(number, 4))


def _products() -> None:
    _add("matmul", 2, lambda _, __, x, y: x.float() @ y.float(), weight=2)
    _add("matmul, turned", 2, lambda _, __, x, y: x.float() @ y.float().mT)
    pairs = ("ij,ij->i", "ij,ij->j", "ij,jk->ik", "ij,kj->ik", "ij,i->ij", "ij,i->j", "i,j->ij")
    more = ("...i,...i->...", "ijk,ij->ik", "ijk,ik->ij", "ii,ij->ij")
    _add(
        "einsum",
        2,
        lambda _, text, x, y: torch.einsum(text, x.float(), y.float()),
        (*pairs, *more),
        weight=2,
    )
    _add("cdist", 2, lambda _, __, x, y: torch.cdist(x.float(), y.float()))
    _add("one_hot", 1, lambda _, __, x: F.one_hot(x.clamp(0, 4), 5))
    _add("bincount", 1, lambda _, __, x: torch.bincount(x.clamp(0, 4), minlength=5))
    _add("embedding", 2, lambda _, __, x, y: F.embedding(x.clamp(0, 1), y.float()))


def _indices() -> None:
    _add("nonzero", 1, lambda _, dim, x: x.nonzero(as_tuple=True)[dim], (0, 1), weight=3)
    _add("nonzero, table", 1, lambda _, __, x: x.nonzero(), weight=2)
    _add("where, one argument", 1, lambda _, dim, x: torch.where(x)[dim], (0, 1))
    _add("x[i]", 2, lambda _, __, x, i: x[i], places=((1, 0),), weight=6)
    _add("x[:, i]", 2, lambda _, __, x, i: x[:, i], places=((1, 1),), weight=2)
    _add("x[i, j]", 3, lambda _, __, x, i, j: x[i, j], places=((1, 0), (2, 1)), weight=2)
    _add("index_select", 2, lambda _, d, x, i: x.index_select(d, i), FIRST, ((1, None),), weight=2)
    _add("gather", 2, lambda _, d, x, i: x.gather(d, i), FIRST, ((1, None),), weight=2)
    _add("take_along_dim", 2, lambda _, d, x, i: x.take_along_dim(i, d), FIRST, ((1, None),))
    _add("masked_select", 2, lambda _, __, x, m: x.masked_select(m), places=((1, 0),), weight=2)
    _add("repeat", 1, lambda _, by, x: x.repeat(by, *[1] * (x.dim() - 1)), (2, 3))
    _add("interleave", 1, lambda _, dim, x: x.repeat_interleave(2, dim), (0, 1))
    _add(
        "interleave by numbers",
        2,
        lambda _, dim, x, i: x.repeat_interleave(i.long().clamp(0, 2), dim),
        (0, 1),
        ((1, None),),
    )
    _add("inverse", 1, lambda _, __, x: x.argsort(stable=True).argsort(stable=True))


# functions that look at an index, which still picks the same rows
LOOKS: dict[str, Callable[[Tensor], object]] = {
    "nonzero": lambda index: index.nonzero(as_tuple=True),
    "nonzero, table": lambda index: index.nonzero()[:, 0],
    "where": torch.where,
    "argsort": lambda index: index.argsort(stable=True),
    "bincount": lambda index: torch.bincount(index.clamp(0, 4), minlength=5),
}


def _looked(look: str, index: Tensor) -> Tensor:
    LOOKS[look](index)
    return index


def _indices_after_looks() -> None:
    looks = tuple(LOOKS)
    _add("look, x[i]", 2, lambda _, how, x, i: x[_looked(how, i)], looks, ((1, 0),), weight=4)
    _add(
        "look, index_select",
        2,
        lambda _, how, x, i: x.index_select(0, _looked(how, i)),
        looks,
        ((1, 0),),
    )
    _add(
        "look, x[i] = y",
        3,
        lambda _, how, x, i, y: _set(lambda index: index, x, _looked(how, i), y),
        looks,
        ((1, 0),),
        weight=2,
    )


def _views() -> None:
    _add("x[:, 0]", 1, lambda _, place, x: x[:, place], (0, 1, -1), ((None, 1),), weight=3)
    _add("last", 1, lambda _, __, x: x.select(-1, 0), places=((None, -1),))
    _add("first", 1, lambda _, place, x: x[place], (0, -1), ((None, 0),))
    _add("from the second", 1, lambda _, __, x: x[1:], (0,), ((None, 0),))
    _add(
        "diagonal", 1, lambda _, dims, x: x.diagonal(0, *dims), ((0, 1), (1, 2), (0, -1)), weight=3
    )
    _add(
        "as_strided", 1, lambda number, step, x: x.as_strided((number,), (step,)), (1, 2), weight=3
    )
    _add("unfold", 1, lambda _, dim, x: x.unfold(dim, 2, 1), DIMS)
    _add("unsqueeze", 1, lambda _, dim, x: x.unsqueeze(dim), DIMS, weight=2)
    _add("squeeze", 1, lambda _, dim, x: x.squeeze(dim), DIMS)
    _add("transpose", 1, lambda _, dims, x: x.transpose(*dims), ((0, 1), (0, -1), (1, 2)), weight=3)
    _add("flat", 1, lambda _, first, x: x.flatten(first), (0, 1), weight=3)
    _add("view", 1, lambda number, _, x: x.view(number, -1), weight=2)
    _add("reshape", 1, lambda _, by, x: x.reshape(-1, by), (2, 3, 4), weight=2)
    _add("unflatten", 1, lambda _, size, x: x.unflatten(0, (-1, size)), (2, 3))
    _add("expand", 1, lambda _, size, x: x.expand(size, *x.shape), (2, 3))
    _add("expand_as", 2, lambda _, __, x, y: x.expand_as(y))
    _add("view_as", 2, lambda _, __, x, y: x.view_as(y))
    _add("clone", 1, lambda _, __, x: x.clone(), weight=4)
    _add("detach", 1, lambda _, __, x: x.detach())


def _set(at: Callable[..., Any], x: Tensor, *others: Tensor) -> Tensor:  # Any: an index
    *indices, value = others
    x[at(*indices)] = value.to(x.dtype)
    return x


def _writes() -> None:
    """These change the first tensor, and all that share its memory."""
    whole = slice(None)
    for name, at, places in (
        ("x[i] = y", lambda i: i, ((1, 0),)),
        ("x[:, i] = y", lambda i: (whole, i), ((1, 1),)),
        ("x[..., i] = y", lambda i: (..., i), ((1, -1),)),
        ("x[None, i] = y", lambda i: (None, i), ((1, 0),)),
    ):
        _add(name, 3, lambda _, __, x, i, y, a=at: _set(a, x, i, y), places=places, weight=3)
    _add(
        "x[i, j] = y",
        4,
        lambda _, __, x, i, j, y: _set(lambda *both: both, x, i, j, y),
        places=((1, 0), (2, 1)),
        weight=4,
    )
    _add("copy_", 2, lambda _, __, x, y: x.copy_(y), weight=4)
    _add("add_", 2, lambda _, __, x, y: x.add_(y.to(x.dtype)), weight=2)
    _add("copy_, smallest", 2, lambda _, __, x, y: x.copy_(y.amin()), weight=4)
    _add("fill_", 1, lambda _, value, x: x.fill_(value), (0, 1))
    _add("masked_fill_", 2, lambda _, value, x, m: x.masked_fill_(m, value), (0, 3))
    _add("index_fill_", 2, lambda _, d, x, i: x.index_fill_(d, i, 1), FIRST, ((1, None),))
    for name in ("scatter_", "scatter_add_", "index_add_", "index_copy_"):
        function = getattr(Tensor, name)
        _add(
            name,
            3,
            lambda _, d, x, i, y, f=function: f(x, d, i, y.to(x.dtype)),
            FIRST,
            ((1, None),),
            weight=3,
        )


for _group in (
    *(_over_dimensions, _entry_by_entry, _products, _indices, _indices_after_looks),
    *(_views, _writes),
):
    _group()
OPERATIONS: tuple[Operation, ...] = tuple(_WORKS)


# Programs and their outcomes


def batch(generator: torch.Generator, number: int) -> list[Tensor]:
    """The tensors of a batch: small values, so that many are equal or 0."""
    features = torch.randint(-2, 4, (number, 4), generator=generator).float()
    table = torch.randint(0, 4, (number, 3, 4), generator=generator).float()
    index = torch.randint(0, 3, (number,), generator=generator)
    indices = torch.randint(0, 3, (number, 3), generator=generator)
    mask = torch.rand(number, generator=generator) < 0.5
    kinds = torch.randint(1, 3, (number,), generator=generator)  # nowhere 0
    return [features, table, index, indices, mask, features[:, 1].clone(), kinds]


def constants(number: int) -> list[Tensor]:
    """Tensors that are the same for all data, but for their length."""
    return [
        torch.arange(number),
        *(torch.zeros(number), torch.zeros(number, 4), torch.zeros(number, 3)),
        *(torch.ones(number), torch.ones(number, dtype=torch.bool)),
        *(torch.zeros(number, dtype=torch.int64), torch.zeros(4), torch.tensor(2.0)),
        *(torch.arange(4.0), torch.arange(12.0).view(3, 4)),
    ]


def grown(choice: random.Random, data: Sequence[Tensor], most: int) -> Program:
    """A random program of at most this many steps, each of which runs on this batch."""
    number = len(data[0])
    capture, pool = _capture(data, number)
    program: list[Step] = []
    with capture:
        pool += constants(number)
        given = len(pool)
        for _ in range(6 * most):
            if len(program) == most:
                break
            operation = choice.choice(OPERATIONS)
            sources = tuple(_source(choice, capture, pool, given) for _ in range(operation.sources))
            step = Step(operation, sources, choice.choice(operation.choices))
            try:
                result = _result(step, pool, number)
            except Exception:  # noqa: BLE001  most arguments don't fit, or are refused
                continue
            if isinstance(result, Tensor) and result.numel() <= MOST:
                pool.append(result)
                program.append(step)
    return tuple(program)


def _source(choice: random.Random, capture: Capture, pool: list[Tensor], given: int) -> int:
    """A tensor's number: often of a result, seldom of one whose rows are unknown."""
    for _ in range(4):
        is_result = len(pool) > given and choice.random() < 0.6
        found = choice.randrange(given if is_result else 0, len(pool))
        if not isinstance(capture.tags.of(pool[found]), UntrackedRows):
            break
        if choice.random() < 0.2:
            break
    return found


def _capture(data: Sequence[Tensor], number: int) -> tuple[Capture, list[Tensor]]:
    own = [each.clone() for each in data]
    weights = dict(MODEL.named_parameters())
    return Capture(MODEL, weights, number, RULES, batch=tuple(own)), own


def _result(step: Step, pool: list[Tensor], number: int) -> Tensor:
    return step.operation.apply(number, step.choice, *(pool[one] for one in step.sources))


def outcome(program: Program, data: Sequence[Tensor], *, keeps_places: bool) -> Outcome:
    """Run a program up to its first error or refusal, and follow its tags."""
    number = len(data[0])
    capture, pool = _capture(data, number)
    uses_places: list[bool] = []
    with capture:
        pool += constants(number)
        given = len(pool)
        for step in program:
            tags = [capture.tags.of(pool[one]) for one in step.sources]
            uses = (
                _takes_some(step, pool, tags)
                if keeps_places
                else _uses_places(step, pool, tags, number)
            )
            try:
                pool.append(_result(step, pool, number))
            except Exception:  # noqa: BLE001  the program ends here
                break
            uses_places.append(uses)
        return Outcome(pool, [capture.tags.of(each) for each in pool], given, uses_places)


def _takes_some(step: Step, pool: list[Tensor], tags: list[Tag | None]) -> bool:
    """Whether a step selects by place among rows that a mask picked: a stated limit."""
    tag = tags[0]
    return (
        isinstance(tag, ExampleRows)
        and tag.layout.order.places is None
        and _uses_places(step, pool, tags, -1)
    )


def _uses_places(step: Step, pool: list[Tensor], tags: list[Tag | None], number: int) -> bool:
    """Whether a step uses the place of examples in the batch, or their number: a stated limit."""
    first, tag = pool[step.sources[0]], tags[0]
    for source, at in step.operation.places:
        dim = (step.choice if at is None else at) % max(first.dim(), 1)
        over_examples = not isinstance(tag, ExampleRows) or dim == tag.dim
        if source is None:
            if over_examples:
                return True
            continue
        index = pool[step.sources[source]]
        if tags[source] is not None:  # it may count from the end of a constant
            if tag is None and number in first.shape:
                return True
        elif over_examples:
            if first.dim() and not _is_whole(index, first.shape[dim]):
                return True
        elif number in index.shape and len(step.operation.places) == 1:
            return True
    return False


def _is_whole(index: Tensor, size: int) -> bool:
    """Whether a constant index or mask takes all places in their order, or none."""
    if index.dtype == torch.bool:
        return bool(index.all()) or not bool(index.any())
    return torch.equal(index.flatten(), torch.arange(size))


# Comparisons


@dataclass(frozen=True, slots=True)
class Pair:
    """Two batches of which one example differs.

    Attributes:
        both: the batches.
        places: the place in the second one of each example that both have, by that in the first.
        keeps_places: whether all examples stay in their places, so that no limit is left out.
    """

    both: tuple[list[Tensor], list[Tensor]]
    places: dict[int, int]
    keeps_places: bool


def replaced(choice: random.Random, data: list[Tensor], made_up: list[Tensor]) -> Pair:
    """One example has other values."""
    number = len(data[0])
    victim = choice.randrange(number)
    changed = [each.clone() for each in data]
    for each, other in zip(changed, made_up, strict=True):
        each[victim] = other[victim]
    places = {each: each for each in range(number) if each != victim}
    return Pair((data, changed), places, keeps_places=True)


def removed(choice: random.Random, data: list[Tensor], _: list[Tensor]) -> Pair:
    """One example is absent."""
    victim = choice.randrange(len(data[0]))
    others = [each for each in range(len(data[0])) if each != victim]
    places = {each: place for place, each in enumerate(others)}
    return Pair((data, [each[others] for each in data]), places, keeps_places=False)


def wrong_tag(program: Program, pair: Pair) -> str | None:
    """The first tensor whose tag is wrong for one of two batches, or None."""
    one, other = (outcome(program, data, keeps_places=pair.keeps_places) for data in pair.both)
    if len(one.pool) != len(other.pool):  # one of them ended earlier
        return wrong_tag(program[: min(len(each.uses_places) for each in (one, other))], pair)
    left_out = _limits(program, one, other, keeps_places=pair.keeps_places)
    for number, found in enumerate(zip(one.pool, other.pool, strict=True)):
        tags = one.tags[number], other.tags[number]
        if number not in left_out and not _agree(found, tags, pair):
            return f"tensor {number - one.given} of {written(program)}"
    return None


def _limits(program: Program, one: Outcome, other: Outcome, *, keeps_places: bool) -> set[int]:
    """The tensors that use a limit: a place in the batch, or a number computed from its size."""
    found: set[int] = set()
    for step, number in zip(program, range(one.given, len(one.pool)), strict=False):
        constant = not keeps_places and one.tags[number] is other.tags[number] is None
        if (
            any(source in found for source in step.sources)
            or one.uses_places[number - one.given]
            or other.uses_places[number - one.given]
            or (constant and not _same_values(one.pool[number], other.pool[number]))
            or (not keeps_places and _has_length_of_batch(one, other, number))
        ):
            memory = one.pool[number].untyped_storage().data_ptr()
            for place, each in enumerate(one.pool):
                if each.untyped_storage().data_ptr() == memory:
                    found.add(place)
    return found


def _has_length_of_batch(one: Outcome, other: Outcome, number: int) -> bool:
    """Whether an example's rows have a length that depends on the number of examples."""
    tag = one.tags[number]
    if not isinstance(tag, ExampleRows) or tag.dim >= other.pool[number].dim():
        return False
    lengths = [list(each.pool[number].shape) for each in (one, other)]
    for each in lengths:
        del each[tag.dim]
    return lengths[0] != lengths[1]


def _same_values(one: Tensor, other: Tensor) -> bool:
    return set(one.flatten().tolist()) == set(other.flatten().tolist())


def _agree(found: tuple[Tensor, Tensor], tags: tuple[Tag | None, Tag | None], pair: Pair) -> bool:
    """Whether what two tags credit to the same example is the same."""
    if tags == (None, None):
        return not pair.keeps_places or _close(*found)
    if not all(isinstance(tag, (ExampleRows, OneExample)) for tag in tags):
        return True
    before, after = (_rows(each, tag) for each, tag in zip(found, tags, strict=True))
    return all(
        _same_rows(before.get(place), after.get(at), pair) for place, at in pair.places.items()
    )


def _same_rows(
    one: tuple[Tensor, int] | None, other: tuple[Tensor, int] | None, pair: Pair
) -> bool:
    """Whether an example's rows, with their number, are the same for two batches."""
    if one is None or other is None:
        return one is other or (one or other or (0, 0))[1] == 0
    if one[1] != other[1]:
        return False
    if one[0].shape != other[0].shape:  # a length that depends on the number of examples
        return not pair.keeps_places
    return _close(one[0], other[0])


def _rows(tensor: Tensor, tag: Tag | None) -> dict[int, tuple[Tensor, int]]:
    """The rows of each example that has some, and their number."""
    if isinstance(tag, OneExample):
        whose = tag.order.example_of_row(tensor.device)
        return {int(whose[tag.place]): (tensor, 1)}
    assert isinstance(tag, ExampleRows)
    whose = tag.layout.example_of_row(tensor.device)
    assert len(whose) == tensor.shape[tag.dim], "a layout of another length"
    found = {}
    for example in set(whose.tolist()):
        (places,) = (whose == example).nonzero(as_tuple=True)
        found[example] = tensor.index_select(tag.dim, places), len(places)
    return found


def _close(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape:
        return False
    return torch.allclose(one.double(), other.double(), rtol=1e-4, atol=1e-5, equal_nan=True)


def shrunk(program: Program, pair: Pair) -> Program:
    """The program without the steps that a wrong tag doesn't need."""
    given = len(pair.both[0]) + len(constants(3))
    for place in reversed(range(len(program))):
        later = program[place + 1 :]
        if any(given + place in step.sources for step in later):
            continue
        moved = tuple(
            Step(
                step.operation,
                tuple(source - (source > given + place) for source in step.sources),
                step.choice,
            )
            for step in later
        )
        fewer = program[:place] + moved
        if wrong_tag(fewer, pair) is not None:
            program = fewer
    return program


NAMES = ["features", "table", "index", "indices", "mask", "column", "kinds"]
CONSTANTS = [
    *("arange", "zeros", "zeros4", "zeros3", "ones", "trues", "places", "four_zeros", "two"),
    *("four", "twelve"),
]


def written(program: Program) -> str:
    """A program as lines of code."""
    names = NAMES + [f"{name}()" for name in CONSTANTS]
    lines = []
    for place, step in enumerate(program):
        names.append(f"t{place}")
        sources = ", ".join(names[one] for one in step.sources)
        choice = "" if step.choice is None else f"; {step.choice}"
        lines.append(f"t{place} = {step.operation.name}({sources}{choice})")
    return "; ".join(lines)


def programs(seed: int, most: int = 8) -> Iterator[tuple[Program, Pair]]:
    """Endless random programs, each with two batches that differ in one example."""
    choice, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    while True:
        number = choice.choice([3, 4, 4, 5])
        data, made_up = batch(generator, number), batch(generator, number)
        pair = choice.choice([replaced, removed])(choice, data, made_up)
        yield grown(choice, data, choice.randint(3, most)), pair
