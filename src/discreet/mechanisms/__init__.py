"""Computations with known sensitivity, the noise that makes them private, and the one door.

To read the files in order:

1. The value: `_bounded` (a computation with its unit and sensitivity), `_computation` (one that is
   made ready before the charge), `_parts` (the kinds of results), `_columns` (the columns that a
   mechanism needs), `_sensitivity`, `_rows` and `_fixed_point` (grids), `_ids`.
2. The roles: `_mechanism` (privacy loss, draw). `_additive` and `_real` are the two bases; the
   additive mechanisms are short files beside them: `_discrete_laplace` and `_laplace`,
   `_discrete_gaussian`, `_gaussian` and `_real_gaussian`, `_staircase`, `_max_norm`. `_accuracy`
   finds the noise for an epsilon or for an error. `_together` combines mechanisms.
3. The door: `_door` (payer, bits, trace), `_release` (charge, compute, add noise), `_session` (the
   same for many questions), `_statement` (for receipts). `_silence` and `_attempts` keep failures
   from leaking.
4. After a release: `processing`, at no cost, and `_serialize`, for the ledger.

The other mechanisms are in the packages `selection`, `thresholds`, `quantiles`, `statistics`,
`trees`, `framework` and `tuning`.
"""

from discreet._arrays import FloatArray
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._computation import StagedComputation
from discreet.mechanisms._discrete_gaussian import DiscreteGaussian
from discreet.mechanisms._discrete_laplace import DiscreteLaplace
from discreet.mechanisms._door import Door, Trace
from discreet.mechanisms._fixed_point import FixedPoint, IntegerArray
from discreet.mechanisms._gaussian import Gaussian
from discreet.mechanisms._laplace import Laplace
from discreet.mechanisms._max_norm import MaxNorm
from discreet.mechanisms._mechanism import Interactive, Mechanism
from discreet.mechanisms._parts import AnyPart, Key, KeysPart, Part, RealPart, RowsPart, Value
from discreet.mechanisms._real_gaussian import RealGaussian
from discreet.mechanisms._release import Release, rehearse, release, release_through
from discreet.mechanisms._rows import Grid, Rows
from discreet.mechanisms._sensitivity import RealSensitivity, Sensitivity
from discreet.mechanisms._session import Session, session, session_through
from discreet.mechanisms._staircase import Staircase
from discreet.mechanisms._statement import stated_loss
from discreet.mechanisms._together import Together

__all__ = [
    "AnyPart",
    "Bounded",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Door",
    "FixedPoint",
    "FloatArray",
    "Gaussian",
    "Grid",
    "IntegerArray",
    "Interactive",
    "Key",
    "KeysPart",
    "Laplace",
    "MaxNorm",
    "Mechanism",
    "Part",
    "RealGaussian",
    "RealPart",
    "RealSensitivity",
    "Release",
    "Rows",
    "RowsPart",
    "Sensitivity",
    "Session",
    "StagedComputation",
    "Staircase",
    "Together",
    "Trace",
    "Value",
    "rehearse",
    "release",
    "release_through",
    "session",
    "session_through",
    "stated_loss",
]
