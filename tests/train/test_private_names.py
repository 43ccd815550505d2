"""All private names of PyTorch and Lightning that training uses stand on a page of decisions."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "discreet"
PAGE = ROOT / "docs" / "decisions" / "pytorch.md"
OTHERS = {"torch", "lightning", "transformers"}
ENDS = {"_transpose"}  # of a name: conv_transpose


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def defined(tree: ast.AST) -> Iterator[str]:
    """The names that a module's code defines, of any kind."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield from [node.attr] if ast.unparse(node.value) == "self" else []


def imported(tree: ast.AST) -> dict[str, str]:
    """The full name of whatever each imported name stands for."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
        elif isinstance(node, ast.Import):
            for one in node.names:
                first = one.name.partition(".")[0]
                found[one.asname or first] = one.name if one.asname else first
    return found


def private_names(code: str, own: set[str]) -> set[str]:
    """Private names of other libraries: whole if an import leads to them, else the attribute. Texts
    count too, as of ``getattr``."""
    tree = ast.parse(code)
    roots = imported(tree)
    found = set(roots.values())
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    parts = {
        id(one) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for one in node.values
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            first, *rest = ast.unparse(node).split(".")
            if first in roots and all(map(str.isidentifier, rest)) and id(node) not in inner:
                while rest and rest[-1].startswith("__"):
                    rest.pop()
                found.add(".".join([roots[first], *rest]))
            elif first not in roots and is_private(node.attr) and node.attr not in own:
                found.add(node.attr)
        elif (
            isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts
        ):
            found |= ({node.value} - own - ENDS) if node.value.isidentifier() else set()
    return {
        name
        for name in found
        if any(map(is_private, name.split(".")))
        and ("." not in name or name.partition(".")[0] in OTHERS)
    }


def used() -> dict[str, set[str]]:
    """The files of training that use each private name."""
    own = {
        name
        for file in SOURCE.rglob("*.py")
        for name in defined(ast.parse(file.read_text(encoding="utf-8")))
    }
    found = defaultdict[str, set[str]](set)
    for file in (SOURCE / "train").rglob("*.py"):
        for name in private_names(file.read_text(encoding="utf-8"), own):
            found[name].add(str(file.relative_to(SOURCE / "train")))
    return found


def listed() -> dict[str, set[str]]:
    """The names in the first column of the page's tables, and the files in the second one."""
    rows = re.findall(r"^\| (`.*?) \| (`.*?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    found = {}
    for names, files in rows:
        for name in re.findall(r"`([^`]+)`", names):
            assert name not in found, f"{name} stands twice"
            found[name] = set(re.findall(r"`([^`]+)`", files))
    return found


def test_each_private_name_stands_on_the_page() -> None:
    needed, told = used(), listed()
    missing = {name: files for name, files in needed.items() if name not in told}
    assert not missing, "give these a row in docs/decisions/pytorch.md"
    stale = {name: files for name, files in told.items() if not files & needed.get(name, set())}
    assert not stale, "docs/decisions/pytorch.md names files that don't use these"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import torch\ntorch._C._nn.pad(x)", {"torch._C._nn.pad"}),
        ("from torch.utils._python_dispatch import M", {"torch.utils._python_dispatch.M"}),
        ("from torch import overrides as o\no._stack()", {"torch.overrides._stack"}),
        ("tensor._base", {"_base"}),
        ("getattr(node, '_forward_cls')", {"_forward_cls"}),
        ("self._mine, x._mine, a.__class__, torch.sum(x)", set()),
        ("from random import _inst", set()),
    ],
)
def test_private_names_are_found(code: str, expected: set[str]) -> None:
    assert private_names(code, {"_mine"}) == expected
