"""The table of rules: for each function of PyTorch's, how tags follow it."""

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor

from discreet.train._flow._call import FlowRule
from discreet.train._flow._dims import (
    along,
    areas,
    bilinear,
    by_first,
    flipped,
    locally_normalised,
    normalised_dims,
    over_last,
    padded_dims,
    sort,
    touching,
    unfolded,
)
from discreet.train._flow._groups import grouped
from discreet.train._flow._indexing import getitem
from discreet.train._flow._layers import (
    attention_forward,
    bagged,
    packed_up,
    padded_up,
    recurrent,
)
from discreet.train._flow._losses import (
    cross_entropy,
    ctc_loss,
    gaussian_nll,
    losses,
    losses_of_rows,
)
from discreet.train._flow._parts import (
    diagonal,
    joined,
    joined_along,
    narrowed,
    parted,
    selected,
    unbound,
)
from discreet.train._flow._picks import (
    chosen,
    divided,
    gathered,
    index_added,
    inverse_scattered,
    mask_selected,
    scattered,
    taken_along,
)
from discreet.train._flow._products import (
    added_to_product,
    attended,
    distances,
    einsum,
    multiplied,
    solved,
    solved_by_factor,
)
from discreet.train._flow._row_numbers import masked_places, where
from discreet.train._flow._shapes import (
    broadcast,
    copied,
    elementwise,
    expanded,
    interleaved,
    is_in,
    of_numbers,
    of_the_first,
    one_hot,
    permuted,
    refit,
    repeated,
)
from discreet.train._flow._writing import put, setitem

_NAMESPACES = (torch, Tensor, F, torch.special, torch.fft, torch.linalg, torch._C._nn)  # noqa: SLF001  F calls these

_ELEMENTWISE = """
__abs__ __add__ __and__ __eq__ __floordiv__ __ge__ __gt__ __iadd__ __iand__ __imul__ __invert__
__ior__ __ipow__ __isub__ __itruediv__ __le__ __lt__ __mod__ __mul__ __ne__ __neg__ __or__ __pos__
__pow__ __radd__ __rand__ __rfloordiv__ __rmod__ __rmul__ __ror__ __rpow__ __rsub__ __rtruediv__
__rxor__ __sub__ __truediv__ __xor__ abs absolute acos acosh add addcdiv addcmul alpha_dropout
_dirichlet_grad _standard_gamma _standard_gamma_grad binomial poisson
angle arccos arcsin arctan arctan2 asin asinh atan atan2 atanh bernoulli bfloat16 bitwise_and
bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor bool bucketize byte ceil
celu clamp clamp_max clamp_min clip complex conj copy copysign cos cosh deg2rad digamma div divide
double dropout dropout1d dropout2d dropout3d elu eq erf erfc erfinv exp exp2 expit expm1
feature_alpha_dropout fill fix float float_power floor floor_divide fmax fmin fmod frac full_like
ge gelu greater greater_equal gt half hardshrink hardsigmoid hardswish hardtanh heaviside hypot i0
imag int isfinite isinf isnan isneginf isposinf ldexp le leaky_relu lerp less less_equal lgamma
log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor logit
logsigmoid long lt masked_fill maximum minimum mish mul multiply mvlgamma nan_to_num ne neg
negative normal not_equal polar polygamma positive pow rad2deg real reciprocal relu relu6 remainder
round rrelu rsqrt rsub selu sgn short sigmoid sign signbit silu sin sinc sinh softplus softshrink
softsign sqrt square sub subtract tan tanh tanhshrink threshold true_divide trunc type xlogy
"""

_TAG_OF_FIRST_ARGUMENT = """
as_tensor asarray empty_like exponential log_normal ones_like rand_like randint_like
randn_like random requires_grad tensor uniform zero zeros_like
"""
_COPIED = "clone contiguous cpu cuda detach to type_as _to_copy"

_REFIT = "flatten ravel reshape reshape_as squeeze unflatten unsqueeze view view_as atleast_1d"

_ALONG = "softmax log_softmax softmin cumsum cumprod cummax cummin logcumsumexp"
_OF_MATRICES = (
    "inv inverse det logdet slogdet cholesky cholesky_ex inv_ex qr svd svdvals eigh eigvalsh "
    "pinv matrix_exp"
)
_POOLS = (
    "max_pool{0}d avg_pool{0}d adaptive_avg_pool{0}d adaptive_max_pool{0}d lp_pool{0}d "
    "max_pool{0}d_with_indices"
)
_PERMUTED = "movedim moveaxis mT permute swapaxes swapdims t T transpose adjoint H mH"

_REDUCED = """
all amax amin any argmax argmin logsumexp max mean median min mode nanmean nanmedian nansum prod sum
count_nonzero
"""


_REDUCED_BY = "reduce reduction"
_LOSS_ARGUMENTS = f"input target size_average {_REDUCED_BY}"
_RULES: tuple[tuple[FlowRule, str], ...] = (
    (copied, _COPIED),
    (refit, _REFIT),
    (expanded, "expand expand_as broadcast_to"),
    (broadcast, "broadcast_tensors"),
    (permuted, _PERMUTED),
    (of_numbers, "new_tensor"),
    (along("input dim keepdim", removes=True), _REDUCED),
    (along("input dim unbiased keepdim", removes=True), "std var std_mean var_mean"),
    (along("input dim keepdim", removes=True), "aminmax"),
    (along("input other dim", default=-1, removes=True), "vecdot"),
    (areas, "trapezoid trapz"),
    (along("input p dim keepdim", removes=True), "norm"),
    (along("input q dim keepdim", removes=True), "quantile nanquantile"),
    (along("input k dim keepdim", default=-1, removes=True), "kthvalue"),
    (along("input dim"), _ALONG),
    (sort, "sort argsort"),
    (along("input k dim", default=-1), "topk"),
    (along("input dims", of="dims"), "flip"),
    (along("input shifts dims", of="dims"), "roll"),
    (along("input p dim", default=1), "normalize"),
    (along("input dim", default=-1), "glu"),
    (along("input tau hard eps dim", default=-1), "gumbel_softmax"),
    (along("input n dim", default=-1), "diff fft ifft rfft irfft hfft ihfft"),
    (along("input other dim", default=1, removes=True), "cosine_similarity"),
    (along("input other", default=-1, removes=True), "pairwise_distance"),
    (unfolded, "unfold"),
    (along("input s dim", default=(-2, -1)), "fft2 ifft2 rfft2 irfft2"),
    (along("input s dim"), "fftn ifftn rfftn irfftn"),
    (along("input k dims", default=(0, 1), of="dims"), "rot90"),
    (bilinear, "bilinear"),
    (along("input ord dim keepdim", removes=True), "vector_norm"),
    (along("input ord dim keepdim", default=(-2, -1), removes=True), "matrix_norm"),
    (touching(normalised_dims), "layer_norm rms_norm"),
    (over_last(1), "linear _sample_dirichlet"),
    (over_last(1), _POOLS.format(1)),
    (over_last(2), f"{_POOLS.format(2)} tril triu {_OF_MATRICES}"),
    (over_last(3), f"{_POOLS.format(3)} pixel_shuffle pixel_unshuffle"),
    (touching(lambda _: {1}), "channel_shuffle fliplr"),
    (touching(lambda call: {call.named("input dim")["dim"] % call.first.dim()}), "index_fill"),
    (touching(lambda call: {call.first.dim() - 1}), "view_as_complex"),
    (touching(lambda _: ()), "view_as_real"),
    (diagonal, "diagonal"),
    (touching(padded_dims), "pad"),
    (by_first(3), "conv1d conv_transpose1d interpolate upsample fold affine_grid"),
    (by_first(4), "conv2d conv_transpose2d"),
    (by_first(5), "conv3d conv_transpose3d"),
    (by_first(4, data=2), "grid_sample"),
    (by_first(3, data=2), "max_unpool1d"),
    (by_first(4, data=2), "max_unpool2d fractional_max_pool2d"),
    (by_first(5, data=2), "max_unpool3d fractional_max_pool3d"),
    (by_first(2), "group_norm multinomial"),
    (locally_normalised, "local_response_norm"),
    (by_first(), "prelu"),
    (by_first(2, data=2), "gru_cell rnn_tanh_cell rnn_relu_cell"),
    (by_first(2, data=3), "lstm_cell"),
    (of_the_first, "bucketize embedding"),
    (is_in, "isin"),
    (one_hot, "one_hot"),
    (bagged, "embedding_bag"),
    (divided, "floor_divide __floordiv__"),
    (grouped, "grouped_mm _grouped_mm"),
    (multiplied, "matmul bmm mm mv __matmul__"),
    (added_to_product, "addmm baddbmm addmv"),
    (einsum, "einsum"),
    (distances, "cdist"),
    (solved, "solve solve_ex solve_triangular"),
    (solved_by_factor, "cholesky_solve"),
    (attended, "scaled_dot_product_attention"),
    (attention_forward, "multi_head_attention_forward"),
    (recurrent, "lstm gru rnn_tanh rnn_relu"),
    (joined, "cat concat concatenate stack"),
    (joined_along(0), "vstack row_stack"),
    (joined_along(1), "hstack column_stack"),
    (joined_along(2), "dstack"),
    (parted, "chunk tensor_split split split_with_sizes"),
    (unbound, "unbind"),
    (selected, "select"),
    (narrowed, "narrow narrow_copy"),
    (repeated, "repeat tile"),
    (interleaved, "repeat_interleave"),
    (masked_places, "nonzero argwhere"),
    (where, "where"),
    (mask_selected, "masked_select"),
    (chosen, "index_select"),
    (gathered, "gather"),
    (taken_along, "take_along_dim"),
    (scattered, "scatter scatter_add scatter_reduce scatter_add_ scatter_reduce_"),
    (inverse_scattered, "scatter_"),
    (index_added, "index_add index_copy index_add_ index_copy_"),
    (getitem, "__getitem__"),
    (setitem, "__setitem__"),
    (put, "index_put index_put_"),
    (packed_up, "_pack_padded_sequence"),
    (padded_up, "_pad_packed_sequence"),
    (cross_entropy, "cross_entropy nll_loss"),
    (losses(_LOSS_ARGUMENTS), "mse_loss l1_loss kl_div smooth_l1_loss soft_margin_loss"),
    (losses(f"input target log_input full size_average eps {_REDUCED_BY}"), "poisson_nll_loss"),
    (losses(f"input target margin size_average {_REDUCED_BY}"), "hinge_embedding_loss"),
    (losses(f"input1 input2 target margin size_average {_REDUCED_BY}"), "margin_ranking_loss"),
    (losses_of_rows(_LOSS_ARGUMENTS, data=2), "multilabel_margin_loss"),
    (
        losses_of_rows(f"input target weight size_average {_REDUCED_BY}", data=2),
        "multilabel_soft_margin_loss",
    ),
    (
        losses_of_rows(f"input target p margin weight size_average {_REDUCED_BY}", data=2),
        "multi_margin_loss",
    ),
    (
        losses_of_rows(f"input1 input2 target margin size_average {_REDUCED_BY}", data=3),
        "cosine_embedding_loss",
    ),
    (
        losses_of_rows(
            f"anchor positive negative margin p eps swap size_average {_REDUCED_BY}", data=3
        ),
        "triplet_margin_loss",
    ),
    (gaussian_nll, "gaussian_nll_loss"),
    (ctc_loss, "ctc_loss"),
    (losses("input target reduction"), "huber_loss"),
    (losses("input target weight size_average reduce reduction"), "binary_cross_entropy"),
    (
        losses("input target weight size_average reduce reduction pos_weight"),
        "binary_cross_entropy_with_logits",
    ),
)


def _functions(names: str) -> Iterator[Any]:  # Any: functions of PyTorch's
    """All functions and properties with these names."""
    for name in names.split():
        for space in _NAMESPACES:
            function = getattr(space, name, None)
            if callable(function) and not isinstance(function, type):
                yield function
            elif function is not None and hasattr(function, "__get__"):
                yield function.__get__


def _table() -> dict[Any, FlowRule]:  # Any: as above
    in_and_out_of_place = " ".join(f"{name} {name}_" for name in _ELEMENTWISE.split())
    found: dict[Any, FlowRule] = {}  # Any: as above
    found |= dict.fromkeys(_functions(f"{in_and_out_of_place} data real imag"), elementwise)
    in_and_out_of_place = " ".join(f"{name} {name}_" for name in _TAG_OF_FIRST_ARGUMENT.split())
    found |= dict.fromkeys(_functions(in_and_out_of_place), of_the_first)
    for rule, names in _RULES:
        found |= dict.fromkeys(_functions(names), rule)
    found[F.batch_norm] = found[F.instance_norm] = by_first(2)
    found[Tensor.flip] = flipped
    # torch.cross chooses a dimension by its length
    found[torch.linalg.cross] = along("input other dim", default=-1)
    found.pop(torch.linalg.diagonal, None)  # its other arguments have names only
    for swapped in (torch.embedding, torch.embedding_bag):  # the table is their first argument
        found.pop(swapped, None)
    found[Tensor.requires_grad.__set__] = of_the_first  # type: ignore[attr-defined]  # a property
    return found


FLOW = _table()
FOR_UNTRACKED: frozenset[FlowRule] = frozenset(
    {
        copied,
        getitem,
        setitem,
        put,
        chosen,
        gathered,
        index_added,
        inverse_scattered,
        interleaved,
        packed_up,
        padded_up,
        bagged,
        divided,
        grouped,
        recurrent,
    }
)  # rules that also handle untracked data
DIM_SECOND: frozenset[FlowRule] = frozenset(
    {joined, chosen, gathered, scattered, inverse_scattered, index_added}
)  # rules of functions whose second argument is a dimension
_WITHOUT_DIMS: frozenset[FlowRule] = frozenset(
    {
        *(
            elementwise,
            copied,
            of_the_first,
            is_in,
            of_numbers,
            broadcast,
            one_hot,
            bagged,
            divided,
        ),
        *(refit, expanded, repeated, permuted, interleaved, where, masked_places, mask_selected),
        *(
            multiplied,
            added_to_product,
            distances,
            einsum,
            attended,
            grouped,
            getitem,
            setitem,
            put,
        ),
        *(
            attention_forward,
            recurrent,
            packed_up,
            padded_up,
            cross_entropy,
            ctc_loss,
            gaussian_nll,
            taken_along,
        ),
        *DIM_SECOND,
    }
)
WITH_DIMS = frozenset(FLOW.values()) - _WITHOUT_DIMS  # rules whose arguments may be dimensions
TAKES_DIMS = WITH_DIMS | DIM_SECOND
