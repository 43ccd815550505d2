"""Finds the import cycles among the modules of discreet.

Run as ``python -m tools.cycles``. As in `tools.layers`, imports inside functions and under
``TYPE_CHECKING`` count, and so does ``import_module("...")``. An import of a package is an import
of its ``__init__``. Python also imports the packages that contain a module; that does not count.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.layers import PACKAGE, SOURCE, imported_names

# Modules that are still in cycles. A test checks that the list is exact: remove a module once its
# cycle is broken, and never add one.
KNOWN: frozenset[str] = frozenset()

Graph = Mapping[str, frozenset[str]]


def imports(source: Path = SOURCE) -> Graph:
    """For each module under the package's folder, the modules of the package that it imports."""
    files = {_module(file, source): file for file in sorted(source.rglob("*.py"))}
    return {
        module: frozenset(_resolved((name for _, _, name in imported_names(file, source)), files))
        - {module}
        for module, file in files.items()
    }


def cycles(graph: Graph) -> list[list[str]]:
    """The groups of modules in which each module reaches all others, sorted."""
    reached = {module: _reached(graph, module) for module in graph}
    groups = {
        tuple(sorted(other for other in found if module in reached[other]))
        for module, found in reached.items()
        if module in found
    }
    return sorted(list(group) for group in groups)


def _reached(graph: Graph, start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        more = graph[waiting.pop()] - found
        found |= more
        waiting += more
    return found


def _module(file: Path, source: Path) -> str:
    parts = (PACKAGE, *file.relative_to(source).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _resolved(names: Iterator[str], known: Mapping[str, object]) -> Iterator[str]:
    """The module that contains each name: the name itself, or its longest prefix that is a
    module."""
    for name in names:
        while name not in known and "." in name:
            name = name.rpartition(".")[0]  # noqa: PLW2901  # a shorter prefix
        if name in known:
            yield name


def main() -> int:
    """Print each cycle. The exit code is 1 if one of them is new."""
    found = cycles(imports())
    for cycle in found:
        print(f"{len(cycle)} modules in a cycle: {', '.join(cycle)}", file=sys.stderr)
    return 1 if {module for cycle in found for module in cycle} - KNOWN else 0


if __name__ == "__main__":
    sys.exit(main())
