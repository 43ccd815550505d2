"""Models that other people made train as a plain loop over examples says, or are refused."""

import re
from pathlib import Path

import pytest
from torch import Tensor, nn

from discreet.errors import Refused
from discreet.train import Flat, check, clipped_sum, one_by_one, repair
from tests.train import zoo
from tests.train.kit import same
from tests.train.more_models import MORE, MORE_TOUCHING
from tests.train.zoo import Batch, Entry

ZOO, TOUCHING = zoo.ZOO | MORE, zoo.TOUCHING | MORE_TOUCHING
QUICK = ("opt", "mixtral", "swin", "mamba", "perceiver", "xlnet")
PAGE = Path(__file__).parents[2] / "docs" / "training.md"


def agrees(entry: Entry, model: nn.Module, batch: Batch) -> None:
    """The sum of clipped gradients is that of a loop, where about half of them are clipped."""
    examples = len(next(iter(batch.values())))

    def alone(place: int) -> Tensor:
        return entry.losses(model, {k: v[place : place + 1] for k, v in batch.items()})

    norms = one_by_one(model, alone, examples, Flat(1.0)).squared_norms.sqrt()
    clipping = Flat(float(norms.median()))
    wanted = one_by_one(model, alone, examples, clipping)
    found = clipped_sum(model, lambda: entry.losses(model, batch), examples, clipping, batch=batch)
    same(found, wanted, 1e-8 if entry.is_double else 1e-4)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", QUICK)
def test_some_models_train_as_a_loop_says(name: str) -> None:
    agrees(ZOO[name], *ZOO[name].made())


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in ZOO if name not in QUICK])
def test_all_others_train_as_a_loop_says(name: str) -> None:
    agrees(ZOO[name], *ZOO[name].made())


@pytest.mark.filterwarnings("error:.*attention_mask.*")
def test_texts_without_a_mask_train() -> None:
    """Transformers asks whether they contain padding, to warn of it."""
    entry = ZOO["gpt2"]
    model, batch = entry.made()
    del batch["attention_mask"]
    batch["input_ids"][1, -1] = 0
    agrees(entry, model, batch)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TOUCHING)
def test_models_in_which_examples_touch_are_refused(name: str) -> None:
    entry, why = TOUCHING[name]
    model, batch = entry.made()
    with pytest.raises(Refused, match=why):
        check(model, lambda part: entry.losses(model, part), batch)


@pytest.mark.filterwarnings("ignore")
def test_a_repaired_model_trains() -> None:
    entry, _ = TOUCHING["resnet"]
    model, batch = entry.made()
    agrees(entry, repair(model), batch)


def test_the_page_lists_all_of_them() -> None:
    """And says of each whether it trains."""
    rows = dict(re.findall(r"^\| ([^|]+?) \| (yes|no)\b", PAGE.read_text(), re.MULTILINE))
    assert rows == {**dict.fromkeys(ZOO, "yes"), **dict.fromkeys(TOUCHING, "no")}
    assert len(ZOO) >= 54
