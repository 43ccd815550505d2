"""One class name means one thing in the whole package; names and docstrings use the field's
words."""

import ast
import builtins
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import discreet

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

SOURCE = Path(discreet.__file__).parent
WRITTEN_HERE = (
    SOURCE,
    *(Path(__file__).parents[1] / name for name in ("benchmarks", "tests", "tools")),
)

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

# Participles that are no nouns, and no names: say what was kept or found.
PARTICIPLES = (
    *("drawn", "found", "given", "had", "kept", "made", "paid", "said", "seen", "taken", "told"),
    "wanted",
)
NOUN_OF_CLASS = re.compile(
    rf"(?i:^_?(?:{'|'.join((*PARTICIPLES, 'left', 'mapped', 'reused', 'shown', 'summed'))})$)"
)
NOUN = re.compile(rf"(?<!is)(?<!has)(?<!not)(?:^|_)(?:{'|'.join(PARTICIPLES)})$")

# Adjectives that name no constant: say what is small, or near to what.
VAGUE = re.compile(r"^_?(?:CLOSE|FAR|NEAR|SMALL|TAIL|TINY)(?:, \w+)* = ", re.MULTILINE)

# A test's name has a subject of its own, not one of the line before.
NO_SUBJECT = re.compile(r"test_(?:what|of|so|its|both|others|there|it|they|them|theirs)(?:_|$)")

# Words with which sentences start to sound like a translation.
DIALECT = re.compile(
    r"(?:^|[.:;]\s+|\n\n)(?:What|Nor)\b[^?]*(?:$|[.;])|(?i:\b(?:kept|told|so many|be it)\b)",
    re.DOTALL,
)

# Names that other libraries define
OF_OTHERS = {
    *("DpEvent", "PLDAccountant", "REPLACE_ONE", "RdpAccountant", "dp_accounting"),
    *("GRU", "LSTM", "RNN", "cdist", "floor_divide", "gather", "gaussian_nll_loss"),
    *("index_add", "local_response_norm", "masked_select", "take_along_dim", "tile", "unfold"),
    *("use_reentrant", "weight_norm"),
    "connection_made",  # by asyncio, of each protocol
    "toml",  # discreet.toml
}
CODE = re.compile(r"``.*?``|`([A-Za-z_][\w.]*)(?:\(\))?`", re.DOTALL)


def test_each_name_is_defined_in_one_file() -> None:
    twice = homonyms(SOURCE)
    unexpected = {name: files for name, files in twice.items() if name not in ALLOWED}
    assert unexpected == {}


def test_no_listed_name_is_mended_already() -> None:
    """A name that means one thing leaves its list."""
    assert sorted(ALLOWED.keys() - homonyms(SOURCE).keys()) == []


def test_nothing_is_named_by_a_participle() -> None:
    assert [*participles(SOURCE)] == []


def test_constants_say_what_they_limit() -> None:
    files = SOURCE.rglob("*.py")
    assert [file.name for file in files if VAGUE.search(file.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    ("line", "is_bad"),
    [
        ("_NEAR = 1e-6", True),
        ("TINY, _LARGE = 1e-300, 1e300", True),
        ("_TAIL_OF_GRID = 1e-280", False),
        ("    SMALL = auto()", False),
    ],
)
def test_a_planted_vague_constant_is_found(line: str, *, is_bad: bool) -> None:
    assert bool(VAGUE.search(f"import math\n{line}\n")) == is_bad


def test_each_test_has_a_subject_of_its_own() -> None:
    assert [*without_subject(Path(__file__).parent)] == []


@pytest.mark.parametrize("folder", WRITTEN_HERE, ids=lambda folder: folder.name)
def test_docstrings_use_plain_words(folder: Path) -> None:
    """docs, errors and comments are for reviewers; docstrings make the reference."""
    assert [*dialect(folder)] == []


@pytest.mark.parametrize(
    ("name", "is_bad"),
    [
        ("found", True),
        ("_made", True),
        ("groups_seen", True),
        ("steps_taken", True),
        ("is_found", False),
        ("has_kept", False),
        ("_not_found", False),
        ("made_up", False),
        ("foundation", False),
    ],
)
def test_a_planted_participle_is_found(tmp_path: Path, name: str, *, is_bad: bool) -> None:
    (tmp_path / "_one.py").write_text(f"def f():\n    def {name}(): ...")
    assert [*participles(tmp_path)] == ([f"_one.py:2: {name}"] if is_bad else [])


@pytest.mark.parametrize(
    ("name", "is_bad"),
    [("_Taken", True), ("Summed", True), ("PoissonSampled", False), ("_TakenSteps", False)],
)
def test_a_planted_class_of_participle_is_found(tmp_path: Path, name: str, *, is_bad: bool) -> None:
    (tmp_path / "_one.py").write_text(f"class {name}: ...")
    assert len([*participles(tmp_path)]) == is_bad


@pytest.mark.parametrize(
    ("name", "is_bad"),
    [
        ("test_its_atoms", True),
        ("test_what_it_costs", True),
        ("test_there", True),
        ("test_items_are_counted", False),
        ("test_other_types_are_refused", False),
        ("its_atoms", False),
    ],
)
def test_a_planted_test_without_subject_is_found(
    tmp_path: Path, name: str, *, is_bad: bool
) -> None:
    (tmp_path / "test_one.py").write_text(f"class TestOne:\n    def {name}(self): ...")
    assert len([*without_subject(tmp_path)]) == is_bad


@pytest.mark.parametrize(
    ("text", "is_bad"),
    [
        ("What the run costs.", True),
        ("The rows. What is left is a sum.", True),
        ("The rows that are kept.", True),
        ("As many as are\ntold.", True),
        ("So many rows as there are units.", True),
        ("Whatever the rows are.", False),
        ("Nor are they counted.", True),
        ("The rows, what they cost, and a stored sum.", False),
    ],
)
def test_a_planted_word_is_found(tmp_path: Path, text: str, *, is_bad: bool) -> None:
    (tmp_path / "_one.py").write_text(f'class A:\n    """{text}"""')
    assert len([*dialect(tmp_path)]) == is_bad


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


def test_names_in_docstrings_exist() -> None:
    """A renamed function leaves no old name behind."""
    assert [*unknown_names(SOURCE)] == []


@pytest.mark.parametrize(
    ("name", "is_bad"), [("old", True), ("one.old", True), ("one", False), ("A.f()", False)]
)
def test_a_planted_old_name_is_found(tmp_path: Path, name: str, *, is_bad: bool) -> None:
    (tmp_path / "one.py").write_text(f'class A:\n    def f(self):\n        """See `{name}`."""')
    assert len([*unknown_names(tmp_path)]) == is_bad


def definitions(source: Path) -> Iterator[tuple[str, Definition]]:
    """Each function, method and class below this folder, with its file."""
    for file in sorted(source.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, Definition):
                yield file.relative_to(source).as_posix(), node


def participles(source: Path) -> Iterator[str]:
    """The functions whose names end with a participle as a noun, and the classes named by one."""
    for file, node in definitions(source):
        pattern = NOUN_OF_CLASS if isinstance(node, ast.ClassDef) else NOUN
        if pattern.search(node.name) and node.name not in OF_OTHERS:
            yield f"{file}:{node.lineno}: {node.name}"


def without_subject(source: Path) -> Iterator[str]:
    """The tests whose names begin with a word that refers to another line."""
    for file, node in definitions(source):
        if NO_SUBJECT.match(node.name):
            yield f"{file}:{node.lineno}: {node.name}"


def dialect(source: Path) -> Iterator[str]:
    """The words of the dialect in docstrings of modules, classes and functions."""
    kinds = ast.Module | Definition
    for file in sorted(source.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            text = ast.get_docstring(node) if isinstance(node, kinds) else None
            for bad in DIALECT.finditer(text or ""):
                yield f"{file.relative_to(source)}: {bad.group()!r}"


def unknown_names(source: Path) -> Iterator[str]:
    """The names in docstrings, between single backticks, that stand in no code here."""
    files = {file: ast.parse(file.read_text(encoding="utf-8")) for file in source.rglob("*.py")}
    known = OF_OTHERS | {*dir(builtins)}
    known |= {name for file, tree in files.items() for name in names_in(file, tree)}
    for file, tree in files.items():
        for node in ast.walk(tree):
            text = ast.get_docstring(node) if isinstance(node, ast.Module | Definition) else None
            for found in CODE.finditer(text or ""):
                if not known.issuperset((found[1] or "").split(".")) and found[1]:
                    yield f"{file.relative_to(source)}: {found[1]}"


def names_in(file: Path, tree: ast.Module) -> Iterator[str]:
    """All names that the code of a file uses, and those of the file and of its folder."""
    yield from (file.stem, file.parent.name)
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name) | ast.FunctionDef(name) | ast.AsyncFunctionDef(name):
                yield name
            case ast.Name(name) | ast.Attribute(_, name) | ast.arg(name):
                yield name
            case ast.alias(name):
                yield from name.split(".")


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
