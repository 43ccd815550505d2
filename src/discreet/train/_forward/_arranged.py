"""Calls with data and weights: the rows of data are moved to where the function's rule needs them.

A rule needs rows in the first dimension, and makes one gradient for each row. If row i is not
example i, the engine later sums the rows' gradients by example.
"""

from typing import Any

import torch
from torch import Tensor

from discreet.errors import DiscreetError, Refused
from discreet.train import _flow
from discreet.train._calls._arguments import (
    UNREADABLE,
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
from discreet.train._tags._tag import (
    OUTSIDE_BATCH,
    ExampleRows,
    OneExample,
    OutsideBatch,
    Tag,
    UntrackedRows,
    merged,
)


class _UntrackedRefused(Refused):
    """The refusal of data whose rows are untracked; it is raised if they get a gradient."""

    @staticmethod
    def of(capture: Capture, weights: list[Tensor], *, why: str, mend: str) -> "_UntrackedRefused":
        """The refusal that names a layer, its mistake and what to do."""
        return _UntrackedRefused(str(capture.refused(*weights, why=why, mend=mend)))


def ruled(  # noqa: PLR0917  # the parts of a call
    capture: Capture, function: Function, args: Args, keywords: Keywords, tensors: list[Tensor]
) -> Any:
    """The function's result by its rule, tagged; a named refusal if no rule can read the call."""
    try:
        return _ruled(capture, function, args, keywords, tensors)
    except UNREADABLE as error:
        if isinstance(error, DiscreetError) or not _succeeds(capture, function, args, keywords):
            raise
        name = getattr(function, "__name__", "a function")
        weights = [each for each in tensors if id(each) in capture.weights]
        raise capture.refused(
            *weights,
            why=f"is used by {name} with arguments that its rule can't read",
            mend="give them by place, as PyTorch's documentation has them",
        ) from None


def _ruled(  # noqa: PLR0917  # as above
    capture: Capture, function: Function, args: Args, keywords: Keywords, tensors: list[Tensor]
) -> Any:
    if keywords:
        args, keywords = in_order(function, args, keywords)
    weights = [each for each in tensors if id(each) in capture.weights]
    data = [each for each in tensors if not capture.is_shared(each)]
    rule = capture.rules.of.get(function, capture.rules.otherwise)
    # 1. without both weights and data, no gradient of an example arises
    if not weights or not data:
        result = rule(capture, function, args, keywords)
        capture.follow(function, tensors, args, keywords, result)
        return result
    # 2. find the rows, and move them to the first dimension
    try:
        alone, rows, turned = _row_of_one(capture, function, args, keywords, data) or (
            None,
            *_rows(capture, function, args, keywords, data, weights),
        )
    except _UntrackedRefused as error:
        return _refused_if_used(capture, function, args, keywords, tensors, error)
    if turned is None:
        rule, turned = capture.rules.otherwise, {}
    given = tuple(_swapped(args, turned)), _swapped(keywords, turned)
    # 3. call by the rule; a mask may have picked no rows, which use no weight
    with having(capture, rows):
        if capture.rows:
            result = rule(capture, function, *given)
        else:
            result = _without_rows(capture, function, *given)
    # 4. move the rows back, and tag the result
    if turned:
        result = result.movedim(0, rows.dim) if alone is None else result.squeeze(0)
    if _flow.is_known(function) or any(map(capture.tags.depends, weights)):
        capture.follow(function, tensors, args, keywords, result)
    else:
        for each in weights if capture.tags.draws else ():
            capture.tags.draws.share(each)
        for each in tensors_in((result,)):
            capture.tags.set(each, alone or ExampleRows(0, rows.layout))
    return result


def _row_of_one(  # noqa: PLR0917  # as above
    capture: Capture, function: Function, args: Args, keywords: Keywords, data: list[Tensor]
) -> tuple[OneExample, ExampleRows, dict[int, Tensor]] | None:
    """As `_rows`, for data of one example only, as in a loop over a batch: they are a batch of one,
    in a dimension of their own or in a new first one. None if they are no data of one example, if
    their place may depend on data, or if the function's rule can't take them."""
    # 1. the example
    example, rules = capture.tags.of(data[0]), capture.rules
    if not isinstance(example, OneExample) or example.order.places is None:
        return None
    if changes_its_first(function) or any(capture.tags.of(each) != example for each in data):
        return None
    row = ExampleRows(0, capture.tags.in_places((example.order.places[example.place],)))
    # 2. functions that take one more dimension
    rank = max(each.dim() for each in tensors_in((args, keywords)))
    if function in rules.broadcast:
        if all(each.dim() == rank and _is_single(each, 0) for each in data):
            return example, row.at(-rank), {}
        if function in (torch.cat, torch.stack):  # their dimension may be counted from the first
            return None
        shapes = {each: (1,) * (rank + 1 - each.dim()) + each.shape for each in data}
        return (
            example,
            row.at(-rank - 1),
            {id(each): each.reshape(shape) for each, shape in shapes.items()},
        )
    if function in rules.features and len(data) == 1:
        name, place, number = rules.features[function]
        one = args[place] if len(args) > place else keywords.get(name)
        if one is data[0]:
            is_row = one.dim() > number(args, keywords) and _is_single(one, 0)
            return example, row, {} if is_row else {id(one): one.unsqueeze(0)}
    # 3. all others: the dimension in which the rule expects examples
    where = rules.elsewhere.get(function)
    places = [(each, 0) for each in data] if where is None else where(args, keywords)
    is_row = all(capture.is_shared(each) or _is_single(each, dim) for each, dim in places)
    return (example, row, {}) if is_row else None


def _is_single(data: Tensor, dim: int) -> bool:
    return data.dim() > dim and data.shape[dim] == 1


def _succeeds(capture: Capture, function: Function, args: Args, keywords: Keywords) -> bool:
    """Whether PyTorch's own function takes these arguments."""
    try:
        _without_rows(capture, function, args, keywords)
    except Exception:  # noqa: BLE001  its own error is raised then, whatever it is
        return False
    return True


def _rows(  # noqa: PLR0917  # as above
    capture: Capture,
    function: Function,
    args: Args,
    keywords: Keywords,
    data: list[Tensor],
    weights: list[Tensor],
) -> tuple[ExampleRows, dict[int, Tensor] | None]:
    """The tag of the rows, and data moved to have rows first, by the identity of the original.

    The second is None if only the rule for other functions can take rows in these dimensions.
    """
    rules = capture.rules
    # 1. broadcast arguments: rows may lie along any dimension, counted from the end
    if function in rules.broadcast:
        rank = max(each.dim() for each in tensors_in((args, keywords)))
        tags = [(_tag(capture, each, weights, among=data), each.dim()) for each in data]
        found = _checked(capture, weights, merged(tags, rank))
        return found.at(found.dim - rank), {}
    # 2. functions of the last dimensions: rows may lie along any other one
    if function in rules.features and len(data) == 1:
        name, place, number = rules.features[function]
        one = args[place] if len(args) > place else keywords.get(name)
        if one is data[0]:
            found = _checked(capture, weights, _tag(capture, one, weights))
            if found.dim >= one.dim() - number(args, keywords):
                raise _over_examples(capture, function, weights)
            return found, {id(one): one.movedim(found.dim, 0)} if found.dim else {}
    # 3. all others: a fixed dimension for each argument, the first unless the rules say otherwise
    where = rules.elsewhere.get(function)
    places = [(each, 0) for each in data] if where is None else where(args, keywords)
    is_free = where is None and (function not in rules.of or function in rules.products)
    tags, is_first = [], True
    for each, dim in places:
        if not capture.is_shared(each):
            tag = _tag(capture, each, weights)
            if isinstance(tag, ExampleRows) and tag.dim != dim:
                if not (is_free and _flow.is_known(function)):
                    raise _over_examples(capture, function, weights)
                is_first = False
            tags.append((tag.at(0) if isinstance(tag, ExampleRows) else tag, 0))
    return _checked(capture, weights, merged(tags, 0)), {} if is_first else None


def _refused_if_used(  # noqa: PLR0917  # as above
    capture: Capture,
    function: Function,
    args: Args,
    keywords: Keywords,
    tensors: list[Tensor],
    error: Refused,
) -> Any:
    """The function's result; a gradient through it will be refused."""

    def refuse(_: Tensor) -> Any:
        raise error

    result = _without_rows(capture, function, args, keywords)
    weight = next(each for each in tensors if capture.is_weight(each))
    for each in tensors_in((result,)):
        if each.requires_grad:
            capture.note(each, (weight, refuse))
        capture.tags.set(each, UntrackedRows(getattr(function, "__name__", "a function")))
    capture.follow(function, tensors, args, keywords, result)
    return result


def _tag(
    capture: Capture, data: Tensor, weights: list[Tensor], *, among: list[Tensor] | None = None
) -> Tag:
    """The tag of data that are used with weights; refused if it is unknown."""
    if torch._C._functorch.is_functorch_wrapped_tensor(data):  # noqa: SLF001  has no other name
        raise capture.refused(
            *weights,
            why="is used within torch.vmap or torch.func",
            mend="call the layer on all examples at once",
        )
    tag = capture.tags.of(data) or OUTSIDE_BATCH
    if isinstance(tag, ExampleRows):
        return tag
    others = (capture.tags.of(each) for each in among or ())
    if isinstance(tag, OutsideBatch) and not any(
        isinstance(each, (ExampleRows, UntrackedRows)) for each in others
    ):
        raise _UntrackedRefused.of(
            capture,
            weights,
            why="gets data that were computed from no part of the batch by PyTorch's functions",
            mend="pass them as a field of the data, with examples in the first dimension; or, if "
            "they are the same for all examples, register them as a buffer of the model",
        )
    return tag


def _checked(capture: Capture, weights: list[Tensor], tag: Tag | None) -> ExampleRows:
    """The tag, if it is that of rows of examples; else raise."""
    if isinstance(tag, ExampleRows):
        return tag
    if isinstance(tag, UntrackedRows):
        raise _UntrackedRefused.of(
            capture,
            weights,
            why=f"gets data after {tag.by}, so that it is not known which row is which example's",
            mend=tag.mend or "use functions that keep each example in rows of its own",
        )
    raise capture.refused(
        *weights,
        why="gets a single example without a dimension of examples",
        mend="call the layer on all examples at once, or on slices such as data[:1]",
    )


def _over_examples(capture: Capture, function: Function, weights: list[Tensor]) -> Exception:
    name = getattr(function, "__name__", "a function")
    return capture.refused(
        *weights,
        why=f"is used by {name} on data that have examples in another dimension than the first",
        mend=KEEP_FIRST,
    )


class having:  # noqa: N801  # a context manager; one by a generator takes twice as long
    """Within, the current rule is about these rows."""

    __slots__ = ("_before", "_capture", "_rows")

    def __init__(self, capture: Capture, rows: ExampleRows) -> None:
        self._capture, self._rows = capture, rows

    def __enter__(self) -> None:
        capture, layout = self._capture, self._rows.layout
        self._before = capture.rows, capture.dim, capture.layout
        capture.rows, capture.dim = layout.length, self._rows.dim
        capture.layout = None if layout.is_plain else layout

    def __exit__(self, *_: object) -> None:
        self._capture.rows, self._capture.dim, self._capture.layout = self._before


def _without_rows(capture: Capture, function: Function, args: Args, keywords: Keywords) -> Any:
    """The function's result, without recording a use of its weights."""
    given = {id(each): capture.stand_in(each) for each in tensors_in((args, keywords))}
    return function(*_swapped(args, given), **_swapped(keywords, given))


def _swapped(values: Any, swap: dict[int, Tensor]) -> Any:  # Any: nested arguments
    return replaced(values, lambda each: swap.get(id(each), each)) if swap else values
