"""Functions that draw random numbers, and along which dimensions these are independent."""

from collections.abc import Callable, Container
from typing import Any

from torch import Tensor

from discreet.train._calls._arguments import Args, Function, Keywords, named, tensors_in
from discreet.train._flow._call import Call, name_of
from discreet.train._flow._places import differs
from discreet.train._tags._tag import ExampleRows

_NONE = range(0)
_FIRST = range(1)


def is_random(function: Function) -> bool:
    """Whether the function may draw random numbers."""
    return _name(function) in _DIMS


def draws(function: Function, args: Args, keywords: Keywords) -> bool:
    """Whether a call draws random numbers."""
    name = _name(function)
    if name not in _DIMS:
        return False
    order, usual = _CHANCES.get(name, ("", 0.5))
    given = named(order, args, keywords)
    chance = given.get("p", given.get("dropout_p", given.get("dropout", usual)))
    usually = name.startswith("rrelu")
    is_training = given.get("training", given.get("train", not usually))
    return not order or bool(chance and is_training)


def is_even(call: Call, drawn: Tensor, rows: ExampleRows, *, was_alike: bool) -> bool:
    """Whether rows along a dimension are drawn independently of one another, by the same law.

    ``was_alike`` states that a tensor into which the call drew had equal entries before.
    """
    name = _name(call.function)
    if rows.dim not in _DIMS[name](call, drawn):
        return False
    if _is_pick(name, drawn, rows):
        return not any(map(call.tags.depends, tensors_in((call.args, call.keywords))))
    given = call.args[:3] if name == _ATTENTION else (call.args, call.keywords)
    for one in tensors_in(given):
        if one is drawn:
            if name in _KEEPS and not was_alike:
                return False
            continue
        dim = rows.dim - drawn.dim() + one.dim()
        if dim < 0:
            continue
        tag = call.tags.of(one)
        if tag is not None and tag != rows.at(dim):
            return False
        if differs(call.tags, one, dim, rows.layout):
            return False
    return True


def has_own_numbers(call: Call, rows: ExampleRows) -> bool:
    """Whether a random function of data draws other numbers for each row of its result."""
    name = _name(call.function)
    if _DIMS[name] is _channels:
        first, data = _UNBATCHED.get(name, 0), call.first
        return rows.dim == 0 or (rows.dim == 1 and data.dim() != first)
    if name == _PRODUCT:  # values don't decide how many masks there are
        given = call.named("query key value")
        back = rows.dim - call.result.dim()
        several = (given["query"], given["key"])
        return any(
            one.dim() + back >= 0 and one.shape[one.dim() + back] == rows.layout.length
            for one in several
        )
    return True


def _name(function: Function) -> str:
    """The function's name, without that of an overload of ``torch.ops``."""
    return name_of(function).partition(".")[0]


# Dimensions


_Dims = Callable[[Call, Tensor], Container[int]]


def _each(_: Call, drawn: Tensor) -> Container[int]:
    """Each number by itself."""
    return range(drawn.dim())


def _channels(_: Call, __: Tensor) -> Container[int]:
    """Each channel by itself."""
    return _FIRST


def _never(_: Call, __: Tensor) -> Container[int]:
    return _NONE


def _but_last(number: int) -> _Dims:
    return lambda _, drawn: range(drawn.dim() - number)


def _picks(call: Call, drawn: Tensor) -> Container[int]:
    """`multinomial`: each row by itself; the picks of one row without replacement differ."""
    given = call.named("input num_samples replacement")
    rows = range(drawn.dim() - 1)
    return range(drawn.dim()) if given.get("replacement") else rows


def _is_pick(name: str, drawn: Tensor, rows: ExampleRows) -> bool:
    """Whether rows are picks by the same weights, of which the last dimension has other places."""
    return name == "multinomial" and rows.dim == drawn.dim() - 1


def _gumbel(call: Call, drawn: Tensor) -> Container[int]:
    dim = call.named("logits tau hard eps dim").get("dim", -1)
    return {*range(drawn.dim())} - {dim % drawn.dim()}


def _queries(_: Call, drawn: Tensor) -> Container[int]:
    """`multi_head_attention_forward`: (time, example, feature)."""
    return {1} if drawn.dim() == 3 else _NONE


_UNBATCHED = {"dropout1d": 2, "dropout3d": 4}  # dimensions of data without a batch
_PRODUCT = "scaled_dot_product_attention"
_ATTENTION = "multi_head_attention_forward"
_NAMES: dict[_Dims, str] = {
    _each: """
rand randn randint rand_like randn_like randint_like normal normal_ uniform_ exponential_ random_
geometric_ cauchy_ log_normal_ bernoulli bernoulli_ poisson binomial _standard_gamma rrelu rrelu_
dropout dropout_ alpha_dropout alpha_dropout_ native_dropout
""",
    _channels: """
dropout1d dropout2d dropout3d feature_dropout feature_dropout_ feature_alpha_dropout
feature_alpha_dropout_
""",
    _but_last(1): "_sample_dirichlet",
    _but_last(2): "scaled_dot_product_attention",
    _picks: "multinomial",
    _gumbel: "gumbel_softmax",
    _queries: _ATTENTION,
    _never: """
randperm lstm gru rnn_tanh rnn_relu fractional_max_pool2d fractional_max_pool3d
fractional_max_pool2d_with_indices fractional_max_pool3d_with_indices
""",
}
_DIMS = {name: dims for dims, names in _NAMES.items() for name in names.split()}
_KEEPS = frozenset(  # in place, the result depends on the numbers that were there
    name for name in _DIMS if "dropout" in name or name.startswith("rrelu")
)
_QUERIES = (
    "query key value embed_dim_to_check num_heads in_proj_weight in_proj_bias bias_k bias_v "
    "add_zero_attn dropout_p out_proj_weight out_proj_bias training"
)
_LAYER = "input hx params has_biases layers dropout training"
# by name: the order of arguments, and the usual chance of a number's being dropped
_CHANCES: dict[str, tuple[str, Any]] = {
    **dict.fromkeys(
        (name for name in _DIMS if "dropout" in name), ("input p training inplace", 0.5)
    ),
    **dict.fromkeys(("rrelu", "rrelu_"), ("input lower upper training inplace", 1.0)),
    "scaled_dot_product_attention": ("query key value attn_mask dropout_p is_causal", 0.0),
    _ATTENTION: (_QUERIES, 0.0),
    **dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu"), (_LAYER, 0.0)),
}
