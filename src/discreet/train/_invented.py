"""Invented inputs for models of Transformers: random words or pixels, and labels that suit them.

They stand for data that may not be read before the charge. Their fields are those of the data.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from discreet.train._batches._units import Units
from discreet.train._own_losses import class_and_config, kind_of_labels

_COUNT = 5  # items
_LENGTH = 8  # words
_SIDE = 32  # pixels, of images where the configuration says nothing
_USUAL = frozenset({"input_ids", "attention_mask", "pixel_values", "labels"})
_LABELS = ("labels", "label", "label_ids")  # collators make "labels" of each

InventedItem = dict[str, Any]  # Any: lists and numbers, as tokenizers give them


def field_names(data: Any) -> frozenset[str] | None:  # Any: a data set
    """The names of an item's fields, if the data set lists them; no item's code runs."""
    inner: Any = data.data if isinstance(data, Units) else data  # Any: as above
    columns = getattr(inner, "column_names", None)
    if isinstance(columns, list):
        return frozenset(columns)
    if type(inner) not in (list, tuple):
        return None
    if not inner:  # whether the data are empty is private
        return _USUAL
    return frozenset(inner[0]) if isinstance(inner[0], Mapping) else None


def invented_items(model: nn.Module, names: frozenset[str] | None) -> list[InventedItem] | None:
    """Items of these fields for the model, or None if its inputs or its fields are not known."""
    _, config = class_and_config(model)
    mains = [str(getattr(one, "main_input_name", "")) for one in model.modules()]
    main = next(filter(None, mains), "")
    generator = torch.Generator().manual_seed(1)
    if not names or config is None or main not in names:
        return None
    makes = {"input_ids": _texts, "pixel_values": _images}
    if main not in makes:
        return None
    items = makes[main](config, generator)
    if items is None:
        return None
    labels = next((name for name in _LABELS if name in names), None)
    if labels is not None:
        for item in items:
            item[labels] = _label(model, config, item, generator)
    return [{name: field for name, field in item.items() if name in names} for item in items]


def _texts(
    config: Any, generator: torch.Generator
) -> list[InventedItem] | None:  # Any: a configuration
    words = getattr(config, "vocab_size", None)
    if not words:
        return None
    length = min(_LENGTH, getattr(config, "max_position_embeddings", None) or _LENGTH)
    texts = torch.randint(words, (_COUNT, length), generator=generator).tolist()
    return [
        {
            "input_ids": text,
            "attention_mask": [1] * length,
            "token_type_ids": [0] * length,
            "position_ids": [*range(length)],
        }
        for text in texts
    ]


def _images(config: Any, generator: torch.Generator) -> list[InventedItem] | None:  # Any: as above
    size = getattr(config, "image_size", None) or _SIDE
    height, width = size if isinstance(size, tuple | list) else (size, size)
    shape = (_COUNT, getattr(config, "num_channels", 3), height, width)
    return [{"pixel_values": image} for image in torch.randn(shape, generator=generator)]


def _label(
    model: nn.Module, config: Any, item: InventedItem, generator: torch.Generator
) -> Any:  # Any: as above
    kind, kinds = kind_of_labels(model), max(1, getattr(config, "num_labels", None) or 1)
    if kind == "example":
        if config.problem_type in ("regression", "multi_label_classification"):
            return torch.rand(kinds, generator=generator).tolist()
        return int(torch.randint(kinds, (), generator=generator))
    if kind == "tokens":
        return torch.randint(kinds, (len(item["input_ids"]),), generator=generator).tolist()
    return [*item["input_ids"]] if "input_ids" in item else 0
