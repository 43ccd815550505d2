"""Terms to try everything on: made for every kind in `terms.__all__`, by its own signature."""

import inspect
from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from discreet.accounting import PrivacyLoss, Term, terms
from discreet.errors import InvalidArgument

_VALUES = (Fraction(1, 10**7), Fraction(1, 8), Fraction(3, 2), Fraction(40))

KINDS: list[type[Term]] = [getattr(terms, name) for name in terms.__all__]


def instances(kind: type[Term]) -> list[Term]:
    """The kind at every mixture of a few values that it accepts."""
    required = [
        name
        for name, parameter in inspect.signature(kind).parameters.items()
        if parameter.default is inspect.Parameter.empty
    ]
    found = []
    for values in product(_VALUES, repeat=len(required)):
        try:
            found.append(kind(**dict(zip(required, values, strict=True))))
        except InvalidArgument:
            continue
    return found


ALL_TERMS = [term for kind in KINDS for term in instances(kind)]

some_term: st.SearchStrategy[Term] = st.sampled_from(ALL_TERMS)


@st.composite
def some_loss(draw: st.DrawFn, most_terms: int = 4, most_times: int = 6) -> PrivacyLoss:
    counted = st.tuples(some_term, st.integers(1, most_times))
    return PrivacyLoss(tuple(draw(st.lists(counted, max_size=most_terms))))
