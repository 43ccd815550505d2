"""A computation that is made ready before the charge, so that nothing public fails after it.

Rows may lie where a file can vanish or a table can change after a `Bounded` was made. Its
computation is then opened before the charge, as a snapshot is, and runs in it afterwards.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Generic, TypeVar

V = TypeVar("V")
W = TypeVar("W")


@dataclass(frozen=True, slots=True)
class StagedComputation(Generic[V]):
    """A function without arguments. ``opened`` makes it ready: it raises where the rows can't be
    read any more, and reads none of them."""

    opened: Callable[[], AbstractContextManager[Callable[[], V]]]

    def __call__(self) -> V:
        with self.opened() as compute:
            return compute()


def opened(compute: Callable[[], V]) -> AbstractContextManager[Callable[[], V]]:
    """The computation made ready; any other function is ready."""
    return compute.opened() if isinstance(compute, StagedComputation) else nullcontext(compute)


def after(compute: Callable[[], V], function: Callable[[V], W]) -> StagedComputation[W]:
    """The function of the computation's result, made ready as the computation is."""

    @contextmanager
    def ready() -> Iterator[Callable[[], W]]:
        with opened(compute) as first:
            yield lambda: function(first())

    return StagedComputation(ready)
