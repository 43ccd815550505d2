"""A ledger as a text file of JSON lines, which is verified without a database.

Each line is one entry with everything that its digest covers, in canonical JSON. The last line has
the number of entries and the digest of the last one, so that a file that was cut short is refused.
"""

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from discreet._budget import AnyLimit
from discreet._unit import Unit
from discreet.errors import AnchorDiffers, LedgerDamaged, LedgerError
from discreet.ledger import _chain, _entries
from discreet.ledger._addresses import anchor_at
from discreet.ledger._anchor import AnchorMark
from discreet.ledger._canonical import canonical
from discreet.ledger._entries import ROOT, Row
from discreet.ledger._facts import Link, Opening
from discreet.ledger._sqlite import as_path, sync_folder

EXPORT_FORMAT = 1
_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


@dataclass(frozen=True, slots=True)
class ExportCheck:
    """An export that passed its checks: the unit and limit of its ledger, and the number of its
    entries. ``digest`` is that of the last entry: compare it with one that was noted elsewhere."""

    unit: Unit
    limit: AnyLimit
    entries: int
    digest: str


def write_export(place: Path, links: Iterable[Link]) -> bool:
    """Write these links to a new file that only its owner can read; False if the path is taken."""
    try:
        descriptor = os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return False
    except OSError as mistake:
        raise LedgerError(f"{place} can't be written: {mistake.strerror}") from mistake
    try:
        with os.fdopen(descriptor, "w", encoding="ascii", newline="\n") as file:
            file.writelines(_lines(links))
            file.flush()
            os.fsync(descriptor)
        sync_folder(place.parent)
    except BaseException as mistake:
        with suppress(OSError):
            place.unlink()
        if isinstance(mistake, OSError):
            raise LedgerError(f"{place} can't be written: {mistake.strerror}") from mistake
        raise
    return True


def check_export(
    path: str | os.PathLike[str], *, anchor: str | os.PathLike[str] | None = None
) -> ExportCheck:
    """Check the file that `Ledger.export` wrote, without its ledger.

    Guarantee: each entry follows from those before it, and the sums follow from the charges, as
    `Ledger.verify` checks them. With an ``anchor`` the chain also contains the anchor's mark, so
    that an older export is refused. Not covered: a forger who writes the whole chain anew; compare
    the last digest with one that somebody else noted. Raises `LedgerDamaged`, and `LedgerError` if
    the file can't be read.
    """
    place = as_path(path)
    mark = None if anchor is None else anchor_at(anchor).read()
    found = _ExportReader(mark)
    try:
        with place.open(encoding="ascii", newline="\n") as file:
            _chain.verify(_chain.without_text(link) for link in found.links(file))
    except AnchorDiffers as difference:
        raise AnchorDiffers(f"the export {place} is not whole: {difference}") from difference
    except LedgerDamaged as damage:
        raise LedgerDamaged(f"the export {place} is damaged: {damage}") from damage
    except UnicodeDecodeError as mistake:
        raise LedgerDamaged(f"the export {place} is damaged: it is no text") from mistake
    except OSError as mistake:
        raise LedgerError(f"the export {place} can't be read: {mistake.strerror}") from mistake
    assert found.opening is not None
    limit = found.opening.filter.limit
    return ExportCheck(found.opening.unit, limit, found.entries, found.digest)


class _ExportReader:
    """The entries of an export that were read so far, and the last opening among them."""

    def __init__(self, mark: AnchorMark | None) -> None:
        """Nothing is read; the entries must contain the mark."""
        self.entries, self.digest = 0, ROOT
        self.opening: Opening | None = None
        self._mark, self._is_anchored = mark, mark is None

    def links(self, lines: Iterable[str]) -> Iterator[Link]:
        """Each entry, verified against the one before, up to the last line."""
        is_closed = False
        for line in lines:
            if is_closed:
                raise LedgerDamaged("something follows its last line")
            if line == self._closing:
                is_closed = True
                continue
            link = self._link(line)
            yield link
            self.entries, self.digest = self.entries + 1, link.digest
            self._is_anchored |= AnchorMark.of(link) == self._mark
            self.opening = link.fact if isinstance(link.fact, Opening) else self.opening
        if not is_closed:
            raise LedgerDamaged("its last line is missing, or names other entries")
        if not self._is_anchored:
            raise AnchorDiffers("it is older than its anchor, or of another ledger: export again")

    @property
    def _closing(self) -> str:
        return _closing(self.entries, self.digest)

    def _link(self, line: str) -> Link:
        try:
            values = json.loads(line)
            is_plain = f"{canonical(values)}\n" == line
            row = Row(**{**values, "body": canonical(values["body"])})
        except _UNREADABLE as mistake:
            raise LedgerDamaged(f"line {self.entries + 1} is no entry") from mistake
        if not is_plain or row.number != self.entries:
            raise LedgerDamaged(f"line {self.entries + 1} isn't written as an export writes it")
        return _entries.read(row, self.digest)


def _lines(links: Iterable[Link]) -> Iterator[str]:
    number, previous = 0, ROOT
    for link in links:
        row = _entries.write(
            link.number, link.at, link.fact, link.state, entry_id=link.id, previous=previous
        )
        yield f"{canonical({**asdict(row), 'body': json.loads(row.body)})}\n"
        number, previous = number + 1, row.digest
    yield _closing(number, previous)


def _closing(entries: int, digest: str) -> str:
    values = {"export": EXPORT_FORMAT, "entries": entries, "digest": digest}
    return f"{canonical(values)}\n"
