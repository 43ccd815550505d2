"""For the tests of libraries on top of PyTorch: small models made from configurations, texts of
different lengths, and a run by hand, example by example."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertForTokenClassification,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
)

from discreet.train import Flat, TrainingPlan, one_by_one

WORDS = 30


def gpt(**changes: Any) -> nn.Module:  # Any: what configurations take
    torch.manual_seed(0)
    facts = {"vocab_size": WORDS, "n_positions": 16, "n_embd": 12, "n_layer": 1, "n_head": 2}
    ends = {"bos_token_id": 0, "eos_token_id": 0}
    drops = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    made: nn.Module = GPT2LMHeadModel(GPT2Config(**{**facts, **ends, **drops, **changes}))
    return made


def llama() -> nn.Module:
    torch.manual_seed(0)
    made: nn.Module = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=WORDS,
            hidden_size=12,
            intermediate_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=1,
            pad_token_id=0,
        )
    )
    return made


def bert(kind: Any, **changes: Any) -> nn.Module:  # Any: classes of Transformers
    torch.manual_seed(0)
    made: nn.Module = kind(
        BertConfig(
            vocab_size=WORDS,
            hidden_size=12,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=16,
            max_position_embeddings=16,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            **changes,
        )
    )
    return made


class Texts:
    """Numbers of words, from 4 to 11 in each text, as tokenizers give them."""

    column_names = ["input_ids", "attention_mask", "labels"]  # noqa: RUF012  # as of a data set

    def __init__(self, number: int = 40, *, labelled: bool = False) -> None:
        generator = torch.Generator().manual_seed(1)
        lengths = torch.randint(4, 12, (number,), generator=generator).tolist()
        self.texts = [
            torch.randint(1, WORDS, (length,), generator=generator).tolist() for length in lengths
        ]
        self.labelled = labelled

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, place: int) -> dict[str, Any]:  # Any: lists and numbers
        text = self.texts[place]
        label = int(sum(text) > 15 * len(text)) if self.labelled else list(text)
        return {"input_ids": text, "attention_mask": [1] * len(text), "labels": label}


def model_s_own(model: nn.Module, item: Any) -> Tensor:  # Any: one of Texts
    """The loss that a model of Transformers gives for one text alone, unpadded: (1,)."""
    loss: Tensor = model(**{key: torch.tensor([value]) for key, value in item.items()}).loss
    return loss.reshape(1)


def by_hand(
    model: nn.Module,
    items: Any,  # Any: a data set of any kind
    batches: list[list[int]],
    plan: TrainingPlan,
    *,
    rate: float,
    alone: Callable[[nn.Module, Any], Tensor] = model_s_own,
) -> None:
    """Plain steps without noise: clipped one by one, summed, divided by the plan's batch."""
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for places in batches:
        found = one_by_one(
            model,
            lambda number, places=places: alone(model, items[places[number]]),  # type: ignore[misc]
            len(places),
            Flat(float(plan.phases[0].norm)),
        )
        with torch.no_grad():
            for parameter, total in zip(trainable, found.sums, strict=True):
                parameter.sub_(rate * total / plan.phases[0].size.batch)


def weights(model: nn.Module) -> Tensor:
    return torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])


def moved(model: nn.Module, before: Tensor) -> Tensor:
    return weights(model) - before


def close(found: Tensor, wanted: Tensor, within: float = 1e-4) -> None:
    """Both moves are the same, and not 0."""
    assert float(wanted.norm()) > 0
    assert float((found - wanted).norm()) <= within * float(wanted.norm())


MASKED, OF_SEQUENCES, OF_TOKENS = (
    BertForMaskedLM,
    BertForSequenceClassification,
    BertForTokenClassification,
)
