"""The loop of every worker here: it reads requests and writes answers, one line of JSON each."""

import json
import math
import resource
import sys
from collections.abc import Callable, Mapping
from typing import Any

MEMORY = 8 << 30

Request = dict[str, Any]  # Any: JSON
Figure = float | list[float]


def answer(figures: Mapping[str, Callable[[Request, float], Figure]]) -> None:
    """Compute the requested figures; a figure that can't be computed is replaced by a reason."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for line in sys.stdin:
        request = json.loads(line)
        figure = figures[request["figure"]]
        print(json.dumps([one(figure, request, delta) for delta in request["deltas"]]), flush=True)


def one(figure: Callable[[Request, float], Figure], request: Request, delta: float) -> Figure | str:
    """A figure that JSON can represent, or the reason why there is none."""
    try:
        found = figure(request, delta)
    except Exception as mistake:  # noqa: BLE001  # whatever it is, it is the answer
        return f"{type(mistake).__name__}: {mistake}"[:80]
    numbers = found if isinstance(found, list) else [found]
    return found if all(map(math.isfinite, numbers)) else "not finite"
