"""Sensitivity: bounds on the distance between results on neighbouring tables, in all norms."""

import math
from dataclasses import InitVar
from fractions import Fraction
from typing import Annotated

from discreet import _checks
from discreet._exact import Number
from discreet._fields import Converted, field, frozen, optional
from discreet.errors import InvalidArgument

_Bound = Annotated[Converted[int, int | None], optional(_checks.count)]
_Norm = Annotated[Converted[Fraction | None, Number | None], optional(_checks.not_negative)]
_Places = Annotated[int | None, optional(_checks.count)]


@frozen
class Sensitivity:
    """Bounds on the distance of a vector of integers from its neighbour, in every norm.

    Give at least one of `l1`, `l2_squared` and `linf`; the last one alone needs the vector's
    ``length``, or `l0`, the number of entries that can differ. The other bounds are derived: the
    smallest that the given ones imply for vectors of integers.

    >>> Sensitivity(l1=5, linf=2)
    Sensitivity(l0=5, l1=5, l2_squared=9, linf=2)
    """

    l0: _Bound = field(default=None, kw_only=True)
    l1: _Bound = field(default=None, kw_only=True)
    l2_squared: _Bound = field(default=None, kw_only=True)
    linf: _Bound = field(default=None, kw_only=True)
    length: InitVar[_Places] = field(default=None, kw_only=True)

    def __post_init__(self, length: int | None) -> None:
        """Derive the norms that are not given."""
        given = {"l1": self.l1, "l2_squared": self.l2_squared, "linf": self.linf}
        known = {name: norm for name, norm in given.items() if norm is not None}
        places = [size for size in (self.l0, length) if size is not None]
        for name, norm in _closure(known, min(places, default=None)).items():
            object.__setattr__(self, name, norm)


@frozen
class RealSensitivity:
    """Bounds on the distance of a vector of real numbers from its neighbour, in at least one norm;
    ``l0`` is the number of entries that can differ.

    >>> RealSensitivity(l2=0.5).on_grid(Fraction(1, 100), length=1)
    Sensitivity(l0=1, l1=50, l2_squared=2500, linf=50)
    """

    l0: _Places = field(default=None, kw_only=True, brief=True)
    l1: _Norm = field(default=None, kw_only=True, brief=True)
    l2: _Norm = field(default=None, kw_only=True, brief=True)
    linf: _Norm = field(default=None, kw_only=True, brief=True)

    def __post_init__(self) -> None:
        if not self._norms():
            raise InvalidArgument("give at least one of l1, l2 and linf")

    def _norms(self) -> dict[str, Fraction]:
        norms = {"l1": self.l1, "l2": self.l2, "linf": self.linf}
        return {name: norm for name, norm in norms.items() if norm is not None}

    def on_grid(self, step: Fraction, length: int) -> Sensitivity:
        """The bounds in whole steps, after each number is rounded to the nearest multiple.

        Two numbers at distance D are at most ceil(D / step) steps apart, fewer than D / step + 1.
        """
        places = length if self.l0 is None else min(self.l0, length)
        given = {name: norm / step for name, norm in self._norms().items()}
        if places <= 1:  # all norms are the same
            return Sensitivity(l0=places, linf=math.ceil(min(given.values())))
        whole = {}
        if "linf" in given:
            whole["linf"] = math.ceil(given["linf"])
        if "l1" in given:
            whole["l1"] = math.ceil(given["l1"]) + places - 1 if given["l1"] else 0
        if "l2" in given:  # (D / step + sqrt(places))^2, by the triangle inequality
            square = given["l2"] ** 2
            root = math.isqrt(math.ceil(4 * places * square)) + 1
            whole["l2_squared"] = math.floor(square + places + root) if square else 0
        return Sensitivity(l0=places, length=length, **whole)


def _closure(known: dict[str, int], places: int | None) -> dict[str, int]:
    """All norms from the known ones. Some vector of integers with at most ``places`` entries other
    than 0 attains each derived norm."""
    if not known or (places is None and set(known) == {"linf"} and known["linf"] > 0):
        raise InvalidArgument(
            "give l1 or l2_squared, or linf together with l0 or with the vector's length"
        )
    square = known.get("l2_squared")
    bounds = [known[norm] for norm in ("l1", "linf") if norm in known]
    linf = min(bounds if square is None else [*bounds, math.isqrt(square)])
    if linf == 0 or places == 0:
        return {"l0": 0, "l1": 0, "l2_squared": 0, "linf": 0}
    sums = [known["l1"]] if "l1" in known else []
    if places is not None:
        sums.append(places * linf)
    if square is not None:
        sums.append(_most_l1(square, places))
    l1 = min(sums)
    most = _most_l2_squared(l1, linf)
    l0 = l1 if places is None else min(l1, places)
    l2_squared = most if square is None else min(square, most)
    return {"l0": l0, "l1": l1, "l2_squared": l2_squared, "linf": linf}


def _most_l1(l2_squared: int, places: int | None) -> int:
    """The largest L1 norm of integers with this sum of squares: entries as equal as possible."""
    if places is None:
        return l2_squared
    each = math.isqrt(l2_squared // places)
    return places * each + (l2_squared - places * each**2) // (2 * each + 1)


def _most_l2_squared(l1: int, linf: int) -> int:
    """The largest sum of squares of integers within these norms: as many as possible are linf."""
    whole, rest = divmod(l1, linf)
    return whole * linf**2 + rest**2
