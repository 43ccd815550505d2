"""What runs on a person's own device: it needs Python and NumPy, and nothing else of discreet.

The folder works under any name and without the rest of the package, so that it can be copied to
where the data is and read there in one sitting. Each class is plain numbers with two verbs:
`randomize` draws a report, and `worst_ratio` is the proof, in exact arithmetic, that no report's
probability changes by more than that factor with the value. Its logarithm is the epsilon.
"""

from ._bits import SystemBits  # noqa: TID252  # the folder works under any name
from ._duchi import DuchiMean  # noqa: TID252
from ._hadamard import HadamardResponse  # noqa: TID252
from ._hashing import LocalHashing  # noqa: TID252
from ._piecewise import PiecewiseMean  # noqa: TID252
from ._randomized_response import RandomizedResponse  # noqa: TID252
from ._rappor import PermanentAnswers, Rappor  # noqa: TID252
from ._sketch import CountMeanSketch, SketchReports  # noqa: TID252
from ._unary import UnaryEncoding  # noqa: TID252

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
