"""Mechanisms of diffprivlib on two neighbouring datasets."""

import warnings

from diffprivlib import accountant, mechanisms, tools

from benchmarks.draws import Mechanism, serve_draws

warnings.simplefilter("ignore")
accountant.BudgetAccountant().set_default()

DELTA = 1e-5
LAPLACE = mechanisms.Laplace(epsilon=1, sensitivity=1)
GAUSSIAN = mechanisms.GaussianAnalytic(epsilon=1, delta=DELTA, sensitivity=1)
SNAPPING = mechanisms.Snapping(epsilon=1, sensitivity=1, lower=0, upper=10)
GEOMETRIC = mechanisms.Geometric(epsilon=1)
SHARES = [0.5], [0.5, float("nan")]


def total(place: int) -> float:
    """A sum of shares; the neighbour has a share that is no number."""
    return float(tools.sum(SHARES[place], epsilon=1, bounds=(0, 1)))


serve_draws(
    {
        "float-Laplace": Mechanism(lambda place: float(LAPLACE.randomise(float(place))), 1),
        "float-Gaussian": Mechanism(
            lambda place: float(GAUSSIAN.randomise(float(place))), 1, DELTA
        ),
        "sum-with-NaN": Mechanism(total, 1),
        "snapping": Mechanism(lambda place: float(SNAPPING.randomise(4.0 + place)), 1),
        "geometric": Mechanism(lambda place: int(GEOMETRIC.randomise(place)), 1),
    }
)
