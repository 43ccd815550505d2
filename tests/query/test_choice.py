"""Each group gets its fair share of the units that are in too many groups."""

import datetime
import itertools
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from discreet._unit import Unit
from discreet.query import Caps, Column, Declaration, Query
from discreet.query._bounding import _bounding
from discreet.query._bounding._compiling import Compiler
from discreet.query._engines import _engine
from discreet.query._expressions._aggregates import AggregateFunction
from discreet.query._expressions._expressions import Aggregate
from discreet.query._plan import _plan
from discreet.query._rows._source import source_of
from tests.query import chosen
from tests.query.chosen import PARTS, A, B, C, Group, Id, Numbers, P

ALPHA = 1e-9
Q, R = 2**31 - 19, 2**31 - 61  # further primes
UNITS = 3_000
COUNT = (Aggregate(AggregateFunction.COUNT, None, "n"),)
DAY = datetime.date(2024, 1, 1)

KEYS: dict[str, Column] = {
    "boolean": Column.boolean(),
    "integer": Column.integer(keys=range(3)),
    "negative": Column.integer(keys=[-(2**63), -1, 0, 1, 2**63 - 1]),
    "primes": Column.integer(keys=[0, P, Q, 2 * P, A, B, C, A * B, -A, A * P]),
    "many": Column.integer(keys=range(0, 100 * P, P)),
    "text": Column.text(keys=["north", "south"]),
    "odd": Column.text(keys=["", " ", "a", "A", "a ", "é", "e\u0301", "\0", "a\0", "'", "\\"]),
    "decimal": Column.text(keys=["0.1", "0.10", "1", "1.0", "-1", "10"]),
    "date": Column.date(keys=[DAY + datetime.timedelta(days) for days in range(12)]),
}

IDS: dict[str, Sequence[Id]] = {
    "integers": range(UNITS),
    "large": range(2**63 - UNITS, 2**63),
    "negative": range(-(2**63), -(2**63) + UNITS),
    "multiples": range(-UNITS // 2 * P, UNITS // 2 * P, P),
    "floats": [float(own) for own in range(UNITS)],
    "fractions": [own / 7 for own in range(1, UNITS + 1)],
    "texts": [f"person {own}" for own in range(UNITS)],
    "digits": [str(own) for own in range(UNITS)],
    "padded": [f"{own:05}" for own in range(UNITS)],
    "odd": ["é" * (own % 7) + "\\'" * (own % 11) + chr(300 + own) for own in range(UNITS)],
    "days": [DAY + datetime.timedelta(own) for own in range(UNITS)],
    "decimals": [f"{own}.{own % 10}0" for own in range(UNITS)],
}

STEPS = (1, 2, 3, 10, 60, 2**16, 2**20, 2**30, 2**31, 2**32, 2**32 - 1, 2**40, 2**48)
NASTY = (P, Q, R, 2 * P, P + Q, P * 1000, A, B, C, A * B, A * C, B * C, A * P // 2**10, A + B)


def fairness(counts: Any, units: int, most: int = 1) -> float:  # Any: counts of any shape
    """The p-value of the groups' counts, where each unit chose some of the groups at random."""
    shares = np.ravel(counts)
    due = units * most / shares.size
    kept_out = (shares.size - 1) / (shares.size - most)  # a unit chooses a group once
    statistic = float(((shares - due) ** 2).sum()) / due * kept_out
    return float(stats.chi2.sf(statistic, shares.size - 1))


def check_shares(numbers: Numbers, groups: Sequence[Group]) -> None:
    """Each group gets its share of units that keep one, two or three groups."""
    places = chosen.places(numbers, groups, 3)
    for most in range(1, min(4, len(groups))):
        counts = np.bincount(places[:, :most].ravel(), minlength=len(groups))
        assert fairness(counts, len(numbers), most) > ALPHA


def progression(step: int) -> Numbers:
    return np.array([step * (index - UNITS // 2) for index in range(UNITS)], np.int64)


def kept_by_engine(
    ids: Sequence[Id], columns: Sequence[Column], most: int, groups: Sequence[Group]
) -> dict[Any, set[int]]:  # Any: what the engine takes for an id
    """The groups in which each unit counts, if every unit is in all of these groups."""
    cells = [(own, group) for own in ids for group in groups]
    table: dict[str, list[Any]] = {"person": [own for own, _ in cells]}  # Any: values of a type
    for index in range(len(columns)):
        table[f"key{index}"] = [group[index][1] for _, group in cells]
    return kept_of(pa.table(table), columns, most)


def kept_of(
    table: pa.Table, columns: Sequence[Column], most: int
) -> dict[Any, set[int]]:  # Any: as above
    planned = planned_for(columns, most)
    with (
        _engine.opened() as own,
        source_of(table, table.column_names).rows(table.column_names) as rows,
    ):
        there = own.table(rows.schema)
        compiler = Compiler(planned.declaration)
        addends = {_bounding.sum_name(0): compiler.addend(planned.sums[0])}
        counted = _bounding.rows_that_count(planned, there, compiler, addends)
        kept = _bounding._first_groups(planned, _bounding._per_unit(planned, counted))
        cells = own.run(own.statement(kept), rows)
    found = defaultdict(set)
    for cell in cells.to_pylist():
        found[cell["unit"]].add(cell["place"])
    return found


def described(ids: Sequence[Id], groups: Sequence[Group], most: int) -> dict[int | bytes, set[int]]:
    """The same by the description."""
    found = chosen.places(np.array([*map(chosen.number, ids)]), groups, most)
    return {name_of(own): set(mine) for own, mine in zip(ids, found.tolist(), strict=True)}


def planned_for(columns: Sequence[Column], most: int) -> _plan.Plan:
    named = {f"key{index}": column for index, column in enumerate(columns)}
    declaration = Declaration("t", Unit("person"), Caps(most, rows_per_group=1), named)
    return _plan.plan(Query("t", COUNT, tuple(named)), declaration)


def groups_of(*columns: Column) -> list[Group]:
    named = [
        [(f"key{index}", key) for key in column.keys or ()] for index, column in enumerate(columns)
    ]
    return list(itertools.product(*named))


def name_of(own: Id) -> int | bytes:
    """The engine's form of the id."""
    return own if type(own) is int else chosen.id_bytes(own)


@pytest.mark.filterwarnings("ignore")  # between Ibis and DuckDB
@pytest.mark.parametrize(
    ("kind", "key"),
    [(kind, [*KEYS][(at + 4 * i) % len(KEYS)]) for at, kind in enumerate(IDS) for i in (0, 1)],
)
def test_the_engine_chooses_as_described(kind: str, key: str) -> None:
    ids, groups = IDS[kind][:500], groups_of(KEYS[key])
    for most in range(1, min(3, len(groups))):
        assert kept_by_engine(ids, [KEYS[key]], most, groups) == described(ids, groups, most)


@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("key", KEYS)
def test_each_key_gets_its_share(kind: str, key: str) -> None:
    numbers = np.array([chosen.number(own) for own in IDS[kind]])
    check_shares(numbers, groups_of(KEYS[key]))


def _random_ids(generator: random.Random) -> dict[str, Callable[[], Id]]:
    letters = "ab01-.+eE _\\'\"\t\0é€\u0301😀"
    near = [0, P, A, B, C, A * B, P * C, 2**22, 2**31, 2**32, 2**53, 2**62, 2**63 - 4]
    return {
        "integers": lambda: generator.choice(
            (
                generator.randint(-(2**63), 2**63 - 1),
                generator.randint(-5, 5),
                generator.choice((1, -1)) * generator.choice(near) + generator.randint(-3, 0),
            )
        ),
        "floats": lambda: generator.choice(
            (
                generator.uniform(-10, 10),
                float(generator.randint(-(2**53), 2**53)),
                generator.uniform(-1, 1) * 2.0 ** generator.randint(-20, 63),
                2.0 ** generator.randint(40, 62),
            )
        ),
        "texts": lambda: generator.choice(
            (
                "".join(generator.choices(letters, k=generator.randint(0, 8))),
                f"{generator.randint(-20, 20)}",
                f"{generator.randint(-20, 20)}.0",
                f"{generator.choice('+0 ')}{generator.randint(-20, 20)}",
                f"{generator.randint(-(2**66), 2**66)}",
                f"0x{generator.randint(0, 99)}",
                f"{generator.randint(0, 99)}e{generator.randint(0, 3)}",
                f"{generator.randint(0, 9)}_{generator.randint(0, 999)}",
            )
        ),
        "days": lambda: DAY + datetime.timedelta(generator.randint(-700_000, 2_000_000)),
        "booleans": lambda: generator.random() < 0.5,
        "decimals": lambda: Decimal(generator.randint(-(10**15), 10**15)).scaleb(-2),
    }


@pytest.mark.filterwarnings("ignore")  # between Ibis and DuckDB
@pytest.mark.parametrize("kind", _random_ids(random.Random(0)))
def test_the_engine_and_the_description_agree_on_random_ids(kind: str) -> None:
    generator = random.Random(20260)
    make = _random_ids(generator)[kind]
    ids = list({name_of(own): own for own in (make() for _ in range(1_000))}.values())
    for columns in ([KEYS["primes"]], [KEYS["integer"], KEYS["decimal"]], [KEYS["boolean"]] * 3):
        groups = groups_of(*columns)
        assert kept_by_engine(ids, columns, 2, groups) == described(ids, groups, 2)


@pytest.mark.filterwarnings("ignore")  # between Ibis and DuckDB
def test_a_unit_in_some_groups_chooses_among_those() -> None:
    generator = random.Random(7)
    column = KEYS["odd"]
    groups = groups_of(column)
    rows = {(own, generator.randrange(len(groups))) for own in range(400) for _ in range(own % 6)}
    table = pa.table(
        {
            "person": [own for own, _ in sorted(rows)],
            "key0": [groups[place][0][1] for _, place in sorted(rows)],
        }
    )
    assert kept_of(table, [column], 2) == {
        own: chosen.kept(own, groups, [place for other, place in rows if other == own], 2)
        for own in {own for own, _ in rows}
    }


@pytest.mark.parametrize("step", [*STEPS, *NASTY])
def test_no_progression_of_ids_is_unfair(step: int) -> None:
    for start in (0, 1, -Q):
        for column in KEYS.values():
            check_shares(progression(step) + start, groups_of(column))


@pytest.mark.parametrize("step", [*STEPS, *NASTY])
def test_units_choose_independently_of_each_other(step: int) -> None:
    """Neighbours in a progression, its halves, and mirror images; pairs are apart."""
    numbers = progression(step)
    for column in (KEYS["boolean"], KEYS["integer"], KEYS["odd"]):
        groups = groups_of(column)
        one = chosen.places(numbers, groups, 1).ravel()
        half = UNITS // 2
        for left, right in (
            (one[::2], one[1::2]),
            (one[:half], one[half:]),
            (one[1:half], one[:half:-1]),
        ):
            table = np.zeros((len(groups), len(groups)))
            np.add.at(table, (left, right), 1)
            assert fairness(table, left.size) > ALPHA


@pytest.mark.parametrize("step", [*STEPS, *NASTY])
def test_choices_under_two_questions_are_independent(step: int) -> None:
    numbers = progression(step)
    for one, other in itertools.combinations_with_replacement(("boolean", "integer", "odd"), 2):
        asked = [[(("left", key),) for key in KEYS[one].keys or ()]]
        asked += [[(("right", key),) for key in KEYS[other].keys or ()]]
        first, second = (chosen.places(numbers, groups, 1).ravel() for groups in asked)
        table = np.zeros([len(groups) for groups in asked])
        np.add.at(table, (first, second), 1)
        assert fairness(table, UNITS) > ALPHA


@pytest.mark.parametrize("step", [*STEPS, *NASTY])
def test_pairs_of_keys_are_fair_as_pairs_and_each_by_itself(step: int) -> None:
    numbers = progression(step)
    for one, other in itertools.combinations_with_replacement(("boolean", "integer", "decimal"), 2):
        sizes = tuple(len(groups_of(KEYS[key])) for key in (one, other))
        groups = groups_of(KEYS[one], KEYS[other])
        check_shares(numbers, groups)
        found = chosen.places(numbers, groups, 1)
        table = np.bincount(found[:, 0], minlength=len(groups)).reshape(sizes)
        assert min(fairness(table.sum(axis=axis), UNITS) for axis in (0, 1)) > ALPHA


@pytest.mark.parametrize(
    "step", [*(a * b for a in (*PARTS, P) for b in (1, *PARTS)), P * P, Q, R, 2**22, 2**31, 2**32]
)
def test_equal_residues_choose_apart(step: int) -> None:
    """Ids that one or two of the divisors can't tell apart, on both sides of 0."""
    groups = groups_of(KEYS["integer"])
    middle = np.arange(-UNITS, UNITS, dtype=np.int64)
    for start in (middle, middle - step, middle - step // 2):
        for one, other in ((start, start + step), (start, -start - step)):
            first, second = (chosen.places(numbers, groups, 1).ravel() for numbers in (one, other))
            table = np.zeros((3, 3))
            np.add.at(table, (first, second), 1)
            assert fairness(table, 2 * UNITS) > ALPHA


def _affine(numbers: Numbers, keys: Sequence[int]) -> Numbers:
    """A chain of affine maps modulo three primes, which no choice may be."""
    hashed = []
    for key in keys:
        mixed = np.mod(numbers, P) * 1_103_515_245 + key % P * 747_796_405
        for prime, factor in zip((P, Q, R), (1_103_515_245, 747_796_405, 1_664_525), strict=True):
            mixed = mixed % prime * factor + prime // 3
        hashed.append(mixed % P)
    found: Numbers = np.argmin(hashed, axis=0)
    return found


def test_these_tests_find_a_chain_of_affine_maps() -> None:
    counts = np.bincount(_affine(np.arange(UNITS), range(3)), minlength=3)
    assert fairness(counts, UNITS) < ALPHA


def test_these_tests_find_units_that_choose_alike() -> None:
    one = chosen.places(np.arange(UNITS), groups_of(KEYS["integer"]), 1).ravel()
    table = np.zeros((3, 3))
    np.add.at(table, (one, one), 1)
    assert fairness(table, UNITS) < ALPHA


@pytest.mark.filterwarnings("ignore")  # between Ibis and DuckDB
def test_a_new_key_changes_no_other_choice() -> None:
    few, more = Column.integer(keys=[1, 3, 5]), Column.integer(keys=[0, 1, 2, 3, 4, 5])
    kept = []
    for column in (few, more):
        names = groups_of(column)
        found = kept_by_engine(range(500), [column], 1, groups_of(few))
        kept.append({own: {names[place] for place in mine} for own, mine in found.items()})
    assert kept[0] == kept[1]
