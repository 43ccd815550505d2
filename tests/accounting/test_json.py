"""Every term is read back from its JSON as the same value."""

import inspect
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.accounting import PrivacyLoss, Term, TunedNegativeBinomial
from discreet.accounting._loss import _kinds
from discreet.accounting.terms import __all__ as names
from discreet.errors import InvalidArgument
from tests.accounting.examples import ALL_TERMS, KINDS, made, values_of

_WIDE = [Fraction(-999, 1000), Fraction(-1, 3), Fraction(-1, 10**30), Fraction(10**6), *range(3)]


@st.composite
def any_term(draw: st.DrawFn) -> Term | None:
    """Any kind, with any of the numbers that some kind accepts, negative ones too."""
    kind = draw(st.sampled_from(KINDS))
    values = {
        name: draw(st.sampled_from([*values_of(parameter), *_WIDE]))
        if parameter.annotation is not bool
        else draw(st.booleans())
        for name, parameter in inspect.signature(kind).parameters.items()
    }
    return made(kind, values)


@given(any_term(), st.integers(1, 10**30))
def test_each_term_is_read_back(term: Term | None, count: int) -> None:
    if term is not None:
        loss = count * term
        assert PrivacyLoss.from_json(loss.to_json()) == loss


@pytest.mark.parametrize("term", ALL_TERMS, ids=repr)
def test_examples_are_read_back(term: Term) -> None:
    assert PrivacyLoss.from_json((3 * term).to_json()) == 3 * term


@pytest.mark.parametrize("eta", ["-0.5", "-1/3", "-999/1000", "0", "7"])
def test_a_negative_shape_is_read_back(eta: str) -> None:
    term = TunedNegativeBinomial(ALL_TERMS[0], Fraction(eta), Fraction(1, 10))
    assert PrivacyLoss.from_json((1 * term).to_json()) == 1 * term


def test_only_terms_of_the_package_are_read() -> None:
    class Pure(Term):
        """Another one of a known name."""

    assert set(_kinds()) == set(names)
    assert _kinds()["Pure"] is not Pure
    with pytest.raises(InvalidArgument, match="unknown term 'Term'"):
        PrivacyLoss.from_json('{"terms":[{"count":1,"term":"Term"}],"unit":null}')


@pytest.mark.parametrize("text", ["--1", "-", "1e9", "-1/-2", "1/0", "+1", " 1", "0x1", "nan"])
def test_other_numbers_are_refused(text: str) -> None:
    json = f'{{"terms":[{{"count":1,"term":"Pure","epsilon":"{text}"}}],"unit":null}}'
    with pytest.raises(InvalidArgument, match="JSON"):
        PrivacyLoss.from_json(json)
