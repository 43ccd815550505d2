"""The composed law of Poisson-sampled Gaussians: by integrals, without a grid of losses.

Noise is P0 = N(0, sigma^2) without the unit, and M = (1 - q) P0 + q N(1, sigma^2) with it. Their
ratio is r(x) = M / P0 = 1 - q + q e^((2x - 1) / (2 sigma^2)), and all that is needed of one step is

    Phi(a) = integral of P0(x) r(x)^a dx,    for complex a.

The loss of one step is ln r under M if the unit is removed, and -ln r under P0 if it is added; so
its moments E e^(z loss) are phi(z) = Phi(1 + z) and Phi(-z). Of the losses' sum S,

    delta(epsilon) = E (1 - e^(epsilon - S))+
                   = 1/(2 pi i) integral of  e^(-z epsilon) / (z (z + 1))  prod phi(z)^count  dz

along Re z = tilt, for any tilt > 0: the Laplace transform of (1 - e^-u)+ is 1 / (z (z + 1)). Both
integrals are taken by the trapezoidal rule, whose error falls geometrically here. That isn't proven
but seen: `epsilon` takes them twice, with other steps and another tilt, and wants one answer.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

import numpy as np
from flint import acb, acb_mat, arb, fmpq
from numpy.typing import NDArray

from discreet._exact import precision

BITS = 192
AGREEMENT = 1e-13
FAR = 65.0  # e^-65 of the largest value is left out
SMALL = 36.0  # and e^-36 of delta is folded in, or left out
COLUMNS = 64  # of a block of nodes on the line,
ROWS = 8, 16, 32, 64, 128, *[256] * 12  # and how many rows it has, one block after the other


class Change(Enum):
    """How the neighbour differs; the value is the sign of ln r in the loss."""

    REMOVE = 1
    ADD = -1


@dataclass(frozen=True)
class Steps:
    """``count`` steps with noise ``sigma`` on a Poisson sample of this ``rate``, below 1."""

    sigma: float
    rate: float
    count: int = 1


@dataclass(frozen=True)
class Rule:
    """How the integrals are taken: the nodes per sigma and per turn of the integrand, the step
    along the line as a share of the longest, and the tilt as a multiple of the best."""

    nodes: float
    step: float
    tilt: float


RULES = Rule(8, 1.0, 1.0), Rule(11, 0.77, 0.8)


# One step and two, by the normal distribution function


def one_step(step: Steps, epsilon: arb, change: Change) -> arb:
    """delta of one step, from the point where the ratio crosses e^epsilon: in balls, proven."""
    sigma, rate = exact(step.sigma), exact(step.rate)
    over = (change.value * epsilon).exp() - (1 - rate)
    if not over > 0:  # the ratio is nowhere so small
        return 1 - epsilon.exp() if change is Change.REMOVE else arb(0)
    x = sigma**2 * (over / rate).log() + arb("0.5")
    without = normal(-change.value * x / sigma)
    with_it = (1 - rate) * without + rate * normal(change.value * (1 - x) / sigma)
    p, q = (with_it, without) if change is Change.REMOVE else (without, with_it)
    return p - epsilon.exp() * q


def two_steps(first: Steps, second: Steps, epsilon: arb, change: Change, nodes: int = 40) -> arb:
    """delta of two steps: that of the second, averaged over the loss of the first."""
    sigma = exact(first.sigma)
    found = arb(0)
    for place in range(-16 * nodes, 16 * nodes + math.ceil(nodes / first.sigma)):
        x = sigma * place / nodes
        ratio = ratio_at(first, x)
        weight = (-((x / sigma) ** 2) / 2).exp() / ((2 * arb.pi()).sqrt() * nodes)
        if change is Change.REMOVE:
            weight *= ratio
        found += weight * one_step(second, epsilon - change.value * ratio.log(), change)
    return found


def ratio_at(step: Steps, x: arb) -> arb:
    """r."""
    sigma, rate = exact(step.sigma), exact(step.rate)
    return 1 - rate + rate * ((2 * x - 1) / (2 * sigma**2)).exp()


def normal(x: arb) -> arb:
    """The normal distribution function."""
    return (-x / arb(2).sqrt()).erfc() / 2


def exact(number: float) -> arb:
    """The decimal that was written, not the float that is nearest to it."""
    return arb(fmpq(*Fraction(repr(number)).as_integer_ratio()))


# Many steps


def epsilon(composed: tuple[Steps, ...], delta: float, change: Change) -> arb:
    """epsilon at this delta, of which `AGREEMENT` is seen."""
    with precision(BITS):
        one, other = (Line.of(composed, delta, change, rule).epsilon(delta) for rule in RULES)
        assert abs(one - other) < AGREEMENT * abs(one), (one, other)
        return one


def delta(composed: tuple[Steps, ...], epsilon: Fraction, near: float, change: Change) -> arb:
    """delta at this epsilon, for the line that is best at a delta nearby."""
    with precision(BITS):
        point = arb(fmpq(*epsilon.as_integer_ratio()))
        lines = (Line.of(composed, near, change, rule) for rule in RULES)
        one, other = (line.delta(point) for line in lines)
        assert abs(one - other) < AGREEMENT * abs(one), (one, other)
        return one


@dataclass(frozen=True)
class Line:
    """The values of prod phi^count / (z (z + 1)) at z = tilt + i step n, for n = 0, 1, ..."""

    tilt: arb
    step: arb
    values: list[acb]
    start: float  # an epsilon that is at least as large as the one at the delta it was made for

    @staticmethod
    def of(composed: tuple[Steps, ...], delta: float, change: Change, rule: Rule) -> "Line":
        """All nodes that count at an epsilon near the one that gives this delta."""
        best = least(lambda log_tilt: chernoff(composed, math.exp(log_tilt), delta, change))
        tilt = math.exp(best) * rule.tilt
        start = chernoff(composed, math.exp(best), delta, change)
        step = 2 * math.pi / period(composed, tilt, start, delta, change) * rule.step
        negligible = math.log(delta) + tilt * start - SMALL
        values: list[acb] = []
        for rows in ROWS:
            part = Part(arb(tilt), arb(step), len(values), rows)
            values.extend(_values(composed, change, rule, part))
            last = sum((abs(value) for value in values[-COLUMNS:]), arb(0))
            if last * step < arb(negligible).exp():
                return Line(arb(tilt), arb(step), values, start)
        raise AssertionError(f"{composed} falls too slowly")

    def epsilon(self, delta: float) -> arb:
        """By Newton's method on ln delta, which is concave."""
        at, goal = arb(self.start), exact(delta).log()
        for _ in range(60):
            found, slope = self.delta(at), self.slope(at)
            move = (found.log() - goal) * found / slope
            at = (at - move).mid()
            if abs(move) < abs(at) * arb(10) ** -30:
                return at
        raise AssertionError(f"no epsilon near {at}")

    def delta(self, epsilon: arb) -> arb:
        """The integral, at one epsilon."""
        return self._sum(epsilon, lambda value, _: value)

    def slope(self, epsilon: arb) -> arb:
        """The derivative of delta by epsilon."""
        return self._sum(epsilon, lambda value, z: -z * value)

    def _sum(self, epsilon: arb, part: Callable[[acb, acb], acb]) -> arb:
        total = acb(0)
        for n, value in enumerate(self.values):
            z = acb(self.tilt, self.step * n)
            total += part(value, z) * (-z * epsilon).exp() / (1 if n else 2)
        return total.real * self.step / arb.pi()


@dataclass(frozen=True)
class Part:
    """Consecutive nodes on the line: n = first + COLUMNS row + column."""

    tilt: arb
    step: arb
    first: int
    rows: int

    def __len__(self) -> int:
        return self.rows * COLUMNS


def _values(composed: tuple[Steps, ...], change: Change, rule: Rule, part: Part) -> Iterator[acb]:
    """The integrand at these nodes."""
    product = [acb(1)] * len(part)
    for steps in composed:
        for place, moment in enumerate(_moments(steps, change, rule, part)):
            product[place] *= moment**steps.count
    for place, value in enumerate(product):
        z = acb(part.tilt, part.step * (part.first + place))
        yield value / (z * (z + 1))


def _moments(steps: Steps, change: Change, rule: Rule, part: Part) -> list[acb]:
    """phi at these nodes. It is a sum over x of P0 r^a at z = tilt, turned by e^(i step n loss):
    that is one factor for first and row, and one for the column, so a product of matrices."""
    sigma = exact(steps.sigma)
    low, high = window(steps, float(part.tilt), change)
    furthest = (part.first + len(part)) * float(part.step)
    turns = furthest / (2 * math.pi * steps.sigma)  # at most, per sigma
    spacing = steps.sigma / (rule.nodes + 3 * turns)
    left: list[acb] = []
    right: list[acb] = []
    for place in range(math.floor(low / spacing), math.ceil(high / spacing) + 1):
        x = arb(spacing) * place
        loss = change.value * ratio_at(steps, x).log()
        power = (1 + part.tilt) * loss if change is Change.REMOVE else part.tilt * loss
        weight = (power - (x / sigma) ** 2 / 2).exp() * arb(spacing) / sigma
        turned = acb(0, part.step * part.first * loss).exp()
        left.append(turned * weight / (2 * arb.pi()).sqrt())
        right.append(acb(0, part.step * loss).exp())
    ones = [acb(1)] * len(right)
    columns = _powers(ones, right, COLUMNS)
    rows = _powers(left, [turn**COLUMNS for turn in right], part.rows)
    found = acb_mat(rows) * acb_mat(columns).transpose()
    return [found[i, k] for i in range(part.rows) for k in range(COLUMNS)]


def _powers(start: list[acb], turns: list[acb], count: int) -> list[list[acb]]:
    found = [start]
    for _ in range(count - 1):
        found.append([value * turn for value, turn in zip(found[-1], turns, strict=True)])
    return found


# Where to look, in floats: it decides on the work, not on the answer


def chernoff(composed: tuple[Steps, ...], tilt: float, delta: float, change: Change) -> float:
    """An epsilon that is enough, by (1 - e^-u)+ <= tilt^tilt / (1 + tilt)^(1 + tilt) e^(tilt u)."""
    factor = tilt * math.log(tilt) - (1 + tilt) * math.log1p(tilt)
    return (log_moment(composed, tilt, change) + factor - math.log(delta)) / tilt


def log_moment(composed: tuple[Steps, ...], tilt: float, change: Change) -> float:
    """ln E e^(tilt S)."""
    total = 0.0
    for steps in composed:
        x, logs = integrand(steps, tilt, change)
        top = float(logs.max())
        total += steps.count * (top + math.log(np.exp(logs - top).sum() * (x[1] - x[0])))
    return total


def integrand(
    steps: Steps, tilt: float, change: Change
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes, and the logarithm of what phi(tilt) is the integral of."""
    sigma, rate = steps.sigma, steps.rate
    power = 1 + tilt if change is Change.REMOVE else -tilt
    ends = sorted((0.0, power))
    x = np.linspace(ends[0] - 15 * sigma, ends[1] + 15 * sigma, 4001 + int(20 * abs(power) / sigma))
    log_ratio = np.logaddexp(math.log1p(-rate), math.log(rate) + (2 * x - 1) / (2 * sigma**2))
    flat = -((x / sigma) ** 2) / 2 - math.log(sigma * math.sqrt(2 * math.pi))
    return x, flat + power * log_ratio


def window(steps: Steps, tilt: float, change: Change) -> tuple[float, float]:
    """Where the integrand isn't negligible."""
    x, logs = integrand(steps, tilt, change)
    support = x[logs > logs.max() - FAR]
    return float(support[0]), float(support[-1])


def period(
    composed: tuple[Steps, ...], tilt: float, epsilon: float, delta: float, change: Change
) -> float:
    """2 pi over the longest step. The rule gives the sum over k of e^(tilt k period) times the
    delta at epsilon + k period; for k other than 0, Chernoff's bounds at other tilts show when
    these are negligible."""
    here = log_moment(composed, tilt, change)
    right = min(
        (SMALL + log_moment(composed, tilt * more, change) - here) / (tilt * (more - 1)) - epsilon
        for more in (1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0)
    )
    left = min(
        (
            SMALL
            - math.log(delta)
            + log_moment(composed, tilt * less, change)
            - tilt * less * epsilon
        )
        / (tilt * (1 - less))
        for less in (1e-9, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
    )
    return max(left, right)


def least(cost: Callable[[float], float], low: float = -12.0, high: float = 12.0) -> float:
    """Near where a cost with one valley is least."""
    golden = (math.sqrt(5) - 1) / 2
    while high - low > 1e-3:
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if cost(left) <= cost(right) else (left, high)
    return (low + high) / 2
