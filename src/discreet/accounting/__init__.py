"""Arithmetic of privacy: what accesses cost, as formal sums of terms and as proven numbers.

No data and no files here. The terms have the names of the mechanisms they stand for; at the top
level of `discreet`, those names are the mechanisms. Read the files in this order:

1. `_bounds`: the bounds on a term, and on a sum of terms;
2. `pld/`, `_renyi`, `_analytic`, `_pairs`: privacy loss distributions, Renyi curves, Gaussians;
3. `_theorems`, `_profile`: from a sum to numbers;
4. `_loss`: `PrivacyLoss`, whose methods are calls into the above, and `Term`;
5. `terms/`: the kinds of term, by family;
6. `filter/`: which charges still fit;
7. `_calibration`, `_expression`, `_json`, `_events`: the least noise, losses as text and as JSON,
   DpEvent trees.
"""

from discreet.accounting import terms
from discreet.accounting._calibration import Calibration, calibrate, calibrate_count
from discreet.accounting._events import from_dp_event, to_dp_event
from discreet.accounting._expression import Expression, parse
from discreet.accounting._loss import PrivacyLoss, Term
from discreet.accounting._theorems import Interval
from discreet.accounting.filter._filter import Filter
from discreet.accounting.filter._sums import Spent
from discreet.accounting.terms import *  # noqa: F403  # each name stands in terms.__all__

__all__ = [
    "Calibration",
    "Expression",
    "Filter",
    "Interval",
    "PrivacyLoss",
    "Spent",
    "Term",
    "calibrate",
    "calibrate_count",
    "from_dp_event",
    "parse",
    "to_dp_event",
]
__all__ += terms.__all__
