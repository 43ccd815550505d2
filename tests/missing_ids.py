"""All marks of a missing id in tables, alone and in columns."""

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

MARKS: dict[str, Any] = {
    "None": None,
    "NaN": math.nan,
    "another NaN": float("-nan"),
    "NumPy's NaN": np.float64("nan"),
    "NaN of 32 bits": np.float32("nan"),
    "NaN of 16 bits": np.float16("nan"),
    "a decimal NaN": Decimal("NaN"),
    "pandas' NA": pd.NA,
    "pandas' NaT": pd.NaT,
    "NumPy's NaT": np.datetime64("NaT"),
    "a duration's NaT": np.timedelta64("NaT", "s"),
}

# Seven rows: persons 1, 2, none, 1, none, 3, none
IDS: list[int | None] = [1, 2, None, 1, None, 3, None]
FLOATS = [math.nan if own is None else float(own) for own in IDS]
MOMENTS = np.array([np.datetime64("NaT" if own is None else own, "D") for own in IDS])
TEXTS = [None if own is None else f"p{own}" for own in IDS]

COLUMNS: dict[str, Callable[[], Any]] = {
    "floats": lambda: np.array(FLOATS),
    "floats of 32 bits": lambda: np.array(FLOATS, np.float32),
    "objects": lambda: np.array(IDS, object),
    "texts": lambda: np.array(TEXTS, object),
    "moments": lambda: MOMENTS.astype("M8[us]"),
    "a series of floats": lambda: pd.Series(FLOATS),
    "a series of integers": lambda: pd.Series(IDS, dtype="Int64"),
    "a series of texts": lambda: pd.Series(TEXTS, dtype="string"),
    "a series of moments": lambda: pd.Series(MOMENTS.astype("M8[ns]")),
    "Polars' integers": lambda: pl.Series(IDS),
    "Polars' floats": lambda: pl.Series(FLOATS),
    "Polars' texts": lambda: pl.Series(TEXTS),
    "Arrow's integers": lambda: pa.array(IDS, pa.int64()),
    "Arrow's floats": lambda: pa.array(FLOATS),
    "Arrow's texts": lambda: pa.array(TEXTS),
}
