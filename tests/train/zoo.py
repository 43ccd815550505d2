"""Small models of Hugging Face's architectures, made at random, with batches and losses for them.

Every loss is one number for each example. Nothing is downloaded.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
import transformers as hf
from torch import Tensor, nn

WORDS, EXAMPLES = 30, 5
Batch = dict[str, Tensor]
Losses = Callable[[Any, Batch], Tensor]  # Any: models without types


@dataclass(frozen=True)
class Entry:
    """An architecture: its model, its loss, and a batch. Mixtures of experts compute in float32."""

    make: Callable[[], Any]
    losses: Losses
    batch: Callable[[], Batch]
    is_double: bool = True

    def made(self) -> tuple[nn.Module, Batch]:
        """The model, without what draws numbers, and a batch of the same type."""
        torch.manual_seed(0)
        model, batch = self.make(), self.batch()
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
            for name in ("dropout", "attention_dropout", "activation_dropout", "layerdrop"):
                if isinstance(getattr(module, name, None), float):
                    setattr(module, name, 0.0)
        if self.is_double:
            model = model.double()
            batch = {k: v.double() if v.is_floating_point() else v for k, v in batch.items()}
        return model, batch


# Batches


def drawn() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def texts() -> Batch:
    ids = torch.randint(3, WORDS, (EXAMPLES, 7), generator=drawn())
    mask = torch.ones_like(ids)
    mask[1, -2:] = 0
    mask[3, -1:] = 0
    return {"input_ids": ids, "attention_mask": mask}


def images(size: int = 16) -> Batch:
    pixels = torch.randn(EXAMPLES, 3, size, size, generator=drawn())
    return {"pixel_values": pixels, "labels": torch.arange(EXAMPLES) % 2}


def sounds() -> Batch:
    values = torch.randn(EXAMPLES, 400, generator=drawn())
    return {"input_values": values, "labels": torch.arange(EXAMPLES) % 2}


def spectra() -> Batch:
    features = torch.randn(EXAMPLES, 8, 16, generator=drawn())
    return {"input_features": features, "decoder_input_ids": texts()["input_ids"][:, :6]}


def pairs() -> Batch:
    found = texts()
    found["input_ids"][:, -2] = 2  # where a text ends
    return {**found, "pixel_values": images()["pixel_values"]}


# Losses


def of_words(logits: Tensor, words: Tensor) -> Tensor:
    each = F.cross_entropy(logits.flatten(0, 1), words.flatten(), reduction="none")
    return each.view(words.shape).mean(1)


def next_words(model: Any, batch: Batch) -> Tensor:
    return of_words(model(**batch).logits[:, :-1], batch["input_ids"][:, 1:])


def same_words(model: Any, batch: Batch) -> Tensor:
    return of_words(model(**batch).logits, batch["input_ids"])


def translated(model: Any, batch: Batch) -> Tensor:
    words = batch["input_ids"]
    return of_words(model(**batch, decoder_input_ids=words).logits, words)


def spoken(model: Any, batch: Batch) -> Tensor:
    return of_words(model(**batch).logits, batch["decoder_input_ids"])


def classes(model: Any, batch: Batch) -> Tensor:
    given = {key: value for key, value in batch.items() if key != "labels"}
    return F.cross_entropy(model(**given).logits, batch["labels"], reduction="none")


def own_pairs(model: Any, batch: Batch) -> Tensor:
    found = model(**batch)
    similar: Tensor = (found.text_embeds * found.image_embeds).sum(1)
    return 1 - similar


def contrast(model: Any, batch: Batch) -> Tensor:
    logits = model(**batch).logits_per_text
    return F.cross_entropy(logits, torch.arange(len(logits)), reduction="none")


# Configurations

ENDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
USUAL = {
    "vocab_size": WORDS,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 16,
    **ENDS,
}
GROUPED = {**USUAL, "num_key_value_heads": 1}
OF_IMAGES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "image_size": 16,
    "patch_size": 4,
}
OF_SOUNDS = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "conv_dim": (8, 8),
    "conv_stride": (5, 4),
    "conv_kernel": (8, 4),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 4,
    "num_conv_pos_embedding_groups": 2,
    "classifier_proj_size": 8,
    "apply_spec_augment": False,
    "layerdrop": 0.0,
}
BOTH_SIDES = {
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "d_model": 16,
    "decoder_start_token_id": 1,
    **ENDS,
}
T5 = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2}


def clip() -> Any:
    return hf.CLIPModel(hf.CLIPConfig(text_config=USUAL, vision_config=OF_IMAGES, projection_dim=8))


ZOO: dict[str, Entry] = {
    "gpt2": Entry(
        lambda: hf.GPT2LMHeadModel(
            hf.GPT2Config(vocab_size=WORDS, n_positions=16, n_embd=16, n_layer=2, n_head=2, **ENDS)
        ),
        next_words,
        texts,
    ),
    "bert": Entry(lambda: hf.BertForMaskedLM(hf.BertConfig(**USUAL)), same_words, texts),
    "distilbert": Entry(
        lambda: hf.DistilBertForMaskedLM(
            hf.DistilBertConfig(vocab_size=WORDS, dim=16, n_layers=2, n_heads=2, hidden_dim=24)
        ),
        same_words,
        texts,
    ),
    "roberta": Entry(
        lambda: hf.RobertaForMaskedLM(
            hf.RobertaConfig(**{**USUAL, "pad_token_id": 1, "max_position_embeddings": 20})
        ),
        same_words,
        texts,
    ),
    "albert": Entry(
        lambda: hf.AlbertForMaskedLM(hf.AlbertConfig(embedding_size=8, **USUAL)), same_words, texts
    ),
    "electra": Entry(
        lambda: hf.ElectraForMaskedLM(hf.ElectraConfig(embedding_size=8, **USUAL)),
        same_words,
        texts,
    ),
    "opt": Entry(
        lambda: hf.OPTForCausalLM(
            hf.OPTConfig(
                **{**USUAL, "ffn_dim": 24, "word_embed_proj_dim": 16, "intermediate_size": 24}
            )
        ),
        next_words,
        texts,
    ),
    "llama": Entry(lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**GROUPED)), next_words, texts),
    "mistral": Entry(
        lambda: hf.MistralForCausalLM(hf.MistralConfig(sliding_window=4, **GROUPED)),
        next_words,
        texts,
    ),
    "mixtral": Entry(
        lambda: hf.MixtralForCausalLM(hf.MixtralConfig(num_local_experts=4, **GROUPED)),
        next_words,
        texts,
        is_double=False,
    ),
    "switch_transformers": Entry(
        lambda: hf.SwitchTransformersForConditionalGeneration(
            hf.SwitchTransformersConfig(
                vocab_size=WORDS,
                num_experts=3,
                num_sparse_encoder_layers=1,
                num_sparse_decoder_layers=1,
                decoder_start_token_id=0,
                router_jitter_noise=0.0,
                **T5,
            )
        ),
        translated,
        texts,
        is_double=False,
    ),
    "t5": Entry(
        lambda: hf.T5ForConditionalGeneration(
            hf.T5Config(vocab_size=WORDS, decoder_start_token_id=0, **T5)
        ),
        translated,
        texts,
    ),
    "bart": Entry(
        lambda: hf.BartForConditionalGeneration(
            hf.BartConfig(vocab_size=WORDS, max_position_embeddings=16, **BOTH_SIDES)
        ),
        translated,
        texts,
    ),
    "gpt_neo": Entry(
        lambda: hf.GPTNeoForCausalLM(
            hf.GPTNeoConfig(
                vocab_size=WORDS,
                hidden_size=16,
                num_layers=2,
                num_heads=2,
                attention_types=[[["global", "local"], 1]],
                max_position_embeddings=16,
                window_size=4,
                **ENDS,
            )
        ),
        next_words,
        texts,
    ),
    "gpt_neox": Entry(lambda: hf.GPTNeoXForCausalLM(hf.GPTNeoXConfig(**USUAL)), next_words, texts),
    "bloom": Entry(
        lambda: hf.BloomForCausalLM(
            hf.BloomConfig(vocab_size=WORDS, hidden_size=16, n_layer=2, n_head=2, **ENDS)
        ),
        next_words,
        texts,
    ),
    "falcon": Entry(
        lambda: hf.FalconForCausalLM(
            hf.FalconConfig(
                vocab_size=WORDS,
                hidden_size=16,
                num_hidden_layers=2,
                num_attention_heads=2,
                **ENDS,
            )
        ),
        next_words,
        texts,
    ),
    "gemma": Entry(
        lambda: hf.GemmaForCausalLM(hf.GemmaConfig(head_dim=8, **GROUPED)), next_words, texts
    ),
    "qwen2": Entry(lambda: hf.Qwen2ForCausalLM(hf.Qwen2Config(**GROUPED)), next_words, texts),
    "phi": Entry(lambda: hf.PhiForCausalLM(hf.PhiConfig(**USUAL)), next_words, texts),
    "vit": Entry(lambda: hf.ViTForImageClassification(hf.ViTConfig(**OF_IMAGES)), classes, images),
    "swin": Entry(
        lambda: hf.SwinForImageClassification(
            hf.SwinConfig(
                image_size=16,
                patch_size=2,
                embed_dim=8,
                depths=[2, 2],
                num_heads=[2, 2],
                window_size=4,
                drop_path_rate=0.0,
            )
        ),
        classes,
        images,
    ),
    "deit": Entry(
        lambda: hf.DeiTForImageClassification(hf.DeiTConfig(**OF_IMAGES)), classes, images
    ),
    "convnext": Entry(
        lambda: hf.ConvNextForImageClassification(
            hf.ConvNextConfig(hidden_sizes=[8, 16], depths=[1, 1], num_stages=2)
        ),
        classes,
        lambda: images(32),
    ),
    "clip, by pair": Entry(clip, own_pairs, pairs),
    "wav2vec2": Entry(
        lambda: hf.Wav2Vec2ForSequenceClassification(hf.Wav2Vec2Config(**OF_SOUNDS)),
        classes,
        sounds,
    ),
    "whisper": Entry(
        lambda: hf.WhisperForConditionalGeneration(
            hf.WhisperConfig(
                vocab_size=WORDS,
                num_mel_bins=8,
                max_source_positions=8,
                max_target_positions=16,
                **BOTH_SIDES,
            )
        ),
        spoken,
        spectra,
    ),
    "mamba": Entry(
        lambda: hf.MambaForCausalLM(
            hf.MambaConfig(
                vocab_size=WORDS, hidden_size=16, state_size=4, num_hidden_layers=2, **ENDS
            )
        ),
        next_words,
        texts,
    ),
}

# Rightly refused: in these, examples touch one another.
TOUCHING: dict[str, tuple[Entry, str]] = {
    "resnet": (
        Entry(
            lambda: hf.ResNetForImageClassification(
                hf.ResNetConfig(
                    embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic"
                )
            ),
            classes,
            lambda: images(32),
        ),
        "normalises each example by the others of its batch; use GroupNorm",
    ),
    "clip, contrasted": (Entry(clip, contrast, pairs), "made by a function of rows of different"),
}
