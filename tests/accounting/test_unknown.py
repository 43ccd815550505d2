"""A bound that is not known is an `Unknown`, which is asked for; `NoBound` is for users."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet import accounting

FOLDER = Path(accounting.__file__).parent

# A family is a function of the user's, which may refuse numbers.
CALLS_USERS = {"_calibration.py"}


def test_no_bound_is_no_control_flow() -> None:
    for file in FOLDER.rglob("*.py"):
        if file.name not in CALLS_USERS:
            assert [*caught(file.read_text(encoding="utf-8"))] == [], file.name


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("try:\n    f()\nexcept NoBound as refusal:\n    g(refusal)", [3]),
        ("try:\n    f()\nexcept (NoBound, ValueError):\n    g()", [3]),
        ("with suppress(NoBound):\n    f()", [1]),
        ("with suppress(errors.NoBound):\n    f()", [1]),
        ('raise NoBound("no")', []),
    ],
)
def test_a_planted_catch_is_found(code: str, lines: list[int]) -> None:
    assert [*caught(code)] == lines


def caught(source: str) -> Iterator[int]:
    """The lines that catch `NoBound`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ExceptHandler):
            texts = [ast.unparse(node.type)] if node.type else []
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
            texts = [ast.unparse(one) for one in node.args]
        else:
            continue
        if any("NoBound" in text for text in texts):
            yield node.lineno
