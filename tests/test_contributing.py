"""Each file and test that CONTRIBUTING.md names exists, so that its recipes can be followed."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = TEXT.partition("## To add")[2]
ROWS = [
    "a term of privacy loss",
    "a mechanism",
    "a law of noise",
    "an aggregate",
    "a layer rule",
    "an engine",
]
PACKAGE = ROOT / "src/discreet"
HOMES = [
    *(ROOT, ROOT / "src", PACKAGE),
    *(PACKAGE / part for part in ("query", "accounting", "train")),
    *(folder for folder in sorted((ROOT / "tests").rglob("*")) if folder.is_dir()),
]
FILES = sorted(
    name
    for name in set(re.findall(r"`([\w./-]+)`", TEXT))
    if name.endswith((".py", ".toml", ".md", "/")) and "NAME" not in name
)
TESTS = sorted(set(re.findall(r"`(test_\w+)`", TEXT)))


@pytest.mark.parametrize("name", FILES)
def test_each_file_exists(name: str) -> None:
    """In the repository, in its sources, in the package or one of its parts, or among the tests."""
    assert any((home / name).exists() for home in HOMES), name


@pytest.mark.parametrize("name", TESTS)
def test_each_test_exists(name: str) -> None:
    sources = (ROOT / "tests").rglob("test_*.py")
    assert any(f"def {name}(" in source.read_text(encoding="utf-8") for source in sources)


@pytest.mark.parametrize("row", ROWS)
def test_each_recipe_says_where_and_which_test_reads_it(row: str) -> None:
    (found,) = re.findall(rf"^\| {row} \| (.+) \| (.+) \|$", RECIPES, re.MULTILINE)
    where, tests = found
    assert ".py`" in where or "/`" in where
    assert "`tests/" in tests


def test_the_guide_has_names_to_look_for() -> None:
    assert len(FILES) > 30
    assert TESTS == ["test_each_function_with_a_rule_has_a_case"]
