"""The vendored files are those whose checksums and licences are beside them, and are small."""

import re
from pathlib import Path

from discreet import _look
from discreet.explore._rendering import HERE, STATIC
from tools.vendor.__main__ import SUMS, VENDORED, checksums

FOLDERS = (HERE, _look.STATIC)
MOST = 3_000_000  # bytes in the wheel


def test_checksums_hold() -> None:
    files = {path.name: path.read_bytes() for path in VENDORED.iterdir() if path.name != SUMS}
    assert (VENDORED / SUMS).read_text() == checksums(files)
    assert checksums(files | {"plot.js": files["plot.js"] + b" "}) != checksums(files)


def test_each_vendored_package_has_its_licence() -> None:
    text = (VENDORED / "licences.txt").read_text(encoding="utf-8")
    assert "== @observablehq/plot 0.6.17" in text
    parts = text.split("\n== ")[1:]
    assert len(parts) > 20
    assert [part.splitlines()[0] for part in parts if "opyright" not in part] == []


def test_pages_and_scripts_are_small() -> None:
    assert sum(path.stat().st_size for folder in FOLDERS for path in files_of(folder)) < MOST


def test_own_scripts_are_classic_and_compute_no_privacy() -> None:
    for path in sorted([*STATIC.glob("*.js"), *_look.STATIC.glob("*.js")]):
        text = path.read_text(encoding="utf-8")
        assert '(function () {\n  "use strict";' in text, path
        assert not re.search(r"^\s*(import|export)\b", text, re.MULTILINE), path
        for banned in ("eval(", "innerHTML", "Math.exp", "Math.random"):
            assert banned not in text, (path, banned)


def files_of(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
