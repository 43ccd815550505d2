"""Pictures of results of private training."""

from typing import TYPE_CHECKING

import numpy as np

from discreet.plots import _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from discreet.train.examples.clusters import Boundary, Clusters

_MARKS = (("o", 14.0), ("^", 18.0))  # and their sizes


def boundaries(found: "Clusters", ax: "Axes | None" = None) -> "Axes":
    """Draw two clusters of points, and the boundaries between them: private beside plain.

    It shows every point, so it is only for public points, or for their owner.
    """
    ax = _style.axes(
        ax, "Two clusters, separated", "first feature", "second feature", is_square=True
    )
    ax.set_aspect("equal")
    reach = float(np.abs(found.points).max()) * 1.05
    ax.set_xlim(-reach, reach)
    ax.set_ylim(-reach, 1.2 * reach)  # room for the names
    for side, (marker, size) in zip((False, True), _MARKS, strict=True):
        across, up = found.points[found.labels == side].T
        colour = _style.FAINT if side else _style.INK
        ax.scatter(across, up, s=size, marker=marker, color=colour, alpha=0.45, linewidths=0)
    price = f"ε = {found.report.epsilon:.3g}, δ = {float(found.report.plan.delta):g}"
    named = {f"private, {price}": found.private, "plain": found.plain}
    for (name, boundary), (colour, dash) in zip(named.items(), _style.lines(), strict=False):
        label = f"{name}: {found.right(boundary):.1%} right"
        ax.plot(*_ends(boundary, 2 * reach), color=colour, linestyle=dash, lw=2.2, label=label)
    _style.key(ax)
    return ax


def _ends(boundary: "Boundary", reach: float) -> tuple[list[float], list[float]]:
    """Two points of the line, at this distance from the one nearest to the origin."""
    normal = np.array(boundary.normal)
    nearest = -boundary.offset * normal / (normal @ normal)
    along = reach * np.array([-normal[1], normal[0]]) / np.linalg.norm(normal)
    across, up = np.stack([nearest - along, nearest + along], 1)
    return across.tolist(), up.tolist()
