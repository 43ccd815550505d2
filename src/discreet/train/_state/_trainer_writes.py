"""Refuses what a training step writes into the Trainer of another library.

A metric or an attribute made of private rows decides when the Trainer stops, which weights it
saves, and what its callbacks and loggers show.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from discreet.errors import Refused
from discreet.train._state._checksums import Checksum, checksums

_ABSENT = object()
_SIMPLE = bool | int | float | str | None


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
class _ListCopy:
    """A list, and its entries when this was made."""

    own: list[Any]  # Any: as it holds them
    entries: list[Any]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _TensorCopy:
    """A tensor, and its version and bits when this was made."""

    own: Tensor
    version: int
    checksum: Checksum


def _copied(values: dict[str, Any]) -> dict[str, Any]:  # Any: as above
    return {name: _copy(value) for name, value in values.items()}


def _copy(value: Any) -> Any:  # Any: as above
    if isinstance(value, list):
        return _ListCopy(value, [*map(_copy, value)])
    if isinstance(value, Tensor):
        return _TensorCopy(value, value._version, *checksums([value.clone()]))  # noqa: SLF001  has no public name
    return value


def _is_same(now: Any, copy: Any) -> bool:  # Any: as above
    """Whether nothing was written; reading Trainer's metrics makes new tensors of equal numbers."""
    match copy:
        case _ListCopy(own, entries):
            is_long = now is own and len(own) == len(entries)
            return is_long and all(map(_is_same, own, entries))
        case _TensorCopy(own, version, checksum):
            if now is own and own._version != version:  # noqa: SLF001  as above
                return False
            is_like = isinstance(now, Tensor) and now.shape == own.shape and now.dtype == own.dtype
            return is_like and checksums([now.clone()]) == [checksum]
    is_simple = isinstance(now, _SIMPLE) and type(now) is type(copy)
    return now is copy or (is_simple and repr(now) == repr(copy))


def _put_back(values: dict[str, Any], copies: dict[str, Any]) -> None:  # Any: as above
    values.clear()
    for name, copy in copies.items():
        if isinstance(copy, _ListCopy):
            copy.own[:] = map(_original, copy.entries)
        values[name] = _original(copy)


def _original(copy: Any) -> Any:  # Any: as above
    return copy.own if isinstance(copy, _ListCopy | _TensorCopy) else copy
