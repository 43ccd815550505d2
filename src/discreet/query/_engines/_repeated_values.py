"""Splits a step of an expression, so that no value is written or computed twice.

Forms of values repeat their arguments, see `_closed_compiler`, and a server may compute a repeated
expression anew each time. So a value that would be written several times becomes a column of a step
before.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import ibis.expr.operations as ops

Uses = Callable[[ops.Node], int]
"""How often the form of a node has an argument, at most."""

_OPAQUE = (ops.WindowFunction, ops.Reduction, ops.Relation)
_LEAF = (ops.Field, ops.Literal)


def staged(operation: ops.Relation, uses: Uses) -> ops.Relation:
    """The expression, with each projection as several, one after the other."""

    def split(node: ops.Node, changed: Mapping[str, Any] | None) -> ops.Node:  # Any: its parts
        made = node if changed is None else node.__recreate__(changed)
        return _split(made, uses) if isinstance(made, ops.Project) else made

    return operation.replace(split)


def _split(project: ops.Project, uses: Uses) -> ops.Project:
    # 1. the step at which each repeated value can be computed
    order = _parents_first(project.values.values())
    repeated = _repeated(order, list(project.values.values()), uses)
    levels: dict[ops.Node, int] = {}  # of a node: how many steps come before
    for node in reversed(order):
        level = max((levels[part] for part in _parts(node)), default=0)
        levels[node] = level + 1 if node in repeated else level
    # 2. one projection for each step, with all columns that later ones need
    relation = project.parent
    names = {node: f"\x1f{number}" for number, node in enumerate(repeated)}
    there: dict[ops.Node, str] = {}  # nodes that are columns by now
    for level in range(1, max(levels.values(), default=0) + 1):
        if not any(levels[node] == level for node in repeated):
            continue
        added = [node for node in repeated if levels[node] == level]
        later = [*project.values.values(), *(n for n in repeated if levels[n] > level)]
        carried = _carried(later, {**there, **{node: names[node] for node in added}})
        values = {
            name: ops.Field(relation, there.get(node, node.name))
            if node in there or isinstance(node, ops.Field)
            else _moved(node, relation, there, is_root=True)
            for node, name in carried.items()
        }
        relation = ops.Project(relation, values)
        there = carried
    # 3. the values themselves, over the last step
    if relation is project.parent:
        return project
    return ops.Project(
        relation,
        {
            name: _moved(node, relation, there, is_root=False)
            for name, node in project.values.items()
        },
    )


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
    """The nodes that would be computed more than once."""
    times = dict.fromkeys(order, 0)
    for root in roots:
        times[root] += 1
    found: dict[ops.Node, None] = {}
    for node in order:
        if times[node] > 1 and not isinstance(node, _LEAF):
            found[node] = None
        own = 1 if node in found else times[node]
        weight = uses(node)
        for part in _parts(node):
            times[part] += own * weight
    return found


def _carried(later: list[ops.Node], known: Mapping[ops.Node, str]) -> dict[ops.Node, str]:
    """The columns that later steps read, by their names: those known by now, and the relation's."""
    found: dict[ops.Node, str] = {}

    def visit(node: ops.Node) -> None:
        if node in known:
            found[node] = known[node]
        elif isinstance(node, ops.Field):
            found[node] = node.name
        else:
            for part in _inner(node):
                visit(part)

    for node in later:
        visit(node)
    return found


def _inner(node: ops.Node) -> Iterator[ops.Node]:
    """All parts of a node but relations, also of windows."""
    return (part for part in node.__children__ if not isinstance(part, ops.Relation))


def _moved(
    node: ops.Node, relation: ops.Relation, there: Mapping[ops.Node, str], *, is_root: bool
) -> ops.Node:
    """The node over the columns of another relation; a root is computed, even if it is there."""
    if node in there and not is_root:
        return ops.Field(relation, there[node])
    if isinstance(node, ops.Field):
        return ops.Field(relation, node.name)
    moved = {part: _moved(part, relation, there, is_root=False) for part in _inner(node)}

    def of(argument: Any) -> Any:  # Any: a node's argument
        if isinstance(argument, ops.Node):
            return moved.get(argument, argument)
        return tuple(map(of, argument)) if isinstance(argument, tuple) else argument

    if not moved:
        return node
    named = zip(node.__argnames__, node.__args__, strict=True)
    return node.__recreate__({name: of(argument) for name, argument in named})
