"""Which modules of discreet import one another in a circle: no reader can tell where to begin.

Run as ``python -m tools.circles``. As in `tools.layers`, imports inside functions and under
``TYPE_CHECKING`` count, and so does ``import_module("...")``. An import of a package is one of its
``__init__``; that a module's own packages are imported before it does not count.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.layers import PACKAGE, SOURCE, imported_names

# Modules that are still in circles. A test holds that the list is just right: whoever opens a
# circle takes its modules out, and none is ever added.
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


def circles(graph: Graph) -> list[list[str]]:
    """The groups of modules each of which reaches all others of its group, sorted."""
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
    """The module that each name is in: the name itself, or the longest part of it."""
    for name in names:
        while name not in known and "." in name:
            name = name.rpartition(".")[0]  # noqa: PLW2901  # the same, shorter
        if name in known:
            yield name


def main() -> int:
    """Print each circle; the exit code says whether there was a new one."""
    found = circles(imports())
    for circle in found:
        print(f"{len(circle)} modules in a circle: {', '.join(circle)}", file=sys.stderr)
    return 1 if {module for circle in found for module in circle} - KNOWN else 0


if __name__ == "__main__":
    sys.exit(main())
