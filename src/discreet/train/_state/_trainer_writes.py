"""Refuses what a training step writes into the Trainer of another library.

A metric or an attribute made of private rows decides when the Trainer stops, which weights it
saves, and what its callbacks and loggers show.
"""

import copy as copies
from array import array
from collections import ChainMap, UserDict, UserList, deque
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, is_dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import _disable_current_modes

from discreet.errors import Refused
from discreet.train._state._attributes import delete_own, set_own, slots_of
from discreet.train._state._checksums import Checksum, checksums

_ABSENT = object()
_SIMPLE = bool | int | float | str | None
_DEPTH = 6  # containers and dataclasses within one another
_MOST = 256  # parts of one of them, such as of a list of examples
_LARGEST_KEPT = 2**26  # bytes of a tensor that can be put back
_STATE = ("_parameters", "_buffers", "_modules")  # what files have of a module
_ARRAYS = (np.ndarray, array, bytearray)


WatchedPlace = tuple[str, dict[str, Any]]  # a name, and attributes or metrics of any kind


@contextmanager
def refuse_trainer_writes(
    places: Iterable[WatchedPlace],
    within: str,
    *,
    spoil: Callable[[], None] = lambda: None,
    known: Container[int] = (),
) -> Iterator[None]:
    """Refuse what the block writes into these dictionaries of a Trainer, and put it back; call
    ``spoil`` if something can't be put back. Objects with ``known`` identities are watched
    elsewhere."""
    with torch._C.DisableTorchFunction():  # noqa: SLF001  has no public name
        before = [(name, values, _copied(values, known)) for name, values in places]
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
                    if not all(_is_same(values[name], copy[name], restored=True) for name in copy):
                        spoil()
        if found:
            raise Refused(f"{found[0]} in {within} and would publish private data; leave it out")


def schedulers_of_fit(schedulers: Iterable[Any]) -> Iterator[WatchedPlace]:  # Any: of any class
    """The attributes of schedulers, which set the learning rate and stand in the run's file."""
    for each in schedulers:
        if hasattr(each, "__dict__"):
            yield f"the {type(each).__name__}", vars(each)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _PartsCopy:
    """A container, or an object with attributes only, and its parts when this was made."""

    own: Any  # Any: of any class
    parts: dict[Any, Any]  # Any: as it holds them


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _TensorCopy:
    """A tensor, and its version, bits and entries when this was made; no entries of a large one."""

    own: Tensor
    version: int
    checksum: Checksum
    entries: Tensor | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _ArrayCopy:
    """An array of NumPy's or Python's, or bytes, and its entries when this was made."""

    own: Any  # Any: one of these, of any type of entries
    entries: Any  # Any: as above


def _content(one: Any) -> tuple[object, ...]:  # Any: as above
    """The shape, type and bytes of an array."""
    if isinstance(one, np.ndarray):
        return one.shape, one.dtype.str, one.tobytes()
    return len(one), bytes(one)


def _copied(values: dict[str, Any], known: Container[int] = ()) -> dict[str, Any]:  # Any: as above
    seen = dict[int, int]()
    return {name: _copy(value, _DEPTH, seen, known) for name, value in values.items()}


def _copy(
    value: Any,  # Any: as above
    depth: int,
    seen: dict[int, int],
    known: Container[int],
) -> Any:
    """A copy to compare with. The parts of a very large container are compared without their own
    parts. Containers that were ``seen`` at this depth or more are copied there already."""
    if id(value) in known:
        return value
    if isinstance(value, Tensor):
        entries = value.detach().clone()
        is_small = value.layout is torch.strided and value.nbytes <= _LARGEST_KEPT
        version, (checksum,) = value._version, checksums([entries])  # noqa: SLF001  has no public name
        return _TensorCopy(value, version, checksum, entries if is_small else None)
    if isinstance(value, _ARRAYS) and not (isinstance(value, np.ndarray) and value.dtype.hasobject):
        return _ArrayCopy(value, copies.copy(value))
    parts = _parts(value) if depth > seen.get(id(value), 0) else None
    if parts is None:
        return value
    seen[id(value)] = depth
    inner = depth - 1 if len(parts) <= _MOST else 0
    inner_copies = {name: _copy(part, inner, seen, known) for name, part in parts.items()}
    return _PartsCopy(value, inner_copies)


def _parts(value: Any) -> dict[Any, Any] | None:  # Any: as above
    if isinstance(value, list | tuple | deque):
        return dict(enumerate(value))
    if isinstance(value, dict):
        return value
    if isinstance(value, set):
        return {id(each): each for each in value}
    if isinstance(value, np.ndarray):  # of objects
        return dict(enumerate(value.ravel().tolist()))
    if isinstance(value, nn.Module):
        is_metric = any(kind.__module__.startswith("torchmetrics") for kind in type(value).__mro__)
        own = vars(value)
        return own if is_metric else {name: own[name] for name in _STATE}
    if isinstance(value, partial):  # as schedules of Transformers are
        return {"args": value.args, "keywords": value.keywords}
    is_plain = is_dataclass(value) and not isinstance(value, type)
    if is_plain or isinstance(value, SimpleNamespace | UserDict | UserList | ChainMap):
        return vars(value) if hasattr(value, "__dict__") else slots_of(value)
    return None


def _is_same(now: Any, copy: Any, *, restored: bool = False) -> bool:  # Any: as above
    """Whether nothing was written, or it was ``restored``; reading Trainer's metrics makes new
    tensors of equal numbers."""
    match copy:
        case _PartsCopy(own, parts):
            here = (_parts(now) if now is own else None) or {}
            is_whole = now is own and here.keys() == parts.keys()
            both = ((here[name], parts[name]) for name in parts) if is_whole else ()
            return is_whole and all(_is_same(*each, restored=restored) for each in both)
        case _TensorCopy(own, version, checksum):
            if now is own and own._version != version and not restored:  # noqa: SLF001  as above
                return False
            is_like = isinstance(now, Tensor) and now.shape == own.shape and now.dtype == own.dtype
            return is_like and checksums([now.clone()]) == [checksum]
        case _ArrayCopy(own, entries):
            return now is own and _content(own) == _content(entries)
    is_simple = isinstance(now, _SIMPLE) and type(now) is type(copy)
    return now is copy or (is_simple and repr(now) == repr(copy))


def _put_back(values: dict[str, Any], before: dict[str, Any]) -> None:  # Any: as above
    originals = {name: _original(copy) for name, copy in before.items()}
    values.clear()
    values.update(originals)


def _original(copy: Any) -> Any:  # Any: as above
    """The value that was copied, with its parts and entries of then, as far as it takes them."""
    match copy:
        case _PartsCopy(own, parts):
            _fill(own, {name: _original(part) for name, part in parts.items()})
            return own
        case _TensorCopy(own, _, _, Tensor() as entries):
            # it may have another shape now, or entries that share memory
            with suppress(RuntimeError), torch.no_grad():
                own.copy_(entries)
            return own
        case _ArrayCopy(own, entries):
            with suppress(ValueError, BufferError):  # as above
                own[... if isinstance(own, np.ndarray) else slice(None)] = entries
            return own
        case _TensorCopy(own):
            return own
    return copy


def _fill(own: Any, parts: dict[Any, Any]) -> None:  # Any: as above
    """Give a container or an object its parts."""
    match own:
        case list():
            own[:] = parts.values()
        case deque():
            own.clear()
            own.extend(parts.values())
        case set():
            own.clear()
            own.update(parts.values())
        case dict():
            own.clear()
            own.update(parts)
        case np.ndarray():
            for place, part in parts.items():
                own.flat[place] = part
        case tuple() | partial():
            pass  # these can't change themselves
        case _:
            for name in (_parts(own) or {}).keys() - parts.keys():
                delete_own(own, name)
            with suppress(AttributeError):  # of a frozen object
                for name, part in parts.items():
                    set_own(own, name, part)
