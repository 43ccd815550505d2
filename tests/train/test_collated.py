"""Items that a function of one's own collates become parts, each example by itself."""

from collections import namedtuple
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from discreet.errors import InvalidArgument
from discreet.train import Collated
from discreet.train.units import taken
from tests.train.steps import Wrong, data, known, linear, losses_of, short, weights

Pair = namedtuple("Pair", ["x", "y"])  # as users have them
TEXTS = [[1, 2, 3], [4], [5, 6]]


def padded(items: list[Any]) -> dict[str, Tensor]:
    longest = max(map(len, items))
    rows = [item + [0] * (longest - len(item)) for item in items]
    return {"ids": torch.tensor(rows), "labels": torch.tensor(rows)}


def test_examples_are_collated_alone_and_filled_up() -> None:
    asked: list[int] = []

    def counted(items: list[Any]) -> dict[str, Tensor]:
        asked.append(len(items))
        return padded(items)

    part = taken(Collated(TEXTS, counted, {"ids": 9, "labels": -100}), np.array([1, 2]))
    assert part["ids"].tolist() == [[4, 9], [5, 6]]
    assert part["labels"].tolist() == [[4, -100], [5, 6]]
    assert asked == [1, 1]


def test_tuples_keep_their_kind() -> None:
    made = Collated([1.0, 2.0, 3.0], lambda items: Pair(torch.tensor(items), [torch.ones(1, 2)]))
    part = taken(made, np.array([0, 2]))
    assert isinstance(part, Pair)
    assert part.x.tolist() == [1, 3]
    assert part.y[0].shape == (2, 2)


@pytest.mark.parametrize(
    ("collate", "told"),
    [
        (padded, "ids: examples have different shapes"),
        (lambda items: {"ids": torch.cat([torch.tensor(item) for item in items])}, "don't pack"),
        (lambda items: {"ids": torch.zeros(0, 2)}, "don't pack, split or drop"),
        (lambda items: {"ids": items}, "ids"),
        (lambda items: 3, "a part"),
    ],
)
def test_what_is_no_example_by_itself_is_refused(collate: Wrong, told: str) -> None:
    with pytest.raises(InvalidArgument, match=told):
        taken(Collated(TEXTS, collate), np.array([0, 1]))


def test_a_run_of_collated_items_is_that_of_tensors() -> None:
    given = data()
    items = list(zip(given["x"], given["y"], strict=True))
    made = Collated(items, lambda some: Pair(*(torch.stack([*each]) for each in zip(*some))))  # noqa: B905
    found = []
    for source in (given, made):
        model = linear()
        with known(model, source, short()) as training:
            training.at_once = 7
            for batch in training.batches():
                training.step(batch, losses_of(model))
            assert training.at_once == 7
        found.append(weights(model))
    assert torch.equal(*found)
    with known(linear(), given, short()) as training, pytest.raises(InvalidArgument):
        training.at_once = 0
