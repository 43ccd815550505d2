"""Where examples are in a tensor: a tag for each tensor that data flow through.

`Rows` says along which dimension examples lie, and whose each place is. `Alone` is all one
example's. `Lost` names the function behind which nobody knows. Tensors that depend on no example
have no tag. Tags follow from what functions do (`discreet.train._flow`), never from lengths that
happen to agree.
"""

import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Group:
    """An order of examples; two orders are the same only if they are one object.

    Attributes:
        size: how many places it has.
        owners: each place's example, (place,); none if place i is example i.
        places: which places of the batch they are, where the program's text fixes that.
        layout: the order from which rows were picked, if they were.
    """

    size: int
    owners: Tensor | None = None
    places: tuple[int, ...] | None = None
    layout: "Layout | None" = None

    def whose(self, device: torch.device) -> Tensor:
        """Each place's example: (place,)."""
        if self.owners is None:
            return torch.arange(self.size, device=device)
        return self.owners.to(device)


@dataclass(frozen=True, slots=True)
class Layout:
    """A dimension's places: ``outer`` times over, all places of the group, each ``inner`` times."""

    group: Group
    outer: int = 1
    inner: int = 1

    @property
    def length(self) -> int:
        """Of the dimension."""
        return self.outer * self.group.size * self.inner

    @property
    def is_plain(self) -> bool:
        """Whether row i is example i."""
        return self.group.owners is None and self.outer == self.inner == 1

    def whose(self, device: torch.device) -> Tensor:
        """Each row's example: (row,)."""
        each = self.group.whose(device)
        return each.repeat_interleave(self.inner).repeat(self.outer)


@dataclass(frozen=True, slots=True)
class Rows:
    """Examples lie along one dimension."""

    dim: int
    layout: Layout

    def at(self, dim: int) -> "Rows":
        """The same along another dimension."""
        return replace(self, dim=dim)


@dataclass(frozen=True, slots=True)
class Alone:
    """All of the tensor is of the example in this place of the group."""

    group: Group
    place: int


@dataclass(frozen=True, slots=True)
class Lost:
    """Nobody knows which part is whose, since this was done."""

    by: str


@dataclass(frozen=True, slots=True)
class Outside:
    """It came from none of the batch's tensors, as far as can be seen, and is no parameter."""


@dataclass(frozen=True, slots=True, eq=False)
class _Version:
    """A tensor as it was before any further change in place."""

    tensor: Tensor
    number: int

    @staticmethod
    def of(tensor: Tensor) -> "_Version":
        """As it is now."""
        return _Version(tensor, tensor._version)  # noqa: SLF001  PyTorch has no public name for it

    def is_now(self) -> bool:
        """Whether it is so still."""
        return self.tensor._version == self.number  # noqa: SLF001  as above

    def is_same(self, tensor: Tensor) -> bool:
        """Whether that is this tensor, and it is so still."""
        return tensor is self.tensor and self.is_now()


Tag = Rows | Alone | Lost | Outside
OUTSIDE = Outside()


class Tags:
    """The tags of one forward pass, by identity of tensors, none of which it keeps alive."""

    def __init__(self, examples: int, batch: object, is_shared: Callable[[Tensor], bool]) -> None:
        """With the batch's tensors, whose rows are examples. Without any, each tensor from outside
        that has a row for each example counts as one of them."""
        self._is_shared = is_shared
        self.every = Group(examples, places=tuple(range(examples)))
        self.plain = Layout(self.every)
        self._found: dict[int, tuple[weakref.ref[Tensor], Tag]] = {}
        self._picks: dict[tuple[int, int, Layout], tuple[Tensor, Group]] = {}
        self._slices: dict[tuple[Layout, tuple[int, int, int]], Group] = {}
        self._counts: dict[
            int, tuple[weakref.ref[Tensor], int, int]
        ] = {}  # of 0, 1, 2, ... along a dim
        self._divided: dict[int, tuple[_Version, _Version, int]] = {}  # indices of coarser rows
        self._permutations: dict[int, _Version] = {}
        self._undone: dict[int, tuple[_Version, _Version]] = {}  # inverses of permutations
        roots = list(_tensors_of(batch))
        self.is_strict = bool(roots)
        for root in roots:
            self.set(root, Rows(0, self.plain) if root.dim() else OUTSIDE)

    def of(self, tensor: Tensor) -> Tag | None:
        """The tag of a tensor that is not the same for all data."""
        found = self._found.get(id(tensor))
        if found is not None and found[0]() is tensor:
            return found[1]
        if self._is_shared(tensor):
            return None
        if not self.is_strict and tensor.dim() and tensor.shape[0] == self.every.size:
            tag: Tag = Rows(0, self.plain)
            self.set(tensor, tag)
            return tag
        base = tensor._base  # noqa: SLF001  PyTorch has no public name for it
        if base is not None and _is_all_of(tensor, base):  # what a custom function hands through
            found = self._found.get(id(base))
            if found is not None and found[0]() is base:
                return found[1]
        return None

    def set(self, tensor: Tensor, tag: Tag) -> None:
        """Note a tensor's tag; one that does not fit its shape is lost."""
        if isinstance(tag, Rows) and (
            not 0 <= tag.dim < tensor.dim() or tensor.shape[tag.dim] != tag.layout.length
        ):
            tag = Lost("a change of shape")
        self._found[id(tensor)] = weakref.ref(tensor), tag

    def forget(self, tensor: Tensor) -> None:
        """It has no tag any more, since it is the same for all data."""
        self._found.pop(id(tensor), None)

    def sharing(self, changed: Tensor) -> list[Tensor]:
        """All other tensors with tags in the memory of this one."""
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

    def picked(self, layout: Layout, index: Tensor, rows: Tensor | None = None) -> Group:
        """The order of rows picked by an index, or by a mask's `rows`: the same for one tensor."""
        divided = self._divided.get(id(index))
        if rows is None and divided is not None and divided[0].is_same(index):
            whole, by = divided[1:]
            if whole.is_now():
                return self.picked(replace(layout, inner=layout.inner * by), whole.tensor)
        key = (id(index), index._version, layout)  # noqa: SLF001  PyTorch has no public name for it
        if key not in self._picks:
            whose = layout.whose(index.device)[index if rows is None else rows]
            self.note_picked(layout, index, Group(len(whose), whose, layout=layout))
        return self._picks[key][1]

    def note_picked(self, layout: Layout, index: Tensor, group: Group) -> None:
        """This index picks rows in this order."""
        self._picks[id(index), index._version, layout] = index, group  # noqa: SLF001  as above

    def put_back(self, group: Group, index: Tensor) -> Layout | None:
        """The layout in which rows of this order were, if this index picked them."""
        if group.layout is None:
            return None
        known = self._picks.get((id(index), index._version, group.layout))  # noqa: SLF001  as above
        return group.layout if known is not None and known[1] is group else None

    def undone(self, layout: Layout, index: Tensor) -> Layout | None:
        """The layout before rows were put in order, if this index puts them as they were."""
        found = self._undone.get(id(index))
        if found is None or not found[0].is_same(index) or layout.outer != 1 or layout.inner != 1:
            return None
        return self.put_back(layout.group, found[1].tensor) if found[1].is_now() else None

    def note_divided(self, index: Tensor, of: Tensor, by: int) -> None:
        """One index is another one, divided by a number: places of rows that have so many parts."""
        self._divided[id(index)] = _Version.of(index), _Version.of(of), by

    def note_inverse(self, index: Tensor, of: Tensor) -> None:
        """An index undoes another one, if that is a permutation."""
        known = self._permutations.get(id(of))
        if known is not None and known.is_same(of):
            self._undone[id(index)] = _Version.of(index), known

    def note_permutation(self, index: Tensor) -> None:
        """It has each place once."""
        self._permutations[id(index)] = _Version.of(index)

    def sliced(self, layout: Layout, start: int, stop: int, step: int = 1) -> Layout:
        """Of the rows from start to stop."""
        whole = layout.group.size * layout.inner
        length = max(0, -(-(stop - start) // step))
        if step == 1 and whole and start % whole == 0 and length % whole == 0 and length:
            return replace(layout, outer=length // whole)
        key = layout, (start, stop, step)
        if key not in self._slices:
            known = layout.group.places
            chosen = range(start, stop, step)
            places = known and tuple(known[n // layout.inner % len(known)] for n in chosen)
            whose = layout.whose(torch.device("cpu"))[start:stop:step]
            self._slices[key] = Group(length, whose, places, layout)
        return Layout(self._slices[key])

    def joined(self, layouts: Iterable[Layout]) -> Layout:
        """One after the other."""
        layouts = [*layouts]
        first = layouts[0]
        if all((one.group, one.inner) == (first.group, first.inner) for one in layouts):
            return replace(first, outer=sum(one.outer for one in layouts))
        if all(one.outer == one.inner == 1 and one.group.places is not None for one in layouts):
            places = sum((one.group.places or () for one in layouts), ())
            return self.in_places(places)
        owners = [one.group.owners for one in layouts if one.group.owners is not None]
        device = owners[0].device if owners else torch.device("cpu")
        whose = torch.cat([one.whose(device) for one in layouts])
        return Layout(Group(len(whose), whose))

    def in_places(self, places: tuple[int, ...]) -> Layout:
        """Examples of these places of the batch."""
        if places == self.every.places:
            return self.plain
        return Layout(Group(len(places), torch.tensor(places, dtype=torch.int64), places))

    # Tensors of 0, 1, 2, ...

    def note_count(self, tensor: Tensor, dim: int = 0) -> None:
        """It counts along this dimension, and is the same along all others."""
        self._counts[id(tensor)] = weakref.ref(tensor), dim, tensor._version  # noqa: SLF001  as above

    def counts(self, tensor: Tensor) -> int | None:
        """The dimension along which it counts, if it does."""
        found = self._counts.get(id(tensor))
        if found is None or found[0]() is not tensor or found[2] != tensor._version:  # noqa: SLF001
            return None
        return found[1]


def refitted(rows: Rows, before: tuple[int, ...], after: tuple[int, ...]) -> Rows | None:
    """Where examples are once numbers are read in the same order in another shape.

    With `before` and `after` as products around it, the dimension is found by division alone, so
    that the number of examples decides nothing but where there are none or one.
    """
    layout = rows.layout
    ahead = _product(before[: rows.dim]) * layout.outer
    behind = _product(before[rows.dim + 1 :]) * layout.inner
    found = []
    for dim, size in enumerate(after):
        outer, rest = _product(after[:dim]), _product(after[dim + 1 :])
        if not layout.group.size:
            if size == 0:
                inner = behind // rest if rest and behind % rest == 0 else 1
                repeats = ahead // outer if outer and ahead % outer == 0 else 1
                return Rows(dim, Layout(layout.group, repeats, inner))
            continue
        if not (outer and rest) or ahead % outer or behind % rest:
            continue
        fitted = Layout(layout.group, ahead // outer, behind // rest)
        if fitted.length == size:
            found.append(Rows(dim, fitted))
    return min(found, key=lambda one: (one.layout.inner, one.layout.outer), default=None)


def merged(tags: Iterable[tuple[Tag, int]], rank: int) -> Tag | None:
    """The tag of a result of this rank, made of broadcast tensors: their tags and ranks."""
    found: Tag | None = None
    for tag, own in tags:
        if isinstance(tag, Lost):
            return tag
        if isinstance(tag, Outside):
            found = found or tag
            continue
        moved = tag.at(tag.dim - own + rank) if isinstance(tag, Rows) else tag
        if found is None or isinstance(found, Outside):
            found = moved
        elif found != moved:
            return Lost("a function of rows of different examples")
    return found


def _is_all_of(tensor: Tensor, base: Tensor) -> bool:
    """Whether a view has each number where its base has it."""
    if (tensor.shape, tensor.storage_offset()) != (base.shape, base.storage_offset()):
        return False
    return tensor.stride() == base.stride()


def _product(sizes: Iterable[int]) -> int:
    found = 1
    for size in sizes:
        found *= size
    return found


def _tensors_of(batch: object) -> Iterable[Tensor]:
    """All tensors of a part, whatever holds them."""
    if isinstance(batch, Tensor):
        yield batch
    else:
        for value in _values_in(batch):
            yield from _tensors_of(value)


def _values_in(batch: object) -> Iterable[object]:
    """What a container or an object holds."""
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
