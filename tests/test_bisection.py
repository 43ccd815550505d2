"""Bisections find where a condition begins to hold, and evaluate it no more often than needed."""

from fractions import Fraction

import pytest

from discreet._bisection import edge, smallest_whole


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
