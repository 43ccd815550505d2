"""The cases for other accountants: a regular design, its corners, and seeded random draws."""

import math
import random
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from itertools import cycle, product

SEED = 20_261_121
DRAWS = 36
DELTAS = (1e-3, 1e-6, 1e-12), (1e-5, 1e-8, 1e-20), (1e-4, 1e-7, 1e-30)

SIGMAS = 0.5, 1.0, 2.0
RATES = 1e-3, 1e-2, 1e-1
COUNTS = 100, 1000, 10_000


@dataclass(frozen=True, slots=True)
class Access:
    """One term: its ``law`` at this scale, on a sample of this rate, ``count`` times."""

    law: str
    scale: float
    rate: float = 1.0
    count: int = 1
    sensitivity: int = 1


@dataclass(frozen=True, slots=True)
class Case:
    """A composition, and the deltas at which its epsilon is requested."""

    accesses: tuple[Access, ...]
    deltas: tuple[float, ...]

    def as_json(self) -> dict[str, object]:
        """The case as JSON."""
        return {"accesses": [list(astuple(access)) for access in self.accesses]}


def cases() -> Iterator[Case]:
    """All cases, with the groups of deltas in turn."""
    composed = [*design(), *CORNERS, *draws(), *MIXES]
    yield from (
        Case(tuple(some), each) for some, each in zip(composed, cycle(DELTAS), strict=False)
    )


def gaussian(scale: float, rate: float, count: float) -> Access:
    """Gaussian noise on Poisson samples."""
    return Access("gaussian", scale, rate, int(count))


def design() -> Iterator[list[Access]]:
    """A regular grid over the usual range."""
    yield from ([gaussian(*each)] for each in product(SIGMAS, RATES, COUNTS))


# Each parameter at its ends; the others are such that epsilon is neither 0 nor too large for use.
CORNERS = [
    [gaussian(*each)]
    for each in (
        (0.2, 1e-6, 1),
        (0.2, 1e-6, 1e5),
        (0.2, 1e-3, 1),
        (0.2, 1e-3, 100),
        (0.2, 0.1, 1),
        (0.2, 0.5, 10),
        (0.2, 1, 1),
        (0.2, 1, 100),
        (0.3, 1e-5, 1e4),
        (0.5, 1e-6, 1e7),
        (0.5, 0.5, 100),
        (1, 1e-6, 1e7),
        (1, 1e-5, 1e7),
        (1, 1e-3, 1e6),
        (1, 1e-3, 1e7),
        (1, 0.01, 1),
        (1, 0.1, 2),
        (1, 0.9, 10),
        (1, 0.999, 100),
        (1, 1, 1),
        (1, 1, 1000),
        (5, 0.01, 1e5),
        (5, 0.5, 1000),
        (10, 1e-3, 1e7),
        (10, 1, 1e5),
        (100, 1e-2, 1e7),
        (100, 0.1, 1e6),
        (100, 0.5, 1e4),
        (100, 1, 1),
        (100, 1, 1e4),
        (100, 1, 1e7),
    )
]


def draws() -> Iterator[list[Access]]:
    """Random cases, uniform on a logarithmic scale. The rate is the one at which the central limit
    theorem gives a random mu, so that epsilon is neither 0 nor too large for use."""
    chance = random.Random(SEED)  # noqa: S311  # it draws no noise
    for _ in range(DRAWS):
        sigma = 10 ** chance.uniform(math.log10(0.3), 2)
        count = round(10 ** chance.uniform(0, 6))
        mu = 10 ** chance.uniform(-1.5, 1)
        rate = mu / math.sqrt(count * math.expm1(min(sigma**-2, 30.0)))
        yield [gaussian(float(f"{sigma:.4g}"), float(f"{min(1, max(1e-6, rate)):.4g}"), count)]


MIXES = [
    [gaussian(1, 0.01, 1000), gaussian(2, 0.1, 500)],
    [gaussian(0.6, 1e-3, 2000), gaussian(1, 1e-3, 2000), gaussian(4, 0.2, 50)],
    [gaussian(1.5, 0.02, 3000), gaussian(8, 1, 20)],
    [gaussian(5, 1, 10), gaussian(20, 1, 100), gaussian(0.8, 1e-3, 1000)],
    [gaussian(0.5 + step / 10, 0.002 * (1 + step), 100) for step in range(10)],
    [Access("laplace", 1)],
    [Access("laplace", 10, count=100)],
    [Access("laplace", 200, count=10_000)],
    [Access("discrete-laplace", 2)],
    [Access("discrete-laplace", 20, count=100)],
    [Access("discrete-laplace", 30, count=50, sensitivity=3)],
    [Access("laplace", 5, count=10), gaussian(1, 0.01, 1000)],
    [Access("discrete-laplace", 10, count=20), gaussian(3, 1, 5)],
    [
        Access("laplace", 20, count=50),
        Access("discrete-laplace", 8, count=10),
        gaussian(2, 0.1, 200),
    ],
]
