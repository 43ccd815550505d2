"""How many runs are drawn, by every script of words; and what a law says of itself."""

from fractions import Fraction
from functools import partial
from itertools import islice

import pytest
from flint import arb

from discreet._exact import ball, precision
from discreet.accounting import Pure, TunedNegativeBinomial, TunedPoisson
from discreet.accounting.terms import _best_run
from discreet.audit import SeededBits
from discreet.errors import InvalidArgument
from discreet.mechanisms.tuning import NegativeBinomialRuns, PoissonRuns, RunsLaw
from discreet.mechanisms.tuning._runs import best_share, draw, epsilon_of_each, share_missed
from tests.bad_values import BadValue
from tests.noise.walk import BITS, Real, assert_refuted, e_to, refutation, walk

LAWS: list[RunsLaw] = [
    NegativeBinomialRuns(eta=1, gamma=Fraction(1, 3)),
    NegativeBinomialRuns(eta=0, gamma=Fraction(1, 4)),
    NegativeBinomialRuns(eta=Fraction(3, 2), gamma=Fraction(1, 5)),
    NegativeBinomialRuns(eta=Fraction(-1, 2), gamma=Fraction(1, 5)),
    NegativeBinomialRuns(eta=1, gamma=1),
    NegativeBinomialRuns(eta=1, gamma=Fraction(1, 10), most=4),
    PoissonRuns(Fraction(7, 3)),
    PoissonRuns(5, most=3),
]


def chance(runs: RunsLaw, number: int) -> Real:
    """By the law's definition, and not from one number to the next."""
    with precision(BITS):
        if runs.law == _best_run.NegativeBinomial(Fraction(1), Fraction(1)):
            return Fraction(number == 1)
        weights = [weight(runs, k) for k in range(runs.most + 1 if runs.most else 0)]
        if weights:
            return weights[number] / sum(weights, arb(0))
        return weight(runs, number) / whole(runs)


def weight(runs: RunsLaw, k: int) -> arb:
    if isinstance(runs, PoissonRuns):
        return exact(runs.mean) ** k / arb(k + 1).gamma()
    assert isinstance(runs, NegativeBinomialRuns)
    if k == 0:
        return arb(0)
    return exact(1 - runs.gamma) ** (k - 1) * (exact(runs.eta) + k).gamma() / arb(k + 1).gamma()


def whole(runs: RunsLaw) -> arb:
    if isinstance(runs, PoissonRuns):
        return e_to(runs.mean)
    assert isinstance(runs, NegativeBinomialRuns)
    eta, gamma = exact(runs.eta), exact(runs.gamma)
    sums = (gamma**-eta - 1) * eta.gamma() if runs.eta else -gamma.log()
    return sums / (1 - gamma)


def exact(number: Real) -> arb:
    return ball(number) if isinstance(number, Fraction) else number


@pytest.mark.parametrize("runs", LAWS, ids=repr)
class TestEveryScript:
    def test_each_number_has_its_chance(self, runs: RunsLaw) -> None:
        tree = walk(partial(draw, runs), 6, 2)
        assert refutation(tree, lambda number: chance(runs, number)) is None
        assert tree.undecided[-1] < 0.01

    def test_another_law_is_refuted(self, runs: RunsLaw) -> None:
        tree = walk(partial(draw, runs), 6, 2)
        assert_refuted(tree, lambda number: exact(chance(runs, number)) * 19 / 20)

    def test_the_chances_are_those_of_the_price(self, runs: RunsLaw) -> None:
        if runs.most:
            pytest.skip("the price is of the law without its ceiling, and of the ceiling")
        with precision(BITS):
            for number, found in enumerate(islice(runs.law.chances(), 40)):
                assert abs(found - exact(chance(runs, number))) < 1e-60


@pytest.mark.parametrize("runs", LAWS, ids=repr)
class TestShares:
    @pytest.mark.parametrize("share", [Fraction(1, 100), Fraction(1, 3), Fraction(9, 10)])
    def test_share_missed_bounds_the_exact_probability(
        self, runs: RunsLaw, share: Fraction
    ) -> None:
        with precision(BITS):
            last = runs.most or 400
            missed = sum(
                (exact(chance(runs, k)) * exact((1 - share) ** k) for k in range(last + 1)), arb(0)
            )
            stated = float(share_missed(runs, share))
            assert float(missed) <= stated + 1e-30
            assert runs.most or stated == pytest.approx(float(missed), rel=1e-9, abs=1e-30)

    def test_the_best_share(self, runs: RunsLaw) -> None:
        share = best_share(runs, Fraction(1, 2))
        if share < 1:
            assert share_missed(runs, share) <= 0.5
            assert share_missed(runs, share * Fraction(999, 1000)) > 0.5


@pytest.mark.parametrize("eta", [Fraction(1, 4), 1, 3])
@pytest.mark.parametrize("share", [Fraction(1, 100), Fraction(1, 3)])
def test_the_fewest_runs_for_an_error(eta: Fraction, share: Fraction) -> None:
    runs = NegativeBinomialRuns.for_error(share, 0.6, eta=eta)
    assert share_missed(runs, share) <= Fraction(2, 5)
    fewer = NegativeBinomialRuns(
        eta=eta, gamma=runs.gamma * Fraction(10001, 10000) + Fraction(2, 10**9)
    )
    assert share_missed(fewer, share) > Fraction(2, 5)


def test_no_number_of_runs_has_the_error() -> None:
    """Below eta 0 a few runs are likely, however many there are on average."""
    with pytest.raises(
        InvalidArgument, match=r"error = 0.1: no law with this eta .* take a larger eta"
    ):
        NegativeBinomialRuns.for_error(0.1, 0.95, eta=-0.5)


@pytest.mark.parametrize("eta", [Fraction(-1, 2), 0, Fraction(1, 2), 1, 3])
@pytest.mark.parametrize("mean", [1, Fraction(3, 2), 10, 1000])
def test_the_expected_number(eta: Fraction, mean: Fraction) -> None:
    runs = NegativeBinomialRuns.for_mean(mean, eta=eta)
    with precision(BITS):
        found = float(runs.law.mean())
        assert found == pytest.approx(float(mean), rel=1e-4)
        assert found >= mean * (1 - 1e-12)


def test_the_geometric_law_is_drawn_at_its_mean() -> None:
    """Of 2000 draws with mean 4 and standard deviation sqrt(12); a false alarm is rarer than
    1e-9 by 6.1 standard errors, and a mean of 5 would raise one."""
    bits, runs = SeededBits(7), NegativeBinomialRuns(eta=1, gamma=Fraction(1, 4))
    total = sum(draw(runs, bits) for _ in range(2000))
    assert abs(total / 2000 - 4) < 6.1 * (12 / 2000) ** 0.5 < 0.5


@pytest.mark.parametrize("runs", LAWS, ids=repr)
def test_the_epsilon_of_each_run(runs: RunsLaw) -> None:
    each = epsilon_of_each(runs, Fraction(1))
    assert (1 * runs.term(Pure(each))).epsilon() <= 1
    assert (1 * runs.term(Pure(each * Fraction(10001, 10000)))).epsilon() > 1


def test_terms() -> None:
    geometric = NegativeBinomialRuns(eta=1, gamma=0.1, most=50)
    assert geometric.term(Pure(1)) == TunedNegativeBinomial(Pure(1), 1, 0.1, 50)
    assert PoissonRuns(10, most=20).term(Pure(1)) == TunedPoisson(Pure(1), 10, 20)


@pytest.mark.parametrize("bad", [-1, 0, True, "1", float("nan"), float("inf"), None])
def test_bad_numbers(bad: BadValue) -> None:
    with pytest.raises(InvalidArgument, match="mean"):
        PoissonRuns(bad)
    with pytest.raises(InvalidArgument, match="gamma"):
        NegativeBinomialRuns(eta=1, gamma=bad)
    with pytest.raises(InvalidArgument, match="mean"):
        NegativeBinomialRuns.for_mean(bad, eta=1)
    if bad != 0 or bad is True:
        with pytest.raises(InvalidArgument, match="eta"):
            NegativeBinomialRuns(eta=bad, gamma=0.1)
        with pytest.raises(InvalidArgument, match="most"):
            PoissonRuns(10, most=bad)


def test_other_numbers_out_of_range() -> None:
    with pytest.raises(InvalidArgument, match="up to 1"):
        NegativeBinomialRuns(eta=1, gamma=1.5)
    with pytest.raises(InvalidArgument, match="1 or above"):
        NegativeBinomialRuns.for_mean(0.5, eta=1)
    with pytest.raises(InvalidArgument, match="too large"):
        NegativeBinomialRuns.for_mean(10**12, eta=1)
