"""Facts about tensors of indices: which rows they picked, and which of them keep every row.

Facts hold until the tensor is changed in place.
"""

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from typing import Generic, TypeVar

import torch
from torch import Tensor

from discreet.train._tags._layouts import ExampleOrder, RowLayout

_MASKS = (torch.bool, torch.uint8)  # types whose tensors pick rows as an index, as by `nonzero`
_EXACT = (torch.int32, torch.int64)  # smaller types wrap or round, and would count otherwise

NO_INDEX = -1  # in place of a mask's dimension: numbers of repetitions pick rows, but are no index

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PlacesOf:
    """The rows of examples that a table of places, (place, dimension), picks.

    Attributes:
        dim: the column that picks rows.
        layout: the layout from which it picks them.
        order: the order of the picked rows.
    """

    dim: int
    layout: RowLayout
    order: ExampleOrder


# the identity of an index, its version, the dimension of a mask that has the rows, their layout
_Pick = tuple[int, int, int, RowLayout]


@dataclass(frozen=True, slots=True, eq=False)
class _Version:
    """A tensor, and PyTorch's count of the changes made to it in place."""

    tensor: Tensor
    number: int

    @staticmethod
    def of(tensor: Tensor) -> "_Version":
        return _Version(tensor, tensor._version)  # noqa: SLF001  PyTorch has no public name for it

    @property
    def is_now(self) -> bool:
        return self.tensor._version == self.number  # noqa: SLF001  as above


class GroupStage(Enum):
    """A stage of grouping: keys of rows, counts of keys, or the ends of groups of rows."""

    ENTRIES = "entries"
    COUNTS = "counts"
    ENDS = "ends"


@dataclass(frozen=True, slots=True, eq=False)
class GroupsOf:
    """A stage on the way from keys, one for each row, to the ends of sorted groups of rows."""

    keys: _Version
    stage: GroupStage

    @staticmethod
    def entries(keys: Tensor) -> "GroupsOf":
        return GroupsOf(_Version.of(keys), GroupStage.ENTRIES)

    def at(self, stage: GroupStage) -> "GroupsOf":
        return replace(self, stage=stage)


class _Facts(Generic[T]):
    """One fact for each tensor, by identity."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[_Version, T]] = {}

    def set(self, tensor: Tensor, fact: T) -> None:
        self._found[id(tensor)] = _Version.of(tensor), fact

    def forget(self, memory: int) -> None:
        """Forget facts about tensors in this memory, and facts that name one of them."""
        for key, (known, fact) in list(self._found.items()):
            several = (known, fact) if isinstance(fact, _Version) else (known,)
            if any(memory_of(one.tensor) == memory for one in several):
                del self._found[key]

    def in_memory(self, memory: int) -> list[int]:
        """The identities of all tensors in this memory that have a fact."""
        return [key for key, (one, _) in self._found.items() if memory_of(one.tensor) == memory]

    def has(self, tensor: Tensor) -> bool:
        found = self._found.get(id(tensor))
        return found is not None and found[0].is_now

    def of(self, tensor: Tensor) -> T | None:
        found = self._found.get(id(tensor))
        return found[1] if found is not None and found[0].is_now else None


class IndexFacts:
    """Facts about the indices of one forward pass."""

    def __init__(self) -> None:
        self._picks: dict[_Pick, tuple[Tensor, ExampleOrder]] = {}
        self._places = _Facts[PlacesOf]()
        self._were_alike: set[int] = set()  # before the current call changed them
        self._before: dict[int, Tensor] = {}  # values of constants that it may change
        self._alike = _Facts[None]()  # tensors that are the same for each example
        self._alike_rows = _Facts[set[int]]()  # dimensions along which all rows are equal
        # a dimension, a length, a step: in each block of this length, rows at this step are equal
        self._alike_blocks = _Facts[set[tuple[int, int, int]]]()
        # of what derives from weights: by dimension, the constants in which alone rows differ
        self._constants_in = _Facts[dict[int, list[tuple[Tensor, int]]]]()
        self._counts = _Facts[int]()  # the dimension along which a tensor counts 0, 1, 2, ...
        self._permutations = _Facts[_Version]()  # the permutation itself
        self._inverses = _Facts[_Version]()  # the permutation that the index undoes
        self._divided = _Facts[tuple[_Version, int]]()  # the finer index, and the parts of its rows
        self._groups = _Facts[GroupsOf]()
        self._sorting = _Facts[_Version]()  # the keys that a permutation sorts
        self._masks: dict[Hashable, tuple[Tensor, ...]] = {}  # a mask, and what it was computed of
        self._first_masks = _Facts[_Version]()  # the mask that an equal one repeats

    def forget(self, changed: Tensor) -> None:
        """Forget the facts about all tensors that share memory with one that was changed.

        Versions don't show it: the result of ``.data`` has a version of its own.
        """
        memory = memory_of(changed)
        self._were_alike.update(self._alike.in_memory(memory))
        for facts in (
            self._places,
            self._alike,
            self._alike_rows,
            self._alike_blocks,
            self._constants_in,
            self._counts,
            self._permutations,
            self._inverses,
            self._divided,
            self._groups,
            self._sorting,
            self._first_masks,
        ):
            facts.forget(memory)
        for key, several in list(self._masks.items()):
            if any(memory_of(one) == memory for one in several):
                del self._masks[key]
        shared = [key for key, (index, _) in self._picks.items() if memory_of(index) == memory]
        for key in shared:
            del self._picks[key]

    # Rows that were picked

    def picked(
        self, layout: RowLayout, index: Tensor, rows: Tensor | None = None, *, within: int = 0
    ) -> ExampleOrder:
        """The order of the rows that an index picks, or that a mask picks at `rows`.

        The same index gives the same order each time, and so does a mask whose dimension
        ``within`` has the rows, or numbers of repetitions (``NO_INDEX``).
        """
        if rows is not None and within >= 0 and index.dtype not in _MASKS:
            within = NO_INDEX - 1 - within  # the nonzero numbers: as an index they pick other rows
        divided, index = self._divided.of(index), self._first(index)
        if rows is None and divided is not None and divided[0].is_now:
            finer, by = divided
            return self.picked(replace(layout, inner=layout.inner * by), finer.tensor)
        key = _key(layout, index, within)
        if key not in self._picks:
            whose = layout.example_of_row(index.device)[index if rows is None else rows]
            self._picks[key] = index, ExampleOrder(len(whose), whose, layout=layout)
        return self._picks[key][1]

    def note_picked(self, layout: RowLayout, index: Tensor, order: ExampleOrder) -> None:
        self._picks[_key(layout, index)] = index, order

    def has_picked(self, layout: RowLayout, index: Tensor) -> bool:
        """Whether it is known from where this index takes rows of this layout."""
        return _key(layout, index) in self._picks

    def note_places(self, table: Tensor, dim: int, layout: RowLayout, order: ExampleOrder) -> None:
        self._places.set(table, PlacesOf(dim, layout, order))

    def places_of(self, table: Tensor) -> PlacesOf | None:
        return self._places.of(table)

    def picks_of(self, index: Tensor) -> list[tuple[RowLayout, ExampleOrder]]:
        """All layouts from which an index picks rows, and the orders of these rows."""
        return [
            (layout, order)
            for (_, version, within, layout), (known, order) in self._picks.items()
            if known is index and version == index._version and within >= 0  # noqa: SLF001  as above
        ]

    def put_back(self, order: ExampleOrder, index: Tensor, *, within: int = 0) -> RowLayout | None:
        """The layout from which this index picked the rows of an order, or None."""
        if order.layout is None:
            return None
        known = self._picks.get(_key(order.layout, self._first(index), within))
        return order.layout if known is not None and known[1] is order else None

    def note_mask(self, mask: Tensor, function: str, args: Sequence[Tensor | float]) -> None:
        """Record of what a mask was computed; the same mask of the same tensors repeats it."""
        given = [self._first(one) if isinstance(one, Tensor) else one for one in args]
        parts = (
            (id(one), one._version) if isinstance(one, Tensor) else (type(one), one)  # noqa: SLF001  as above
            for one in given
        )
        several = mask, *(one for one in given if isinstance(one, Tensor))
        first = self._masks.setdefault((function, *parts), several)[0]
        if first is not mask:
            self._first_masks.set(mask, _Version.of(first))

    def _first(self, index: Tensor) -> Tensor:
        """The mask that this one repeats, or the index itself."""
        found = self._first_masks.of(index)
        return found.tensor if found is not None and found.is_now else index

    # Permutations

    def note_permutation(self, index: Tensor) -> None:
        if index.dtype in _EXACT:
            self._permutations.set(index, _Version.of(index))

    def note_inverse(self, index: Tensor, of: Tensor) -> None:
        """Record that an index is the inverse of another one, if that is a permutation."""
        if (known := self._permutations.of(of)) is not None:
            self._inverses.set(index, known)

    def note_divided(self, index: Tensor, of: Tensor, by: int) -> None:
        """Record that an index is another one divided by ``by``: each of its rows has ``by``
        parts, and the other index counts the parts."""
        self._divided.set(index, (_Version.of(of), by))

    def permutes(self, index: Tensor, length: int) -> bool:
        """Whether an index permutes rows of this number, also as parts of coarser rows."""
        divided = self._divided.of(index)
        if divided is not None and divided[0].is_now:
            return self.permutes(divided[0].tensor, length * divided[1])
        known = self._permutations.of(index), self._inverses.of(index)
        return known != (None, None) and index.numel() == length

    def undone(self, layout: RowLayout, index: Tensor) -> RowLayout | None:
        """The layout before rows were permuted, if this index undoes the permutation."""
        found = self._inverses.of(index)
        if found is None or not found.is_now or layout.outer != 1 or layout.inner != 1:
            return None
        return self.put_back(layout.order, found.tensor)

    # Groups of rows

    def note_groups(self, tensor: Tensor, groups: GroupsOf) -> None:
        self._groups.set(tensor, groups)

    def groups_of(self, tensor: Tensor) -> GroupsOf | None:
        found = self._groups.of(tensor)
        return found if found is not None and found.keys.is_now else None

    def note_sorting(self, order: Tensor, keys: Tensor) -> None:
        """Record that a permutation sorts these keys."""
        self._sorting.set(order, _Version.of(keys))

    def sorting(self, order: ExampleOrder, keys: Tensor) -> Tensor | None:
        """The permutation that picked the rows of an order, if it sorts these keys."""
        for index, known in self._picks.values():
            if known is order and (found := self._sorting.of(index)) is not None:
                return index if found.is_now and found.tensor is keys else None
        return None

    # Constants that are alike everywhere

    def note_alike(self, tensor: Tensor) -> None:
        """Record that all entries of a tensor are equal."""
        self._alike.set(tensor, None)

    def is_alike(self, tensor: Tensor) -> bool:
        """Whether that was recorded, and no call before the current one has changed the tensor."""
        return self._alike.has(tensor) or id(tensor) in self._were_alike

    def note_alike_rows(self, tensor: Tensor, dims: set[int]) -> None:
        """Record that all rows of a tensor along these dimensions are equal."""
        if dims:
            self._alike_rows.set(tensor, dims | (self._alike_rows.of(tensor) or set()))

    def has_alike_rows(self, tensor: Tensor, dim: int) -> bool:
        """Whether all rows along a dimension are equal, by how they were made."""
        is_noted = self._alike.has(tensor) or dim in (self._alike_rows.of(tensor) or ())
        return is_noted or tensor.stride(dim) == 0

    def note_alike_blocks(self, tensor: Tensor, dim: int, layout: RowLayout) -> None:
        """Record that rows of a tensor are equal if this layout gives them to examples as the same
        one of their rows."""
        if layout.inner == 1 and layout.outer == 1:
            self.note_alike_rows(tensor, {dim})
        elif layout.length:
            block = dim, layout.order.size * layout.inner, layout.inner
            self._alike_blocks.set(tensor, {block} | (self._alike_blocks.of(tensor) or set()))

    def alike_blocks(self, tensor: Tensor, dim: int) -> list[RowLayout]:
        """The layouts of these rows along a dimension, each with an order of its own."""
        length = tensor.shape[dim]
        found = [RowLayout(ExampleOrder(length))] if self.has_alike_rows(tensor, dim) else []
        for own, block, step in sorted(self._alike_blocks.of(tensor) or ()):
            if own == dim:
                order = ExampleOrder(block // step)
                found.append(RowLayout(order, length // block, step))
        return found

    def has_alike_blocks(self, tensor: Tensor, dim: int, layout: RowLayout) -> bool:
        """Whether rows along a dimension are the same for each example, by how they were made."""
        if self.has_alike_rows(tensor, dim):
            return True
        rows = layout.order.size * layout.inner  # of all examples, in one round
        return tensor.shape[dim] == layout.length and any(
            own == dim and layout.inner % step == 0 and rows and block % rows == 0
            for own, block, step in self._alike_blocks.of(tensor) or ()
        )

    def note_constants_in(
        self, tensor: Tensor, dim: int, several: list[tuple[Tensor, int]]
    ) -> None:
        """Record that rows of a tensor, which derives from weights, are made alike of equal rows
        and of these constants, each along a dimension of its own."""
        copies = [(one.detach().clone(), own) for one, own in several]
        self._constants_in.set(tensor, {**(self._constants_in.of(tensor) or {}), dim: copies})

    def constants_in(self, tensor: Tensor, dim: int) -> list[tuple[Tensor, int]] | None:
        """The values of these constants when the tensor was made, and their dimensions, or None."""
        return (self._constants_in.of(tensor) or {}).get(dim)

    @contextmanager
    def as_then(self, were_alike: list[Tensor]) -> Iterator[None]:
        """Take tensors for alike within the block, as they were at an earlier call."""
        now = self._were_alike
        self._were_alike = now | {id(one) for one in were_alike}
        try:
            yield
        finally:
            self._were_alike = now

    def note_before(self, tensor: Tensor) -> None:
        """Keep the values of a constant that the current call may change."""
        if not self.is_alike(tensor):
            before = tensor.detach().clone()
            self._before[id(tensor)] = before.requires_grad_(tensor.requires_grad)

    def before(self, tensor: Tensor) -> Tensor:
        """The values of a constant before the current call."""
        return self._before.get(id(tensor), tensor)

    def was_trained(self, tensor: Tensor) -> bool:
        """Whether a tensor without a tag derived from trained weights before the current call."""
        return self.before(tensor).requires_grad

    def end_call(self) -> None:
        """Note that the current call, which changed a tensor, has been followed."""
        self._were_alike, self._before = set(), {}

    # Tensors of 0, 1, 2, ...

    def note_count(self, tensor: Tensor, dim: int = 0) -> None:
        """Record that a tensor counts 0, 1, 2, ... along one dimension, and only along that."""
        if tensor.dtype in _EXACT:
            self._counts.set(tensor, dim)

    def counts(self, tensor: Tensor) -> int | None:
        """The dimension along which a tensor counts 0, 1, 2, ..., or None."""
        return self._counts.of(tensor)

    def note_copy(self, tensor: Tensor, copy: object) -> None:
        """Record that a copy counts, permutes or picks rows, if the tensor does."""
        if not isinstance(copy, Tensor) or copy.shape != tensor.shape:
            return
        if (dim := self.counts(tensor)) is not None:
            self.note_count(copy, dim)
        if self._permutations.of(tensor) is not None:
            self.note_permutation(copy)
        if copy.dtype == tensor.dtype:
            for layout, order in self.picks_of(tensor) if copy is not tensor else ():
                self.note_picked(layout, copy, order)


def _key(layout: RowLayout, index: Tensor, within: int = 0) -> "_Pick":
    return id(index), index._version, within, layout  # noqa: SLF001  as above


def memory_of(tensor: Tensor) -> int:
    """An identifier of a tensor's memory, the same for all its views."""
    storage = storage_of(tensor)
    found: int = id(tensor) if storage is None else storage._cdata  # noqa: SLF001  no other name
    return found


def storage_of(tensor: Tensor) -> torch.UntypedStorage | None:
    """A tensor's memory, or None if it has none of its own, such as a sparse one."""
    try:
        return tensor.untyped_storage()
    except RuntimeError:
        return None


def inner_of(tensor: Tensor) -> Tensor:
    """The tensor within the wrappers of torch.func."""
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):  # noqa: SLF001  no other name
        tensor = torch._C._functorch.get_unwrapped(tensor)  # noqa: SLF001  as above
    return tensor
