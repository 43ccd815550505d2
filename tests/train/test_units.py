"""A person is sampled, clipped and counted as one, however many rows that person has."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from discreet.errors import InvalidArgument
from discreet.noise import SecureBits
from discreet.train.contributions import Examples, Physical, Seen, Work, clipping_of, float_sums
from discreet.train.units import Persons, Reduce
from discreet.unit import Unit
from tests.train.steps import Wrong, by_hand, data, known, linear, losses_of, of_persons, short

PERSON = Unit("person")


def sums_of(given: Persons, places: list[int], clip: float) -> Tensor:
    """The sum over some persons, at fixed weights that aren't 0."""
    model = linear()
    nn.init.constant_(model.weight, 0.3)  # type: ignore[arg-type]
    phase = short(clip=clip).phases[0]
    work = Work(model, Examples.of(given), np.array(places), losses_of(model), SecureBits(), Seen())
    return torch.cat([s.reshape(-1) for s in float_sums(work, clipping_of(phase, 2), Physical())])


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
    people = Examples.of(given).people
    assert people is not None
    seen = set()
    for _ in range(200):
        rows = people.rows_of(3, 2, SecureBits())
        assert rows.size == 2
        seen.add(tuple(rows.tolist()))
    assert len(seen) == 10


def test_rows_without_an_id_belong_to_nobody() -> None:
    ids = np.array([1.0, float("nan"), 2.0, 1.0])
    people = Examples.of(Persons(data(4), ids, "person", 9)).people
    assert people is not None
    assert [people.rows_of(person, 9, SecureBits()).tolist() for person in (0, 1)] == [[0, 3], [2]]
    nobody = Persons(data(2), np.array([None, None]), "person", 9)
    assert Examples.of(nobody).count == 0


def test_ids_may_be_of_any_kinds_side_by_side() -> None:
    """One that is a text, or missing in pandas' way, is no reason to fail."""
    ids = [7, "7", None, 2**53 + 1, pd.NA, 2**53, 7.0, float("nan"), pd.NaT, "7"]
    kinds: list[Wrong] = [ids, np.array(ids, object), pd.Series(ids, dtype=object)]
    for given in kinds:
        people = Examples.of(Persons(data(10), given, "person", 9)).people
        assert people is not None
        found = [people.rows_of(n, 9, SecureBits()).tolist() for n in range(len(people.ends))]
        assert found == [[0, 6], [1, 9], [3], [5]]


def test_persons_are_sampled_and_counted_as_persons() -> None:
    made = short(unit=PERSON, records=12, batch=6, steps=30)
    model, sizes = linear(), []
    with known(model, of_persons(), made) as training:
        for batch in training.batches():
            sizes.append(training._places.size)
            training.step(batch, losses_of(model))
    assert max(sizes) <= 12
    assert 4 < sum(sizes) / 30 < 8


@pytest.mark.parametrize("wrong", [{"most": 0}, {"column": ""}, {"reduce": "mean"}])
def test_bad_persons_are_refused(wrong: dict[str, Wrong]) -> None:
    with pytest.raises(InvalidArgument):
        of_persons(**wrong)
