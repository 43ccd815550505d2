"""The loop of a worker that draws outputs of a library, for an audit in another process."""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Draw = Callable[[int], Any]  # the place of one of two datasets; Any: one output


@dataclass(frozen=True)
class Mechanism:
    """A mechanism on two neighbouring datasets, and the privacy that its library states."""

    draw: Draw
    epsilon: float
    delta: float = 0.0


def serve_draws(mechanisms: Mapping[str, Mechanism]) -> None:
    """Answer each line of input as JSON: ``?`` with all names, a name with what its library states,
    and a name, a place and a count with this number of outputs."""
    for line in sys.stdin:
        name, *numbers = line.split()
        if name == "?":
            print(*mechanisms, flush=True)
        elif numbers:
            place, count = map(int, numbers)
            draw = mechanisms[name].draw
            print(json.dumps([draw(place) for _ in range(count)]), flush=True)
        else:
            print(json.dumps([mechanisms[name].epsilon, mechanisms[name].delta]), flush=True)
