"""Where examples are in a tensor: a tag for each tensor that depends on examples.

`ExampleRows` states along which dimension examples lie, and which example each row belongs to. With
`OneExample` the whole tensor belongs to one example. `UnknownOwners` names the function after which
this is not known. Tensors that depend on no example have no tag. Tags follow from what functions do
(`discreet.train._flow`), never from lengths that happen to agree.
"""

import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExampleOrder:
    """An order of examples. Two orders count as the same only if they are one object.

    Attributes:
        size: the number of places.
        owners: the example of each place, (place,), or None if place i is example i.
        places: the places in the batch, if they depend on no data.
        layout: the layout from which rows were picked, if they were picked.
    """

    size: int
    owners: Tensor | None = None
    places: tuple[int, ...] | None = None
    layout: "RowLayout | None" = None

    def row_owners(self, device: torch.device) -> Tensor:
        """The example of each place: (place,)."""
        if self.owners is None:
            return torch.arange(self.size, device=device)
        return self.owners.to(device)


@dataclass(frozen=True, slots=True)
class RowLayout:
    """The rows of one dimension: all places of an order, each repeated ``inner`` times in a row,
    and the whole repeated ``outer`` times."""

    order: ExampleOrder
    outer: int = 1
    inner: int = 1

    @property
    def length(self) -> int:
        """The length of the dimension."""
        return self.outer * self.order.size * self.inner

    @property
    def is_plain(self) -> bool:
        """Whether row i is example i."""
        return self.order.owners is None and self.outer == self.inner == 1

    def row_owners(self, device: torch.device) -> Tensor:
        """The example of each row: (row,)."""
        each = self.order.row_owners(device)
        return each.repeat_interleave(self.inner).repeat(self.outer)


@dataclass(frozen=True, slots=True)
class ExampleRows:
    """Examples lie along one dimension, in this layout."""

    dim: int
    layout: RowLayout

    def at(self, dim: int) -> "ExampleRows":
        """The same rows along another dimension."""
        return replace(self, dim=dim)


@dataclass(frozen=True, slots=True)
class OneExample:
    """The whole tensor belongs to one example: the one in this place of the order."""

    order: ExampleOrder
    place: int


@dataclass(frozen=True, slots=True)
class UnknownOwners:
    """It is not known which part belongs to which example, since the function ``by`` ran.

    A loop over the places of all nonzero entries, such as over the experts that have rows, is a
    decision of Python's: each of its places counts as a number that depends on no data.

    Attributes:
        by: the function's name.
        has_places: whether these are the places of all nonzero entries.
        is_place: whether this is one of these places, in a loop over all of them.
    """

    by: str
    has_places: bool = False
    is_place: bool = False


@dataclass(frozen=True, slots=True)
class OutsideBatch:
    """Neither a parameter nor, as far as calls show, computed from a tensor of the batch."""


@dataclass(frozen=True, slots=True, eq=False)
class _Version:
    """A tensor, and PyTorch's count of the changes made to it in place."""

    tensor: Tensor
    number: int

    @staticmethod
    def of(tensor: Tensor) -> "_Version":
        """The tensor's present version."""
        return _Version(tensor, tensor._version)  # noqa: SLF001  PyTorch has no public name for it

    def is_now(self) -> bool:
        """Whether the tensor is unchanged."""
        return self.tensor._version == self.number  # noqa: SLF001  as above

    def is_same(self, tensor: Tensor) -> bool:
        """Whether the argument is this tensor, unchanged."""
        return tensor is self.tensor and self.is_now()


Tag = ExampleRows | OneExample | UnknownOwners | OutsideBatch
OUTSIDE_BATCH = OutsideBatch()
_EXACT = (torch.int32, torch.int64)  # smaller types wrap or round, and would count otherwise


class Tags:
    """The tags of one forward pass, by the identity of tensors; tagged tensors may be freed."""

    def __init__(self, examples: int, batch: object, is_shared: Callable[[Tensor], bool]) -> None:
        """Tag the batch's tensors: row i of each is example i.

        If the batch has no tensors, each tensor from outside with a row for each example is taken
        for one of its tensors.
        """
        self._is_shared = is_shared
        self.every = ExampleOrder(examples, places=tuple(range(examples)))
        self.plain = RowLayout(self.every)
        self._found: dict[int, tuple[weakref.ref[Tensor], Tag]] = {}
        self._picks: dict[tuple[int, int, RowLayout], tuple[Tensor, ExampleOrder]] = {}
        self._slices: dict[tuple[RowLayout, tuple[int, int, int]], ExampleOrder] = {}
        self._counts: dict[
            int, tuple[weakref.ref[Tensor], int, int]
        ] = {}  # of 0, 1, 2, ... along a dim
        self._divided: dict[int, tuple[_Version, _Version, int]] = {}  # indices of coarser rows
        self._permutations: dict[int, _Version] = {}
        self._undone: dict[int, tuple[_Version, _Version]] = {}  # inverses of permutations
        roots = list(_tensors_of(batch))
        self.is_strict = bool(roots)
        for root in roots:
            self.set(root, ExampleRows(0, self.plain) if root.dim() else OUTSIDE_BATCH)

    def of(self, tensor: Tensor) -> Tag | None:
        """The tag of a tensor, or None if it does not depend on data."""
        found = self._found.get(id(tensor))
        if found is not None and found[0]() is tensor:
            return found[1]
        if self._is_shared(tensor):
            return None
        if not self.is_strict and tensor.dim() and tensor.shape[0] == self.every.size:
            tag: Tag = ExampleRows(0, self.plain)
            self.set(tensor, tag)
            return tag
        base = tensor._base  # noqa: SLF001  PyTorch has no public name for it
        if base is not None and _is_all_of(tensor, base):  # a custom function returned its input
            found = self._found.get(id(base))
            if found is not None and found[0]() is base:
                return found[1]
        return None

    def set(self, tensor: Tensor, tag: Tag) -> None:
        """Set a tensor's tag; if the tag does not fit its shape, owners are unknown."""
        if isinstance(tag, ExampleRows) and (
            not 0 <= tag.dim < tensor.dim() or tensor.shape[tag.dim] != tag.layout.length
        ):
            tag = UnknownOwners("a change of shape")
        self._found[id(tensor)] = weakref.ref(tensor), tag

    def sharing(self, changed: Tensor) -> list[Tensor]:
        """All other tagged tensors that share memory with this one."""
        memory = changed.untyped_storage()._cdata  # noqa: SLF001  its identity has no other name
        alive = (ref() for ref, _ in [*self._found.values()])
        return [
            each
            for each in alive
            if each is not None
            and each is not changed
            and each.layout == torch.strided
            and each.untyped_storage()._cdata == memory  # noqa: SLF001
        ]

    # Rows that were picked

    def picked(self, layout: RowLayout, index: Tensor, rows: Tensor | None = None) -> ExampleOrder:
        """The order of the rows that an index picks, or that a mask picks at `rows`.

        The same index gives the same order each time.
        """
        divided = self._divided.get(id(index))
        if rows is None and divided is not None and divided[0].is_same(index):
            whole, by = divided[1:]
            if whole.is_now():
                return self.picked(replace(layout, inner=layout.inner * by), whole.tensor)
        key = (id(index), index._version, layout)  # noqa: SLF001  PyTorch has no public name for it
        if key not in self._picks:
            whose = layout.row_owners(index.device)[index if rows is None else rows]
            self.note_picked(layout, index, ExampleOrder(len(whose), whose, layout=layout))
        return self._picks[key][1]

    def note_picked(self, layout: RowLayout, index: Tensor, order: ExampleOrder) -> None:
        """Record the order of the rows that an index picks."""
        self._picks[id(index), index._version, layout] = index, order  # noqa: SLF001  as above

    def put_back(self, order: ExampleOrder, index: Tensor) -> RowLayout | None:
        """The layout from which this index picked the rows of an order, or None."""
        if order.layout is None:
            return None
        known = self._picks.get((id(index), index._version, order.layout))  # noqa: SLF001  as above
        return order.layout if known is not None and known[1] is order else None

    def undone(self, layout: RowLayout, index: Tensor) -> RowLayout | None:
        """The layout before rows were permuted, if this index undoes the permutation."""
        found = self._undone.get(id(index))
        if found is None or not found[0].is_same(index) or layout.outer != 1 or layout.inner != 1:
            return None
        return self.put_back(layout.order, found[1].tensor) if found[1].is_now() else None

    def note_divided(self, index: Tensor, of: Tensor, by: int) -> None:
        """Record that an index is another one divided by ``by``: each of its rows has ``by``
        parts, and the other index counts the parts."""
        self._divided[id(index)] = _Version.of(index), _Version.of(of), by

    def note_inverse(self, index: Tensor, of: Tensor) -> None:
        """Record that an index is the inverse of another one, if that is a permutation."""
        known = self._permutations.get(id(of))
        if known is not None and known.is_same(of):
            self._undone[id(index)] = _Version.of(index), known

    def is_permutation(self, index: Tensor) -> bool:
        """Whether an index is a permutation, the inverse of one, or one of coarser rows."""
        known = self._permutations.get(id(index))
        inverse = self._undone.get(id(index))
        divided = self._divided.get(id(index))
        if known is not None and known.is_same(index):
            return True
        if inverse is not None and inverse[0].is_same(index):
            return True
        if divided is None or not divided[0].is_same(index) or not divided[1].is_now():
            return False
        return self.is_permutation(divided[1].tensor)

    def has_picked(self, layout: RowLayout, index: Tensor) -> bool:
        """Whether it is known from where this index takes rows of this layout."""
        return (id(index), index._version, layout) in self._picks  # noqa: SLF001  as above

    def note_permutation(self, index: Tensor) -> None:
        """Record that an index is a permutation."""
        if index.dtype in _EXACT:
            self._permutations[id(index)] = _Version.of(index)

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
            whose = layout.row_owners(torch.device("cpu"))[start:stop:step]
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
        owners = [one.order.owners for one in layouts if one.order.owners is not None]
        device = owners[0].device if owners else torch.device("cpu")
        whose = torch.cat([one.row_owners(device) for one in layouts])
        return RowLayout(ExampleOrder(len(whose), whose))

    def in_places(self, places: tuple[int, ...]) -> RowLayout:
        """The layout of the examples in these places of the batch."""
        if places == self.every.places:
            return self.plain
        return RowLayout(ExampleOrder(len(places), torch.tensor(places, dtype=torch.int64), places))

    def note_copy(self, tensor: Tensor, copy: object) -> None:
        """Record that a copy counts, or is a permutation, if the tensor does or is."""
        if not isinstance(copy, Tensor) or copy.shape != tensor.shape:
            return
        if (dim := self.counts(tensor)) is not None:
            self.note_count(copy, dim)
        known = self._permutations.get(id(tensor))
        if known is not None and known.is_same(tensor):
            self.note_permutation(copy)

    # Tensors of 0, 1, 2, ...

    def note_count(self, tensor: Tensor, dim: int = 0) -> None:
        """Record that a tensor counts 0, 1, 2, ... along one dimension, and only along that."""
        if tensor.dtype in _EXACT:
            self._counts[id(tensor)] = weakref.ref(tensor), dim, tensor._version  # noqa: SLF001  as above

    def counts(self, tensor: Tensor) -> int | None:
        """The dimension along which a tensor counts 0, 1, 2, ..., or None."""
        found = self._counts.get(id(tensor))
        if found is None or found[0]() is not tensor or found[2] != tensor._version:  # noqa: SLF001
            return None
        return found[1]


def refitted(
    rows: ExampleRows, before: tuple[int, ...], after: tuple[int, ...]
) -> ExampleRows | None:
    """The tag after a reshape from ``before`` to ``after``, or None if that splits examples.

    A dimension of the new shape fits if the numbers of entries before and behind the old one are
    multiples of those before and behind it. The number of examples decides only if it is 0 or 1.
    """
    layout = rows.layout
    ahead = _product(before[: rows.dim]) * layout.outer
    behind = _product(before[rows.dim + 1 :]) * layout.inner
    found = []
    for dim, size in enumerate(after):
        outer, rest = _product(after[:dim]), _product(after[dim + 1 :])
        if not layout.order.size:
            if size == 0:
                inner = behind // rest if rest and behind % rest == 0 else 1
                repeats = ahead // outer if outer and ahead % outer == 0 else 1
                return ExampleRows(dim, RowLayout(layout.order, repeats, inner))
            continue
        if not (outer and rest) or ahead % outer or behind % rest:
            continue
        fitted = RowLayout(layout.order, ahead // outer, behind // rest)
        if fitted.length == size:
            found.append(ExampleRows(dim, fitted))
    return min(found, key=lambda one: (one.layout.inner, one.layout.outer), default=None)


def merged(tags: Iterable[tuple[Tag, int]], rank: int) -> Tag | None:
    """The tag of a result of this rank, from the tags and ranks of the tensors broadcast to it."""
    found: Tag | None = None
    for tag, own in tags:
        if isinstance(tag, UnknownOwners):
            return tag
        if isinstance(tag, OutsideBatch):
            found = found or tag
            continue
        moved = tag.at(tag.dim - own + rank) if isinstance(tag, ExampleRows) else tag
        if found is None or isinstance(found, OutsideBatch):
            found = moved
        elif found != moved:
            return UnknownOwners("a function of rows of different examples")
    return found


def _is_all_of(tensor: Tensor, base: Tensor) -> bool:
    """Whether a view has the shape, strides and offset of its base."""
    if (tensor.shape, tensor.storage_offset()) != (base.shape, base.storage_offset()):
        return False
    return tensor.stride() == base.stride()


def _product(sizes: Iterable[int]) -> int:
    found = 1
    for size in sizes:
        found *= size
    return found


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
    return [one for one in held.values() if isinstance(one, (Tensor, Mapping))]
