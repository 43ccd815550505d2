"""The table of the group-by: 10 million rows of a million people of skewed activity."""

import numpy as np

ROWS, PEOPLE, PLACES = 10_000_000, 1_000_000, 50
MOST_PLACES, MOST_ROWS = 3, 5  # of a person, and of those in each of these places
LARGEST = 100  # wage that counts

_generator = np.random.default_rng(1)


def columns(rows: int = ROWS, people: int = PEOPLE) -> dict[str, np.ndarray]:
    """Rows of people, of whom a few have very many; some wages are too large."""
    shares = np.cumsum(1 + _generator.pareto(1.5, people))
    return {
        "person": np.searchsorted(shares, shares[-1] * _generator.random(rows)),
        "place": _generator.integers(0, PLACES, rows),
        "wage": _generator.uniform(0, 1.2 * LARGEST, rows),
    }
