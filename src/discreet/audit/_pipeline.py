"""Record and replay for any function of a table: of a user's own, with any source of noise.

The function runs twice on the table and once on its neighbour, each time with the same random
numbers. The first two runs must agree, which shows that the replay sets all of its noise. The third
one may differ from them in released numbers only (arXiv 2602.17454). Any other difference is looked
at again with other random numbers, because noise may decide a form or a path, too: it is certain if
one table shows a fact nearly always that the other one never shows.
"""

import copy
import dataclasses
import json
import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count
from typing import TypeVar

import numpy as np

from discreet import _checks, _html
from discreet._exact import Number
from discreet.audit._bits import RecordingBits, SeededBits
from discreet.audit._black_box import Progress
from discreet.audit._neighbours import checked_pairs, pair_in_words
from discreet.audit._output_facts import OutputFacts, values_of
from discreet.audit._replay import Difference, Run
from discreet.audit._watch import error_text, watch_run
from discreet.errors import InvalidArgument
from discreet.mechanisms import Door

T = TypeVar("T")

SEEDS = 100  # with which a difference is looked at again
MOST_SEEDS = 4 * SEEDS  # if the fact varies on a table, and may yet be certain
_FEWEST = 8  # seeds that leave a difference to noise
_MOST_TEXTS = 8  # of a fact on one table that are looked for; noise alone makes more
_LEAST_SHARE = 0.6
_ROUNDING = 1e-9
_LONGEST = 300
_VALUES = "bounded", "computed", "released"  # events whose facts are objects or private values
_ENDING, _ORDER = "the ending", "the order of events"
_DRAWS = "the draws", "the words"
ONLY_TIME = "Nothing else differs for certain: the running time alone may show how many were drawn."
_DATA = tuple, list, dict, set, bytearray, np.ndarray

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
    """Facts of one run: of its path and the form of its output, and the values in both."""

    facts: FactTable
    values: FactTable
    numbers: list[float]

    @property
    def has_drawn(self) -> bool:
        """Whether any random source gave words."""
        return any(
            name.startswith(_DRAWS) and text.split()[0] != "0"
            for (name, _), text in self.facts.items()
        )


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
    are run with the same random numbers; each run gets a copy of a table of Python, NumPy or
    pandas. Compared are the number of random numbers drawn, seeds, charges, files and connections
    opened, the content of files written, lines of the log, printed text, warnings, errors, changes
    of the environment, the values of the output, and its form: types, lengths, keys and their
    order, elements of sets, columns, indexes, and which numbers are NaN or infinite. Each number in
    a text is a value. Values beyond the first 100 000 are compared as one. With ``sensitivity``,
    the first 64 numbers of the output may move by this much, in sum: right for noise that is added.

    A difference is looked at again with 100 other seeds for each table. It is raised if it is
    certain: one table shows a fact nearly always that the other one never shows. For each fact of a
    right mechanism of pure epsilon 2 the probability of this is below 1e-9, if the fact has one
    text or equally likely ones. A right mechanism of epsilon 4 may be accused. Of the other
    differences, values are left to noise, and those in form or path are returned in words:
    noise has a part in them, and an audit of the outputs by `black_box` tells whether it is enough.

    Not compared: running time, memory, what is sent over a connection or into a database, and what
    other threads or processes do. Raises `InvalidArgument` if two runs on the same table differ in
    their draws or numbers, or if answers are stored: then the function has state, or noise from a
    source that can't be set, such as a generator made before the call. Other facts that differ
    between two runs on the same table, such as the names of temporary files, are left out. Outputs
    of unknown types are refused.

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
    has_drawn = first.has_drawn
    if _without_repeat(first, again):  # the first run may load modules, open files and warn
        first, again = again, _outcome(pipeline, table, seed)
    if differing := _without_repeat(first, again):
        raise InvalidArgument(
            "two runs on the same table differ: the pipeline has state, or it shows the time, or "
            "some of its noise can't be set: that of other threads and processes, of generators "
            "made before the call, and of classes and functions imported by name, such as Random "
            "or urandom. Draw in the function, from random, numpy.random, secrets or "
            f"random.SystemRandom(); leave times out. {differing}"
        )
    other = _outcome(pipeline, neighbour, seed)
    may_store = (has_drawn or other.has_drawn) and not again.has_drawn
    if may_store and not _outcome(pipeline, neighbour, seed).has_drawn:
        raise InvalidArgument(
            "the pipeline drew random numbers in its first run on a table, and none later: "
            "its answers are stored. Empty the store in the function, or audit by black_box"
        )
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
    error, described, given = None, OutputFacts(), _copy_of(table)
    with (
        warnings.catch_warnings(record=True) as warned,
        watch_run(seed, partial(Door, run, bits, run)) as seen,
    ):
        warnings.simplefilter("always")
        try:
            output = pipeline(given)
        except (Exception, SystemExit) as raised:  # noqa: BLE001  # part of what the analyst sees
            error = error_text(raised)
        else:
            described = OutputFacts.of(output)  # here, because an iterator may draw
    path = [("a warning", f"{one.category.__name__}: {one.message}") for one in warned]
    path += [("the place of a warning", f"{one.filename}:{one.lineno}") for one in warned]
    path += [event for name, fact in run.events for event in _of_event(name, fact)]
    path += [("the words drawn by mechanisms", str(len(bits.seen))), *seen.facts]
    order = (_ORDER, ", ".join(name for name, _ in path))
    facts = [(_ENDING, error or "an answer"), *described.form, *path, order]
    # noise may be in some numbers of a text only
    shown = [(name, text) for name, text in path if not name.startswith(_DRAWS)]
    texts: list[tuple[str, str | bytes]] = [(_ENDING, error or ""), *shown, *seen.written()]
    values = [value for name, text in texts for value in values_of(name, text)]
    return _WatchedRun(_by_place(facts), _by_place(described.values + values), described.numbers)


def _copy_of(table: T) -> T:
    """A copy of plain data: a pipeline may empty its table."""
    if not (isinstance(table, _DATA) or hasattr(table, "to_numpy")):
        return table
    try:
        return copy.deepcopy(table)
    except Exception:  # noqa: BLE001  # of an object inside that can't be copied
        return table


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
        if fact[0] == _ENDING or fact[0].startswith(_DRAWS):
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
    facts, values = _Sides.of(one.facts, other.facts), _Sides.of(one.values, other.values)
    varied: list[NamedPlace] = []
    seeds = count(seed + 1)  # none twice, so that the runs are independent
    for turn in range(MOST_SEEDS):
        left = (*facts.values(), *values.values())
        if not left or (turn == SEEDS and all(one.is_constant for one in left)):
            break
        for place, table in enumerate(tables):
            found = _outcome(pipeline, table, next(seeds))
            for known, sides_of in ((found.facts, facts), (found.values, values)):
                for fact, sides in sides_of.items():
                    sides.texts[place].append(known.get(fact))
        varied += [fact for fact, sides in facts.items() if not sides.is_open]
        facts = {fact: sides for fact, sides in facts.items() if sides.is_open}
        values = {fact: sides for fact, sides in values.items() if sides.is_open}
    varied += [fact for fact, sides in facts.items() if not sides.is_certain]
    certain = [fact for fact, sides in facts.items() if sides.is_certain]
    without_noise = [fact for fact, sides in values.items() if sides.is_certain]
    shown = [fact for fact in certain if not fact[0].startswith((*_DRAWS, _ORDER))]
    if shown:
        return _in_words(shown[0], one, other), ()
    if without_noise:
        fact = without_noise[0]
        return _value_in_words(fact, values[fact]), ()
    if certain:
        return f"{_in_words(certain[0], one, other)}\n{ONLY_TIME}", ()
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
    def of(one: FactTable, other: FactTable) -> "dict[NamedPlace, _Sides]":
        """The sides of each fact that differs between two runs."""
        return {
            fact: _Sides(([one.get(fact)], [other.get(fact)])) for fact in _differing(one, other)
        }

    @property
    def is_constant(self) -> bool:
        """Whether the fact never varied on either table."""
        return all(len(set(texts)) == 1 for texts in self.texts)

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
            known = set(other)
            counts = Counter(text for text in one[:chosen] if text not in known)
            own = {text for text, _ in counts.most_common(_MOST_TEXTS)}
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


def _value_in_words(fact: NamedPlace, sides: _Sides) -> str:
    """A value that differs, though not by noise."""
    texts = [Counter(texts).most_common(1)[0][0] for texts in sides.texts]
    shown = [("(none)" if text is None else text)[:_LONGEST] for text in texts]
    how = "is without noise, and" if sides.is_constant else "is mostly without noise, and"
    return f"{fact[0]} {how} differs:\n  {shown[0]}\n  {shown[1]}"
