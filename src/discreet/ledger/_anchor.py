"""An anchor: the head of a ledger's chain, stored elsewhere, so that an older copy is noticed."""

import fcntl
import json
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from discreet.errors import LedgerDamaged, LedgerError
from discreet.ledger._canonical import canonical
from discreet.ledger._facts import Link
from discreet.ledger._sqlite import sync_folder


@dataclass(frozen=True, slots=True)
class AnchorMark:
    """The number and digest of a link that the chain must contain."""

    number: int
    digest: str

    @staticmethod
    def of(link: Link) -> "AnchorMark":
        """The mark of a link."""
        return AnchorMark(link.number, link.digest)


class AnchorPlace(Protocol):
    """A place that has one mark, which only moves forward."""

    @property
    def is_made(self) -> bool:
        """Whether the anchor is there, or something else in its way."""
        ...

    @property
    def address(self) -> str:
        """The text that opens the anchor again."""
        ...

    def begin(self, mark: AnchorMark) -> None:
        """Make the anchor, with this first mark."""
        ...

    def check(self) -> None:
        """Raise if the mark might move back."""
        ...

    def read(self) -> AnchorMark:
        """The mark, which the chain must contain."""
        ...

    def movable(self) -> AnchorMark:
        """The mark, as `read`; raises if it could not be moved, as far as can be seen before.

        An entry whose mark can't be written is paid in vain.
        """
        ...

    def advance(self, mark: AnchorMark, known: Collection[AnchorMark]) -> AnchorMark:
        """Move forward to this mark, durably, if the mark that is there is an earlier one of the
        ``known`` marks; return the mark that is there then.

        No other writer moves the anchor between the look and the move: another copy of the ledger
        may go on at the same time, whose mark must not be overwritten.
        """
        ...

    def is_passing(self, failure: Exception) -> bool:
        """Whether what failed in this way may succeed if it is tried again."""
        ...


@dataclass(frozen=True, slots=True)
class Anchor:
    """A small file whose mark only moves forward. It helps if an attacker who can restore an
    older ledger can't restore an older anchor, for example on another disk or of another user.

    The path leads through no link: a new file takes the place of the old one, and must not take the
    place of a link to it.
    """

    path: Path

    @staticmethod
    def at(path: Path) -> "Anchor":
        """The anchor in the file that a path leads to, through links of files and folders."""
        return Anchor(Path(os.path.realpath(path)))

    @property
    def address(self) -> str:
        """The path as text."""
        return str(self.path)

    @property
    def is_made(self) -> bool:
        """Whether the file is there, or another one in its way."""
        return os.path.exists(self.path)  # noqa: PTH110  # never an OSError

    def read(self) -> AnchorMark:
        """The mark, which the chain must contain."""
        try:
            with open(self.path, encoding="ascii", opener=_open_no_link) as file:
                names = os.fstat(file.fileno()).st_nlink
                values = json.loads(file.read())
            mark = AnchorMark(values["number"], values["digest"])
        except OSError as mistake:
            raise LedgerError(
                f"the anchor {self.path} can't be read: {mistake.strerror}"
            ) from mistake
        except (ValueError, KeyError, TypeError, RecursionError) as mistake:
            raise LedgerDamaged(f"the anchor {self.path} is no anchor: {mistake}") from mistake
        if type(mark.number) is not int or mark.number < 0 or not isinstance(mark.digest, str):
            raise LedgerDamaged(f"the anchor {self.path} is no anchor")
        if names > 1:
            raise LedgerError(
                f"the anchor {self.path} is one file with {names} names (hard links): a mark that "
                "moves under one of them stays behind under the others, so that two copies of the "
                "ledger could both go on; remove the other names"
            )
        return mark

    def begin(self, mark: AnchorMark) -> None:
        """Make the file, with this first mark, unless another opening made it meanwhile."""
        with self._locked():
            if not os.path.lexists(self.path):
                self._replace(mark)

    def check(self) -> None:
        """Nothing about a file can be checked: whoever may write it may replace it."""

    def movable(self) -> AnchorMark:
        """The mark, after a draft like that of its next move was written."""
        with self._locked():
            mark = self.read()
            self._draft.write_text(_content(mark), encoding="ascii")
            self._draft.unlink()
        return mark

    def advance(self, mark: AnchorMark, known: Collection[AnchorMark]) -> AnchorMark:
        """Move forward to this mark, as `AnchorPlace` says."""
        with self._locked():
            there = self.read()
            if there not in known or there.number >= mark.number:
                return there
            self._replace(mark)
        return mark

    def is_passing(self, failure: Exception) -> bool:  # noqa: ARG002  # as `AnchorPlace` says
        """Whether it may succeed if it is tried again: never, since the lock was waited for."""
        return False

    def _replace(self, mark: AnchorMark) -> None:
        with self._draft.open("w", encoding="ascii") as file:
            file.write(_content(mark))
            file.flush()
            os.fsync(file.fileno())
        self._draft.replace(self.path)
        sync_folder(self.path.parent)

    @property
    def _draft(self) -> Path:
        return self.path.with_name(f".{self.path.name}.new")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """The turn to write the file."""
        try:
            with self.path.with_name(f".{self.path.name}.lock").open("w") as turn:
                fcntl.flock(turn, fcntl.LOCK_EX)
                yield
        except OSError as mistake:
            raise LedgerError(
                f"the anchor {self.path} can't be written: {mistake.strerror}"
            ) from mistake


def _content(mark: AnchorMark) -> str:
    return canonical({"number": mark.number, "digest": mark.digest})


def _open_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW)
