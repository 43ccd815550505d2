"""Compiles our expressions to PostgreSQL's SQL, from a closed list of operations.

Ibis' own compiler writes the relations; values have the forms of `_postgres_forms`, which need no
function but PostgreSQL's own. An operation without a form is refused.
"""

import re
from functools import cache
from types import FunctionType, SimpleNamespace
from typing import Any

import ibis.expr.operations as ops
import sqlglot.expressions as sge
from ibis.backends.sql.compilers import base
from ibis.backends.sql.compilers.postgres import PostgresCompiler
from ibis.backends.sql.dialects import Postgres
from ibis.common.exceptions import UnsupportedOperationError

from discreet.query import _postgres_forms as forms
from discreet.query import _postgres_texts as texts
from discreet.query._postgres_stages import staged

LONGEST_NAME = 63  # bytes; PostgreSQL cuts longer names
_ARGUMENT = re.compile("@([0-9]+)")
_RELATIONS = (
    *("Select", "Aggregate", "JoinChain", "JoinLink", "JoinReference", "SelfReference"),
    *(
        "UnboundTable",
        "InMemoryTable",
        "DropColumns",
        "Distinct",
        "Union",
        "Limit",
        "Field",
        "SortKey",
        "WindowFunction",
        "CTE",
    ),
    *("RowNumber", "SortKey", "WindowFunction", "Alias", "AliasedRelation", "JoinTable"),
)


def compiled(operation: ops.Relation) -> str:
    """The statement of an expression, as PostgreSQL's SQL."""
    split = operation.replace(staged)
    _check_names(split)
    tree = _compiler().to_sqlglot(split.to_expr())
    return str(_SqlWriter(dialect=Postgres()).generate(tree, copy=False))


def _check_names(operation: ops.Relation) -> None:
    for relation in operation.find(ops.Relation):
        for name in relation.schema.names:
            if len(name.encode(errors="surrogatepass")) > LONGEST_NAME:
                raise UnsupportedOperationError(f"a name of more than {LONGEST_NAME} bytes")


class _FilledForm(sge.Expression, sge.Condition):
    """A form with its arguments."""

    arg_types = {"this": True, "expressions": False}  # noqa: RUF012  # sqlglot's own way


def _written(generator: Any, form: _FilledForm) -> str:  # Any: sqlglot's generator
    arguments = [generator.sql(one) for one in form.expressions]
    if not arguments:
        return str(form.this)
    return _ARGUMENT.sub(lambda found: arguments[int(found[1])], str(form.this))


class _SqlWriter(Postgres.Generator):  # type: ignore[misc]  # sqlglot's and Ibis' have no types
    TRANSFORMS = {**Postgres.Generator.TRANSFORMS, _FilledForm: _written}  # noqa: RUF012  # as above


class _ClosedCompiler(PostgresCompiler):  # type: ignore[misc]  # Ibis ships no types
    """Ibis' compiler with our forms of values."""

    __slots__ = ()

    def visit_node(self, op: ops.Node, **given: Any) -> Any:  # Any: sqlglot's expressions
        """A node as an expression of sqlglot; of a value, by its form."""
        name = type(op).__name__
        if own := getattr(self, f"form_{name}", None):
            return own(op, **given)
        if isinstance(op, ops.ScalarUDF):
            return self._function(op, list(given.values()))
        if name in forms.FORMS:
            return _form(forms.FORMS[name], *given.values())
        if name in _RELATIONS or isinstance(op, ops.Sum | ops.CountStar | ops.Max | ops.Min):
            return super().visit_node(op, **given)
        raise UnsupportedOperationError(f"{name} has no form")

    # --- relations ---

    def form_Select(self, op: ops.Node, **given: Any) -> Any:  # noqa: N802  # Ibis' own name
        """A step. One that computes is a fence, since PostgreSQL merges steps, and then computes a
        column each time that it is used."""
        made = self.visit_Select(op, **given)
        is_plain = all(isinstance(value, ops.Field) for value in op.selections.values())
        return made if is_plain or isinstance(made, sge.Table) else made.offset(0, copy=False)

    def form_WindowBoundary(self, op: ops.Node, **_: Any) -> Any:  # noqa: N802
        """The end of a frame."""
        value = sge.Literal.number(int(op.value.value))
        return {"value": value, "side": "preceding" if op.preceding else "following"}

    # --- values ---

    def form_Literal(self, op: ops.Node, **_: Any) -> Any:  # noqa: N802
        """A constant."""
        return _form(forms.literal(op.value, op.dtype))

    def form_Cast(self, op: ops.Node, *, arg: Any, **_: Any) -> Any:  # noqa: N802
        """A cast."""
        return _form(forms.cast_of(op), arg)

    form_TryCast = form_Cast  # noqa: N815

    def form_Multiply(self, op: ops.Node, *, left: Any, right: Any) -> Any:  # noqa: N802
        """A product."""
        known = _number(op.right)
        constant = _number(op.left) if known is None else known
        return _form(forms.product(op.left.dtype, op.right.dtype, constant), left, right)

    def form_Divide(self, op: ops.Node, *, left: Any, right: Any) -> Any:  # noqa: N802
        """A quotient of floats."""
        return _form(forms.quotient(_number(op.right)), _float(left), _float(right))

    def form_Modulus(self, op: ops.Node, *, left: Any, right: Any) -> Any:  # noqa: N802
        """A remainder of whole numbers."""
        return _form(forms.remainder(op.left.dtype, op.right.dtype, _number(op.right)), left, right)

    def form_Power(self, op: ops.Node, *, left: Any, right: Any) -> Any:  # noqa: N802
        """A power with a constant exponent."""
        exponent = _number(op.right)
        if exponent is None:
            raise UnsupportedOperationError("a power that isn't constant")
        del right
        return _form(forms.power(exponent), left)

    def form_Round(self, op: ops.Node, *, arg: Any, **_: Any) -> Any:  # noqa: N802
        """The nearest whole number, halves away from 0."""
        if op.digits is not None and forms.constant(op.digits) != 0:
            raise UnsupportedOperationError("rounding to digits")
        if op.arg.dtype.is_integer():
            return arg
        return _form(forms.FORMS["Round"] + ("::int8" if op.dtype.is_integer() else ""), arg)

    def form_Coalesce(self, _: ops.Node, *, arg: Any) -> Any:  # noqa: N802
        """The first value that isn't NULL."""
        return _form(_listed("coalesce", arg), *arg)

    def form_Greatest(self, _: ops.Node, *, arg: Any) -> Any:  # noqa: N802
        """The greatest value."""
        return _form(_listed("greatest", arg), *arg)

    def form_Least(self, _: ops.Node, *, arg: Any) -> Any:  # noqa: N802
        """The least value."""
        return _form(_listed("least", arg), *arg)

    def form_SearchedCase(  # noqa: N802
        self, _: ops.Node, *, cases: Any, results: Any, default: Any
    ) -> Any:
        """The result of the first case that holds."""
        made = sge.Case(
            ifs=[sge.If(this=one, true=two) for one, two in zip(cases, results, strict=True)],
            default=default,
        )
        return _form("(@0)", made)

    def form_InValues(self, _: ops.Node, *, value: Any, options: Any) -> Any:  # noqa: N802
        """Whether a value is one of several."""
        return _form("(@0)", sge.In(this=value, expressions=list(options)))

    def form_StringConcat(self, _: ops.Node, *, arg: Any) -> Any:  # noqa: N802
        """Texts one after the other."""
        return _form("(" + " || ".join(f"@{place}" for place in range(len(arg))) + ")", *arg)

    def form_TimestampTruncate(self, op: ops.Node, *, arg: Any, **_: Any) -> Any:  # noqa: N802
        """The first moment of a year, quarter, month, week or day."""
        return _form(f"date_trunc('{op.unit.name.lower()}', @0)", arg)

    def form_Lowercase(self, op: ops.Node, *, arg: Any) -> Any:  # noqa: N802
        """The text in lower case; one in plain ASCII by the plain function."""
        is_plain = isinstance(op.arg, ops.Cast) and op.arg.arg.dtype.is_binary()
        return _form(
            'lower(@0 COLLATE "C")' if is_plain else texts.changed_case(is_lower=True), arg
        )

    def form_Uppercase(self, _: ops.Node, *, arg: Any) -> Any:  # noqa: N802
        """The text in upper case."""
        return _form(texts.changed_case(is_lower=False), arg)

    def form_RegexSearch(self, op: ops.Node, *, arg: Any, **_: Any) -> Any:  # noqa: N802
        """Whether a pattern matches."""
        return _form(texts.search(_text(op.pattern)), arg)

    def form_RegexExtract(self, op: ops.Node, *, arg: Any, **_: Any) -> Any:  # noqa: N802
        """The first group of a match."""
        return _form(texts.extract(_text(op.pattern)), arg)

    def form_RegexReplace(self, op: ops.Node, *, arg: Any, **_: Any) -> Any:  # noqa: N802
        """All matches replaced."""
        return _form(texts.replaced(_text(op.pattern), _text(op.replacement)), arg)

    def _function(self, op: Any, given: list[Any]) -> Any:
        """A function that `_engine` declares."""
        name = op.__func_name__
        constants = [forms.constant(argument) for argument in op.args]
        if name == "discreet_moment":
            return _form(texts.moment(str(constants[1])), given[0])
        if name == "discreet_bytes" and isinstance(constants[0], str):
            return _form(forms.literal(constants[0].encode(errors="surrogatepass"), op.dtype))
        if name not in forms.FUNCTIONS:
            raise UnsupportedOperationError(f"{name} has no form")
        return _form(forms.FUNCTIONS[name], *given)


def _form(text: str, *arguments: Any) -> Any:  # Any: sqlglot's expressions
    return _FilledForm(this=text, expressions=list(arguments))


def _float(given: Any) -> Any:  # Any: sqlglot's expressions
    return _form("@0::float8", given)


def _listed(name: str, given: Any) -> str:  # Any: sqlglot's expressions
    return f"{name}(" + ", ".join(f"@{place}" for place in range(len(given))) + ")"


def _number(node: Any) -> float | None:  # Any: as above
    value = forms.constant(node)
    return None if value is None else float(value)


def _text(node: Any) -> str:  # Any: as above
    value = forms.constant(node)
    if not isinstance(value, str):
        raise UnsupportedOperationError("a pattern that isn't constant")
    return value


@cache
def _compiler() -> Any:  # Any: Ibis' own, which has no types
    """The compiler, which writes each step as a query of its own, see `_duckdb`."""
    plain = base.SQLGlotCompiler.translate
    options = SimpleNamespace(sql=SimpleNamespace(fuse_selects=False))
    translate = FunctionType(plain.__code__, vars(base) | {"options": options})
    translate.__kwdefaults__ = plain.__kwdefaults__
    return type("EachStepByItself", (_ClosedCompiler,), {"translate": translate})()
