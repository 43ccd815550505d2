"""One door: charges, bits for noise, draws and doors come from listed files only.

Every noise law takes its bits as an argument. So each draw of noise can be traced to the place
where its bits were read from a ``Door`` or made by ``SecureBits()``, and these places are listed.
docs/decisions/doors.md explains each of them.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import discreet

SOURCE = Path(discreet.__file__).parent

# The only files that may call ``sample``: the door itself, and mechanisms made of several others.
# Then ``begin``, by which an interactive mechanism draws: the door's streaming form.
MAY_SAMPLE = {
    "audit/_draws.py",
    "mechanisms/thresholds/_keys_first.py",
    "mechanisms/_release.py",
    "mechanisms/_together.py",
    "mechanisms/tuning/_scored.py",
    "mechanisms/tuning/_tuning.py",
}
MAY_BEGIN = {"mechanisms/_session.py"}
DRAWING = {"sample": MAY_SAMPLE, "begin": MAY_BEGIN}
# Files that read bits: from a door, in its three forms; and in training from a step's inputs, which
# have the bits of its door.
MAY_READ_BITS = {
    "mechanisms/_release.py",
    "mechanisms/_session.py",
    "train/_training_run.py",
    "train/_step_inputs.py",
}
# Files that make secure bits: for a door; and for draws on public examples before a charge.
MAY_MAKE_BITS = {
    "mechanisms/_door.py",
    "mechanisms/_release.py",
    "train/_randomness/_drawn_in_common.py",
    "train/_checks/_memory.py",
    "train/_randomness/_undisturbed.py",
}
# Attributes named ``bits`` that belong to no door: reports and random numbers of clients.
HAVE_OTHER_BITS = ("noise/", "audit/", "local/")
# Only ``Door.charge`` calls its payer's ``charge``; an engine's own ledger isn't a payer's call.
MAY_CHARGE_A_PAYER = {"mechanisms/_door.py"}
# Parts without data: there ``sample`` is a number of records, and ``begin`` starts a transaction.
HAVE_NO_DATA = {"sample": "accounting/", "begin": "ledger/"}

# ``Door(...)`` is called inside ``Door.secure``, and in the audit, whose doors are insecure.
DOOR_HOME = "mechanisms/_door.py"
DOOR_MAKER = "secure"
MAY_BUILD_DOORS = "audit/"


def test_only_the_door_samples() -> None:
    assert list(side_doors(SOURCE)) == []


def test_every_listed_file_needs_its_place() -> None:
    """A file that no longer draws, reads bits or charges leaves the list."""
    trees = {file: parsed(file) for file in MAY_READ_BITS | MAY_MAKE_BITS | MAY_CHARGE_A_PAYER}
    assert [file for file in MAY_READ_BITS if not list(reads_bits(trees[file]))] == []
    assert [file for file in MAY_MAKE_BITS if not list(makes_bits(trees[file]))] == []
    assert [file for file in MAY_CHARGE_A_PAYER if not list(charges(trees[file]))] == []


def parsed(file: str) -> ast.AST:
    return ast.parse((SOURCE / file).read_text(encoding="utf-8"))


def test_the_allowed_places_exist() -> None:
    assert [
        file
        for file in {*MAY_SAMPLE, *MAY_BEGIN, *MAY_READ_BITS, *MAY_MAKE_BITS, DOOR_HOME}
        if not (SOURCE / file).is_file()
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
        ("query/run.py", "noise = law.draw(door.bits)"),
        ("train/_clipped_sums/_engine.py", "noise.add(sums, scale, self._door.bits)"),
        ("query/run.py", "d = door\nnoise = law.draw(d.bits)"),
        ("query/run.py", "draw = getattr(door, 'bits')"),
        ("train/_clipped_sums/_engine.py", "noise.add(sums, scale, SecureBits())"),
        ("query/run.py", "bits = noise.SecureBits()"),
        ("query/run.py", "make = SecureBits"),
        ("query/run.py", "from discreet.noise import SecureBits as Source"),
        ("query/run.py", "receipt = door.payer.charge(loss, purpose=name, by=by)"),
        ("train/_run.py", "pay = self._door.payer.charge"),
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
        ("train/_training_run.py", "noise.add(sums, scale, self._door.bits)"),
        ("train/_randomness/_undisturbed.py", "with secret_draws(SecureBits()):\n    pass"),
        ("query/run.py", "receipt = door.charge(loss, purpose=name, by=by)"),
        ("query/run.py", "from discreet.noise import SecureBits\nx: SecureBits | None = None"),
        ("query/run.py", "is_secure = type(bits) is SecureBits"),
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
    """Every forbidden line that draws noise, reads or makes bits, charges a payer or builds a
    Door."""
    for path in sorted(source.rglob("*.py")):
        file = path.relative_to(source).as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for name, allowed in DRAWING.items():
            if file not in allowed and not file.startswith(HAVE_NO_DATA[name]):
                yield from (f"{file}:{line}: names a method {name}" for line in named(tree, name))
        if file not in MAY_CHARGE_A_PAYER:
            yield from (f"{file}:{line}: charges a payer" for line in charges(tree))
        if not file.startswith(HAVE_OTHER_BITS):
            if file not in MAY_READ_BITS | {DOOR_HOME}:
                yield from (f"{file}:{line}: reads bits" for line in reads_bits(tree))
            if file not in MAY_MAKE_BITS:
                yield from (f"{file}:{line}: makes bits" for line in makes_bits(tree))
        if not file.startswith(MAY_BUILD_DOORS):
            fine = maker(tree) if file == DOOR_HOME else set()
            yield from (f"{file}:{line}: makes a Door" for line in doors(tree, fine))


def charges(tree: ast.AST) -> Iterator[int]:
    """The lines that name the ``charge`` of a door's payer, whether they call it or not."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(ast.Attribute(attr="payer"), "charge"):
                yield node.lineno


def reads_bits(tree: ast.AST) -> Iterator[int]:
    """The lines that read the bits of a door."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr="bits", ctx=ast.Load()):
                yield node.lineno
            case ast.Call(args=args) if any(is_text(arg, "bits") for arg in args):
                yield node.lineno


def makes_bits(tree: ast.AST) -> Iterator[int]:
    """The lines that name the source of secure bits, except in types and comparisons of types."""
    fine = types(tree) | {
        side
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare) or is_call_of(node, "isinstance")
        for side in ast.walk(node)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Name("SecureBits") | ast.Attribute(attr="SecureBits") if node not in fine:
                yield node.lineno
            case ast.alias(name="SecureBits", asname=str()):
                yield node.lineno


def is_call_of(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def named(tree: ast.AST, name: str) -> Iterator[int]:
    """The lines that name this method, whether they call it or not."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=attr) if attr == name:
                yield node.lineno
            case ast.Call(args=args) if any(is_text(arg, name) for arg in args):
                yield node.lineno


def doors(tree: ast.AST, allowed: set[ast.AST]) -> Iterator[int]:
    """The lines that use a Door other than as a type or for ``Door.secure``, or that alter one."""
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
    """All nodes inside type annotations."""
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
    """All nodes inside the body of ``Door.secure``."""
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
