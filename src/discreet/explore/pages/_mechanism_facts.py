"""Facts and pictures that the pages' mechanisms have in common."""

import math
from collections.abc import Iterable
from dataclasses import replace

from discreet.accounting import PrivacyLoss
from discreet.explore._page import shown
from discreet.explore.pages._texts import at_most, at_most_percent
from discreet.plots import Axis, Chart, RuleLine, Series

_TOPS = (1, 2, 5, 10)  # of an axis, times a power of ten

LOSS_CODE = """
epsilon = loss.epsilon({delta})
advantage = loss.advantage()
"""


def of_loss(loss: PrivacyLoss, delta: float) -> dict[str, float]:
    return {"epsilon": loss.epsilon(delta), "advantage": loss.advantage()}


def loss_rows(figures: dict[str, float], delta: float) -> tuple[tuple[str, str], ...]:
    at = f" at δ = {shown(delta)}" if delta else ""
    return (
        (f"ε, proven{at}", at_most(figures["epsilon"])),
        ("a guess between the two is right", guess_is_right(figures["advantage"])),
    )


def guess_is_right(advantage: float) -> str:
    """How often the best guess at even odds is right, as text."""
    return f"at most {at_most_percent(min((1 + advantage) / 2, 1))}"


def ratio_chart(x: Axis, logs: Series, epsilon: float) -> Chart:
    """The logarithms of the ratio in units of epsilon, so that the axis stays for each epsilon."""
    points = tuple((at, float(f"{float(log) / epsilon:.5g}")) for at, log in logs.points)
    return Chart(
        "Their ratio",
        "The logarithm of (with you / without you), in units of ε. Without δ it stays within ±1.",
        x,
        Axis("ln ratio, in units of ε", -1.5, 1.5),
        (replace(logs, points=points),),
        (RuleLine("y", 1, "ε"), RuleLine("y", -1, "−ε")),
    )


def on_axis(points: Iterable[tuple[float, float]], axis: Axis) -> tuple[tuple[float, float], ...]:
    """The points that lie on the second axis. One beyond it is left out: drawn at its end, it
    would look like a value."""
    return tuple((x, y) for x, y in points if axis.low <= y <= axis.high)


def round_top(height: float) -> float:
    """A round number above this height. Few are different: to change axes slows down a drag."""
    power = math.floor(math.log10(height))
    tops = (float(f"{top}e{power}") for top in _TOPS)
    return next(top for top in tops if top >= height)
