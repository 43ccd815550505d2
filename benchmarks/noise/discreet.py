"""Integer noise by discreet."""

import numpy as np

from benchmarks.worker import serve
from discreet import DiscreteLaplace, Gaussian
from discreet.noise import SecureBits

ZEROS = np.zeros(1000, dtype=np.int64)
BITS = SecureBits()

serve(
    {
        "laplace-scale-10": (1000, lambda: DiscreteLaplace(10).sample(ZEROS, BITS)),
        "gaussian-stddev-10": (1000, lambda: Gaussian(10).sample(ZEROS, BITS)),
    }
)
