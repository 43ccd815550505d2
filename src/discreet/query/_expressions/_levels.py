"""The names of the columns of several quantiles of one value."""

from collections.abc import Sequence
from fractions import Fraction

from discreet import _checks
from discreet._exact import Number
from discreet.errors import InvalidArgument


def level_names(column: str, levels: Sequence[Number]) -> dict[str, Fraction]:
    """The levels by the names of their columns: age_50 for the median of age."""
    named = {}
    for level in levels:
        exact = _checks.probability(levels=level)
        percent = f"{float(100 * exact):.6g}".replace(".", "_")
        named[f"{column}_{percent}"] = exact
    if len(named) < len(levels):
        raise InvalidArgument(f"levels = {levels!r}: give each once, and of at most 6 digits")
    return named
