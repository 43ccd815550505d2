"""Imports go down, never sideways, and each heavy library is imported in few parts only."""

from pathlib import Path

import pytest

from tools.layers import LAYERS, SHARED, SOURCE, forbidden_imports, private_imports


def test_no_import_is_forbidden() -> None:
    assert list(forbidden_imports()) == []


def test_every_part_is_read() -> None:
    parts = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or path.is_dir()}
    known = {part for layer in LAYERS for part in layer}
    assert parts - {"__init__", "__pycache__"} <= known
    assert "accounting" in parts


def test_every_shared_module_is_imported_by_another_part() -> None:
    """A private module that only its own part needs leaves the list."""
    used = {
        (owner, module)
        for file in SOURCE.rglob("*.py")
        for _, owner, module in private_imports(file, SOURCE)
    }
    assert used == {(part, module) for part, modules in SHARED.items() for module in modules}


@pytest.mark.parametrize(
    ("file", "code", "reason"),
    [
        ("accounting/terms.py", "from discreet.query import plan", "must not import query"),
        ("accounting/terms.py", "import discreet.mechanisms.release", "must not import mechanisms"),
        ("accounting/terms.py", "from discreet import query", "must not import query"),
        ("accounting/terms.py", "from .. import query", "must not import query"),
        ("accounting/terms.py", "from ..noise.bits import Bits", "must not import noise"),
        ("noise/bits.py", "import numpy\n\ndef f():\n    import discreet.ledger", ":4: noise must"),
        (
            "_unit.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from discreet import _budget",
            "must not import _budget",
        ),
        ("query/run.py", "importlib.import_module('discreet.cli')", "must not import cli"),
        ("_frozen.py", "from discreet._ownership import two", "must not import _ownership"),
        ("plots.py", "from discreet import cli", "must not import cli"),
        ("ledger/store.py", "from discreet.mechanisms import Bounded", "must not import mech"),
        ("ledger/store.py", "from discreet.noise import bits", "must not import noise"),
        ("query/plan.py", "import discreet", "imports the whole of discreet"),
        ("query/plan.py", "from discreet import Unit", "'Unit', which has no place"),
        ("accounting/loss.py", "import pandas.api", "pandas belongs in query/"),
        (
            "mechanisms/x.py",
            "def f():\n    from ibis import _",
            ":2: ibis belongs in query/",
        ),
        ("query/x.py", "import sqlalchemy as sa", "sqlalchemy belongs in ledger, service/"),
        ("query/x.py", "from rich.table import Table", "rich belongs in cli, train/"),
        ("gadgets/x.py", "", "'gadgets' has no place"),
        ("query/_facts/x.py", "from discreet.query._plan._sums import x", "_facts must not import"),
        ("query/_plan/x.py", "from discreet.query._table import x", "_plan must not import _table"),
        ("query/x.py", "def f():\n    from discreet.query._toml import x", "query.x must not"),
        ("query/_new/x.py", "from discreet.query._plan import x", "'_new' has no place among"),
        ("query/x.py", "from discreet.noise._laws import Law", "noise._laws is private"),
        ("query/x.py", "from discreet.noise import _laws", "noise._laws is private"),
        ("query/x.py", "import discreet.noise._laws", "noise._laws is private"),
        ("query/x.py", "from ..noise._laws import Law", "noise._laws is private"),
        ("cli/x.py", "from discreet.mechanisms.trees._noise import x", "trees._noise is private"),
    ],
)
def test_a_planted_import_is_found(tmp_path: Path, file: str, code: str, reason: str) -> None:
    plant(tmp_path, file, code)
    [found] = forbidden_imports(tmp_path)
    assert reason in found
    assert str(tmp_path / file) in found


@pytest.mark.parametrize(
    ("file", "code"),
    [
        (
            "query/plan.py",
            "import ibis\nfrom discreet.mechanisms import Bounded\nfrom . import run",
        ),
        (
            "query/_sql/parse.py",
            "import sqlglot\nfrom .._plan import Plan\nfrom discreet import _unit",
        ),
        ("ledger/__init__.py", "import sqlalchemy\nfrom discreet.accounting import Pure"),
        ("cli.py", "import typer\nfrom discreet import _version, query"),
        ("__init__.py", "from discreet import cli, accounting"),
        ("query/__init__.py", "from discreet.query._toml._declaration_file import open"),
        ("query/_toml/x.py", "from discreet.query import _table\nimport discreet.query._plan"),
    ],
)
def test_an_allowed_import_passes(tmp_path: Path, file: str, code: str) -> None:
    plant(tmp_path, file, code)
    assert list(forbidden_imports(tmp_path)) == []


def plant(root: Path, file: str, code: str) -> None:
    (root / file).parent.mkdir(parents=True, exist_ok=True)
    (root / file).write_text(code)
