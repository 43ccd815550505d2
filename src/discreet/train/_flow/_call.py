"""A call of one of PyTorch's functions, and the two usual forms of a rule for it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from torch import Tensor

from discreet.train._calls._arguments import Args, Function, Keywords, named, tensors_in
from discreet.train._flow._places import beside_constants
from discreet.train._tags._by_tensor import Tags
from discreet.train._tags._tag import ExampleRows, Tag, UntrackedRows, merged

LIKE_OTHERS = frozenset(  # their other argument gives only its shape or type
    {Tensor.to, Tensor.type_as, Tensor.expand_as, Tensor.view_as, Tensor.reshape_as}
)
OVER_EXAMPLES = UntrackedRows("a function over examples")


@dataclass(frozen=True, slots=True)
class Call:
    """A function's arguments and result, and the tags so far."""

    tags: Tags
    function: Function
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
        return tensors_in((self.args[1:], named_ones))

    def has_data_besides(self, number: int = 0) -> bool:
        """Whether `others`, after the first ``number`` of them, depend on data."""
        if self.function in LIKE_OTHERS:
            return False
        return any(self.tags.of(each) is not None for each in self.others[number:])

    def named(self, names: str) -> dict[str, Any]:
        """All arguments by name, for a function that takes them in this order."""
        return named(names, self.args, self.keywords)


ResultTags = Tag | list[Tag | None] | None  # of the result, or of each of its tensors
FlowRule = Callable[[Call], ResultTags]


SEES_PLACES: set[FlowRule] = set()


def sees_places(rule: FlowRule) -> FlowRule:
    """State that a rule looks at all tensors of a call, also at those that depend on no data: no
    rows of its result differ by place in the batch."""
    SEES_PLACES.add(rule)
    return rule


def of_first(rule: Callable[[Call, ExampleRows], ResultTags]) -> FlowRule:
    """The rule of functions of one tensor, from a rule for rows of examples.

    Other arguments, such as sizes, must not depend on data.
    """

    @wraps(rule)
    def tag_result(call: Call) -> ResultTags:
        if call.has_data_besides():
            return UntrackedRows("a function of data by data")
        tag = call.tags.of(call.first)
        return rule(call, tag) if isinstance(tag, ExampleRows) else tag

    return tag_result


def of_all(tags: Tags, values: Iterable[Any], rank: int) -> Tag | None:  # Any: nested arguments
    """The tag of a result of this rank to which these tensors are broadcast."""
    several = tensors_in(values)
    each = ((tags.of(one), one.dim()) for one in several)
    tag = merged(((tag, own) for tag, own in each if tag is not None), rank)
    return beside_constants(tags, tag, several, rank)


def name_of(function: Function) -> str:  # Any: a function of PyTorch's
    """The function's name; for a getter or setter, the name of the attribute."""
    name = getattr(function, "__name__", "a function")
    if name in ("__get__", "__set__"):
        return getattr(getattr(function, "__self__", None), "__name__", name)
    return str(name)
