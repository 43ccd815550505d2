"""Integer noise by diffprivlib."""

from diffprivlib.mechanisms import GaussianDiscrete, Geometric

from benchmarks.worker import serve

LAPLACE = Geometric(epsilon=0.1)
GAUSSIAN = GaussianDiscrete(epsilon=1.0, delta=1e-5)
GAUSSIAN._scale = 10.0  # noqa: SLF001  # it takes no scale

serve(
    {
        "laplace-scale-10": (1000, lambda: [LAPLACE.randomise(0) for _ in range(1000)]),
        "gaussian-stddev-10": (1000, lambda: [GAUSSIAN.randomise(0) for _ in range(1000)]),
    }
)
