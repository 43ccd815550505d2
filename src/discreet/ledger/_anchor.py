"""An anchor: the head of a ledger's chain, stored elsewhere, so that an older copy is noticed."""

import fcntl
import json
import os
from collections.abc import Iterator
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

    def advance(self, mark: AnchorMark) -> None:
        """Move forward to this mark, unless another writer has moved further; durable on return."""
        ...


@dataclass(frozen=True, slots=True)
class Anchor:
    """A small file whose mark only moves forward. It helps if an attacker who can restore an
    older ledger can't restore an older anchor, for example on another disk or of another user."""

    path: Path

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
            values = json.loads(self.path.read_text(encoding="ascii"))
            mark = AnchorMark(values["number"], values["digest"])
        except OSError as mistake:
            raise LedgerError(
                f"the anchor {self.path} can't be read: {mistake.strerror}"
            ) from mistake
        except (ValueError, KeyError, TypeError, RecursionError) as mistake:
            raise LedgerDamaged(f"the anchor {self.path} is no anchor: {mistake}") from mistake
        if type(mark.number) is not int or mark.number < 0 or not isinstance(mark.digest, str):
            raise LedgerDamaged(f"the anchor {self.path} is no anchor")
        return mark

    def begin(self, mark: AnchorMark) -> None:
        """Make the file, with this first mark."""
        self.advance(mark)

    def check(self) -> None:
        """Nothing about a file can be checked: whoever may write it may replace it."""

    def advance(self, mark: AnchorMark) -> None:
        """Move forward to this mark, unless another writer has moved further; durable on return."""
        try:
            with self._locked():
                if not self.path.exists() or self.read().number < mark.number:
                    self._replace(canonical({"number": mark.number, "digest": mark.digest}))
        except OSError as mistake:
            raise LedgerError(
                f"the anchor {self.path} can't be written: {mistake.strerror}"
            ) from mistake

    def _replace(self, text: str) -> None:
        draft = self.path.with_name(f".{self.path.name}.new")
        with draft.open("w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.path)
        sync_folder(self.path.parent)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self.path.with_name(f".{self.path.name}.lock").open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            yield
