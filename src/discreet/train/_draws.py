"""Random numbers that depend on no data, and the example to which each of them belongs.

Numbers may be drawn for all examples at once, as by ``torch.rand(len(x))``. Such a draw has no tag
until it meets rows of examples. Where it first meets them, each of its rows becomes that of one
example. From then on the draw counts as data, and so does all that was computed from it. So no two
examples use one number, and the numbers of the others have the same law if one of them leaves the
batch (docs/proofs/training.md). Draws that all examples share can't become rows of single ones.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from discreet.train._layouts import ExampleOrder, RowLayout
from discreet.train._tag import ExampleRows, OneExample, Tag


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
        self._steps: list[_DrawStep] = []
        self._users: dict[int, set[OneExample] | None] = {}  # of draws in common; None: all
        self._is_trying = False
        self._has_shared_weights = False

    def __bool__(self) -> bool:
        return bool(self._tensors)

    def has(self, tensor: Tensor) -> bool:
        """Whether a tensor derives from draws that have not met rows of examples."""
        return id(tensor) in self._tensors

    def note(
        self, results: list[Tensor], given: list[Tensor], follow: Callable[[], None], *, draws: bool
    ) -> None:
        """Record the results of a call without data that ``draws``, or has draws among its
        arguments. ``follow`` tags the results by the tags of the arguments."""
        several = {key: one for each in given for key, one in self._sources_of(each).items()}
        if not several and not draws:
            return
        for each in results:
            self._sources[id(each)] = several or {id(each): each}
            self._tensors[id(each)] = each
        self._steps.append(_DrawStep(results, given, follow))

    def share(self, tensor: Tensor, user: OneExample | None = None) -> None:
        """Record that one example, or all, may use all numbers from which a tensor derives."""
        for key in self._sources_of(tensor):
            users = self._users.setdefault(key, set())
            if user is None or users is None:
                self._users[key] = None
            else:
                users.add(user)

    def note_of_weights(self) -> None:
        """Record a draw whose numbers are those of weights, which all examples use."""
        self._has_shared_weights = True

    @property
    def are_in_common(self) -> bool:
        """Whether several examples use the same numbers."""
        return self._has_shared_weights or any(
            users is None or len(users) > 1 for users in self._users.values()
        )

    def note_change(self, changed: Tensor, views: Iterable[Tensor]) -> None:
        """Record that a tensor was changed in place. No step follows the draws in its views."""
        for each in views:
            if each is not changed:
                self.share(changed)
                self.share(each)

    @property
    def are_used_by_some(self) -> bool:
        """Whether several examples, but not all of their order, use some draw."""
        several = [[*users] for users in self._users.values() if users is not None]
        return any(1 < len(users) < users[0].order.size for users in several)

    def credit(self, tensor: Tensor, wanted: ExampleRows | OneExample) -> bool:
        """Make rows of draws those of single examples, so that this tensor has the wanted tag.

        Returns whether that is possible; otherwise nothing changes.
        """
        sources = self._sources_of(tensor)
        if sources.keys() & self._users.keys():
            return False
        is_outermost, self._is_trying = not self._is_trying, True
        try:
            found = any(
                self._try(source, tag, tensor, wanted)
                for source in sources.values()
                for tag in _candidates(source, wanted)
            )
        finally:
            self._is_trying = not is_outermost
        if found and is_outermost:
            self._release_credited()
        return found

    def _try(self, source: Tensor, tag: Tag, tensor: Tensor, wanted: Tag) -> bool:
        """Tag a draw and what derives from it, also from draws that it meets there."""
        before = [(one, self._tags.of(one)) for one in self._tensors.values()]
        self._tags.set(source, tag)
        for step in self._steps:
            if any(map(self._tags.depends, step.given)):
                step.follow()
        if self._tags.of(tensor) == wanted:
            return True
        for one, old in before:
            if old is None:
                self._tags.unset(one)
            else:
                self._tags.set(one, old)
        return False

    def _release_credited(self) -> None:
        for key, one in list(self._tensors.items()):
            if self._tags.of(one) is not None:
                del self._tensors[key], self._sources[key]
                self._release(one)

    def _sources_of(self, tensor: Tensor) -> dict[int, Tensor]:
        return self._sources.get(id(tensor), {})


def _candidates(source: Tensor, wanted: ExampleRows | OneExample) -> Iterator[Tag]:
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
