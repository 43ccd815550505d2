"""Private boosting of InterpretML on two neighbouring tables of patients with one feature."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
from interpret.privacy import DPExplainableBoostingClassifier

from benchmarks.draws import Mechanism, serve_draws

warnings.simplefilter("ignore")

EPSILON, DELTA, ROWS = 1.0, 1e-5, 32
TARGET = np.arange(ROWS) % 2
GRID = 2**-20  # the low bits of floats are another fault
BOUNDS = {"age": (0.0, 100.0)}


def trained(
    kind: str, column: str, values: list[Any], weights: list[float] | None = None
) -> DPExplainableBoostingClassifier:
    """A model of one feature, whose kind and bounds are public."""
    model = DPExplainableBoostingClassifier(
        feature_types=[kind],
        epsilon=EPSILON,
        delta=DELTA,
        max_rounds=1,
        outer_bags=1,
        privacy_bounds=BOUNDS,
    )
    model.fit(pd.DataFrame({column: values}), TARGET, weights)
    return model


def names(last: str) -> list[str]:
    """The names of the categories that the model knows."""
    model = trained("nominal", "disease", ["flu"] * (ROWS - 1) + [last])
    return sorted(model.bins_[0][0])


def weight(last: float) -> float:
    """The weight of all rows, which the model shows."""
    model = trained("continuous", "age", [50.0] * ROWS, [1.0] * (ROWS - 1) + [last])
    return float(model.bag_weights_[0])


def scores(last: float) -> list[list[float]]:
    """The edges, the noisy weights and the scores of all bins."""
    model = trained("continuous", "age", [50.0] * (ROWS - 1) + [last])
    found = model.bins_[0][0], model.bin_weights_[0], model.term_scores_[0]
    return [(np.round(each / GRID) * GRID).tolist() for each in found]


serve_draws(
    {
        "category-names": Mechanism(lambda place: names(("flu", "gout")[place]), EPSILON, DELTA),
        "row-weights": Mechanism(lambda place: weight((1.0, 2.0)[place]), EPSILON, DELTA),
        "numbers-in-bounds": Mechanism(lambda place: scores((50.0, 90.0)[place]), EPSILON, DELTA),
    }
)
