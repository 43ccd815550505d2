"""Delta and epsilon of sums of unlike discrete terms, whose losses have no lattice in common."""

import math
from fractions import Fraction

from hypothesis import example, given, settings
from hypothesis import strategies as st

from discreet.accounting import (
    DiscreteLaplace,
    PoissonSampled,
    PrivacyLoss,
    Pure,
    RandomizedResponse,
    Term,
)

_sizes = st.integers(5, 400).map(lambda hundredths: Fraction(hundredths, 100))
_discrete_terms = st.one_of(
    st.builds(Pure, _sizes),
    st.builds(DiscreteLaplace, _sizes, st.integers(1, 3)),
)
_replaced_terms = st.one_of(_discrete_terms, st.builds(RandomizedResponse, _sizes))
_added_terms = st.one_of(
    _discrete_terms,
    st.builds(PoissonSampled, _sizes.map(Pure), st.integers(1, 50).map(lambda n: Fraction(n, 100))),
)


class TestUnlikeDiscreteTerms:
    """Near the largest loss of such a sum, delta falls steeply."""

    @given(
        st.one_of(
            [
                st.lists(st.tuples(kind, st.integers(1, 5)), min_size=1, max_size=3)
                for kind in (_replaced_terms, _added_terms)
            ]
        ),
        st.floats(-23, -4),
    )
    @settings(max_examples=60)
    @example([(RandomizedResponse(1.15), 1), (DiscreteLaplace(4.05, 3), 3)], math.log(1e-5))
    @example([(Pure(1.4), 1), (PoissonSampled(Pure(1.4), 0.108), 4)], math.log(1e-8))
    @example([(Pure(0.155), 5), (DiscreteLaplace(3.76, 2), 3)], math.log(9.448e-9))
    def test_delta_and_epsilon_agree(self, terms: list[tuple[Term, int]], log_delta: float) -> None:
        loss, delta = PrivacyLoss(tuple(terms)), math.exp(log_delta)
        assert loss.delta(loss.epsilon(delta)) <= 1.05 * delta
