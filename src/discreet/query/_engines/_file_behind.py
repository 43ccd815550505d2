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
