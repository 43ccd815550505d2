"""All small tables, their neighbours, and what a law of outcomes loses between them."""

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet._unit import Change, Unit
from discreet.accounting import PrivacyLoss
from discreet.mechanisms import Bounded, Grid, Rows
from discreet.mechanisms.quantiles import Score
from tests.mechanisms.kit import PERSON

Table = tuple[int, ...]
Numbers = npt.NDArray[Any]  # Any: integers or floats
Chances = npt.NDArray[np.float64]
Law = Callable[[Table], Chances]  # the probability of each outcome, always in the same order

REPLACED = PERSON.with_change(Change.REPLACE)
LEVELS = [Fraction(1, 2), Fraction(1, 4), Fraction(3, 4), Fraction(2, 5), Fraction(9, 10)]
EPSILONS = 0.0, 0.1, 0.3, 0.7
ROUND_OFF = 1e-12


def column(
    table: Table | Numbers,
    grid: Grid,
    unit: Unit = PERSON,
    per_unit: int = 1,
) -> Bounded[Rows]:
    """One column with these values."""
    values = np.array(table, dtype=np.float64)
    return Bounded.rows(
        lambda: values, columns={"x": grid}, unit=unit, per_unit=per_unit, name="column"
    )


def rows(table: Table | Numbers, grid: Grid) -> Rows:
    """The same, as mechanisms see it."""
    bounded = column(table, grid)
    return bounded.checked(bounded.compute())


def tables(places: int, most: int) -> Iterator[Table]:
    """All tables of at most this many rows."""
    for count in range(most + 1):
        yield from itertools.combinations_with_replacement(range(places), count)


@lru_cache(maxsize=32)
def neighbours(places: int, most: int, unit: Unit, per_unit: int = 1) -> list[tuple[Table, Table]]:
    """All pairs among them that differ by a unit with at most this many rows."""
    found = list(tables(places, most))
    counts = np.array([np.bincount(table, minlength=places) for table in found])  # (table, place)
    moved = counts[:, None] - counts[None]  # (one, other, place)
    gone, come = (np.maximum(sign * moved, 0).sum(axis=2) for sign in (1, -1))
    is_near = np.maximum(gone, come) <= per_unit
    if unit.change is Change.ADD_REMOVE:
        is_near &= (gone == 0) | (come == 0)
    return [(found[one], found[other]) for one, other in np.argwhere(is_near).tolist()]


def misses(
    table: Table, places: int, level: Fraction, score: Score = Score.INTERVAL
) -> list[Fraction]:
    """How far each place is from being a quantile, in rows, by its definition."""
    target, found = level * len(table), []
    for place in range(places):
        below = sum(row < place for row in table)
        up_to = sum(row <= place for row in table)
        by_interval = max(below - target, target - up_to, Fraction(0))
        by_middle = abs(Fraction(below + up_to, 2) - target)
        found.append(by_interval if score is Score.INTERVAL else by_middle)
    return found


def softmax(heights: list[float]) -> Chances:
    """e^height over its sum."""
    weights = np.exp(np.array(heights) - max(heights))
    return np.asarray(weights / weights.sum())


def exponential_law(
    level: Fraction, scale: Fraction, places: int, score: Score = Score.INTERVAL
) -> Law:
    """The law of `Quantile`, by its definition."""
    return lambda table: softmax([-float(m / scale) for m in misses(table, places, level, score)])


def flip_law(level: Fraction, scale: Fraction, places: int, score: Score = Score.INTERVAL) -> Law:
    """The law of `PermuteAndFlipQuantile`. Each place is visited at a uniform time, independently:
    p_i times the integral over t in [0, 1] of all other 1 - t p_j."""

    def law(table: Table) -> Chances:
        missed = misses(table, places, level, score)
        powers = np.exp([-float((m - min(missed)) / scale) for m in missed])
        found = []
        for i, power in enumerate(powers):
            none = np.polynomial.Polynomial([1.0])
            for other in np.delete(powers, i):
                none *= np.polynomial.Polynomial([1.0, -other])
            found.append(power * none.integ()(1.0))
        return np.array(found)

    return law


def worst(level: Fraction, miss: Fraction) -> Table:
    """Rows at both ends, so that one end misses nothing and all the rest by so much: with E rows
    at 0 and G at the top, by E - level (E + G)."""
    wanted = int(miss * level.denominator)
    for top in range(level.denominator):
        bottom, rest = divmod(wanted + level.numerator * top, level.denominator - level.numerator)
        if not rest:
            return (0,) * bottom + (999,) * top
    raise AssertionError


def refutation(law: Law, claim: PrivacyLoss, pairs: list[tuple[Table, Table]]) -> str | None:
    """Why this law is not as private as claimed, or `None`."""
    laws = {table: law(table) for table in sorted({table for pair in pairs for table in pair})}
    one, other = (
        np.array([laws[table] for table in column]) for column in zip(*pairs, strict=True)
    )
    for epsilon in (*EPSILONS, claim.epsilon(claim.delta(0) / 1000), claim.epsilon()):
        losses = np.maximum(one - np.exp(epsilon) * other, 0).sum(axis=1)
        worst = int(np.argmax(losses))
        if losses[worst] > claim.delta(epsilon) + ROUND_OFF:
            return f"{pairs[worst]} lose {losses[worst]} at epsilon = {epsilon}"
    return None


def widest(law: Law, pairs: list[tuple[Table, Table]]) -> float:
    """The length of the longest interval that some pair's privacy losses span."""
    laws = {table: np.log(law(table)) for table in {table for pair in pairs for table in pair}}
    spans = [np.ptp(laws[one] - laws[other]) for one, other in pairs]
    return float(max(spans))
