"""A float in an argument means its shortest decimal, everywhere: 0.1 is one tenth.

A conversion by a float's binary value has an error of about 1e-17, to either side, and a cost
recorded by it may lie below the computed cost.
"""

import ast
import inspect
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet import _checks
from discreet._budget import Limit, MuLimit, RenyiLimit, RhoLimit
from discreet.accounting import Filter, Gaussian, PrivacyLoss, Pure, Term, Zcdp, calibrate
from discreet.accounting.filter._sums import RESOLUTION
from discreet.errors import DiscreetError, NoBound
from tests.accounting.examples import KINDS

SOURCE = Path(discreet.__file__).parent
ROUNDINGS = {"ceil", "floor", "int", "round", "trunc"}
COUNTS = {"count", "positive_count", "round", "int"}  # these return integers

# Conversions of values that are no floats, or of floats that no person wrote as decimals.
WHOLE = {
    "Fraction(fine.largest)",
    "Fraction(_HIGHEST)",
    "Fraction(-700)",
    "Fraction(2 * part.per_unit)",
    "Fraction(end.toordinal())",
    "Fraction(lower)",
    "Fraction(part)",
    "Fraction(self.lower)",
    "Fraction(self.upper)",
    "Fraction(truncated(unit, day).toordinal())",
    "Fraction(upper)",
    "Fraction(value.toordinal())",
    "Fraction(n)",
    "Fraction(self.most)",
    "Fraction(shift)",
    "Fraction(count)",
    "Fraction(declaration.caps.rows)",
    "Fraction(whole)",
    "Fraction(size)",
    "Fraction(step)",
    "Fraction(score)",
    "Fraction(mantissa)",
    "Fraction(_FURTHEST)",
    "Fraction(_LARGEST_LOSS)",
    "Fraction((d + 1) ** 2)",
    "Fraction(2 * width * top + width * (width - 1))",
    "Fraction(grid.upper)",
    "Fraction(grid.lower)",
    "Decimal(-1)",
    "Decimal(answer)",
    "Decimal(end.numerator)",
    "Decimal(end.denominator)",
    "Fraction(number)",
    "Fraction(max(low, -_INT64))",
    "Fraction(min(high, _INT64 - 1))",
    "Fraction(-1)",
}
TEXTS = {
    "audit/_canonical.py": {"Decimal"},  # of digits in a text
    "ledger/_fact_json.py": {"Fraction"},
    "accounting/_expression.py": {"Fraction", "Decimal"},
    "accounting/_json.py": {"Fraction"},
    "cli/_options.py": {"Decimal"},
    "cli/_proposal.py": {"Fraction"},  # of decimals and integers
    "mechanisms/_statement.py": {"Fraction"},
    "query/_sql/_leaves.py": {"Fraction", "Decimal"},
    "service/_body.py": {"Decimal"},
    "service/_desk.py": {"Decimal"},  # of decimals and integers
    "service/_work_order.py": {"Decimal"},
}
FRACTIONS = {
    "(distance / (2 * term.stddev ** 2)).as_integer_ratio()",
    "self.scale.as_integer_ratio()",
    "self.sigma.as_integer_ratio()",
    "sigma.as_integer_ratio()",
    "value.as_integer_ratio()",
}
BINARY = {  # computed floats, and floats of the data; they are rounded by their binary value
    "accounting/pld/_distribution.py": "Fraction(nearest)",
    "accounting/_profile.py": "Fraction(above)",
    "audit/_canonical.py": "Fraction(found)",
    "mechanisms/_fixed_point.py": "Fraction(value)",
    "mechanisms/selection/_gaps.py": "Fraction(chance)",
    "query/_expressions/_aggregates.py": "Fraction(end)",
    "query/_facts/_columns.py": "Fraction(float(end))",
    "query/_relations/_derived.py": "Fraction(value)",
    "query/_estimates/_estimates.py": "Fraction(float(end))",
    "query/_rows/_public_table.py": "Fraction(end)",
    "query/_expressions/_inference.py": "float(right.lower).as_integer_ratio()",
}
CHOICES = {  # any number near it is right
    "Fraction(1 + 1e-09)",
    "Fraction(reach[group])",
    "Fraction(each)",
    "Fraction(highest)",
    "Fraction(lowest)",
    "Fraction(min(each, most))",
    "math.ceil(summed_half_width([(SummedLaw(law, count), 1.0)], confidence))",
    "Fraction(least)",
    "Fraction(reached * _SAFE)",
    "Fraction(math.exp(max(size, Fraction(-700))))",
    "Fraction(math.exp(max(upper, Fraction(-700))))",
    "Fraction(math.isqrt(math.floor(number * 2 ** 1100)))",
    "Fraction(math.log(2))",
    "Fraction(math.log(number / Fraction(2) ** power))",
    "Fraction(way)",
    "Fraction(10 ** (step / 20))",
    "Fraction(math.exp(log_order))",
    "Fraction(1 / (1 + math.exp(drop / 2)))",
    "Fraction(times ** (-1 / 3))",
    "int(number ** 0.5)",
    "int(points[-1].value > others + 0.5)",
    "int(share > 0.5)",
    "int(min((gap for gap in gaps if likely[gaps <= gap].sum() >= 0.95)))",
    "math.floor(max(x, 0.5))",
    "np.floor(near + 0.5)",
    "np.floor(np.log2(np.maximum(wish / self.step, 1.0)))",
    "int(np.argmin(np.append(value, -1.0) > 0))",
}
LISTED = WHOLE | FRACTIONS | CHOICES


def conversions(tree: ast.AST) -> Iterator[ast.Call]:
    """Calls that may convert a float by its binary value."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _may_take_bits(node, _name(node.func)):
            yield node


def _may_take_bits(call: ast.Call, name: str) -> bool:
    if name in ("Fraction", "Decimal"):
        return len(call.args) == 1 and not _is_exact(call.args[0])
    parts = (part for given_ in call.args for part in ast.walk(given_))
    rounds_float = name in ROUNDINGS and any(_is_float(part) for part in parts)
    return rounds_float or name in ("as_integer_ratio", "from_float", "limit_denominator")


def _name(called: ast.expr) -> str:
    if isinstance(called, ast.Attribute):
        return called.attr
    return called.id if isinstance(called, ast.Name) else ""


def _is_float(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, float)


def _is_exact(given_: ast.expr) -> bool:
    """Whether it is a text, an integer, a power of integers, or a call that returns integers."""
    if isinstance(given_, ast.BinOp) and isinstance(given_.op, ast.Pow):
        return _is_exact(given_.left) and _is_exact(given_.right)
    if isinstance(given_, ast.Call):
        return _name(given_.func) in COUNTS
    return isinstance(given_, ast.Constant) and isinstance(given_.value, int | str)


def is_listed(file: str, call: ast.Call) -> bool:
    text = ast.unparse(call)
    return (
        file == "_exact.py"
        or text in LISTED
        or _name(call.func) in TEXTS.get(file, ())
        or BINARY.get(file) == text
    )


def test_no_source_converts_floats_by_their_bits() -> None:
    """Conversions that are not listed use `exact.fraction`."""
    found = {
        f"{file}:{call.lineno} {ast.unparse(call)}"
        for path in SOURCE.rglob("*.py")
        if (file := path.relative_to(SOURCE).as_posix())
        for call in conversions(ast.parse(path.read_text(encoding="utf-8")))
        if not is_listed(file, call)
    }
    assert found == set()


@pytest.mark.parametrize(
    "code",
    [
        "Fraction(epsilon)",
        "Decimal(x)",
        "x.as_integer_ratio()",
        "math.ceil(x * 1e3)",
        "int(1e6 * x)",
    ],
)
def test_the_walk_finds_them(code: str) -> None:
    (call,) = conversions(ast.parse(code))
    assert not is_listed("accounting/filter/_filter.py", call)


sizes = st.floats(1e-9, 1e9, allow_subnormal=False)
small = st.floats(1e-9, 1 - 1e-9)
FIELDS = [
    (kind, name)
    for kind in KINDS
    for name, parameter in inspect.signature(kind).parameters.items()
    if "float" in str(parameter.annotation)
]


@pytest.mark.parametrize(("kind", "name"), FIELDS, ids=lambda part: getattr(part, "__name__", part))
@given(small | sizes)
@settings(max_examples=25)
def test_fields_of_terms_are_decimals(kind: type[Term], name: str, number: float) -> None:
    values: dict[str, object] = {}
    for each, parameter in inspect.signature(kind).parameters.items():
        if parameter.default is inspect.Parameter.empty:
            values[each] = 1 * Pure(1) if "Loss" in str(parameter.annotation) else 1
    values[name] = number
    try:
        term = kind(**values)
    except DiscreetError:
        return
    assert getattr(term, name) == Fraction(repr(number))


def test_some_field_of_most_kinds_takes_numbers() -> None:
    assert len(FIELDS) > 15


@given(small | sizes)
def test_limits_and_checks_are_decimals(number: float) -> None:
    exact = Fraction(repr(number))
    assert Limit(number).epsilon == RhoLimit(number).rho == MuLimit(number).mu == exact
    assert RenyiLimit({2: number}).bounds[0][1] == exact
    assert _checks.positive(x=number) == _checks.not_negative(x=number) == exact
    assert _checks.finite(x=-number) == -exact
    if number < 1:
        assert Limit(1, number).delta == _checks.delta(x=number) == exact
        assert _checks.probability(x=number) == exact


@given(st.floats(1e-3, 50), st.sampled_from([1e-9, 1e-6, 1e-3]))
@settings(max_examples=25)
def test_a_cost_alone_is_never_below_what_was_computed(multiplier: float, delta: float) -> None:
    filter_ = Filter.for_limit(Limit(1, delta))
    for loss in (1 * Gaussian(multiplier), 3 * Pure(multiplier), 1 * Zcdp(multiplier)):
        recorded = filter_.alone(loss)
        assert recorded is not None
        assert recorded * RESOLUTION >= Fraction(repr(loss.epsilon(delta)))


@given(st.floats(0.01, 1, exclude_max=True), st.floats(0.5, 5))
@settings(max_examples=10)
def test_calibrated_losses_cost_at_most_the_decimal(delta: float, epsilon: float) -> None:
    try:
        found = calibrate(lambda value: PrivacyLoss.of(Pure(value)), epsilon=epsilon, delta=delta)
    except NoBound:
        return
    assert Fraction(repr(found.epsilon)) <= Fraction(repr(epsilon))
