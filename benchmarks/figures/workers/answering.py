"""What every worker here does: a line of JSON asks, a line of JSON answers."""

import json
import math
import resource
import sys
from collections.abc import Callable, Mapping
from typing import Any

MEMORY = 8 << 30

Asked = dict[str, Any]  # Any: JSON
Figure = float | list[float]


def answer(figures: Mapping[str, Callable[[Asked, float], Figure]]) -> None:
    """Compute the figures asked for; a reason stands for one that can't be."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for line in sys.stdin:
        asked = json.loads(line)
        figure = figures[asked["figure"]]
        print(json.dumps([one(figure, asked, delta) for delta in asked["deltas"]]), flush=True)


def one(figure: Callable[[Asked, float], Figure], asked: Asked, delta: float) -> Figure | str:
    """A figure that JSON can hold, or why there is none."""
    try:
        found = figure(asked, delta)
    except Exception as mistake:  # noqa: BLE001  # whatever it is, it is the answer
        return f"{type(mistake).__name__}: {mistake}"[:80]
    numbers = found if isinstance(found, list) else [found]
    return found if all(map(math.isfinite, numbers)) else "not finite"
