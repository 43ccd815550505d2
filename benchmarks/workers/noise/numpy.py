"""NumPy's own float calls: the time of noise that gives no privacy."""

import itertools
from collections.abc import Callable

import numpy as np

from benchmarks.worker import Case, serve

MILLION = 1_000_000
RNG = np.random.default_rng()
SAMPLERS: dict[str, Callable[..., object]] = {
    "rounded-gaussian": RNG.normal,
    "discrete-gaussian": RNG.normal,
    "discrete-laplace": RNG.laplace,
}
SCORES = RNG.integers(0, 1000, MILLION)
ROOM = np.empty(MILLION)
SERIAL = itertools.count(1)


def bulk(sampler: Callable[..., object], scale: int) -> Case:
    """A million draws at one scale."""
    return MILLION, lambda: sampler(0, scale, MILLION)


def anew(sampler: Callable[..., object], scale: int, draws: int) -> Case:
    """Calls with a new scale each."""
    size = None if draws == 1 else draws
    return 100, lambda: [sampler(0, scale + next(SERIAL) * 1e-5, size) for _ in range(100)]


def softmax_and_choice() -> None:
    """The exponential mechanism at rate 0.05, in preallocated memory."""
    chances = np.multiply(SCORES, 0.05, out=ROOM)
    chances -= chances.max()
    np.exp(chances, out=chances)
    chances /= chances.sum()
    RNG.choice(MILLION, p=chances)


serve(
    {
        **{
            f"{law}-{scale}": bulk(sampler, scale)
            for law, sampler in SAMPLERS.items()
            for scale in (1, 10, 1000, MILLION)
        },
        **{
            f"{law}-anew-{scale}-{draws}": anew(sampler, scale, draws)
            for law, sampler in SAMPLERS.items()
            for scale in (10, 1000)
            for draws in (1, 1000)
        },
        "exponential-choice": (MILLION, softmax_and_choice),
    }
)
