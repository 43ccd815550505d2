"""The laws of choices on neighbouring scores, against what their privacy losses claim."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from discreet._unit import Change, Unit
from discreet.accounting import PrivacyLoss
from discreet.mechanisms import Bounded, FloatArray, Sensitivity
from discreet.mechanisms.selection import Moves
from tests.mechanisms.kit import PERSON, lost

TINY = 1e-12  # more than what float64 loses here

Scores = tuple[int, ...]
Law = Callable[[Scores], FloatArray]  # the probability of each outcome, always in the same order


@dataclass(frozen=True)
class Setting:
    """Who is protected, how scores move, and how they are declared to."""

    unit: Unit
    sensitivity: Sensitivity
    moves: Moves
    steps: tuple[Scores, ...]  # from a table to its neighbour

    def scores(self) -> Bounded[Any]:  # Any: an integer array
        """Scores of three candidates."""
        return scores_of(3, self.sensitivity, self.unit)


def scores_of(
    count: int, sensitivity: int | Sensitivity = 1, unit: Unit = PERSON
) -> Bounded[Any]:  # Any: an integer array
    """Scores of that many candidates."""
    return Bounded(
        lambda: np.zeros(count, np.int64),
        sensitivity=sensitivity,
        unit=unit,
        name="scores",
        shape=(count,),
    )


def _steps(values: Sequence[int], *, l1: int = 3) -> tuple[Scores, ...]:
    every = itertools.product(values, repeat=3)
    return tuple(step for step in every if sum(map(abs, step)) <= l1)


ANYHOW = Sensitivity(linf=1, length=3)
REPLACED = PERSON.with_change(Change.REPLACE)
SETTINGS = {
    "anyhow": Setting(PERSON, ANYHOW, Moves.ANYHOW, _steps((-1, 0, 1))),
    "replaced": Setting(REPLACED, ANYHOW, Moves.ANYHOW, _steps((-1, 0, 1))),
    "together": Setting(PERSON, ANYHOW, Moves.TOGETHER, _steps((0, 1)) + tuple(_steps((-1, 0)))),
    "one score": Setting(PERSON, Sensitivity(l1=1), Moves.ANYHOW, _steps((-1, 0, 1), l1=1)),
    "one to another": Setting(
        REPLACED, Sensitivity(l1=2, linf=1, length=3), Moves.ANYHOW, _steps((-1, 0, 1), l1=2)
    ),
    "far": Setting(PERSON, Sensitivity(linf=2, length=3), Moves.ANYHOW, _steps((-2, 0, 2), l1=6)),
}


def neighbours(setting: Setting) -> Iterator[tuple[Scores, Scores]]:
    """All pairs of tables of a small universe."""
    for scores in itertools.product((0, 1, 3), repeat=3):
        for step in setting.steps:
            yield scores, tuple(s + d for s, d in zip(scores, step, strict=True))


def refutation(law: Law, setting: Setting, loss: PrivacyLoss) -> str | None:
    """Why a mechanism with this law doesn't have this privacy loss; None if nothing tells."""
    claims = {e: loss.delta(e) for e in (loss.epsilon() * i / 4 for i in range(5))}
    known = cache(law)
    for one, other in neighbours(setting):
        for epsilon, claim in claims.items():
            found = lost(known(one), known(other), epsilon)
            if found > claim + TINY:
                return f"{one}, {other} lose {found}, not {claim}, at {epsilon}"
    return None


def widest(law: Law, setting: Setting) -> float:
    """The largest distance of two privacy losses on one pair of neighbours."""
    known = cache(law)
    losses = (np.log(known(one) / known(other)) for one, other in neighbours(setting))
    return max(float(np.ptp(loss)) for loss in losses)
