"""Finds changed attributes of a model: of modules, parameters, buffers, classes, and its state.

A forward pass, or a hook, that writes a mean of its rows into `self.mean`, into an attribute of a
weight, or into the value that `get_extra_state` returns, puts private data into the model without
noise. Values are compared by content, so that a cache may be computed again. Not found: objects of
other libraries that change in place, and variables outside of the model.
"""

from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count
from types import BuiltinFunctionType, FunctionType, MemberDescriptorType, MethodType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import ParametrizationList

from discreet.train._state._checksums import checksums

AttributePlace = tuple[int, str]  # the identity of an attribute's owner, and the attribute's name
Content = Any  # numbers, texts and nested tuples of them, which are equal where contents are

_PLAIN = frozenset(vars(nn.Module())) - {"training"}  # hooks, parameters, buffers, modules
_REGISTRIES = _PLAIN - {"_buffers", "_non_persistent_buffers_set"}  # `Buffers` watches these
_SIMPLE = frozenset({bool, int, str, type(None)})  # equal where they are the same
_SHOWN = (int, float, complex, str, bytes, bytearray, array, count)  # their texts show contents
_CONTAINERS = (Mapping, list, tuple, deque, set, frozenset)
_HOOKS = ("_backward_hooks", "_post_accumulate_grad_hooks")  # of tensors
_DEPTH = 8  # containers within containers
_LIBRARIES = frozenset({"accelerate", "lightning", "peft", "torch", "torchmetrics", "transformers"})
_ABSENT = object()


class Attributes:
    """The contents of a model's parameters, attributes and state when this is made."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        tree = _Tree.of(model)
        self._owners = [*_owners(tree)]
        own = [own_of(owner) for owner in self._owners]
        self._values = {id(owner): each for owner, each in zip(self._owners, own, strict=True)}
        self._kinds = [(owner, type(owner)) for owner in self._owners]
        modules = [one for one in self._owners if isinstance(one, nn.Module)]
        self._registries = {id(one): _copies(one) for one in modules}
        self.has_derived = any(_derived(one) for one in modules)
        self._before = _contents(tree, self._owners, own)
        named = tree.parameters.items()
        self._versions = [(name, one, one._version) for name, one in named]  # noqa: SLF001  # has no public name

    def written(self) -> list[str]:
        """The names of parameters that were written since, whatever is in them now."""
        return [name for name, one, version in self._versions if one._version != version]  # noqa: SLF001  # as above

    def changed(self) -> list[str]:
        """The names of all contents that differ now."""
        tree, absent = _Tree.of(self._model), object()
        owners = [*_owners(tree)]
        before, now = self._before, _contents(tree, owners, map(own_of, owners))
        keys = dict.fromkeys([*before, *now])
        changed = [key for key in keys if before.get(key, absent) != now.get(key, absent)]
        if not changed:
            return []
        labels = _labels(self._model)
        known = {id(owner): labels.get(id(owner)) for owner in (*self._owners, *owners)}
        return [key if isinstance(key, str) else _name(known[key[0]], key[1]) for key in changed]

    def put_back(self) -> None:
        """Restore attributes and classes that were replaced; changes in place stay."""
        for owner, kind in self._kinds:
            if type(owner) is not kind:
                owner.__class__ = kind
        for module in [*self._model.modules()]:
            if (copies := self._registries.get(id(module))) is not None:
                _put_back_registries(module, copies)
        now_there = _owners(_Tree.of(self._model))
        for owner in {id(one): one for one in (*self._owners, *now_there)}.values():
            before, now = self._values.get(id(owner), {}), own_of(owner)
            for name in now.keys() - before.keys():
                delete_own(owner, name)
            for name, value in before.items():
                if name not in now or now[name] is not value:
                    set_own(owner, name, value)


@dataclass(frozen=True, slots=True)
class _Tree:
    """A model's modules, parameters and buffers, each once, found in one walk."""

    model: nn.Module
    modules: list[nn.Module]
    parameters: dict[str, Tensor]  # by name, as those that follow
    buffers: dict[str, Tensor]

    @staticmethod
    def of(model: nn.Module) -> "_Tree":
        """Faster than PyTorch's own walks, of which each would need one of its own."""
        modules = dict[int, nn.Module]()
        parameters, buffers = dict[int, tuple[str, Tensor]](), dict[int, tuple[str, Tensor]]()
        waiting: list[tuple[str, nn.Module | None]] = [("", model)]
        while waiting:
            prefix, module = waiting.pop()
            if module is None or id(module) in modules:
                continue
            modules[id(module)] = module
            own = vars(module)
            for found, held in ((parameters, own["_parameters"]), (buffers, own["_buffers"])):
                for name, one in held.items():
                    if one is not None:
                        found.setdefault(id(one), (prefix + name, one))
            inner = [(f"{prefix}{name}.", one) for name, one in own["_modules"].items()]
            waiting.extend(reversed(inner))
        return _Tree(model, [*modules.values()], dict(parameters.values()), dict(buffers.values()))


def _owners(tree: _Tree) -> Iterator[Any]:  # Any: modules, tensors and classes
    """All that belongs to a model and may have attributes."""
    yield from tree.modules
    tensors = (*tree.parameters.values(), *tree.buffers.values())
    yield from (one for one in tensors if one.__dict__)
    classes = dict.fromkeys(base for kind in {*map(type, tree.modules)} for base in kind.__mro__)
    yield from (one for one in classes if one is not object and not is_of_a_library(one))


def is_of_a_library(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in _LIBRARIES


def own_of(owner: Any) -> dict[str, Any]:  # Any: as above, and attributes of the user's own kinds
    """The owner's attributes, without those that Python or PyTorch register things in."""
    if isinstance(owner, type):
        return {name: value for name, value in vars(owner).items() if name[:2] != "__"}
    if isinstance(owner, nn.Module):
        own = {name: value for name, value in vars(owner).items() if name not in _PLAIN}
        return own | slots_of(owner)
    return dict(getattr(owner, "__dict__", {}))


def slots_of(owner: Any) -> dict[str, Any]:  # Any: any object, and values of any kind
    """The values of an object's slots, by the slots' names."""
    kinds = [kind for kind in type(owner).__mro__ if "__slots__" in vars(kind)]
    found = {
        name: getattr(owner, name, _ABSENT)
        for kind in kinds
        for name, slot in vars(kind).items()
        if isinstance(slot, MemberDescriptorType)
    }
    return {name: value for name, value in found.items() if value is not _ABSENT}


def set_own(owner: Any, name: str, value: Any) -> None:  # Any: as above
    """Set an attribute of a class, a slot or an entry of the object's dictionary."""
    if isinstance(owner, type) or _is_slot(owner, name):
        setattr(owner, name, value)
    else:
        vars(owner)[name] = value


def delete_own(owner: Any, name: str) -> None:  # Any: as above
    """Delete an attribute of a class, a slot or an entry of the object's dictionary."""
    if isinstance(owner, type) or _is_slot(owner, name):
        delattr(owner, name)
    else:
        del vars(owner)[name]


def _is_slot(owner: Any, name: str) -> bool:  # Any: as above
    return isinstance(getattr(type(owner), name, None), MemberDescriptorType)


def _copies(module: nn.Module) -> dict[str, Any]:  # Any: dictionaries, sets and flags
    """Copies of all registries that have entries."""
    found = _filled(module)
    return {name: one.copy() if isinstance(one, dict | set) else one for name, one in found}


def _filled(module: nn.Module) -> list[tuple[str, Any]]:  # Any: as above
    return [(name, one) for name, one in vars(module).items() if name in _REGISTRIES and one]


def _put_back_registries(module: nn.Module, copies: dict[str, Any]) -> None:  # Any: as above
    """The same entries as before."""
    for name in _REGISTRIES & vars(module).keys():
        now, before = vars(module)[name], copies.get(name, {})
        if not isinstance(now, dict | set):
            vars(module)[name] = copies.get(name, now)
        elif _registered(now) != _registered(before):
            now.clear()
            now.update(before)


def _registered(registry: Any) -> Content:  # Any: as above
    """The names and identities of what is registered."""
    if isinstance(registry, dict):
        return tuple((key, id(value)) for key, value in registry.items())
    return frozenset(registry) if isinstance(registry, set) else repr(registry)


def _contents(
    tree: _Tree, owners: list[Any], own: Iterable[dict[str, Any]]
) -> dict[AttributePlace | str, Content]:  # Any: as above
    """Contents by owner and name, without buffers: `Buffers` watches these."""
    model, modules, parameters = tree.model, tree.modules, tree.parameters
    known = {id(one) for one in (*parameters.values(), *tree.buffers.values())}
    content = partial(_content, known={*map(id, modules)} | known, depth=_DEPTH)
    found: dict[AttributePlace | str, Content] = {}
    for owner, values in zip(owners, own, strict=True):
        found[id(owner), "__class__"] = id(type(owner))
        derived = _derived(owner)
        for name, value in values.items():
            if name not in derived:
                found[id(owner), name] = content(value)
    for place, registry in _places_of_registries(tree):
        found[place] = _registered(registry)
        if isinstance(registry, dict):
            found[place] = found[place], content([*registry.values()])
    found |= zip(parameters, checksums([*parameters.values()]), strict=True)
    if _has_state_of_its_own(modules):
        for name, value in model.state_dict(keep_vars=True).items():
            if id(value) not in known:
                found[name] = content(value)
    return found


def _places_of_registries(
    tree: _Tree,
) -> Iterator[tuple[AttributePlace | str, Any]]:  # Any: dictionaries, sets and flags
    """All registries that have entries, of modules and of tensors, by their places."""
    for module in tree.modules:
        for name, registry in _filled(module):
            yield (id(module), name), registry
    for name, one in (*tree.parameters.items(), *tree.buffers.items()):
        for kind in _HOOKS:
            if hooks := getattr(one, kind, None):
                yield f"{name}.{kind}", hooks


def _derived(owner: Any) -> set[str]:  # Any: as above
    """Weights that PyTorch's own hooks make of parameters before each call, as `weight_norm`."""
    if not isinstance(owner, nn.Module) or not owner._forward_pre_hooks:  # noqa: SLF001  # no public name
        return set()
    hooks = owner._forward_pre_hooks.values()  # noqa: SLF001  # as above
    own = (hook for hook in hooks if type(hook).__module__.startswith("torch.nn.utils."))
    names = (getattr(hook, "name", getattr(hook, "_tensor_name", None)) for hook in own)
    return {name for name in names if isinstance(name, str)}


def _labels(model: nn.Module) -> dict[int, tuple[str, str]]:
    """By identity, what stands before an attribute's name in an error, and behind it."""
    found = {}
    for name, module in model.named_modules():
        found[id(module)] = type(module).__name__, f" of {name}" if name else ""
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        found[id(tensor)] = name, ""
    return found


def _name(label: tuple[str, str] | None, name: str) -> str:
    if label is None:  # of a class, or of a part that is no longer there
        return f"the attribute {name} of a class or a part of the model"
    return f"{label[0]}.{name}{label[1]}"


def _has_state_of_its_own(modules: list[nn.Module]) -> bool:
    """Whether the state dictionary may have more than parameters and buffers."""
    plain = nn.Module
    return any(
        type(module).get_extra_state is not plain.get_extra_state
        or type(module).state_dict is not plain.state_dict
        or type(module)._save_to_state_dict is not plain._save_to_state_dict  # noqa: SLF001
        or module._state_dict_hooks  # noqa: SLF001  # there are no public names for these
        for module in modules
        if not isinstance(module, ParametrizationList)
    )


def content_of(value: Any, known: set[int]) -> Content:  # Any: any object
    """The content of a value, without that of objects with known identities."""
    return _content(value, {*known}, _DEPTH)


def _content(value: Any, known: set[int], depth: int) -> Content:  # Any: any attribute
    """The value's content; for values that can't be read, the object's identity."""
    kind = type(value)
    if kind in _SIMPLE:
        return kind, value
    if kind is tuple and depth:  # often; the rest of this function takes longer
        return tuple([_content(each, known, depth - 1) for each in value])
    if isinstance(value, _SHOWN):
        return type(value), repr(value)
    if id(value) in known:  # a module or tensor of the model, with contents of its own
        return id(value)
    if isinstance(value, Tensor):
        is_plain = value.layout is torch.strided and not value.is_nested
        place = (value.stride(), value.storage_offset()) if is_plain else ()
        shape = () if value.is_nested else tuple(value.shape)
        return shape, value.dtype, *place, *checksums([value])
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.hasobject and depth:
            return value.shape, _content(value.tolist(), known, depth - 1)
        return value.shape, value.dtype.str, value.tobytes()
    return id(value) if depth == 0 else _content_within(value, known, depth)


def _content_within(value: Any, known: set[int], depth: int) -> Content:  # Any: as above
    """The content of what an object holds."""
    within = partial(_content, known=known, depth=depth - 1)
    if isinstance(value, nn.Module):  # one that is no submodule of the model
        return id(value), within(value.state_dict(keep_vars=True)), within(vars(value))
    own = getattr(value, "__dict__", None)  # of a user's kind of container
    more = (within(dict(own)),) if own and isinstance(value, _CONTAINERS) else ()
    if isinstance(value, Mapping):
        pairs = value.items()
        return *((_content(k, known, 0), within(v)) for k, v in pairs), *more
    if isinstance(value, list | tuple | deque):
        return *map(within, value), *more
    if isinstance(value, set | frozenset):
        return frozenset(_content(each, known, 0) for each in value), *more
    known.add(id(value))  # objects may hold one another
    return id(value), *(within(part) for part in _parts(value))


def _parts(value: Any) -> Iterator[Any]:  # Any: any object
    """The attributes, slots and arguments of an object that belongs to no other library."""
    if isinstance(value, type | BuiltinFunctionType):
        return
    if isinstance(value, MethodType):
        yield value.__self__
        yield value.__func__
    elif isinstance(value, partial):
        yield value.func
        yield value.args
        yield value.keywords
        yield dict(value.__dict__)
    elif isinstance(value, FunctionType):
        yield value.__defaults__
        yield value.__kwdefaults__
        yield dict(value.__dict__)
    elif not is_of_a_library(type(value)):
        yield from _attributes_and_slots(value)


def _attributes_and_slots(value: Any) -> Iterator[Any]:  # Any: as above
    if attributes := getattr(value, "__dict__", None):
        yield dict(attributes)
    yield from slots_of(value).items()
