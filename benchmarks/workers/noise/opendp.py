"""Exact integer noise by OpenDP."""

import itertools
from collections.abc import Callable

import numpy as np
import opendp.prelude as dp

from benchmarks.worker import Case, serve

dp.enable_features("contrib")

ONE = dp.atom_domain(T=int)
MANY = dp.vector_domain(ONE)
# The measurement, and the metric of its input: for one integer, and for many.
LAWS: dict[str, tuple[Callable[..., Callable[[object], object]], object, object]] = {
    "discrete-gaussian": (
        dp.m.make_gaussian,
        dp.absolute_distance(T=float),
        dp.l2_distance(T=float),
    ),
    "discrete-laplace": (dp.m.make_laplace, dp.absolute_distance(T=int), dp.l1_distance(T=int)),
}
CANDIDATES = 100_000
SCORES = np.random.default_rng().integers(0, 1000, CANDIDATES).tolist()
GUMBEL = dp.zero_concentrated_divergence()  # OpenDP selects the noise by this measure
CHOICE = dp.m.make_noisy_max(MANY, dp.linf_distance(T=int), GUMBEL, scale=20.0)
SERIAL = itertools.count(1)


def bulk(law: str, scale: int) -> Case:
    """A thousand draws by one measurement."""
    make, _, distance = LAWS[law]
    measurement = make(MANY, distance, scale=float(scale))
    zeros = [0] * 1000
    return 1000, lambda: measurement(zeros)


def anew(law: str, scale: int, draws: int) -> Case:
    """Calls of a new measurement each."""
    make, distance, distances = LAWS[law]
    zeros = [0] * draws
    loops = 20 if draws == 1 else 1

    def run() -> None:
        for _ in range(loops):
            fresh = scale + next(SERIAL) * 1e-5
            if draws == 1:
                make(ONE, distance, scale=fresh)(0)
            else:
                make(MANY, distances, scale=fresh)(zeros)

    return loops, run


serve(
    {
        **{
            f"{law}-{scale}": bulk(law, scale) for law in LAWS for scale in (1, 10, 1000, 1_000_000)
        },
        **{
            f"{law}-anew-{scale}-{draws}": anew(law, scale, draws)
            for law in LAWS
            for scale in (10, 1000)
            for draws in (1, 1000)
        },
        "exponential-choice": (CANDIDATES, lambda: CHOICE(SCORES)),
    }
)
