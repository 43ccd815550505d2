"""Terms to try everything on: made for every kind in `terms.__all__`, by its own signature."""

import inspect
from fractions import Fraction
from itertools import islice, product

from hypothesis import strategies as st

from discreet._unit import Change
from discreet.accounting import Approximate, Gaussian, PrivacyLoss, Pure, Term, terms
from discreet.errors import InvalidArgument, WrongUnit

_NUMBERS = (Fraction(1, 10**7), Fraction(1, 8), Fraction(3, 2), Fraction(40))
_WHOLE = (1, 2, 40)
_LOSSES = (1 * Gaussian(2), 2 * Pure(0.5) + Approximate(0.1, 1e-3), Pure(0.5) + Gaussian(3))
_CURVES = (
    {2: Fraction(1, 8), 8: Fraction(1, 2), 64: 4},
    {Fraction(1, 2): Fraction(1, 8), 2: Fraction(1, 1000)},
    {0: Fraction(1, 4), 1: Fraction(1, 8)},
)
_MOST = 2  # instances of a kind

KINDS: list[type[Term]] = [getattr(terms, name) for name in terms.__all__]


def instances(kind: type[Term]) -> list[Term]:
    """The kind at many mixtures of a few values that it accepts: of every required parameter, and
    of those that are true or false."""
    parameters = {
        name: parameter
        for name, parameter in inspect.signature(kind).parameters.items()
        if parameter.default is inspect.Parameter.empty or parameter.annotation is bool
    }
    values = [values_of(parameter) for parameter in parameters.values()]
    found = [
        made(kind, dict(zip(parameters, mixture, strict=True))) for mixture in product(*values)
    ]
    accepted = [term for term in found if term is not None]
    stride = -(-len(accepted) // _MOST) or 1
    while stride > 1 and any(len(each) % stride == 0 for each in values):
        stride += 1  # so that all values are met
    return list(islice(accepted, 0, None, stride))


def values_of(parameter: inspect.Parameter) -> tuple[object, ...]:
    """Values of the kind that the parameter's annotation names."""
    if parameter.annotation is bool:
        return (False, True)
    if parameter.annotation is int:
        return _WHOLE
    if "Mapping" in str(parameter.annotation):
        return _CURVES
    return _LOSSES if "PrivacyLoss" in str(parameter.annotation) else _NUMBERS


def made(kind: type[Term], values: dict[str, object]) -> Term | None:
    try:
        return kind(**values)
    except (InvalidArgument, WrongUnit):
        return None


ALL_TERMS = [term for kind in KINDS for term in instances(kind)]

_change = st.shared(st.sampled_from(Change), key="how neighbours differ")  # one for a whole test


def _speaking_of(change: Change) -> st.SearchStrategy[Term]:
    return st.sampled_from([term for term in ALL_TERMS if term.change in (None, change)])


some_term: st.SearchStrategy[Term] = _change.flatmap(_speaking_of)


@st.composite
def some_loss(draw: st.DrawFn, most_terms: int = 4, most_times: int = 6) -> PrivacyLoss:
    """Terms that all speak of one relation between neighbours, or of any; all losses and terms
    that one test draws may meet."""
    counted = st.tuples(some_term, st.integers(1, most_times))
    return PrivacyLoss(tuple(draw(st.lists(counted, max_size=most_terms))))
