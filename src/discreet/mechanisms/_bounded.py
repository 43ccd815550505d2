"""A computation that has not run yet, with its public facts: unit, shape, sensitivity."""

import math
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, InitVar
from fractions import Fraction
from operator import itemgetter
from typing import Annotated, Any, Generic, TypeVar, cast

from discreet import _checks
from discreet._exact import Number
from discreet._fields import Text, field, frozen
from discreet._unit import Change, Unit
from discreet.errors import InvalidArgument, Refused
from discreet.mechanisms._computation import StagedComputation, after
from discreet.mechanisms._fixed_point import FixedPoint
from discreet.mechanisms._parts import (
    AnyPart,
    Key,
    KeysPart,
    Part,
    RealPart,
    RowsPart,
    whole_shape,
)
from discreet.mechanisms._rows import Grid, Rows
from discreet.mechanisms._sensitivity import RealSensitivity, Sensitivity

V = TypeVar("V")
W = TypeVar("W")

ASSERTED = "asserted by the caller"


def _run_later(compute: Callable[[], V]) -> Callable[[], V]:
    if not callable(compute):
        raise InvalidArgument(
            f"compute is of type {type(compute).__name__}: give a function without arguments, "
            "which runs after the charge"
        )
    return compute


def _public_facts(facts: str) -> str:
    if not (isinstance(facts, str) and _checks.is_unicode(facts)):
        raise InvalidArgument(f"facts = {_checks.quoted(facts)}: give a text, which may be empty")
    return facts


def _a_unit(unit: Unit) -> Unit:
    change_of(unit)
    return unit


@frozen
class Bounded(Generic[V]):
    """A computation that has not run yet, with its unit and its sensitivity.

    ``compute()`` returns an integer, or an integer array of the stated ``shape``. Other
    constructors are for other values: `real` for real numbers, `rows` for a table of numbers,
    `keys` for counts under private keys, and `together` for a mapping from the name of each part to
    integers. An array becomes int64, unless it ``is_wide`` (see `Part`).

    The guarantee of every release rests on the stated sensitivity. ``basis`` says who asserts it.
    ``facts`` are further public facts about the meaning of the value; a repeated request with other
    facts is refused.

    >>> patients = Bounded(lambda: 41, sensitivity=1, unit=Unit("patient_id"), name="patients")
    >>> patients.part.sensitivity.l1
    1
    """

    compute: Annotated[Callable[[], V], _run_later]
    _: KW_ONLY
    sensitivity: InitVar[int | Sensitivity]  # an integer is the L1 sensitivity
    unit: Annotated[Unit, _a_unit]
    name: Text
    shape: InitVar[tuple[int, ...]] = ()
    is_wide: InitVar[bool] = False
    basis: Text = ASSERTED
    facts: Annotated[str, _public_facts] = ""
    parts: tuple[AnyPart, ...] = field(init=False, compare=True)
    is_joint: bool = field(init=False, compare=True)  # whether the parts come as a mapping

    def __post_init__(
        self, sensitivity: int | Sensitivity, shape: tuple[int, ...], is_wide: bool
    ) -> None:
        """State one number or array, which is the only part."""
        shape = whole_shape(shape)
        if not isinstance(sensitivity, Sensitivity):
            l1 = _checks.count(sensitivity=sensitivity)
            sensitivity = Sensitivity(l1=l1, length=math.prod(shape))
        object.__setattr__(self, "parts", (Part(self.name, shape, sensitivity, is_wide),))
        object.__setattr__(self, "is_joint", False)

    @staticmethod
    def real(
        compute: Callable[[], object],
        *,
        sensitivity: Number | RealSensitivity,
        step: Number,
        unit: Unit,
        name: str,
        shape: tuple[int, ...] = (),
        basis: str = ASSERTED,
    ) -> "Bounded[FixedPoint]":
        """State a real number or an array of real numbers, to be rounded to multiples of ``step``.

        A number as ``sensitivity`` is the L1 sensitivity. State the sensitivity of the real
        numbers; the privacy loss includes the effect of rounding.

        >>> ages = [31, 44, 58]
        >>> mean = Bounded.real(
        ...     lambda: sum(ages) / 3, sensitivity=40, step=0.01, unit=Unit.ROW, name="mean age"
        ... )
        >>> mean.part.sensitivity.l1
        4000
        """
        shape, each = whole_shape(shape), _checks.positive(step=step)
        if not isinstance(sensitivity, RealSensitivity):
            sensitivity = RealSensitivity(l1=_checks.not_negative(sensitivity=sensitivity))
        steps = sensitivity.on_grid(each, math.prod(shape))
        part = RealPart(_checks.text(name=name), shape, steps, each)
        return _with_parts(compute, (part,), unit=unit, name=name, basis=basis)

    @staticmethod
    def rows(
        compute: Callable[[], object],
        *,
        columns: Mapping[str, Grid],
        null: Mapping[str, Number] | None = None,
        per_unit: int = 1,
        unit: Unit,
        name: str,
        basis: str = ASSERTED,
        facts: str = "",
    ) -> "Bounded[Rows]":
        """State rows of numbers, an array of shape (rows, columns), with at most ``per_unit`` rows
        of one unit.

        The public grid of a column holds its possible values, and other numbers become the nearest
        of them. A row with a missing value (NaN, None, or something that is no number) is skipped,
        unless ``null`` names a value of the grid for that column.

        >>> import numpy as np
        >>> ages = Bounded.rows(
        ...     lambda: np.array([31, 44, 158]), columns={"age": Grid(0, 120)},
        ...     unit=Unit("patient_id"), name="ages",
        ... )
        >>> ages.checked(ages.compute()).column().tolist()
        [31, 44, 120]
        >>> ages.checked(np.array([31, np.nan, 58])).column().tolist()
        [31, 58]
        """
        each = _checks.positive_count(per_unit=per_unit)
        if not isinstance(columns, Mapping) or not columns:
            raise InvalidArgument(f"columns = {columns!r}: give a Grid for at least one name")
        named = tuple((_checks.text(columns=c), grid) for c, grid in columns.items())
        if not all(isinstance(grid, Grid) for _, grid in named):
            raise InvalidArgument(f"columns = {columns!r}: give a Grid for at least one name")
        sensitivity = Sensitivity(l1=tables_of(unit) * each, linf=each)
        substitutes = _substitutes(null, columns)
        part = RowsPart(_checks.text(name=name), named, each, sensitivity, substitutes)
        return _with_parts(compute, (part,), unit=unit, name=name, basis=basis, facts=facts)

    @staticmethod
    def keys(
        compute: Callable[[], Mapping[Key, int]],
        *,
        per_unit: int,
        most: int = 1,
        unit: Unit,
        name: str,
        basis: str = ASSERTED,
    ) -> "Bounded[Mapping[Key, int]]":
        """State counts under private keys, which are texts, integers or tuples of these.

        One unit counts under at most ``per_unit`` keys, and at most ``most`` under each. Other
        objects as keys are left out, and counts are rounded down.

        >>> words = Bounded.keys(
        ...     lambda: {"ache": 41, "rash": 1}, per_unit=2, unit=Unit("patient_id"), name="words"
        ... )
        >>> words.part.sensitivity
        Sensitivity(l0=2, l1=2, l2_squared=2, linf=1)
        """
        places = _checks.positive_count(per_unit=per_unit)
        sensitivity = Sensitivity(
            l0=tables_of(unit) * places, linf=_checks.positive_count(most=most)
        )
        part = KeysPart(_checks.text(name=name), places, sensitivity)
        return _with_parts(compute, (part,), unit=unit, name=name, basis=basis)

    @staticmethod
    def together(
        compute: Callable[[], Mapping[str, Any]],  # Any: each part its own
        *,
        parts: tuple[AnyPart, ...],
        unit: Unit,
        name: str,
        basis: str = ASSERTED,
        facts: str = "",
    ) -> "Bounded[Mapping[str, Any]]":
        """State several named parts, computed together in one pass."""
        if not isinstance(parts, tuple | list) or not all(hasattr(p, "moves") for p in parts):
            raise InvalidArgument("parts: give a tuple of Part, RealPart, RowsPart or KeysPart")
        names = [part.name for part in parts]
        if not names or len(set(names)) < len(names):
            raise InvalidArgument(f"parts = {names}: give at least one, each with its own name")
        made = _with_parts(compute, tuple(parts), unit=unit, name=name, basis=basis, facts=facts)
        object.__setattr__(made, "is_joint", True)
        return made

    @property
    def part(self) -> AnyPart:
        """The only part; raises `Refused` if the parts come as a mapping, even of one part."""
        if self.is_joint:
            names = [part.name for part in self.parts]
            raise Refused(f"{self.name!r} has the parts {names}: use Together, one mechanism each")
        return self.parts[0]

    def only(self, name: str) -> "Bounded[Any]":  # Any: each part its own
        """The part of this name as a computation of its own."""
        part = {part.name: part for part in self.parts if self.is_joint}.get(name)
        if part is None:
            raise InvalidArgument(f"{self.name!r} has no named part {name!r}")
        compute = after(cast(Callable[[], Mapping[str, Any]], self.compute), itemgetter(name))
        unit, basis = self.unit, self.basis
        return _with_parts(compute, (part,), unit=unit, name=name, basis=basis)

    def then(self, function: Callable[[V], W]) -> StagedComputation[W]:
        """The function of the checked result, for another `Bounded` with a sensitivity of its own;
        what is refused before the charge here is refused before it there."""
        return after(self.compute, lambda result: function(self.checked(result)))

    def checked(self, result: object) -> V:
        """The result in its exact form; a plain ``TypeError`` if it is not as declared."""
        if not self.is_joint:
            return cast(V, self.parts[0].checked(result))
        if not isinstance(result, Mapping) or set(result) != {part.name for part in self.parts}:
            raise TypeError(f"{self.name!r}: expected a mapping with exactly its parts' names")
        return cast(V, {part.name: part.checked(result[part.name]) for part in self.parts})

    def __repr__(self) -> str:
        """The public fields, without the function, whose text may hold data."""
        facts = f"unit={self.unit!r}, parts={self.parts!r}, basis={self.basis!r}"
        return f"Bounded({self.name!r}, {facts})"


def _substitutes(
    null: Mapping[str, Number] | None, columns: Mapping[str, Grid]
) -> tuple[tuple[str, Fraction], ...]:
    """The substitutes for missing values, by column; raises unless each lies on its grid."""
    if not isinstance(null, Mapping | None) or not set(null or {}) <= set(columns):
        raise InvalidArgument(f"null = {null!r}: give a value for some of {list(columns)}, or None")
    exact = []
    for column, value in (null or {}).items():
        grid = columns[column]
        exact.append((column, grid.exact(grid.place(value, "null"))))
    return tuple(exact)


def stated(bounded: object) -> "Bounded[Any]":  # Any: whatever it gives
    """The argument, if it is a `Bounded`. Another object may be private, so the error shows only
    its type."""
    if isinstance(bounded, Bounded):
        return bounded
    raise InvalidArgument(
        f"bounded is of type {type(bounded).__name__}: give a Bounded, which says how far a unit "
        "can move what it computes"
    )


def _with_parts(
    compute: Callable[[], Any],  # Any: each kind of part its own
    parts: tuple[AnyPart, ...],
    *,
    unit: Unit,
    name: str,
    basis: str,
    facts: str = "",
) -> "Bounded[Any]":  # Any: the same
    made = Bounded(compute, sensitivity=0, unit=unit, name=name, basis=basis, facts=facts)
    object.__setattr__(made, "parts", parts)
    return made


def change_of(unit: Unit) -> Change:
    """The unit's neighbouring relation; raises if it is no unit."""
    if not isinstance(unit, Unit):
        raise InvalidArgument(f"unit = {unit!r}: give a Unit, as Unit('person_id') or Unit.ROW")
    return unit.change


def tables_of(unit: Unit) -> int:
    """The number of tables, of two neighbours, that hold rows of the unit: 2 if it is replaced."""
    return 1 if change_of(unit) is Change.ADD_REMOVE else 2
