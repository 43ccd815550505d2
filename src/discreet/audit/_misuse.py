"""Common mistakes with a live object: copies, forks, pickles, threads, retries, seeds, interrupts.

Each mistake is made many times on fresh objects. If its answers are equal each time, then its noise
repeats. If there are more answers than charges, then some were not paid. If a copy answers after
its original has refused, then the right to an answer was copied.

A stored answer, which an object gives again to the same question, is paid once.
"""

import copy
import dis
import json
import os
import pickle
import random
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from types import FrameType
from typing import Any, Generic, TypeVar

import numpy as np

from discreet import _html
from discreet.audit._canonical import output_of
from discreet.errors import InvalidArgument

T = TypeVar("T")
R = TypeVar("R")
Answers = list[int]  # the labels of outputs

_TRIALS = 20  # answers that are equal each time by chance have a third of a chance each: 3e-10
_THREADS = 8
_MOST_USES = 20  # of one object, to find out how many answers it gives
_REFUSALS_IN_A_ROW = 4  # after which an object is taken to refuse for good
_STUDIED = 3  # objects whose limits are compared
_MANY_EQUAL = 8  # of the trials, if 20 answers of one object all differ: by chance 4e-10
_INTERRUPTS = 40  # lines of the call at which it is interrupted
_MOST_WAITS = 4  # interrupts after which an object waits for ever
_PATIENCE = 2.0  # seconds after which a call is taken to wait for ever, and 50 times a usual call
_SEED = 20
_BYTES = 16
_LOAD_CONST = dis.opmap["LOAD_CONST"]
_REFUSALS = (Exception, SystemExit)  # of any type


@dataclass(frozen=True, slots=True)
class MisuseAttempt:
    """A mistake that was tried, and the fault that it showed, or ``None``.

    ``is_refused`` says that the object raised each time, or never ended.
    """

    mistake: str
    fault: str | None
    is_refused: bool

    @property
    def ending(self) -> str:
        """The fault in words, or that there is none."""
        return self.fault or ("refused" if self.is_refused else "no fault")


@dataclass(frozen=True, slots=True, repr=False)
class MisuseResult:
    """All mistakes that were tried on an object."""

    attempts: tuple[MisuseAttempt, ...]

    _repr_html_ = _html.shown

    @property
    def faults(self) -> tuple[MisuseAttempt, ...]:
        """The mistakes that showed a fault."""
        return tuple(one for one in self.attempts if one.fault)

    def __repr__(self) -> str:
        return "\n".join(f"{one.mistake}: {one.ending}" for one in self.attempts)

    def to_json(self) -> str:
        """All attempts as JSON; an attempt without a fault has null."""
        return json.dumps({"attempts": [asdict(one) for one in self.attempts]}, indent=2)


def misuse(
    make: Callable[[], T], use: Callable[[T], object], *, charges: Callable[[T], int] | None = None
) -> MisuseResult:
    """Make common mistakes with objects, and find repeated noise and answers that nobody paid for.

    ``make`` returns a fresh object, such as a session or a mechanism with state, and ``use`` one
    noisy answer of it. If objects refuse for good after at most 20 answers, a copy that answers
    again is a fault, and so are more answers to threads or after an interrupt. ``charges`` returns
    how many answers were charged so far, counted in one place that copies share; give none for an
    object whose answers are paid beforehand.

    Tried are `copy.copy`, `copy.deepcopy`, `pickle`, a forked process, threads, a retry, seeds of
    `random`, NumPy and PyTorch, and an interrupt at each of some lines. An object that raises is
    safe from a mistake, and so is one that then waits for ever.

    An object whose noise never repeats is accused with probability about 1e-9, if two answers are
    equal with probability at most 1/3. Noise that only some threads share is not seen. Raises
    `InvalidArgument` if the answers don't differ at all.

    >>> import random
    >>> class NoisyCounter:
    ...     def __init__(self):
    ...         self.generator = random.Random()
    ...     def answer(self):
    ...         return 5 + self.generator.gauss(0, 1)
    >>> print(misuse(NoisyCounter, NoisyCounter.answer).faults[0])
    MisuseAttempt(mistake='copy.deepcopy', fault='its noise repeats', is_refused=False)
    """
    is_repeated = _are_equal(lambda: (_first(make, use), _first(make, use)))
    subject, is_constant = _studied(make, use, charges)
    if is_repeated and is_constant:
        raise InvalidArgument(
            "use returned equal answers of two fresh objects each time: give a larger count of "
            "answers, such as lambda one: [one.answer() for _ in range(20)]. If these are equal, "
            "too, then the objects have no noise, or noise that repeats"
        )
    tried = [_copied(name, subject) for name in _COPIES]
    fault = "its noise repeats" if is_repeated else None
    tried += [MisuseAttempt("a second object", fault, is_refused=False)]
    tried += [_retried(subject), _forked(subject), _threaded(subject), _seeded(make, use)]
    # last, since an interrupt may leave a lock behind that all objects share
    return MisuseResult((*tried, _interrupted(subject)))


_COPIES: dict[str, Callable[[Any], Any]] = {  # Any: objects of the user's own
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),  # noqa: S301  # made here
}


@dataclass(frozen=True, slots=True)
class _Subject(Generic[T]):
    """The functions of an object, and facts about it without any mistake.

    It gives ``limit`` answers and then raises, or has none. If it ``is_storing``, it gives one
    answer again and again; if it ``is_distinct``, 20 answers all differ. A call that takes longer
    than ``patience`` seconds never ends.
    """

    make: Callable[[], T]
    use: Callable[[T], object]
    charges: Callable[[T], int] | None
    limit: int | None
    is_storing: bool
    is_distinct: bool
    patience: float

    def answer(self, one: T) -> int:
        """The label of its next answer."""
        return _answer(one, self.use)

    def charge_count(self, one: T) -> int:
        """The number of charges so far; 0 if nobody counts them."""
        return 0 if self.charges is None else self.charges(one)

    def is_unpaid(self, answers: Answers, paid: int) -> bool:
        """Whether there are more answers than charges. Equal answers of a store are one."""
        count = len(set(answers)) if self.is_storing else len(answers)
        return self.charges is not None and paid < count

    def is_exhausted(self, one: T) -> bool:
        """Use up all answers of an object that has a limit, and say whether it then raises."""
        if self.limit is None:
            return False
        return len(_answers(one, self.use, self.limit + 1)) <= self.limit


def _studied(
    make: Callable[[], T], use: Callable[[T], object], charges: Callable[[T], int] | None
) -> tuple[_Subject[T], bool]:
    """An object's facts, and whether it gives the same answer each time."""
    several = [_events(make, use) for _ in range(_STUDIED)]
    answers = [one for one in several[0].events if one is not None]
    patience = _PATIENCE + 50 * max(each.usual for each in several)
    limits = {_limit(each.events) for each in several}
    is_constant, is_distinct = len(set(answers)) == 1, len(set(answers)) == _MOST_USES
    is_storing = is_constant and len(answers) > 1
    limit = limits.pop() if len(limits) == 1 else None  # noise may decide when it refuses
    subject = _Subject(make, use, charges, limit, is_storing, is_distinct, patience)
    return subject, is_constant


@dataclass(frozen=True, slots=True)
class _Attempted:
    """Answers of an object, None for each time that it refuses or waits, and the usual seconds."""

    events: list[int | None]
    usual: float


def _events(make: Callable[[], T], use: Callable[[T], object]) -> _Attempted:
    """Use a fresh object until it refuses for good, or waits for ever."""
    found: list[int | None] = []
    start = last = time.monotonic()

    def ask() -> None:
        nonlocal last
        one, refusals = make(), [None] * _REFUSALS_IN_A_ROW
        while len(found) < _MOST_USES and found[-_REFUSALS_IN_A_ROW:] != refusals:
            try:
                found.append(_answer(one, use))
            except _REFUSALS:
                found.append(None)
            last = time.monotonic()

    thread = _started(ask)
    while thread.is_alive():
        seen = len(found)
        usual = (last - start) / (seen or 1)
        thread.join(_PATIENCE + 50 * usual)
        if thread.is_alive() and seen and len(found) == seen:
            return _Attempted([*found, None], usual)
    return _Attempted(found, (last - start) / (len(found) or 1))


def _limit(events: list[int | None]) -> int | None:
    """After how many answers an object refuses for good; None if it doesn't."""
    answers = sum(event is not None for event in events)
    return answers if answers < len(events) and None not in events[:answers] else None


def _answers(one: T, use: Callable[[T], object], most: int) -> Answers:
    """Answers of an object until it raises."""
    found: Answers = []
    for _ in range(most):
        try:
            found.append(_answer(one, use))
        except _REFUSALS:
            break
    return found


def _answer(one: T, use: Callable[[T], object]) -> int:
    return output_of(use(one)).label


def _first(make: Callable[[], T], use: Callable[[T], object]) -> int:
    """The first answer of a fresh object; of another one if noise lets it refuse."""
    for _ in range(_TRIALS - 1):
        with suppress(*_REFUSALS):
            return _answer(make(), use)
    return _answer(make(), use)


def _in_time(act: Callable[[], R], patience: float) -> R:
    """The result of a function, which runs in a thread of its own.

    Raises ``TimeoutError`` if it waits for ever.
    """
    found: list[R] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(act())
        except BaseException as error:  # noqa: BLE001  # the caller gets it
            failed.append(error)

    if not _has_ended(_started(run), patience):
        raise TimeoutError
    if failed:
        raise failed[0]
    return found[0]


def _are_equal(pair: Callable[[], tuple[object, object]]) -> bool:
    return all(one == other for one, other in (pair() for _ in range(_TRIALS)))


def _copied(mistake: str, subject: _Subject[T]) -> MisuseAttempt:
    """Use an object, then its copy."""
    refused, equal, unpaid, again = 0, 0, 0, 0
    for _ in range(_TRIALS):
        try:
            one = _in_time(partial(_copy_once, mistake, subject), subject.patience)
        except TimeoutError:
            return MisuseAttempt(mistake, None, is_refused=True)
        except _REFUSALS:
            refused += 1
            continue
        equal, unpaid, again = equal + one.is_equal, unpaid + one.is_unpaid, again + one.is_again
    if again > refused:
        return MisuseAttempt(mistake, "the copy answers again", is_refused=False)
    return _attempt(subject, mistake, refused=refused, equal=equal, unpaid=unpaid)


@dataclass(frozen=True, slots=True)
class _CopyTrial:
    """Whether a copy's answer equals the original's, is not paid, or comes after the last one."""

    is_equal: bool
    is_unpaid: bool
    is_again: bool


def _copy_once(mistake: str, subject: _Subject[T]) -> _CopyTrial:
    one = subject.make()
    before = subject.charge_count(one)
    second = _COPIES[mistake](one)
    answers = [subject.answer(one)]
    # a charge that the copy sees: then its equal answer comes from a store that both share
    is_shared = second is one or (subject.is_storing and subject.charge_count(second) > before)
    is_over = subject.is_exhausted(one)
    answers.append(subject.answer(second))
    is_unpaid = not is_over and subject.is_unpaid(answers, subject.charge_count(one) - before)
    return _CopyTrial(answers[0] == answers[1] and not is_shared, is_unpaid, is_over)


def _retried(subject: _Subject[T]) -> MisuseAttempt:
    """Use an object twice."""
    refused, unpaid = 0, 0
    for _ in range(_TRIALS):
        try:
            unpaid += _in_time(partial(_retry_once, subject), subject.patience)
        except TimeoutError:
            return MisuseAttempt("a retry", None, is_refused=True)
        except _REFUSALS:
            refused += 1
    return _attempt(subject, "a retry", refused=refused, unpaid=unpaid)


def _retry_once(subject: _Subject[T]) -> bool:
    """Whether a second answer is new and not paid."""
    one = subject.make()
    first, paid = subject.answer(one), subject.charge_count(one)
    is_new = subject.answer(one) != first
    return subject.charges is not None and is_new and subject.charge_count(one) == paid


def _attempt(
    subject: _Subject[T], mistake: str, *, refused: int, equal: int = 0, unpaid: int
) -> MisuseAttempt:
    fault = "an answer is not paid" if unpaid else None
    repeats = equal >= (_MANY_EQUAL if subject.is_distinct else _TRIALS)
    fault = fault or ("its noise repeats" if repeats else None)
    return MisuseAttempt(mistake, fault, refused == _TRIALS)


def _forked(subject: _Subject[T]) -> MisuseAttempt:
    """Use an object in a child and in its parent."""
    refused, equal, unpaid = 0, 0, 0
    for _ in range(_TRIALS):
        one = subject.make()
        before = subject.charge_count(one)
        try:
            found, paid = _of_child(one, subject)
        except TimeoutError:
            return MisuseAttempt("a fork", None, is_refused=True)
        is_shared = subject.is_storing and subject.charge_count(one) > before  # as of a copy
        unpaid += found is not None and subject.is_unpaid([found], paid)
        refused += found is None
        try:
            mine = _in_time(partial(subject.answer, one), subject.patience)
        except _REFUSALS:
            refused += found is not None
            continue
        if found is not None and _is_over(one, subject):
            return MisuseAttempt("a fork", "the child answers again", is_refused=False)
        equal += found == mine and not is_shared
    return _attempt(subject, "a fork", refused=refused, equal=equal, unpaid=unpaid)


def _is_over(one: T, subject: _Subject[T]) -> bool:
    """Whether an object gives no more answers, once its own are used up."""
    try:
        return _in_time(partial(subject.is_exhausted, one), subject.patience)
    except TimeoutError:
        return True


def _of_child(one: T, subject: _Subject[T]) -> tuple[int | None, int]:
    """The answer in a forked child, ``None`` if it was refused, and the child's charges for it.

    Raises ``TimeoutError`` for a child that waits, such as for a lock that a thread of its parent
    holds.
    """
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:  # the child ends here, whatever happens
        try:
            before = subject.charge_count(one)
            answer = subject.answer(one)
            for number in (answer, subject.charge_count(one) - before):
                os.write(writable, number.to_bytes(_BYTES, "little", signed=True))
        finally:
            os._exit(0)
    os.close(writable)
    with os.fdopen(readable, "rb") as stream:
        has_ended = bool(select.select([stream], [], [], subject.patience)[0])
        if not has_ended:
            os.kill(child, signal.SIGKILL)
        found = stream.read()
    os.waitpid(child, 0)
    if not has_ended:
        raise TimeoutError
    parts = found[:_BYTES], found[_BYTES:]
    if not all(parts):
        return None, 0
    answer, paid = (int.from_bytes(part, "little", signed=True) for part in parts)
    return answer, paid


def _threaded(subject: _Subject[T]) -> MisuseAttempt:
    """Use an object in threads that start together."""
    refused, equal, unpaid, beyond = 0, 0, 0, 0
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    each = 1 if subject.limit is None else subject.limit // _THREADS + 2
    try:
        for _ in range(_TRIALS):
            one, start = subject.make(), threading.Barrier(_THREADS)
            answers: Answers = []
            before = subject.charge_count(one)
            run = partial(_ask_together, one, subject, answers, start, count=each)
            threads = [_started(run) for _ in range(_THREADS)]
            if not all(_has_ended(thread, subject.patience) for thread in threads):
                return MisuseAttempt("threads", None, is_refused=True)
            unpaid += subject.is_unpaid(answers, subject.charge_count(one) - before)
            beyond += subject.limit is not None and len(answers) > subject.limit
            refused += not answers
            is_one = len(answers) > 1 and len(set(answers)) == 1
            equal += is_one and not subject.is_storing
    finally:
        sys.setswitchinterval(interval)
    if beyond:
        return MisuseAttempt("threads", "they get more answers than one does", is_refused=False)
    return _attempt(subject, "threads", refused=refused, equal=equal, unpaid=unpaid)


def _ask_together(
    one: T, subject: _Subject[T], answers: Answers, start: threading.Barrier, *, count: int
) -> None:
    """Append answers, as many as ``count``, until it refuses."""
    start.wait()
    for _ in range(count):
        try:
            answers.append(subject.answer(one))
        except _REFUSALS:
            return


def _started(act: Callable[[], None]) -> threading.Thread:
    """A running thread that does not keep the process alive, should it wait for ever."""
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    return thread


def _has_ended(thread: threading.Thread, patience: float) -> bool:
    thread.join(patience)
    return not thread.is_alive()


def _interrupted(subject: _Subject[T]) -> MisuseAttempt:
    """Interrupt a call at one of its lines, then call twice: what both answer must be paid.

    Each line has a thread of its own: an exception that a trace function raises within an
    ``except`` can stay the context of all later ones of its thread.
    """
    endings: list[bool | None] = []
    waits = 0
    for line in range(_INTERRUPTS):
        thread = _started(partial(_interrupt, line, subject, endings))
        if not _has_ended(thread, subject.patience):
            endings.append(None)
            waits += 1
        if endings[-1:] == [False]:
            return MisuseAttempt("an interrupt", "an answer is not paid", is_refused=False)
        if waits == _MOST_WAITS:
            break
    return MisuseAttempt("an interrupt", None, not any(endings))


def _interrupt(line: int, subject: _Subject[T], endings: list[bool | None]) -> None:
    """Append whether all answers after an interrupt at this line are paid; ``None`` if there are
    none.

    The interrupted call gave no answer, so that a later one may use its charge.
    """
    one = subject.make()
    before = subject.charge_count(one)
    count = 0
    sys.settrace(_LineInterrupt(line))
    try:
        subject.use(one)
        count = 1
    except BaseException:  # noqa: BLE001  # the interrupt, or its consequence
        sys.settrace(None)
    finally:
        sys.settrace(None)
    answers = _answers(one, subject.use, 2 if subject.limit is None else subject.limit + 1)
    is_beyond = subject.limit is not None and len(answers) + count > subject.limit
    is_paid = not (is_beyond or subject.is_unpaid(answers, subject.charge_count(one) - before))
    endings.append(is_paid if answers else None)


class _LineInterrupt:
    """A trace function that raises ``KeyboardInterrupt`` at a line of the calls inside ``use``."""

    def __init__(self, line: int) -> None:
        self._left = line

    def __call__(self, frame: FrameType, event: str, _: object) -> "_LineInterrupt":
        if event == "line" and not _leaves_a_with(frame):
            self._left -= 1
            if self._left < 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self


def _leaves_a_with(frame: FrameType) -> bool:
    """Whether the next step calls ``__exit__`` with three times ``None``.

    Python handles no signal between the block and this call, so that no real interrupt comes here.
    """
    following = frame.f_code.co_code[frame.f_lasti : frame.f_lasti + 6]
    return len(following) == 6 and following[0] == _LOAD_CONST and following == following[:2] * 3


def _seeded(make: Callable[[], T], use: Callable[[T], object]) -> MisuseAttempt:
    """Seed all generators that anyone can seed, before each of two objects."""
    states = random.getstate(), np.random.get_state()
    try:
        equal = _are_equal(lambda: (_seeded_answer(make, use), _seeded_answer(make, use)))
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
    return MisuseAttempt("a seed", "its noise follows it" if equal else None, is_refused=False)


def _seeded_answer(make: Callable[[], T], use: Callable[[T], object]) -> int:
    random.seed(_SEED)
    np.random.seed(_SEED)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(_SEED)
    return _first(make, use)
