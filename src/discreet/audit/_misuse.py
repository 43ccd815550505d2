"""Common mistakes with a live object: copies, forks, pickles, threads, retries, seeds, interrupts.

Each mistake is made many times on fresh objects. If its answers are equal each time, then its noise
repeats. If there are more answers than charges, then some were not paid.
"""

import copy
import json
import os
import pickle
import random
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from types import FrameType
from typing import Any, TypeVar

import numpy as np

from discreet import _html
from discreet.audit._canonical import output_of
from discreet.errors import InvalidArgument

T = TypeVar("T")
Answers = list[int]  # the labels of outputs

_TRIALS = 20  # answers that are equal each time by chance have a third of a chance each: 3e-10
_THREADS = 8
_INTERRUPTS = 40  # lines of the call at which it is interrupted
_SEED = 20
_BYTES = 16


@dataclass(frozen=True, slots=True)
class MisuseAttempt:
    """A mistake that was tried, and the fault that it showed, or ``None``.

    ``is_refused`` says that the object raised each time.
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
    noisy answer of it. If an object gives one answer and then raises, a copy that answers again is
    a fault. ``charges`` returns how many answers were charged so far, counted in one place that
    copies share; give none for an object whose answers are paid beforehand.

    Tried are `copy.copy`, `copy.deepcopy`, `pickle`, a forked process, threads, a retry, an
    interrupt at each of some lines, and seeds of `random`, NumPy and PyTorch. An object that raises
    is safe from a mistake.

    An object whose noise never repeats is accused with probability about 1e-9, if two answers are
    equal with probability at most 1/3. Raises `InvalidArgument` if answers of fresh objects don't
    differ at all.

    >>> import random
    >>> class NoisyCounter:
    ...     def __init__(self):
    ...         self.generator = random.Random()
    ...     def answer(self):
    ...         return 5 + self.generator.gauss(0, 1)
    >>> print(misuse(NoisyCounter, NoisyCounter.answer).faults[0])
    MisuseAttempt(mistake='copy.deepcopy', fault='its noise repeats', is_refused=False)
    """
    count = charges or (lambda _: sys.maxsize)
    if _are_equal(lambda: (_answer(make(), use), _answer(make(), use))):
        raise InvalidArgument(
            "use returned equal answers of two fresh objects each time: give a larger count of "
            "answers, such as lambda one: [one.answer() for _ in range(20)]"
        )
    tried = [_copied(name, make, use, count) for name in _COPIES]
    tried.append(_retried(make, use, count))
    tried += [_forked(make, use), _threaded(make, use, count), _interrupted(make, use, count)]
    tried.append(_seeded(make, use))
    return MisuseResult(tuple(tried))


_COPIES: dict[str, Callable[[Any], Any]] = {  # Any: objects of the user's own
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),  # noqa: S301  # made here
}


def _answer(one: T, use: Callable[[T], object]) -> int:
    return output_of(use(one)).label


def _are_equal(pair: Callable[[], tuple[object, object]]) -> bool:
    return all(one == other for one, other in (pair() for _ in range(_TRIALS)))


def _copied(
    mistake: str, make: Callable[[], T], use: Callable[[T], object], charges: Callable[[T], int]
) -> MisuseAttempt:
    """Use an object, then its copy."""
    refused, equal, unpaid, again = 0, 0, 0, 0
    for _ in range(_TRIALS):
        one = make()
        before = charges(one)
        try:
            second = _COPIES[mistake](one)
            answers = [_answer(one, use)]
            again += _is_over(one, use)
            paid = charges(one)
            answers.append(_answer(second, use))
        except Exception:  # noqa: BLE001  # a refusal, of any type
            refused += 1
            continue
        unpaid += charges(one) == paid < sys.maxsize or charges(one) == before < sys.maxsize
        equal += answers[0] == answers[1]
    if again > refused:
        return MisuseAttempt(mistake, "the copy answers again", is_refused=False)
    return _attempt(mistake, refused, equal, unpaid)


def _is_over(one: T, use: Callable[[T], object]) -> bool:
    """Whether the object gives no second answer."""
    try:
        use(one)
    except Exception:  # noqa: BLE001  # a refusal, of any type
        return True
    return False


def _retried(
    make: Callable[[], T], use: Callable[[T], object], charges: Callable[[T], int]
) -> MisuseAttempt:
    """Use an object twice. A stored answer, which it gives again, is paid once."""
    refused, unpaid = 0, 0
    for _ in range(_TRIALS):
        one = make()
        try:
            first, paid = _answer(one, use), charges(one)
            unpaid += _answer(one, use) != first and charges(one) == paid < sys.maxsize
        except Exception:  # noqa: BLE001  # a refusal, of any type
            refused += 1
    return _attempt("a retry", refused, 0, unpaid)


def _attempt(mistake: str, refused: int, equal: int, unpaid: int) -> MisuseAttempt:
    fault = "an answer is not paid" if unpaid else None
    fault = fault or ("its noise repeats" if equal == _TRIALS else None)
    return MisuseAttempt(mistake, fault, refused == _TRIALS)


def _forked(make: Callable[[], T], use: Callable[[T], object]) -> MisuseAttempt:
    """Use an object in a child and in its parent."""
    refused, equal, again = 0, 0, 0
    for _ in range(_TRIALS):
        one = make()
        found = _of_child(one, use)
        refused += found is None
        try:
            equal += found == _answer(one, use)
        except Exception:  # noqa: BLE001  # a refusal, of any type
            refused += found is not None
            continue
        again += found is not None and _is_over(one, use)
    if again:
        return MisuseAttempt("a fork", "the child answers again", is_refused=False)
    return _attempt("a fork", refused, equal, 0)


def _of_child(one: T, use: Callable[[T], object]) -> int | None:
    """The answer in a forked child; ``None`` if it was refused."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:  # the child ends here, whatever happens
        try:
            os.write(writable, _answer(one, use).to_bytes(_BYTES, "little", signed=True))
        finally:
            os._exit(0)
    os.close(writable)
    with os.fdopen(readable, "rb") as stream:
        found = stream.read()
    os.waitpid(child, 0)
    return int.from_bytes(found, "little", signed=True) if found else None


def _threaded(
    make: Callable[[], T], use: Callable[[T], object], charges: Callable[[T], int]
) -> MisuseAttempt:
    """Use an object in threads that start together."""
    refused, equal, unpaid = 0, 0, 0
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(_TRIALS):
            one, start = make(), threading.Barrier(_THREADS)
            answers: Answers = []
            before = charges(one)
            target = _in_thread(one, use, answers, start)
            threads = [threading.Thread(target=target) for _ in range(_THREADS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            paid = charges(one) - before if before < sys.maxsize else _THREADS
            unpaid += paid < len(answers)
            refused += not answers
            equal += len(answers) > 1 and len(set(answers)) == 1
    finally:
        sys.setswitchinterval(interval)
    return _attempt("threads", refused, equal, unpaid)


def _in_thread(
    one: T, use: Callable[[T], object], answers: Answers, start: threading.Barrier
) -> Callable[[], None]:
    def run() -> None:
        start.wait()
        try:
            answers.append(_answer(one, use))
        except Exception:  # noqa: BLE001  # a refusal, of any type
            return

    return run


def _interrupted(
    make: Callable[[], T], use: Callable[[T], object], charges: Callable[[T], int]
) -> MisuseAttempt:
    """Interrupt a call at one of its lines, then call again: the second answer must be paid.

    Each line has a thread of its own: an exception that a trace function raises within an
    ``except`` can stay the context of all later ones of its thread.
    """
    refused = 0
    for line in range(_INTERRUPTS):
        with ThreadPoolExecutor(1) as pool:
            is_paid = pool.submit(_is_paid_after_interrupt, line, make, use, charges).result()
        if is_paid is False:
            return MisuseAttempt("an interrupt", "an answer is not paid", is_refused=False)
        refused += is_paid is None
    return MisuseAttempt("an interrupt", None, refused == _INTERRUPTS)


def _is_paid_after_interrupt(
    line: int, make: Callable[[], T], use: Callable[[T], object], charges: Callable[[T], int]
) -> bool | None:
    """Whether the answer after an interrupt at this line is paid; ``None`` if it is refused."""
    one = make()
    sys.settrace(_LineInterrupt(line))
    try:
        use(one)
    except BaseException:  # noqa: BLE001  # the interrupt, or what became of it
        sys.settrace(None)
    finally:
        sys.settrace(None)
    before = charges(one)
    try:
        _answer(one, use)
    except Exception:  # noqa: BLE001  # a refusal, of any type
        return None
    return not charges(one) <= before < sys.maxsize


class _LineInterrupt:
    """A trace function that raises ``KeyboardInterrupt`` at a line of the calls inside ``use``."""

    def __init__(self, line: int) -> None:
        self._left = line

    def __call__(self, _frame: FrameType, event: str, _: object) -> "_LineInterrupt":
        if event == "line":
            self._left -= 1
            if self._left < 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self


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
    return _answer(make(), use)
