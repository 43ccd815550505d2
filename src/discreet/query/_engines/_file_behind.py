"""The file to which a path leads, so that links to one file are known as one."""

import os
from collections.abc import Hashable
from pathlib import Path


def file_behind(path: Path) -> Hashable:
    """The file's device and its number there, or the resolved path of a file that is not there."""
    try:
        found = path.stat()
    except OSError:
        return resolved(path)
    return found.st_dev, found.st_ino


def resolved(path: Path) -> Path:
    """The absolute path without links; one that leads to itself stays, where `Path.resolve` may
    raise."""
    return Path(os.path.realpath(path))


def files_under(place: Path) -> set[Hashable]:
    """The file, or all files in the folder that Spark may read: whatever their names, and also
    behind links to folders."""
    if not place.is_dir():
        return {file_behind(place)}
    found, entered = set[Hashable](), {file_behind(place)}
    for folder, inner, names in os.walk(place, followlinks=True):
        inside = {name: file_behind(Path(folder, name)) for name in inner}
        inner[:] = [name for name, behind in inside.items() if behind not in entered]
        entered.update(inside.values())
        found.update(file_behind(Path(folder, name)) for name in names)
    return found
