"""Refuses what a training step writes into the Trainer of another library.

A metric or an attribute made of private rows decides when the Trainer stops, which weights it
saves, and what its callbacks and loggers show.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from discreet.errors import Refused
from discreet.train._state._checksums import Checksum, checksums

_ABSENT = object()
_SIMPLE = bool | int | float | str | None
_DEPTH = 6  # containers and dataclasses within one another
_MOST = 256  # parts of one of them, such as of a list of examples


WatchedPlace = tuple[str, dict[str, Any]]  # a name, and attributes or metrics of any kind


@contextmanager
def refuse_trainer_writes(places: Iterable[WatchedPlace], within: str) -> Iterator[None]:
    """Refuse what the block writes into these dictionaries of a Trainer, and put it back."""
    with torch._C.DisableTorchFunction():  # noqa: SLF001  has no public name
        before = [(name, values, _copied(values)) for name, values in places]
    try:
        yield
    finally:
        with torch._C.DisableTorchFunction(), _disable_current_modes():  # noqa: SLF001  as above
            found = []
            for place, values, copy in before:
                differ = [
                    name
                    for name in values | copy
                    if not _is_same(values.get(name, _ABSENT), copy.get(name, _ABSENT))
                ]
                if differ:
                    found.append(f"{differ[0]!r} was written into {place}")
                    _put_back(values, copy)
        if found:
            raise Refused(f"{found[0]} in {within} and would publish private data; leave it out")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _PartsCopy:
    """A container, or an object with attributes only, and its parts when this was made."""

    own: Any  # Any: of any class
    parts: dict[Any, Any]  # Any: as it holds them


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _TensorCopy:
    """A tensor, and its version and bits when this was made."""

    own: Tensor
    version: int
    checksum: Checksum


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _ArrayCopy:
    """An array of NumPy's, and its content when this was made."""

    own: npt.NDArray[Any]  # Any: of any type
    content: object


def _content(array: npt.NDArray[Any]) -> object:  # Any: as above
    """The shape, type and bytes of an array; its objects are compared by identity."""
    return array.shape, array.dtype.str, array.tobytes()


def _copied(values: dict[str, Any]) -> dict[str, Any]:  # Any: as above
    seen = dict[int, int]()
    return {name: _copy(value, _DEPTH, seen) for name, value in values.items()}


def _copy(value: Any, depth: int, seen: dict[int, int]) -> Any:  # Any: as above
    """A copy to compare with. The parts of a very large container are compared without their own
    parts. Containers that were ``seen`` at this depth or more are copied there already."""
    if isinstance(value, Tensor):
        return _TensorCopy(value, value._version, *checksums([value.clone()]))  # noqa: SLF001  has no public name
    if isinstance(value, np.ndarray):
        return _ArrayCopy(value, _content(value))
    parts = _parts(value) if depth > seen.get(id(value), 0) else None
    if parts is None:
        return value
    seen[id(value)] = depth
    inner = depth - 1 if len(parts) <= _MOST else 0
    return _PartsCopy(value, {name: _copy(part, inner, seen) for name, part in parts.items()})


def _parts(value: Any) -> dict[Any, Any] | None:  # Any: as above
    if isinstance(value, list | tuple | deque):
        return dict(enumerate(value))
    if isinstance(value, dict):
        return value
    if isinstance(value, set):
        return {id(each): each for each in value}
    if isinstance(value, partial):  # as schedules of Transformers are
        return {"args": value.args, "keywords": value.keywords}
    is_plain = is_dataclass(value) and not isinstance(value, type)
    is_plain |= isinstance(value, SimpleNamespace)
    return vars(value) if is_plain and hasattr(value, "__dict__") else None


def _is_same(now: Any, copy: Any) -> bool:  # Any: as above
    """Whether nothing was written; reading Trainer's metrics makes new tensors of equal numbers."""
    match copy:
        case _PartsCopy(own, parts):
            here = (_parts(now) if now is own else None) or {}
            is_whole = now is own and here.keys() == parts.keys()
            return is_whole and all(_is_same(here[name], parts[name]) for name in parts)
        case _TensorCopy(own, version, checksum):
            if now is own and own._version != version:  # noqa: SLF001  as above
                return False
            is_like = isinstance(now, Tensor) and now.shape == own.shape and now.dtype == own.dtype
            return is_like and checksums([now.clone()]) == [checksum]
        case _ArrayCopy(own, content):
            return now is own and _content(own) == content
    is_simple = isinstance(now, _SIMPLE) and type(now) is type(copy)
    return now is copy or (is_simple and repr(now) == repr(copy))


def _put_back(values: dict[str, Any], copies: dict[str, Any]) -> None:  # Any: as above
    originals = {name: _original(copy) for name, copy in copies.items()}
    values.clear()
    values.update(originals)


def _original(copy: Any) -> Any:  # Any: as above
    """The value that was copied, with its parts of then."""
    if isinstance(copy, _PartsCopy):
        parts = [*map(_original, copy.parts.values())]
        if isinstance(copy.own, list):
            copy.own[:] = parts
        elif isinstance(copy.own, deque | set):
            copy.own.clear()
            (copy.own.extend if isinstance(copy.own, deque) else copy.own.update)(parts)
        elif not isinstance(copy.own, tuple | partial):  # which can't change themselves
            held = copy.own if isinstance(copy.own, dict) else vars(copy.own)
            _put_back(held, copy.parts)
        return copy.own
    return copy.own if isinstance(copy, _TensorCopy | _ArrayCopy) else copy
