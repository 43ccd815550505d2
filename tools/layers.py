"""Which part of discreet may import which: reads every import, and fails on a wrong arrow.

Run as ``python -m tools.layers``. Imports inside functions and under ``TYPE_CHECKING`` count, and
so does ``import_module("...")``: an arrow is an arrow whenever it is drawn.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "discreet"
SOURCE = Path(__file__).parents[1] / "src" / PACKAGE

# From the bottom. A part imports itself and the lines above its own, nothing beside it.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("_version",),
    ("errors",),
    ("_ownership", "_frozen", "_bisection"),
    ("_exact",),
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
    ("cli",),
    ("__main__",),
)

# Parts that must do with less than everything below them.
NOT_FOR = {"ledger": {"noise", "mechanisms"}}

# Heavy guests, and the rooms they stay in.
ROOMS = {
    "ibis": {"query"},
    "duckdb": {"query"},
    "sqlglot": {"query"},
    "pyarrow": {"query"},
    "pandas": {"query"},
    "polars": {"query"},
    "tomlkit": {"query"},
    "sqlalchemy": {"ledger"},
    "sqlite3": {"ledger"},
    "torch": {"train"},
    "accelerate": {"train"},
    "lightning": {"train"},
    "peft": {"train"},
    "transformers": {"train"},
    "matplotlib": {"plots"},
    "typer": {"cli"},
    "click": {"cli"},
    "rich": {"cli", "train"},
}

# The package's own window: it shows every part, each when it is first asked for.
WINDOW = "__init__"

_HEIGHT = {part: height for height, layer in enumerate(LAYERS) for part in layer}


def wrong_arrows(source: Path = SOURCE) -> Iterator[str]:
    """Every forbidden import under the package's folder, as ``file:line: what is wrong``."""
    for file in sorted(source.rglob("*.py")):
        part = file.relative_to(source).with_suffix("").parts[0]
        if part == WINDOW:
            continue
        if part not in _HEIGHT:
            yield f"{file}: {part!r} has no place in tools/layers.py"
            continue
        for line, module in _imports(file, source):
            if wrong := _wrong(part, module):
                yield f"{file}:{line}: {wrong}"


def _wrong(part: str, module: str) -> str | None:
    """What is wrong with this part importing that module, or None."""
    package, _, inner = module.partition(".")
    if package != PACKAGE:
        rooms = ROOMS.get(package, {part})
        return None if part in rooms else f"{package} stays in {', '.join(sorted(rooms))}/"
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


def imported_names(file: Path, source: Path) -> Iterator[tuple[int, str, str]]:
    """For all that the file imports: the line, the module, and the full name, which is ``a.b`` of
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
    """Each imported module's full name, with the line that imports it."""
    found = {  # of the package itself, each name may be a part
        (line, name if module == PACKAGE else module)
        for line, module, name in imported_names(file, source)
    }
    yield from sorted(found)


def main() -> int:
    """Print what is wrong; the exit code says whether anything was."""
    found = list(wrong_arrows())
    print("\n".join(found), file=sys.stderr, end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
