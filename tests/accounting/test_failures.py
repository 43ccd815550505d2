"""Failures of samples, shuffles, thresholds and tuning, beside the losses of their pairs."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import pytest
from flint import arb

from discreet.accounting import (
    Approximate,
    Gaussian,
    PoissonSampled,
    PrivacyLoss,
    Pure,
    RandomAllocation,
    SampledWithoutReplacement,
    SampledWithReplacement,
    Shuffled,
    Term,
    Threshold,
    TruncatedPoisson,
    TunedNegativeBinomial,
    TunedPoisson,
    Zcdp,
    _bounds,
)
from discreet.accounting._bounds import known
from discreet.accounting._renyi import infinite_probability
from discreet.accounting.pld._dominating_pairs import Pair, Side
from tests.accounting.holding import (
    ORDERS,
    SURE,
    hockey_stick,
    renyi,
)


@dataclass(frozen=True, slots=True, repr=False)
class _SometimesPure(Term):
    """1-zCDP, and (1/10, 10^-9)-differentially private, but no failure has this delta."""

    def approximate(self) -> tuple[Fraction, Fraction]:
        return Fraction(1, 10), Fraction(1, 10**9)

    def renyi(self, order: Fraction) -> arb:
        return Zcdp(1).renyi(order)


@pytest.mark.parametrize(
    "around",
    [
        lambda loss: SampledWithoutReplacement(loss, 3, 10),
        lambda loss: TunedPoisson(loss, 3),
        lambda loss: TunedNegativeBinomial(loss, 1, 0.1),
    ],
)
def test_an_epsilon_with_another_delta_bounds_no_divergence(around: Callable[[Term], Term]) -> None:
    term = around(_SometimesPure())
    epsilon, delta = known(term.approximate())
    assert delta > 0 == term.failure_probability()
    assert all(renyi(term, order) > renyi(Pure(epsilon), order) for order in ORDERS)


class TestLeaks:
    """A leak of small probability is rarer by the sampling rate."""

    INNER = Approximate(Fraction(1, 2), Fraction(1, 1000))

    def test_is_thinned(self) -> None:
        assert SampledWithoutReplacement(self.INNER, 1, 10).failure_probability() == Fraction(
            1, 10_000
        )
        assert TruncatedPoisson(self.INNER, 0.5, 10, 10).failure_probability() == Fraction(1, 2000)
        assert Shuffled(self.INNER).failure_probability() == Fraction(1, 1000)
        assert (
            Fraction(1, 1000)
            <= RandomAllocation(self.INNER, 10).failure_probability()
            < Fraction("0.00100001")
        )
        with_replacement = SampledWithReplacement(self.INNER, 1, 10).failure_probability()
        assert Fraction(1, 10_000) <= with_replacement < Fraction("0.000101")

    @pytest.mark.parametrize("failure", [Fraction(1, 10**n) for n in (3, 6, 9, 12, 15)], ids=str)
    def test_an_epoch_leaks_as_often_as_the_step_of_the_unit(self, failure: Fraction) -> None:
        """Of the rarest leaks, the pairs of the epoch are used: theirs are as rare."""
        epoch = RandomAllocation(Approximate(Fraction(1, 2), failure), 10)
        assert failure <= epoch.failure_probability() < failure * Fraction("1.00000001")

    @pytest.mark.parametrize(
        "term",
        [
            PoissonSampled(INNER, 0.25),
            TruncatedPoisson(INNER, 0.25, 3, 10),
            TruncatedPoisson(INNER, 0.5, 1, 3),  # often full: then two units fail
            SampledWithoutReplacement(INNER, 3, 10),
            SampledWithReplacement(INNER, 3, 10),
            Shuffled(INNER),
            RandomAllocation(INNER, 10),
            Threshold(INNER, 0.01),
            TunedPoisson(INNER, 3),
            TunedNegativeBinomial(INNER, 1, 0.1),
        ],
        ids=repr,
    )
    def test_no_pair_is_infinite_more_often_than_the_term_fails(self, term: Term) -> None:
        """Renyi divergences and epsilon hold apart from failures, and none of them bounds an
        infinite loss."""
        found = max(map(infinite_probability, known(term.pairs(Side.UPPER))))
        for stated in (term.failure_probability(), known(term.approximate())[1]):
            assert Fraction(99, 100) * stated < found < stated * (1 + Fraction(1, 10**11))

    @pytest.mark.parametrize("most", [1, 2, 5])
    def test_all_runs_serve_only_if_they_fail_no_more_often(self, most: int) -> None:
        term = TunedPoisson(self.INNER, 1, most)
        assert (term._all_runs is None) is (most > 1)
        failure = _bounds.failure_probability(term._all_runs or PrivacyLoss())
        assert failure <= term.failure_probability()

    @pytest.mark.parametrize("order", ORDERS)
    def test_two_draws_of_a_loss_that_knows_no_groups(self, order: Fraction) -> None:
        """They have probability 1/16 and count as a failure. Given none, one draw has probability
        6/15."""
        once = SampledWithoutReplacement(Gaussian(1), 1, 2)
        term, power = SampledWithReplacement(once, 2, 4), float(order) - 1
        assert Fraction(1, 16) <= _bounds.failure_probability(1 * term)
        assert min(map(infinite_probability, known(term.pairs(Side.UPPER)))) >= Fraction(1, 16)
        exact = math.log1p(6 / 15 * math.expm1(power * renyi(once, order))) / power
        assert exact * (1 - SURE) <= renyi(term, order) <= exact * (1 + SURE)

    def test_draws_beyond_what_is_known_are_a_leak(self) -> None:
        several = SampledWithReplacement(self.INNER, 40, 40)
        assert several.failure_probability() > Fraction(1, 1000)
        assert renyi(several, Fraction(2)) > renyi(
            SampledWithoutReplacement(self.INNER, 1, 40), Fraction(2)
        )

    @pytest.mark.parametrize(
        "term",
        [
            SampledWithoutReplacement(INNER, 3, 10),
            SampledWithReplacement(INNER, 3, 10),
            TruncatedPoisson(INNER, 0.25, 3, 10),
            Shuffled(INNER),
            RandomAllocation(INNER, 10),
        ],
        ids=repr,
    )
    def test_simple_bounds_stay_above_the_distribution(self, term: Term) -> None:
        epsilon, delta = known(_bounds.approximate(1 * term))
        assert delta < 1
        (lower, *_) = [
            hockey_stick_of(pair, float(epsilon)) for pair in known(term.pairs(Side.LOWER))
        ]
        assert lower <= float(delta) * (1 + 1e-9) + 1e-12


def hockey_stick_of(pair: Pair, epsilon: float) -> float:
    assert not pair.pieces
    return hockey_stick(pair, epsilon)
