"""Arguments that rules leave out, such as biases: they must not differ by place in the batch.

PyTorch broadcasts many arguments that are usually vectors or single numbers. With more dimensions
than usual, they could have other values for each row of the batch. So each rule states that it
looks at all tensors of a call (`sees_places`), or they must have the dimensions that are listed
here. In further ones, all rows must be equal by how they were made.
"""

from torch import Tensor

from discreet.train._calls._arguments import tensors_in
from discreet.train._flow._call import SEES_PLACES, Call, FlowRule, ResultTags, name_of
from discreet.train._flow._places import BY_PLACE
from discreet.train._tags._tag import ExampleRows

# the arguments of functions in their order, and how many dimensions they may have: any number if
# the rule or PyTorch compares them with the rows; arguments that are not listed are single numbers
_ARGUMENTS: dict[str, str] = {
    "linear": "input:any weight:2 bias:1",
    "bilinear": "input1:any input2:any weight:3 bias:1",
    **dict.fromkeys(("layer_norm", "rms_norm"), "input:any normalized_shape:0 weight:any bias:any"),
    "group_norm": "input:any num_groups:0 weight:1 bias:1",
    **dict.fromkeys(
        ("batch_norm", "instance_norm"),
        "input:any running_mean:1 running_var:1 weight:1 bias:1",
    ),
    **{
        f"conv{kind}{number}d": "input:any weight:any bias:1"
        for kind in ("", "_transpose")
        for number in (1, 2, 3)
    },
    **dict.fromkeys(("interpolate", "upsample"), "input:any size:1 scale_factor:1"),
    "prelu": "input:any weight:1",
    "bucketize": "input:any boundaries:1",
    "embedding": "input:any weight:2",
    "embedding_bag": (
        "input:any weight:2 offsets:1 max_norm:0 norm_type:0 scale_grad_by_freq:0 mode:0 sparse:0 "
        "per_sample_weights:any"
    ),
    "isin": "elements:any test_elements:any",
    "index_fill": "input:any dim:0 index:1",
    "grid_sample": "input:any grid:any",
    **{f"max_unpool{number}d": "input:any indices:any" for number in (1, 2, 3)},
    **{
        f"fractional_max_pool{number}d": (
            "input:any kernel_size:1 output_size:1 output_ratio:1 return_indices:0 "
            "_random_samples:any"
        )
        for number in (2, 3)
    },
    **dict.fromkeys(
        ("gru_cell", "lstm_cell", "rnn_tanh_cell", "rnn_relu_cell"),
        "input:any hx:any w_ih:2 w_hh:2 b_ih:1 b_hh:1",
    ),
    **dict.fromkeys(("grouped_mm", "_grouped_mm"), "input:any mat2:3 offs:1"),
    "multi_head_attention_forward": (
        "query:any key:any value:any embed_dim_to_check:0 num_heads:0 in_proj_weight:2 "
        "in_proj_bias:1 bias_k:any bias_v:any add_zero_attn:0 dropout_p:0 out_proj_weight:2 "
        "out_proj_bias:1 training:0 key_padding_mask:any need_weights:0 attn_mask:any "
        "use_separate_proj_weight:0 q_proj_weight:2 k_proj_weight:2 v_proj_weight:2"
    ),
}
_ORDERS = {
    function: [each.split(":") for each in listed.split()]
    for function, listed in _ARGUMENTS.items()
}
_OF_ONE = [["input", "any"]]


def tags_by(rule: FlowRule, call: Call) -> ResultTags:
    """The tags of a call's result by a rule; `BY_PLACE` if an argument that the rule leaves out may
    differ between rows of examples."""
    found = rule(call)
    if rule in SEES_PLACES or not call.others:
        return found
    several = found if isinstance(found, list) else [found]
    has_rows = any(isinstance(one, ExampleRows) for one in several)
    return BY_PLACE if has_rows and _may_differ(call) else found


def _may_differ(call: Call) -> bool:
    """Whether an argument has more dimensions than usual, and may differ along these."""
    order = _ORDERS.get(name_of(call.function), _OF_ONE)
    most = dict(order)
    names = [name for name, _ in order]
    given = [*zip([*names, *[""] * len(call.args)], call.args, strict=False)]
    for name, value in (*given, *call.keywords.items()):
        number = most.get(name, "0")
        if number != "any" and any(
            _differs_before(call, one, int(number)) for one in tensors_in((value,))
        ):
            return True
    return False


def _differs_before(call: Call, one: Tensor, last: int) -> bool:
    """Whether a tensor may differ along a dimension before its last ones."""
    return any(
        one.shape[dim] != 1 and not call.tags.indices.has_alike_rows(one, dim)
        for dim in range(one.dim() - last)
    )
