"""A call of a function of PyTorch's, as rules for tags have it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from discreet.train._arguments import named
from discreet.train._tags import Lost, Tag, Tags, merged

OVER_EXAMPLES = Lost("a function over examples")


@dataclass(frozen=True, slots=True)
class Call:
    """What a function was given and what it returned, and the tags so far."""

    tags: Tags
    args: tuple[Any, ...]  # Any: what PyTorch's functions take and give
    keywords: dict[str, Any]
    result: Any

    @property
    def first(self) -> Any:
        """The first argument, or the one that is called `input`."""
        return self.args[0] if self.args else self.keywords["input"]

    @property
    def others(self) -> list[Tensor]:
        """All other tensors that it was given."""
        named_ones = [value for key, value in self.keywords.items() if key != "input" or self.args]
        return tensors((self.args[1:], named_ones))

    def has_data_besides(self, number: int = 0) -> bool:
        """Whether others but the first of these belong to examples."""
        return any(self.tags.of(each) is not None for each in self.others[number:])

    def named(self, names: str) -> dict[str, Any]:
        """Arguments by name."""
        return named(names, self.args, self.keywords)


Found = Tag | list[Tag | None] | None  # of the result, or of each of its tensors
Follow = Callable[[Call], Found]


def tensors(values: Iterable[Any]) -> list[Tensor]:  # Any: nested arguments or results
    """All of these, in lists, tuples and mappings too."""
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += tensors(value)
        elif isinstance(value, Mapping):
            found += tensors(value.values())
    return found


def of_all(tags: Tags, values: Iterable[Any], rank: int) -> Tag | None:  # Any: nested arguments
    """The merged tag of tensors that are broadcast."""
    each = ((tags.of(one), one.dim()) for one in tensors(values))
    return merged(((tag, own) for tag, own in each if tag is not None), rank)
