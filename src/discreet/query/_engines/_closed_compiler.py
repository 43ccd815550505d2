"""Compiles our expressions to the SQL of a server, from a closed list of operations.

Ibis' own compiler writes the relations. Values have forms, which are texts of the server's SQL:
``@0`` stands for the first argument. A form may repeat it, since `_repeated_values` makes a column
of each value that would be written twice. An operation without a form is refused.
"""

import re
from functools import cache
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any, ClassVar

import ibis.expr.operations as ops
import sqlglot.expressions as sge
from ibis.backends.sql.compilers import base
from ibis.common.exceptions import UnsupportedOperationError

from discreet.query._engines._repeated_values import staged

_ARGUMENT = re.compile("@([0-9]+)")
_RELATIONS = (
    *("Select", "Aggregate", "JoinChain", "JoinLink", "JoinReference", "SelfReference"),
    *("UnboundTable", "InMemoryTable", "DropColumns", "Distinct", "Union", "Limit", "Field"),
    *("SortKey", "WindowFunction", "CTE", "RowNumber", "Alias", "AliasedRelation", "JoinTable"),
)
READ_ONCE = frozenset(
    {
        *("Alias", "Coalesce", "Greatest", "InValues", "Least", "Modulus", "SearchedCase"),
        *("StringConcat", "TimestampTruncate"),
    }
)
"""Operations with a form here that has each argument once."""


def constant(node: Any) -> Any:  # Any: a value of Ibis, and its constant
    """The constant of a literal, or of a cast of one; None for others."""
    if isinstance(node, ops.Cast | ops.TryCast):
        node = node.arg
    return node.value if isinstance(node, ops.Literal) else None


class _FilledForm(sge.Expression, sge.Condition):
    """A form with its arguments."""

    arg_types = {"this": True, "expressions": False}  # noqa: RUF012  # sqlglot's own way


def _written(generator: Any, form: _FilledForm) -> str:  # Any: sqlglot's generator
    arguments = [generator.sql(one) for one in form.expressions]
    if not arguments:
        return str(form.this)
    return _ARGUMENT.sub(lambda found: arguments[int(found[1])], str(form.this))


class ClosedForms:
    """Mixed into a compiler of Ibis, gives values the forms of two modules of an engine."""

    __slots__ = ()
    forms: ClassVar[ModuleType]
    texts: ClassVar[ModuleType]

    def visit_node(self, op: ops.Node, **given: Any) -> Any:  # Any: sqlglot's expressions
        """A node as an expression of sqlglot; of a value, by its form."""
        name = type(op).__name__
        if own := getattr(self, f"form_{name}", None):
            return own(op, **given)
        if isinstance(op, ops.ScalarUDF):
            return self._function(op, list(given.values()))
        if name in self.forms.FORMS:
            return filled(self.forms.FORMS[name], *given.values())
        if name in _RELATIONS or isinstance(op, ops.CountStar | ops.Max | ops.Min):
            return super().visit_node(op, **given)  # type: ignore[misc]  # Ibis' compiler
        raise UnsupportedOperationError(f"{name} has no form")

    def form_WindowBoundary(self, op: ops.Node, **_: Any) -> Any:  # noqa: N802
        """The end of a frame."""
        value = sge.Literal.number(int(op.value.value))
        return {"value": value, "side": "preceding" if op.preceding else "following"}

    def form_Sum(self, op: ops.Node, *, arg: Any, where: Any, **_: Any) -> Any:  # noqa: N802
        """A sum."""
        if where is not None:
            raise UnsupportedOperationError("a sum of chosen rows")
        return filled(self.forms.summed(op.arg.dtype), arg)

    def form_Count(self, _: ops.Node, *, arg: Any, where: Any, **__: Any) -> Any:  # noqa: N802
        """The number of values that aren't NULL."""
        if where is not None:
            raise UnsupportedOperationError("a count of chosen rows")
        return filled("count(@0)", arg)

    # --- values ---

    def form_Literal(self, op: ops.Node, **_: Any) -> Any:  # noqa: N802
        """A constant."""
        return filled(self.forms.literal(op.value, op.dtype))

    def form_Cast(self, op: ops.Node, *, arg: Any, **_: Any) -> Any:  # noqa: N802
        """A cast."""
        return filled(self.forms.cast_of(op), arg)

    form_TryCast = form_Cast  # noqa: N815

    def form_Multiply(self, op: ops.Node, *, left: Any, right: Any) -> Any:  # noqa: N802
        """A product."""
        known = _number(op.right)
        constant = _number(op.left) if known is None else known
        return filled(self.forms.product(op.left.dtype, op.right.dtype, constant), left, right)

    def form_Divide(self, op: ops.Node, *, left: Any, right: Any) -> Any:  # noqa: N802
        """A quotient of floats."""
        return filled(self.forms.quotient(_number(op.right)), self._float(left), self._float(right))

    def _float(self, given: Any) -> Any:
        return filled(self.forms.AS_FLOAT, given)

    def form_Modulus(self, op: ops.Node, *, left: Any, right: Any) -> Any:  # noqa: N802
        """A remainder of whole numbers."""
        return filled(
            self.forms.remainder(op.left.dtype, op.right.dtype, _number(op.right)), left, right
        )

    def form_Power(self, op: ops.Node, *, left: Any, right: Any) -> Any:  # noqa: N802
        """A power with a constant exponent."""
        exponent = _number(op.right)
        if exponent is None:
            raise UnsupportedOperationError("a power that isn't constant")
        del right
        return filled(self.forms.power(exponent), left)

    def form_Round(self, op: ops.Node, *, arg: Any, **_: Any) -> Any:  # noqa: N802
        """The nearest whole number, halves away from 0."""
        if op.digits is not None and constant(op.digits) != 0:
            raise UnsupportedOperationError("rounding to digits")
        if op.arg.dtype.is_integer():
            return arg
        return filled(self.forms.FORMS["Round"], arg)

    def form_Coalesce(self, _: ops.Node, *, arg: Any) -> Any:  # noqa: N802
        """The first value that isn't NULL."""
        return filled(_listed("coalesce", arg), *arg)

    def form_Greatest(self, _: ops.Node, *, arg: Any) -> Any:  # noqa: N802
        """The greatest value."""
        return filled(_listed("greatest", arg), *arg)

    def form_Least(self, _: ops.Node, *, arg: Any) -> Any:  # noqa: N802
        """The least value."""
        return filled(_listed("least", arg), *arg)

    def form_SearchedCase(  # noqa: N802
        self, _: ops.Node, *, cases: Any, results: Any, default: Any
    ) -> Any:
        """The result of the first case that holds."""
        made = sge.Case(
            ifs=[sge.If(this=one, true=two) for one, two in zip(cases, results, strict=True)],
            default=default,
        )
        return filled("(@0)", made)

    def form_InValues(self, _: ops.Node, *, value: Any, options: Any) -> Any:  # noqa: N802
        """Whether a value is one of several."""
        return filled("(@0)", sge.In(this=value, expressions=list(options)))

    def form_StringConcat(self, _: ops.Node, *, arg: Any) -> Any:  # noqa: N802
        """Texts one after the other."""
        return filled("(" + " || ".join(f"@{place}" for place in range(len(arg))) + ")", *arg)

    def form_TimestampTruncate(self, op: ops.Node, *, arg: Any, **_: Any) -> Any:  # noqa: N802
        """The first moment of a year, quarter, month, week or day."""
        return filled(self.forms.truncated(op.unit.name.lower()), arg)

    def form_Lowercase(self, op: ops.Node, *, arg: Any) -> Any:  # noqa: N802
        """The text in lower case; one in plain ASCII by the plain function."""
        made = _origin(op.arg)
        is_plain = isinstance(made, ops.Cast) and made.arg.dtype.is_binary()
        form = self.texts.PLAIN_LOWER if is_plain else self.texts.changed_case(is_lower=True)
        return filled(form, arg)

    def form_Uppercase(self, _: ops.Node, *, arg: Any) -> Any:  # noqa: N802
        """The text in upper case."""
        return filled(self.texts.changed_case(is_lower=False), arg)

    def form_RegexSearch(self, op: ops.Node, *, arg: Any, **_: Any) -> Any:  # noqa: N802
        """Whether a pattern matches."""
        return filled(self.texts.search(_text(op.pattern)), arg)

    def form_RegexExtract(self, op: ops.Node, *, arg: Any, **_: Any) -> Any:  # noqa: N802
        """The first group of a match."""
        return filled(self.texts.extract(_text(op.pattern)), arg)

    def form_RegexReplace(self, op: ops.Node, *, arg: Any, **_: Any) -> Any:  # noqa: N802
        """All matches replaced."""
        return filled(self.texts.replaced(_text(op.pattern), _text(op.replacement)), arg)

    def _function(self, op: Any, given: list[Any]) -> Any:
        """A function that `_engine` declares."""
        name = op.__func_name__
        constants = [constant(argument) for argument in op.args]
        if name == "discreet_moment":
            return filled(self.texts.moment(str(constants[1])), given[0])
        if name == "discreet_bytes" and isinstance(constants[0], str):
            return filled(self.forms.literal(constants[0].encode(errors="surrogatepass"), op.dtype))
        if name not in self.forms.FUNCTIONS:
            raise UnsupportedOperationError(f"{name} has no form")
        return filled(self.forms.FUNCTIONS[name], *given)


def filled(text: str, *arguments: Any) -> Any:  # Any: sqlglot's expressions
    """A form with its arguments."""
    return _FilledForm(this=text, expressions=list(arguments))


def _listed(name: str, given: Any) -> str:  # Any: sqlglot's expressions
    return f"{name}(" + ", ".join(f"@{place}" for place in range(len(given))) + ")"


def _origin(node: Any) -> Any:  # Any: a value of Ibis
    """The expression of a column that a step before has computed; another value itself."""
    while isinstance(node, ops.Field) and node.name in node.rel.values:
        node = node.rel.values[node.name]
    return node


def _number(node: Any) -> float | None:  # Any: as above
    value = constant(node)
    return None if value is None else float(value)


def _text(node: Any) -> str:  # Any: as above
    value = constant(node)
    if not isinstance(value, str):
        raise UnsupportedOperationError("a pattern that isn't constant")
    return value


def written(operation: ops.Relation, compiler: Any, dialect: Any) -> str:  # Any: have no types
    """The statement of an expression, by a compiler of Ibis and a dialect of sqlglot."""

    def uses(node: ops.Node) -> int:
        """How often the form of a node has an argument, at most."""
        if isinstance(node, ops.Cast | ops.TryCast):
            return max(str(compiler.forms.cast_of(node)).count("@0"), 1)
        name = type(node).__name__
        form = compiler.forms.FORMS.get(name)
        if isinstance(node, ops.Multiply):
            constant = _number(node.right) if _number(node.left) is None else _number(node.left)
            form = compiler.forms.product(node.left.dtype, node.right.dtype, constant)
        if form is None:
            return 1 if name in READ_ONCE else 2
        return max(str(form).count(f"@{place}") for place in range(3))

    tree = _each_step(compiler).to_sqlglot(staged(operation, uses).to_expr())
    return str(_writer(dialect)(dialect=dialect()).generate(tree, copy=False))


@cache
def _writer(dialect: Any) -> type[Any]:  # Any: sqlglot's and Ibis' have no types
    transforms = {**dialect.Generator.TRANSFORMS, _FilledForm: _written}
    return type("_SqlWriter", (dialect.Generator,), {"TRANSFORMS": transforms})


@cache
def _each_step(compiler: Any) -> Any:  # Any: Ibis' own, which has no types
    """The compiler, which writes each step as a query of its own, see `_duckdb`."""
    plain = base.SQLGlotCompiler.translate
    options = SimpleNamespace(sql=SimpleNamespace(fuse_selects=False))
    translate = FunctionType(plain.__code__, vars(base) | {"options": options})
    translate.__kwdefaults__ = plain.__kwdefaults__
    return type("EachStepByItself", (compiler,), {"translate": translate})()
