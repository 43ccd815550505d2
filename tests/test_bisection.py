"""Bisections find where a condition begins to hold, and evaluate it no more often than needed."""

import ast
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet._bisection import decided_whole, edge, float_edge, halved_each, smallest_whole

SOURCE = Path(discreet.__file__).parent


@pytest.mark.parametrize("least", [-5, 0, 1, 7])
@pytest.mark.parametrize("more", [0, 1, 2, 3, 4, 63, 64, 65, 10**30])
def test_the_smallest_whole_number_is_found(least: int, more: int) -> None:
    asked: list[int] = []

    def is_enough(number: int) -> bool:
        asked.append(number)
        return number >= least + more

    assert smallest_whole(is_enough, least) == least + more
    assert min(asked) == least
    assert len(asked) <= 2 * more.bit_length() + 3
    assert len(set(asked)) == len(asked)


@pytest.mark.parametrize("wanted", ["1", "3/2", "7/3", "999999/1000000", "1e-40"])
@pytest.mark.parametrize("digits", [1, 6, 12])
def test_an_edge_is_met_from_its_good_side(wanted: str, digits: int) -> None:
    limit = Fraction(wanted)
    below = edge(lambda x: x <= limit, Fraction(0), Fraction(4), digits)
    above = edge(lambda x: x >= limit, Fraction(4), Fraction(0), digits)
    assert below <= limit <= above
    assert limit - below <= limit * Fraction(2, 10**digits)
    assert above - limit <= limit * Fraction(2, 10**digits)


@pytest.mark.parametrize("least", [-3, 0, 5])
@pytest.mark.parametrize("more", range(9))
def test_a_known_end_saves_the_search_for_it(least: int, more: int) -> None:
    asked: list[int] = []

    def is_enough(number: int) -> bool:
        asked.append(number)
        return number >= least + more

    assert smallest_whole(is_enough, least, least + 8) == least + more
    assert all(least <= one < least + 8 for one in asked)
    assert len(asked) <= 4


@pytest.mark.parametrize("undecided", range(1, 10))
@pytest.mark.parametrize("first", range(1, 11))
def test_an_undecided_answer_ends_the_search(undecided: int, first: int) -> None:
    """Only an answer that is asked for can be undecided."""
    asked: list[int] = []

    def is_enough(number: int) -> bool | None:
        asked.append(number)
        return None if number == undecided else number >= first

    found = decided_whole(is_enough, 0, 10)
    assert found == (None if undecided in asked else first)
    assert undecided not in asked[:-1]


@pytest.mark.parametrize("limit", [1e-300, 0.1, 1.0, 7.3, 1e300])
def test_a_float_edge_has_a_bad_neighbour(limit: float) -> None:
    above = float_edge(lambda x: x >= limit, 1e301, 0.0)
    below = float_edge(lambda x: x <= limit, 0.0, 1e301)
    assert above == below == limit


def test_places_of_arrays_are_halved_apart() -> None:
    limits = np.array([0.1, 3.0, 0.0])
    good, bad = halved_each(lambda x: x <= limits, np.zeros(3), np.full(3, 8.0), times=3)
    assert good.tolist() == [0.0, 3.0, 0.0]
    assert bad.tolist() == [1.0, 4.0, 1.0]
    good, bad = halved_each(lambda x: x <= limits, np.zeros(3), np.full(3, 8.0), times=2200)
    assert (bad == np.nextafter(good, np.inf)).all()
    assert good.tolist() == limits.tolist()


# A loop of its own has a reason.
OWN_LOOPS = {"_bisection.py", "_profile.py"}  # the second keeps the values that it computes


def test_nobody_writes_a_bisection_by_hand() -> None:
    assert {file.name for file in SOURCE.rglob("*.py") if halves(file)} == OWN_LOOPS


def halves(file: Path) -> bool:
    """Whether a loop in this file computes a middle."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    loops = (node for node in ast.walk(tree) if isinstance(node, ast.While | ast.For))
    return any(re.search(r"\bmiddle :?= .*/ 2", ast.unparse(loop)) for loop in loops)
