"""Contingency tables and the chi-square test on them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import chdtrc

from discreet._exact import fraction
from discreet._unit import Change, Unit
from discreet.audit import replay
from discreet.errors import InvalidArgument
from discreet.mechanisms import (
    Bounded,
    DiscreteLaplace,
    Door,
    Gaussian,
    Grid,
    Part,
    release_through,
)
from discreet.mechanisms._fixed_point import IntegerArray
from discreet.mechanisms.statistics import chi_square, contingency
from tests.bad_values import BadValue
from tests.mechanisms.kit import PERSON, number
from tests.mechanisms.statistics.kit import (
    BOTH,
    Table,
    at_least,
    holds,
    moves,
    people,
    released,
)

Noise = DiscreteLaplace | Gaussian
GENOTYPES = {"case": Grid(0, 1), "alleles": Grid(0, 2)}


@pytest.mark.parametrize("unit", BOTH, ids=str)
@pytest.mark.parametrize("per_unit", [1, 2, 3])
def test_no_unit_moves_a_table_further_than_stated_and_some_do(per_unit: int, unit: Unit) -> None:
    """And the price is that of the worst pair; half of the noise is caught."""
    found, bound = moves(GENOTYPES, unit, per_unit, contingency)
    assert holds(found, bound)
    for norm in ("l1", "l2_squared", "linf"):
        assert max(moved[norm] for moved in found) == getattr(bound, norm)
    facts = contingency(people(np.zeros((0, 2)), GENOTYPES, unit, per_unit))
    laplace = DiscreteLaplace.for_epsilon(0.5, facts)
    worst = max(moved["l1"] for moved in found) / laplace.scale
    assert worst == fraction(laplace.privacy_loss(facts).epsilon()) < 2 * worst


def test_a_table_counts_every_combination() -> None:
    data = np.array([[0, 2], [1, 0], [0, 2], [np.nan, 9], [1, 1.2]])
    facts = contingency(people(data, GENOTYPES))
    assert facts.compute().tolist() == [[0, 0, 2], [1, 1, 0]]
    assert isinstance(facts.part, Part)
    assert facts.part.shape == (2, 3)
    three = contingency(
        people(np.zeros((4, 3)), {"a": Grid(0, 1), "b": Grid(0, 2), "c": Grid(5, 6)})
    )
    assert three.compute()[0, 0, 0] == 4
    assert contingency(people(np.zeros((0, 2)), GENOTYPES)).compute().sum() == 0


@pytest.mark.parametrize("unit", BOTH, ids=str)
def test_nothing_but_the_counts_tells_neighbours_apart(unit: Unit) -> None:
    def act(door: Door, data: Table) -> object:
        return release_through(door, contingency(people(data, GENOTYPES, unit)), Gaussian(9))

    data = np.array([[1, 0], [0, 1], [0, np.nan]])
    for row in ([0, 0], [1, 2], [np.inf, -2]):
        is_added = unit.change is Change.ADD_REMOVE
        replay(act, data, np.vstack([data if is_added else data[:-1], [row]]))


def given(table: Table) -> Bounded[IntegerArray]:
    """A table as if it had been counted."""
    return Bounded(lambda: table, sensitivity=1, unit=PERSON, name="t", shape=table.shape)


@pytest.mark.parametrize("noise", [DiscreteLaplace(0.01), Gaussian(0.01)], ids=repr)
@pytest.mark.parametrize(
    "table", [[[40, 60], [55, 45]], [[120, 90, 30], [100, 100, 45]], [[30, 20], [21, 33], [25, 25]]]
)
def test_without_noise_it_is_pearsons(noise: Noise, table: list[list[int]]) -> None:
    found = chi_square(released(given(np.array(table)), noise, 0), draws=20_000)
    counts = np.array(table, dtype=float)
    expected = np.outer(counts.sum(1), counts.sum(0)) / counts.sum()
    statistic = float(((counts - expected) ** 2 / expected).sum())
    assert found.statistic == pytest.approx(statistic)
    degrees = (counts.shape[0] - 1) * (counts.shape[1] - 1)
    assert found.p_value == pytest.approx(float(chdtrc(degrees, statistic)), abs=0.02)
    assert found == chi_square(released(given(np.array(table)), noise, 0), draws=20_000)


@pytest.mark.parametrize("kind", [DiscreteLaplace, Gaussian])
@pytest.mark.parametrize("margins", [([0.5, 0.5], [0.5, 0.3, 0.2]), ([0.2, 0.8], [0.6, 0.4])])
def test_under_independence_few_p_values_are_small(
    kind: Callable[[Any], Noise], margins: tuple[list[float], list[float]]
) -> None:
    """At 5 %, with the noise as large as chance, 600 tables say nothing against 5 %, at a false
    alarm of 10^-9; they do against a test that ignores the noise."""
    random, trials = np.random.default_rng(4), 600
    chances = np.outer(*margins)
    low, ignoring = 0, 0
    for seed in range(trials):
        table = random.multinomial(500, chances.ravel()).reshape(chances.shape)
        result = chi_square(released(given(table), kind(8), seed), draws=399)
        low += result.p_value <= 0.05
        degrees = (chances.shape[0] - 1) * (chances.shape[1] - 1)
        ignoring += float(chdtrc(degrees, result.statistic)) <= 0.05
    assert at_least(low, trials) <= 0.05
    assert at_least(ignoring, trials) > 0.05


def test_a_strong_dependence_is_found() -> None:
    table = np.array([[400, 300, 100], [200, 350, 250]])
    result = chi_square(released(given(table), DiscreteLaplace(4), 1))
    assert result.p_value == 1 / 10_000
    assert result.is_large_enough


@pytest.mark.parametrize("table", [[[3, 4], [2, 5]], [[0, 0], [0, 0]], [[500, 500], [2, 3]]])
def test_small_tables_claim_nothing(table: list[list[int]]) -> None:
    for seed in range(20):
        result = chi_square(released(given(np.array(table)), DiscreteLaplace(1), seed))
        assert np.isfinite(result.statistic)
        assert result.is_large_enough or result.p_value == 1


def test_bad_input_is_refused_by_name() -> None:
    with pytest.raises(InvalidArgument, match="state rows by"):
        contingency(number())  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"at most 2\^24"):
        contingency(people(np.zeros((1, 2)), {"a": Grid(0, 2**13), "b": Grid(0, 2**13)}))
    answer = released(given(np.ones((2, 2), dtype=np.int64)), Gaussian(1), 0)
    with pytest.raises(InvalidArgument, match="give a release of a table by"):
        chi_square(answer.processed(lambda value: value, by="nothing"))
    with pytest.raises(InvalidArgument, match=r"has the shape \(2,\): give rows x columns"):
        chi_square(released(given(np.ones(2, dtype=np.int64)), Gaussian(1), 0))
    wrongs: list[BadValue] = [0, -1, 1.5, True, "9"]
    for wrong in wrongs:
        with pytest.raises(InvalidArgument, match="draws = "):
            chi_square(answer, wrong)
