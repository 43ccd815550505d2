"""The one currency: a privacy loss is a formal sum of counted terms.

It is kept as what happened, ``3 * Gaussian(4.0) + Pure(0.5)``, never as a number. Numbers come
at the edge, from `discreet.accounting.theorems`.
"""

import json
import re
from collections import Counter
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from discreet import checks
from discreet.errors import InvalidArgument, WrongUnit
from discreet.exact import Number, float_up, precision, shown
from discreet.unit import Change, Unit

if TYPE_CHECKING:
    from discreet.accounting.theorems import Explanation


class Term:
    """One kind of access. A term never knows how often it happened: that is the sum's business.

    Its subclasses, one file each in `discreet.accounting.terms`, state what is known of it, in
    the words of `discreet.accounting.knowledge`.
    """

    __slots__ = ()
    needs_exchange: ClassVar[bool] = False  # whether it speaks of exchanged rows alone

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


def _written(value: Fraction | int) -> str:
    return shown(value) if isinstance(value, Fraction) else repr(value)


@dataclass(frozen=True, slots=True)
class PrivacyLoss:
    """What an access costs its unit: counted terms that add up.

    ``terms`` holds each term once with its count, in a fixed order, so that equal sums are equal
    values. ``unit`` is ``None`` until the loss meets a computation or a ledger; privacy losses of
    two different units never add (`WrongUnit`).

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
            total[term] += checks.count(count=count)
        kept = ((term, count) for term, count in total.items() if count)
        ordered = tuple(sorted(kept, key=lambda pair: repr(pair[0]), reverse=True))
        object.__setattr__(self, "terms", ordered)
        if not (self.unit is None or isinstance(self.unit, Unit)):
            raise InvalidArgument(f"unit = {self.unit!r}: give a Unit")
        if self.unit is not None and self.unit.change is not Change.REPLACE:
            for term, _ in ordered:
                if term.needs_exchange:
                    raise WrongUnit(
                        f"{term!r} protects units whose value is exchanged for another, not ones "
                        "that come or go: declare the unit with Change.REPLACE"
                    )

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
        times = checks.count(count=count)
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

        The best of the theorems that apply is taken; each holds by itself for this whole sum,
        its terms being fixed beforehand. Infinite if the sum has no bound at this delta.
        """
        return self.explain(delta=delta).epsilon

    def delta(self, epsilon: Number) -> float:
        """The smallest delta, rounded up, for which (epsilon, delta)-DP is proven here."""
        from discreet.accounting.theorems import best_delta

        return best_delta(self, checks.not_negative(epsilon=epsilon))

    def renyi(self, order: Number) -> float:
        """A bound, rounded up, on the Renyi divergence of this order, which lies above 1; it need
        not hold with the probability that is the sum of the terms' own deltas. Raises `NoBound`
        for a sum of which none is known.
        """
        from discreet.accounting import knowledge

        exact = checks.positive(order=order)
        if exact <= 1:
            raise InvalidArgument(f"order = {order}: give a number above 1")
        with precision(256):
            return float_up(knowledge.renyi(self, exact))

    def zcdp(self) -> float:
        """The smallest rho, rounded up, for which rho-zCDP is proven here (Bun and Steinke 2016);
        as with `renyi`, apart from the terms' own deltas. Raises `NoBound` if there is none."""
        from discreet.accounting import knowledge

        return float_up(knowledge.zcdp(self))

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
        from discreet.accounting import knowledge

        return knowledge.for_group(self, checks.positive_count(size=size))

    def explain(self, delta: Number = 0) -> "Explanation":
        """What each theorem gives as epsilon at this delta, and which one is the best."""
        from discreet.accounting.theorems import explain

        return explain(self, checks.delta(delta=delta))

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


def _term_to_json(term: Term, count: int) -> dict[str, object]:
    values = {name: str(getattr(term, name)) for name in _names(type(term))}
    return {"count": count, "term": type(term).__name__, **values}


def _term_from_json(entry: object) -> tuple[Term, int]:
    from discreet.accounting import terms

    name = entry.get("term") if isinstance(entry, dict) else None
    if name not in terms.__all__:
        raise InvalidArgument(f"unknown term {name!r}; known are {', '.join(terms.__all__)}")
    kind: type[Term] = getattr(terms, name)
    read = _only(entry, {"count", "term", *_names(kind)})
    if type(read["count"]) is not int or read["count"] < 1:
        raise InvalidArgument(f"count = {read['count']!r}: give a whole number, 1 or above")
    return kind(**{name: _exact(read[name]) for name in _names(kind)}), read["count"]


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
