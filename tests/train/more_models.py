"""More architectures of Hugging Face's for the zoo, made at random."""

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
import transformers as hf
from torch import Tensor

from tests.train.zoo import (
    BOTH_SIDES,
    ENDS,
    EXAMPLES,
    GROUPED,
    OF_IMAGES,
    OF_SOUNDS,
    USUAL,
    WORDS,
    Batch,
    Entry,
    classes,
    drawn,
    images,
    next_words,
    own_pairs,
    pairs,
    same_words,
    sounds,
    spoken,
    texts,
    translated,
)

SEQUENCES = {**BOTH_SIDES, "vocab_size": WORDS, "max_position_embeddings": 16}
SMALL = {"vocab_size": WORDS, "hidden_size": 16, "num_hidden_layers": 2}
STAGES = {"hidden_sizes": [8] * 4, "depths": [1] * 4, "drop_path_rate": 0.0}


def short_spectra() -> Batch:
    values = torch.randn(EXAMPLES, 24, 16, generator=drawn())
    return {"input_values": values, "labels": torch.arange(EXAMPLES) % 2}


def spoken_features() -> Batch:
    features = torch.randn(EXAMPLES, 16, 8, generator=drawn())
    return {"input_features": features, "decoder_input_ids": texts()["input_ids"][:, :6]}


def words_alone() -> Batch:
    return {"input_ids": texts()["input_ids"]}


def shuffled_images() -> Batch:
    """Images, and the numbers by which patches are hidden."""
    return {
        "pixel_values": images()["pixel_values"],
        "noise": torch.rand(EXAMPLES, 16, generator=drawn()),
    }


def beside_images() -> Batch:
    return {**pairs(), "pixel_mask": torch.ones(EXAMPLES, 16, 16, dtype=torch.long)}


def shown_images() -> Batch:
    """Texts with two places for what an image shows."""
    found = pairs()
    found["input_ids"][:, :2] = 3
    return found


def squares(model: Any, batch: Batch) -> Tensor:
    return _first(model(**batch)).square().flatten(1).mean(1)


def _first(found: Any) -> Tensor:
    result: Tensor = found[0]
    return result


def of_latents(model: Any, batch: Batch) -> Tensor:
    words, mask = batch["input_ids"], batch["attention_mask"]
    logits = model(inputs=words, attention_mask=mask).logits
    return F.cross_entropy(logits, torch.ones(len(words), dtype=torch.int64), reduction="none")


def of_queries(model: Any, batch: Batch) -> Tensor:
    """Learned queries, repeated for each image, to its features."""
    pixels = batch["pixel_values"].flatten(2).mT
    queries = model.learned.expand(len(pixels), -1, -1)
    found: Tensor = model(query_embeds=queries, encoder_hidden_states=pixels).last_hidden_state
    return found.square().mean((1, 2))


def detr() -> Any:
    stages = {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2}
    shape = {key: one for key, one in BOTH_SIDES.items() if key not in ENDS}
    return hf.DetrModel(
        hf.DetrConfig(
            **{**shape, "decoder_layers": 2},
            num_queries=3,
            use_timm_backbone=False,
            use_pretrained_backbone=False,
            backbone=None,
            backbone_config=hf.ConvNextConfig(**stages, out_features=["stage2"]),
        )
    )


def q_former() -> Any:
    model = hf.Blip2QFormerModel(
        hf.Blip2QFormerConfig(**{**USUAL, "encoder_hidden_size": 3, "cross_attention_frequency": 1})
    )
    model.learned = torch.nn.Parameter(torch.randn(1, 2, 16, generator=drawn()))
    return model


def blip_2() -> Any:
    words = {**USUAL, "model_type": "opt", "ffn_dim": 24, "word_embed_proj_dim": 16}
    return hf.Blip2ForConditionalGeneration(
        hf.Blip2Config(
            vision_config=OF_IMAGES,
            qformer_config={**USUAL, "encoder_hidden_size": 16},
            text_config=words,
            num_query_tokens=2,
            image_token_index=3,
            image_token_id=3,
        )
    )


def mobile_bert() -> Any:
    narrow = {"embedding_size": 8, "intra_bottleneck_size": 8}
    return hf.MobileBertForMaskedLM(hf.MobileBertConfig(**USUAL, **narrow))


def deberta() -> Any:
    relative = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "type_vocab_size": 0}
    return hf.DebertaV2ForMaskedLM(hf.DebertaV2Config(**USUAL, **relative))


def modern_bert() -> Any:
    more = {"cls_token_id": 1, "sep_token_id": 2, "local_attention": 4}
    return hf.ModernBertForMaskedLM(hf.ModernBertConfig(**USUAL, **more))


def perceiver() -> Any:
    return hf.PerceiverForSequenceClassification(
        hf.PerceiverConfig(
            num_latents=4,
            d_latents=16,
            d_model=16,
            num_blocks=1,
            num_self_attends_per_block=1,
            num_self_attention_heads=2,
            num_cross_attention_heads=2,
            vocab_size=WORDS,
            max_position_embeddings=8,
        )
    )


def spectrogram_transformer() -> Any:
    lengths = {"max_length": 24, "num_mel_bins": 16, "frequency_stride": 8, "time_stride": 8}
    shape = {key: one for key, one in OF_IMAGES.items() if key != "image_size"}
    return hf.ASTForAudioClassification(hf.ASTConfig(**{**shape, "patch_size": 8}, **lengths))


def speech_to_text() -> Any:
    return hf.Speech2TextForConditionalGeneration(
        hf.Speech2TextConfig(
            vocab_size=WORDS,
            input_feat_per_channel=8,
            input_channels=1,
            conv_channels=8,
            num_conv_layers=1,
            conv_kernel_sizes=[3],
            max_source_positions=20,
            max_target_positions=16,
            **BOTH_SIDES,
        )
    )


def mamba_2() -> Any:
    heads = {"num_heads": 4, "head_dim": 8, "n_groups": 1, "chunk_size": 4, "state_size": 4}
    return hf.Mamba2ForCausalLM(hf.Mamba2Config(**SMALL, **heads, **ENDS))


def segformer() -> Any:
    heads = {"num_attention_heads": [1, 1, 2, 2], "decoder_hidden_size": 8}
    return hf.SegformerForImageClassification(hf.SegformerConfig(**STAGES, **heads))


def dinov2() -> Any:
    shape = {key: one for key, one in OF_IMAGES.items() if key != "intermediate_size"}
    return hf.Dinov2ForImageClassification(hf.Dinov2Config(**shape))


def siglip() -> Any:
    words = {**USUAL, "projection_size": 16}
    return hf.SiglipModel(hf.SiglipConfig(text_config=words, vision_config=OF_IMAGES))


def xlnet() -> Any:
    return hf.XLNetLMHeadModel(
        hf.XLNetConfig(vocab_size=WORDS, d_model=16, n_layer=2, n_head=2, d_inner=24)
    )


def rwkv() -> Any:
    shape = {"attention_hidden_size": 16, "intermediate_size": 24, "context_length": 16}
    return hf.RwkvForCausalLM(hf.RwkvConfig(**SMALL, **shape))


MORE: dict[str, Entry] = {
    "deberta_v2": Entry(deberta, same_words, texts),
    "xlnet": Entry(xlnet, same_words, texts),
    "mobilebert": Entry(mobile_bert, same_words, texts),
    "modernbert": Entry(modern_bert, same_words, texts),
    "phi3": Entry(lambda: hf.Phi3ForCausalLM(hf.Phi3Config(**GROUPED)), next_words, texts),
    "qwen3": Entry(
        lambda: hf.Qwen3ForCausalLM(hf.Qwen3Config(head_dim=8, **GROUPED)), next_words, texts
    ),
    "gemma2": Entry(
        lambda: hf.Gemma2ForCausalLM(hf.Gemma2Config(head_dim=8, **GROUPED)), next_words, texts
    ),
    "olmo2": Entry(lambda: hf.Olmo2ForCausalLM(hf.Olmo2Config(**GROUPED)), next_words, texts),
    "rwkv": Entry(rwkv, next_words, words_alone),
    "mamba2": Entry(mamba_2, next_words, texts),
    "marian": Entry(lambda: hf.MarianMTModel(hf.MarianConfig(**SEQUENCES)), translated, texts),
    "pegasus": Entry(
        lambda: hf.PegasusForConditionalGeneration(hf.PegasusConfig(**SEQUENCES)), translated, texts
    ),
    "m2m_100": Entry(
        lambda: hf.M2M100ForConditionalGeneration(hf.M2M100Config(**SEQUENCES)), translated, texts
    ),
    "perceiver": Entry(perceiver, of_latents, texts),
    "beit": Entry(
        lambda: hf.BeitForImageClassification(hf.BeitConfig(**OF_IMAGES, drop_path_rate=0.0)),
        classes,
        images,
    ),
    "dinov2": Entry(dinov2, classes, images),
    "segformer": Entry(segformer, classes, lambda: images(32)),
    "poolformer": Entry(
        lambda: hf.PoolFormerForImageClassification(hf.PoolFormerConfig(**STAGES)),
        classes,
        lambda: images(32),
    ),
    "vit_mae": Entry(
        lambda: hf.ViTMAEModel(hf.ViTMAEConfig(**OF_IMAGES)), squares, shuffled_images
    ),
    "hubert": Entry(
        lambda: hf.HubertForSequenceClassification(hf.HubertConfig(**OF_SOUNDS)), classes, sounds
    ),
    "wavlm": Entry(
        lambda: hf.WavLMForSequenceClassification(hf.WavLMConfig(**OF_SOUNDS)), classes, sounds
    ),
    "audio spectrogram transformer": Entry(spectrogram_transformer, classes, short_spectra),
    "speech_to_text": Entry(speech_to_text, spoken, spoken_features),
    "siglip, by pair": Entry(siglip, own_pairs, pairs),
    "git": Entry(
        lambda: hf.GitForCausalLM(hf.GitConfig(vision_config=OF_IMAGES, **USUAL)), squares, pairs
    ),
    "detr": Entry(detr, squares, lambda: {"pixel_values": images(32)["pixel_values"]}),
    "blip-2, q-former": Entry(q_former, of_queries, images),
}

MORE_TOUCHING: dict[str, tuple[Entry, str]] = {
    "blip-2": (Entry(blip_2, squares, shown_images), "made by masked_scatter"),
    "vilt": (
        Entry(
            lambda: hf.ViltForQuestionAnswering(
                hf.ViltConfig(**{**USUAL, **OF_IMAGES}, max_image_length=-1)
            ),
            squares,
            beside_images,
        ),
        "Python read values of data|a single example without",
    ),
}
