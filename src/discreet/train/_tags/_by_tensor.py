"""Where examples are in a tensor: a tag for each tensor that depends on examples.

`ExampleRows` states along which dimension examples lie, and which example each row belongs to. With
`OneExample` the whole tensor belongs to one example. `UntrackedRows` names the function after which
this is not known. Tensors that depend on no example have no tag. Tags follow from what functions do
(`discreet.train._flow`), never from lengths that happen to agree.
"""

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace

import torch
from torch import Tensor

from discreet.train._tags._draws import Draws
from discreet.train._tags._earlier import (
    References,
    begin_pass,
    note_memory,
    shares_memory,
)
from discreet.train._tags._indices import GroupStage, IndexFacts, inner_of, memory_of
from discreet.train._tags._layouts import ExampleOrder, RowLayout
from discreet.train._tags._tag import (
    OUTSIDE_BATCH,
    ExampleRows,
    OneExample,
    OutsideBatch,
    Tag,
    UntrackedRows,
)


class Tags:
    """The tags of one forward pass, by the identity of tensors; tagged tensors may be freed."""

    def __init__(
        self,
        examples: int,
        batch: object,
        is_shared: Callable[[Tensor], bool],
        release: Callable[[Tensor], object],
    ) -> None:
        """Tag the batch's tensors: row i of each is example i.

        If the batch has no tensors, each tensor from outside with a row for each example is taken
        for one of its tensors.
        """
        self.is_shared = is_shared
        self.every = ExampleOrder(examples, places=tuple(range(examples)))
        self.plain = RowLayout(self.every)
        self.indices = IndexFacts()
        self.draws = Draws(self, release)
        self._found: dict[int, tuple[weakref.ref[Tensor], Tag]] = {}
        # by identity: storages of tensors that depend on examples; they may be freed
        self._storages: References = {}
        self._earlier = begin_pass(self._storages)
        self.leaks = (
            False  # functions that were not intercepted took data; so new tensors may hold data
        )
        self._slices: dict[tuple[RowLayout, tuple[int, int, int]], ExampleOrder] = {}
        roots = list(_tensors_of(batch))
        self.is_strict = bool(roots)
        for root in roots:
            self.set(root, ExampleRows(0, self.plain) if root.dim() else OUTSIDE_BATCH)

    def of(self, tensor: Tensor) -> Tag | None:
        """The tag of a tensor, or None if it does not depend on data."""
        found = self._found.get(id(tensor))
        if found is not None and found[0]() is tensor:
            return found[1]
        if self.is_shared(tensor):
            return None
        if not self.is_strict and tensor.dim() and tensor.shape[0] == self.every.size:
            tag: Tag = ExampleRows(0, self.plain)
            self.set(tensor, tag)
            return tag
        base = tensor._base  # noqa: SLF001  PyTorch has no public name for it
        if base is not None and _is_all_of(tensor, base):  # a custom function returned its input
            return self.of(base)
        if self.is_strict and (self.leaks or self._is_of_data(tensor)):
            return UntrackedRows("a function that is not intercepted")
        if self.is_strict and shares_memory(tensor, self._earlier):
            return UntrackedRows("use of a tensor from an earlier batch")
        return None

    def has(self, tensor: Tensor) -> bool:
        """Whether a tag was set for this very tensor."""
        found = self._found.get(id(tensor))
        return found is not None and found[0]() is tensor

    def set(self, tensor: Tensor, tag: Tag) -> None:
        """Set a tensor's tag; if the tag does not fit its shape, rows are untracked."""
        if isinstance(tag, ExampleRows) and (
            not 0 <= tag.dim < tensor.dim() or tensor.shape[tag.dim] != tag.layout.length
        ):
            tag = UntrackedRows("a change of shape")
        self._found[id(tensor)] = weakref.ref(tensor), tag
        if self.is_strict and not isinstance(tag, OutsideBatch):
            note_memory(tensor, self._storages)

    @contextmanager
    def supposing(self, tags: Mapping[Tensor, Tag]) -> Iterator[None]:
        """Within the block, tensors have these tags."""
        found, storages = self._found, self._storages
        self._found, self._storages = {**found}, {**storages}
        try:
            for tensor, tag in tags.items():
                self.set(tensor, tag)
            yield
        finally:
            self._found, self._storages = found, storages

    def unset(self, tensor: Tensor) -> None:
        """Remove the tag of a tensor."""
        self._found.pop(id(tensor), None)

    def depends(self, tensor: Tensor) -> bool:
        """Whether a tensor depends on examples, or may."""
        return isinstance(self.of(tensor), (ExampleRows, OneExample, UntrackedRows))

    def are_values(self, tensor: Tensor) -> bool:
        """Whether a tensor holds values of examples; a place in a loop over places is none."""
        tag = self.of(tensor)
        is_place = isinstance(tag, UntrackedRows) and tag.is_place
        return not is_place and isinstance(tag, (ExampleRows, OneExample, UntrackedRows))

    def _is_of_data(self, tensor: Tensor) -> bool:
        """Whether an untagged tensor shares memory with one that depends on examples."""
        inner = inner_of(tensor)
        return self.depends(inner) if inner is not tensor else shares_memory(tensor, self._storages)

    def keys_of_groups(self, rows: Tensor, ends: Tensor) -> Tensor | None:
        """The key of each row, sorted, if rows were sorted by keys of their own and these are the
        ends of the keys' groups."""
        tag, groups = self.of(rows), self.indices.groups_of(ends)
        if groups is None or groups.stage is not GroupStage.ENDS:
            return None
        before = tag.layout.order.layout if isinstance(tag, ExampleRows) else None
        if not isinstance(tag, ExampleRows) or before is None:
            return None
        keys, layout = groups.keys.tensor, tag.layout
        order = self.indices.sorting(layout.order, keys)
        is_sorted = order is not None and layout.outer == layout.inner == 1
        is_own = self.of(keys) == ExampleRows(0, before)
        return keys[order] if is_sorted and is_own else None

    def sharing(self, changed: Tensor) -> list[Tensor]:
        """All other tagged tensors that share memory with this one."""
        memory, alive = memory_of(changed), [ref() for ref, _ in self._found.values()]
        return [
            each
            for each in alive
            if each is not None and each is not changed and memory_of(each) == memory
        ]

    def sliced(self, layout: RowLayout, start: int, stop: int, step: int = 1) -> RowLayout:
        """The layout of the rows from start to stop."""
        whole = layout.order.size * layout.inner
        length = max(0, -(-(stop - start) // step))
        if step == 1 and whole and start % whole == 0 and length % whole == 0 and length:
            return replace(layout, outer=length // whole)
        key = layout, (start, stop, step)
        if key not in self._slices:
            known = layout.order.places
            chosen = range(start, stop, step)
            places = known and tuple(known[n // layout.inner % len(known)] for n in chosen)
            whose = layout.example_of_row(torch.device("cpu"))[start:stop:step]
            self._slices[key] = ExampleOrder(length, whose, places, layout)
        return RowLayout(self._slices[key])

    def joined(self, layouts: Iterable[RowLayout]) -> RowLayout:
        """The layout of several tensors' rows, joined in this order."""
        layouts = [*layouts]
        first = layouts[0]
        if all((one.order, one.inner) == (first.order, first.inner) for one in layouts):
            return replace(first, outer=sum(one.outer for one in layouts))
        if all(one.outer == one.inner == 1 and one.order.places is not None for one in layouts):
            places = sum((one.order.places or () for one in layouts), ())
            return self.in_places(places)
        known = [one.order.examples for one in layouts if one.order.examples is not None]
        device = known[0].device if known else torch.device("cpu")
        whose = torch.cat([one.example_of_row(device) for one in layouts])
        return RowLayout(ExampleOrder(len(whose), whose))

    def in_places(self, places: tuple[int, ...]) -> RowLayout:
        """The layout of the examples in these places of the batch."""
        if places == self.every.places:
            return self.plain
        return RowLayout(ExampleOrder(len(places), torch.tensor(places, dtype=torch.int64), places))


def beside(batch: object, rows: Tensor) -> object:
    """The batch with one more tensor of rows of its examples, if it has tensors."""
    return (batch, rows) if any(True for _ in _tensors_of(batch)) else batch


def _is_all_of(tensor: Tensor, base: Tensor) -> bool:
    """Whether a view has the shape, strides and offset of its base."""
    if (tensor.shape, tensor.storage_offset()) != (base.shape, base.storage_offset()):
        return False
    return tensor.stride() == base.stride()


def _tensors_of(batch: object) -> Iterable[Tensor]:
    """All tensors in a microbatch, nested ones too."""
    if isinstance(batch, Tensor):
        yield batch
    else:
        for value in _values_in(batch):
            yield from _tensors_of(value)


def _values_in(batch: object) -> Iterable[object]:
    """The elements of a container, or the attributes of an object that may be tensors."""
    if isinstance(batch, Mapping):
        return batch.values()
    if isinstance(batch, (list, tuple)):
        return batch
    if isinstance(batch, (type, torch.nn.Module)):
        return ()
    if is_dataclass(batch):
        return [getattr(batch, field.name) for field in fields(batch)]
    held = getattr(batch, "__dict__", {})
    return [one for one in held.values() if isinstance(one, (Tensor, Mapping, list, tuple))]
