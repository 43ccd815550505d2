"""From a privacy loss to numbers: each theorem by itself, and the best of them.

Every function here returns exact upper bounds: real arithmetic is done in balls, and the end
that speaks against us is taken. Each theorem holds alone for the whole sum, so the smallest
value is a bound too. They hold for terms fixed beforehand; what may decide on charges made
adaptively is `discreet.accounting._filter`.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from discreet._exact import ball, float_up, fraction, precision, upper_fraction
from discreet.accounting import _html, _knowledge
from discreet.accounting._analytic import gaussian_deltas, gaussian_epsilon
from discreet.accounting._loss import PrivacyLoss
from discreet.accounting.pld import _distribution
from discreet.accounting.pld._distribution import ONE_SIDE, float_below
from discreet.accounting.pld._dominating_pairs import Side
from discreet.errors import NoBound

_BITS = 256
_HIGHEST_LOG_ORDER = 60.0
_LARGEST_EPSILON = 100
_TOLERANCE = 0.001
_PARTS = (1.0, 0.25, 1 / 64)  # of delta, tried until its grid says something
_LAST = 1e-12  # for the rounding of the last steps


@dataclass(frozen=True, slots=True)
class Explanation:
    """What each theorem gives as epsilon at one delta; prints as a small table.

    ``figures`` maps a theorem to its epsilon, rounded up; ``silent`` maps a theorem that does
    not apply to the reason.
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
        """One line a theorem, the best one marked."""
        width = max(map(len, (*self.figures, *self.silent)), default=0) + 2
        lines = [f"epsilon at delta = {float(self.delta):g}"]
        for name, value in self.figures.items():
            mark = "<- best" if name == self.best else ""
            lines.append(f"  {name:<{width}}{value:<24.12g}{mark}".rstrip())
        lines += [f"  {name:<{width}}{reason}" for name, reason in self.silent.items()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return _html.explanation(self)


def explain(loss: PrivacyLoss, delta: Fraction) -> Explanation:
    """Each theorem's epsilon for the loss at this delta."""
    figures: dict[str, float] = {}
    silent: dict[str, str] = {}
    for name, theorem in _EPSILONS.items():
        try:
            figures[name] = float_up(theorem(loss, delta))
        except NoBound as reason:
            silent[name] = str(reason)
    return Explanation(delta, figures, silent)


def best_epsilon(loss: PrivacyLoss, delta: Fraction) -> float:
    """The smallest epsilon of all theorems, without asking those that can't give it."""
    for theorems in _enough(loss, (_gaussian_epsilon,), (_distribution_epsilon, _basic_epsilon)):
        if found := _answers(theorems, loss, delta):
            return float_up(min(found))
    return explain(loss, delta).epsilon


def best_delta(loss: PrivacyLoss, epsilon: Fraction) -> float:
    """The smallest delta that a theorem gives for the loss at this epsilon; at most 1."""
    for theorems in _enough(loss, (_gaussian_delta,), (_distribution_delta, _basic_delta)):
        if found := _answers(theorems, loss, epsilon):
            return float_up(min(*found, Fraction(1)))
    return float_up(min([*_answers(_DELTAS, loss, epsilon), Fraction(1)]))


def _enough(
    loss: PrivacyLoss, exact: "Sequence[_Theorem]", attained: "Sequence[_Theorem]"
) -> "list[Sequence[_Theorem]]":
    """Theorems of which, if some apply, no other one says less."""
    return [exact, attained] if _knowledge.is_attained(loss) else [exact]


_Theorem = Callable[[PrivacyLoss, Fraction], Fraction]


def _answers(theorems: Sequence[_Theorem], loss: PrivacyLoss, number: Fraction) -> list[Fraction]:
    """What those of the theorems say that apply."""
    found = []
    for theorem in theorems:
        with suppress(NoBound):
            found.append(theorem(loss, number))
    return found


# Basic composition


def _basic_epsilon(loss: PrivacyLoss, delta: Fraction) -> Fraction:
    epsilon, spent = _knowledge.approximate(loss)
    if spent > delta:
        raise NoBound(f"its deltas add up to {float_up(spent):g}, more than delta")
    if spent == delta:
        return epsilon
    with precision(_BITS):
        grown = ball(epsilon).exp()
        lowered = grown - ball((delta - spent) / (1 - spent)) * (1 + grown)
        if not lowered > 1:
            return Fraction(0) if lowered <= 1 else epsilon
        return min(epsilon, upper_fraction(lowered.log()))


def _basic_delta(loss: PrivacyLoss, epsilon: Fraction) -> Fraction:
    whole, spent = _knowledge.approximate(loss)
    if whole <= epsilon or spent >= 1:
        return min(Fraction(1), spent)
    with precision(_BITS):  # (e^whole - e^epsilon) / (1 + e^whole), as numbers below 1
        rest = (1 - (ball(epsilon) - ball(whole)).exp()) / (1 + (-ball(whole)).exp())
        return spent + (1 - spent) * upper_fraction(rest)


# Advanced composition


def _advanced_epsilon(loss: PrivacyLoss, delta: Fraction) -> Fraction:
    drift, squares, spent = _martingale(loss)
    if spent >= delta:
        raise NoBound("it needs a delta above the deltas of the terms themselves")
    with precision(_BITS):
        return upper_fraction(drift + (-2 * squares * ball(delta - spent).log()).sqrt())


def _advanced_delta(loss: PrivacyLoss, epsilon: Fraction) -> Fraction:
    drift, squares, spent = _martingale(loss)
    with precision(_BITS):
        room = ball(epsilon) - drift
        if not (room > 0 and squares > 0):
            return Fraction(1)
        return spent + upper_fraction((-room * room / (2 * squares)).exp())


def _martingale(loss: PrivacyLoss) -> tuple[arb, arb, Fraction]:
    """The sums of eps (e^eps - 1), of eps^2 and of delta: the first bounds the mean of the whole
    loss, and from the second its distance from the mean follows by Azuma's inequality (Dwork and
    Roth 2014, Theorem 3.20, here for epsilons that may differ)."""
    parts = list(_knowledge.parts(loss))
    if any(epsilon > _LARGEST_EPSILON for _, epsilon, _ in parts):
        raise NoBound(f"it says nothing of use where a term's epsilon is above {_LARGEST_EPSILON}")
    with precision(_BITS):
        drift = sum((n * ball(eps) * ball(eps).expm1() for n, eps, _ in parts), arb(0))
        squares = sum((n * ball(eps**2) for n, eps, _ in parts), arb(0))
    return drift, squares, sum((n * delta for n, _, delta in parts), Fraction(0))


# Renyi curves: zCDP's straight line, and each term's own


def _zcdp_epsilon(loss: PrivacyLoss, delta: Fraction) -> Fraction:
    rho = _knowledge.zcdp(loss)
    return _epsilon_from_curve(lambda order: ball(rho * order), _budget(loss, delta))


def _zcdp_delta(loss: PrivacyLoss, epsilon: Fraction) -> Fraction:
    rho = _knowledge.zcdp(loss)
    return _knowledge.leak(loss) + _delta_from_curve(lambda order: ball(rho * order), epsilon)


def _renyi_epsilon(loss: PrivacyLoss, delta: Fraction) -> Fraction:
    return _epsilon_from_curve(lambda order: _knowledge.renyi(loss, order), _budget(loss, delta))


def _renyi_delta(loss: PrivacyLoss, epsilon: Fraction) -> Fraction:
    curve = _delta_from_curve(lambda order: _knowledge.renyi(loss, order), epsilon)
    return _knowledge.leak(loss) + curve


def _budget(loss: PrivacyLoss, delta: Fraction) -> Fraction:
    left = delta - _knowledge.leak(loss)
    if left <= 0:
        raise NoBound("it needs a delta above the deltas of the terms themselves")
    return left


def log_conversion(order: Fraction) -> arb:
    """ln c of an order a, c being (a-1)^(a-1) / a^a: a Renyi divergence R of that order gives
    delta = c e^((a-1)(R - epsilon)) (Canonne, Kamath and Steinke 2020, Proposition 12)."""
    a = ball(order)
    return (a - 1) * (a - 1).log() - a * a.log()


def _epsilon_from_curve(curve: Callable[[Fraction], arb], delta: Fraction) -> Fraction:
    def epsilon(order: Fraction) -> arb:
        return curve(order) + (log_conversion(order) - ball(delta).log()) / ball(order - 1)

    with precision(_BITS):
        return max(Fraction(0), upper_fraction(epsilon(_best_order(epsilon))))


def _delta_from_curve(curve: Callable[[Fraction], arb], epsilon: Fraction) -> Fraction:
    def log_delta(order: Fraction) -> arb:
        return log_conversion(order) + ball(order - 1) * (curve(order) - ball(epsilon))

    with precision(_BITS):
        least = log_delta(_best_order(log_delta))
        return upper_fraction(least.exp()) if least < 0 else Fraction(1)


def _best_order(cost: Callable[[Fraction], arb]) -> Fraction:
    """An order near which the cost is least. Any order gives a bound, a better one a better."""
    low, high = -20.0, _HIGHEST_LOG_ORDER
    golden = (math.sqrt(5) - 1) / 2

    def at(log_order: float) -> arb:
        value = cost(_order(log_order))
        return value.mid() if value.is_finite() else arb("inf")

    while high - low > 1e-4:
        left, right = high - golden * (high - low), low + golden * (high - low)
        if at(left) <= at(right):
            high = right
        else:
            low = left
    return _order((low + high) / 2)


def _order(log_order: float) -> Fraction:
    return 1 + Fraction(math.exp(log_order))


# Gaussian mechanisms only: their exact law


def _gaussian_epsilon(loss: PrivacyLoss, delta: Fraction) -> Fraction:
    return gaussian_epsilon(_knowledge.gaussian(loss), delta)


def _gaussian_delta(loss: PrivacyLoss, epsilon: Fraction) -> Fraction:
    return gaussian_deltas(_knowledge.gaussian(loss), epsilon)[1]


# Privacy loss distributions, on a grid


def _distribution_epsilon(loss: PrivacyLoss, delta: Fraction) -> Fraction:
    return upper_epsilon(loss, delta, _TOLERANCE)


def upper_epsilon(loss: PrivacyLoss, delta: Fraction, tolerance: float) -> Fraction:
    """An epsilon at this delta, rounded up, that is to be as close as the tolerance, relatively."""
    if delta == 0:
        raise NoBound("it needs a delta above 0")
    level, close = float_below(delta), tolerance * ONE_SIDE
    orders = _knowledge.pairs(loss, Side.UPPER)
    for part in _PARTS:  # what holds at a smaller delta holds here
        found = 0.0
        for order in orders:
            one = _distribution.epsilon(order, level * part, close, Side.UPPER, enough=found)
            found = max(found, one)
        if math.isfinite(found):
            break
    else:
        raise NoBound("its grid is too coarse for this delta")
    return fraction(math.nextafter(found * (1 + _LAST), math.inf)) if found else Fraction(0)


def _distribution_delta(loss: PrivacyLoss, epsilon: Fraction) -> Fraction:
    level, close = float_below(epsilon), _TOLERANCE * ONE_SIDE
    orders = _knowledge.pairs(loss, Side.UPPER)
    found = max(_distribution.delta(order, level, close, Side.UPPER) for order in orders)
    return min(Fraction(1), fraction(found) * (1 + fraction(_LAST)))


_EPSILONS: dict[str, Callable[[PrivacyLoss, Fraction], Fraction]] = {
    "basic composition": _basic_epsilon,
    "advanced composition": _advanced_epsilon,
    "zCDP": _zcdp_epsilon,
    "Renyi": _renyi_epsilon,
    "Gaussian": _gaussian_epsilon,
    "privacy loss distribution": _distribution_epsilon,
}
_DELTAS = (
    _basic_delta,
    _advanced_delta,
    _zcdp_delta,
    _renyi_delta,
    _gaussian_delta,
    _distribution_delta,
)
