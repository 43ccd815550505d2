"""Refuses losses that write into the optimizer, which would apply it to the model without noise.

A learning rate, a momentum or a hook made of private rows changes the weights as much as it likes,
and a checkpoint holds it. Attributes, groups and states are compared by identity, and the state's
tensors by their bits.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from operator import is_
from typing import Any

import torch
from torch import Tensor
from torch.optim import optimizer as optimizers

from discreet.errors import Refused
from discreet.train._state._attributes import (
    Content,
    content_of,
    delete_own,
    is_of_a_library,
    own_of,
    set_own,
    slots_of,
)
from discreet.train._state._tensor_bits import TensorBits
from discreet.train._state._trials import unwrapped

_Container = dict[Any, Any] | list[Any]  # Any: settings, and the state of any optimizer

_SIMPLE = frozenset({bool, int, float, str})  # equal where their values are
_DEPTH = 4  # an attribute, a group or parameter, a name, and what it names
_EVERYWHERE = {  # hooks of all optimizers
    name: hooks for name, hooks in vars(optimizers).items() if name.startswith("_global_optimizer_")
}


class OptimizerWrites:
    """The contents of an optimizer when this is made, or when they were noted last."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = optimizer
        self._note_all()

    def note(self) -> None:
        """Take the present contents as public. If a step only set numbers and wrote into the same
        tensors, as most do, nothing is looked through again."""
        is_same = all(
            _is_same(container, copy) or _has_taken_numbers(container, copy)
            for _, container, copy in self._containers
        )
        if is_same and not self._differing_fields() and not self._differing_kinds():
            self._bits.note()
            self._contents = self._present()
        else:
            self._note_all()

    def _note_all(self) -> None:
        optimizer = self._optimizer
        self._containers: list[tuple[str, _Container, _Container]] = []  # with a name and a copy
        self._tensors: list[tuple[str, Tensor]] = []
        self._others: list[tuple[str, object]] = []  # such as objects of the user's
        inner = unwrapped(optimizer)
        self._kinds = {each: type(each) for each in (optimizer, inner)}
        parameters = (each for group in inner.param_groups for each in group["params"])
        # watched with the model, or by themselves
        self._known = {id(each) for each in (*parameters, *self._kinds)}
        self._note("a hook of all optimizers", _EVERYWHERE, _DEPTH)
        for each in self._kinds:
            self._note("an attribute", vars(each), _DEPTH)
        owners = (one for each in self._kinds for one in (each, *_classes(type(each))))
        self._fields = [(owner, _fields(owner)) for owner in owners]  # of classes, and slots
        for _, fields in self._fields:
            for name, value in fields.items():
                self._note(repr(name), value, _DEPTH - 1)
        self._bits = TensorBits([one for _, one in self._tensors])
        self._contents = self._present()

    def refuse(self) -> None:
        """Refuse other contents than before, and put back all but what was changed in place."""
        changed = self._changed()
        if not changed:
            return
        for _, container, copy in self._containers:
            if not _is_same(container, copy):
                _fill(container, copy)
        for owner, fields in self._fields:
            _put_back(owner, fields)
        for each, kind in self._kinds.items():
            if type(each) is not kind:
                each.__class__ = kind
        raise Refused(
            f"the losses wrote {changed[0]} of the optimizer while they saw data: the optimizer "
            "would apply it without noise; let schedulers set learning rates by the step alone"
        )

    def _note(self, name: str, value: Any, depth: int) -> None:  # Any: as above
        if id(value) in self._known or _is_fixed(value):
            return
        if isinstance(value, Tensor):
            self._tensors.append((name, value))
        elif isinstance(value, dict | list) and depth:
            self._containers.append((name, value, value.copy()))
            keys = value if isinstance(value, dict) else [name] * len(value)
            for key, each in zip(keys, _values(value), strict=True):
                self._note(repr(key) if isinstance(key, str) else name, each, depth - 1)
        else:
            self._others.append((name, value))

    def _present(self) -> list[Content]:
        """The contents of other objects, which identities don't show."""
        return [content_of(one, self._known) for _, one in self._others]

    def _changed(self) -> list[str]:
        """The names of what differs now."""
        replaced = [_differing(*each) for each in self._containers if not _is_same(*each[1:])]
        both = zip(self._others, self._contents, self._present(), strict=True)
        written = [name for (name, _), before, now in both if before != now]
        bits = zip(self._tensors, self._bits.written(), strict=True)
        written += [name for (name, _), is_written in bits if is_written]
        return replaced + self._differing_fields() + self._differing_kinds() + written

    def _differing_fields(self) -> list[str]:
        return [
            _differing("an attribute", now, fields)
            for owner, fields in self._fields
            if not _is_same(now := _fields(owner), fields)
        ]

    def _differing_kinds(self) -> list[str]:
        return ["the class" for one, kind in self._kinds.items() if type(one) is not kind]


@contextmanager
def refuse_optimizer_writes(optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """Refuse what the block writes into the optimizer, also if it fails."""
    before = OptimizerWrites(optimizer)
    try:
        yield
    finally:
        before.refuse()


def _classes(kind: type) -> list[type]:
    """The user's classes of an optimizer."""
    return [one for one in kind.__mro__ if one is not object and not is_of_a_library(one)]


def _fields(owner: Any) -> dict[str, Any]:  # Any: a class or an optimizer, and its attributes
    """The attributes of a class, or an optimizer's slots; its other attributes are in `vars`."""
    return own_of(owner) if isinstance(owner, type) else slots_of(owner)


def _put_back(owner: Any, before: dict[str, Any]) -> None:  # Any: as above
    now = _fields(owner)
    for name in now.keys() - before.keys():
        delete_own(owner, name)
    for name, value in before.items():
        if name not in now or now[name] is not value:
            set_own(owner, name, value)


def _is_fixed(value: object) -> bool:
    """Whether a value can't change in place."""
    if isinstance(value, tuple):
        return all(map(_is_fixed, value))
    return value is None or type(value) in _SIMPLE


def _values(container: _Container) -> Any:  # Any: an iterable of anything
    return container.values() if isinstance(container, dict) else container


def _is_same(now: _Container, before: _Container) -> bool:
    """Whether the same things are under the same keys, in the same order."""
    if len(now) != len(before):
        return False
    if all(map(is_, now, before)) and all(map(is_, _values(now), _values(before))):
        return True
    both = zip(chain(now, _values(now)), chain(before, _values(before)), strict=True)
    return all(one is other or _is_equal(one, other) for one, other in both)


def _has_taken_numbers(now: _Container, copy: _Container) -> bool:
    """Whether only values that can't change in place differ; then the copy takes them."""
    if not (isinstance(now, dict) and isinstance(copy, dict) and [*now] == [*copy]):
        return False
    differing = {key: one for key, one in now.items() if one is not copy[key]}
    are_numbers = all(_is_fixed(one) and _is_fixed(copy[key]) for key, one in differing.items())
    copy.update(differing if are_numbers else {})
    return are_numbers


def _is_equal(one: object, other: object) -> bool:
    return type(one) is type(other) and type(one) in _SIMPLE and one == other


def _differing(name: str, now: _Container, before: _Container) -> str:
    """The first key under which there is something else, or the container's own name."""
    if isinstance(now, dict) and isinstance(before, dict):
        absent = object()
        for key in dict.fromkeys((*before, *now)):
            one, other = now.get(key, absent), before.get(key, absent)
            if isinstance(key, str) and one is not other and not _is_equal(one, other):
                return repr(key)
    return name


def _fill(container: _Container, copy: _Container) -> None:
    """Give a container the contents of its copy."""
    container.clear()
    add: Callable[[Any], None] = (  # Any: the copy
        container.update if isinstance(container, dict) else container.extend
    )
    add(copy)
