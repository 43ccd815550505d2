"""Values written at each row's own label train, as in a one-hot code made by hand.

Rows in another order, labels of other rows, and values or data that differ by place are refused.
"""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from discreet.errors import Refused
from discreet.train import Flat, clipped_sum
from tests.train.kit import agrees_in_batch
from tests.train.layers import WIDTH, Layers, of

NUMBER = 5


def labels(x: Tensor) -> Tensor:
    return x.detach().argmax(1)


def zeros(x: Tensor, rows: int = 0, kinds: int = WIDTH) -> Tensor:
    return torch.zeros(len(x) + rows, kinds).double()


def counted(x: Tensor) -> Tensor:
    return torch.arange(len(x))


def written(data: Tensor, index: object, value: Tensor | float) -> Tensor:
    data[index] = value  # type: ignore[index]  # its type is narrower
    return data


def moved(rows: Tensor) -> Tensor:
    """Row numbers of which the first and the last changed places, in the same memory."""
    rows[[0, -1]] = rows[[-1, 0]]
    return rows


def set_as_data(rows: Tensor) -> Tensor:
    rows.data = rows.flip(0)
    return rows


OWN: dict[str, Callable[[Tensor], Tensor]] = {
    "one hot": lambda x: written(zeros(x), (counted(x), labels(x)), 1.0),
    "a tensor": lambda x: written(zeros(x), (counted(x), labels(x)), torch.tensor(2.0).double()),
    "an equal value": lambda x: written(zeros(x), (counted(x), labels(x)), zeros(x)[:, 0] + 3),
    "the second dimension": lambda x: written(zeros(x).t(), (labels(x), counted(x)), 1.0).t(),
    "three indices": lambda x: written(
        zeros(x)[:, :, None].repeat(1, 1, WIDTH), (counted(x), labels(x), labels(-x)), 1.0
    ).flatten(1),
    "a column": lambda x: written(
        zeros(x)[:, :, None].repeat(1, 1, 2), (counted(x), labels(x), torch.tensor([1])), 1.0
    ).flatten(1),
    "slices": lambda x: written(
        zeros(x)[:, None].repeat(1, 2, 1), (counted(x), slice(None), labels(x)), 1.0
    ).flatten(1),
    "added": lambda x: zeros(x).index_put_(
        (counted(x), labels(x)), torch.tensor(1.0).double(), accumulate=True
    ),
    "of the device": lambda x: written(x.new_zeros(x.shape), (counted(x), labels(x)), 1.0),
}
MIXED: dict[str, Callable[[Tensor], Tensor]] = {
    "labels of others": lambda x: written(zeros(x), (counted(x), labels(x).flip(0)), 1.0),
    "one label": lambda x: written(zeros(x), (counted(x), labels(x)[:1]), 1.0),
    "the largest label": lambda x: written(zeros(x), (counted(x), labels(x).amax()), 1.0),
    "turned rows": lambda x: written(zeros(x), (counted(x).flip(0), labels(x)), 1.0),
    "the next row": lambda x: written(zeros(x), ((counted(x) + 1) % len(x), labels(x)), 1.0),
    "rows that repeat": lambda x: written(zeros(x), (counted(x) // 2, labels(x)), 1.0),
    "rows by chance": lambda x: written(zeros(x), (torch.randperm(len(x)), labels(x)), 1.0),
    "rows moved in place": lambda x: written(zeros(x), (moved(counted(x)), labels(x)), 1.0),
    "rows moved as data": lambda x: written(zeros(x), (set_as_data(counted(x)), labels(x)), 1.0),
    "rows by a list": lambda x: written(zeros(x), ([*range(len(x) - 1, -1, -1)], labels(x)), 1.0),
    "rows by labels": lambda x: written(zeros(x), (labels(x), counted(x) % WIDTH), 1.0),
    "more rows": lambda x: written(zeros(x, 2), (counted(x) + 2, labels(x)), 1.0)[:-2],
    "values by place": lambda x: written(zeros(x), (counted(x), labels(x)), counted(x).double()),
    "values of others": lambda x: written(zeros(x), (counted(x), labels(x)), x[:, 0].flip(0)),
    "a value of all": lambda x: written(zeros(x), (counted(x), labels(x)), x.sum()),
    "data by place": lambda x: written(
        zeros(x) + counted(x)[:, None], (counted(x), labels(x)), 1.0
    ),
    "columns by place": lambda x: written(
        zeros(x)[:, :, None].repeat(1, 1, 9), (counted(x), labels(x), counted(x)), 1.0
    ).flatten(1),
    "a mask by place": lambda x: written(
        zeros(x)[:, :, None].repeat(1, 1, len(x)),
        (counted(x), labels(x), torch.ones(len(x), dtype=torch.bool)),
        1.0,
    ).flatten(1),
}


@pytest.mark.parametrize("name", OWN)
def test_values_at_own_labels_train(name: str) -> None:
    model = Layers(lambda m, x: (OWN[name](x)[:, :WIDTH] * m.layer(x)).sum(1)).double()
    agrees_in_batch(model, of(NUMBER, WIDTH))


@pytest.mark.parametrize("name", MIXED)
def test_writes_that_mix_examples_are_refused(name: str) -> None:
    model = Layers(lambda m, x: (MIXED[name](x)[:, :WIDTH] * m.layer(x)).sum(1)).double()
    data = of(NUMBER, WIDTH)
    with pytest.raises(Refused):
        clipped_sum(model, lambda: model(data), NUMBER, Flat(1.0), batch=data)
