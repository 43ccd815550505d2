"""Items that the user's own function collates, one by one, and microbatches made of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from discreet._arrays import IndexArray
from discreet.errors import InvalidArgument

Microbatch = Any  # argument of the user's losses: their own kind, or a named tuple of tensors


class Source(Protocol):
    """A data set that gives its items one by one, as PyTorch's do."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: int) -> Any:  # Any: the user's own
        ...


@dataclass(frozen=True, slots=True, repr=False)
class Collated:
    """Items that a function of one's own collates, such as a data loader's or Trainer's.

    ``collate`` gets each item alone, in a list, so that no example depends on another one. It
    returns tensors of one row each, or a mapping or tuple of them. Rows are joined. Where rows have
    different lengths, fields named in ``pads`` are padded at their ends with that number.

    Not covered: ``pads`` fills fields up to the longest row of a microbatch, which may be another
    example's. Public or made-up examples are compared at different lengths, so that a model or a
    loss that depends on padding is found unless it does so for rare values only. If ``collate``
    itself pads each item to one public length, no length depends on data.
    """

    data: Source
    collate: Callable[[list[Any]], Any]  # Any: the user's own items and microbatches
    pads: Mapping[str, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, place: int) -> Any:
        return self.data[place]

    def microbatch_of(self, places: IndexArray, before_each: Callable[[], None]) -> Microbatch:
        """The items in these places, as a microbatch."""
        rows = list[Any]()
        for place in places:
            before_each()
            rows.append(self.collate([self.data[int(place)]]))
        return _joined(rows, self.pads, "")

    def lengths(self, microbatch: Microbatch) -> tuple[int, ...]:
        """The length of each padded field."""
        return tuple(_lengths(microbatch, self.pads, ""))

    def ended(
        self, microbatch: Microbatch, ends: Sequence[int], lengths: Sequence[int]
    ) -> Microbatch:
        """Examples whose padded fields end at ``ends``, padded to these lengths."""
        return _ended(microbatch, self.pads, "", iter(zip(ends, lengths, strict=True)))


def _joined(parts: list[Any], pads: Mapping[str, float], name: str) -> Any:  # Any: as collated
    """Microbatches of one row each as one microbatch; ``name`` is the field's."""
    import torch

    # 1. mappings and tuples, field by field
    first = parts[0]
    if isinstance(first, Mapping):
        return {key: _joined([part[key] for part in parts], pads, str(key)) for key in first}
    if isinstance(first, tuple | list):
        fields = [_joined([*some], pads, name) for some in zip(*parts, strict=True)]
        return _like(first, fields)
    # 2. tensors of one row
    if not isinstance(first, torch.Tensor) or any(part.shape[:1] != (1,) for part in parts):
        raise InvalidArgument(
            f"{name or 'a microbatch'}: collate must return tensors of one row for one item; each "
            "item stays an example by itself, so don't pack, split or drop any"
        )
    if name in pads and first.dim() > 1:
        longest = max(part.shape[1] for part in parts)
        parts = [_padded(part, longest, pads[name]) for part in parts]
    if len({part.shape for part in parts}) > 1:
        padded = f", or by pads, which names {', '.join(map(repr, pads))}" if pads else ""
        raise InvalidArgument(
            f"{name or 'items'}: examples have different shapes; give all of them one shape, such "
            f"as by padding to a maximal length in collate{padded}"
        )
    return torch.cat(parts)


def _lengths(part: Any, pads: Mapping[str, float], name: str) -> Iterator[int]:  # Any: as collated
    """The lengths of padded fields, in the order in which `_ended` meets them."""
    if isinstance(part, Mapping):
        for key, field in part.items():
            yield from _lengths(field, pads, str(key))
    elif isinstance(part, tuple | list):
        for field in part:
            yield from _lengths(field, pads, name)
    elif name in pads and part.dim() > 1:
        yield part.shape[1]


def _ended(
    part: Any, pads: Mapping[str, float], name: str, ends: Iterator[tuple[int, int]]
) -> Any:  # Any: as collated
    """A microbatch whose padded fields have these ends, each padded to the length beside it."""
    if isinstance(part, Mapping):
        return {key: _ended(field, pads, str(key), ends) for key, field in part.items()}
    if isinstance(part, tuple | list):
        return _like(part, [_ended(field, pads, name, ends) for field in part])
    if name not in pads or part.dim() < 2:
        return part
    end, length = next(ends)
    return _padded(part[:, :end], length, pads[name])


def _like(example: Any, fields: list[Any]) -> Any:  # Any: tuples, named ones and lists
    kind = type(example)
    return kind(*fields) if hasattr(example, "_fields") else kind(fields)


def _padded(part: Any, longest: int, number: float) -> Any:  # Any: tensors
    import torch

    more = part.new_full((len(part), longest - part.shape[1], *part.shape[2:]), number)
    return torch.cat([part, more], dim=1)
