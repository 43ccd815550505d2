"""The changes of a text that would most likely weaken privacy, in a fixed order.

Beside those of Cosmic Ray: a comparison that is turned, a maximum for a minimum, another direction
of rounding, a factor or a term left out, a clamp left out, a call or a refusal left out, one half
of a condition left out, another number. The first kinds matter most.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

KINDS = (  # the worst first, each three alike
    *("limit", "rounding", "comparison"),
    *("statement", "refusal", "part"),
    *("condition", "number", "swap"),
)

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
}
_SYMBOLS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_PAIRS = (
    ("min", "max"),
    ("minimum", "maximum"),
    ("amin", "amax"),
    ("ceil", "floor"),
    ("any", "all"),
    ("lower", "upper"),
    ("discretize_lower", "discretize_upper"),
    ("bisect_left", "bisect_right"),
    ("clamp_min", "clamp_max"),
)
_OTHER = {**dict(_PAIRS), **{second: first for first, second in _PAIRS}}
_LIMITING = {
    *("abs", "ceil", "clip", "clamp", "floor", "max", "maximum", "min", "minimum", "nextafter"),
    *("clamp_min", "clamp_max", "nan_to_num", "sqrt", "set", "sorted", "unique", "isqrt"),
}
_QUIET = ("__str__", "__repr__", "__init_subclass__", "__dir__")  # they only make texts


@dataclass(frozen=True, slots=True)
class Mutation:
    """A change: its kind, the text from one place to another, and what replaces it."""

    kind: str
    begin: tuple[int, int]  # row, from 1, and column, in bytes
    end: tuple[int, int]
    new: str

    def of(self, text: str) -> str:
        """The changed text."""
        lines = text.encode().splitlines(keepends=True)
        (row, column), (last, until) = self.begin, self.end
        head = b"".join(lines[: row - 1]) + lines[row - 1][:column]
        tail = lines[last - 1][until:] + b"".join(lines[last:])
        return (head + self.new.encode() + tail).decode()

    def changes(self, text: str) -> bool:
        """Whether the changed text is code, and another one."""
        try:
            return ast.dump(ast.parse(self.of(text))) != ast.dump(ast.parse(text))
        except SyntaxError:
            return False


def mutations(text: str) -> list[Mutation]:
    """The changes of this text, the worst kinds first; a few of them make text that is no code."""
    found = {each: None for node in _nodes(ast.parse(text)) for each in _of(node, text)}
    return sorted(found, key=_order)


def _order(mutation: Mutation) -> tuple[int, tuple[int, int], str]:
    return KINDS.index(mutation.kind), mutation.begin, mutation.new


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that can change what is computed: no annotations, messages or decorators."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in _QUIET:
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params", "bases"):
            continue
        if isinstance(node, ast.Raise) or (isinstance(node, ast.Assert) and name == "msg"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                yield from _nodes(child)


def _of(node: ast.AST, text: str) -> Iterator[Mutation]:
    if isinstance(node, ast.stmt):
        return _stated(node)
    if isinstance(node, ast.Slice) and node.upper is not None:
        return iter([_replaced("part", node.upper, "")])
    if isinstance(node, ast.Constant):
        return _constant(node)
    return _computed(node, text)


def _stated(node: ast.stmt) -> Iterator[Mutation]:
    match node:
        case ast.Expr(value=ast.Call() | ast.Yield() | ast.YieldFrom()) | ast.AugAssign():
            yield _replaced("statement", node, "pass")
        case ast.Raise() | ast.Assert():
            yield _replaced("refusal", node, "pass")
        case ast.If() if not isinstance(node.body[0], ast.Raise):
            yield _replaced("condition", node.test, "False")
        case _:
            pass


def _constant(node: ast.Constant) -> Iterator[Mutation]:
    if isinstance(node.value, bool):
        yield _replaced("condition", node, str(not node.value))
    elif isinstance(node.value, (int, float)):
        for other in (node.value + 1, node.value - 1):
            yield _replaced("number", node, f"({other})" if other < 0 else str(other))


def _computed(node: ast.AST, text: str) -> Iterator[Mutation]:
    match node:
        case ast.Compare():
            yield from _compared(node, text)
        case ast.Call():
            yield from _called(node, text)
        case ast.BinOp():
            yield from _calculated(node, text)
        case ast.BoolOp():
            for each in node.values:
                others = [_source(other, text) for other in node.values if other is not each]
                word = " and " if isinstance(node.op, ast.And) else " or "
                yield _replaced("condition", node, f"({word.join(others)})")
        case ast.UnaryOp(op=ast.USub() | ast.Not()):
            yield _replaced("part", node, f"({_source(node.operand, text)})")
        case ast.IfExp():
            yield _replaced("condition", node, f"({_source(node.body, text)})")
            yield _replaced("condition", node, f"({_source(node.orelse, text)})")
        case _:
            pass


def _compared(node: ast.Compare, text: str) -> Iterator[Mutation]:
    sides = [node.left, *node.comparators]
    for left, sign, right in zip(sides, node.ops, sides[1:], strict=False):
        if type(sign) in _COMPARISONS:
            begin, end = _end(left), (right.lineno, right.col_offset)
            between = _between(begin, end, text)
            new = between.replace(_SYMBOLS[type(sign)], _COMPARISONS[type(sign)])
            kind = "swap" if isinstance(sign, (ast.Eq, ast.NotEq)) else "comparison"
            yield Mutation(kind, begin, end, new)


def _called(node: ast.Call, text: str) -> Iterator[Mutation]:
    match node.func:
        case ast.Name(id=name):
            begin = node.func.lineno, node.func.col_offset
        case ast.Attribute(attr=name):
            row, column = _end(node.func)
            begin = row, column - len(name)
        case _:
            return
    if name in _OTHER:
        yield Mutation("limit", begin, _end(node.func), _OTHER[name])
    if name in _LIMITING and node.args and not isinstance(node.args[0], ast.Starred):
        yield _replaced("limit", node, f"({_source(node.args[0], text)})")


def _calculated(node: ast.BinOp, text: str) -> Iterator[Mutation]:
    left, right = _source(node.left, text), _source(node.right, text)
    if isinstance(node.op, (ast.BitOr, ast.BitAnd)) and not isinstance(node.right, ast.Set):
        yield _replaced("condition", node, f"({left})")
        yield _replaced("condition", node, f"({right})")
        return
    if isinstance(node.op, ast.FloorDiv):
        yield _replaced("rounding", node, f"(({left}) // ({right}) + 1)")
        yield _replaced("rounding", node, f"(({left}) // ({right}) - 1)")
    if isinstance(node.op, (ast.Mult, ast.Div, ast.FloorDiv, ast.Add, ast.Sub, ast.Pow)):
        yield _replaced("part", node, f"({left})")
    if isinstance(node.op, (ast.Mult, ast.Add)):
        yield _replaced("part", node, f"({right})")
    if isinstance(node.op, (ast.Add, ast.Sub)):
        sign = "-" if isinstance(node.op, ast.Add) else "+"
        yield _replaced("swap", node, f"({left} {sign} ({right}))")


def _replaced(kind: str, node: ast.expr | ast.stmt, new: str) -> Mutation:
    return Mutation(kind, (node.lineno, node.col_offset), _end(node), new)


def _end(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return cast("int", node.end_lineno), cast("int", node.end_col_offset)


def _source(node: ast.AST, text: str) -> str:
    return cast("str", ast.get_source_segment(text, node))


def _between(begin: tuple[int, int], end: tuple[int, int], text: str) -> str:
    lines = [line.encode() for line in text.splitlines(keepends=True)]
    (row, column), (last, until) = begin, end
    if row == last:
        return lines[row - 1][column:until].decode()
    middle = lines[row : last - 1]
    return b"".join([lines[row - 1][column:], *middle, lines[last - 1][:until]]).decode()
