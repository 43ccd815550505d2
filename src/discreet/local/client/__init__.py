"""What runs on a person's own device: it needs Python and NumPy, and nothing else of discreet.

The folder works under any name and without the rest of the package, so that it can be copied to
where the data is and read there in one sitting. Each class is plain numbers with two verbs:
`randomize` draws a report, and `worst_ratio` is the proof, in exact arithmetic, that no report's
probability changes by more than that factor with the value. Its logarithm is the epsilon.
"""

from .bits import SystemBits  # noqa: TID252  # the folder works under any name
from .duchi import DuchiMean  # noqa: TID252
from .hadamard import HadamardResponse  # noqa: TID252
from .hashing import LocalHashing  # noqa: TID252
from .piecewise import PiecewiseMean  # noqa: TID252
from .randomized_response import RandomizedResponse  # noqa: TID252
from .rappor import PermanentAnswers, Rappor  # noqa: TID252
from .sketch import CountMeanSketch, SketchReports  # noqa: TID252
from .unary import UnaryEncoding  # noqa: TID252

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
