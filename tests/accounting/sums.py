"""The laws of sums in balls, and what is claimed of them held against these."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from flint import arb, arb_poly
from hypothesis import strategies as st

from discreet._arrays import FloatArray
from discreet._exact import precision
from discreet.accounting.pld._composition import Composition, composed
from discreet.accounting.pld._discretize import Points
from discreet.accounting.pld._dominating_pairs import Side, UncomposedPld
from tests.accounting.test_continuous import exact

BITS = 400
UNDER = arb(10) ** -307
DELTAS = (1e-250, 1e-20, 1e-6, 0.1, 0.9, 1 - 1e-12)

Law = tuple[list[int], list[float], int]


def numbers(kind: str, size: int) -> FloatArray:
    """Numbers whose absolute values add up to about 1."""
    random = np.random.default_rng(size)
    found: FloatArray = np.zeros(size)
    match kind:
        case "one":
            found[size // 3] = 1.0
        case "law":
            found = random.exponential(size=size)
        case "signs":
            found = random.standard_normal(size)
        case "alternating":
            found = np.where(np.arange(size) % 2, -1.0, 1.0)
        case _:
            found = np.exp(-np.linspace(0, 300, size))
    return np.asarray(found / np.abs(found).sum())


def power(laws: Sequence[Law]) -> tuple[list[arb], int]:
    """The law of the sum, by multiplying polynomials; and the number that its first entry has."""
    total, least = arb_poly([1]), 0
    for index, share, count in laws:
        low = min(index)
        coefficients = [arb(0)] * (max(index) - low + 1)
        for at, mass in zip(index, share, strict=True):
            coefficients[at - low] += exact(mass)
        total *= arb_poly(coefficients) ** count
        least += low * count
    return [total[k] for k in range(total.degree() + 1)], least


@dataclass(frozen=True)
class Case:
    """Laws on a grid, and how to compose them."""

    parts: list[tuple[Points, int]]
    tilt: float

    def law(self) -> tuple[list[arb], list[arb], arb]:
        """Losses and masses of the sum, and the mass at infinity."""
        laws = [(p.index.tolist(), p.mass.tolist(), count) for p, count in self.parts]
        masses, least = power(laws)
        shift = sum((count * exact(p.offset) for p, count in self.parts), arb(0))
        step = exact(self.parts[0][0].step)
        losses = [shift + (least + place) * step for place in range(len(masses))]
        finite = arb(1)
        for points, count in self.parts:
            finite *= (1 - exact(points.infinite)) ** count
        return losses, masses, 1 - finite


def hockey_stick(law: tuple[list[arb], list[arb], arb], epsilon: arb) -> arb:
    losses, masses, total = law
    for loss, mass in zip(losses, masses, strict=True):
        if loss > epsilon:
            total -= mass * (epsilon - loss).expm1()
    return total


@st.composite
def cases(draw: st.DrawFn) -> Case:
    step = 10.0 ** draw(st.floats(-3, 0.7))
    parts = []
    for _ in range(draw(st.integers(1, 2))):
        length = draw(st.integers(1, 6))
        index = draw(st.lists(st.integers(-12, 12), min_size=length, max_size=length))
        logs = draw(st.lists(st.floats(-30, 0), min_size=length, max_size=length))
        mass = np.exp(np.array(logs))
        infinite = draw(st.sampled_from([0.0, 0.0, 1e-12, 1e-3]))
        mass *= (1 - infinite) / mass.sum() * draw(st.sampled_from([1.0, 1.0, 0.9]))
        offset = step * draw(st.sampled_from([0.0, 1e-12, -0.3]))
        points = Points(np.array(index, dtype=np.int64), mass, infinite, step, offset)
        parts.append((points, draw(st.integers(1, 25))))
    return Case(parts, 10.0 ** draw(st.floats(-2, 1)) / step**0.5)


def check_case(case: Case, log_delta: float, places: Sequence[float], what: str) -> None:
    with precision(BITS):
        law = case.law()
        span = float(abs(law[0][0]).max(abs(law[0][-1])))
        for side in Side:
            composition = composed(case.parts, case.tilt, side, log_delta=log_delta)
            for epsilon in (place * span for place in places):
                if what == "delta":
                    check_delta(composition, law, epsilon)
                else:
                    check_epsilon(composition, law, float(hockey_stick(law, exact(epsilon)).mid()))
            for delta in DELTAS if what == "epsilon" else ():
                check_epsilon(composition, law, delta)


def check_delta(
    found: Composition | UncomposedPld, law: tuple[list[arb], list[arb], arb], epsilon: float
) -> None:
    seen, true = found.delta(epsilon), hockey_stick(law, exact(epsilon))
    if found.side is Side.UPPER:
        assert exact(seen) >= true.min(arb(1))
    else:
        assert exact(seen) <= true + UNDER


def check_epsilon(
    found: Composition | UncomposedPld, law: tuple[list[arb], list[arb], arb], delta: float
) -> None:
    if not 0 < delta < 1:
        return
    seen = found.epsilon(delta)
    assert seen >= 0
    if math.isinf(seen):
        assert found.side is Side.UPPER
    elif found.side is Side.UPPER:
        assert hockey_stick(law, exact(seen)) <= exact(delta) + UNDER
    elif seen > 0:
        assert hockey_stick(law, exact(seen)) >= exact(delta)
