"""Reads GROUP BY of an SQL text: keys, and the grouping sets that ROLLUP and CUBE mean."""

from dataclasses import dataclass
from itertools import chain, combinations, product
from math import prod

from sqlglot import exp

from discreet.query._outputs._post_processing import MOST_SETS
from discreet.query._sql._tree_reader import TreeReader

Nodes = tuple[exp.Expr, ...]

_TOO_MANY = (
    f"GROUP BY may have {MOST_SETS} grouping sets; name the totals that you need, as GROUPING SETS "
    "((a, b), (a), ())"
)


@dataclass(frozen=True, slots=True)
class Grouping:
    """The nodes of GROUP BY in each grouping set; one set, unless there are totals."""

    sets: tuple[Nodes, ...]

    @property
    def nodes(self) -> Nodes:
        """The nodes of all sets, in order."""
        return tuple(chain.from_iterable(self.sets))


def read_grouping(group: exp.Expr | None, reader: TreeReader) -> Grouping:
    """The grouping sets of GROUP BY: each combination of those that its elements have."""
    if group is None:
        return Grouping(((),))
    elements = [_element(node, reader) for node in group.expressions]
    if prod(map(len, elements)) > MOST_SETS:
        raise reader.refused(group, _TOO_MANY)
    combined = (tuple(chain.from_iterable(chosen)) for chosen in product(*elements))
    return Grouping(tuple(combined))


def _element(node: exp.Expr, reader: TreeReader) -> list[Nodes]:
    """The grouping sets of one element; a key alone has one set, which holds it."""
    match node:
        case exp.Rollup():
            return _rolled_up(node)
        case exp.Cube():
            if 2 ** len(node.expressions) > MOST_SETS:
                raise reader.refused(node, _TOO_MANY)
            return _cube(node)
        case exp.GroupingSets():
            return [one for inner in node.expressions for one in _set(inner, reader)]
    return [(node,)]


def _rolled_up(node: exp.Expr) -> list[Nodes]:
    """ROLLUP (a, b): (a, b), (a), ()."""
    parts = list(map(_together, node.expressions))
    return [tuple(chain.from_iterable(parts[:count])) for count in range(len(parts), -1, -1)]


def _cube(node: exp.Expr) -> list[Nodes]:
    """CUBE (a, b): (a, b), (a), (b), ()."""
    parts = list(map(_together, node.expressions))
    sizes = range(len(parts), -1, -1)
    chosen = chain.from_iterable(combinations(parts, size) for size in sizes)
    return [tuple(chain.from_iterable(one)) for one in chosen]


def _set(node: exp.Expr, reader: TreeReader) -> list[Nodes]:
    """The sets of one item of GROUPING SETS, which may be a ROLLUP or CUBE."""
    if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets):
        return _element(node, reader)
    return [_together(node)]


def _together(node: exp.Expr) -> Nodes:
    """The keys of (a, b), or of one key alone."""
    return tuple(node.expressions) if isinstance(node, exp.Tuple) else (node,)
