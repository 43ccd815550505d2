"""The data that a run takes: tensors and arrays by name, or items by number."""

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from keyword import iskeyword
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet._arrays import IndexArray
from discreet.errors import InvalidArgument
from discreet.train._batches._collated import Collated, Microbatch, Source

Data = Source | Mapping[str, Any] | Sequence[Any]  # Any: tensors, or arrays of the same length


@dataclass(frozen=True, slots=True, repr=False)
class Invented:
    """Items that were invented for a model, in place of public examples."""

    data: Data


def microbatch_of(
    data: Data, places: IndexArray, before_each: Callable[[], None] = lambda: None
) -> Microbatch:
    """The examples in these places, as the user's loss function takes them.

    Tensors and arrays become a named tuple (``x`` and ``y`` if there are two without names). Items
    are collated as PyTorch does by default, which leaves texts in lists: these are refused.
    ``before_each`` is called before each item is read.
    """
    import torch
    from torch.utils.data import TensorDataset, default_collate

    if isinstance(data, Collated):
        return data.microbatch_of(places, before_each)
    if isinstance(data, TensorDataset):
        data = data.tensors
    if isinstance(data, Mapping):
        return _named(tuple(data), [_rows(field, places) for field in data.values()])
    if isinstance(data, tuple):
        names = ("x", "y") if len(data) == 2 else tuple(f"field_{n}" for n in range(len(data)))
        return _named(names, [_rows(field, places) for field in data])
    if isinstance(data, torch.Tensor | np.ndarray):
        return _rows(data, places)
    items = list[Any]()
    for place in places:
        before_each()
        items.append(data[int(place)])
    return _of_tensors(default_collate(items), "")


def _of_tensors(microbatch: Microbatch, name: str) -> Microbatch:
    """The same microbatch, if it holds tensors only: Python could read all else of one example."""
    import torch

    if isinstance(microbatch, Mapping):
        for key, field in microbatch.items():
            _of_tensors(field, str(key))
    elif isinstance(microbatch, tuple | list):
        for field in microbatch:
            _of_tensors(field, name)
    elif not isinstance(microbatch, torch.Tensor):
        kind = type(microbatch).__name__
        raise InvalidArgument(
            f"{name or 'an item'}: it holds a {kind}, which losses could read from one example "
            "for all: give codes as numbers, or leave it out"
        )
    return microbatch


def of_one(data: Data, size: int) -> Microbatch:
    """The first example, ``size`` times."""
    return microbatch_of(data, np.zeros(size, np.int64))


def length(data: Data) -> int:
    """The true number of examples, which is private unless it is declared."""
    if isinstance(data, Mapping):
        return len(next(iter(data.values())))
    if isinstance(data, tuple):
        return len(data[0])
    return len(data)


def of_zeros(data: Data) -> Data | None:
    """One example of zeros in the form of the data, or None if that takes an item."""
    from torch.utils.data import Subset, TensorDataset

    if isinstance(data, Subset):
        whole = of_zeros(data.dataset)  # type: ignore[arg-type]  # as all data sets
        return Subset(TensorDataset(*whole), [0]) if isinstance(whole, tuple) else None
    if isinstance(data, Collated):
        inner = of_zeros(data.data) if isinstance(data.data, TensorDataset | Subset) else None
        if isinstance(inner, tuple):
            inner = TensorDataset(*inner)
        return None if inner is None else replace(data, data=inner)  # type: ignore[arg-type]  # as above
    fields = data.tensors if isinstance(data, TensorDataset) else data
    if isinstance(fields, tuple):
        zeros = [_zeros(field) for field in fields]
        return None if any(one is None for one in zeros) else tuple(zeros)
    if isinstance(fields, Mapping):
        named = {name: _zeros(field) for name, field in fields.items()}
        return None if any(one is None for one in named.values()) else named
    alone: Data | None = _zeros(fields)
    return alone


def public(data: Data, examples: Data) -> Data:
    """Check public examples, and give them the form of the data: collated in the same way."""
    try:
        check_data(examples)
    except InvalidArgument as error:
        raise InvalidArgument(
            f"like: give public examples in the form of train_set; {error}"
        ) from None
    if length(examples) < 2:
        raise InvalidArgument(
            "like: give two public examples or more, so that one of them can be another's neighbour"
        )
    if isinstance(data, Collated) and not isinstance(examples, Collated):
        return replace(data, data=examples)  # type: ignore[arg-type]  # checked: it has items
    return examples


def check_data(data: Data, ids: npt.ArrayLike | None = None, *, has_ids: bool = False) -> None:
    """Refuse data that can't be sampled.

    Only types, names and whether lengths are equal are read: these are the same in all
    neighbouring data, and no error says a length.
    """
    given = {"ids": ids} if has_ids else {}
    if isinstance(data, Mapping | tuple):
        if data:
            fields = dict(data) if isinstance(data, Mapping) else dict(enumerate(data))
            _check_fields(fields, given)
            return
    elif hasattr(data, "__len__") and hasattr(data, "__getitem__"):
        if has_ids:
            _check_fields({"items": data}, given)
        return
    raise InvalidArgument(
        f"train_set is a {type(data).__name__}: give tensors by name, or a data set that has "
        "len() and items by number; samplers and loaders have no place in a private run, which "
        "draws its own batches"
    )


def _check_fields(fields: Mapping[Any, Any], ids: Mapping[str, Any]) -> None:  # Any: as given
    for name in fields:
        if not isinstance(name, int) and not _can_follow_a_dot(name):
            raise InvalidArgument(
                f"train_set: {name!r} can't be the name of a field, which losses take as "
                "microbatch.x; give one of letters, such as 'x'"
            )
    if len(getattr(ids.get("ids"), "shape", (1,))) != 1:
        raise InvalidArgument("ids: give one for each row, in one dimension")
    named = {**fields, **ids}
    for name, values in named.items():
        if not hasattr(values, "__len__") or not getattr(values, "shape", (1,)):
            raise InvalidArgument(
                f"train_set: {name!r} is a {type(values).__name__}: give a tensor or an array with "
                "examples in its first dimension"
            )
        if name in fields:
            _check_field(name, values)
    if len({len(values) for values in named.values()}) > 1:
        raise InvalidArgument(
            f"train_set: {', '.join(map(repr, named))} are not of one length: each has a row for "
            "each example"
        )


def _check_field(name: object, values: Any) -> None:  # Any: as given
    """Refuse tensors and arrays from which no rows can be taken as dense tensors."""
    import torch

    if isinstance(values, torch.Tensor):
        if values.layout != torch.strided or values.is_nested:
            raise InvalidArgument(f"train_set: {name!r} is sparse or nested: give a dense tensor")
        return
    dtype = getattr(values, "dtype", None)
    if dtype is not None and not (isinstance(dtype, np.dtype) and dtype.kind in "biufc"):
        raise InvalidArgument(
            f"train_set: {name!r} has dtype {dtype}: give numbers, which a tensor can hold"
        )
    if dtype is not None:
        try:
            torch.from_numpy(np.zeros(1, dtype))
        except (TypeError, ValueError):  # such as big-endian or long floats
            raise InvalidArgument(
                f"train_set: {name!r} has dtype {dtype.str}, which no tensor can hold: convert it, "
                "such as by astype(numpy.float32)"
            ) from None


def _can_follow_a_dot(name: object) -> bool:
    is_word = isinstance(name, str) and name.isidentifier() and not iskeyword(name)
    return is_word and not str(name).startswith("_")


def _zeros(field: Any) -> Any:  # Any: a tensor or an array; None of anything else
    import torch

    if isinstance(field, torch.Tensor):
        return field.new_zeros((1, *field.shape[1:]))
    if isinstance(getattr(field, "dtype", None), np.dtype):  # arrays, and columns of frames
        return np.zeros((1, *field.shape[1:]), field.dtype)
    return None


def _rows(field: Any, places: IndexArray) -> Any:  # Any: a tensor or an array
    import torch

    if isinstance(field, torch.Tensor):
        return field[torch.from_numpy(places).to(field.device)]
    return torch.from_numpy(np.asarray(field)[places])


def _named(names: tuple[str, ...], fields: list[Any]) -> Microbatch:  # Any: tensors
    return _kind(names)(*fields)


@lru_cache(maxsize=64)
def _kind(names: tuple[str, ...]) -> type[Any]:  # Any: a named tuple of these names
    return namedtuple("Part", names)  # the names are the user's
