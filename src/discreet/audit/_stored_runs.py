"""Coins and scores of complete runs in a folder, so that an audit can go on after a stop."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from discreet._arrays import FloatArray
from discreet.errors import InvalidArgument

_SETTINGS = "settings.json"
_PARTIAL = ".partial"  # left by a stop in the middle of writing


@dataclass(frozen=True, slots=True)
class StoredRuns:
    """A file for each complete run. The settings are fixed by the first run, because an audit whose
    settings are chosen after its runs has no guarantee."""

    folder: Path

    @staticmethod
    def open(folder: Path, settings: Mapping[str, int | None]) -> "StoredRuns":
        """The runs in this folder, which is made if it is missing; raises if they are of an audit
        with other settings, or if the folder holds something else."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / _SETTINGS
        if not path.exists():
            if any(one.suffix != _PARTIAL for one in folder.iterdir()):
                raise InvalidArgument(
                    f"folder = {str(folder)!r}: it has other files: give a new one"
                )
            _replace(path, json.dumps(settings).encode())
        known = json.loads(path.read_text(encoding="utf-8"))
        if known != settings:
            raise InvalidArgument(
                f"folder = {str(folder)!r}: its runs have the settings {known}, not "
                f"{dict(settings)}: give these, or a new folder"
            )
        return StoredRuns(folder)

    def read(self, place: int) -> tuple[npt.NDArray[np.bool_], FloatArray] | None:
        """Coins and scores of this run; ``None`` if it is not complete."""
        path = self._path(place)
        if not path.exists():
            return None
        coins, scores = np.load(path, allow_pickle=False)
        return coins.astype(bool), scores

    def write(self, place: int, coins: npt.NDArray[np.bool_], scores: FloatArray) -> None:
        """Store a complete run."""
        partial = self.folder / "partial.npy"
        np.save(partial, np.stack([coins.astype(np.float64), scores]))
        partial.replace(self._path(place))

    def _path(self, place: int) -> Path:
        return self.folder / f"run-{place}.npy"


def _replace(path: Path, content: bytes) -> None:
    partial = path.with_suffix(_PARTIAL)
    partial.write_bytes(content)
    partial.replace(path)
