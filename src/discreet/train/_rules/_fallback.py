"""Functions without a rule: each example gets its own copy of the weights.

PyTorch's `vmap` runs the function once for all examples, and its backward pass then gives each
example's gradient. Only this call is computed in this way, not the layer or model around it.
"""

from typing import Any

import torch
from torch import Tensor

from discreet.errors import Refused
from discreet.train import _flow
from discreet.train._calls._arguments import (
    Args,
    Function,
    Keywords,
    in_order,
    replaced,
    tensors_in,
)
from discreet.train._calls._in_place import changes_its_first
from discreet.train._forward._capture import Capture
from discreet.train._forward._uses import KEEP_FIRST
from discreet.train._rules._elementwise import copied_per_example, rows_per_example, weights_among
from discreet.train._tags._tag import ExampleRows

CHUNK = 64  # examples at once


def by_example(
    capture: Capture, function: Function, args: Args, keywords: Keywords
) -> Any:  # Any: what the function returns
    """Call the function with one example's data and the weights, for all examples."""
    # 1. refuse changes in place
    found = tensors_in((args, keywords))
    weights = weights_among(capture, found)
    name = getattr(function, "__name__", "a function")
    if changes_its_first(function):
        raise capture.refused_change(function, *weights)
    # 2. each example's own weights and data, and the dimension of examples in each, by identity
    own: dict[int, Tensor] = {}
    dims: dict[int, int] = {}
    to, rows = _rows_of_weights(capture, function, args, keywords)
    for each in found:
        if id(each) in rows:
            dims[id(each)] = rows[id(each)]
            own[id(each)] = rows_per_example(capture, each, rows[id(each)])
        elif capture.is_weight(each):
            own[id(each)] = copied_per_example(capture, each, each.dim() + 1)
        elif not capture.is_shared(each):
            tag = capture.tags.of(each)
            dims[id(each)] = tag.dim if isinstance(tag, ExampleRows) else 0
            if each.dim() <= dims[id(each)] or each.shape[dims[id(each)]] != capture.rows:
                capture.refuse_other_rows(each, *weights)
            own[id(each)] = each
    if any(dims.values()):
        to = _dim_of_result(capture, function, args, keywords)

    # 3. the function of one example: data have a dimension of length 1 in place of the examples
    def alone(*values: Tensor) -> Any:  # Any: as the function
        swap = {
            key: value if key in of_weights else value.unsqueeze(dims[key])
            for key, value in zip(own, values, strict=True)
        }
        given, named_ones = (
            replaced(each, lambda one: swap.get(id(one), one)) for each in (args, keywords)
        )
        return replaced(function(*given, **named_ones), lambda one: _without(one, to))

    of_weights = {id(each) for each in weights if id(each) not in rows}
    # 4. run it for all examples
    try:
        chunk = CHUNK if capture.rows > CHUNK else None
        alike = torch.func.vmap(
            alone,
            in_dims=tuple(dims.get(key, 0) for key in own),
            out_dims=to,
            randomness="different",
            chunk_size=chunk,
        )
        return alike(*own.values())
    except (RuntimeError, ValueError, NotImplementedError, _NotByExample) as error:
        raise capture.refused(
            *weights,
            why=f"is used by {name}, which can't be computed example by example",
            mend="keep examples in the first dimension, or write it with functions that are known",
        ) from (None if capture.hides_shapes else error)  # its text has shapes


def _rows_of_weights(
    capture: Capture, function: Function, args: Args, keywords: Keywords
) -> tuple[int, dict[int, int]]:
    """The dimension of examples in the result, and in weights with random numbers of each, by
    identity."""
    weights = weights_among(capture, tensors_in((args, keywords)))
    if not any(capture.tags.draws.has(each) or capture.tags.depends(each) for each in weights):
        return _alike_rows_of_weights(capture, function, args, keywords)
    to = _dim_of_result(capture, function, args, keywords)  # credits random numbers to examples
    tags = {id(each): capture.tags.of(each) for each in weights}
    return to, {
        key: tag.dim
        for key, tag in tags.items()
        if isinstance(tag, ExampleRows) and tag.layout.length == capture.rows
    }


def _alike_rows_of_weights(
    capture: Capture, function: Function, args: Args, keywords: Keywords
) -> tuple[int, dict[int, int]]:
    """The dimension of examples in the result, and in weights that were repeated for examples, if
    the function keeps their rows."""
    tags, layout = capture.tags, capture.layout or capture.tags.plain
    alike = {
        each: ExampleRows(dim, layout)
        for each in weights_among(capture, tensors_in((args, keywords)))
        for dim, length in enumerate(each.shape)
        if 1 < length == capture.rows and tags.indices.has_alike_rows(each, dim)
    }
    if not alike or not _flow.is_known(function):
        return 0, {}
    try:
        with tags.supposing(alike):
            to = _dim_of_result(capture, function, args, keywords)
    except Refused:  # these rows are something else than examples
        return 0, {}
    return to, {id(each): rows.dim for each, rows in alike.items()}


class _NotByExample(Refused):
    pass


def _dim_of_result(capture: Capture, function: Function, args: Args, keywords: Keywords) -> int:
    """The dimension of examples in the function's result."""
    with torch.no_grad():
        result = function(*args, **keywords)
    tensors = tensors_in((args, keywords))
    given = in_order(function, args, keywords)
    _flow.follow(_flow.Call(capture.tags, function, *given, result), tensors)
    tag = capture.tags.of(result) if isinstance(result, Tensor) else None
    if not isinstance(tag, ExampleRows):
        raise capture.refused(
            *weights_among(capture, tensors_in((args, keywords))),
            why=f"is used by {getattr(function, '__name__', 'a function')} over examples",
            mend=KEEP_FIRST,
        )
    return tag.dim


def _without(result: Tensor, dim: int) -> Tensor:
    if result.dim() <= dim or result.shape[dim] != 1:
        raise _NotByExample("its result has no dimension of one example")
    return result.squeeze(dim)
