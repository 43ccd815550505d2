"""The one currency: a privacy loss is a formal sum of counted terms.

It records the mechanisms that ran, ``3 * Gaussian(4.0) + Pure(0.5)``, not a number. Numbers are
computed last: the methods of `PrivacyLoss` are thin calls into the theorems below this file. The
kinds of term are above it, in `discreet.accounting.terms`.
"""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, lru_cache

from discreet import _checks, _html
from discreet._exact import Number, float_up, precision
from discreet._fields import as_code
from discreet._unit import Change, Unit
from discreet.accounting import _bounds, _json, _profile, _theorems
from discreet.accounting._bounds import Bounds, Unknown, known
from discreet.accounting._profile import Profile, TradeOff
from discreet.accounting._theorems import Explanation, Interval
from discreet.errors import InvalidArgument, WrongUnit

MOST_NESTED = 3  # terms around another one: each multiplies the time that a price takes
_KINDS = "discreet.accounting.terms."  # where the terms are that JSON may name
_LONGEST_REMEMBERED = 2_000  # characters of JSON


class Term(Bounds):
    """One kind of access. A term never knows how often it happened: that is the sum's business.

    The bounds on it are the methods of `Bounds`, which its subclasses in
    `discreet.accounting.terms` override.
    """

    __slots__ = ()

    def __add__(self, other: "Term | PrivacyLoss") -> "PrivacyLoss":
        """The privacy loss of both together."""
        return PrivacyLoss.of(self) + other

    def __mul__(self, count: int) -> "PrivacyLoss":
        """The privacy loss of this happening ``count`` times."""
        return PrivacyLoss.of(self) * count

    __rmul__ = __mul__

    def for_group(self, size: int) -> "Term | Unknown":
        """The term for neighbours that are this many steps apart."""
        return Unknown(f"nothing is known of what {self!r} costs a group of {size}")

    def __repr__(self) -> str:
        """The term as it is written in code, apart from the mechanism of the same name."""
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]  # every term is a dataclass
        values = {name: getattr(self, name) for name in names}
        given = [f"{name}={as_code(one)}" for name, one in values.items() if one is not None]
        return f"accounting.{type(self).__name__}({', '.join(given)})"


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
        counted = [(term, count) for term, count in total.items() if count]
        if len(counted) > 1:  # to write a term takes long, in sums of a thousand
            counted.sort(key=lambda pair: repr(pair[0]), reverse=True)
        ordered = tuple(counted)
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

        It holds for this whole sum if its terms are fixed beforehand, and is infinite if the sum
        has no bound at this delta. For most terms it is computed from privacy loss distributions.
        The aim is at most 0.1 % above the smallest possible epsilon. At tiny deltas, or for
        millions of steps on rare samples, it can be less close. `interval` gives both ends, and
        `explain` the epsilons of the other theorems.
        """
        exact = _checks.delta(delta=delta)
        return known(within_reach(lambda: _theorems.epsilon(self, exact)))

    def delta(self, epsilon: Number) -> float:
        """The smallest delta, rounded up, for which (epsilon, delta)-DP is proven here."""
        exact = _checks.not_negative(epsilon=epsilon)
        return known(within_reach(lambda: _theorems.delta(self, exact)))

    def interval(self, delta: Number = 0, tolerance: Number = 0.001) -> Interval:
        """Two proven ends for the smallest epsilon at this delta. All mechanisms with these terms
        satisfy the upper end, and one of them satisfies no epsilon below the lower end.

        The ends' relative distance is at most ``tolerance`` if that can be computed; otherwise
        ``is_wide`` is true. They unpack: ``lower, upper = loss.interval(1e-6)``.

        >>> from discreet.accounting import Gaussian, PoissonSampled
        >>> found = (1000 * PoissonSampled(Gaussian(1), 0.01)).interval(1e-5)
        >>> 1.827 < found.lower <= found.upper < 1.829, found.is_wide
        (True, False)
        """
        wanted = _checks.positive(tolerance=tolerance)
        return _theorems.interval(self, _checks.delta(delta=delta), wanted)

    def renyi(self, order: Number) -> float:
        """A bound, rounded up, on the Renyi divergence of this order, which must be above 1.

        It may fail with a probability of at most the sum of the terms' own deltas. Raises `NoBound`
        if no bound is known.
        """
        exact = _checks.positive(order=order)
        if exact <= 1:
            raise InvalidArgument(f"order = {order}: give a number above 1")
        with precision(256):
            return float_up(known(_bounds.renyi(self, exact)))

    def zcdp(self) -> float:
        """The smallest rho, rounded up, for which rho-zCDP is proven here (Bun and Steinke 2016).
        Like `renyi`, it may fail with the terms' own deltas. Raises `NoBound` if none is known."""
        return float_up(known(_bounds.zcdp(self)))

    def advantage(self) -> float:
        """The largest advantage, rounded up, of a test for one unit's presence: its true positive
        rate minus its false positive rate. This is the delta at epsilon 0."""
        return self.delta(0)

    def for_group(self, size: int) -> "PrivacyLoss":
        """The privacy loss of the same accesses to ``size`` units together, such as a family.

        >>> from discreet.accounting import Gaussian, Pure
        >>> (Pure(0.1) + Gaussian(6)).for_group(3)
        accounting.Pure(epsilon=0.3) + accounting.Gaussian(multiplier=2)
        """
        return known(group_loss(self, _checks.positive_count(size=size)))

    def explain(self, delta: Number = 0) -> Explanation:
        """Each theorem's epsilon at this delta, and which one is the best."""
        return _theorems.explain(self, _checks.delta(delta=delta))

    def profile(self) -> Profile:
        """The privacy profile: a proven delta for each epsilon, to draw or to look up.

        >>> from discreet.accounting import Gaussian
        >>> (4 * Gaussian(4)).profile().delta(1) < 0.0069
        True
        """
        return _profile.profile(self)

    def trade_off(self) -> TradeOff:
        """The power of any attack: for each type I error of a test for one unit's presence, the
        least type II error, rounded down (Dong, Roth and Su 2022).

        >>> from discreet.accounting import Pure
        >>> 0.85 < (2 * Pure(0.5)).trade_off().type_two(0.05) < 0.87
        True
        """
        return _profile.trade_off(self)

    def to_json(self) -> str:
        """The loss as text, exactly: `from_json` gives an equal value back."""
        plain = {"terms": _json.plain_terms(self.terms), "unit": _json.plain_unit(self.unit)}
        return json.dumps(plain, sort_keys=True, separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> "PrivacyLoss":
        """The loss that `to_json` wrote; anything else raises `InvalidArgument`."""
        try:
            is_short = type(text) is str and len(text) <= _LONGEST_REMEMBERED
            return (_remembered if is_short else _read)(text)
        except (ValueError, TypeError, RecursionError) as mistake:
            raise InvalidArgument(f"not the JSON of a privacy loss: {mistake}") from mistake

    def __str__(self) -> str:
        """The sum as it is written in code, without its unit."""
        counted = (f"{n} * {t!r}" if n > 1 else repr(t) for t, n in self.terms)
        return " + ".join(counted) or "accounting.PrivacyLoss()"

    def __repr__(self) -> str:
        """The value as it is written in code, with its unit if it has one."""
        if self.unit is None:
            return str(self)
        counts = [count for _, count in self.terms]
        whole = f"1 * {self}" if counts == [1] else str(self)  # a bare term has no unit
        return f"({whole}).for_unit({self.unit!r})"

    def _repr_html_(self) -> str:
        rows = [(f"{count:,} ×", _html.plain(repr(term))) for term, count in self.terms]
        caption = f"Privacy loss of {self.unit}" if self.unit else "Privacy loss"
        return _html.table(caption, ("times", "term"), rows or [("", "nothing")])


_TOO_EXTREME = Unknown(
    "the numbers of this privacy loss are too extreme to be computed: use smaller counts, and "
    "parameters nearer to 1"
)


def within_reach(compute: Callable[[], float]) -> float | Unknown:
    """The number; `Unknown` if its arithmetic fails, as with counts of a thousand digits."""
    try:
        return compute()
    except InvalidArgument:
        raise
    except (ArithmeticError, ValueError, RuntimeWarning):
        return _TOO_EXTREME


def inner_loss(privacy_loss: PrivacyLoss | Term, change: Change) -> PrivacyLoss:
    """Check a privacy loss for a term that holds it: it has no unit of its own, and holds for
    neighbours that differ in this way, or in any."""
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
    """The depth of nested terms; each was checked when it was made."""
    inner = (getattr(term, "privacy_loss", None) for term, _ in loss.terms)
    return 1 + max((_levels(each) for each in inner if each is not None), default=0)


def _check_change(terms: tuple[tuple[Term, int], ...], unit: Unit | None) -> None:
    """Refuse terms for different relations of neighbours, or for another one than the unit's."""
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


def group_loss(loss: PrivacyLoss, size: int) -> PrivacyLoss | Unknown:
    """The sum for neighbours that are this many steps apart."""
    if size == 1:
        return loss
    terms = []
    for term, count in loss.terms:
        group = term.for_group(size)
        if isinstance(group, Unknown):
            return group
        terms.append((group, count))
    return PrivacyLoss(tuple(terms), loss.unit)


def change_of(loss: PrivacyLoss) -> Change | None:
    """The relation between neighbours that the privacy loss holds for; None if for any."""
    return next((term.change for term, _ in loss.terms if term.change is not None), None)


def _read(text: str) -> PrivacyLoss:
    read = _json.only(json.loads(text), {"terms", "unit"})
    terms = _json.terms_of(read["terms"], _kinds(), PrivacyLoss)
    return PrivacyLoss(terms, _json.unit_of(read["unit"]))


_remembered = lru_cache(maxsize=256)(_read)  # many charges have the same few losses


@cache
def _kinds() -> dict[str, type[Term]]:
    """The kinds of term that this package has, by name. A text means the same everywhere, so it
    can't name others."""
    found, bases = [], [Term]
    while bases:
        kinds = bases.pop().__subclasses__()
        found += [kind for kind in kinds if kind.__module__.startswith(_KINDS)]
        bases += kinds
    known: dict[str, type[Term]] = {}
    for kind in found:
        # a class with slots is made twice: the first one, which has none, is no term
        if is_dataclass(kind) and "__slots__" in vars(kind):
            known.setdefault(kind.__name__, kind)
    return known
