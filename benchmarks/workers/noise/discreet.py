"""Exact integer noise by discreet."""

import itertools
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from benchmarks.worker import Case, serve
from discreet._exact import Number
from discreet.noise import (
    DiscreteGaussianLaw,
    DiscreteLaplaceLaw,
    Law,
    RoundedGaussianLaw,
    SecureBits,
    exponential_choice,
)

MILLION = 1_000_000
BITS = SecureBits()
LAWS: dict[str, Callable[[Number], Law]] = {
    "rounded-gaussian": RoundedGaussianLaw,
    "discrete-gaussian": DiscreteGaussianLaw,
    "discrete-laplace": DiscreteLaplaceLaw,
}
SCORES = np.random.default_rng().integers(0, 1000, MILLION)
RATE = Fraction(1, 20)
STEPS = 100_000  # between two integers
SERIAL = itertools.count(1)


def bulk(law: Callable[[Number], Law], scale: int) -> Case:
    """A million draws at one scale; the first run makes the tables."""
    return MILLION, lambda: law(scale).draws(BITS, MILLION)


def anew(law: Callable[[Number], Law], scale: int, draws: int) -> Case:
    """Calls with a new scale each, including their preparation."""

    def run() -> None:
        for _ in range(100):
            fresh = law(Fraction(scale * STEPS + next(SERIAL), STEPS))
            _ = fresh.draw(BITS) if draws == 1 else fresh.draws(BITS, draws)

    return 100, run


serve(
    {
        **{
            f"{name}-{scale}": bulk(law, scale)
            for name, law in LAWS.items()
            for scale in (1, 10, 1000, MILLION)
        },
        **{
            f"{name}-anew-{scale}-{draws}": anew(law, scale, draws)
            for name, law in LAWS.items()
            for scale in (10, 1000)
            for draws in (1, 1000)
        },
        "exponential-choice": (MILLION, lambda: exponential_choice(SCORES, RATE, BITS)),
    }
)
