"""The types of arrays that all parts share."""

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
"""An array of 64-bit floats."""

IndexArray = npt.NDArray[np.int64]
"""An array of indices, or of other integers that int64 holds."""
