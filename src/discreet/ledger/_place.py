"""The place of a declared ledger: its file or address, its anchor and the owner's log."""

from dataclasses import dataclass, replace
from pathlib import Path

from discreet._budget import AnyLimit
from discreet._unit import Unit
from discreet.errors import InvalidArgument
from discreet.ledger._addresses import (
    address_identity,
    has_password,
    is_in_database,
    is_made,
    ledger_name,
    named,
)
from discreet.ledger._ledger import Ledger


@dataclass(frozen=True, slots=True)
class LedgerPlace:
    """The file of a ledger, or its address in PostgreSQL. The owner's log lies beside the file,
    or in ``folder``. Equal resolved places name the same ledger."""

    address: Path | str
    anchor: Path | str | None
    folder: Path

    @staticmethod
    def written(text: str, anchor: str | None, folder: Path) -> "LedgerPlace":
        """The place that a file in this folder names; its paths start from there."""
        name = ledger_name(text)  # refuses an address that can't be read
        if name is not None and has_password(text):
            raise _no_password("ledger")
        place = LedgerPlace(folder / text if name is None else text, None, folder)
        return place if anchor is None else place.anchored(anchor)

    def anchored(self, anchor: str) -> "LedgerPlace":
        """The same place with the anchor that the file in this folder names."""
        return replace(self, anchor=_anchor_in(self.folder, anchor))

    @property
    def log(self) -> Path:
        """The file of the owner's log."""
        if isinstance(self.address, Path):
            return self.address.with_name(f"{self.address.name}.log")
        return self.folder / f"{ledger_name(self.address)}.ledger.log"

    @property
    def identity(self) -> object:
        """Equal for two places of one ledger, as far as their texts tell."""
        return address_identity(self.address), self.anchor and address_identity(
            self.anchor, "anchor"
        )

    def resolved(self) -> "LedgerPlace":
        """The same place, whatever the working folder is."""
        address = self.address.resolve() if isinstance(self.address, Path) else self.address
        anchor = self.anchor.resolve() if isinstance(self.anchor, Path) else self.anchor
        return replace(self, address=address, anchor=anchor, folder=self.folder.resolve())

    def exists(self) -> bool:
        """Whether the ledger was made; a database is asked."""
        return is_made(self.address)

    def open_or_create(self, unit: Unit, limit: AnyLimit) -> Ledger:
        """The ledger, created if there is none; refused if it differs from the declaration."""
        return Ledger.open_or_create(self.address, unit=unit, limit=limit, anchor=self.anchor)

    def __str__(self) -> str:
        return named(self.address).removeprefix("the ledger ")


def _anchor_in(folder: Path, text: str) -> Path | str:
    """The anchor that a file in this folder names."""
    if not is_in_database(text):
        return folder / text
    if has_password(text, "anchor"):
        raise _no_password("anchor")
    return text


def _no_password(what: str) -> InvalidArgument:
    return InvalidArgument(
        f"the address of the {what} holds a password, and addresses are shown: leave it out, and "
        "give it in PGPASSWORD or ~/.pgpass"
    )
