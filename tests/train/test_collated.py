"""Items that a function of one's own collates become parts, each example by itself."""

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from discreet.errors import InvalidArgument, Refused
from discreet.train import Collated, fit
from discreet.train._batches._data import microbatch_of
from discreet.train._checks import _model_check
from discreet.train._checks._checking import check_padding, compare
from tests.bad_values import BadValue
from tests.mechanisms.kit import FakePayer
from tests.train.steps import Losses, data, known, linear, sgd, short, weights
from tests.train.unfollowed import unfollowed

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

    part = microbatch_of(Collated(TEXTS, counted, {"ids": 9, "labels": -100}), np.array([1, 2]))
    assert part["ids"].tolist() == [[4, 9], [5, 6]]
    assert part["labels"].tolist() == [[4, -100], [5, 6]]
    assert asked == [1, 1]


def test_tuples_keep_their_kind() -> None:
    made = Collated([1.0, 2.0, 3.0], lambda items: Pair(torch.tensor(items), [torch.ones(1, 2)]))
    part = microbatch_of(made, np.array([0, 2]))
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
        (lambda items: 3, "a microbatch"),
    ],
)
def test_batches_without_single_examples_are_refused(collate: BadValue, told: str) -> None:
    with pytest.raises(InvalidArgument, match=told):
        microbatch_of(Collated(TEXTS, collate), np.array([0, 1]))


def test_lengths_that_no_pad_names_are_refused_by_name() -> None:
    with pytest.raises(InvalidArgument, match=r"^ids: .* by pads, which names 'id', 'labels'$"):
        microbatch_of(Collated(TEXTS, padded, {"id": 0, "labels": 0}), np.array([0, 1]))


def test_a_run_of_collated_items_is_that_of_tensors() -> None:
    given = data()
    items = list(zip(given["x"], given["y"], strict=True))
    made = Collated(items, lambda some: Pair(*(torch.stack([*each]) for each in zip(*some))))  # noqa: B905
    found = []
    for source, like in ((given, None), (made, items[:5])):
        model = linear()
        with known(model, source, short(), like=like) as training:
            training.at_once = 7
            for ticket in training.batches():
                training.step(ticket)
            assert training.at_once == 7
        found.append(weights(model))
    assert torch.equal(*found)
    with known(linear(), given, short()) as training, pytest.raises(InvalidArgument):
        training.at_once = 0


def sums(model: nn.Module) -> Losses:
    return lambda part: model(part["x"]).sum((1, 2))


def mixed_where_long(model: nn.Module) -> Losses:
    def losses(part: BadValue) -> Tensor:
        found = sums(model)(part)
        return found * found.mean() if part["x"].shape[1] > 8 else found

    return losses


def written(model: nn.Module) -> Losses:
    def losses(part: BadValue) -> Tensor:
        if unfollowed(lambda: bool((part["x"] == 1).any())):  # only rows of the data
            with torch.no_grad():
                model.get_parameter("weight").mul_(1)
        return sums(model)(part)

    return losses


def of_lengths(*lengths: int) -> Collated:
    """Sixty sequences, which are filled up by zeros."""
    items = [torch.ones(lengths[n % len(lengths)], 3) for n in range(60)]
    return Collated(items, lambda some: {"x": torch.stack([*some])}, {"x": 0})


def trained_by(losses: Callable[[nn.Module], Losses], given: Collated) -> None:
    model = nn.Linear(3, 1, bias=False)
    like = [*torch.randn(5, 3, 3, generator=torch.Generator().manual_seed(1))]
    with known(model, given, short(), losses=losses(model), like=like) as training:
        training.at_once = 7
        for ticket in training.batches():
            training.step(ticket)


def test_parts_of_other_shapes_are_looked_at_before_they_are_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once for all lengths up to a power of two."""
    looked: list[int] = []

    def noted(
        model: nn.Module, losses: Losses, like: BadValue, *rest: BadValue, **more: BadValue
    ) -> None:
        looked.append(like["x"].shape[1])
        compare(model, losses, like, *rest, **more)

    monkeypatch.setattr(_model_check, "compare", noted)
    trained_by(sums, of_lengths(3, 3, 3, 20, 21, 22))
    assert len(looked) == 2
    assert looked[0] == 3
    assert 20 <= looked[1] <= 22
    trained_by(mixed_where_long, of_lengths(3, 5))
    with pytest.raises(Refused, match="the loss of one example depends on others"):
        trained_by(mixed_where_long, of_lengths(3, 3, 3, 20))


def negated_where_long(model: nn.Module) -> Losses:
    """Examples by themselves, but padding decides: there is no length of 11 to 20 else."""
    return lambda part: sums(model)(part) * (-1 if 10 < part["x"].shape[1] < 21 else 1)


@pytest.mark.parametrize("lengths", [(9, 14), (9, 30, 9, 14), (3, 9, 3, 14), (30, 12, 30, 30)])
def test_each_padded_length_is_compared_with_the_nearest(lengths: tuple[int, ...]) -> None:
    """A comparison for each power of two missed what happens between."""
    with pytest.raises(Refused, match="depends on how far it is padded"):
        trained_by(negated_where_long, of_lengths(*lengths))


def test_a_collate_function_can_pad_to_a_public_length() -> None:
    """Then no microbatch shows how long the longest of its rows is."""
    lengths = set[int]()

    def collate(some: list[Any]) -> dict[str, Tensor]:
        return {"x": nn.functional.pad(torch.stack([*some]), (0, 0, 0, 30 - len(some[0])))}

    def noting(model: nn.Module) -> Losses:
        def losses(part: BadValue) -> Tensor:
            lengths.add(part["x"].shape[1])
            return sums(model)(part)

        return losses

    trained_by(noting, Collated(of_lengths(9, 9, 9, 30).data, collate))
    assert lengths == {30}


def test_each_padded_length_is_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[int, int]] = []

    def noted(
        model: nn.Module, losses: Losses, like: BadValue, padded: BadValue, **rest: BadValue
    ) -> None:
        longer, shorter = (one["x"].shape[1] for one in padded(like))
        compared.append((longer, shorter))
        check_padding(model, losses, like, padded, **rest)

    monkeypatch.setattr(_model_check, "check_padding", noted)
    trained_by(sums, of_lengths(9, 9, 9, 9, 9, 9, 9, 12, 14))
    assert compared[:3] == [(3, 2), (9, 5), (9, 3)] or compared[0] == (3, 2)
    assert len(compared) == len({*compared})
    new = [longer for longer, shorter in compared if shorter != (longer + 1) // 2]
    assert len(new) == len({*new})


def rows_of(**fields: Tensor) -> Any:
    """Items of these fields, each a row."""
    return [{name: rows[n] for name, rows in fields.items()} for n in range(60)]


OTHER_FORMS = {
    "x is float64, but in like it is float32": rows_of(x=torch.ones(60, 3).double()),
    "x has 2 dimensions, but in like it has 1": rows_of(x=torch.ones(60, 1, 3)),
    "an example lacks the field 'x' of like": rows_of(z=torch.ones(60, 3)),
    "an example is a list, but in like it is a dict": [(row,) for row in torch.ones(60, 3)],
}


@pytest.mark.parametrize("told", OTHER_FORMS)
def test_items_in_another_form_than_public_ones_are_named(told: str) -> None:
    """They can't be read before the charge; and no error may say that like= is missing."""
    model, like = nn.Linear(3, 1), rows_of(x=torch.randn(60, 3))[:4]

    def losses(part: Any) -> Tensor:
        found: Tensor = model(part["x"]).sum(1)
        return found

    with known(model, OTHER_FORMS[told], short(), losses=losses, like=like) as training:
        ticket = next(training.batches())
        with pytest.raises((Refused, InvalidArgument), match=f"^{told}: ") as caught:
            training.step(ticket)
    assert "if their values are the cause" not in str(caught.value)


def test_tensors_in_another_form_than_public_ones_are_named_before_the_charge() -> None:
    payer, model, given = FakePayer(), linear(), data()
    given["x"] = given["x"].to(torch.int64)
    with pytest.raises(Refused, match=r"^x is int64, but in like it is float32: the loss can't be"):
        fit(
            model,
            sgd(model),
            given,
            short(),
            losses=lambda m, part: m(part.x).sum(1),
            payer=payer,
            like=data(),
        )
    assert not payer.charges


def test_no_look_hides_what_was_written() -> None:
    with pytest.raises(Refused, match="weight was written while the model saw data"):
        trained_by(written, of_lengths(3, 3, 3, 20))


@pytest.mark.parametrize(
    ("extra", "named"),
    [
        ("photo", "extra: it holds a str"),
        (b"photo", "extra: it holds a bytes"),
        (("photo", 3), "extra: it holds a str"),
        ({"kind": ["photo"]}, "kind: it holds a str"),
    ],
)
def test_texts_in_items_are_refused_before_the_charge(extra: object, named: str) -> None:
    """PyTorch collates them into lists, which Python could read, one example's for all."""
    payer, model = FakePayer(), linear()
    items: BadValue = [{"x": row, "extra": extra} for row in data()["x"]]

    def losses(model: nn.Module, part: Any) -> Tensor:
        found: Tensor = model(part["x"])[:, 0]
        return -found if "sketch" in part["extra"] else found

    with pytest.raises(InvalidArgument, match=named):
        fit(model, sgd(model), items, short(), losses=losses, payer=payer, like=items[:5])
    assert not payer.charges
    assert microbatch_of([row["x"] for row in items], np.array([1, 2])).shape == (2, 3)
