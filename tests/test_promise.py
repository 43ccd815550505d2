"""Each line of the promise names tests, and these exist."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "promise.md"
LINES = 12


@cache
def names_in(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_each_line_names_tests_that_exist() -> None:
    parts = re.split(r"^(\d+)\. ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert parts[::2] == [str(number) for number in range(1, LINES + 1)]
    for number, text in zip(parts[::2], parts[1::2], strict=True):
        named = re.findall(r"`(tests/\S+\.py)::(test_\w+)`", text)
        assert len(named) >= 2, number
        assert [name for file, name in named if name not in names_in(file)] == [], number
