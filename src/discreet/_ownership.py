"""What belongs to one process alone: rights that were paid for once.

A copy of such an object, made by `copy`, by pickling or by a fork, would use its right once more.
So `Owned` objects refuse to be copied, and work in the process that made them only.

A process is known by more than its number, since a child in a new namespace may have its parent's.
One page of memory holds a random mark, and Linux wipes that page in every child, however it was
made. Where the system can't wipe pages, a fork that Python makes is noticed all the same. A
restored snapshot of a whole machine is not noticed: docs/limits.md says what it means.
"""

import mmap
import os
from contextlib import suppress
from typing import ClassVar, NoReturn

from discreet.errors import Refused

_WIPE_ON_FORK = 18  # MADV_WIPEONFORK of Linux 4.14 and later; Python's mmap has no name for it
_SIZE = 16
_UNMARKED = bytes(_SIZE)


def _page() -> mmap.mmap:
    page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError, ValueError):  # older systems; the handler below has to do there
        page.madvise(_WIPE_ON_FORK)
    return page


_mark = _page()


def _set_mark() -> None:
    _mark[:_SIZE] = os.urandom(_SIZE)


os.register_at_fork(after_in_child=_set_mark)


def process() -> tuple[int, bytes]:
    """What tells this process from every other, its parent and its children included."""
    mark = _mark[:_SIZE]
    if mark == _UNMARKED:
        _set_mark()
        mark = _mark[:_SIZE]
    return os.getpid(), mark


class Owned:
    """Holds a right that was paid for once: of one process, and never copied.

    A class of this kind names itself in ``described`` and calls `check_owner` wherever the right
    is used. `copy.copy`, `copy.deepcopy` and `pickle` raise `Refused`, with the ``advice``.
    """

    __slots__ = ("_owner",)

    described: ClassVar[str] = "this object"
    advice: ClassVar[str] = "use the one there is, or pay for another one"
    _owner: tuple[int, bytes]

    def __new__(cls, *_: object, **__: object) -> "Owned":
        """Note which process makes it."""
        made = super().__new__(cls)
        object.__setattr__(made, "_owner", process())
        return made

    def check_owner(self) -> None:
        """Raise `Refused` in any process but the one that made it."""
        if self._owner != process():
            raise Refused(
                f"{self.described} belongs to the process that made it: use it there, or pay for "
                "another one in this process"
            )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """No copy: it would use what was paid for once more."""
        raise Refused(f"{self.described} can't be copied: it was paid for once; {self.advice}")
