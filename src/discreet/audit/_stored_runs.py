"""Coins and scores of complete runs in a folder, so that an audit can go on after a stop."""

import io
import json
import os
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
    def open(folder: Path, settings: Mapping[str, int | None], functions: str) -> "StoredRuns":
        """The runs in this folder, which is made if it is missing; raises if they are of an audit
        with other settings or of functions with another digest, or if the folder holds something
        else."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidArgument(f"folder = {str(folder)!r}: {error.strerror}") from error
        path = folder / _SETTINGS
        if not path.exists():
            if any(one.suffix != _PARTIAL for one in folder.iterdir()):
                raise InvalidArgument(
                    f"folder = {str(folder)!r}: it has other files: give a new one"
                )
            _replace(path, json.dumps({**settings, "functions": functions}).encode())
        known = _settings(path)
        digest = known.pop("functions", None)
        if known != settings:
            raise InvalidArgument(
                f"folder = {str(folder)!r}: its runs have the settings {known}, not "
                f"{dict(settings)}: give these, or a new folder"
            )
        if digest != functions:
            raise InvalidArgument(
                f"folder = {str(folder)!r}: its runs were made by other functions, or from other "
                "numbers or texts that they read: give a new folder, or undo the change"
            )
        return StoredRuns(folder)

    def read(self, place: int, candidates: int) -> tuple[npt.NDArray[np.bool_], FloatArray] | None:
        """Coins and scores of this run; ``None`` if it is not complete."""
        path = self._path(place)
        if not path.exists():
            return None
        try:
            coins, scores = np.load(path, allow_pickle=False)
            is_whole = scores.shape == (candidates,) and scores.dtype == np.float64
        except (OSError, ValueError, EOFError, AttributeError):
            is_whole = False
        if not is_whole or np.isnan(scores).any() or not np.isin(coins, (0, 1)).all():
            raise InvalidArgument(
                f"folder = {str(self.folder)!r}: {path.name} is damaged: remove this file, and its "
                "run is repeated"
            )
        return coins.astype(bool), scores

    def write(self, place: int, coins: npt.NDArray[np.bool_], scores: FloatArray) -> None:
        """Store a complete run, durably."""
        content = io.BytesIO()
        np.save(content, np.stack([coins.astype(np.float64), scores]))
        _replace(self._path(place), content.getvalue())

    def _path(self, place: int) -> Path:
        return self.folder / f"run-{place}.npy"


def _settings(path: Path) -> dict[str, object]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise InvalidArgument(
            f"folder = {str(path.parent)!r}: {path.name} can't be read: give a new folder"
        ) from error


def _replace(path: Path, content: bytes) -> None:
    """The file is there in full or not at all, also after a loss of power."""
    partial = path.with_suffix(_PARTIAL)
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise InvalidArgument(f"{path} can't be written: {error.strerror}") from error
