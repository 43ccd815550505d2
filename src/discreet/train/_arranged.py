"""Calls in which data meet weights: rows of data are arranged as the function's rule has them.

A rule has its rows in the first dimension, whoever they belong to, and makes pieces of rows. Where
row i is not example i's, the pieces are regrouped into those of examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from discreet.errors import Refused
from discreet.train import _flow
from discreet.train._tags import Lost, Outside, Rows, Tag, merged

if TYPE_CHECKING:
    from discreet.train._capture import Args, Capture, Keywords


class _Unknown(Refused):
    """Nobody knows whose rows are."""

    @staticmethod
    def of(capture: Capture, weights: list[Tensor], *, why: str, mend: str) -> _Unknown:
        """As other refusals name a layer, what is wrong with it and what to do."""
        return _Unknown(str(capture.refused(*weights, why=why, mend=mend)))


Function = Callable[..., Any]  # Any: what functions of PyTorch's take and give
KEEP_FIRST = (
    "keep examples in the first dimension, such as (examples, time, features), or set "
    "batch_first=True"
)


def ruled(  # noqa: PLR0917  # what a call is made of
    capture: Capture, function: Function, args: Args, keywords: Keywords, tensors: list[Tensor]
) -> Any:
    """What the function returns, by its rule; and whose its parts are is noted."""
    weights = [each for each in tensors if capture.is_weight(each)]
    data = [each for each in tensors if not capture.is_shared(each)]
    rule = capture.rules.of.get(function, capture.rules.otherwise)
    if not weights or not data:
        result = rule(capture, function, args, keywords)
        capture.follow(function, tensors, args, keywords, result)
        return result
    try:
        rows, turned = _rows(capture, function, args, keywords, data, weights)
    except _Unknown as error:
        return _refused_if_used(capture, function, args, keywords, tensors, error)
    if turned is None:
        rule, turned = capture.rules.otherwise, {}
    given = tuple(_swapped(args, turned)), _swapped(keywords, turned)
    with having(capture, rows):
        if capture.rows:
            result = rule(capture, function, *given)
        else:
            result = _without_rows(capture, function, *given)
    if turned and rows.dim:
        result = result.movedim(0, rows.dim)
    if _flow.is_known(function):
        capture.follow(function, tensors, args, keywords, result)
    else:
        for each in _flow.tensors((result,)):
            capture.tags.set(each, Rows(0, rows.layout))
    return result


def _rows(  # noqa: PLR0917  # as above
    capture: Capture,
    function: Function,
    args: Args,
    keywords: Keywords,
    data: list[Tensor],
    weights: list[Tensor],
) -> tuple[Rows, dict[int, Tensor] | None]:
    """Along which dimension rows are; and data that have it first now, by identity. None of these
    if only the rule for all others can go along other dimensions."""
    rules = capture.rules
    if function in rules.broadcast:
        rank = max(each.dim() for each in _flow.tensors((args, keywords)))
        tags = [(_tag(capture, each, weights, among=data), each.dim()) for each in data]
        found = _checked(capture, weights, merged(tags, rank))
        return found.at(found.dim - rank), {}
    if function in rules.features and len(data) == 1:
        name, place, number = rules.features[function]
        one = args[place] if len(args) > place else keywords.get(name)
        if one is data[0]:
            found = _checked(capture, weights, _tag(capture, one, weights))
            if found.dim >= one.dim() - number(args, keywords):
                raise _over_examples(capture, function, weights)
            return found, {id(one): one.movedim(found.dim, 0)} if found.dim else {}
    where = rules.elsewhere.get(function)
    places = [(each, 0) for each in data] if where is None else where(args, keywords)
    is_free = where is None and (function not in rules.of or function in rules.products)
    tags, is_first = [], True
    for each, dim in places:
        if not capture.is_shared(each):
            tag = _tag(capture, each, weights)
            if isinstance(tag, Rows) and tag.dim != dim:
                if not (is_free and _flow.is_known(function)):
                    raise _over_examples(capture, function, weights)
                is_first = False
            tags.append((tag.at(0) if isinstance(tag, Rows) else tag, 0))
    return _checked(capture, weights, merged(tags, 0)), {} if is_first else None


def _refused_if_used(  # noqa: PLR0917  # as above
    capture: Capture,
    function: Function,
    args: Args,
    keywords: Keywords,
    tensors: list[Tensor],
    error: Refused,
) -> Any:
    """What the function returns; refused once a gradient comes through it."""

    def refuse(_: Tensor) -> Any:
        raise error

    result = _without_rows(capture, function, args, keywords)
    weight = next(each for each in tensors if capture.is_weight(each))
    for each in _flow.tensors((result,)):
        if each.requires_grad:
            capture.note(each, (weight, refuse))
        capture.tags.set(each, Lost(getattr(function, "__name__", "a function")))
    capture.follow(function, tensors, args, keywords, result)
    return result


def _tag(
    capture: Capture, data: Tensor, weights: list[Tensor], *, among: list[Tensor] | None = None
) -> Tag:
    """Of data that meet weights; refused where nobody knows."""
    if torch._C._functorch.is_functorch_wrapped_tensor(data):  # noqa: SLF001  has no other name
        raise capture.refused(
            *weights,
            why="is used within torch.vmap or torch.func",
            mend="call the layer on all examples at once",
        )
    tag = capture.tags.of(data) or Outside()
    others = (capture.tags.of(each) for each in among or ())
    if isinstance(tag, Outside) and not any(isinstance(each, (Rows, Lost)) for each in others):
        raise _Unknown.of(
            capture,
            weights,
            why="gets data that PyTorch's functions made of no part of the batch",
            mend="give them as a field of the data, with examples in the first dimension; or, if "
            "they are the same for all examples, register them as a buffer of the model",
        )
    return tag


def _checked(capture: Capture, weights: list[Tensor], tag: Tag | None) -> Rows:
    """Rows of examples, or a refusal."""
    if isinstance(tag, Rows):
        return tag
    if isinstance(tag, Lost):
        raise _Unknown.of(
            capture,
            weights,
            why=f"gets data after {tag.by}, so that nobody knows which rows are whose",
            mend="use functions that leave each example its own rows",
        )
    raise capture.refused(
        *weights,
        why="gets one example without the dimension of examples",
        mend="call the layer on all examples at once, or on slices such as data[:1]",
    )


def _over_examples(capture: Capture, function: Function, weights: list[Tensor]) -> Exception:
    name = getattr(function, "__name__", "a function")
    return capture.refused(
        *weights,
        why=f"is used by {name} on data that have examples in another dimension than the first",
        mend=KEEP_FIRST,
    )


@contextmanager
def having(capture: Capture, rows: Rows) -> Iterator[None]:
    """Within, rules have these rows before them."""
    before = capture.rows, capture.dim, capture.layout
    capture.rows, capture.dim = rows.layout.length, rows.dim
    capture.layout = None if rows.layout.is_plain else rows.layout
    try:
        yield
    finally:
        capture.rows, capture.dim, capture.layout = before


def _without_rows(capture: Capture, function: Function, args: Args, keywords: Keywords) -> Any:
    """What the function returns of no rows at all, after the rule's own refusals."""
    given = {id(each): capture.stand_in(each) for each in _flow.tensors((args, keywords))}
    return function(*_swapped(args, given), **_swapped(keywords, given))


def _swapped(values: Any, swap: dict[int, Tensor]) -> Any:  # Any: nested arguments
    if not swap:
        return values
    if isinstance(values, Tensor):
        return swap.get(id(values), values)
    if isinstance(values, dict):
        return {key: _swapped(value, swap) for key, value in values.items()}
    if isinstance(values, (list, tuple)) and not hasattr(values, "_fields"):
        return type(values)([_swapped(value, swap) for value in values])
    return values
