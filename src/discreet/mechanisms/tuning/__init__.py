"""Private tuning: the best of a secret number of runs, at the privacy loss of few.

`Tuning` runs candidates at random and releases the best one by its private score. To read the files
in order:

1. `_runs`: the laws of the number of runs, and the privacy loss of the best run.
2. `_scored`: one run: a mechanism, with a noisy score of its result.
3. `_tuning`: many runs, and their best.
"""

from discreet.mechanisms.tuning._runs import NegativeBinomialRuns, PoissonRuns, RunsLaw
from discreet.mechanisms.tuning._scored import Scored
from discreet.mechanisms.tuning._tuning import Tuning

__all__ = ["NegativeBinomialRuns", "PoissonRuns", "RunsLaw", "Scored", "Tuning"]
