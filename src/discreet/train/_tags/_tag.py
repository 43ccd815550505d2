"""Where examples are in a tensor: the kinds of tags.

`ExampleRows` states along which dimension examples lie, and which example each row belongs to. With
`OneExample` the whole tensor belongs to one example. `UntrackedRows` names the function after which
this is not known. Tensors that depend on no example have no tag.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from discreet.train._tags._layouts import ExampleOrder, RowLayout


@dataclass(frozen=True, slots=True)
class ExampleRows:
    """Examples lie along one dimension, in this layout."""

    dim: int
    layout: RowLayout

    def at(self, dim: int) -> "ExampleRows":
        return self if dim == self.dim else ExampleRows(dim, self.layout)


@dataclass(frozen=True, slots=True)
class OneExample:
    """The whole tensor belongs to one example: the one in this place of the order."""

    order: ExampleOrder
    place: int


@dataclass(frozen=True, slots=True)
class UntrackedRows:
    """The parts of the result of a function, named ``by``, can't be credited to examples.

    A loop over the places of all nonzero entries, such as over the experts that have rows, is a
    decision of Python's: each of its places counts as a number that depends on no data.

    Attributes:
        by: the function's name.
        mend: what to do instead, if that is known.
        has_places: whether these are the places of all nonzero entries.
        is_place: whether this is one of these places, in a loop over all of them.
    """

    by: str
    has_places: bool = False
    is_place: bool = False
    mend: str = ""


@dataclass(frozen=True, slots=True)
class OutsideBatch:
    """The tensor is no parameter, and no recorded call computed it from the batch."""


Tag = ExampleRows | OneExample | UntrackedRows | OutsideBatch
OUTSIDE_BATCH = OutsideBatch()
PACKING = UntrackedRows("packing")  # of the numbers of sequences that reach each step


def refitted(
    rows: ExampleRows, before: tuple[int, ...], after: tuple[int, ...]
) -> ExampleRows | None:
    """The tag after a reshape from ``before`` to ``after``, or None if that splits examples.

    A dimension of the new shape fits if the numbers of entries before and behind the old one are
    multiples of those before and behind it. The number of examples decides only if it is 0 or 1.
    """
    layout = rows.layout
    ahead = prod(before[: rows.dim]) * layout.outer
    behind = prod(before[rows.dim + 1 :]) * layout.inner
    found = []
    for dim, size in enumerate(after):
        outer, rest = prod(after[:dim]), prod(after[dim + 1 :])
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
        if isinstance(tag, UntrackedRows):
            return tag
        if isinstance(tag, OutsideBatch):
            found = found or tag
            continue
        moved = tag.at(tag.dim - own + rank) if isinstance(tag, ExampleRows) else tag
        if found is None or isinstance(found, OutsideBatch):
            found = moved
        elif found != moved:
            return UntrackedRows("a function of rows of different examples")
    return found
