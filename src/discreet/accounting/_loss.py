"""The one currency: a privacy loss is a formal sum of counted terms.

It is kept as what happened, ``3 * Gaussian(4.0) + Pure(0.5)``, never as a number. Numbers come
at the edge, from `discreet.accounting._theorems`.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from discreet import _checks
from discreet._exact import Number, float_up, precision, shown
from discreet._unit import Change, Unit
from discreet.errors import InvalidArgument, NoBound, WrongUnit

if TYPE_CHECKING:
    from discreet.accounting._interval import Interval
    from discreet.accounting._profile import Profile
    from discreet.accounting._theorems import Explanation
    from discreet.accounting._trade_off import TradeOff


class Term:
    """One kind of access. A term never knows how often it happened: that is the sum's business.

    Its subclasses, one file each in `discreet.accounting.terms`, state what is known of it, in
    the words of `discreet.accounting._knowledge`.
    """

    __slots__ = ()
    change: ClassVar[Change | None] = None  # how neighbours must differ for it to say anything
    is_attained: ClassVar[bool] = False  # whether some mechanism does just what bounds its losses

    def __add__(self, other: "Term | PrivacyLoss") -> "PrivacyLoss":
        """The privacy loss of both together."""
        return PrivacyLoss.of(self) + other

    def __mul__(self, count: int) -> "PrivacyLoss":
        """The privacy loss of this happening ``count`` times."""
        return PrivacyLoss.of(self) * count

    __rmul__ = __mul__

    def __repr__(self) -> str:
        """The term as it is written in code, apart from the mechanism of the same name."""
        values = ", ".join(f"{f.name}={_written(getattr(self, f.name))}" for f in fields(self))  # type: ignore[arg-type]  # every term is a dataclass
        return f"accounting.{type(self).__name__}({values})"


def _written(value: object) -> str:
    return shown(value) if isinstance(value, Fraction) else repr(value)


@dataclass(frozen=True, slots=True)
class PrivacyLoss:
    """The privacy loss of an access for its unit: a sum of counted terms.

    ``terms`` holds each term once with its count, in a fixed order, so that equal sums are equal
    values. ``unit`` is ``None`` until the loss meets a computation or a ledger. Privacy losses of
    two different units can't be added (`WrongUnit`).

    >>> from discreet.accounting import Gaussian, Pure
    >>> month = 3 * Pure(0.1) + Gaussian(4)
    >>> month
    3 * accounting.Pure(epsilon=0.1) + accounting.Gaussian(multiplier=4)
    >>> 2 * month == month + month
    True
    >>> (10 * Pure(0.1)).epsilon()
    1.0
    """

    terms: tuple[tuple[Term, int], ...] = ()
    unit: Unit | None = None

    def __post_init__(self) -> None:
        """Bring equal sums into one form; refuse a count below 0, which would be a refund."""
        total: Counter[Term] = Counter()
        for term, count in self.terms:
            if not isinstance(term, Term):
                raise InvalidArgument(f"{term!r} is no term of a privacy loss")
            total[term] += _checks.count(count=count)
        kept = [(term, count) for term, count in total.items() if count]
        if len(kept) > 1:  # to write a term takes long, in sums of a thousand
            kept.sort(key=lambda pair: repr(pair[0]), reverse=True)
        ordered = tuple(kept)
        object.__setattr__(self, "terms", ordered)
        if not (self.unit is None or isinstance(self.unit, Unit)):
            raise InvalidArgument(f"unit = {self.unit!r}: give a Unit")
        _check_change(ordered, self.unit)

    @staticmethod
    def of(*terms: Term, unit: Unit | None = None) -> "PrivacyLoss":
        """The sum of the terms, each once."""
        return PrivacyLoss(tuple((term, 1) for term in terms), unit)

    def __add__(self, other: "PrivacyLoss | Term") -> "PrivacyLoss":
        """The privacy loss of both together."""
        if isinstance(other, Term):
            other = PrivacyLoss.of(other)
        if not isinstance(other, PrivacyLoss):
            return NotImplemented
        return PrivacyLoss(self.terms + other.terms, self.for_unit(other.unit).unit)

    __radd__ = __add__

    def __mul__(self, count: int) -> "PrivacyLoss":
        """The privacy loss of this happening ``count`` times."""
        times = _checks.count(count=count)
        return PrivacyLoss(tuple((term, n * times) for term, n in self.terms), self.unit)

    __rmul__ = __mul__

    def for_unit(self, unit: Unit | None) -> "PrivacyLoss":
        """The same loss, for this unit; raises `WrongUnit` if it already protects another."""
        if unit is None or unit == self.unit:
            return self
        if self.unit is not None:
            raise WrongUnit(
                f"this privacy loss protects {self.unit}, the other side protects {unit}; "
                "privacy losses of different units never add: declare one unit for both"
            )
        return PrivacyLoss(self.terms, unit)

    def epsilon(self, delta: Number = 0) -> float:
        """The smallest epsilon, rounded up, for which (epsilon, delta)-DP is proven here.

        For most terms it comes from privacy loss distributions and is made to lie at most 0.1 %
        above the smallest possible one. How close it came is not told here, and at tiny deltas,
        or where rare samples meet millions of steps, it may be less close: `interval` tells both
        ends, `explain` the other theorems. It holds for this whole sum, its terms being fixed
        beforehand. Infinite if the sum has no bound at this delta.
        """
        from discreet.accounting._theorems import best_epsilon

        with _within_reach():
            return best_epsilon(self, _checks.delta(delta=delta))

    def delta(self, epsilon: Number) -> float:
        """The smallest delta, rounded up, for which (epsilon, delta)-DP is proven here."""
        from discreet.accounting._theorems import best_delta

        with _within_reach():
            return best_delta(self, _checks.not_negative(epsilon=epsilon))

    def interval(self, delta: Number = 0, tolerance: Number = 0.001) -> "Interval":
        """Two proven ends for the smallest epsilon at this delta: all mechanisms with these terms
        satisfy the upper one, and one of them nothing below the lower one.

        The ends come as close as ``tolerance``, relatively, where that can be computed; where
        they don't, ``is_wide`` says so.

        >>> from discreet.accounting import Gaussian, PoissonSampled
        >>> found = (1000 * PoissonSampled(Gaussian(1), 0.01)).interval(1e-5)
        >>> 1.827 < found.lower <= found.upper < 1.829, found.is_wide
        (True, False)
        """
        from discreet.accounting._interval import interval

        wanted = _checks.positive(tolerance=tolerance)
        return interval(self, _checks.delta(delta=delta), wanted)

    def renyi(self, order: Number) -> float:
        """A bound, rounded up, on the Renyi divergence of this order, which lies above 1; it need
        not hold with the probability that is the sum of the terms' own deltas. Raises `NoBound`
        for a sum of which none is known.
        """
        from discreet.accounting import _knowledge

        exact = _checks.positive(order=order)
        if exact <= 1:
            raise InvalidArgument(f"order = {order}: give a number above 1")
        with precision(256):
            return float_up(_knowledge.renyi(self, exact))

    def zcdp(self) -> float:
        """The smallest rho, rounded up, for which rho-zCDP is proven here (Bun and Steinke 2016);
        as with `renyi`, apart from the terms' own deltas. Raises `NoBound` if there is none."""
        from discreet.accounting import _knowledge

        return float_up(_knowledge.zcdp(self))

    def advantage(self) -> float:
        """The most, rounded up, by which a test of whether one unit was there can be right more
        often if it was than wrong if it wasn't: the delta at epsilon 0."""
        return self.delta(0)

    def for_group(self, size: int) -> "PrivacyLoss":
        """What the same accesses cost ``size`` units together, such as a family.

        >>> from discreet.accounting import Gaussian, Pure
        >>> (Pure(0.1) + Gaussian(6)).for_group(3)
        accounting.Pure(epsilon=0.3) + accounting.Gaussian(multiplier=2)
        """
        from discreet.accounting import _knowledge

        return _knowledge.for_group(self, _checks.positive_count(size=size))

    def explain(self, delta: Number = 0) -> "Explanation":
        """What each theorem gives as epsilon at this delta, and which one is the best."""
        from discreet.accounting._theorems import explain

        return explain(self, _checks.delta(delta=delta))

    def profile(self) -> "Profile":
        """The privacy profile: a proven delta for each epsilon, to draw or to look up.

        >>> from discreet.accounting import Gaussian
        >>> (4 * Gaussian(4)).profile().delta(1) < 0.0069
        True
        """
        from discreet.accounting._profile import profile

        return profile(self)

    def trade_off(self) -> "TradeOff":
        """What any attacker can tell: for each type I error of a test of whether one unit was
        there, the least type II error, rounded down (Dong, Roth and Su 2022).

        >>> from discreet.accounting import Pure
        >>> 0.85 < (2 * Pure(0.5)).trade_off().type_two(0.05) < 0.87
        True
        """
        from discreet.accounting._trade_off import trade_off

        return trade_off(self)

    def to_json(self) -> str:
        """The loss as text, exactly: `from_json` gives an equal value back."""
        terms = [_term_to_json(term, count) for term, count in self.terms]
        plain = {"terms": terms, "unit": self.unit and _unit_to_json(self.unit)}
        return json.dumps(plain, sort_keys=True, separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> "PrivacyLoss":
        """The loss that `to_json` wrote; anything else raises `InvalidArgument`."""
        try:
            read = _only(json.loads(text), {"terms", "unit"})
            terms = tuple(_term_from_json(entry) for entry in _list(read["terms"]))
            return PrivacyLoss(terms, _unit_from_json(read["unit"]))
        except (ValueError, TypeError, RecursionError) as mistake:
            raise InvalidArgument(f"not the JSON of a privacy loss: {mistake}") from mistake

    def __repr__(self) -> str:
        """The sum as it is written in code."""
        counted = (f"{n} * {t!r}" if n > 1 else repr(t) for t, n in self.terms)
        return " + ".join(counted) or "accounting.PrivacyLoss()"

    def _repr_html_(self) -> str:
        from discreet.accounting import _html

        return _html.loss(self)


@contextmanager
def _within_reach() -> Iterator[None]:
    """Name what the numbers of terms can't be computed for, as counts of a thousand digits."""
    try:
        yield
    except InvalidArgument:
        raise
    except (ArithmeticError, ValueError, RuntimeWarning) as mistake:
        raise NoBound(
            "the numbers of this privacy loss are too extreme to be computed: use smaller counts, "
            "and parameters nearer to 1"
        ) from mistake


MOST_NESTED = 3  # terms around another one: each multiplies the time that a price takes


def inner_loss(privacy_loss: PrivacyLoss | Term, change: Change) -> PrivacyLoss:
    """A privacy loss that another term is to hold: of no unit of its own, and of neighbours that
    differ in this way, or in any."""
    loss = PrivacyLoss.of(privacy_loss) if isinstance(privacy_loss, Term) else privacy_loss
    if not isinstance(loss, PrivacyLoss):
        raise InvalidArgument(f"privacy_loss = {privacy_loss!r}: give a term or a privacy loss")
    if loss.unit is not None:
        raise WrongUnit("a privacy loss inside a term has no unit of its own: leave it out")
    for term, _ in loss.terms:
        if term.change not in (None, change):
            raise WrongUnit(
                f"{term!r} protects units that are {_CHANGES[term.change]}, and here they are "
                f"{_CHANGES[change]}"
            )
    if _levels(loss) > MOST_NESTED:
        raise InvalidArgument(
            f"privacy_loss: at most {MOST_NESTED} terms may hold one another around the innermost "
            "one: combine some of them, such as a sample of a sample into one of the product rate"
        )
    return loss


def _levels(loss: PrivacyLoss) -> int:
    """How many terms stand in one another; each was checked when it was made."""
    inner = (getattr(term, "privacy_loss", None) for term, _ in loss.terms)
    return 1 + max((_levels(each) for each in inner if each is not None), default=0)


def _check_change(terms: tuple[tuple[Term, int], ...], unit: Unit | None) -> None:
    """Refuse terms that speak of different neighbours, or of others than the unit's."""
    bound = [term for term, _ in terms if term.change is not None]
    for term in bound:
        if unit is not None and term.change is not unit.change:
            raise WrongUnit(
                f"{term!r} protects units that are {_CHANGES[term.change]}, and {unit} is another "
                f"unit: declare it with {term.change}, or find a term for it"
            )
        if term.change is not bound[0].change:
            raise WrongUnit(
                f"{bound[0]!r} protects units that are {_CHANGES[bound[0].change]}, {term!r} ones "
                f"that are {_CHANGES[term.change]}: the two never add"
            )


_CHANGES: dict[Change | None, str] = {
    Change.ADD_REMOVE: "added or removed",
    Change.REPLACE: "replaced by others",
}


def _term_to_json(term: Term, count: int) -> dict[str, object]:
    values = {name: _plain(getattr(term, name)) for name in _names(type(term))}
    return {"count": count, "term": type(term).__name__, **values}


def _plain(value: "Fraction | bool | PrivacyLoss") -> object:
    if isinstance(value, PrivacyLoss):
        return [_term_to_json(term, count) for term, count in value.terms]
    return value if isinstance(value, bool) else str(value)


def _term_from_json(entry: object) -> tuple[Term, int]:
    from discreet.accounting import terms

    name = entry.get("term") if isinstance(entry, dict) else None
    if name not in terms.__all__:
        raise InvalidArgument(f"unknown term {name!r}; known are {', '.join(terms.__all__)}")
    kind: type[Term] = getattr(terms, name)
    read = _only(entry, {"count", "term", *_names(kind)})
    if type(read["count"]) is not int or read["count"] < 1:
        raise InvalidArgument(f"count = {read['count']!r}: give a whole number, 1 or above")
    return kind(**{name: _value(read[name]) for name in _names(kind)}), read["count"]


def _value(read: object) -> "Fraction | bool | PrivacyLoss":
    if isinstance(read, list):
        return PrivacyLoss(tuple(_term_from_json(entry) for entry in read))
    return read if isinstance(read, bool) else _exact(read)


def _unit_to_json(unit: Unit) -> dict[str, object]:
    return {"column": unit.column, "change": unit.change.value}


def _unit_from_json(read: object) -> Unit | None:
    if read is None:
        return None
    known = _only(read, {"column", "change"})
    return Unit(known["column"], Change(known["change"]))


def _names(kind: type[Term]) -> list[str]:
    return [field.name for field in fields(kind)]  # type: ignore[arg-type]  # every term is a dataclass


def _only(read: object, names: set[str]) -> dict[str, Any]:  # Any: JSON
    """The object, which has these names and no others."""
    if not isinstance(read, dict) or set(read) != names:
        raise InvalidArgument(f"{read!r} is no object of {', '.join(sorted(names))}")
    return read


def _list(read: object) -> list[object]:
    if not isinstance(read, list):
        raise InvalidArgument(f"{read!r} is no list")
    return read


def _exact(text: object) -> Fraction:
    """A fraction as `str` writes it; no exponents, which could stand for numbers without end."""
    if not (isinstance(text, str) and re.fullmatch("[0-9]+(/0*[1-9][0-9]*)?", text)):
        raise InvalidArgument(f"{text!r} is no fraction written as '1/2'")
    return Fraction(text)
