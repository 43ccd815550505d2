"""A dashboard that shows the total number of arrivals after each week of a year.

Weekly arrivals at a clinic, made up; each patient counts in one week.
"""

import math

import numpy as np

from discreet import Bounded, DiscreteLaplace, Ledger, Limit, Unit
from discreet.mechanisms import session
from discreet.mechanisms.trees import StreamCounter

UNIT, WEEKS = Unit("patient_id"), 52
arrivals = np.random.default_rng(7).poisson(40, WEEKS)

ledger = Ledger.in_memory(unit=UNIT, limit=Limit(epsilon=1))
counter = StreamCounter.for_epsilon(1, UNIT, steps=WEEKS)
print(f"{counter!r}")
print(f"costs epsilon {counter.privacy_loss(UNIT).epsilon()} for all weeks together, paid first")

with session(counter, ledger, unit=UNIT, name="arrivals so far") as stream:
    print("week   shown    true   error at most (95 %)")
    for week in range(1, WEEKS + 1):
        this_week = Bounded(
            lambda week=week: int(arrivals[week - 1]), sensitivity=1, unit=UNIT, name="arrivals"
        )
        total = stream.ask(this_week)
        if week in (1, 2, 4, 8, 13, 26, 39, 51, 52):
            most = counter.error_after(week, 0.95)
            print(f"{week:4}{total:8}{arrivals[:week].sum():8}{most:8}")

print(f"\nthe largest of these errors, forecast before the first week: {counter.error(0.95)}")
each = DiscreteLaplace(1).stddev_of_noise() * math.sqrt(WEEKS)
print(f"noise on each week's number by itself would add up to a standard deviation of {each:.0f};")
long = StreamCounter.for_epsilon(1, UNIT, steps=10_000)
print("the tree is better on long streams. Error after 10 000 steps, with confidence 95 %:")
print(f"  {long.error(0.95)} with the tree, {2 * math.sqrt(2 * 10_000):.0f} without")
