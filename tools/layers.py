"""Checks the imports between the parts of discreet, and reports each forbidden one.

Run as ``python -m tools.layers``. Imports inside functions and under ``TYPE_CHECKING`` count, and
so does ``import_module("...")``: a dependency counts whenever it is loaded.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "discreet"
SOURCE = Path(__file__).parents[1] / "src" / PACKAGE

# From the bottom. A part may import itself and the lines above its own, but not its own line.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("_version",),
    ("errors",),
    ("_announce", "_arrays", "_frozen", "_late_methods", "_ownership"),
    ("_exact",),
    ("_bisection",),
    ("_html", "_look"),
    ("_checks",),
    ("_fields",),
    ("_unit",),
    ("_budget",),
    ("accounting",),
    ("noise",),
    ("mechanisms",),
    ("ledger",),
    ("query",),
    ("train",),
    ("local",),
    ("audit",),
    ("plots",),
    ("explore",),
    ("service",),
    ("cli",),
    ("_pytest_plugin",),
    ("__main__",),
)

# Layers below a part that it must not import.
NOT_FOR = {"ledger": {"noise", "mechanisms"}}

# The packages inside a part, from the bottom; the empty name stands for the modules beside them.
# Each may import itself and those before it.
INNER = {
    "query": (
        *("_facts", "_engines", "_rows", "_estimates", "_functions", "_expressions", "_outputs"),
        *("_plan", "_bounding", "_relations", "_sql", "_answers", "_questions", "_statistics"),
        *("", "_toml"),
    ),
    "train": (
        *("_calls", "_tags", "_flow", "_plans", "_batches", "_state", "_forward", "_rules"),
        *("_clipped_sums", "_randomness", "_checks", "", "examples"),
    ),
}

# Heavy libraries, and the parts that may import them.
IMPORTED_IN = {
    "ibis": {"query"},
    "duckdb": {"query"},
    "sqlglot": {"query"},
    "pyarrow": {"query"},
    "pandas": {"query"},
    "polars": {"query"},
    "tomlkit": {"query"},
    "sqlalchemy": {"ledger", "service"},
    "sqlite3": {"ledger"},
    "torch": {"train"},
    "accelerate": {"train"},
    "lightning": {"train"},
    "peft": {"train"},
    "transformers": {"train"},
    "matplotlib": {"plots"},
    "jinja2": {"_look", "explore", "service"},
    "starlette": {"_look", "explore", "service"},
    "uvicorn": {"explore", "service"},
    "anyio": {"service"},
    "fastapi": {"service"},
    "prometheus_client": {"service"},
    "structlog": {"service"},
    "typer": {"cli"},
    "click": {"cli"},
    "pytest": {"_pytest_plugin"},
    "rich": {"cli", "train"},
}

# Private modules that the parts above may import too. All others are their part's own.
SHARED = {
    "accounting": {
        "_analytic",
        "_bounds",
        "_profile",
        "filter._sums",
        "terms._best_run",
    },
    "noise": {
        "_affine_quantile",
        "_flipped_pieces",
        "_inversion",
        "_pieces",
        "_quantiles",
        "_steps",
        "_sums",
    },
    "mechanisms": {
        "_additive",
        "_attempts",
        "_bounded",
        "_statement",
        "thresholds._keys",
        "thresholds._keys_first",
        "thresholds._noisy_counts",
    },
    # for callers without a share, declarations of tables, and the tokens of the service
    "ledger": {"_place", "_schema_beside"},
    "query": {  # for the commands that write declarations, suggest and diagnose
        "_answers._answer_in_words",
        "_answers._answer_rows",
        "_answers._forecast",
        "_engines._address",
        "_engines._engine",  # a worker loads it before its table is known
        "_engines._postgres_address",
        "_engines._postgres_connections",
        "_expressions._aggregates",  # names, for the completion of questions
        "_expressions._expression_text",
        "_expressions._frame",  # parts of questions in Python, for the client of a service
        "_facts._columns",
        "_facts._date_format",
        "_functions._functions",
        "_questions._admission",
        "_questions._diagnosis",
        "_questions._frame_after",
        "_relations._beside",
        "_rows._file_format",
        "_rows._source",
        "_selection",
        "_statistics._suggestion",
        "_statistics._suggestion_search",
        "_toml._declaration_edit",
        "_toml._declaration_file",
        "_toml._declared_columns",
        "_toml._declared_files",
        "_toml._located_toml",
        "_toml._proposed",
    },
    "train": {"examples._boundaries"},  # for the explorer
    "audit": {"_draws"},  # for the command: lines of errors
}

# The package's own module: it exports names of every part, each imported on first use.
PACKAGE_MODULE = "__init__"

_HEIGHT = {part: height for height, layer in enumerate(LAYERS) for part in layer}


def forbidden_imports(source: Path = SOURCE) -> Iterator[str]:
    """Every forbidden import under the package's folder, as ``file:line: reason``."""
    for file in sorted(source.rglob("*.py")):
        part = file.relative_to(source).with_suffix("").parts[0]
        if part == PACKAGE_MODULE:
            continue
        if part not in _HEIGHT:
            yield f"{file}: {part!r} has no place in tools/layers.py"
            continue
        for line, module in _imports(file, source):
            inside = file.relative_to(source).with_suffix("").parts
            if reason := _reason(part, module) or _inner_reason(inside, module):
                yield f"{file}:{line}: {reason}"
        for line, owner, module in private_imports(file, source):
            if module not in SHARED.get(owner, ()):
                yield f"{file}:{line}: {owner}.{module} is private: see SHARED in tools/layers.py"


def _reason(part: str, module: str) -> str | None:
    """The reason why this part must not import that module, or None."""
    package, _, inner = module.partition(".")
    if package != PACKAGE:
        allowed = IMPORTED_IN.get(package, {part})
        return None if part in allowed else f"{package} belongs in {', '.join(sorted(allowed))}/"
    target = inner.partition(".")[0]
    if not target:
        return f"{part} imports the whole of {PACKAGE}: import the part that it needs"
    if target == part:
        return None
    if target not in _HEIGHT:
        return f"{part} imports {target!r}, which has no place in tools/layers.py"
    if _HEIGHT[target] >= _HEIGHT[part] or target in NOT_FOR.get(part, ()):
        return f"{part} must not import {target}"
    return None


def _inner_reason(file: tuple[str, ...], module: str) -> str | None:
    """The reason why this module, given by its path, must not import that one of its part."""
    order = INNER.get(file[0], ())
    target = tuple(module.split("."))[1:]
    if len(target) < 2 or target[0] != file[0] or not order or file[1] == "__init__":
        return None
    here, there = (path[1] if path[1] in order else "" for path in (file, target))
    if len(file) > 2 and file[1] not in order:
        return f"{file[1]!r} has no place among the packages of {file[0]} in tools/layers.py"
    if order.index(there) > order.index(here):
        return f"{file[0]}.{here or file[1]} must not import {there or target[1]}"
    return None


def private_imports(file: Path, source: Path) -> Iterator[tuple[int, str, str]]:
    """For each private module of another part that the file imports: the line, the part, and the
    module's name inside it, such as ``thresholds._keys``."""
    part = file.relative_to(source).with_suffix("").parts[0]
    found = set()
    for line, _, name in imported_names(file, source):
        package, *words = name.split(".")
        private = [n for n, word in enumerate(words) if word.startswith("_")]
        is_elsewhere = package == PACKAGE and words and words[0] != part
        if is_elsewhere and private and private[0] > 0:  # those beside the parts are for all
            found.add((line, words[0], ".".join(words[1 : private[-1] + 1])))
    yield from sorted(found)


def imported_names(file: Path, source: Path) -> Iterator[tuple[int, str, str]]:
    """For each import in the file: the line, the module, and the full name, which is ``a.b`` for
    ``from a import b``."""
    here = (PACKAGE, *file.relative_to(source).with_suffix("").parts)
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"), str(file))):
        match node:
            case ast.Import(names):
                yield from ((node.lineno, alias.name, alias.name) for alias in names)
            case ast.ImportFrom(module, names, level):
                start = ".".join([*(here[:-level] if level else ()), *([module] if module else ())])
                yield from ((node.lineno, start, f"{start}.{alias.name}") for alias in names)
            case ast.Call(
                ast.Name("import_module" | "__import__") | ast.Attribute(attr="import_module"),
                [ast.Constant(str(name)), *_],
            ):
                yield node.lineno, name, name


def _imports(file: Path, source: Path) -> Iterator[tuple[int, str]]:
    """The full name of each imported module, with the line of the import."""
    found = {  # a name imported from the package itself may be a part
        (line, name if module == PACKAGE else module)
        for line, module, name in imported_names(file, source)
    }
    yield from sorted(found)


def main() -> int:
    """Print the forbidden imports. The exit code is 1 if there is any."""
    found = list(forbidden_imports())
    print("\n".join(found), file=sys.stderr, end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
