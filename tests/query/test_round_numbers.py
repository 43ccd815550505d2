"""Bounds that are found are round numbers, and hold as much as before."""

import math
from fractions import Fraction

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

import discreet as dp
from discreet.mechanisms import Grid
from discreet.query._statistics._round_numbers import round_ends

WIDE = Grid(-(10**12), 10**12, step=2.0**-10)


@given(st.tuples(*[st.integers(-(2**48), 2**48)] * 2).map(sorted))
def test_ends_move_outwards_to_round_numbers_near_by(steps: list[int]) -> None:
    low, high = (step * 2.0**-10 for step in steps)
    ends = round_ends((low, high), within=WIDE)
    assert ends[0] <= low <= high <= ends[1]
    assert round_ends(ends, within=WIDE) == ends
    for near, far in ((high, ends[1]), (-low, -ends[0])):
        if near > 0:  # away from 0
            assert far <= near * 4 / 3
        if near < 0:
            assert far <= near * 3 / 4
        if far:
            size = Fraction(repr(abs(far)))
            decade = Fraction(10) ** math.floor(math.log10(size) + 1e-9)
            assert size / decade * 10 in (10, 12, 15, 20, 25, 30, 40, 50, 60, 70, 80)
            assert far % 1 == 0 or near % 1 != 0, "whole numbers stay whole"


def test_ends_stay_within_the_declared_bounds() -> None:
    assert round_ends((-3.1, 63.5), within=Grid(-3.5, 66, step=0.5)) == (-3.5, 66)
    assert round_ends((0, 0), within=Grid(0, 70)) == (0, 0)


def test_a_table_finds_round_bounds() -> None:
    ledger = dp.Ledger.in_memory(unit=dp.Unit.ROW, limit=dp.Limit(epsilon=100))
    wages = pd.DataFrame({"wage": [300.0 + n for n in range(2_000)]})
    columns = {"wage": dp.Column.number(0, 10**6)}
    table = dp.Table(wages, unit=dp.Unit.ROW, columns=columns, ledger=ledger)
    assert table.bounds("wage", epsilon=50).value == (250, 5000)
