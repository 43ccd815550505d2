"""Record and replay for any function of a table: of a user's own, with any source of noise.

The function runs twice on the table and once on its neighbour, each time with the same random
numbers. The first two runs must agree in everything, which shows that the replay sets all of its
noise. The third one may differ from them in released numbers only (arXiv 2602.17454).
"""

import dataclasses
import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from discreet import _checks, _html
from discreet._exact import Number
from discreet.audit._bits import RecordingBits, SeededBits
from discreet.audit._black_box import Progress
from discreet.audit._canonical import output_of
from discreet.audit._neighbours import checked_pairs, pair_in_words
from discreet.audit._replay import Difference, Run
from discreet.audit._watch import watch_run
from discreet.errors import InvalidArgument
from discreet.mechanisms import Door

T = TypeVar("T")

_ROUNDING = 1e-9
_LONGEST = 300
_VALUES = "bounded", "computed", "released"  # events whose facts are objects or private values


@dataclasses.dataclass(frozen=True, slots=True)
class PairDifference:
    """The first difference of two runs on the tables of this pair, and the tables, in words."""

    pair: int
    datasets: str
    text: str


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class PipelineResult:
    """The pairs of neighbouring tables that a pipeline tells apart beside its noisy numbers.

    ``pairs`` is the number of pairs that were tried, and ``sensitivity`` the claimed one.
    """

    pairs: int
    sensitivity: float | None
    differences: tuple[PairDifference, ...]

    _repr_html_ = _html.shown

    def to_json(self) -> str:
        """The number of pairs and all differences as JSON."""
        return json.dumps(dataclasses.asdict(self), indent=2)

    def __repr__(self) -> str:
        """The number of pairs, and a line for each difference."""
        lines = [f"pair {one.pair}, {one.datasets}: {one.text}" for one in self.differences]
        return "\n".join([f"{len(lines)} of {self.pairs} pairs of tables differ", *lines])


@dataclasses.dataclass
class _WatchedRun:
    """Public facts of one run, and its output."""

    facts: list[tuple[str, str]]
    output: Any = None  # Any: of the user's own
    is_answered: bool = False


def replay_pipeline(
    pipeline: Callable[[T], object],
    table: T,
    neighbour: T,
    *,
    sensitivity: Number | None = None,
    seed: int = 0,
) -> None:
    """Raise `Difference` if a run on a neighbouring table shows more than its released numbers do.

    ``pipeline`` is a function of a table. It may draw noise from `random`, NumPy, PyTorch, the
    operating system, or mechanisms of this library, whose ledger is not charged here. All runs have
    the same random numbers. The random numbers drawn, seeds, charges, files and connections opened,
    lines of the log, printed text, warnings, errors, and the form of the output must be the same:
    its types, lengths, keys and their order, columns, and which numbers are NaN or infinite. Texts,
    booleans and finite numbers in the output may differ, since noise may decide them. With
    ``sensitivity``, the first 64 numbers of the output may move by this much, in sum: right for
    noise that is added.

    Not compared: running time, memory, and what other threads or processes do. Raises
    `InvalidArgument` if two runs on the same table differ: then the function has state, or noise
    from a source that can't be set, such as a generator made before the call.

    >>> import random
    >>> def noisy_count(people):
    ...     return len(people) + random.gauss(0, 1)
    >>> replay_pipeline(noisy_count, ["ana", "ben"], ["ana"], sensitivity=1)
    >>> def mean(people):
    ...     return sum(people) / len(people) + random.gauss(0, 1)
    >>> replay_pipeline(mean, [1.0], [])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    discreet.audit._replay.Difference: the error differs...
    """
    moved = None if sensitivity is None else float(_checks.not_negative(sensitivity=sensitivity))
    first, again, other = (_outcome(pipeline, one, seed) for one in (table, table, neighbour))
    if (difference := _difference(_set(first), _set(again))) or _has_moved(first, again, 0.0):
        raise InvalidArgument(
            "two runs on the same table differ: the pipeline has state, or noise that can't be "
            f"set; make its generators inside. {difference or 'The outputs differ.'}"
        )
    if difference := _difference(again, other):
        raise Difference(difference)
    if moved is not None and (distance := _has_moved(again, other, moved)):
        raise Difference(
            f"the output moved by {distance:.6g} with the same noise, its sensitivity is {moved:g}"
        )


def replay_pairs(
    pipeline: Callable[[T], object],
    pairs: Sequence[tuple[T, T]],
    *,
    sensitivity: Number | None = None,
    progress: Progress | None = None,
) -> PipelineResult:
    """The pairs of neighbouring tables on which `replay_pipeline` finds a difference.

    ``pairs`` is a list of pairs, as of `neighbours`. ``progress`` is called after each pair with
    the number of pairs that are done, and of all. Raises `InvalidArgument` as `replay_pipeline`
    does.

    >>> found = replay_pairs(lambda people: 1 / len(people), [([1, 2], [1]), ([1], [])])
    >>> found.differences[0].pair
    1
    """
    known, found = checked_pairs(pairs, "[(people, people[1:])]"), []
    for place, (table, neighbour) in enumerate(known):
        try:
            replay_pipeline(pipeline, table, neighbour, sensitivity=sensitivity)
        except Difference as difference:
            found.append(PairDifference(place, pair_in_words(table, neighbour), str(difference)))
        if progress is not None:
            progress(place + 1, len(known))
    moved = None if sensitivity is None else float(_checks.not_negative(sensitivity=sensitivity))
    return PipelineResult(len(known), moved, tuple(found))


def _outcome(pipeline: Callable[[T], object], table: T, seed: int) -> _WatchedRun:
    run, bits = Run(), RecordingBits(SeededBits(seed))
    with (
        warnings.catch_warnings(record=True) as warned,
        watch_run(seed, Door(run, bits, run)) as seen,
    ):
        warnings.simplefilter("always")
        try:
            output = pipeline(table)
        except Exception as error:  # noqa: BLE001  # part of what the analyst sees
            found = _WatchedRun([("the error", f"{type(error).__name__}: {error}")])
        else:
            found = _WatchedRun([("the form of the output", str(_form(output)))], output, True)
    found.facts += [("a warning", f"{one.category.__name__}: {one.message}") for one in warned]
    found.facts += [
        (f"the event {name!r}", str(_form(fact) if name in _VALUES[1:] else fact))
        for name, fact in run.events
        if name != _VALUES[0]
    ]
    found.facts += [("the words drawn by mechanisms", str(len(bits.seen))), *seen.facts]
    return found


def _set(outcome: _WatchedRun) -> _WatchedRun:
    """The facts that the replay sets: a first run may load modules, open files and warn."""
    facts = [fact for fact in outcome.facts if fact[0].startswith(("the draws", "the words"))]
    return dataclasses.replace(outcome, facts=[("the ending", _ending(outcome)), *facts])


def _difference(one: _WatchedRun, other: _WatchedRun) -> str:
    """The first fact that differs, in words; or nothing."""
    if one.is_answered != other.is_answered:
        return f"the error differs: {_ending(one)} and {_ending(other)}"
    for (name, fact), (other_name, other_fact) in zip(one.facts, other.facts, strict=False):
        if name != other_name:
            return f"the order of events differs: {name} ({fact[:_LONGEST]}), and {other_name}"
        if fact != other_fact:
            return f"{name} differs:\n  {fact[:_LONGEST]}\n  {other_fact[:_LONGEST]}"
    if len(one.facts) != len(other.facts):
        longer = max(one.facts, other.facts, key=len)
        name, fact = longer[min(len(one.facts), len(other.facts))]
        return f"one run has another event: {name}, {fact[:_LONGEST]}"
    return ""


def _ending(outcome: _WatchedRun) -> str:
    return "an answer" if outcome.is_answered else outcome.facts[0][1][:_LONGEST]


def _form(value: Any) -> object:  # Any: any output
    """Its types, lengths, keys, columns, and the places of numbers that are not finite."""
    name = type(value).__name__
    if isinstance(value, float | np.floating):
        return name if math.isfinite(value) else f"{name} {float(value)}"
    if isinstance(value, np.ndarray):
        odd = np.argwhere(~np.isfinite(value)).tolist() if value.dtype.kind in "fc" else []
        return name, value.shape, value.dtype.str, odd
    if isinstance(value, Mapping):
        return name, [(repr(key), _form(item)) for key, item in value.items()]
    if isinstance(value, tuple | list):
        return name, [_form(item) for item in value]
    if hasattr(value, "columns") and hasattr(value, "shape"):
        columns = [repr(one) for one in value.columns]
        return name, columns, [str(one) for one in getattr(value, "dtypes", ())], value.shape
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return name, [(one.name, _form(getattr(value, one.name, None))) for one in fields]
    return name


def _has_moved(one: _WatchedRun, other: _WatchedRun, most: float) -> float:
    """The distance of the outputs' numbers if it is more than this, else 0."""
    if not (one.is_answered and other.is_answered):
        return 0.0
    try:
        pair = [output_of(each.output).numbers for each in (one, other)]
    except InvalidArgument:
        if most:
            raise
        return 0.0
    distance = sum(abs(x - y) for x, y in zip(*pair, strict=False) if math.isfinite(x - y))
    size = sum(abs(x) for x in pair[0] if math.isfinite(x))
    return distance if distance > most + _ROUNDING * (1 + size) else 0.0
