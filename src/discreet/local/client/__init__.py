"""The part of each local mechanism that runs on a client's own device.

It needs Python and NumPy, and nothing else of discreet. The folder works under any name and without
the rest of the package, so that it can be copied to where the values are. Each class is plain
numbers with two methods: `randomize` draws reports, and `worst_ratio` computes, in exact
arithmetic, the largest factor between a report's probabilities for two values. Its logarithm is
the epsilon. Read `_bits` (random words, exact draws, and the base class), `_values` (checks of
values) and `_randomized_response` first. The others have the
same shape: `_unary`, `_hashing`, `_hadamard` and `_means`.
"""

from ._bits import SystemBits  # noqa: TID252  # the folder works under any name
from ._hadamard import HadamardResponse  # noqa: TID252
from ._hashing import CountMeanSketch, LocalHashing, SketchReports  # noqa: TID252
from ._means import DuchiMean, PiecewiseMean  # noqa: TID252
from ._randomized_response import RandomizedResponse  # noqa: TID252
from ._unary import PermanentAnswers, Rappor, UnaryEncoding  # noqa: TID252

__all__ = [
    "CountMeanSketch",
    "DuchiMean",
    "HadamardResponse",
    "LocalHashing",
    "PermanentAnswers",
    "PiecewiseMean",
    "RandomizedResponse",
    "Rappor",
    "SketchReports",
    "SystemBits",
    "UnaryEncoding",
]
