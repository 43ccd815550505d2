"""Shuffles and their reports, against every outcome on small tables."""

import math
from fractions import Fraction
from itertools import pairwise, permutations, product

import numpy as np
import pytest

from discreet.accounting import Gaussian, Pure, RandomizedResponse, Shuffled, ShuffledReports, Term
from discreet.accounting._bounds import known
from discreet.accounting.pld._dominating_pairs import Side
from discreet.accounting.terms import _shuffling
from tests.accounting.enumerated import Law, reported, shuffled
from tests.accounting.holding import (
    ORDERS,
    assert_attained,
    assert_holds,
    hockey_stick,
    is_caught,
    renyi,
)


class TestShuffled:
    @pytest.mark.parametrize("inner", [Gaussian(2), Pure(0.5), RandomizedResponse(1, 3)], ids=repr)
    def test_costs_what_one_batch_does(self, inner: Term) -> None:
        for delta in (1e-2, 1e-6):
            found, plain = (3 * Shuffled(inner)).interval(delta), (3 * inner).interval(delta)
            assert found.upper >= plain.lower
            assert plain.upper >= found.lower
            assert found.upper <= 1.001 * plain.upper

    @pytest.mark.parametrize("others", list(product((False, True), repeat=2)))
    def test_every_order(self, others: tuple[bool, bool]) -> None:
        """Three units, one a batch; each batch's value is reported with odds e to 1."""

        def of(value: bool) -> Law:
            orders = list(permutations((value, *others)))
            rows = sum((reported(*order, epsilon=1.0) for order in orders), np.zeros(8))
            return Law(rows / len(orders), rows / len(orders))

        assert_holds(Shuffled(Pure(1)), [Law(of(True).p, of(False).p)])

    def test_one_batch_hides_nothing(self) -> None:
        real = Law(reported(True, epsilon=1.0), reported(False, epsilon=1.0))
        assert is_caught(Shuffled(Pure(0.9)), [real])
        assert_attained(Shuffled(Pure(1)), [real])


class TestShuffledReports:
    @pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
    @pytest.mark.parametrize(("reports", "categories"), [(1, 2), (2, 2), (3, 3), (4, 2), (6, 2)])
    def test_every_report(self, reports: int, categories: int, epsilon: float) -> None:
        laws = [
            Law(
                shuffled((0, *rest), categories, epsilon), shuffled((1, *rest), categories, epsilon)
            )
            for rest in product(range(categories), repeat=reports - 1)
        ]
        term = ShuffledReports(epsilon, reports)
        assert_holds(term, laws)
        if categories == 2:
            assert_attained(term, laws)
        if reports > 1:
            assert is_caught(ShuffledReports(epsilon, 8 * reports), laws)

    @pytest.mark.parametrize(("epsilon", "reports"), [(1, 2), (0.3, 40), (3, 60), (2, 300)])
    def test_is_the_sum_over_all_numbers_of_clones(self, epsilon: float, reports: int) -> None:
        term = ShuffledReports(epsilon, reports)
        (pair,) = known(term.pairs(Side.UPPER))
        for share in (0.0, 0.1, 0.3, 0.6):
            exact = cloned(epsilon, reports, share * epsilon)
            assert exact * (1 - 1e-9) <= hockey_stick(pair, share * epsilon)
            assert hockey_stick(pair, share * epsilon) <= exact * (1 + 1e-6) + 1e-30

    def test_many_reports(self) -> None:
        """Blocks of numbers of clones cost next to nothing."""
        found = [(1 * ShuffledReports(1, 10**n)).epsilon(1e-6) for n in (3, 4, 5, 6, 7, 8)]
        assert all(few > 2 * many for few, many in pairwise(found))

    def test_a_group_of_losses_counts_as_its_highest(self, monkeypatch: pytest.MonkeyPatch) -> None:
        grouped, p = _shuffling._positive_losses(Fraction(1), 10**6, 1.0)
        monkeypatch.setattr(_shuffling, "_FEW", 10**9)
        each, q = _shuffling._positive_losses(Fraction(1), 10**6, 1.0)
        assert len(grouped) < len(each) - 1000
        for epsilon in np.linspace(0, float(each[np.isfinite(each)].max()), 50):
            gains = [
                float((mass * np.maximum(-np.expm1(epsilon - loss), 0)).sum())
                for loss, mass in ((grouped, p), (each, q))
            ]
            assert gains[1] * (1 - 1e-12) <= gains[0] <= gains[1] * 1.05 + 1e-12

    def test_never_above_one_report(self) -> None:
        for reports in (1, 3, 1000):
            for order in ORDERS:
                assert renyi(ShuffledReports(2, reports), order) <= renyi(Pure(2), order)
        assert (1 * ShuffledReports(0, 10)).epsilon() == 0


def cloned(epsilon: float, reports: int, at: float) -> float:
    """The hockey stick divergence, summed over the numbers of clones of either kind."""
    odds, share, total = math.exp(epsilon), math.exp(-epsilon), 0.0
    for clones in range(reports):
        ways = math.comb(reports - 1, clones) * share**clones
        ways *= (1 - share) ** (reports - 1 - clones) / 2**clones / (odds + 1)
        for ones in range(clones + 2):
            as_one = math.comb(clones, ones - 1) if ones else 0
            as_zero = math.comb(clones, ones)
            p, q = odds * as_one + as_zero, as_one + odds * as_zero
            total += ways * max(p - math.exp(at) * q, 0.0)
    return total
