"""One class name means one thing in the whole package: public or private, class or type alias."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import discreet

SOURCE = Path(discreet.__file__).parent

_TERM = "a mechanism, and the term of its privacy loss"
_CLIENT = "a local mechanism, and its client, which stands alone on a device"
_ALONE = "the client stands alone on a device, so it states the role again"

# Names that two files may define, with the reason.
ALLOWED = {
    "Bits": _ALONE,
    "CountMeanSketch": _CLIENT,
    "DiscreteGaussian": _TERM,
    "DiscreteLaplace": _TERM,
    "DuchiMean": _CLIENT,
    "Gaussian": _TERM,
    "HadamardResponse": _CLIENT,
    "Laplace": _TERM,
    "LocalHashing": _CLIENT,
    "PiecewiseMean": _CLIENT,
    "RandomizedResponse": f"{_CLIENT}; and the term of its privacy loss",
    "Rappor": _CLIENT,
    "SparseVector": _TERM,
    "UnaryEncoding": _CLIENT,
    "Words": _ALONE,
}

# Names that still mean several things. Never add one.
STILL_TO_BE_MENDED: frozenset[str] = frozenset()


def test_each_name_is_defined_in_one_file() -> None:
    twice = homonyms(SOURCE)
    unexpected = {
        name: files
        for name, files in twice.items()
        if name not in ALLOWED and name not in STILL_TO_BE_MENDED
    }
    assert unexpected == {}


def test_no_listed_name_is_mended_already() -> None:
    """A name that means one thing leaves its list."""
    assert sorted({*ALLOWED, *STILL_TO_BE_MENDED} - homonyms(SOURCE).keys()) == []


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("class Unit: ...", "Unit"),
        ("class _Unit: ...", "Unit"),
        ("def make():\n    class Unit: ...", "Unit"),
        ("Unit = int | str", "Unit"),
        ("Unit: TypeAlias = int", "Unit"),
        ("_Unit = dict[str, int]", "Unit"),
    ],
)
def test_a_planted_homonym_is_found(tmp_path: Path, code: str, name: str) -> None:
    (tmp_path / "_unit.py").write_text("class Unit: ...")
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "_other.py").write_text(code)
    assert homonyms(tmp_path) == {name: ["_unit.py", "part/_other.py"]}


@pytest.mark.parametrize("code", ["Unit()", "UNIT = 1", 'U = TypeVar("U")', "unit = Unit"])
def test_uses_and_constants_are_no_homonyms(tmp_path: Path, code: str) -> None:
    (tmp_path / "_one.py").write_text(f"class Unit: ...\nUNIT = 2\n{code}")
    (tmp_path / "_other.py").write_text(code)
    assert homonyms(tmp_path) == {}


def homonyms(source: Path) -> Mapping[str, list[str]]:
    """The names that several files define, without leading underscores, and those files."""
    files: defaultdict[str, set[str]] = defaultdict(set)
    for file in source.rglob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for name in defined(tree):
            files[name.lstrip("_")].add(file.relative_to(source).as_posix())
    return {name: sorted(places) for name, places in files.items() if len(places) > 1}


def defined(tree: ast.Module) -> Iterator[str]:
    """The classes of a file, and the aliases of types at its top."""
    yield from (node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    for node in tree.body:
        match node:
            case ast.Assign([ast.Name(name)], value) | ast.AnnAssign(ast.Name(name), _, value):
                if is_named_as_a_type(name) and not is_type_variable(value):
                    yield name


def is_named_as_a_type(name: str) -> bool:
    """Whether the name is in CamelCase, as names of classes are."""
    plain = name.lstrip("_")
    return plain[:1].isupper() and not plain.isupper()


def is_type_variable(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func) in ("TypeVar", "ParamSpec")
