"""A call of one of PyTorch's functions, as rules for tags take it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from discreet.train._arguments import Args, Keywords, named
from discreet.train._tags import Tag, Tags, UnknownOwners, merged

OVER_EXAMPLES = UnknownOwners("a function over examples")


@dataclass(frozen=True, slots=True)
class Call:
    """A function's arguments and result, and the tags so far."""

    tags: Tags
    args: Args
    keywords: Keywords
    result: Any  # Any: what PyTorch's functions return

    @property
    def first(self) -> Any:
        """The first argument, or the one named `input`."""
        return self.args[0] if self.args else self.keywords["input"]

    @property
    def others(self) -> list[Tensor]:
        """All tensors among the other arguments."""
        named_ones = [value for key, value in self.keywords.items() if key != "input" or self.args]
        return tensors((self.args[1:], named_ones))

    def has_data_besides(self, number: int = 0) -> bool:
        """Whether `others`, after the first ``number`` of them, depend on data."""
        return any(self.tags.of(each) is not None for each in self.others[number:])

    def named(self, names: str) -> dict[str, Any]:
        """All arguments by name, for a function that takes them in this order."""
        return named(names, self.args, self.keywords)


Found = Tag | list[Tag | None] | None  # of the result, or of each of its tensors
Follow = Callable[[Call], Found]


def tensors(values: Iterable[Any]) -> list[Tensor]:  # Any: nested arguments or results
    """All tensors among values, also in lists, tuples and mappings."""
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
    """The tag of a result of this rank to which these tensors are broadcast."""
    each = ((tags.of(one), one.dim()) for one in tensors(values))
    return merged(((tag, own) for tag, own in each if tag is not None), rank)
