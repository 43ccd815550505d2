"""Losses of single examples for Hugging Face models.

The models themselves return one number for a whole batch, in which an example's weight depends on
the other examples' tokens. Here each loss is the mean over the example's own tokens, as the model
computes it for that example alone.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor, nn
from transformers.models.auto import modeling_auto as auto

from discreet.errors import Refused

IGNORED = -100  # the label of tokens without a label
Inputs = Mapping[str, Any]  # Any: what the model takes


def own_losses(model: nn.Module, inputs: Inputs) -> Tensor:
    """One loss for each example: (example,).

    For models of Transformers with ``labels``: causal and masked language models, classifiers of
    sequences, images and tokens. Raises `Refused` for others, by their name.
    """
    loss, config = _loss_of(model, [*inputs])
    logits = model(**{key: value for key, value in inputs.items() if key != "labels"}).logits
    return loss(
        logits.to(torch.promote_types(logits.dtype, torch.float32)), inputs["labels"], config
    )


def check_known(model: nn.Module) -> None:
    """Refuse models whose losses are not known."""
    _loss_of(model, ["labels"])


def kind_of_labels(model: nn.Module) -> str | None:
    """Whether each label is of an "example", a token ("tokens") or a word ("words"); None for
    models whose loss is not known."""
    name, _ = class_and_config(model)
    loss = next((loss for kind, loss in _KINDS if name in kind.values()), None)
    if loss is _of_examples:
        return "example"
    if name in auto.MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES.values():
        return "tokens"
    return None if loss is None else "words"


def _loss_of(model: nn.Module, inputs: list[str]) -> tuple["Loss", Any]:  # Any: a configuration
    name, config = class_and_config(model)
    loss = next((loss for kind, loss in _KINDS if name in kind.values()), None)
    if loss is None or "labels" not in inputs:
        raise Refused(
            f"{name}: no loss of single examples is known for it with {', '.join(inputs)}; give "
            "losses, a function of model and inputs that returns one loss for each example"
        )
    if getattr(config, "output_router_logits", False):
        raise Refused(
            f"{name}: its router's loss is of a batch; set config.output_router_logits = False"
        )
    return loss, config


def _of_next_tokens(logits: Tensor, labels: Tensor, config: Any) -> Tensor:
    virtual = logits.shape[1] - labels.shape[1]  # tokens of a learned prompt, before all others
    labels = F.pad(labels, (virtual, 0), value=IGNORED) if virtual else labels
    return _of_tokens(logits[:, :-1].float(), labels[:, 1:], config)  # as Transformers has it


def _of_tokens(logits: Tensor, labels: Tensor, _: Any) -> Tensor:
    """The mean over tokens that have a label; 0 if none has."""
    shape = labels.shape
    each = F.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="none"
    )
    return each.view(shape).sum(1) / (labels != IGNORED).sum(1).clamp(min=1)


def _of_examples(logits: Tensor, labels: Tensor, config: Any) -> Tensor:
    """The loss for the configuration's problem type, or else for the number and type of labels."""
    problem = config.problem_type
    if problem == "regression" or (problem is None and config.num_labels == 1):
        return (logits - labels.view_as(logits)).square().mean(1)
    if problem == "single_label_classification" or not labels.is_floating_point():
        return F.cross_entropy(logits, labels.view(-1), reduction="none")
    return F.binary_cross_entropy_with_logits(logits, labels, reduction="none").mean(1)


Loss = Callable[[Tensor, Tensor, Any], Tensor]  # Any: the model's configuration

_KINDS: tuple[tuple[Mapping[str, Any], Loss], ...] = (
    (auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, _of_next_tokens),
    (auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES, _of_tokens),
    (auto.MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES, _of_tokens),
    (auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES, _of_examples),
    (auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES, _of_examples),
)


def class_and_config(model: nn.Module) -> tuple[str, Any]:
    """The class and configuration of the model itself, also if it is wrapped."""
    from transformers import PreTrainedModel

    for module in model.modules():
        if isinstance(module, PreTrainedModel):
            return type(module).__name__, module.config
    return type(model).__name__, None
