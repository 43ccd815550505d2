"""PyTorch's multi-head attention: projections by the linear rule, and the rest step by step."""

import math
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor

from discreet.train._calls._arguments import Args, Function, Keywords, named, tensors_in
from discreet.train._forward._capture import Capture
from discreet.train._rules._elementwise import copied_per_example, examples_first, joined
from discreet.train._rules._linear import linear

NAMES = (
    "query key value embed_dim_to_check num_heads in_proj_weight in_proj_bias bias_k bias_v "
    "add_zero_attn dropout_p out_proj_weight out_proj_bias training key_padding_mask need_weights "
    "attn_mask use_separate_proj_weight q_proj_weight k_proj_weight v_proj_weight static_k "
    "static_v average_attn_weights is_causal"
)


def attention(
    capture: Capture, _function: Function, args: Args, keywords: Keywords
) -> tuple[Tensor, Tensor | None]:
    """`F.multi_head_attention_forward`: query, key and value (time, example, feature)."""
    given = named(NAMES, args, keywords)
    if given.get("static_k") is not None or given.get("static_v") is not None:
        raise capture.refused(
            given["out_proj_weight"], why="gets static keys", mend="give keys as data"
        )
    heads, training = given["num_heads"], given.get("training", True)
    dropout = given["dropout_p"] if training else 0.0
    query, key, value = (_split(each, heads) for each in _projected(capture, given))
    mask = _mask(given, query, key)  # each (example, head, time, feature)
    weights = None
    if given.get("need_weights", True):
        scores = query @ key.mT / math.sqrt(query.shape[3])
        scores = torch.softmax(scores if mask is None else scores + mask, 3)
        weights = F.dropout(scores, dropout) if dropout else scores
        found = weights @ value
        weights = weights.mean(1) if given.get("average_attn_weights", True) else weights
    else:
        found = F.scaled_dot_product_attention(query, key, value, mask, dropout)
    merged = found.transpose(1, 2).flatten(2)  # (example, time, feature)
    last = {"weight": given["out_proj_weight"], "bias": given["out_proj_bias"]}
    result: Tensor = _linear(capture, merged, **last)
    return result.transpose(0, 1), weights


def scaled_dot_products(
    capture: Capture, function: Function, args: Args, keywords: Keywords
) -> Tensor:
    """`F.scaled_dot_product_attention` with learned queries, keys, values or masks: each example
    gets its own copy of these."""
    given = named("query key value attn_mask dropout_p is_causal", args, keywords)
    rank = max(each.dim() for each in tensors_in(given.values()))
    result: Tensor = function(
        **{name: copied_per_example(capture, given[name], rank) for name in given}
    )
    return result


def _projected(capture: Capture, given: Keywords) -> list[Tensor]:
    """Query, key and value for all heads: each (example, time, feature)."""
    several = [given["query"], given["key"], given["value"]]
    bias = given["in_proj_bias"]
    if not given.get("use_separate_proj_weight", False):
        weight = given["in_proj_weight"]
        if several[0] is several[1] is several[2]:
            data = examples_first(capture, several[0], weight)
            return [*_extended(capture, given, _linear(capture, data, weight, bias).chunk(3, 2))]
        weights = _thirds(capture, weight)
    else:
        weights = [given[f"{which}_proj_weight"] for which in "qkv"]
    biases = [None] * 3 if bias is None else _thirds(capture, bias)
    parts = (
        _linear(capture, examples_first(capture, data, weight), weight, of)
        for data, weight, of in zip(several, weights, biases, strict=True)
    )
    return [*_extended(capture, given, parts)]


def _thirds(capture: Capture, weight: Tensor) -> list[Tensor]:
    """Split a weight into three for query, key and value, which are weights too."""
    parts = [*weight.chunk(3)]
    if capture.is_weight(weight):
        for part in parts:
            capture.weights[id(part)] = part
    return parts


def _extended(capture: Capture, given: Keywords, parts: Any) -> list[Tensor]:  # Any: three tensors
    """Append a learned key and value, or zeros, to keys and values."""
    query, *others = parts
    for which, name in enumerate(("bias_k", "bias_v")):
        if (more := given.get(name)) is not None:
            each = more.expand(1, others[which].shape[0], -1).transpose(0, 1)
            if capture.is_weight(more):
                capture.weights[id(each)] = each
                others[which] = joined(capture, torch.cat, ([others[which], each], 1), {})
            else:
                others[which] = torch.cat([others[which], each], 1)
        if given["add_zero_attn"]:
            others[which] = F.pad(others[which], (0, 0, 0, 1))
    return [query, *others]


def _linear(capture: Capture, data: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if capture.is_weight(weight) or capture.is_weight(bias):
        return linear(capture, F.linear, (data, weight, bias), {})
    return F.linear(data, weight, bias)


def _split(data: Tensor, heads: int) -> Tensor:
    """(example, time, feature) to (example, head, time, feature of it)."""
    examples, time, _ = data.shape
    return data.reshape(examples, time, heads, -1).transpose(1, 2)


def _mask(given: Keywords, query: Tensor, key: Tensor) -> Tensor | None:
    """The mask to add to scores: (1 or example, 1 or head, time, time)."""
    found = None
    if (mask := given.get("attn_mask")) is not None:
        mask = _added(mask, query)
        several = (-1, query.shape[1], *mask.shape[1:]) if mask.dim() == 3 else (1, 1, *mask.shape)
        found = mask.view(several)
    if (padding := given.get("key_padding_mask")) is not None:
        padding = _added(padding, query)[:, None, None]
        found = padding if found is None else found + padding
    if found is None:
        return None
    more = key.shape[2] - found.shape[3]  # appended keys are masked for no query
    found = F.pad(found, (0, more)) if more else found
    return found.expand(-1, -1, query.shape[2], -1)


def _added(mask: Tensor, like: Tensor) -> Tensor:
    """A mask to add: a boolean one becomes minus infinity where it is true."""
    if mask.dtype != torch.bool:
        return mask.to(like.dtype)
    return torch.zeros_like(mask, dtype=like.dtype).masked_fill_(mask, float("-inf"))
