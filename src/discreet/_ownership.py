"""Objects that belong to one process, since they carry a right that was paid for once.

A copy of such an object, made by `copy`, by pickling or by a fork, would use its right again. So
`Owned` objects can't be copied, and only work in the process that made them.

A process is identified by more than its number, since a child in a new namespace may have the same
number as its parent. One page of memory holds a random mark, which Linux wipes in every child,
however it was made. Where the system can't wipe pages, a fork by Python is still noticed. A
restored snapshot of a whole machine is not noticed; docs/limits.md says what that means.
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
    with suppress(OSError, ValueError):  # older systems; the fork handler below must suffice
        page.madvise(_WIPE_ON_FORK)
    return page


_mark = _page()


def _set_mark() -> None:
    _mark[:_SIZE] = os.urandom(_SIZE)


os.register_at_fork(after_in_child=_set_mark)


def process() -> tuple[int, bytes]:
    """The identity of this process, different from that of its parent and its children."""
    mark = _mark[:_SIZE]
    if mark == _UNMARKED:
        _set_mark()
        mark = _mark[:_SIZE]
    return os.getpid(), mark


class Owned:
    """A base for objects with a right that was paid for once, in one process and never copied.

    A subclass names itself in ``described`` and calls `check_process` before each use of the right.
    `copy.copy`, `copy.deepcopy` and `pickle` raise `Refused`, with the ``advice``.
    """

    __slots__ = ("_owner",)

    described: ClassVar[str] = "this object"
    advice: ClassVar[str] = "use the one there is, or pay for another one"
    _owner: tuple[int, bytes]

    def __new__(cls, *_: object, **__: object) -> "Owned":
        """Record the process that makes it."""
        made = super().__new__(cls)
        object.__setattr__(made, "_owner", process())
        return made

    def check_process(self) -> None:
        """Raise `Refused` in any process but the one that made it."""
        if self._owner != process():
            raise Refused(
                f"{self.described} belongs to the process that made it: use it there, or pay for "
                "another one in this process"
            )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to copy: a copy would use the right again."""
        raise Refused(f"{self.described} can't be copied: it was paid for once; {self.advice}")
