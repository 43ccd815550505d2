"""Sample and aggregate: who is in which block, functions that fail, what is released of them."""

import math
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from discreet import accounting
from discreet._exact import fraction
from discreet._unit import Change
from discreet.accounting import PrivacyLoss
from discreet.audit import RecordingBits, SeededBits, ZeroNoiseBits, replay
from discreet.errors import InvalidArgument
from discreet.mechanisms import Bounded, Grid, Sensitivity, release_through
from discreet.mechanisms.framework import MeanOfBlocks, MedianOfBlocks, sample_and_aggregate
from discreet.mechanisms.framework._blocks import _stretches
from discreet.mechanisms.framework._sample_and_aggregate import block_of
from discreet.noise import SecureBits
from tests.bad_values import BadValue
from tests.mechanisms.kit import PERSON, number

GRID = Grid(0, 10, step=0.5)
MECHANISMS = [MedianOfBlocks(1, grid=GRID), MeanOfBlocks(1, grid=GRID, blocks=8)]
REPLACED = PERSON.with_change(Change.REPLACE)


def aggregated(
    function: Callable[[Any], object] = np.mean,
    ids: Any = None,
    rows: Any = None,
    blocks: int = 8,
    unit: Any = PERSON,
    default: float = 3,
) -> Bounded[Any]:
    ids = np.arange(60) // 2 if ids is None else ids
    rows = np.arange(len(ids)) % 10 if rows is None else rows
    return sample_and_aggregate(
        lambda: (ids, rows),
        function,
        blocks=blocks,
        grid=GRID,
        default=default,
        unit=unit,
        name="mean",
    )


def values(length: int, moved: int = 1, grid: Grid = GRID, unit: Any = PERSON) -> Bounded[Any]:
    return Bounded(
        lambda: np.zeros(length, np.int64),
        sensitivity=Sensitivity(l0=moved, linf=grid.size - 1),
        unit=unit,
        name="values",
        shape=(length,),
    )


# Blocks


@pytest.mark.parametrize(
    "ids",
    [
        np.arange(5000) // 3,
        -np.arange(5000),
        np.array([f"p{i // 3}" for i in range(5000)]),
        np.array([f"p{i // 3}" if i % 7 else None for i in range(5000)], dtype=object),
        np.where(np.arange(5000) % 7, np.arange(5000.0), np.nan),
        np.arange(5000, dtype=np.uint8),
    ],
    ids=["int", "negative", "text", "object", "float", "small"],
)
def test_a_unit_has_one_block_that_no_other_row_decides(ids: Any) -> None:
    found = block_of(ids, 20)
    assert found.min() >= 0
    assert found.max() < 20
    of_unit: dict[str, set[int]] = {}
    for unit, block in zip(ids.tolist(), found.tolist(), strict=True):
        of_unit.setdefault(str(unit), set()).add(block)
    assert all(len(blocks) == 1 for blocks in of_unit.values())
    some = np.random.default_rng(1).permutation(len(ids))[:700]
    assert block_of(ids[some], 20).tolist() == found[some].tolist()


ANOTHER: dict[str, Any] = {
    "missing": math.nan,
    "none": None,
    "a text": "x",
    "bytes": b"\xff",
    "beyond int64": 2**63,
    "beyond uint64": 2**64 + 1,
    "below": -5,
    "half": 0.5,
    "as long as one likes": 10**5000,
    "spaces": "  ",
}


@pytest.mark.parametrize("case", ANOTHER)
@pytest.mark.parametrize(
    "known",
    [
        range(60),
        [f"p{i}" for i in range(60)],
        range(2**53, 2**53 + 60),
        range(-(2**63), 60 - 2**63),
        range(2**63 - 60, 2**63),
        range(2**64 - 60, 2**64),
    ],
    ids=["int", "text", "beyond 2^53", "least", "largest", "unsigned"],
)
def test_no_id_makes_others_of_those_beside_it(case: str, known: Any) -> None:
    """One that is missing makes floats of a column of integers, and a text makes texts of it."""
    ids = list(known)
    before = block_of(np.array(ids), 20).tolist()
    for dtype in (None, object):
        with suppress(ValueError, OverflowError):  # NumPy has no such array
            assert block_of(np.array([*ids, ANOTHER[case]], dtype), 20)[:-1].tolist() == before


def test_rows_without_an_id_stay_together_however_they_are_marked() -> None:
    marks = np.array([None, math.nan, np.datetime64("NaT")], object)
    assert len({*block_of(marks, 10**6), *block_of(np.array([math.nan]), 10**6)}) == 1


def test_moments_do_not_depend_on_their_resolution() -> None:
    days = np.arange("2020-01-01", "2020-03-01", dtype="M8[D]")
    assert block_of(days, 20).tolist() == block_of(days.astype("M8[ns]"), 20).tolist()


def test_lists_are_refused_since_one_row_could_make_others_of_all() -> None:
    for ids, rows in (([1, 2], np.arange(2)), (np.arange(2), [1, 2])):
        with pytest.raises(TypeError, match="give arrays"):
            aggregated(ids=ids, rows=rows).compute()


def test_blocks_are_about_as_large() -> None:
    sizes = np.bincount(block_of(np.arange(20_000), 20), minlength=20)
    assert sizes.min() > 800
    assert sizes.max() < 1200


def test_each_block_is_computed_from_its_rows_in_order() -> None:
    ids = np.arange(60) // 2
    seen: list[list[int]] = []
    bounded = aggregated(lambda rows: seen.append(rows.tolist()) or 1, ids, np.arange(60))  # type: ignore[func-returns-value]
    assert bounded.compute().tolist() == [2] * 8
    numbers = block_of(ids, 8)
    assert seen == [np.flatnonzero(numbers == block).tolist() for block in range(8)]


@pytest.mark.parametrize("unit", [PERSON, REPLACED], ids=str)
def test_a_unit_moves_as_many_values_as_declared(unit: Any) -> None:
    """Every person of a small table leaves, comes, or becomes another, whose id may be any."""
    ids, rows = np.arange(30) // 2, (7 * np.arange(30)) % 11
    bounded = aggregated(np.max, ids, rows, unit=unit)
    before = bounded.checked(bounded.compute())
    for person in range(15):
        if unit.change is Change.ADD_REMOVE:
            others = ids != person
            neighbour = aggregated(np.max, ids[others], rows[others], unit=unit)
        else:
            other = np.where(ids == person, 99 + person, ids)
            neighbour = aggregated(np.max, other, np.where(ids == person, 10, rows), unit=unit)
        moved = bounded.part.moves(before, neighbour.checked(neighbour.compute()))
        assert sum(m > 0 for m in moved) <= bounded.part.sensitivity.l0
        assert max(moved) <= bounded.part.sensitivity.linf


def interrupt(rows: Any) -> float:
    raise KeyboardInterrupt


def deep(rows: Any) -> object:
    return deep(rows)


FAILING: dict[str, Callable[[Any], object]] = {
    "raises": lambda rows: 1 / 0,
    "exits": lambda rows: sys.exit(3),
    "a text": lambda rows: "spam",
    "none": lambda rows: None,
    "an array": lambda rows: np.arange(5),
    "not a number": lambda rows: math.nan,
    "warns": lambda rows: warnings.warn("79", stacklevel=1),
    "recursion": deep,
}


@pytest.mark.parametrize("case", FAILING)
def test_any_function_may_fail_and_shows_it_nowhere(
    case: str, capfd: pytest.CaptureFixture[str]
) -> None:
    bounded = aggregated(FAILING[case])
    assert bounded.compute().tolist() == [6] * 8  # the default, 3
    assert capfd.readouterr() == ("", "")


def test_results_beyond_the_grid_count_as_its_end() -> None:
    for found, place in ((math.inf, 20), (-math.inf, 0), (1e300, 20), (-5, 0), (4.3, 9)):
        assert set(aggregated(lambda rows, f=found: f).compute().tolist()) == {place}  # type: ignore[misc]


def test_a_keyboard_interrupt_passes() -> None:
    with pytest.raises(KeyboardInterrupt):
        aggregated(interrupt).compute()


def test_an_empty_table_is_a_table() -> None:
    bounded = aggregated(lambda rows: rows[0], np.arange(0), np.arange(0))
    assert bounded.compute().tolist() == [6] * 8


@pytest.mark.parametrize(
    "mechanism", [MedianOfBlocks(1, grid=GRID), MeanOfBlocks(1, grid=GRID, blocks=8)]
)
def test_neighbours_draw_and_show_alike(mechanism: Any) -> None:
    def act(door: Any, ids: Any) -> object:
        def first(rows: Any) -> object:
            return rows[0] or 1 / 0

        return release_through(door, aggregated(first, ids, ids % 7), mechanism).value

    replay(act, np.arange(20), np.arange(19))


# The median


def median_weights(places: list[int], mechanism: MedianOfBlocks) -> list[float]:
    """By the definition, place by place."""
    worse = [max(sum(v < j for v in places), sum(v > j for v in places)) for j in range(GRID.size)]
    weights = [math.exp(-w / float(mechanism.scale)) for w in worse]
    return [w / sum(weights) for w in weights]


def test_stretches_are_the_places_with_their_scores() -> None:
    for places in product((0, 1, 4, 6), repeat=3):
        starts, lengths, scores = _stretches(np.array(places), 7)
        each = {
            start + i: score
            for start, length, score in zip(
                starts.tolist(), lengths.tolist(), scores.tolist(), strict=True
            )
            for i in range(length)
        }
        assert each == {
            j: -max(sum(v < j for v in places), sum(v > j for v in places)) for j in range(7)
        }


@pytest.mark.parametrize("moved", [1, 2])
def test_no_neighbouring_values_lose_more_than_the_median_claims(moved: int) -> None:
    """All lists of three values on a grid of six, one or two of them changed: the losses' range,
    from exact chances. Half the noise is found."""
    mechanism, grid = MedianOfBlocks(2, grid=Grid(0, 5)), 6
    claimed = fraction(mechanism.privacy_loss(values(3, moved, Grid(0, 5))).epsilon())
    worse = {
        places: [max(sum(v < j for v in places), sum(v > j for v in places)) for j in range(grid)]
        for places in product(range(grid), repeat=3)
    }
    widest = 0
    for one, other in product(worse, repeat=2):
        if sum(a != b for a, b in zip(one, other, strict=True)) <= moved:
            moves = [a - b for a, b in zip(worse[one], worse[other], strict=True)]
            widest = max(widest, max(moves) - min(moves))
    assert widest / mechanism.scale <= claimed + Fraction(1, 10**12)
    assert 2 * widest / mechanism.scale > claimed


def test_the_median_is_drawn_with_its_chances() -> None:
    """Bounds of 7 standard deviations for 21 places, below 1e-9 in all; noise twice as large is
    refused by the same."""
    mechanism, places, count = MedianOfBlocks(1, grid=GRID), [3, 3, 9, 12, 20], 5_000
    bits = SeededBits(1)
    drawn = [int(2 * mechanism.sample(np.array(places), bits)) for _ in range(count)]
    seen = np.bincount(drawn, minlength=21) / count

    def is_far(other: MedianOfBlocks) -> bool:
        exact = median_weights(places, other)
        bounds = [7 * math.sqrt(p / count) + 20 / count for p in exact]
        return any(abs(s - p) > b for s, p, b in zip(seen, exact, bounds, strict=True))

    assert not is_far(mechanism)
    assert is_far(MedianOfBlocks(2, grid=GRID))


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_the_medians_forecast_is_exact_in_its_worst_case(confidence: float) -> None:
    """All values at one place: every other has all of them on one side."""
    grid = Grid(0, 999)
    for scale in (1, 3.7):
        mechanism = MedianOfBlocks(scale, grid=grid)
        r = mechanism.error(confidence)

        def missing(blocks: int) -> float:
            others = 999 * math.exp(-blocks / scale)  # noqa: B023  # called at once
            return others / (1 + others)

        assert missing(r + 1) <= 1 - confidence < missing(r) or r == 0
        zeros, bits = np.full(r + 1, 500), SecureBits()
        far = np.mean([mechanism.sample(zeros, bits) != 500 for _ in range(1500)])
        assert abs(far - missing(r + 1)) < 6.5 * math.sqrt(0.25 / 1500)


# The mean


def test_the_mean_is_the_values_mean_with_noise() -> None:
    mechanism = MeanOfBlocks(Fraction(1, 10), grid=Grid(5, 10, step=0.5), blocks=4)
    assert mechanism.sample(np.array([0, 10, 5, 6]), ZeroNoiseBits()) == 5 + 21 / 8
    beyond = MeanOfBlocks(10**400, grid=GRID, blocks=2)
    assert math.isfinite(beyond.sample(np.array([0, 1]), SecureBits()))
    inside = MeanOfBlocks(1, grid=GRID, blocks=2)
    assert inside.sample(np.array([-50, 90]), ZeroNoiseBits()) == 5  # clipped, as ever


@pytest.mark.parametrize("unit", [PERSON, REPLACED], ids=str)
def test_the_mean_costs_what_the_sums_move_does(unit: Any) -> None:
    bounded = aggregated(unit=unit)
    moved = 20 * (1 if unit is PERSON else 2)
    mechanism = MeanOfBlocks.for_epsilon(0.5, bounded, grid=GRID)
    assert mechanism.scale == moved * Fraction(1, 2) / 8 / Fraction(1, 2)
    assert mechanism.privacy_loss(bounded) == PrivacyLoss.of(
        accounting.DiscreteLaplace(2 * moved, moved), unit=unit
    )
    median = MedianOfBlocks.for_epsilon(0.5, bounded, grid=GRID)
    assert median.privacy_loss(bounded).epsilon() == 0.5


def test_forecast_errors_of_the_mean_are_the_measured_ones() -> None:
    mechanism = MeanOfBlocks(2, grid=Grid(0, 100, step=0.01), blocks=50)
    bits, places = SecureBits(), np.full(50, 5000)
    noise = np.abs(np.array([mechanism.sample(places, bits) for _ in range(10_000)]) - 50)
    assert float(mechanism.error(0.9)) == pytest.approx(np.quantile(noise, 0.9), rel=0.05)
    wanted = MeanOfBlocks.for_error(1, 0.9, grid=GRID, blocks=50)
    assert 0.98 < wanted.error(0.9) <= 1
    medians = MedianOfBlocks.for_error(5, 0.9, grid=GRID)
    assert medians.error(0.9) == 5


# Bad input


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), True, "1", None])
def test_bad_numbers_are_refused_by_name(wrong: BadValue) -> None:
    makers: list[tuple[Callable[[], object], str]] = [
        (lambda: MedianOfBlocks(wrong, grid=GRID), "scale"),
        (lambda: MeanOfBlocks(wrong, grid=GRID, blocks=2), "scale"),
        (lambda: MeanOfBlocks(1, grid=GRID, blocks=wrong), "blocks"),
        (lambda: MedianOfBlocks.for_epsilon(wrong, values(3), grid=GRID), "epsilon"),
        (lambda: MeanOfBlocks.for_epsilon(wrong, values(3), grid=GRID), "epsilon"),
        (lambda: MedianOfBlocks(1, grid=wrong), "grid"),
        (lambda: MedianOfBlocks(1, grid=GRID).error(wrong), "confidence"),
        (lambda: aggregated(blocks=wrong), "blocks"),
        (lambda: aggregated(unit=wrong), "unit"),
        (lambda: aggregated(wrong), "functions"),
    ]
    for make, name in makers:
        with pytest.raises(InvalidArgument, match=name):
            make()
    with pytest.raises(InvalidArgument, match="default"):
        aggregated(default=math.inf)


@pytest.mark.parametrize(
    "mechanism", [MedianOfBlocks(1, grid=GRID), MeanOfBlocks(1, grid=GRID, blocks=8)]
)
def test_values_of_another_grid_are_refused(mechanism: Any) -> None:
    for bounded in (number(), values(8, grid=Grid(0, 3))):
        with pytest.raises(InvalidArgument, match="places"):
            mechanism.privacy_loss(bounded)
    with pytest.raises(InvalidArgument, match="blocks"):
        MeanOfBlocks(1, grid=GRID, blocks=8).privacy_loss(values(9))


def test_no_value_decides_how_much_is_drawn() -> None:
    for mechanism in (MedianOfBlocks(1, grid=GRID), MeanOfBlocks(1, grid=GRID, blocks=5)):
        used = set()
        for places in product((0, 7, 20), repeat=5):
            bits = RecordingBits(SeededBits(1))
            mechanism.sample(np.array(places), bits)
            used.add(len(bits.seen))
        assert len(used) == 1
