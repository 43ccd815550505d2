"""A computation not yet run, with everything public about it: unit, shape, sensitivities."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

import numpy as np
import numpy.typing as npt

from discreet import checks
from discreet.errors import InvalidArgument, Refused
from discreet.unit import Unit

IntegerArray = npt.NDArray[Any]  # Any: int64, or object for Python integers of any size
Value = int | IntegerArray
V = TypeVar("V")

ASSERTED = "asserted by the caller"


@dataclass(frozen=True, slots=True, init=False)
class Sensitivity:
    """How far a vector of integers can be from its neighbour: each norm's bound, exactly.

    At least one norm must be given. `l1`, `l2_squared` and `linf` are whole numbers: what the
    given ones imply for vectors of integers, of this length if it is given.

    >>> Sensitivity(l1=5, linf=2)
    Sensitivity(l1=5, l2_squared=9, linf=2)
    """

    l1: int
    l2_squared: int
    linf: int

    def __init__(
        self,
        *,
        l1: int | None = None,
        l2_squared: int | None = None,
        linf: int | None = None,
        length: int | None = None,
    ) -> None:
        """Keep the given norms and derive the others; ``length`` is the vector's, if known."""
        given = {"l1": l1, "l2_squared": l2_squared, "linf": linf}
        known = {n: checks.count(**{n: norm}) for n, norm in given.items() if norm is not None}
        size = None if length is None else checks.count(length=length)
        for name, norm in _closure(known, size).items():
            object.__setattr__(self, name, norm)


def _closure(known: dict[str, int], length: int | None) -> dict[str, int]:
    """All three norms from some: each derived one is reached by a vector of integers."""
    if not known or (length is None and set(known) == {"linf"} and known["linf"] > 0):
        raise InvalidArgument("give l1 or l2_squared, or linf together with the vector's length")
    square = known.get("l2_squared")
    bounds = [known[norm] for norm in ("l1", "linf") if norm in known]
    linf = min(bounds if square is None else [*bounds, math.isqrt(square)])
    if linf == 0 or length == 0:
        return {"l1": 0, "l2_squared": 0, "linf": 0}
    sums = [known["l1"]] if "l1" in known else []
    if length is not None:
        sums.append(length * linf)
    if square is not None:
        sums.append(_most_l1(square, length))
    l1 = min(sums)
    most = _most_l2_squared(l1, linf)
    return {"l1": l1, "l2_squared": most if square is None else min(square, most), "linf": linf}


def _most_l1(l2_squared: int, length: int | None) -> int:
    """The most that integers add up to whose squares add up to this: all as equal as can be."""
    if length is None:
        return l2_squared
    each = math.isqrt(l2_squared // length)
    return length * each + (l2_squared - length * each**2) // (2 * each + 1)


def _most_l2_squared(l1: int, linf: int) -> int:
    """The most that the squares of integers add up to: as many as can be are the largest."""
    whole, rest = divmod(l1, linf)
    return whole * linf**2 + rest**2


@dataclass(frozen=True, slots=True)
class Part:
    """One named part of a computation: its public shape (``()`` for a single number) and bounds."""

    name: str
    shape: tuple[int, ...]
    sensitivity: Sensitivity

    def __post_init__(self) -> None:
        """Refuse an empty name, a shape that is none and anything that is not a ``Sensitivity``."""
        checks.text(name=self.name)
        object.__setattr__(self, "shape", _whole_shape(self.shape))
        if not isinstance(self.sensitivity, Sensitivity):
            raise InvalidArgument(f"sensitivity = {self.sensitivity!r}: give a Sensitivity")


def _whole_shape(shape: object) -> tuple[int, ...]:
    if not isinstance(shape, tuple | list):
        raise InvalidArgument(f"shape = {shape!r}: give a tuple of sizes, () for one number")
    return tuple(checks.count(shape=size) for size in shape)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Bounded(Generic[V]):
    """A computation not yet run, whose result is integers of known sensitivity for its unit.

    ``compute()`` gives an integer, an integer array of the stated shape, or, made by `together`,
    a mapping from each part's name to such a value. The guarantee of whatever is released from
    it rests on the sensitivity being right: ``basis`` says on whose word it is.

    >>> patients = Bounded(lambda: 41, sensitivity=1, unit=Unit("patient_id"), name="patients")
    >>> patients.part.sensitivity.l1
    1
    """

    compute: Callable[[], V]
    unit: Unit
    name: str
    parts: tuple[Part, ...]
    is_joint: bool
    basis: str

    def __init__(
        self,
        compute: Callable[[], V],
        *,
        sensitivity: int | Sensitivity,
        unit: Unit,
        name: str,
        shape: tuple[int, ...] = (),
        basis: str = ASSERTED,
    ) -> None:
        """State one number or array; an integer ``sensitivity`` is its L1 sensitivity."""
        shape = _whole_shape(shape)
        if not isinstance(sensitivity, Sensitivity):
            l1 = checks.count(sensitivity=sensitivity)
            sensitivity = Sensitivity(l1=l1, length=math.prod(shape))
        parts = (Part(name, shape, sensitivity),)
        _fill(self, compute, unit=unit, name=name, parts=parts, is_joint=False, basis=basis)

    @staticmethod
    def together(
        compute: Callable[[], Mapping[str, Value]],
        *,
        parts: tuple[Part, ...],
        unit: Unit,
        name: str,
        basis: str = ASSERTED,
    ) -> "Bounded[Mapping[str, Value]]":
        """State several named parts, computed together in one pass."""
        names = [part.name for part in parts]
        if not names or len(set(names)) < len(names):
            raise InvalidArgument(f"parts = {names}: give at least one, each with its own name")
        made = cast("Bounded[Mapping[str, Value]]", object.__new__(Bounded))
        name, parts = checks.text(name=name), tuple(parts)
        _fill(made, compute, unit=unit, name=name, parts=parts, is_joint=True, basis=basis)
        return made

    @property
    def part(self) -> Part:
        """The only part; raises `Refused` if the parts come as a mapping, be it of one."""
        if self.is_joint:
            names = [part.name for part in self.parts]
            raise Refused(f"{self.name!r} has the parts {names}: use Together, one mechanism each")
        return self.parts[0]

    def only(self, name: str) -> "Bounded[Value]":
        """The part of this name as a computation of its own."""
        part = {part.name: part for part in self.parts if self.is_joint}.get(name)
        if part is None:
            raise InvalidArgument(f"{self.name!r} has no named part {name!r}")
        compute = cast(Callable[[], Mapping[str, Value]], self.compute)
        return Bounded(
            lambda: compute()[name],
            sensitivity=part.sensitivity,
            unit=self.unit,
            name=name,
            shape=part.shape,
            basis=self.basis,
        )

    def checked(self, result: object) -> V:
        """The result, if it is what was declared; a plain ``TypeError`` otherwise."""
        if not self.is_joint:
            return cast(V, _checked(self.parts[0], result))
        if not isinstance(result, Mapping) or set(result) != {part.name for part in self.parts}:
            raise TypeError(f"{self.name!r}: expected a mapping with exactly its parts' names")
        return cast(V, {part.name: _checked(part, result[part.name]) for part in self.parts})

    def __repr__(self) -> str:
        """What is public about it. The function isn't shown: its own text may hold its data."""
        facts = f"unit={self.unit!r}, parts={self.parts!r}, basis={self.basis!r}"
        return f"Bounded({self.name!r}, {facts})"


def _fill(
    made: "Bounded[Any]",  # Any: either kind
    compute: Callable[[], Any],
    *,
    unit: Unit,
    name: str,
    parts: tuple[Part, ...],
    is_joint: bool,
    basis: str,
) -> None:
    if not callable(compute):
        raise InvalidArgument(
            f"compute is of type {type(compute).__name__}: give a function without arguments, "
            "which runs after the charge"
        )
    if not isinstance(unit, Unit):
        raise InvalidArgument(f"unit = {unit!r}: give a Unit, as Unit('person_id') or Unit.ROW")
    facts = {"unit": unit, "name": name, "parts": parts, "is_joint": is_joint, "basis": basis}
    for field, value in {"compute": compute, **facts}.items():
        object.__setattr__(made, field, value)


def _checked(part: Part, result: object) -> Value:
    if part.shape == ():
        if isinstance(result, int | np.integer) and not isinstance(result, bool | np.timedelta64):
            return int(result)
        raise TypeError(f"part {part.name!r}: expected one integer")
    # a subclass, such as a masked array, may hide numbers or add in its own way
    if type(result) is not np.ndarray or result.shape != part.shape:
        raise TypeError(f"part {part.name!r}: expected an array of shape {part.shape}")
    if result.dtype == object:
        if all(type(item) is int for item in result.flat):
            return result
    elif np.issubdtype(result.dtype, np.integer) and np.can_cast(result.dtype, np.int64):
        return result.astype(np.int64)
    raise TypeError(f"part {part.name!r}: expected integers, as int64 or as Python's own")
