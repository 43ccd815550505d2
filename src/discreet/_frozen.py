"""Mappings that can't be altered, so that the price of a mechanism stays valid."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class FrozenMapping(Mapping[K, V]):
    """A copy of a mapping's pairs, in their order, as a tuple.

    A proxy of a dictionary would not do: the dictionary behind it can be reached and altered.

    >>> FrozenMapping({"a": 1})
    {'a': 1}
    """

    __slots__ = ("_pairs",)

    _pairs: tuple[tuple[K, V], ...]

    def __init__(self, mapping: Mapping[K, V]) -> None:
        """Copy the pairs; of equal keys the later pair counts, as in a dictionary."""
        object.__setattr__(self, "_pairs", tuple(dict(mapping.items()).items()))

    def __getitem__(self, key: object) -> V:
        for name, value in self._pairs:
            if name is key or name == key:
                return value
        raise KeyError(key)

    def __iter__(self) -> Iterator[K]:
        return (name for name, _ in self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)

    def __hash__(self) -> int:
        """Equal mappings have equal hashes, whatever their order."""
        return hash(frozenset(self._pairs))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a frozen mapping can't be altered")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a frozen mapping can't be altered")

    def __reduce__(self) -> tuple[type["FrozenMapping[K, V]"], tuple[dict[K, V]]]:
        """A copy or a pickle has the same pairs."""
        return FrozenMapping, (dict(self._pairs),)

    def __repr__(self) -> str:
        return repr(dict(self._pairs))
