"""Pictures of one privacy loss, or of several side by side."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from discreet import _checks
from discreet._exact import Number, fraction
from discreet._html import up
from discreet.accounting import PrivacyLoss, Term
from discreet.errors import InvalidArgument
from discreet.plots import _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NamedLosses = PrivacyLoss | Term | Mapping[str, PrivacyLoss | Term]

_LEAST = 1e-12
_LONGEST = 60


def profile(losses: NamedLosses, delta: Number | None = None, ax: "Axes | None" = None) -> "Axes":
    """Draw the privacy profile of a loss, or of each of several named ones: the smallest proven
    delta at each epsilon. With ``delta``, the epsilon that belongs to it is marked.

    >>> from discreet.accounting import Gaussian
    >>> drawn = profile({"little noise": Gaussian(1), "much noise": Gaussian(4)}, delta=1e-6)
    """
    named = _named(losses)
    level = None if delta is None else float(_checks.probability(delta=delta))
    profiles = [loss.profile() for loss in named.values()]
    farthest = max(known.epsilons[-1] for known in profiles) * 1.03 or 1.0
    ax = _style.axes(ax, "Privacy profile", "epsilon (ε)", "delta (δ), the smallest proven")
    ax.set_yscale("log")
    ax.set_ylim(_LEAST, 2)
    ax.set_xlim(0, farthest)
    for (name, loss), known, (colour, dash) in zip(
        named.items(), profiles, _style.lines(), strict=False
    ):
        across, height = [*known.epsilons], [max(one, _LEAST / 10) for one in known.deltas]
        if height[-1] > 2 * _LEAST:  # it falls no more
            across, height = [*across, farthest], [*height, height[-1]]
        label = name or _short(loss)
        ax.plot(across, height, color=colour, linestyle=dash, linewidth=2, label=label)
        if level is not None and math.isfinite(epsilon := loss.epsilon(level)):
            ax.plot([epsilon], [level], marker="o", markersize=6, color=colour)
            _style.word(ax, f"ε = {up(epsilon, 3)}", (epsilon, level), colour)
    if level is not None:
        ax.axhline(level, color=_style.FAINT, linewidth=0.8, zorder=1)
    _style.key(ax)
    return ax


def trade_off(losses: NamedLosses, ax: "Axes | None" = None) -> "Axes":
    """Draw the trade-off curve of a loss, or of each of several named ones: the smallest type II
    error for each type I error of an attacker's test whether one unit was in the data.

    >>> from discreet.accounting import Gaussian
    >>> drawn = trade_off({"little noise": Gaussian(1), "much noise": Gaussian(4)})
    """
    named = _named(losses)
    ax = _style.axes(
        ax,
        "What an attacker can tell",
        "type I error: finds a unit that was not there",
        "type II error: misses a unit that was there",
        is_square=True,
    )
    ax.set_aspect("equal")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.plot([0, 1], [1, 0], color=_style.FAINT, linewidth=1, linestyle=(0, (1, 2)))
    _style.along(ax, "guessing blindly", (0.81, 0.21), -45)
    for (name, loss), (colour, dash) in zip(named.items(), _style.lines(), strict=False):
        known = loss.trade_off()
        across, height = known.curve()
        label = f"{name or _short(loss)}: advantage at most {_percent(known.advantage)}"
        ax.plot(across, height, color=colour, linestyle=dash, linewidth=2, label=label)
    _style.key(ax)
    return ax


def composition(
    loss: PrivacyLoss | Term, delta: Number, counts: Sequence[int], ax: "Axes | None" = None
) -> "Axes":
    """Draw the epsilon at this delta of a loss that is repeated, for each count, by each theorem
    that bounds it; the best one is bold.

    >>> from discreet.accounting import Gaussian
    >>> drawn = composition(Gaussian(8), 1e-6, counts=[1, 3, 10, 30, 100])
    """
    # 1. for each theorem, its epsilon at each count
    whole, level = _loss(loss), _checks.delta(delta=delta)
    times = sorted({_checks.positive_count(counts=count) for count in counts})
    if not times:
        raise InvalidArgument("counts: give at least one")
    explained = [(whole * count).explain(level) for count in times]
    curves: dict[str, list[tuple[int, float]]] = {}
    for count, one in zip(times, explained, strict=True):
        for theorem, epsilon in one.figures.items():
            curves.setdefault(theorem, []).append((count, epsilon))
    # 2. one line for each theorem, the best one first
    ax = _style.axes(
        ax,
        f"What repetition costs: {_short(whole)}",
        "how often it happens",
        f"epsilon (ε) at delta (δ) = {_style.written(float(level))}",
    )
    best = explained[-1].best
    for theorem, (colour, dash) in zip(
        sorted(curves, key=lambda name: name != best), _style.lines(), strict=False
    ):
        is_best = theorem == best
        ax.plot(
            *zip(*curves[theorem], strict=True),
            color=colour,
            linestyle=dash,
            linewidth=_style.BOLD if is_best else 1.6,
            marker="o",
            markersize=4 if is_best else 3,
            label=theorem,
            zorder=3 if is_best else 2,
        )
    heights = [epsilon for points in curves.values() for _, epsilon in points if epsilon]
    _style.scale(ax, times, heights or [1.0])
    _style.label_ends(ax)
    return ax


def _named(losses: NamedLosses) -> dict[str, PrivacyLoss]:
    """The losses by name; a single one has an empty name."""
    if not isinstance(losses, Mapping):
        return {"": _loss(losses)}
    if not losses:
        raise InvalidArgument("losses: give at least one")
    return {str(name): _loss(loss) for name, loss in losses.items()}


def _loss(loss: object) -> PrivacyLoss:
    whole = PrivacyLoss.of(loss) if isinstance(loss, Term) else loss
    if not isinstance(whole, PrivacyLoss):
        raise InvalidArgument(f"loss = {loss!r}: give a term, a privacy loss, or several by name")
    return whole


def _short(loss: PrivacyLoss) -> str:
    """The loss in one short line, without the names of fields."""
    written = re.sub(r"accounting\.|\b\w+=", "", str(loss))
    return written if len(written) <= _LONGEST else f"{written[: _LONGEST - 1]}…"


def _percent(share: float) -> str:
    return f"{math.ceil(fraction(share) * 1000) / 10:g} %"
