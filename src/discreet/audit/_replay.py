"""Record and replay: run on a table, run on its neighbour with the same bits, compare everything.

What may differ between the two runs is the pre-noise result, by no more than the stated
sensitivity, and nothing else: not the charges, not what the engine is told, not the schema or the
order of what comes out, not an error or a warning, not how many bits are drawn. Any other
difference is a way in which one unit shows (arXiv 2602.17454). Deterministic, with no statistics
in it.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

import numpy as np

from discreet._budget import Receipt, Request
from discreet.accounting import PrivacyLoss
from discreet.audit._bits import RecordingBits, SeededBits
from discreet.errors import DiscreetError
from discreet.mechanisms import AnyPart, Door

T = TypeVar("T")


class Difference(AssertionError):
    """A unit showed: the two runs differ in something that may not depend on one unit."""


@dataclass
class Run:
    """What one run did: a payer that only notes, a trace, and how it ended."""

    events: list[tuple[str, object]] = field(default_factory=list)
    warned: list[warnings.WarningMessage] = field(default_factory=list)
    ending: object = None

    def charge(
        self,
        loss: PrivacyLoss,
        *,
        purpose: str,
        by: str,
        request: Request | None = None,
        is_insecure: bool = False,
    ) -> Receipt:
        """Note the charge, and admit it."""
        self.note("charge", (loss.to_json(), purpose, by, request))
        return Receipt(1, "", datetime.fromtimestamp(0, UTC), purpose, by, None, is_insecure)

    def keep(self, receipt: Receipt, answer: str) -> None:
        """Note that an answer was stored, and of what length."""
        self.note("keep", (receipt.number, len(answer)))

    def lock(self, receipt: Receipt) -> None:
        """Note the lock."""
        self.note("lock", receipt.number)

    def note(self, event: str, fact: object) -> None:
        """Remember an event."""
        self.events.append((event, fact))

    def facts(self, event: str) -> list[Any]:  # Any: an event's own
        """What was noted under this name."""
        return [fact for name, fact in self.events if name == event]


def replay(act: Callable[[Door, T], object], table: T, neighbour: T, *, seed: int = 0) -> Run:
    """Do the act on a table and on its neighbour with the same bits; the first run, if nothing but
    the pre-noise results differs and those by no more than their sensitivity; `Difference` else.

    ``act`` must come through the door that it is given. What it returns is compared by its
    public shape: a mapping's or an object's ``columns``, and its type. What both runs warn of is
    issued once more.
    """
    recorded = RecordingBits(SeededBits(seed))
    first, second = Run(), Run()
    _carry_out(act, Door(first, recorded, first), table, first)
    replayed = RecordingBits(SeededBits(seed))
    _carry_out(act, Door(second, replayed, second), neighbour, second)
    _compare("the events", _public(first), _public(second))
    _compare("the ending", first.ending, second.ending)
    _compare("the warnings", *([str(told) for told in run.warned] for run in (first, second)))
    _compare("the number of words drawn", len(recorded.seen), len(replayed.seen))
    for (part, one), (_, other) in zip(_computed(first), _computed(second), strict=True):
        _check_distance(part, one, other)
    for told in first.warned:
        warnings.warn_explicit(told.message, told.category, told.filename, told.lineno)
    return first


def _carry_out(act: Callable[[Door, T], object], door: Door, table: T, run: Run) -> None:
    with warnings.catch_warnings(record=True) as run.warned:
        warnings.simplefilter("always")  # none is an error here, and none is told only once
        try:
            out = act(door, table)
        except DiscreetError as error:
            run.ending = type(error), str(error)
        else:
            run.ending = type(out), tuple(getattr(out, "columns", ()))


def _public(run: Run) -> list[tuple[str, object]]:
    """The events as they may be compared: of values, only their shape."""
    return [
        (name, _shape(fact) if name in ("computed", "released") else fact)
        for name, fact in run.events
    ]


def _shape(value: object) -> object:
    if isinstance(value, Mapping):
        return [(name, _shape(item)) for name, item in value.items()]  # in order
    return (value.shape, value.dtype.name) if isinstance(value, np.ndarray) else type(value)


def _compare(what: str, one: object, other: object) -> None:
    if one != other:
        raise Difference(f"{what} differ:\n  {one}\n  {other}")


def _computed(run: Run) -> Iterator[tuple[AnyPart, object]]:
    """Each part that was computed, with its value."""
    parts: tuple[AnyPart, ...] = ()
    is_joint = False
    for name, fact in run.events:
        if name == "bounded":
            parts, is_joint = cast(tuple[tuple[AnyPart, ...], bool], fact)
        elif name == "computed":
            values = cast(Mapping[str, object], fact) if is_joint else {parts[0].name: fact}
            yield from ((part, values[part.name]) for part in parts)


def _check_distance(part: AnyPart, one: object, other: object) -> None:
    moved = part.moves(one, other)
    norms = {
        "l0": sum(m > 0 for m in moved),
        "l1": sum(moved),
        "l2_squared": sum(m * m for m in moved),
        "linf": max(moved, default=0),
    }
    for name, norm in norms.items():
        if norm > (bound := getattr(part.sensitivity, name)):
            raise Difference(
                f"part {part.name!r} moved by {norm} in {name}, its sensitivity is {bound}"
            )
