"""No module imports itself through other modules, not even lazily."""

from pathlib import Path

import pytest

from tools.cycles import KNOWN, cycles, imports


def test_no_modules_import_one_another_in_a_cycle() -> None:
    found = {module for cycle in cycles(imports()) for module in cycle}
    assert found == KNOWN


def test_every_module_is_read() -> None:
    graph = imports()
    assert "discreet.accounting._bounds" in graph["discreet.accounting._theorems"]
    assert "discreet.accounting.terms._gaussian" in graph["discreet.accounting.terms"]
    assert "discreet.accounting.terms" in graph["discreet.accounting"]
    assert len(graph) > 200


@pytest.mark.parametrize(
    "back",
    [
        "from discreet.one import a",
        "from discreet import one",
        "from . import one",
        "from .one import a",
        "import discreet.one",
        "def f():\n    from discreet.one import a",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from discreet import one",
        "import_module('discreet.one')",
        "from discreet import three\nfrom discreet.four import b",
    ],
)
def test_a_planted_cycle_is_found(tmp_path: Path, back: str) -> None:
    planted = {
        "__init__.py": "",
        "one.py": "def g():\n    from discreet import two",
        "two.py": back,
        "three.py": "",
        "four/__init__.py": "from discreet.four.five import b",
        "four/five.py": "import discreet.one",
        "six.py": "from discreet import one, two",
    }
    for name, code in planted.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(code, encoding="utf-8")
    [cycle] = cycles(imports(tmp_path))
    assert {"discreet.one", "discreet.two"} <= set(cycle)
    assert "discreet.three" not in cycle
    assert "discreet.six" not in cycle


def test_a_package_may_list_its_modules(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text("from discreet.one import a", encoding="utf-8")
    (tmp_path / "one.py").write_text("from discreet import two", encoding="utf-8")
    (tmp_path / "two.py").write_text("", encoding="utf-8")
    assert cycles(imports(tmp_path)) == []
