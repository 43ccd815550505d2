"""A score that was coarsened for one guess names the same dataset for each output."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from discreet.audit._guesses import GuessRule
from discreet.audit._outputs import Outputs
from discreet.audit._scores import learn_scores
from tests.audit.laws import generator

RANDOM = generator()
ODD = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1e300]
KINDS: dict[str, Callable[[int], Any]] = {  # Any: arrays
    "reals": lambda moved: RANDOM.normal(moved, 1, 3000),
    "integers": lambda moved: np.rint(RANDOM.laplace(moved, 30, 3000)),
    "few values": lambda moved: RANDOM.integers(0, 9 + moved, 3000),
    "one value": lambda moved: np.full(3000, 5.0 + moved),
    "odd values": lambda moved: RANDOM.choice([*ODD, *RANDOM.normal(moved, 1, 30)], 3000),
    "rows": lambda moved: np.column_stack(
        [RANDOM.normal(moved, 1, 3000), RANDOM.integers(0, 50, 3000)]
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_coarsened_guess_names_the_same_dataset(kind: str) -> None:
    draw = KINDS[kind]
    outputs = Outputs.of(draw(0))
    tried = 0
    for score in learn_scores(Outputs.of(draw(0)), Outputs.of(draw(1))):
        values = np.unique(score.of(outputs))
        for high, low in thresholds(values[np.isfinite(values)]):
            guess = GuessRule(score, high, low)
            quick = guess.coarsened()
            assert str(quick) == str(guess)
            named = [each.names(each.score.of(outputs)) for each in (guess, quick)]
            for one, other in zip(*named, strict=True):
                assert np.array_equal(one, other)
            tried += quick.score is not score
    assert tried


def thresholds(values: np.ndarray) -> list[tuple[float, float]]:
    """Thresholds of guesses that name one dataset, that never abstain, and that abstain."""
    some = values[:: max(1, len(values) // 6)].tolist()
    single = [(value, -math.inf) for value in some] + [(math.inf, value) for value in some]
    never = [(value, math.nextafter(value, -math.inf)) for value in some]
    pairs = [(high, low) for high in some for low in some if high > low]
    return single + never + pairs
