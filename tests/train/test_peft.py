"""Real adapters of PEFT on real models agree with a plain loop, and they alone are trained."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import (
    IA3Config,
    LoraConfig,
    PeftModel,
    PrefixTuningConfig,
    PromptTuningConfig,
    get_peft_model,
)
from torch import Tensor, nn
from transformers import TrainingArguments, default_data_collator

from discreet.train import Flat, check, clipped_sum, one_by_one
from discreet.train._own_losses import own_losses
from discreet.train.transformers import PrivateTrainer
from tests.mechanisms.kit import FakePayer
from tests.train.kit import same
from tests.train.steps import short
from tests.train.third_party_models import (
    MASKED,
    OF_SEQUENCES,
    Texts,
    bert,
    by_hand,
    close,
    gpt,
    llama,
    model_s_own,
    moved,
    weights,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:fan_in_fan_out is set to False"),
    pytest.mark.filterwarnings("ignore:Model has `tie_word_embeddings=True`"),
    pytest.mark.filterwarnings("ignore:.*deprecated.*"),
]

Make = Callable[[], nn.Module]


def lora(model: nn.Module, *targets: str, **changes: Any) -> nn.Module:  # Any: what PEFT takes
    facts = {"r": 2, "lora_alpha": 3, "init_lora_weights": False, **changes}
    torch.manual_seed(1)
    made: nn.Module = get_peft_model(model, LoraConfig(target_modules=[*targets], **facts))
    return made


ADAPTED: dict[str, Make] = {
    "LoRA on GPT-2": lambda: lora(gpt(), "c_attn", "c_fc"),
    "LoRA on Llama": lambda: lora(llama(), "q_proj", "v_proj", "down_proj"),
    "LoRA on BERT": lambda: lora(bert(MASKED), "query", "value"),
    "LoRA with a new head": lambda: lora(
        bert(OF_SEQUENCES), "query", modules_to_save=["classifier"]
    ),
    "LoRA on a table": lambda: lora(llama(), "embed_tokens", "q_proj"),
    "LoRA with a bias": lambda: lora(gpt(), "c_proj", bias="lora_only"),
    "rank-stabilized": lambda: lora(llama(), "q_proj", use_rslora=True),
    "DoRA": lambda: lora(llama(), "q_proj", "v_proj", use_dora=True),
    "DoRA on GPT-2": lambda: lora(gpt(), "c_attn", "c_fc", use_dora=True),
    "IA3": lambda: get_peft_model(
        llama(),
        IA3Config(target_modules=["k_proj", "down_proj"], feedforward_modules=["down_proj"]),
    ),
    "prefixes": lambda: get_peft_model(
        gpt(), PrefixTuningConfig(num_virtual_tokens=3, task_type="CAUSAL_LM")
    ),
    "prompts": lambda: get_peft_model(
        gpt(), PromptTuningConfig(num_virtual_tokens=3, task_type="CAUSAL_LM")
    ),
}


def part_for(model: nn.Module) -> dict[str, Tensor]:
    """Five texts of one length, and their labels."""
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(1, 30, (5, 8), generator=generator)
    mask = (torch.arange(8) < torch.tensor([[8], [5], [8], [3], [7]])).long()
    is_sequence = any(isinstance(module, OF_SEQUENCES) for module in model.modules())
    labels = ids[:, 0] % 2 if is_sequence else ids.masked_fill(mask == 0, -100)
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


@pytest.mark.parametrize("name", ADAPTED)
def test_adapters_agree_with_a_loop(name: str) -> None:
    model = ADAPTED[name]().double()
    part = part_for(model)

    def alone(number: int) -> Tensor:
        """By the model's own loss."""
        one = {key: value[number : number + 1] for key, value in part.items()}
        loss: Tensor = model(**one).loss
        return loss.reshape(1)

    middle = float(one_by_one(model, alone, 5, Flat(1.0)).squared_norms.sqrt().median())
    found = clipped_sum(model, lambda: own_losses(model, part), 5, Flat(middle))
    same(found, one_by_one(model, alone, 5, Flat(middle)))
    trained = [name for name, p in model.named_parameters() if p.requires_grad]
    assert len(found.sums) == len(trained) < len([*model.parameters()])
    assert all(bool(each.any()) for each in found.sums)
    check(model, lambda part: own_losses(model, part), part)


@pytest.mark.parametrize("is_checkpointed", [False, True])
def test_adapters_train_by_trainer_and_come_back(
    is_checkpointed: bool, tmp_path: Path, drawn: list[list[int]]
) -> None:
    """Frozen weights stay, and only the adapters are saved."""
    plan = short(records=40, batch=10, steps=3, clip=0.5)
    model, other = (lora(gpt(), "c_attn", "c_fc") for _ in range(2))
    before = weights(model)
    frozen = {n: p.detach().clone() for n, p in model.named_parameters() if not p.requires_grad}
    arguments = TrainingArguments(
        output_dir=str(tmp_path),
        max_steps=3,
        max_grad_norm=0,
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
        optim="sgd",
        learning_rate=1.0,
        lr_scheduler_type="constant",
        save_steps=3,
        activation_checkpointing=is_checkpointed,
    )
    found = PrivateTrainer(
        model=model,
        args=arguments,
        plan=plan,
        payer=FakePayer(),
        train_dataset=Texts(),
        data_collator=default_data_collator,
    )
    found.train()
    by_hand(other, Texts(), drawn, plan, rate=1.0, alone=model_s_own)
    close(moved(model, before), moved(other, before))
    now = dict(model.named_parameters())
    assert all(torch.equal(now[name], kept) for name, kept in frozen.items())
    loaded = PeftModel.from_pretrained(gpt(), tmp_path / "checkpoint-3")
    assert torch.equal(weights(loaded), weights(model))
