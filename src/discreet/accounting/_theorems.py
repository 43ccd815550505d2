"""From a privacy loss to numbers: each theorem by itself, the best of them, and a lower bound.

Every theorem returns an exact upper bound, or `Unknown` with the reason. Real arithmetic is done
in balls, whose upper ends are taken. Each theorem bounds the whole sum, so the smallest value is a
bound too. The theorems hold for terms that are fixed beforehand; `discreet.accounting.filter`
decides on charges that are chosen adaptively. An interval adds a lower end, which some mechanism
with these terms reaches.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

from flint import arb

from discreet import _html
from discreet._exact import ball, float_up, fraction, precision, upper_fraction
from discreet.accounting import _bounds, _pairs
from discreet.accounting._analytic import gaussian_attained, gaussian_deltas, gaussian_epsilon
from discreet.accounting._bounds import Sum, Unknown
from discreet.accounting._renyi import (
    Curve,
    delta_from_curve,
    epsilon_from_curve,
    quick_deltas_from_curve,
)
from discreet.accounting.pld import _distribution
from discreet.accounting.pld._distribution import SHARE_OF_ONE_SIDE, float_below
from discreet.accounting.pld._dominating_pairs import Side, highest

_BITS = 256
_LARGEST_EPSILON = 100
_TOLERANCE = 0.001
_PARTS = (1.0, 0.25, 1 / 64)  # of delta, tried until the grid gives a finite bound
_ROUNDING = 1e-12  # relative, of the last steps
_NEEDS_DELTA = Unknown("it needs a delta above 0")
_NEEDS_MORE = Unknown("it needs a delta above the deltas of the terms themselves")
_FINENESS = (1.0, 1 / 4, 1 / 32, 1 / 256)  # parts of the tolerance, tried until ends are close
_STALLED = 0.9  # part of the last gap: if the new one is larger, the ends will not meet
_AGREEMENT = 1e-9  # relative distance by which rounding may make the ends cross

Theorem = Callable[[Sum, Fraction], Fraction | Unknown]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Each theorem's epsilon at one delta; prints as a small table.

    ``figures`` maps a theorem to its epsilon, rounded up. ``silent`` maps a theorem that doesn't
    apply to the reason.
    """

    delta: Fraction
    figures: dict[str, float]
    silent: dict[str, str]

    @property
    def epsilon(self) -> float:
        """The smallest epsilon of all; infinite if no theorem gives one."""
        return min(self.figures.values(), default=math.inf)

    @property
    def best(self) -> str | None:
        """The theorem that gives the smallest epsilon."""
        return min(self.figures, key=lambda name: self.figures[name], default=None)

    def __str__(self) -> str:
        """One line for each theorem, with a mark at the best one."""
        width = max(map(len, (*self.figures, *self.silent)), default=0) + 2
        lines = [f"epsilon at delta = {float(self.delta):g}"]
        for name, value in self.figures.items():
            mark = "<- best" if name == self.best else ""
            lines.append(f"  {name:<{width}}{value:<24.12g}{mark}".rstrip())
        lines += [f"  {name:<{width}}{reason}" for name, reason in self.silent.items()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows: list[tuple[str, str]] = []
        marked = None
        for name, value in self.figures.items():
            if name == self.best:
                marked = len(rows)
            rows.append((name, _html.up(value) + (" ← best" if name == self.best else "")))
        rows += [(name, _html.plain(reason)) for name, reason in self.silent.items()]
        caption = f"epsilon at delta = {float(self.delta):g}"
        return _html.table(caption, ("theorem", "epsilon"), rows, marked)


# The best of all theorems


def epsilon(loss: Sum, delta: Fraction) -> float:
    """The smallest epsilon, rounded up, that a theorem gives at this delta; infinite if none
    does."""
    # 1. Gaussian mechanisms only: their law is exact.
    exact = _gaussian_epsilon(loss, delta)
    if not isinstance(exact, Unknown):
        return float_up(exact)
    # 2. The pairs are exact, or all else follows from them, so only distributions and basic
    # composition matter. If the distributions give no bound, the basic one may be far from the
    # smallest: stage 3 follows.
    if _bounds.is_attained(loss) or _bounds.follows_from_pairs(loss):
        basic = _basic_epsilon(loss, delta)
        closest = distribution_epsilon(loss, delta) if delta else basic
        if not isinstance(closest, Unknown):
            return float_up(min(_numbers([closest, basic])))
    # 3. The smallest of all.
    return explain(loss, delta).epsilon


def delta(loss: Sum, epsilon: Fraction) -> float:
    """The smallest delta, rounded up, that a theorem gives at this epsilon; at most 1."""
    # The stages are those of `epsilon`.
    exact = _gaussian_delta(loss, epsilon)
    if not isinstance(exact, Unknown):
        return float_up(min(exact, Fraction(1)))
    if _bounds.is_attained(loss):
        closest = _distribution_delta(loss, epsilon)
        if not isinstance(closest, Unknown) and closest < 1:  # 1 for losses too large for a grid
            return float_up(min(_numbers([closest, _basic_delta(loss, epsilon)])))
    found = _numbers(theorem(loss, epsilon) for theorem in _DELTAS)
    return float_up(min([*found, Fraction(1)]))


def quick_delta(loss: Sum) -> Callable[[Fraction], float]:
    """The smallest delta at each of many epsilons by theorems that need no distributions.

    Advanced composition is left out: a Renyi curve of the same epsilons says more.
    """
    failure = _bounds.failure_probability(loss)
    curves = [curve_of(loss) for curve_of in (_zcdp_curve, _bounds.renyi_curve)]
    known = [quick_deltas_from_curve(one) for one in curves if not isinstance(one, Unknown)]

    def delta(epsilon: Fraction) -> float:
        found = [failure + by_curve(epsilon) for by_curve in known]
        return float_up(min([*found, *_numbers([_basic_delta(loss, epsilon)]), Fraction(1)]))

    return delta


def explain(loss: Sum, delta: Fraction) -> Explanation:
    """Each theorem's epsilon for the loss at this delta."""
    figures: dict[str, float] = {}
    silent: dict[str, str] = {}
    for name, theorem in _EPSILONS.items():
        found = theorem(loss, delta)
        if isinstance(found, Unknown):
            silent[name] = found.reason
        else:
            figures[name] = float_up(found)
    return Explanation(delta, figures, silent)


def _numbers(answers: Iterable[Fraction | Unknown]) -> list[Fraction]:
    return [one for one in answers if not isinstance(one, Unknown)]


# Basic composition


def _basic_epsilon(loss: Sum, delta: Fraction) -> Fraction | Unknown:
    whole = _bounds.approximate(loss)
    if isinstance(whole, Unknown):
        return whole
    epsilon, deltas = whole
    if deltas > delta:
        return Unknown(f"its deltas add up to {float_up(deltas):g}, more than delta")
    if deltas == delta:
        return epsilon
    with precision(_BITS):
        grown = ball(epsilon).exp()
        lowered = grown - ball((delta - deltas) / (1 - deltas)) * (1 + grown)
        if not lowered > 1:
            return Fraction(0) if lowered <= 1 else epsilon
        return min(epsilon, upper_fraction(lowered.log()))


def _basic_delta(loss: Sum, epsilon: Fraction) -> Fraction | Unknown:
    basic = _bounds.approximate(loss)
    if isinstance(basic, Unknown):
        return basic
    whole, deltas = basic
    if whole <= epsilon or deltas >= 1:
        return min(Fraction(1), deltas)
    with precision(_BITS):  # (e^whole - e^epsilon) / (1 + e^whole), as numbers below 1
        rest = (1 - (ball(epsilon) - ball(whole)).exp()) / (1 + (-ball(whole)).exp())
        return deltas + (1 - deltas) * upper_fraction(rest)


# Advanced composition


def _advanced_epsilon(loss: Sum, delta: Fraction) -> Fraction | Unknown:
    sums = _martingale(loss)
    if isinstance(sums, Unknown):
        return sums
    drift, squares, deltas = sums
    if deltas >= delta:
        return _NEEDS_MORE
    with precision(_BITS):
        return upper_fraction(drift + (-2 * squares * ball(delta - deltas).log()).sqrt())


def _advanced_delta(loss: Sum, epsilon: Fraction) -> Fraction | Unknown:
    sums = _martingale(loss)
    if isinstance(sums, Unknown):
        return sums
    drift, squares, deltas = sums
    with precision(_BITS):
        room = ball(epsilon) - drift
        if not (room > 0 and squares > 0):
            return Fraction(1)
        return deltas + upper_fraction((-room * room / (2 * squares)).exp())


def _martingale(loss: Sum) -> tuple[arb, arb, Fraction] | Unknown:
    """The sums of eps (e^eps - 1), of eps^2 and of delta. The first one bounds the mean of the
    whole loss; the second one bounds its distance from the mean, by Azuma's inequality (Dwork and
    Roth 2014, Theorem 3.20, here for epsilons that may differ)."""
    parts = _bounds.parts(loss)
    if isinstance(parts, Unknown):
        return parts
    if any(epsilon > _LARGEST_EPSILON for _, epsilon, _ in parts):
        return Unknown(f"it gives no useful bound if a term's epsilon is above {_LARGEST_EPSILON}")
    with precision(_BITS):
        drift = sum((n * ball(eps) * ball(eps).expm1() for n, eps, _ in parts), arb(0))
        squares = sum((n * ball(eps**2) for n, eps, _ in parts), arb(0))
    return drift, squares, sum((n * delta for n, _, delta in parts), Fraction(0))


# Renyi curves: zCDP's straight line, and each term's own


CurveOf = Callable[[Sum], Curve | Unknown]


def _zcdp_curve(loss: Sum) -> Curve | Unknown:
    rho = _bounds.zcdp(loss)
    return rho if isinstance(rho, Unknown) else lambda order: ball(rho * order)


def _curve_epsilon(curve_of: CurveOf, loss: Sum, delta: Fraction) -> Fraction | Unknown:
    if isinstance(curve := curve_of(loss), Unknown):
        return curve
    left = delta - _bounds.failure_probability(loss)
    return _NEEDS_MORE if left <= 0 else epsilon_from_curve(curve, left)


def _curve_delta(curve_of: CurveOf, loss: Sum, epsilon: Fraction) -> Fraction | Unknown:
    if isinstance(curve := curve_of(loss), Unknown):
        return curve
    return _bounds.failure_probability(loss) + delta_from_curve(curve, epsilon)


# Gaussian mechanisms only: their exact law


def _gaussian_epsilon(loss: Sum, delta: Fraction) -> Fraction | Unknown:
    square = _bounds.mu_squared(loss)
    return square if isinstance(square, Unknown) else gaussian_epsilon(square, delta)


def _gaussian_delta(loss: Sum, epsilon: Fraction) -> Fraction | Unknown:
    square = _bounds.mu_squared(loss)
    return square if isinstance(square, Unknown) else gaussian_deltas(square, epsilon)[1]


# Privacy loss distributions, on a grid


@lru_cache(maxsize=256)  # searches and tables ask for the same sums again
def distribution_epsilon(
    loss: Sum, delta: Fraction, tolerance: float = _TOLERANCE
) -> Fraction | Unknown:
    """An epsilon at this delta, rounded up. The tolerance is the relative error to aim at."""
    if delta == 0:
        return _NEEDS_DELTA
    delta_below, close = float_below(delta), tolerance * SHARE_OF_ONE_SIDE
    directions = _pairs.pairs(loss, Side.UPPER)
    if isinstance(directions, Unknown):
        return directions
    for part in _PARTS:  # an epsilon for a smaller delta is valid
        found = 0.0
        for direction in directions:
            target = delta_below * part
            one = _distribution.epsilon(direction, target, close, Side.UPPER, enough=found)
            found = max(found, one)
        if math.isfinite(found):
            break
    else:
        return Unknown("its grid is too coarse for this delta")
    return fraction(math.nextafter(found * (1 + _ROUNDING), math.inf)) if found else Fraction(0)


def _distribution_delta(loss: Sum, epsilon: Fraction) -> Fraction | Unknown:
    epsilon_below, close = float_below(epsilon), _TOLERANCE * SHARE_OF_ONE_SIDE
    directions = _pairs.pairs(loss, Side.UPPER)
    if isinstance(directions, Unknown):
        return directions
    worst = max if epsilon else min  # at 0, both directions have the same delta: total variation
    found = worst(
        _distribution.delta(direction, epsilon_below, close, Side.UPPER) for direction in directions
    )
    return min(Fraction(1), fraction(found) * (1 + fraction(_ROUNDING)))


_EPSILONS: dict[str, Theorem] = {
    "basic composition": _basic_epsilon,
    "advanced composition": _advanced_epsilon,
    "zCDP": partial(_curve_epsilon, _zcdp_curve),
    "Renyi": partial(_curve_epsilon, _bounds.renyi_curve),
    "Gaussian": _gaussian_epsilon,
    "privacy loss distribution": distribution_epsilon,
}
_DELTAS: tuple[Theorem, ...] = (
    _basic_delta,
    _advanced_delta,
    partial(_curve_delta, _zcdp_curve),
    partial(_curve_delta, _bounds.renyi_curve),
    _gaussian_delta,
    _distribution_delta,
)


# Both ends


@dataclass(frozen=True, slots=True)
class Interval:
    """Proven ends for an epsilon, and the relative distance that was asked for; unpacks into the
    two ends."""

    lower: float
    upper: float
    tolerance: float

    def __iter__(self) -> Iterator[float]:
        """The lower end, then the upper one."""
        return iter((self.lower, self.upper))

    @property
    def width(self) -> float:
        """The distance of the ends; 0 if both are infinite."""
        return self.upper - self.lower if self.upper > self.lower else 0.0

    @property
    def is_wide(self) -> bool:
        """Whether the ends are farther apart than was asked for."""
        if math.isinf(self.upper):
            return not math.isinf(self.lower)
        return self.width > self.tolerance * self.upper

    def __str__(self) -> str:
        if math.isinf(self.lower):
            return "proven: infinite"
        ends = f"proven: between {self.lower:.7g} and {self.upper:.7g}"
        return f"{ends} (wide: no closer ends were found)" if self.is_wide else ends

    def _repr_html_(self) -> str:
        ends = "proven ends" if not self.is_wide else "proven ends, farther apart than was wanted"
        rows = [("at least", _html.down(self.lower)), ("at most", _html.up(self.upper))]
        return _html.table(f"epsilon: {ends}", (), rows)


def interval(loss: Sum, delta: Fraction, tolerance: Fraction) -> Interval:
    """Proven ends for the smallest epsilon at this delta, computed ever more closely."""
    aim, gap = float(tolerance), math.inf
    lower, upper = 0.0, epsilon(loss, delta)
    for fineness in _FINENESS:
        enough = upper * (1 - aim)
        lower = max(lower, attained(loss, delta, aim * fineness, enough=enough))
        if math.isinf(lower) or upper - lower <= aim * upper or upper - lower > _STALLED * gap:
            break
        gap = upper - lower
        closer = distribution_epsilon(loss, delta, aim * fineness)
        if not isinstance(closer, Unknown):
            upper = min(upper, float_up(closer))
    assert lower <= upper * (1 + _AGREEMENT), "a lower end above the upper one"
    return Interval(min(lower, upper), upper, aim)


def attained(loss: Sum, delta: Fraction, tolerance: float, *, enough: float = math.inf) -> float:
    """An epsilon that some mechanism with these terms reaches, as far as one is known.

    If one direction reaches ``enough``, the other one is not computed.
    """
    square = _bounds.mu_squared(loss)
    if not isinstance(square, Unknown):
        return gaussian_attained(square, delta)
    directions = _pairs.pairs(loss, Side.LOWER)
    if isinstance(directions, Unknown):
        return 0.0
    if delta:
        delta_above = math.nextafter(float_below(delta), 1.0)
        part = tolerance * SHARE_OF_ONE_SIDE
        found = 0.0
        for direction in directions:
            one = _distribution.epsilon(direction, delta_above, part, Side.LOWER)
            found = max(found, one)
            if found * (1 - _ROUNDING) >= enough:
                break
    else:
        found = max(
            sum(count * highest(pair) for pair, count in direction) for direction in directions
        )
    return max(0.0, found * (1 - _ROUNDING))
