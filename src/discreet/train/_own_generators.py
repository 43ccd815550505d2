"""Refuses data sets and collate functions that have random generators of their own.

One generator for all items is a public stream if its seed is known, and one more record shifts the
numbers of all items behind it. Each item gets fresh numbers from the global generators instead.
"""

import random
from collections.abc import Iterator
from functools import partial
from itertools import islice
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from numpy.random import mtrand

from discreet.errors import Refused
from discreet.train._collated import Collated

_DEPTH = 4  # of data sets within data sets, and of their transforms
_MOST = 100  # parts of one list


def refuse_own_generators(data: Any) -> None:  # Any: any data set
    """Look through attributes, closures and short lists; no item is read.

    Not found: generators in global variables, and those that are made later.
    """
    seen = set[int]()
    parts = _attributes(data)
    if isinstance(data, Collated):
        parts = [*((f".data{name}", one) for name, one in _attributes(data.data))]
        parts.append((".collate", data.collate))
    for name, one in parts:
        _refuse(f"train_set{name}", one, _DEPTH, seen)


def _attributes(one: Any) -> list[tuple[str, Any]]:  # Any: as above
    return [(f".{name}", part) for name, part in getattr(one, "__dict__", {}).items()]


def _refuse(name: str, one: Any, depth: int, seen: set[int]) -> None:  # Any: any object
    if id(one) in seen:
        return
    seen.add(id(one))
    if _is_own_generator(one):
        raise Refused(
            f"{name} is a generator for all items, so that a record changes the random numbers of "
            "those behind it; draw from the global generators of PyTorch, NumPy or Python: secure "
            "bits seed them anew for each item"
        )
    if depth:
        for inner, part in _inside(one):
            _refuse(f"{name}{inner}", part, depth - 1, seen)


def _is_own_generator(one: object) -> bool:
    import torch

    kinds = (
        *(torch.Generator, random.Random, np.random.RandomState),
        *(np.random.Generator, np.random.BitGenerator),
    )
    own = (torch.default_generator, random._inst, mtrand._rand)  # noqa: SLF001  have no public names
    is_global = any(one is other for other in own)
    return isinstance(one, kinds) and not is_global and not isinstance(one, random.SystemRandom)


def _inside(one: Any) -> Iterator[tuple[str, Any]]:  # Any: as above
    """The parts of an object, each with a name to find it by."""
    import torch

    match one:
        case partial():
            yield ".func", one.func
            yield from ((f".args[{n}]", part) for n, part in enumerate(one.args))
            yield from ((f".{name}", part) for name, part in one.keywords.items())
        case MethodType():
            yield ".__self__", one.__self__
        case FunctionType():
            names, cells = one.__code__.co_freevars, one.__closure__ or ()
            filled = (pair for pair in zip(names, cells, strict=True) if pair[1] != CellType())
            yield from ((f".{name}", cell.cell_contents) for name, cell in filled)
        case list() | tuple() if type(one) in (list, tuple):
            yield from ((f"[{n}]", part) for n, part in enumerate(one[:_MOST]))
        case dict() if type(one) is dict:
            yield from ((f"[{key!r}]", part) for key, part in islice(one.items(), _MOST))
        case torch.Tensor() | np.ndarray() | torch.nn.Module() | type() | ModuleType():
            return
        case _:
            yield from _attributes(one)
