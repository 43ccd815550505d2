"""Refuses data sets and collate functions with random generators, or other states, of their own.

One generator for all items is a public stream if its seed is known, and one more record shifts the
numbers of all items behind it. So does whatever else counts the items that were read. Each item
gets fresh numbers from the global generators instead.
"""

import random
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import repeat
from typing import Any

import numpy as np
from numpy.random import mtrand

from discreet.errors import Refused
from discreet.train._randomness._held_draws import seed_numbers
from discreet.train._randomness._undisturbed import draws_restored
from discreet.train._state._attributes import content_of
from discreet.train._state._reachable import Reached, reached_from

_MOST = 1 << 16  # entries of a tensor or an array that is compared
_ITERATORS = frozenset({"builtins", "itertools"})  # modules of iterators that only go on


def refuse_own_generators(data: Any, name: str = "train_set") -> None:  # Any: any data set
    """Look through all that items can reach (`reached_from`); no item is read.

    Tensors and arrays by name have no code, so that nothing is looked at.
    """
    for one in _states(name, data):
        if _is_own_generator(one.value):
            raise Refused(
                f"{one.name} is a generator for all items, so that a record changes the random "
                "numbers of those behind it; draw from the global generators of PyTorch, NumPy or "
                "Python: secure bits seed them anew for each item"
            )
        if _is_iterator(one.value) and not one.is_librarys:
            raise Refused(
                f"{one.name} is an iterator for all items, so that a record changes what those "
                "behind it get; compute each item from its own record"
            )


def refuse_counters(data: Any, read: Callable[[], object], name: str) -> None:  # Any: as above
    """Refuse numbers that change from item to item; ``read`` reads the same public item."""
    import torch

    found = list[dict[str, object]]()
    with draws_restored():
        for _ in range(2):
            torch.manual_seed(0)
            seed_numbers(0)
            read()
            found.append(_numbers(name, data))
    before, after = found
    for key in before.keys() & after.keys():
        if before[key] != after[key]:
            raise Refused(
                f"{key} changes whenever an item is read, so that a record may change those behind "
                "it; compute each item from its own record, and keep no count of them"
            )


def _numbers(name: str, data: Any) -> dict[str, object]:  # Any: as above
    """Numbers, sizes of collections, and contents of small tensors and arrays."""
    found = dict[str, object]()
    for one in _states(name, data):
        if not one.is_librarys and (number := _number(one.value)) is not None:
            found.setdefault(one.name, number)
    return found


def _number(value: object) -> object:
    import torch

    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, dict | list | set | deque | bytearray):
        return len(value)
    if isinstance(value, torch.Tensor) and value.numel() <= _MOST:
        return content_of(value, set())
    if isinstance(value, np.ndarray) and value.size <= _MOST:
        return content_of(value, set())
    return None


def _states(name: str, data: Any) -> Iterator[Reached]:  # Any: as above
    import torch

    if isinstance(data, Mapping | tuple | torch.Tensor | np.ndarray):
        return iter(())
    return reached_from(name, data)


def _is_own_generator(one: object) -> bool:
    import torch

    kinds = (
        *(torch.Generator, random.Random, np.random.RandomState),
        *(np.random.Generator, np.random.BitGenerator),
    )
    own = (torch.default_generator, random._inst, mtrand._rand)  # noqa: SLF001  have no public names
    is_global = any(one is other for other in own)
    return isinstance(one, kinds) and not is_global and not isinstance(one, random.SystemRandom)


def _is_iterator(one: object) -> bool:
    has_next = hasattr(type(one), "__next__") and not isinstance(one, repeat)
    return has_next and type(one).__module__ in _ITERATORS
