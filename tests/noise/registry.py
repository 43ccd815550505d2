"""All laws of noise, one entry each. Tables of tests on laws read them here.

`test_every_law.py` fails if a law that `discreet.noise` exports has no entry.
"""

import itertools
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

from flint import arb

from discreet._exact import ball, precision
from discreet.noise import (
    BernoulliLaw,
    Bits,
    CategoricalLaw,
    DiscreteGaussianLaw,
    DiscreteLaplaceLaw,
    GeometricLaw,
    MaxNormLaw,
    NoiseLaw,
    RoundedGaussianLaw,
    StaircaseLaw,
    UniformLaw,
)
from tests.noise.walk import (
    BITS,
    Chance,
    coin,
    discrete_gaussian_law,
    discrete_laplace,
    gaussian,
    geometric,
    weighted,
)


def of_draw(law: Any, bits: Bits) -> Hashable:  # Any: each law its own
    return int(law.draw(bits))


def zero(_: Any) -> Hashable:  # Any: the same
    return 0


@dataclass(frozen=True)
class LawCase:
    """A law, as all tables of tests read it.

    ``chance`` gives each outcome's probability by the law's definition, ``quiet`` the outcome of
    words of ones, which audits without noise use. A law of noise, symmetric about 0, has ``at``,
    which builds it at a scale.
    """

    examples: tuple[Any, ...]  # Any: each law its own
    chance: Callable[[Any], Chance[Any]]
    at: Callable[[Fraction], NoiseLaw] | None = None
    quiet: Callable[[Any], Hashable] = zero
    draw: Callable[[Any, Bits], Hashable] = of_draw


def staircase(scale: Fraction) -> StaircaseLaw:
    """Levels about as wide as the scale, on which a factor e is lost."""
    width = ceil(scale)
    return StaircaseLaw(drop=width / scale, width=width, top=1 + width // 3)


def staircase_law(law: StaircaseLaw) -> Callable[[int], arb]:
    """By its definition, and the total by levels."""

    def weight(outcome: int) -> arb:
        magnitude = abs(outcome)
        level = 0 if magnitude < law.top else 1 + (magnitude - law.top) // law.width
        return ball(-law.drop * level).exp()

    levels = 4 * BITS
    with precision(BITS):
        below = sum((ball(-law.drop * n).exp() for n in range(1, levels)), arb(0))
        rest = (2 * ball(-law.drop * levels).exp() / law.drop.numerator * 10).union(arb(0))
        total = 2 * law.top - 1 + 2 * law.width * (below + rest)
    return lambda outcome: weight(outcome) / total


def max_norm_law(law: MaxNormLaw) -> Callable[[tuple[int, ...]], arb]:
    """By its definition, and the total by shells of vectors with the same largest magnitude."""

    def weight(largest: int) -> arb:
        return ball(-largest / law.scale).exp()

    shells = ceil(8 * BITS * law.scale)
    with precision(2 * BITS):
        sizes = [0, *((2 * j + 1) ** law.length for j in range(shells))]
        shell = (after - before for before, after in itertools.pairwise(sizes))
        total = sum((size * weight(j) for j, size in enumerate(shell)), arb(0))
        total += weight(shells // 2).union(arb(0))  # above the rest
    return lambda outcome: weight(max(map(abs, outcome))) / total


def exact(*scales: str) -> tuple[Fraction, ...]:
    return tuple(map(Fraction, scales))


LAWS: dict[str, LawCase] = {
    "BernoulliLaw": LawCase(
        tuple(map(BernoulliLaw, exact("1/3", "5/8", "0.999"))),
        lambda law: coin(law.probability),
        quiet=lambda _: 1,
    ),
    "CategoricalLaw": LawCase(
        (CategoricalLaw([1, 2, 4]), CategoricalLaw([1, 0, Fraction(1, 2), 3])),
        lambda law: weighted(*law.weights),
        quiet=lambda law: len(law.weights) - 1,
    ),
    "DiscreteGaussianLaw": LawCase(
        tuple(map(DiscreteGaussianLaw, exact("1/3", "1", "2.5"))),
        lambda law: discrete_gaussian_law(law.sigma),
        at=DiscreteGaussianLaw,
    ),
    "DiscreteLaplaceLaw": LawCase(
        tuple(map(DiscreteLaplaceLaw, exact("1/3", "1", "2.5"))),
        lambda law: discrete_laplace(law.scale),
        at=DiscreteLaplaceLaw,
    ),
    "GeometricLaw": LawCase(
        tuple(map(GeometricLaw, exact("0.9", "1/2", "1/3"))),
        lambda law: geometric(law.success),
    ),
    "MaxNormLaw": LawCase(
        (MaxNormLaw(Fraction(1, 3), 2), MaxNormLaw(2, 2)),
        max_norm_law,
        quiet=lambda law: (0,) * law.length,
        draw=lambda law, bits: tuple(law.draws(bits).tolist()),
    ),
    "RoundedGaussianLaw": LawCase(
        tuple(map(RoundedGaussianLaw, exact("1/3", "1", "2.5"))),
        lambda law: gaussian(law.sigma),
        at=RoundedGaussianLaw,
    ),
    "StaircaseLaw": LawCase(
        (
            StaircaseLaw(drop=1, width=1, top=1),
            StaircaseLaw(drop=Fraction(1, 2), width=3, top=1),
            StaircaseLaw(drop=2, width=5, top=5),
        ),
        staircase_law,
        at=staircase,
    ),
    "UniformLaw": LawCase(
        (UniformLaw(6), UniformLaw(16), UniformLaw(17)),
        lambda law: weighted(*[1] * law.m),
    ),
}
NOISE = {name: case.at for name, case in LAWS.items() if case.at is not None}
EXAMPLES = [(case, law) for case in LAWS.values() for law in case.examples]
