"""Random numbers that depend on no data, and the example to which each of them belongs.

Numbers may be drawn for all examples at once, as by ``torch.rand(len(x))``, or for a weight that
was repeated for each example. Such a draw has no tag until it meets rows of examples. Where it
first meets them, each of its rows becomes that of one example. From then on the draw counts as
data, and so does all that was computed from it. So no two examples use one number, and the numbers
of the others have the same law if one of them leaves the batch (docs/proofs/training.md). Draws
that all examples share can't become rows of single ones.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from discreet.train._tags._layouts import ExampleOrder, RowLayout
from discreet.train._tags._tag import ExampleRows, OneExample, Tag

DrawnPart = tuple[int, str]  # the identity of a tensor, and which part of it
IsEven = Callable[[ExampleRows], bool]


class TagStore(Protocol):
    """Where the tags of tensors are set and read."""

    def of(self, tensor: Tensor) -> Tag | None:
        """The tag of a tensor."""
        ...

    def depends(self, tensor: Tensor) -> bool:
        """Whether a tensor depends on examples, or may."""
        ...

    def set(self, tensor: Tensor, tag: Tag) -> None:
        """Set the tag of a tensor."""
        ...

    def unset(self, tensor: Tensor) -> None:
        """Remove the tag of a tensor."""
        ...


@dataclass(frozen=True, slots=True)
class _DrawStep:
    """A call that made or changed draws: its results and arguments, and how tags follow it."""

    results: list[Tensor]
    given: list[Tensor]
    follow: Callable[[], None]


class Draws:
    """The draws of one forward pass that have not met rows of examples."""

    def __init__(self, tags: TagStore, release: Callable[[Tensor], object]) -> None:
        """``release`` makes a tensor no longer count as the same for all data."""
        self._tags, self._release = tags, release
        self._tensors: dict[int, Tensor] = {}  # by identity: draws, and what derives from them
        self._sources: dict[int, dict[int, Tensor]] = {}  # of each of them: the draws themselves
        self._is_even: dict[int, IsEven] = {}  # of each draw: whether its rows have one law
        self._steps: list[_DrawStep] = []
        self._users: dict[int, set[OneExample] | None] = {}  # of draws in common; None: all
        self._parts: dict[
            int, frozenset[DrawnPart]
        ] = {}  # of tensors: the parts from which they derive
        self._users_of_parts: dict[int, dict[frozenset[DrawnPart], set[OneExample]]] = {}
        self._credited: dict[int, Tensor] = {}  # draws whose rows are those of single examples
        self._is_trying = False
        self.are_divided = False  # one draw was used by each example and in common

    def __bool__(self) -> bool:
        return bool(self._tensors)

    def has(self, tensor: Tensor) -> bool:
        """Whether a tensor derives from draws that have not met rows of examples."""
        return id(tensor) in self._tensors

    def note(
        self,
        results: list[Tensor],
        given: list[Tensor],
        follow: Callable[[], None],
        is_even: IsEven | None = None,
        *,
        parts: list[str] | None = None,
    ) -> None:
        """Record the results of a call without data that has draws among its arguments, or that
        draws. ``follow`` tags the results by the tags of the arguments. ``is_even`` says of rows
        of the first result whether they are drawn independently, by the same law; None: it draws
        nothing. ``parts`` names the part of the first argument that each result is, if any."""
        several = {key: one for each in given for key, one in self._sources_of(each).items()}
        if is_even is not None and results:
            drawn = results[0]
            earlier = self._is_even.get(id(drawn))
            self._is_even[id(drawn)] = is_even if earlier is None else _both(earlier, is_even)
            several |= {id(drawn): drawn}
        if not several:
            return
        before = frozenset().union(*(self._parts.get(id(each), ()) for each in given))
        for number, each in enumerate(results):
            self._sources[id(each)] = several
            self._tensors[id(each)] = each
            own = {(id(given[0]), parts[number])} if parts else set()
            self._parts[id(each)] = before | own
        self._steps.append(_DrawStep(results, given, follow))

    def share(self, tensor: Tensor, user: OneExample | None = None) -> None:
        """Record that one example, or all, may use all numbers from which a tensor derives."""
        for key in self._sources_of(tensor):
            self.are_divided |= key in self._credited
            users = self._users.setdefault(key, set())
            if user is None or users is None:
                self._users[key] = None
            else:
                users.add(user)
                by_part = self._users_of_parts.setdefault(key, {})
                by_part.setdefault(self._parts.get(id(tensor), frozenset()), set()).add(user)

    @property
    def are_in_common(self) -> bool:
        """Whether several examples use the same numbers."""
        return any(users is None or len(users) > 1 for users in self._users.values())

    def note_change(self, changed: Tensor, views: Iterable[Tensor]) -> None:
        """Record that a tensor was changed in place. No step follows the draws in its views, unless
        they have the same entries."""
        for each in views:
            if each is changed or not (self.has(changed) or self.has(each)):
                continue
            if self.has(changed) and _is_same_view(changed, each):
                self._note_same(each, changed)
            else:
                self.share(changed)
                self.share(each)

    def _note_same(self, view: Tensor, changed: Tensor) -> None:
        def follow() -> None:
            if (tag := self._tags.of(changed)) is not None:
                self._tags.set(view, tag)

        self._tensors[id(view)] = view
        self._sources[id(view)] = self._sources_of(view) | self._sources_of(changed)
        self._steps.append(_DrawStep([view], [changed], follow))

    @property
    def are_used_by_some(self) -> bool:
        """Whether a draw, or a part of it, is used by several examples, but not by all."""
        for key, users in self._users.items():
            if users is not None and len(users) > 1:
                size = next(iter(users)).order.size
                if any(len(some) < size for some in self._users_of_parts[key].values()):
                    return True
        return False

    def credit(self, tensor: Tensor, wanted: ExampleRows | OneExample) -> bool:
        """Make rows of draws those of single examples, so that this tensor has the wanted tag.

        Draws from which it derives, but that don't become rows, are in common. Returns whether that
        is possible; otherwise nothing changes.
        """
        is_outermost, self._is_trying = not self._is_trying, True
        try:
            found = any(
                self._try(source, tag, tensor, wanted)
                for source in self._sources_of(tensor).values()
                for tag in _candidates(source, wanted)
            )
        finally:
            self._is_trying = not is_outermost
        if found and is_outermost:
            self._release_credited(wanted)
        return found

    def _try(self, source: Tensor, tag: ExampleRows, tensor: Tensor, wanted: Tag) -> bool:
        """Tag a draw and all tensors that derive from it, or from other draws in them."""
        if id(source) in self._users or self._tags.of(source) is not None:
            return False
        before = [(one, self._tags.of(one)) for one in self._tensors.values()]
        if self._is_even[id(source)](tag):
            self._tags.set(source, tag)
            for step in self._steps:
                if any(map(self._tags.depends, step.given)):
                    step.follow()
            is_used = any(
                self._tags.of(one) for key, one in self._own_draws() if key in self._users
            )
            if self._tags.of(tensor) == wanted and not is_used:
                return True
        for one, old in before:
            if old is None:
                self._tags.unset(one)
            else:
                self._tags.set(one, old)
        return False

    def _own_draws(self) -> Iterator[tuple[int, Tensor]]:
        """The draws themselves."""
        return ((key, self._tensors[key]) for key in self._is_even if key in self._tensors)

    def _release_credited(self, wanted: ExampleRows | OneExample) -> None:
        """Draws with a tag count as data; those that derive from others too put these in common."""
        tagged = {k: one for k, one in self._tensors.items() if self._tags.of(one) is not None}
        self._credited |= {key: one for key, one in self._own_draws() if key in tagged}
        for key in tagged:
            for other, draw in self._sources[key].items():
                if other not in self._credited:
                    self.share(draw, wanted if isinstance(wanted, OneExample) else None)
        for key, one in tagged.items():
            del self._tensors[key], self._sources[key]
            self._release(one)

    def _sources_of(self, tensor: Tensor) -> dict[int, Tensor]:
        return self._sources.get(id(tensor), {})


def _is_same_view(one: Tensor, other: Tensor) -> bool:
    """Whether tensors of one memory have the same entries."""
    places = [(each.shape, each.stride(), each.storage_offset()) for each in (one, other)]
    return places[0] == places[1] and one.dtype == other.dtype


def _both(one: IsEven, other: IsEven) -> IsEven:
    """For a draw that was drawn into again."""
    return lambda rows: one(rows) and other(rows)


def _candidates(source: Tensor, wanted: ExampleRows | OneExample) -> Iterator[ExampleRows]:
    """The tags that a draw may have: examples along each dimension with rows for all of them."""
    order = wanted.layout.order if isinstance(wanted, ExampleRows) else wanted.order
    for dim, length in enumerate(source.shape):
        for layout in _layouts(order, length):
            yield ExampleRows(dim, layout)


def _layouts(order: ExampleOrder, length: int) -> Iterator[RowLayout]:
    """All layouts of this length: each example ``inner`` times, in one round or several."""
    rows = length // order.size if order.size and length % order.size == 0 else 0
    for inner in range(1, rows + 1):
        if rows % inner == 0:
            yield RowLayout(order, rows // inner, inner)
