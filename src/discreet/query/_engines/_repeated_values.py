"""Arranges the steps of an expression so that a server computes each value once, in few steps.

A server computes a repeated expression as often as it is written, and forms of values repeat their
arguments, see `_closed_compiler`. So a value that would be written several times becomes a column
of a step before. A step costs time for each row, too. So steps that follow one another are merged
first, and a value of one operation is repeated.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any

import ibis.expr.operations as ops

Uses = Callable[[ops.Node], int]
"""How often the form of a node has an argument, at most."""

_OPAQUE = (ops.WindowFunction, ops.Reduction, ops.Relation)
_LEAF = (ops.Field, ops.Literal)
_QUICK = (ops.NullIf, ops.NumericBinary, ops.Comparison, ops.IsNull, ops.NotNull, ops.Not)
_MOST_QUICK = 3  # times that a quick value is written
_DEEPEST = 64  # operations, one inside the other


def staged(operation: ops.Relation, uses: Uses) -> ops.Relation:
    """The expression, with other projections in the place of each chain of projections."""

    def merge(node: ops.Node, changed: Mapping[str, Any] | None) -> ops.Node:  # Any: its parts
        made = node if changed is None else node.__recreate__(changed)
        if isinstance(made, ops.DropColumns):
            made = ops.Project(made.parent, made.values)
        return _merged(made) if isinstance(made, ops.Project) else made

    def split(node: ops.Node, changed: Mapping[str, Any] | None) -> ops.Node:  # Any: its parts
        made = node if changed is None else node.__recreate__(changed)
        return _split(made, uses) if isinstance(made, ops.Project) else made

    return operation.replace(merge).replace(split)


def _merged(project: ops.Project) -> ops.Project:
    """The projection with the values of the one below in the place of its columns; windows stay in
    steps of their own."""
    below = project.parent
    if not isinstance(below, ops.Project):
        return project
    roots = [*project.values.values(), *below.values.values()]
    if any(isinstance(node, ops.WindowFunction) for node in _parents_first(roots)):
        return project

    def inner(node: ops.Node) -> ops.Node | None:
        return below.values[node.name] if isinstance(node, ops.Field) else None

    values = _rebuilt(project.values, inner)
    depths: dict[ops.Node, int] = {}
    for node in reversed(_parents_first(values.values())):
        depths[node] = 1 + max((depths[part] for part in _parts(node)), default=0)
    return project if max(depths.values()) > _DEEPEST else ops.Project(below.parent, values)


def _split(project: ops.Project, uses: Uses) -> ops.Project:
    """The projection over others, of which each has the repeated values that need no other."""
    number = count()
    while True:
        roots = list(project.values.values())
        order = _parents_first(roots)
        repeated = _repeated(order, roots, uses)
        if not repeated:
            return project
        levels: dict[ops.Node, int] = {}  # of a node: the repeated ones on its longest path
        for node in reversed(order):
            level = max((levels[part] for part in _parts(node)), default=0)
            levels[node] = level + (node in repeated)
        names = {n: f"\x1f{next(number)}" for n in repeated if levels[n] == 1}
        carried = {node.name: node for node in _fields(roots, names)}
        columns = {name: node for node, name in names.items()}
        project = _over(ops.Project(project.parent, carried | columns), project, names)


def _over(
    relation: ops.Relation, project: ops.Project, names: Mapping[ops.Node, str]
) -> ops.Project:
    """The projection over another relation, which has the nodes of these names as columns."""

    def column(node: ops.Node) -> ops.Node | None:
        if node in names:
            return ops.Field(relation, names[node])
        return ops.Field(relation, node.name) if isinstance(node, ops.Field) else None

    return ops.Project(relation, _rebuilt(project.values, column))


def _parts(node: ops.Node) -> list[ops.Node]:
    """The values that a value is computed from."""
    if isinstance(node, (*_LEAF, *_OPAQUE)):
        return []
    return [part for part in node.__children__ if isinstance(part, ops.Value)]


def _parents_first(roots: Any) -> list[ops.Node]:  # Any: values of a projection
    order: dict[ops.Node, None] = {}

    def visit(node: ops.Node) -> None:
        if node not in order:
            for part in _parts(node):
                visit(part)
            order[node] = None

    for root in roots:
        visit(root)
    return list(reversed(order))


def _repeated(order: list[ops.Node], roots: list[ops.Node], uses: Uses) -> dict[ops.Node, None]:
    """The nodes that would be computed more than once, and take longer than a step."""
    times = dict.fromkeys(order, 0)
    for root in roots:
        times[root] += 1
    found: dict[ops.Node, None] = {}
    for node in order:
        is_quick = times[node] <= _MOST_QUICK and _is_quick(node, uses)
        if times[node] > 1 and not (is_quick or isinstance(node, _LEAF)):
            found[node] = None
        own = 1 if node in found else times[node]
        weight = uses(node)
        for part in _parts(node):
            times[part] += own * weight
    return found


def _is_quick(node: ops.Node, uses: Uses) -> bool:
    """Whether it is one operation on numbers or truth values, without a step before."""
    parts = _parts(node)
    if not isinstance(node, _QUICK) or not all(isinstance(part, _LEAF) for part in parts):
        return False
    return uses(node) == 1 and all(p.dtype.is_numeric() or p.dtype.is_boolean() for p in parts)


def _fields(roots: list[ops.Node], computed: Mapping[ops.Node, str]) -> Iterator[ops.Node]:
    """The columns that these values read beside the computed nodes."""
    seen: set[ops.Node] = set(computed)
    left = list(roots)
    while left:
        node = left.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, ops.Field):
            yield node
        left += _inner(node)


def _inner(node: ops.Node) -> Iterator[ops.Node]:
    """All parts of a node but relations, also of windows."""
    return (part for part in node.__children__ if not isinstance(part, ops.Relation))


def _rebuilt(
    values: Mapping[str, ops.Node], changed: Callable[[ops.Node], ops.Node | None]
) -> dict[str, ops.Node]:
    """The values, with other nodes in the place of those for which there is one."""
    known: dict[ops.Node, ops.Node] = {}

    def rebuild(node: ops.Node) -> ops.Node:
        if node not in known:
            known[node] = changed(node) or recreate(node)
        return known[node]

    def recreate(node: ops.Node) -> ops.Node:
        if not any(True for _ in _inner(node)):
            return node
        named = zip(node.__argnames__, node.__args__, strict=True)
        return node.__recreate__({name: argument(given) for name, given in named})

    def argument(given: Any) -> Any:  # Any: a node's argument
        if isinstance(given, ops.Node) and not isinstance(given, ops.Relation):
            return rebuild(given)
        return tuple(map(argument, given)) if isinstance(given, tuple) else given

    return {name: rebuild(node) for name, node in values.items()}
