"""``release()`` is the one door: nothing else draws noise, and nothing else builds a ``Door``."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import discreet

SOURCE = Path(discreet.__file__).parent

# The only files that may call ``sample``: the door itself, and what hands on to several. And
# ``begin``, by which an interactive mechanism draws: the door's streaming form.
MAY_SAMPLE = {
    "mechanisms/_release.py",
    "mechanisms/_together.py",
    "mechanisms/tuning/_scored.py",
    "mechanisms/tuning/_tuning.py",
}
MAY_BEGIN = {"mechanisms/_session.py"}
DRAWING = {"sample": MAY_SAMPLE, "begin": MAY_BEGIN}
# What has no data: there a sample is a number of records, and a transaction begins.
HAVE_NO_DATA = {"sample": "accounting/", "begin": "ledger/"}

# ``Door(...)`` is written inside ``Door.secure``, and in the audit, whose doors are insecure.
DOOR_HOME = "mechanisms/_door.py"
DOOR_MAKER = "secure"
MAY_BUILD_DOORS = "audit/"


def test_only_the_door_samples() -> None:
    assert list(side_doors(SOURCE)) == []


def test_the_allowed_places_exist() -> None:
    assert [
        file for file in {*MAY_SAMPLE, *MAY_BEGIN, DOOR_HOME} if not (SOURCE / file).is_file()
    ] == []


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("query/run.py", "value = mechanism.sample(3, bits)"),
        ("mechanisms/_additive.py", "def f(m):\n    return [m.parts[0].sample(v, b) for v in m]"),
        ("query/run.py", "draw = mechanism.sample"),
        ("train/_run.py", "answer = mechanism.begin(bits)"),
        ("query/run.py", "draw = getattr(mechanism, 'sample')"),
        ("query/run.py", "draw = operator.methodcaller('sample', 3, bits)"),
        ("query/run.py", "door = Door(payer, bits, trace)"),
        ("query/run.py", "door = release.Door(payer, bits, None)"),
        ("query/run.py", "from discreet.mechanisms.release import Door as Gate"),
        ("query/run.py", "door = dataclasses.replace(Door.secure(payer), bits=known)"),
        ("query/run.py", "door = object.__new__(Door)"),
        ("query/run.py", "make = Door"),
        ("query/run.py", "doors = map(Door, payers)"),
        ("mechanisms/_release.py", "def release(b, m, payer):\n    door = Door(payer, bits, None)"),
        ("mechanisms/_door.py", "def secure(payer):\n    return Door(payer, bits, None)"),
        (
            "mechanisms/_door.py",
            "class Door:\n    def other(p):\n        return Door(p, bits, None)",
        ),
    ],
)
def test_a_planted_side_door_is_found(tmp_path: Path, file: str, code: str) -> None:
    plant(tmp_path, file, code)
    [found] = side_doors(tmp_path)
    assert found.startswith(f"{file}:")


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("mechanisms/_release.py", "def through(door):\n    return mechanism.sample(v, door.bits)"),
        ("mechanisms/_together.py", "drawn = part.sample(value, bits)"),
        (
            "mechanisms/_door.py",
            "class Door:\n    def secure(payer) -> Door:\n        return Door(payer, bits, None)",
        ),
        ("audit/_replay.py", "door = Door(payer, Recorded(words), trace)"),
        ("query/run.py", "def run(plan: Door) -> None:\n    door = Door.secure(payer)"),
        ("query/run.py", "from discreet.mechanisms.release import Door\nx: Door | None = None"),
        ("noise/laplace.py", "def sample(scale, bits):\n    return sample(scale, bits)"),
    ],
)
def test_the_door_itself_passes(tmp_path: Path, file: str, code: str) -> None:
    plant(tmp_path, file, code)
    assert list(side_doors(tmp_path)) == []


def plant(root: Path, file: str, code: str) -> None:
    (root / file).parent.mkdir(parents=True, exist_ok=True)
    (root / file).write_text(code)


def side_doors(source: Path) -> Iterator[str]:
    """Every line that draws noise or builds a Door where it must not."""
    for path in sorted(source.rglob("*.py")):
        file = path.relative_to(source).as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for name, allowed in DRAWING.items():
            if file not in allowed and not file.startswith(HAVE_NO_DATA[name]):
                yield from (f"{file}:{line}: names a method {name}" for line in named(tree, name))
        if not file.startswith(MAY_BUILD_DOORS):
            fine = maker(tree) if file == DOOR_HOME else set()
            yield from (f"{file}:{line}: makes a Door" for line in doors(tree, fine))


def named(tree: ast.AST, name: str) -> Iterator[int]:
    """The lines that name a method so, called or not."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=attr) if attr == name:
                yield node.lineno
            case ast.Call(args=args) if any(is_text(arg, name) for arg in args):
                yield node.lineno


def doors(tree: ast.AST, allowed: set[ast.AST]) -> Iterator[int]:
    """The lines with a Door that is neither a type nor ``Door.secure``, or that alter one."""
    fine = allowed | types(tree) | safe_makers(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Name(id="Door") | ast.Attribute(attr="Door") if node not in fine:
                yield node.lineno
            case ast.alias(name="Door", asname=str()):
                yield node.lineno
            case ast.Call(ast.Name("replace") | ast.Attribute(attr="replace"), keywords=given):
                if {"bits", "trace"} & {keyword.arg for keyword in given}:
                    yield node.lineno


def types(tree: ast.AST) -> set[ast.AST]:
    """Everything inside type annotations."""
    roots = [
        getattr(node, field, None) for node in ast.walk(tree) for field in ("annotation", "returns")
    ]
    return {node for root in roots if root is not None for node in ast.walk(root)}


def safe_makers(tree: ast.AST) -> set[ast.AST]:
    """The ``Door`` of each ``Door.secure``."""
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == DOOR_MAKER
    }


def maker(tree: ast.AST) -> set[ast.AST]:
    """Everything inside the body of ``Door.secure``."""
    return {
        node
        for door in ast.walk(tree)
        if isinstance(door, ast.ClassDef) and door.name == "Door"
        for method in door.body
        if isinstance(method, ast.FunctionDef) and method.name == DOOR_MAKER
        for node in ast.walk(method)
    }


def is_text(argument: ast.expr, text: str) -> bool:
    return isinstance(argument, ast.Constant) and argument.value == text
