"""Sensitivity: bounds on the distance between results on neighbouring tables, in all norms."""

import math
from dataclasses import dataclass
from fractions import Fraction

from discreet import _checks
from discreet._exact import Number, shown
from discreet.errors import InvalidArgument


@dataclass(frozen=True, slots=True, init=False)
class Sensitivity:
    """Bounds on the distance of a vector of integers from its neighbour, in every norm.

    Give at least one of `l1`, `l2_squared` and `linf`; the last one alone needs the vector's
    ``length``, or `l0`, the number of entries that can differ. The other bounds are derived: the
    smallest that the given ones imply for vectors of integers.

    >>> Sensitivity(l1=5, linf=2)
    Sensitivity(l0=5, l1=5, l2_squared=9, linf=2)
    """

    l0: int
    l1: int
    l2_squared: int
    linf: int

    def __init__(
        self,
        *,
        l0: int | None = None,
        l1: int | None = None,
        l2_squared: int | None = None,
        linf: int | None = None,
        length: int | None = None,
    ) -> None:
        """Store the given norms and derive the others."""
        given = {"l1": l1, "l2_squared": l2_squared, "linf": linf}
        known = {n: _checks.count(**{n: norm}) for n, norm in given.items() if norm is not None}
        sizes = {"l0": l0, "length": length}
        places = [_checks.count(**{n: size}) for n, size in sizes.items() if size is not None]
        for name, norm in _closure(known, min(places, default=None)).items():
            object.__setattr__(self, name, norm)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class RealSensitivity:
    """Bounds on the distance of a vector of real numbers from its neighbour, in at least one norm;
    ``l0`` is the number of entries that can differ.

    >>> RealSensitivity(l2=0.5).on_grid(Fraction(1, 100), length=1)
    Sensitivity(l0=1, l1=50, l2_squared=2500, linf=50)
    """

    norms: tuple[tuple[str, Fraction], ...]
    l0: int | None

    def __init__(
        self,
        *,
        l0: int | None = None,
        l1: Number | None = None,
        l2: Number | None = None,
        linf: Number | None = None,
    ) -> None:
        """Store the given norms at their exact values."""
        given = {"l1": l1, "l2": l2, "linf": linf}
        known = {
            n: _checks.not_negative(**{n: norm}) for n, norm in given.items() if norm is not None
        }
        if not known:
            raise InvalidArgument("give at least one of l1, l2 and linf")
        object.__setattr__(self, "norms", tuple(known.items()))
        object.__setattr__(self, "l0", None if l0 is None else _checks.count(l0=l0))

    def on_grid(self, step: Fraction, length: int) -> Sensitivity:
        """The bounds in whole steps, after each number is rounded to the nearest multiple.

        Two numbers at distance D are at most ceil(D / step) steps apart, fewer than D / step + 1.
        """
        places = length if self.l0 is None else min(self.l0, length)
        given = {name: norm / step for name, norm in self.norms}
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

    def __repr__(self) -> str:
        """The sensitivity as it is written in code."""
        places = [] if self.l0 is None else [f"l0={self.l0}"]
        norms = [f"{name}={shown(norm)}" for name, norm in self.norms]
        return f"RealSensitivity({', '.join(places + norms)})"


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
