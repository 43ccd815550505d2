"""Texts that can not be trained on are refused before the charge."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from discreet.errors import InvalidArgument, Refused
from discreet.train.transformers import PrivateTrainer
from tests.bad_values import BadValue
from tests.mechanisms.kit import FakePayer
from tests.tables import one_in
from tests.train.steps import short
from tests.train.third_party_models import MASKED, OF_SEQUENCES, OF_TOKENS, WORDS, bert, gpt
from tests.train.unfollowed import unfollowed
from tests.train.ways_of_training import PERSONS, arguments, of_persons

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec.*"),
    pytest.mark.filterwarnings("ignore:.*deprecated.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The .* does not have many workers"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.*"),
]


def texts(**fields: BadValue) -> list[dict[str, Any]]:
    """Sixty of them, of such fields."""
    generator = torch.Generator().manual_seed(1)
    found = []
    for number in range(60):
        ids = torch.randint(1, WORDS, (4 + number % 5,), generator=generator).tolist()
        whole = {"input_ids": ids, "attention_mask": [1] * len(ids), "labels": [*ids], "label": 1}
        found.append({name: whole[name] for name in fields.get("names", ("input_ids", "labels"))})
    return found


class Columns:
    """A data set that says its columns, and is read only once it is paid for."""

    def __init__(self, payer: FakePayer, items: list[dict[str, Any]]) -> None:
        self.payer, self.items = payer, items
        self.column_names = [*items[0]]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, place: int) -> dict[str, Any]:
        assert self.payer.events
        return self.items[place]


class Unnamed(Columns):
    """One that doesn't say them."""

    def __init__(self, payer: FakePayer, items: list[dict[str, Any]]) -> None:
        super().__init__(payer, items)
        del self.column_names


def trained(payer: FakePayer, folder: Path, model: nn.Module, given: Any, **more: BadValue) -> None:
    made = short(steps=1)
    PrivateTrainer(
        model=model,
        args=arguments(folder, made),
        plan=made,
        payer=payer,
        train_dataset=given,
        **{"data_collator": None, **more},
    ).train()


class Sorted(nn.Module):
    """Takes only texts that begin with a word that no made-up one has."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = gpt()
        self.config = self.inner.config

    def forward(self, input_ids: Tensor, labels: BadValue = None) -> BadValue:
        if not unfollowed(lambda: bool((input_ids[:, 0] == WORDS - 1).all())):
            raise IndexError("no start")
        return self.inner(input_ids=input_ids, labels=labels)


def own(model: nn.Module, inputs: dict[str, Any]) -> BadValue:
    words = inputs["input_ids"]
    return (model(input_ids=words).logits.square().sum(2) * (words > 0)).sum(1)


def contrast(model: nn.Module, inputs: dict[str, Any]) -> BadValue:
    found = own(model, inputs)
    return found / (inputs["input_ids"] > 0).sum() ** 0 * found.mean()


WORDS_ONLY = texts(names=("input_ids",))
TEXTS: dict[str, tuple[Callable[[], nn.Module], Any, dict[str, Any], str]] = {
    "no labels, causal": (gpt, WORDS_ONLY, {}, "no loss .* with input_ids.*give losses"),
    "no labels, masked": (lambda: bert(MASKED), WORDS_ONLY, {}, "with input_ids"),
    "no labels, of tokens": (lambda: bert(OF_TOKENS, num_labels=3), WORDS_ONLY, {}, "input_ids"),
    "no labels, of texts": (
        lambda: bert(OF_SEQUENCES, num_labels=2),
        WORDS_ONLY,
        {},
        "with input_ids",
    ),
    "no words": (gpt, texts(names=("labels",)), {}, "give like="),
    "another kind of text": (Sorted, texts(), {}, "can't be computed on made-up.*give like="),
    "another kind, own losses": (Sorted, texts(), {"losses": own}, "made-up.*give like="),
    "own losses that mix": (gpt, texts(), {"losses": contrast}, "depends on others"),
    "own losses of a field": (
        gpt,
        texts(),
        {"losses": lambda _, inputs: inputs["pixels"]},
        "KeyError.*give like=",
    ),
    "a collator that fails": (
        gpt,
        texts(),
        {"data_collator": lambda items: items[0]["text"]},
        "made-up.*give like=",
    ),
    "labels missing in like": (gpt, texts(), {"like": WORDS_ONLY[:3]}, "with input_ids"),
}


@pytest.mark.parametrize("form", ["a list", "columns", "persons"])
@pytest.mark.parametrize("name", TEXTS)
def test_texts_that_can_not_be_trained_on_cost_nothing(
    name: str, form: str, tmp_path: Path
) -> None:
    make, given, more, told = TEXTS[name]
    payer = FakePayer()
    forms = {"a list": given, "columns": Columns(payer, given), "persons": of_persons(given)}
    if form == "persons":
        with pytest.raises((Refused, InvalidArgument), match=told):
            of_people(payer, tmp_path, make(), forms[form], **more)
    else:
        with pytest.raises((Refused, InvalidArgument), match=told):
            trained(payer, tmp_path, make(), forms[form], **more)
    assert not payer.events


def of_people(
    payer: FakePayer, folder: Path, model: nn.Module, given: Any, **more: BadValue
) -> None:
    made = short(steps=1, **PERSONS)
    PrivateTrainer(
        model=model,
        args=arguments(folder, made),
        plan=made,
        payer=payer,
        train_dataset=given,
        **more,
    ).train()


@pytest.mark.parametrize("more", [{}, {"losses": own}])
def test_data_sets_without_names_need_examples_like_them(more: Any, tmp_path: Path) -> None:
    payer = FakePayer()
    with pytest.raises(InvalidArgument, match="give like="):
        trained(payer, tmp_path, gpt(), Unnamed(payer, texts()), **more)
    assert not payer.events
    trained(payer, tmp_path, gpt(), Unnamed(payer, texts()), like=texts()[:4], **more)
    assert payer.events == ["charge"]


TRAINABLE: list[tuple[Callable[[], nn.Module], tuple[str, ...], dict[str, Any]]] = [
    (gpt, ("input_ids", "labels"), {}),
    (gpt, ("input_ids", "attention_mask", "labels"), {}),
    (gpt, ("input_ids",), {"losses": own}),
    (lambda: bert(OF_SEQUENCES, num_labels=2), ("input_ids", "label"), {}),
    (lambda: bert(MASKED), ("input_ids", "attention_mask", "labels"), {}),
]


# with an odd number of texts, `make test` tries each one, in one of the forms
@pytest.mark.parametrize(
    ("is_list", "given"), one_in(2, itertools.product([True, False], TRAINABLE))
)
def test_texts_that_can_be_trained_on_are(is_list: bool, given: Any, tmp_path: Path) -> None:
    make, names, more = given
    payer, items = FakePayer(), texts(names=names)
    trained(payer, tmp_path, make(), items if is_list else Columns(payer, items), **more)
    assert payer.events == ["charge"]
