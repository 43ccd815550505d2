"""A picture of an audit: the claimed and the measured privacy."""

from typing import TYPE_CHECKING

import numpy as np

from discreet.audit import BlackBoxResult
from discreet.errors import InvalidArgument
from discreet.plots import _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POINTS = 200


def audit(result: BlackBoxResult, ax: "Axes | None" = None) -> "Axes":
    """Draw the claimed and the measured delta at each epsilon. The claim is refuted wherever the
    measured delta, a lower bound, lies above the claimed one, an upper bound.

    >>> import random
    >>> from discreet.audit import black_box
    >>> noisy = lambda count: round(count + random.gauss(0, 1))
    >>> drawn = audit(black_box(noisy, [(3, 4)], claim=1, delta=0.01, samples=2000))
    """
    if not isinstance(result, BlackBoxResult):
        raise InvalidArgument(
            f"result is of type {type(result).__name__}: give the result of audit.black_box"
        )
    verdict = "refuted" if result.is_refuted else "not refuted"
    ax = _style.axes(ax, f"The claim is {verdict}", "epsilon (ε)", "delta (δ)")
    end = 1.1 * max(result.profile.epsilons[-1], result.epsilon()) or 1.0
    epsilons = np.linspace(0, end, _POINTS)
    curves = {
        "claimed, at most": [result.profile.delta(float(one)) for one in epsilons],
        "measured, at least": [result.delta(float(one)) for one in epsilons],
    }
    for (name, deltas), (colour, dash) in zip(curves.items(), _style.lines(), strict=False):
        ax.plot(epsilons, deltas, color=colour, linestyle=dash, linewidth=2, label=name)
    ax.set_xlim(0, end)
    ax.set_ylim(0, None)
    _style.key(ax)
    return ax
