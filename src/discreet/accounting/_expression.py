"""Privacy losses read from text such as ``1000 * Gaussian(1.1) + Pure(0.1)``.

    sum      = product { "+" product }
    product  = item { ("*" | "/") item }
    item     = [ "-" ] number | name | term "(" [ argument { "," argument } ] ")" | "(" sum ")"
    argument = [ parameter "=" ] value
    value    = sum | "True" | "False" | change | "(" [ value { "," value } [ "," ] ] ")"
    change   = "Change.ADD_REMOVE" | "Change.REPLACE"

Python's parser splits the text, which is never run: anything outside of this grammar is refused. A
term is one of `discreet.accounting.terms`, and its arguments may be privacy losses. A name stands
for a number that is given later.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from fractions import Fraction
from inspect import signature

from discreet import _checks
from discreet._exact import Number, is_number, shown
from discreet._unit import Change
from discreet.accounting._loss import PrivacyLoss, Term
from discreet.errors import InvalidArgument

_LONGEST = 4000
_DEEPEST = 30
_WIDEST = 72  # characters of the text that an error shows
_PREFIX = "accounting"  # of the terms in the repr of a privacy loss
_NOTHING = "PrivacyLoss"  # an empty sum in that repr
_ALLOWED = "numbers, names, terms in +, *, / and parentheses"

_DIGITS = "[0-9][0-9_]*"
_NUMBER = rf"(?:{_DIGITS}\.?(?:{_DIGITS})?|\.{_DIGITS})(?:[eE][-+]?[0-9]+)?(?![A-Za-z0-9_.])"
_TOKEN = re.compile(rf"{_NUMBER}|[A-Za-z_][A-Za-z0-9_]*|[-+*/(),=.]|[ ]+")
_SIGNS = {ast.Add: "+", ast.Mult: "*", ast.Div: "/"}

_ParsedValue = Fraction | Term | PrivacyLoss
_Argument = _ParsedValue | bool | Change | tuple["_Argument", ...]


def parse(text: str) -> PrivacyLoss:
    """The privacy loss that the text describes; ``str(loss)`` is such a text.

    Numbers have their exact value. A text has at most 4,000 characters; a term with a long curve
    needs more, and `PrivacyLoss.to_json` writes it. Anything outside of the grammar raises
    `InvalidArgument`, which shows the place.

    >>> parse("1000 * Gaussian(1.1) + Pure(epsilon=1/3)")
    accounting.Pure(epsilon=1/3) + 1000 * accounting.Gaussian(multiplier=1.1)
    >>> parse("1000 * PoissonSampled(Gaussian(1.1), rate=256/60000)").terms[0][1]
    1000
    """
    return Expression.of(text).loss()


@dataclass(frozen=True, slots=True)
class Expression:
    """A privacy loss as text, in which names may stand for numbers that are given later.

    >>> training = Expression.of("steps * Gaussian(sigma)")
    >>> sorted(training.names), sorted(training.counts)
    (['sigma', 'steps'], ['steps'])
    >>> training.loss({"steps": 1000, "sigma": 1.1})
    1000 * accounting.Gaussian(multiplier=1.1)
    """

    text: str
    tree: ast.expr = field(repr=False, compare=False)

    @staticmethod
    def of(text: str) -> "Expression":
        """The expression; a text that can't be split raises `InvalidArgument`."""
        if not isinstance(text, str):
            raise InvalidArgument(f"give a privacy loss as text, not as {type(text).__name__}")
        if len(text) > _LONGEST:
            raise InvalidArgument(
                f"an expression has at most {_LONGEST} characters, and this one {len(text)}: write "
                "a longer loss by to_json"
            )
        line = re.sub(r"\s", " ", text).strip()
        _check_tokens(line)
        try:
            return Expression(line, ast.parse(line, mode="eval").body)
        except SyntaxError as error:
            at = min((error.offset or len(line) + 1) - 1, len(line))  # at the end Python says 0
            reason_text = (
                f"{_near(line, at)} can't stand here" if at < len(line) else "more must follow"
            )
            raise _mistake(line, at, reason_text) from None
        except (ValueError, RecursionError, MemoryError):
            raise InvalidArgument("the expression has too many nested parts") from None

    @property
    def names(self) -> frozenset[str]:
        """The names that stand for numbers."""
        return frozenset(_names(self.tree)) - {_NOTHING, *_terms()}

    @property
    def counts(self) -> frozenset[str]:
        """The names that stand for whole numbers: counts of privacy losses, and whole parameters
        of terms."""
        parts = (*_multiples(self.tree), *_whole_arguments(self.tree))
        return self.names & {name for part in parts for name in _names(part)}

    def loss(self, values: Mapping[str, Number] | None = None) -> PrivacyLoss:
        """The privacy loss with these values for its names."""
        known = {name: _checks.finite(**{name: value}) for name, value in (values or {}).items()}
        try:
            value = _Reading(self.text, known).value(self.tree)
        except RecursionError:
            raise InvalidArgument("the expression has too many nested parts") from None
        if isinstance(value, Fraction):
            raise _mistake(
                self.text,
                0,
                f"{shown(value)} is a number: give a privacy loss, such as 3 * Pure(0.1)",
            )
        return PrivacyLoss() + value


@dataclass(frozen=True, slots=True)
class _Reading:
    """Computes the values of the parts of an expression."""

    text: str
    known: Mapping[str, Fraction]

    def value(self, node: ast.expr) -> _ParsedValue:
        """A number, a term or a sum. Long sums lean to the left, so they need no recursion."""
        steps = []
        while isinstance(node, ast.BinOp):
            steps.append(node)
            node = node.left
        value = self._item(node)
        for step in reversed(steps):
            value = self._joined(step, value, self.value(step.right))
        return value

    def _item(self, node: ast.expr) -> _ParsedValue:
        match node:
            case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
                return self._number(node)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float()) as number):
                return -self._number(number)
            case ast.Name(id=name) if name in self.known:
                return self.known[name]
            case ast.Name(id=name):
                raise self._unknown(node, name)
            case ast.Call():
                return self._call(node)
        raise self._mistake(node, f"this has no meaning here: allowed are {_ALLOWED}")

    def _number(self, node: ast.Constant) -> Fraction:
        """The exact value of the number as it is written, not that of a float near it."""
        written = self.text[node.col_offset : node.end_col_offset].replace("_", "")
        try:
            exact = Decimal(written)
        except InvalidOperation:
            exact = Decimal("nan")
        return self._in_range(node, Fraction(exact) if is_number(exact) else None)

    def _in_range(self, node: ast.expr, number: Fraction | None) -> Fraction:
        if number is None or not is_number(number):
            raise self._mistake(node, "a number has at most 1000 digits on each side of its point")
        return number

    def _joined(self, step: ast.BinOp, left: _ParsedValue, right: _ParsedValue) -> _ParsedValue:
        """The value of one operation. Privacy losses are added, or multiplied by a count; numbers
        are added, multiplied and divided."""
        match _SIGNS.get(type(step.op)), left, right:
            case "+", Fraction(), Fraction():
                return self._in_range(step, left + right)
            case "+", (Term() | PrivacyLoss()), (Term() | PrivacyLoss()):
                return left + right
            case "*", Fraction(), Fraction():
                return self._in_range(step, left * right)
            case "*", (Term() | PrivacyLoss()), Fraction():
                return left * self._count(step.right, right)
            case "*", Fraction(), (Term() | PrivacyLoss()):
                return right * self._count(step.left, left)
            case "/", Fraction(), Fraction() if right:
                return self._in_range(step, left / right)
            case "/", Fraction(), Fraction():
                raise self._mistake(step.right, "this divides by 0")
        raise _mistake(self.text, self._sign(step), _WRONG.get(type(step.op), _NO_SIGN))

    def _sign(self, step: ast.BinOp) -> int:
        """The place of the sign: after the left side and its closing parentheses."""
        at = step.left.end_col_offset or 0
        while self.text[at] in " )":
            at += 1
        return at

    def _count(self, node: ast.expr, number: Fraction) -> int:
        if number.denominator != 1 or number < 0:
            raise self._mistake(
                node, f"{shown(number)} times: give a whole number, 0 or above, as the count"
            )
        return int(number)

    def _call(self, node: ast.Call) -> Term | PrivacyLoss:
        name, at = self._called(node.func)
        if name == _NOTHING and not node.args and not node.keywords:
            return PrivacyLoss()
        known = _terms()
        if name not in known:
            near = _did_you_mean(name, known)
            reason_text = f"no term {_short(name)!r}{near}; there are {', '.join(known)}"
            raise _mistake(self.text, at, reason_text)
        given = [self._argument(argument) for argument in node.args]
        named: dict[str, _Argument] = {}
        for keyword in node.keywords:
            named[self._parameter(keyword, known[name], named)] = self._argument(keyword.value)
        try:
            bound = signature(known[name]).bind(*given, **named)
            return known[name](*bound.args, **bound.kwargs)
        except TypeError as reason:
            reason_text = f"{name} takes {', '.join(signature(known[name]).parameters)}: {reason}"
            raise _mistake(self.text, at, reason_text) from None
        except InvalidArgument as reason:
            raise _mistake(self.text, at, f"{name}: {reason}") from None

    def _argument(self, node: ast.expr) -> "_Argument":
        match node:
            case ast.Constant(value=bool(fact)):
                return fact
            case ast.Tuple(elts=parts):
                return tuple(self._argument(part) for part in parts)
            case ast.Attribute(value=ast.Name(id="Change"), attr=name) if (
                name in Change.__members__
            ):
                return Change[name]
        return self.value(node)

    def _called(self, node: ast.expr) -> tuple[str, int]:
        """The name of the called term, and its place."""
        match node:
            case ast.Name(id=name):
                return name, node.col_offset
            case ast.Attribute(value=ast.Name(id=prefix), attr=name) if prefix == _PREFIX:
                return name, (node.end_col_offset or 0) - len(name)
        raise self._mistake(
            node, f"only a term takes parameters; the terms are {', '.join(_terms())}"
        )

    def _parameter(
        self, keyword: ast.keyword, kind: type[Term], given: Mapping[str, object]
    ) -> str:
        known = list(signature(kind).parameters)
        name = keyword.arg
        if name in known and name not in given:
            return name
        if name is None or name in given:
            reason_text = "each parameter is given once, by its name or its place"
        else:
            has = f"{kind.__name__} has no {_short(name)}{_did_you_mean(name, known)}"
            reason_text = f"{has}; it takes {', '.join(known)}"
        raise _mistake(self.text, keyword.col_offset, reason_text)

    def _unknown(self, node: ast.expr, name: str) -> InvalidArgument:
        known = _terms()
        if name in known:
            needed = ", ".join(signature(known[name]).parameters)
            return self._mistake(node, f"{name} needs its parameters: {name}({needed})")
        near = _did_you_mean(name, [*self.known, *known])
        return self._mistake(node, f"{_short(name)} stands for no number{near}")

    def _mistake(self, node: ast.expr, what: str) -> InvalidArgument:
        return _mistake(self.text, node.col_offset, what)


_NO_SIGN = "only +, * and / are allowed"
_WRONG = {
    ast.Add: "a number and a privacy loss can't be added: write a count as in 3 * Pure(0.1)",
    ast.Mult: "privacy losses can't be multiplied: one side must be a count, as in 3 * Pure(0.1)",
    ast.Div: "a privacy loss can't be divided: only numbers can",
}


def _terms() -> dict[str, type[Term]]:
    from discreet.accounting import terms

    return {name: getattr(terms, name) for name in terms.__all__}


def _costs(tree: ast.expr) -> set[ast.AST]:
    """The parts that are privacy losses, not numbers."""
    found: set[ast.AST] = set()
    for node in reversed(list(ast.walk(tree))):  # the parts of a part come before it
        if isinstance(node, ast.Call) or (
            isinstance(node, ast.BinOp) and not found.isdisjoint((node.left, node.right))
        ):
            found.add(node)
    return found


def _multiples(tree: ast.expr) -> Iterator[ast.expr]:
    """The counts of privacy losses."""
    costs = _costs(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and node in costs:
            yield from (side for side in (node.left, node.right) if side not in costs)


def _whole_arguments(tree: ast.expr) -> Iterator[ast.expr]:
    """The arguments that must be whole numbers."""
    known = _terms()
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or (name := _called_name(call.func)) not in known:
            continue
        parameters = signature(known[name]).parameters
        given: list[tuple[str | None, ast.expr]] = [*zip(parameters, call.args, strict=False)]
        given += [(keyword.arg, keyword.value) for keyword in call.keywords]
        whole = {name for name, each in parameters.items() if each.annotation is int}
        yield from (argument for name, argument in given if name in whole)


def _called_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _names(node: ast.expr) -> Iterator[str]:
    """The names in this part, except the names of terms."""
    parts = list(ast.walk(node))
    others = {part.func for part in parts if isinstance(part, ast.Call)}
    others |= {part.value for part in parts if isinstance(part, ast.Attribute)}
    for part in parts:
        if isinstance(part, ast.Name) and part not in others:
            yield part.id


def _check_tokens(text: str) -> None:
    """Refuse texts outside of the grammar, before Python's parser sees them."""
    if not text:
        raise InvalidArgument("the expression is empty: give a privacy loss, as in 3 * Pure(0.1)")
    at, opened = 0, []
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise _mistake(text, at, f"{_near(text, at)} can't stand here: allowed are {_ALLOWED}")
        if token[0] == "(":
            opened.append(at)
        elif token[0] == ")" and opened:
            opened.pop()
        if len(opened) > _DEEPEST:
            raise _mistake(text, at, f"at most {_DEEPEST} parentheses may be nested")
        at = token.end()
    if opened:
        raise _mistake(text, opened[-1], "this parenthesis isn't closed")


def _near(text: str, at: int) -> str:
    """The word at this place, shortened."""
    found = re.match(r"\w[\w.]*|\S|$", text[at:].lstrip())
    return repr(_short(found[0] if found else ""))


def _did_you_mean(given: str, known: Mapping[str, object] | list[str]) -> str:
    lower = {name.lower(): name for name in known}
    near = get_close_matches(given[:_WIDEST].lower(), lower, n=1)
    return f" (did you mean {lower[near[0]]}?)" if near else ""


def _short(text: str) -> str:
    return text if len(text) <= 30 else f"{text[:30]}…"


def _mistake(text: str, at: int, what: str) -> InvalidArgument:
    """The error, with the text around that place and a mark below it."""
    start = max(0, min(at - _WIDEST // 2, len(text) - _WIDEST))
    part = "".join(c if c.isprintable() else "?" for c in text[start : start + _WIDEST])
    before = "…" if start else ""
    after = "…" if start + _WIDEST < len(text) else ""
    mark = " " * (at - start + len(before)) + "^"
    return InvalidArgument(f"{what}\n  {before}{part}{after}\n  {mark}")
