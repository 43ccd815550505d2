"""Integer noise by OpenDP."""

import opendp.prelude as dp

from benchmarks.worker import serve

dp.enable_features("contrib")

ZEROS = [0] * 1000
VECTORS = dp.vector_domain(dp.atom_domain(T=int))
LAPLACE = dp.m.make_laplace(VECTORS, dp.l1_distance(T=int), scale=10.0)
GAUSSIAN = dp.m.make_gaussian(VECTORS, dp.l2_distance(T=float), scale=10.0)

serve(
    {
        "laplace-scale-10": (1000, lambda: LAPLACE(ZEROS)),
        "gaussian-stddev-10": (1000, lambda: GAUSSIAN(ZEROS)),
    }
)
