"""A person is sampled, clipped and counted as one, however many rows that person has."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from discreet._unit import Unit
from discreet.errors import InvalidArgument, Refused
from discreet.noise import SecureBits
from discreet.train import L1, Automatic, Clipping, Flat, PerLayer, one_by_one
from discreet.train._batches._data import Data, microbatch_of
from discreet.train._batches._units import Reduce, Units
from discreet.train._checks._microbatch import MicrobatchSize
from discreet.train._checks._model_check import Losses
from discreet.train._plans._noise import ExactGaussian, Steps
from discreet.train._step_inputs import (
    Examples,
    StepInputs,
    StepStatistics,
    clipping_of,
    exact_sums,
    float_sums,
)
from tests.bad_values import BadValue
from tests.mechanisms.hostile import Hostile
from tests.missing_ids import COLUMNS, IDS, MARKS
from tests.train.steps import (
    Replaceable,
    by_hand,
    data,
    known,
    linear,
    losses_of,
    of_persons,
    short,
    weights,
)
from tests.train.unfollowed import unfollowed

PERSON = Unit("person")


def sums_of(given: Units, places: list[int], clip: float) -> Tensor:
    """The sum over some persons, at fixed weights that aren't 0."""
    model = linear()
    nn.init.constant_(model.weight, 0.3)  # type: ignore[arg-type]
    phase = short(clip=clip).phases[0]
    work = StepInputs(
        model,
        Examples.of(given),
        np.array(places),
        losses_of(model),
        SecureBits(),
        StepStatistics(),
    )
    return torch.cat(
        [s.reshape(-1) for s in float_sums(work, clipping_of(phase, 2), MicrobatchSize())]
    )


@pytest.mark.parametrize("reduce", Reduce)
def test_a_person_is_clipped_as_one(reduce: Reduce) -> None:
    given = of_persons(reduce=reduce, most=5)
    for person in range(12):
        alone = sums_of(given, [person], clip=0.05)
        assert 0.0499 < float(alone.norm()) <= 0.05
        loose = sums_of(given, [person], clip=1e6)
        rows = list(range(person, 60, 12))  # of_persons: row 0 is p0's, row 1 p7's, and round
        model = linear()
        nn.init.constant_(model.weight, 0.3)  # type: ignore[arg-type]
        whole = by_hand(model, data(), rows, 1e9) / (1 if reduce is Reduce.SUM else len(rows))
        assert torch.allclose(loose, whole, atol=1e-5)
    together = sums_of(given, list(range(12)), clip=0.05)
    less = sums_of(given, list(range(11)), clip=0.05)
    assert float((together - less).norm()) <= 0.05 * (1 + 1e-6)


def test_a_person_has_at_most_so_many_rows() -> None:
    given = of_persons(most=2, reduce=Reduce.SUM)
    people = Examples.of(given).rows_by_unit
    assert people is not None
    seen = set()
    for _ in range(200):
        rows = people.rows_of(3, 2, SecureBits())
        assert rows.size == 2
        seen.add(tuple(rows.tolist()))
    assert len(seen) == 10
    for most in range(1, 7):
        drawn = people.chosen(np.arange(12), most, SecureBits())
        assert drawn.counts.tolist() == [min(5, most)] * 12
        assert len(set(drawn.rows.tolist())) == drawn.rows.size


def test_rows_without_an_id_belong_to_nobody() -> None:
    ids = np.array([1.0, float("nan"), 2.0, 1.0])
    people = Examples.of(Units(data(4), ids, "person", 9)).rows_by_unit
    assert people is not None
    assert [people.rows_of(person, 9, SecureBits()).tolist() for person in (0, 1)] == [[0, 3], [2]]
    nobody = Units(data(2), np.array([None, None]), "person", 9)
    assert Examples.of(nobody).count == 0


@pytest.mark.parametrize("column", COLUMNS)
def test_missing_ids_name_nobody_in_any_column(column: str) -> None:
    given = Units(data(len(IDS)), COLUMNS[column](), "person", 9)
    rows = Examples.of(given).rows_by_unit
    assert rows is not None
    found = [rows.rows_of(n, 9, SecureBits()).tolist() for n in range(len(rows.ends))]
    assert found == [[0, 3], [1], [5]]


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("kind", [list, lambda ids: np.array(ids, object)], ids=["list", "array"])
def test_missing_ids_name_nobody_beside_any_other(mark: str, kind: BadValue) -> None:
    """The same mark twice, too, which is equal to itself where it is one object."""
    ids = [7, MARKS[mark], "7", MARKS[mark], 7, math.nan]
    rows = Examples.of(Units(data(6), kind(ids), "person", 9)).rows_by_unit
    assert rows is not None
    found = [rows.rows_of(n, 9, SecureBits()).tolist() for n in range(len(rows.ends))]
    assert found == [[0, 4], [2]]


BAD = {"list": [1], "mapping": {}, "signal": Decimal("sNaN"), "hostile": Hostile()}


@pytest.mark.parametrize("bad", BAD)
def test_an_id_that_fails_when_it_is_looked_at_fails_no_run(bad: str) -> None:
    ids = np.array([1, None, 2], object)
    ids[1] = BAD[bad]
    rows = Examples.of(Units(data(3), ids, "person", 9)).rows_by_unit
    assert rows is not None
    assert rows.rows.tolist() == ([0, 1, 2] if bad == "hostile" else [0, 2])
    assert rows.ends.size == rows.rows.size


def test_ids_may_be_of_any_kinds_side_by_side() -> None:
    """One that is a text, or missing in pandas' way, is no reason to fail."""
    ids = [7, "7", None, 2**53 + 1, pd.NA, 2**53, 7.0, float("nan"), pd.NaT, "7"]
    kinds: list[BadValue] = [ids, np.array(ids, object), pd.Series(ids, dtype=object)]
    for given in kinds:
        people = Examples.of(Units(data(10), given, "person", 9)).rows_by_unit
        assert people is not None
        found = [people.rows_of(n, 9, SecureBits()).tolist() for n in range(len(people.ends))]
        assert found == [[0, 6], [1, 9], [3], [5]]


def test_units_are_sampled_and_counted_as_units() -> None:
    made = short(unit=PERSON, records=12, batch=6, steps=30)
    model, sizes = linear(), []
    with known(model, of_persons(), made) as training:
        for ticket in training.batches():
            sizes.append(training._places.size)
            training.step(ticket)
    assert max(sizes) <= 12
    assert 4 < sum(sizes) / 30 < 8


RAGGED = [0, 1, 1, 2, 2, 2, 2, 2, 3, 3, 4, 0, 0, 5, 5, 6]  # from 1 to 5 rows each
NORM = Fraction(1, 20)


def curved() -> nn.Module:
    """A model of two layers."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def work_on(
    model: nn.Module, losses: Losses, given: "Data | Units", places: list[int]
) -> StepInputs:
    return StepInputs(
        model, Examples.of(given), np.array(places), losses, SecureBits(), StepStatistics()
    )


def flat(sums: Any) -> Tensor:  # Any: tensors
    return torch.cat([each.detach().double().flatten() for each in sums])


@pytest.mark.parametrize("clipping", [Flat(0.1), PerLayer(0.1), Automatic(0.1), L1(0.3)], ids=repr)
@pytest.mark.parametrize("reduce", Reduce)
@pytest.mark.parametrize("physical", [1, 4, 1024])
def test_units_in_a_batch_have_the_gradients_of_units_alone(
    clipping: Clipping, reduce: Reduce, physical: int
) -> None:
    model, people = curved(), [[*np.flatnonzero(np.array(RAGGED) == n)] for n in range(7)]

    def alone(person: int) -> Tensor:
        losses = losses_of(model)(microbatch_of(data(16), np.array(people[person])))
        return losses.sum() if reduce is Reduce.SUM else losses.mean()

    given = Units(data(16), RAGGED, "person", 9, reduce)
    work = work_on(model, losses_of(model), given, [*range(7)])
    found, wanted = (
        float_sums(work, clipping, MicrobatchSize(physical)),
        one_by_one(model, alone, 7, clipping),
    )
    assert float((flat(found) - flat(wanted.sums)).norm()) <= 1e-5 * float(flat(wanted.sums).norm())
    assert work.statistics.examples == 7
    assert work.statistics.losses == pytest.approx(sum(alone(person).item() for person in range(7)))
    within = int((wanted.squared_norms.sum(0).sqrt() <= 0.1).sum())
    assert work.statistics.within(0.1) == within < 7


@pytest.mark.parametrize("physical", [1, 4, 7, 1024])
def test_all_rows_of_a_person_are_in_one_part(physical: int) -> None:
    model, parts = linear(), []
    rows = {**data(16), "who": torch.tensor(RAGGED)}

    def noted(part: Any) -> Tensor:
        parts.append(unfollowed(part.who.tolist))
        return losses_of(model)(part)

    work = work_on(model, noted, Units(rows, RAGGED, "person", 9), [0, 2, 3, 6])
    float_sums(work, Flat(0.1), MicrobatchSize(physical))
    seen = [person for part in parts for person in set(part)]
    assert sorted(seen) == [0, 2, 3, 6]
    assert sorted(who for part in parts for who in part) == [0] * 3 + [2] * 5 + [3] * 2 + [6]
    assert all(len(part) <= physical for part in parts if len(set(part)) > 1)
    assert len(parts) == {1: 4, 4: 3, 7: 3, 1024: 1}[physical]


def test_arrays_from_elsewhere_leave_the_shares_of_rows_as_they_are() -> None:
    """The shares are known to hold no data."""
    model = linear()

    def noted(part: Any) -> Tensor:
        assert unfollowed(part.x.numpy).size
        return losses_of(model)(part)

    given = Units(data(16), RAGGED, "person", 9, Reduce.MEAN)
    assert float_sums(work_on(model, noted, given, [0, 2, 3]), Flat(0.1), MicrobatchSize(7))


def test_running_out_of_memory_changes_nothing() -> None:
    model, sizes, physical = curved(), list[int](), MicrobatchSize()
    given = Units(data(16), RAGGED, "person", 9)

    def hungry(part: Any) -> Tensor:
        sizes.append(len(part.x))
        if len(part.x) > 5:
            raise torch.OutOfMemoryError
        return losses_of(model)(part)

    found = float_sums(work_on(model, hungry, given, [*range(7)]), Flat(0.1), physical)
    plain = float_sums(
        work_on(model, losses_of(model), given, [*range(7)]), Flat(0.1), MicrobatchSize()
    )
    torch.testing.assert_close(flat(found), flat(plain), rtol=1e-5, atol=1e-6)
    assert sizes == [16, 10, 5, 5, 6, 4, 2]

    def starved(_: Any) -> Tensor:
        raise torch.OutOfMemoryError

    with pytest.raises(torch.OutOfMemoryError):
        float_sums(work_on(model, starved, given, [*range(7)]), Flat(0.1), physical)


def test_a_model_that_mixes_units_is_refused_before_it_sees_data() -> None:
    made, model = short(unit=PERSON, records=12, batch=6), linear()

    def centred(part: Any) -> Tensor:
        found = model(part.x)[:, 0]
        result: Tensor = (found - found.mean()).square()
        return result

    losses = Replaceable(losses_of(model))
    with (
        known(model, of_persons(), made, losses=losses) as training,
        pytest.raises(Refused, match="loss of one example depends on others"),
    ):
        losses.step(training, centred)
    assert not weights(model).any()


def integers(given: "Data | Units", places: list[int], k: int) -> Steps:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(300, 50), nn.Tanh(), nn.Linear(50, 1))
    work = work_on(model, losses_of(model), given, places)
    return exact_sums(work, short(clip=NORM).phases[0], ExactGaussian(k))


@pytest.mark.parametrize("k", [16, 24])
@pytest.mark.parametrize("kind", ["rows", "persons"])
def test_an_exact_sum_moves_by_just_one_contribution(kind: str, k: int) -> None:
    """Integers of others stay the same to the last one, whoever is in the batch with them."""
    x = torch.randn(16, 300, generator=torch.Generator().manual_seed(0))
    table = {"x": x, "y": (x.sum(1) > 0).float()}
    given = Units(table, RAGGED, "person", 9) if kind == "persons" else table
    everyone = [*range(7)]
    whole = integers(given, everyone, k)
    for gone in everyone:
        moved = whole - integers(given, [place for place in everyone if place != gone], k)
        assert (moved == integers(given, [gone], k)).all()
        square = sum(int(step) ** 2 for step in moved)
        assert (NORM * 2**k * Fraction(9, 10)) ** 2 <= square <= (NORM * 2**k) ** 2


@pytest.mark.parametrize("wrong", [{"most": 0}, {"column": ""}, {"reduce": "mean"}])
def test_bad_ids_of_units_are_refused(wrong: dict[str, BadValue]) -> None:
    with pytest.raises(InvalidArgument):
        of_persons(**wrong)
