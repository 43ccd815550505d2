"""Record and replay for any function of a table: of a user's own, with any source of noise.

The function runs twice on the table and once on its neighbour, each time with the same random
numbers. The first two runs must agree, which shows that the replay sets all of its noise. The third
one may differ from them in released numbers only (arXiv 2602.17454). Any other difference is looked
at again with other random numbers, because noise may decide a form or a path, too: it is certain if
it never varies on either table.
"""

import dataclasses
import json
import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import TypeVar

from discreet import _checks, _html
from discreet._exact import Number
from discreet.audit._bits import RecordingBits, SeededBits
from discreet.audit._black_box import Progress
from discreet.audit._neighbours import checked_pairs, pair_in_words
from discreet.audit._output_facts import OutputFacts
from discreet.audit._replay import Difference, Run
from discreet.audit._watch import watch_run
from discreet.errors import InvalidArgument
from discreet.mechanisms import Door

T = TypeVar("T")

SEEDS = 100  # with which a difference is looked at again
_FEWEST = 8  # seeds that leave a difference to noise
_MOST_TEXTS = 8  # of a fact on one table; noise decides one that has more
_LEAST_SHARE = 0.6
_ROUNDING = 1e-9
_LONGEST = 300
_VALUES = "bounded", "computed", "released"  # events whose facts are objects or private values
_ENDING, _ORDER = "the ending", "the order of events"

NamedPlace = tuple[str, int]  # its name, and its place among the facts of this name
FactTable = dict[NamedPlace, str]


class _ExceedsSensitivity(Difference):
    """The released numbers move by more than the sensitivity, with the same noise."""


@dataclasses.dataclass(frozen=True, slots=True)
class PairDifference:
    """A difference of two runs on the tables of this pair, and the tables, in words.

    If it ``is_certain``, one table shows a fact nearly always that the other one never shows,
    whatever the noise is. Otherwise numbers moved by more than the sensitivity, or noise has a part
    in the difference.
    """

    pair: int
    datasets: str
    text: str
    is_certain: bool


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class PipelineResult:
    """The pairs of neighbouring tables that a pipeline tells apart.

    ``pairs`` is the number of pairs that were tried, and ``sensitivity`` the claimed one.
    ``differences`` has the certain differences, and the moves of numbers beyond the sensitivity.
    ``undecided`` has the differences in form or path that are there with some noise and absent
    with other noise. They may be right: audit the outputs of these pairs by `black_box`.
    """

    pairs: int
    sensitivity: float | None
    differences: tuple[PairDifference, ...]
    undecided: tuple[PairDifference, ...] = ()

    _repr_html_ = _html.shown

    def to_json(self) -> str:
        """The number of pairs and all differences as JSON."""
        return json.dumps(dataclasses.asdict(self), indent=2)

    def __repr__(self) -> str:
        """The number of pairs, and a line for each difference."""
        lines = [f"{len(self.differences)} of {self.pairs} pairs of tables differ"]
        lines += map(_line, self.differences)
        if self.undecided:
            lines.append(
                f"undecided: {len(self.undecided)} of {self.pairs} pairs, where noise has a part "
                "in the difference; audit their outputs by black_box"
            )
            lines += map(_line, self.undecided)
        return "\n".join(lines)


def _line(found: PairDifference) -> str:
    return f"pair {found.pair}, {found.datasets}: {found.text}"


@dataclasses.dataclass
class _WatchedRun:
    """Facts of one run: of its path and the form of its output, and the values of the output."""

    facts: FactTable
    values: FactTable
    numbers: list[float]


def replay_pipeline(
    pipeline: Callable[[T], object],
    table: T,
    neighbour: T,
    *,
    sensitivity: Number | None = None,
    seed: int = 0,
) -> tuple[str, ...]:
    """Raise `Difference` if a run on a neighbouring table shows more than its noisy numbers do.

    ``pipeline`` is a function of a table. It may draw noise from `random`, NumPy, PyTorch, the
    operating system, or mechanisms of this library, whose ledger is not charged here. Both tables
    are run with the same random numbers. Compared are the number of random numbers drawn, seeds,
    charges, files and connections opened, lines of the log, printed text, warnings, errors, changes
    of the environment, the values of the output, and its form: types, lengths, keys and their
    order, elements of sets, columns, indexes, and which numbers are NaN or infinite. With
    ``sensitivity``, the first 64 numbers of the output may move by this much, in sum: right for
    noise that is added.

    A difference is looked at again with 100 other seeds for each table. It is raised if it is
    certain: one table shows a fact nearly always that the other one never shows. With a right
    mechanism of pure epsilon 1 the probability of this is below 1e-9, of 2 below 1e-3, and of 4
    below 0.6. Of the other differences, values are left to noise, and those in form or path are
    returned in words: noise has a part in them, and an audit of the outputs by `black_box` tells
    whether it is enough.

    Not compared: running time, memory, and what other threads or processes do. Raises
    `InvalidArgument` if two runs on the same table differ in their draws or numbers: then the
    function has state, or noise from a source that can't be set, such as a generator made before
    the call. Other facts that differ between two runs on the same table, such as the names of
    temporary files, are left out. Outputs of unknown types are refused.

    >>> import random
    >>> def noisy_count(people):
    ...     return len(people) + random.gauss(0, 1)
    >>> replay_pipeline(noisy_count, ["ana", "ben"], ["ana"], sensitivity=1)
    ()
    >>> def mean(people):
    ...     return sum(people) / len(people) + random.gauss(0, 1)
    >>> replay_pipeline(mean, [1.0], [])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    discreet.audit._replay.Difference: the error differs...
    """
    moved = None if sensitivity is None else float(_checks.not_negative(sensitivity=sensitivity))
    first, again = (_outcome(pipeline, table, seed) for _ in range(2))
    if _without_repeat(first, again):  # the first run may load modules, open files and warn
        first, again = again, _outcome(pipeline, table, seed)
    if differing := _without_repeat(first, again):
        raise InvalidArgument(
            "two runs on the same table differ: the pipeline has state, or noise that can't be "
            f"set, or it shows the time; make its generators inside, leave times out. {differing}"
        )
    other = _outcome(pipeline, neighbour, seed)
    certain, undecided = _certain_and_undecided(pipeline, (table, neighbour), (again, other), seed)
    if certain:
        raise Difference(certain)
    if moved is not None and (distance := _has_moved(again, other, moved)):
        raise _ExceedsSensitivity(
            f"the output moved by {distance:.6g} with the same noise, its sensitivity is {moved:g}"
        )
    return undecided


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

    >>> import random
    >>> def mean(people):
    ...     return sum(people) / len(people) + random.gauss(0, 1)
    >>> replay_pairs(mean, [([1, 2], [1]), ([1], [])]).differences[0].pair
    1
    """
    known = checked_pairs(pairs, "[(people, people[1:])]")
    differences: list[PairDifference] = []
    undecided: list[PairDifference] = []
    for place, (table, neighbour) in enumerate(known):
        texts: tuple[str, ...] = ()
        try:
            texts = replay_pipeline(pipeline, table, neighbour, sensitivity=sensitivity)
        except Difference as difference:
            is_certain = not isinstance(difference, _ExceedsSensitivity)
            datasets = pair_in_words(table, neighbour)
            differences.append(PairDifference(place, datasets, str(difference), is_certain))
        if texts:
            datasets = pair_in_words(table, neighbour)
            undecided.append(PairDifference(place, datasets, texts[0], is_certain=False))
        if progress is not None:
            progress(place + 1, len(known))
    moved = None if sensitivity is None else float(_checks.not_negative(sensitivity=sensitivity))
    return PipelineResult(len(known), moved, tuple(differences), tuple(undecided))


# One run


def _outcome(pipeline: Callable[[T], object], table: T, seed: int) -> _WatchedRun:
    run, bits = Run(), RecordingBits(SeededBits(seed))
    error, described = None, OutputFacts()
    with (
        warnings.catch_warnings(record=True) as warned,
        watch_run(seed, Door(run, bits, run)) as seen,
    ):
        warnings.simplefilter("always")
        try:
            output = pipeline(table)
        except Exception as raised:  # noqa: BLE001  # part of what the analyst sees
            error = f"{type(raised).__name__}: {raised}"
        else:
            described = OutputFacts.of(output)  # here, because an iterator may draw
    path = [("a warning", f"{one.category.__name__}: {one.message}") for one in warned]
    path += [event for name, fact in run.events for event in _of_event(name, fact)]
    path += [("the words drawn by mechanisms", str(len(bits.seen))), *seen.facts]
    order = (_ORDER, ", ".join(name for name, _ in path))
    facts = [(_ENDING, error or "an answer"), *described.form, *path, order]
    return _WatchedRun(_by_place(facts), _by_place(described.values), described.numbers)


def _of_event(name: str, fact: object) -> list[tuple[str, str]]:
    """The facts of an event in the library; of private values only their form."""
    if name not in _VALUES:
        return [(f"the event {name!r}", str(fact))]
    return [] if name == _VALUES[0] else OutputFacts.of(fact, f"the event {name!r}").form


def _by_place(facts: Iterable[tuple[str, str]]) -> FactTable:
    """The facts by their names, and by their places among the facts of one name."""
    known: Counter[str] = Counter()
    found: FactTable = {}
    for name, text in facts:
        found[name, known[name]] = text
        known[name] += 1
    return found


def _without_repeat(first: _WatchedRun, again: _WatchedRun) -> str:
    """The ending, draws or numbers that differ between two runs on one table, in words. They show
    that the replay does not set all noise."""
    for fact in _differing(first.facts, again.facts):
        if fact[0] == _ENDING or fact[0].startswith(("the draws", "the words")):
            return _in_words(fact, first, again)
    return "The outputs differ." if _has_moved(first, again, 0.0) else ""


def _has_moved(one: _WatchedRun, other: _WatchedRun, most: float) -> float:
    """The distance of the outputs' numbers if it is more than this, else 0."""
    moves = [abs(x - y) for x, y in zip(one.numbers, other.numbers, strict=False)]
    distance = sum(move for move in moves if math.isfinite(move))
    size = sum(abs(x) for x in one.numbers if math.isfinite(x))
    return distance if distance > most + _ROUNDING * (1 + size) else 0.0


# Two tables


def _differing(one: FactTable, other: FactTable) -> list[NamedPlace]:
    """The facts that differ, or that one run has alone."""
    facts = [*one, *(fact for fact in other if fact not in one)]
    return sorted(
        (fact for fact in facts if one.get(fact) != other.get(fact)),
        key=lambda fact: fact[0] == _ORDER,  # the last one, because it says least
    )


def _certain_and_undecided(
    pipeline: Callable[[T], object],
    tables: tuple[T, T],
    runs: tuple[_WatchedRun, _WatchedRun],
    seed: int,
) -> tuple[str, tuple[str, ...]]:
    """The first certain difference of the two runs in words, or nothing, and those in which noise
    has a part. Other seeds decide which a difference is."""
    one, other = runs
    facts = {fact: _Sides.of(fact, runs) for fact in _differing(one.facts, other.facts)}
    shown = [fact for fact in _differing(one.values, other.values) if fact in one.values]
    values = [fact for fact in shown if fact in other.values]
    varied: list[NamedPlace] = []
    seeds = count(seed + 1)  # none twice, so that the runs are independent
    for _ in range(SEEDS):
        for place, (table, run) in enumerate(zip(tables, runs, strict=True)):
            if facts or values:
                found = _outcome(pipeline, table, next(seeds))
                for fact, sides in facts.items():
                    sides.texts[place].append(found.facts.get(fact))
                values = [fact for fact in values if found.values.get(fact) == run.values[fact]]
        varied += [fact for fact, sides in facts.items() if not sides.is_open]
        facts = {fact: sides for fact, sides in facts.items() if sides.is_open}
    varied += [fact for fact, sides in facts.items() if not sides.is_certain]
    if certain := [fact for fact, sides in facts.items() if sides.is_certain]:
        return _in_words(certain[0], one, other), ()
    if values:
        texts = [run.values[values[0]][:_LONGEST] for run in runs]
        return f"{values[0][0]} is without noise, and differs:\n  {texts[0]}\n  {texts[1]}", ()
    if varied:  # a fact that varies with the same noise has nothing to do with the row
        third, last = (_outcome(pipeline, table, seed) for table in tables)
        unstable = {*_differing(one.facts, third.facts), *_differing(other.facts, last.facts)}
        varied = [fact for fact in varied if fact not in unstable]
    return "", tuple(_in_words(fact, one, other) for fact in varied)


@dataclasses.dataclass(frozen=True, slots=True)
class _Sides:
    """The texts of a fact on both tables, in the order of the seeds; ``None`` where it is not.

    A fact is certain if one table nearly always shows texts that the other one never shows. The
    first half of the seeds chooses these texts, so those of the second half don't depend on it.
    """

    texts: tuple[list[str | None], list[str | None]]

    @staticmethod
    def of(fact: NamedPlace, runs: tuple[_WatchedRun, _WatchedRun]) -> "_Sides":
        one, other = runs
        return _Sides(([one.facts.get(fact)], [other.facts.get(fact)]))

    @property
    def is_open(self) -> bool:
        """Whether the fact may still be certain."""
        return len(self.texts[0]) < _FEWEST or self._share(0, len(self.texts[0])) >= _LEAST_SHARE

    @property
    def is_certain(self) -> bool:
        half = len(self.texts[0]) // 2
        return self._share(half, half) >= _LEAST_SHARE

    def _share(self, start: int, chosen: int) -> float:
        """The larger share of texts, from this one on, that are among a few of those ``chosen``
        first, and never on the other table."""
        shares = [0.0]
        for one, other in (self.texts, self.texts[::-1]):
            own = set(one[:chosen]).difference(other)
            if len(own) <= _MOST_TEXTS:
                shares.append(sum(text in own for text in one[start:]) / len(one[start:]))
        return max(shares)


def _in_words(fact: NamedPlace, one: _WatchedRun, other: _WatchedRun) -> str:
    """A fact that differs, or that one run has alone."""
    texts = [run.facts.get(fact) for run in (one, other)]
    known = [text[:_LONGEST] for text in texts if text is not None]
    if fact[0] == _ENDING:
        return f"the error differs: {' and '.join(known)}"
    if len(known) == 1:
        return f"one run has another event: {fact[0]}, {known[0]}"
    return f"{fact[0]} differs:\n  {known[0]}\n  {known[1]}"
