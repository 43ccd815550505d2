"""Record and replay: run on a table, run on its neighbour with the same bits, compare everything.

Only the result before noise may differ, and by no more than the stated sensitivity. The charges,
the engine's statement, the schema and order of the answer, errors, warnings and the number of bits
drawn must be the same. Any other difference reveals one unit (arXiv 2602.17454). The test is
deterministic and needs no statistics.
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
    """The two runs differ in something that may not depend on one unit."""


@dataclass
class Run:
    """A record of one run: its payer, its trace, its warnings and its ending."""

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
        statement: str | None = None,
    ) -> Receipt:
        """Record the charge, and admit it."""
        self.note("charge", (loss.to_json(), purpose, by, request, statement))
        return Receipt(1, "", datetime.fromtimestamp(0, UTC), purpose, by, None, is_insecure)

    def keep(self, receipt: Receipt, answer: str) -> None:
        """Record that an answer was stored, and its length."""
        self.note("keep", (receipt.number, len(answer)))

    def lock(self, receipt: Receipt) -> None:
        """Record the lock."""
        self.note("lock", receipt.number)

    def note(self, event: str, fact: object) -> None:
        """Record an event."""
        self.events.append((event, fact))

    def facts(self, event: str) -> list[Any]:  # Any: an event's own
        """The facts that were recorded under this name."""
        return [fact for name, fact in self.events if name == event]


def replay(act: Callable[[Door, T], object], table: T, neighbour: T, *, seed: int = 0) -> Run:
    """Run the act on a table and on its neighbour with the same bits, and return the first run.

    Raises `Difference` unless only the results before noise differ, by at most their sensitivity.
    ``act`` must use the given door. Its result is compared by its public shape: its type, and its
    ``columns`` if it has any. Warnings of both runs are issued again.
    """
    first_bits = RecordingBits(SeededBits(seed))
    first, second = Run(), Run()
    _carry_out(act, Door(first, first_bits, first), table, first)
    second_bits = RecordingBits(SeededBits(seed))
    _carry_out(act, Door(second, second_bits, second), neighbour, second)
    _compare("the events", _public(first), _public(second))
    _compare("the ending", first.ending, second.ending)
    _compare("the warnings", *([str(one) for one in run.warned] for run in (first, second)))
    _compare("the number of words drawn", len(first_bits.seen), len(second_bits.seen))
    for (part, one), (_, other) in zip(_computed(first), _computed(second), strict=True):
        _check_distance(part, one, other)
    for warning in first.warned:
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return first


def _carry_out(act: Callable[[Door, T], object], door: Door, table: T, run: Run) -> None:
    with warnings.catch_warnings(record=True) as run.warned:
        warnings.simplefilter("always")  # none is an error here, and each is shown every time
        try:
            out = act(door, table)
        except DiscreetError as error:
            run.ending = type(error), str(error)
        else:
            run.ending = type(out), tuple(getattr(out, "columns", ()))


def _public(run: Run) -> list[tuple[str, object]]:
    """The events, with only the shape of values."""
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
