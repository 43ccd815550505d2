"""The vendored files are those whose checksums and licences are beside them, and are small."""

import re

import pytest

from discreet import _look
from discreet.explore._rendering import HERE, STATIC
from discreet.service.pages import _visit
from tools.vendor.__main__ import BUNDLES, SUMS, Bundle, checksums

MOST = 3_000_000  # bytes in the wheel
FOLDERS = (HERE, _look.STATIC, _visit.HERE)
SCRIPTS = (STATIC, _look.STATIC, _visit.STATIC)
FIRST = {"plot.js": "@observablehq/plot 0.6.17", "editor.js": "@codemirror/view 6.43.15"}


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda one: one.script)
def test_checksums_hold(bundle: Bundle) -> None:
    files = {path.name: path.read_bytes() for path in bundle.folder.iterdir() if path.name != SUMS}
    assert files.keys() == {bundle.script, bundle.licences}
    assert (bundle.folder / SUMS).read_text() == checksums(files)
    altered = {bundle.script: files[bundle.script] + b" "}
    assert checksums(files | altered) != checksums(files)


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda one: one.script)
def test_each_vendored_package_has_its_licence(bundle: Bundle) -> None:
    text = (bundle.folder / bundle.licences).read_text(encoding="utf-8")
    assert f"== {FIRST[bundle.script]}" in text
    parts = text.split("\n== ")[1:]
    assert len(parts) > 10
    assert [part.splitlines()[0] for part in parts if "opyright" not in part] == []


def test_pages_and_scripts_are_small() -> None:
    files = [path for folder in FOLDERS for path in folder.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files if path.suffix != ".pyc") < MOST


def test_own_scripts_are_classic_and_compute_no_privacy() -> None:
    paths = [path for folder in SCRIPTS for path in sorted(folder.glob("*.js"))]
    assert len(paths) > 8
    for path in paths:
        text = path.read_text(encoding="utf-8")
        assert '(function () {\n  "use strict";' in text, path
        assert not re.search(r"^\s*(import|export)\b", text, re.MULTILINE), path
        for banned in ("eval(", "innerHTML", "Math.exp", "Math.random"):
            assert banned not in text, (path, banned)
