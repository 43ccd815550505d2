"""Integer noise by diffprivlib: floats, one value at a time."""

import itertools

import numpy as np
from diffprivlib.mechanisms import Exponential, GaussianDiscrete, Geometric

from benchmarks.worker import Case, serve

CANDIDATES = 100_000
SCORES = np.random.default_rng().integers(0, 1000, CANDIDATES).tolist()
SERIAL = itertools.count(1)
SLOW = 1000  # a Gaussian's time grows with its scale, to a millisecond here
GAUSSIAN = GaussianDiscrete(epsilon=1.0, delta=1e-5)


def gaussian(scale: float, draws: int) -> None:
    """Draws at this scale, without the milliseconds in which the mechanism searches for a scale."""
    GAUSSIAN._scale = scale  # noqa: SLF001  # it takes none
    for _ in range(draws):
        GAUSSIAN.randomise(0)


def laplace(scale: float, draws: int) -> None:
    """Draws at this scale."""
    mechanism = Geometric(epsilon=1 / scale)
    for _ in range(draws):
        mechanism.randomise(0)


LAWS = {"discrete-gaussian": gaussian, "discrete-laplace": laplace}


def bulk(law: str, scale: int) -> Case:
    """Some draws at one scale."""
    draws = 10 if scale == SLOW and law == "discrete-gaussian" else 1000
    return draws, lambda: LAWS[law](scale, draws)


def anew(law: str, scale: int, draws: int) -> Case:
    """Calls with a new scale each."""
    loops = 10 if draws == 1 else 1
    return loops, lambda: [LAWS[law](scale + next(SERIAL) * 1e-5, draws) for _ in range(loops)]


def choice() -> None:
    """The exponential mechanism at rate 0.05."""
    Exponential(epsilon=0.1, sensitivity=1, utility=SCORES).randomise()


serve(
    {
        **{f"{law}-{scale}": bulk(law, scale) for law in LAWS for scale in (1, 10, SLOW)},
        **{f"{law}-anew-10-{draws}": anew(law, 10, draws) for law in LAWS for draws in (1, 1000)},
        **{f"{law}-anew-{SLOW}-1": anew(law, SLOW, 1) for law in LAWS},
        f"discrete-laplace-anew-{SLOW}-1000": anew("discrete-laplace", SLOW, 1000),
        "exponential-choice": (CANDIDATES, choice),
    }
)
