"""The table of the group-by: 200 000 people with 2 000 000 rows at 50 places."""

import numpy as np
import pyarrow as pa

ROWS, PEOPLE, PLACES = 2_000_000, 200_000, 50

_generator = np.random.default_rng(1)
WAGES = pa.table(
    {
        "person": _generator.integers(0, PEOPLE, ROWS),
        "place": _generator.integers(0, PLACES, ROWS),
        "wage": _generator.uniform(0, 100, ROWS),
    }
)
