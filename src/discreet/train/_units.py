"""The data as a run sees them: examples in places, each of which is one unit's.

A row unit's example is a row. A person's example is made of all that person's rows, or of ``most``
of them drawn anew in each step; the person is sampled as one, and clipped as one.
"""

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from keyword import iskeyword
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from discreet import _checks
from discreet.errors import InvalidArgument
from discreet.mechanisms._attempts import attempt
from discreet.noise import Bits, sample_without_replacement
from discreet.train._sampling import Places

Part = Any  # what the user's loss function takes: their own data, or a named tuple of tensors


class Source(Protocol):
    """A data set that gives its items one by one, as PyTorch's have it."""

    def __len__(self) -> int:
        """How many."""
        ...

    def __getitem__(self, place: int) -> Any:  # Any: the user's own
        """One of them."""
        ...


Data = Source | Mapping[str, Any] | Sequence[Any]  # Any: tensors, or arrays of the same length


class Reduce(Enum):
    """What becomes of a person's rows: the mean of their losses, or the sum."""

    MEAN = "mean"
    SUM = "sum"


@dataclass(frozen=True, slots=True, repr=False)
class Persons:
    """Rows that belong to persons: ``ids`` says for each row to whom; rows with no id are left out.
    Ids are to be of one kind whatever the data are: of whole numbers above 2^53, floats, which a
    missing one makes of a column in pandas, take some for the same.

    A person's loss is the mean, or the sum, of those of at most ``most`` rows, drawn anew in each
    step where there are more. ``column`` is the unit's. Nothing is read before the run is paid, but
    whether fields have as many rows as there are ids, unless the plan's sampling needs the exact
    number of persons, which is public then: ids are counted.
    """

    data: Data
    ids: npt.ArrayLike
    column: str
    most: int
    reduce: Reduce = Reduce.MEAN

    def __post_init__(self) -> None:
        """Refuse a cap, a name or a reduction that is none."""
        object.__setattr__(self, "most", _checks.positive_count(most=self.most))
        _checks.text(column=self.column)
        if not isinstance(self.reduce, Reduce):
            raise InvalidArgument(f"reduce = {self.reduce!r}: give Reduce.MEAN or Reduce.SUM")

    def __repr__(self) -> str:
        """What is public about them."""
        return f"Persons(column={self.column!r}, most={self.most}, reduce={self.reduce})"


@dataclass(frozen=True, slots=True, repr=False)
class Drawn:
    """The rows of a batch, unit by unit, those with the most rows first; and how many each has."""

    rows: Places
    counts: Places

    @property
    def filled(self) -> int:
        """How many rows they had if each had as many as the first."""
        return self.counts.size * int(self.counts[0])

    def parted(self, most: int) -> "tuple[Drawn, Drawn]":
        """The first units, which filled have at most so many rows, or are one; and the others."""
        units = max(1, most // int(self.counts[0]))
        end = int(self.counts[:units].sum())
        first = Drawn(self.rows[:end], self.counts[:units])
        return first, Drawn(self.rows[end:], self.counts[units:])


@dataclass(frozen=True, slots=True, repr=False)
class People:
    """Whose rows are where: ``rows`` has all of them person by person, ``ends`` each one's end."""

    rows: Places
    ends: Places

    @staticmethod
    def of(ids: npt.ArrayLike) -> "People":
        """The people that these ids name, of any kinds, in the order in which they come up; what is
        missing is no id, be it ``None``, NaN or pandas' NA, nor is what has no hash."""
        listed = ids if isinstance(ids, list) else np.asarray(ids).tolist()
        named = np.flatnonzero([_is_id(one) for one in listed])
        people: dict[object, int] = {}
        codes = np.array([people.setdefault(listed[row], len(people)) for row in named], np.int64)
        ends = np.cumsum(np.bincount(codes)) if named.size else named
        return People(named[np.argsort(codes, kind="stable")], ends)

    def rows_of(self, person: int, most: int, bits: Bits) -> Places:
        """The rows of one of them, at most so many, all choices being as likely."""
        first = self.ends[person - 1] if person else 0
        rows = self.rows[first : self.ends[person]]
        if rows.size > most:
            rows = np.sort(rows[sample_without_replacement(rows.size, most, bits)])
        return rows

    def chosen(self, persons: Places, most: int, bits: Bits) -> Drawn:
        """The rows of some of them."""
        several = [self.rows_of(int(person), most, bits) for person in persons]
        several.sort(key=len, reverse=True)
        counts = np.array([rows.size for rows in several], np.int64)
        return Drawn(np.concatenate([self.rows[:0], *several]), counts)


def _is_id(one: object) -> bool:
    """False of None, of NaN, and of what can't be looked at, such as NA."""
    return one is not None and attempt(_is_itself, one, otherwise=False)


def _is_itself(one: object) -> bool:
    hash(one)
    return bool(one == one)  # noqa: PLR0124  # NaN isn't what it is


@dataclass(frozen=True, slots=True, repr=False)
class Collated:
    """Items that a function of one's own makes into a part, such as a data loader's or Trainer's.

    ``collate`` gets each item in a list by itself, so that no example depends on another one, and
    gives tensors, or a mapping or tuple of them, of one row each. Rows are joined; where they are
    of different lengths, those named in ``pads`` are filled up with that number at their ends.
    """

    data: Source
    collate: Callable[[list[Any]], Any]  # Any: the user's own items and parts
    pads: Mapping[str, float] = field(default_factory=dict)

    def __len__(self) -> int:
        """How many items."""
        return len(self.data)

    def __getitem__(self, place: int) -> Any:
        """One item, as the data have it."""
        return self.data[place]

    def taken(self, places: Places) -> Part:
        """These, as a part."""
        return _joined([self.collate([self.data[int(place)]]) for place in places], self.pads, "")

    def filled_up(self, part: Part) -> tuple[Part, Part]:
        """This part as if each example ended halfway: filled up to where it ends now, and not."""
        return tuple(_halved(part, self.pads, "", is_filled) for is_filled in (True, False))


def taken(data: Data, places: Places) -> Part:
    """These examples, as the user's loss function takes them: of tensors and arrays a named tuple
    (``x`` and ``y`` if there are two and they have no names), of items what PyTorch's default
    collation makes."""
    import torch
    from torch.utils.data import TensorDataset, default_collate

    if isinstance(data, Collated):
        return data.taken(places)
    if isinstance(data, TensorDataset):
        data = data.tensors
    if isinstance(data, Mapping):
        return _named(tuple(data), [_some(field, places) for field in data.values()])
    if isinstance(data, tuple):
        names = ("x", "y") if len(data) == 2 else tuple(f"field_{n}" for n in range(len(data)))
        return _named(names, [_some(field, places) for field in data])
    if isinstance(data, torch.Tensor | np.ndarray):
        return _some(data, places)
    return default_collate([data[int(place)] for place in places])


@dataclass(frozen=True, slots=True, repr=False)
class Invented:
    """Items that were invented for a model, as public examples in the form of its data."""

    data: Data


def of_one(data: Data, size: int) -> Part:
    """The first example, as many times."""
    return taken(data, np.zeros(size, np.int64))


def of_zeros(data: "Data | Persons") -> Data | None:
    """An item of zeros, of the same shapes and types; nothing where only items can tell these."""
    from torch.utils.data import Subset, TensorDataset

    inner = data.data if isinstance(data, Persons) else data
    if isinstance(inner, Subset):
        whole = of_zeros(inner.dataset)  # type: ignore[arg-type]  # as all data sets
        return Subset(TensorDataset(*whole), [0]) if isinstance(whole, tuple) else None
    if isinstance(inner, Collated):
        source = of_zeros(inner.data) if isinstance(inner.data, TensorDataset | Subset) else None
        if isinstance(source, tuple):
            source = TensorDataset(*source)
        return None if source is None else replace(inner, data=source)  # type: ignore[arg-type]  # as above
    fields = inner.tensors if isinstance(inner, TensorDataset) else inner
    if isinstance(fields, tuple):
        zeros = [_zeros(field) for field in fields]
        return None if any(one is None for one in zeros) else tuple(zeros)
    if isinstance(fields, Mapping):
        named = {name: _zeros(field) for name, field in fields.items()}
        return None if any(one is None for one in named.values()) else named
    alone: Data | None = _zeros(fields)
    return alone


def like(data: "Data | Persons", examples: "Data | Persons") -> Data:
    """Public examples in the form of the data: collated as these are, and without ids."""
    inner = data.data if isinstance(data, Persons) else data
    public = examples.data if isinstance(examples, Persons) else examples
    try:
        check(public)
    except InvalidArgument as error:
        raise InvalidArgument(
            f"like: give public examples in the form of train_set; {error}"
        ) from None
    if length(public) < 2:
        raise InvalidArgument(
            "like: give two public examples or more, so that one of them can be another's neighbour"
        )
    if isinstance(inner, Collated) and not isinstance(public, Collated):
        return replace(inner, data=public)  # type: ignore[arg-type]  # checked: it has items
    return public


def _zeros(field: Any) -> Any:  # Any: a tensor or an array, or None of what is neither
    import torch

    if isinstance(field, torch.Tensor):
        return field.new_zeros((1, *field.shape[1:]))
    if isinstance(getattr(field, "dtype", None), np.dtype):  # arrays, and columns of frames
        return np.zeros((1, *field.shape[1:]), field.dtype)
    return None


def length(data: Data) -> int:
    """How many examples there are: the true number, which is private unless it is declared."""
    if isinstance(data, Mapping):
        return len(next(iter(data.values())))
    if isinstance(data, tuple):
        return len(data[0])
    return len(data)


def check(data: "Data | Persons") -> None:
    """Refuse what has no examples in places. It looks at types, names and whether there are as many
    of each field: so there are in all neighbours alike, and how many isn't told."""
    inner = data.data if isinstance(data, Persons) else data
    ids = {"ids": data.ids} if isinstance(data, Persons) else {}
    if isinstance(inner, Mapping | tuple):
        if inner:
            _check_fields(
                dict(inner) if isinstance(inner, Mapping) else dict(enumerate(inner)), ids
            )
            return
    elif hasattr(inner, "__len__") and hasattr(inner, "__getitem__"):
        if ids:
            _check_fields({"items": inner}, ids)
        return
    raise InvalidArgument(
        f"train_set is a {type(inner).__name__}: give tensors by name, or a data set that has "
        "len() and items by number; samplers and loaders have no place in a private run"
    )


def _check_fields(fields: Mapping[Any, Any], ids: Mapping[str, Any]) -> None:  # Any: as given
    for name in fields:
        if not isinstance(name, int) and not _can_follow_a_dot(name):
            raise InvalidArgument(
                f"train_set: {name!r} can't be the name of a field, which losses take as part.x; "
                "give one of letters, such as 'x'"
            )
    named = {**fields, **ids}
    if len(getattr(ids.get("ids"), "shape", (1,))) != 1:
        raise InvalidArgument("ids: give one for each row, in one dimension")
    for name, values in named.items():
        if not hasattr(values, "__len__") or not getattr(values, "shape", (1,)):
            raise InvalidArgument(
                f"train_set: {name!r} is a {type(values).__name__}: give a tensor or an array with "
                "examples in its first dimension"
            )
        dtype = getattr(values, "dtype", None)
        if name in fields and isinstance(dtype, np.dtype) and dtype.kind not in "biufc":
            raise InvalidArgument(
                f"train_set: {name!r} has dtype {dtype}: give numbers, which a tensor can hold"
            )
    if len({len(values) for values in named.values()}) > 1:
        raise InvalidArgument(
            f"train_set: {', '.join(map(repr, named))} are not of one length: each has a row for "
            "each example"
        )


def _can_follow_a_dot(name: object) -> bool:
    is_word = isinstance(name, str) and name.isidentifier() and not iskeyword(name)
    return is_word and not str(name).startswith("_")


def _joined(parts: list[Any], pads: Mapping[str, float], name: str) -> Any:  # Any: as collated
    """Parts of one row each as one part; ``name`` is where they were found."""
    import torch

    first = parts[0]
    if isinstance(first, Mapping):
        return {key: _joined([part[key] for part in parts], pads, str(key)) for key in first}
    if isinstance(first, tuple | list):
        fields = [_joined([*some], pads, name) for some in zip(*parts, strict=True)]
        return type(first)(*fields) if hasattr(first, "_fields") else type(first)(fields)
    if not isinstance(first, torch.Tensor) or any(part.shape[:1] != (1,) for part in parts):
        raise InvalidArgument(
            f"{name or 'a part'}: of one item collate made something else than tensors of one row; "
            "each item is to stay an example by itself, so don't pack, split or drop any"
        )
    longest = max(part.shape[1] for part in parts) if name in pads and first.dim() > 1 else None
    if longest is not None:
        parts = [_filled(part, longest, pads[name]) for part in parts]
    if len({part.shape for part in parts}) > 1:
        raise InvalidArgument(
            f"{name or 'parts'}: examples have different shapes; give all the same, as by padding "
            "to a maximal length"
        )
    return torch.cat(parts)


def _halved(part: Any, pads: Mapping[str, float], name: str, is_filled: bool) -> Any:  # noqa: FBT001
    """A part whose padded fields end halfway, whether or not they are filled up again."""
    if isinstance(part, Mapping):
        return {key: _halved(field, pads, str(key), is_filled) for key, field in part.items()}
    if isinstance(part, tuple | list):
        fields = [_halved(field, pads, name, is_filled) for field in part]
        return type(part)(*fields) if hasattr(part, "_fields") else type(part)(fields)
    if name not in pads or part.dim() < 2:
        return part
    length = part.shape[1]
    half = part[:, : (length + 1) // 2]
    return _filled(half, length, pads[name]) if is_filled else half


def _filled(part: Any, longest: int, number: float) -> Any:  # Any: tensors
    import torch

    more = part.new_full((len(part), longest - part.shape[1], *part.shape[2:]), number)
    return torch.cat([part, more], dim=1)


def _some(field: Any, places: Places) -> Any:  # Any: a tensor or an array
    import torch

    if isinstance(field, torch.Tensor):
        return field[torch.from_numpy(places).to(field.device)]
    return torch.from_numpy(np.asarray(field)[places])


def _named(names: tuple[str, ...], fields: list[Any]) -> Part:  # Any: tensors
    return _part(names)(*fields)


@lru_cache(maxsize=64)
def _part(names: tuple[str, ...]) -> type[Any]:  # Any: a named tuple of these names
    return namedtuple("Part", names)  # the names are the user's
