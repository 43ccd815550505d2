"""Secure bits: uniform, never repeated, and beyond anybody's reach."""

import copy
import gc
import inspect
import os
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from itertools import count
from types import FrameType
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from discreet.noise import SecureBits, Words
from discreet.noise import _bits as streams

Traced = Any  # the next trace function, or None
Draw = Callable[[SecureBits, int], list[int]]

ZEROS = 1 << 17  # words: as many as the cipher is given zeros for at once


def one_by_one(bits: SecureBits, count: int = 50) -> list[int]:
    return [bits.word() for _ in range(count)]


def at_once(bits: SecureBits, count: int = 50) -> list[int]:
    words: list[int] = bits.words(count).tolist()
    return words


def in_place(bits: SecureBits, count: int = 50) -> list[int]:
    words = np.zeros(count, np.uint64)
    bits.fill(words)
    found: list[int] = words.tolist()
    return found


def by_turns(bits: SecureBits, count: int = 50) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        found += [*one_by_one(bits, 3), *at_once(bits, 2), *in_place(bits, 2)]
    return found[:count]


DRAWS = [one_by_one, at_once, in_place, by_turns]


def assert_all_new(*streams: list[int]) -> None:
    """No word comes twice: among some thousand of 64 bits, chance alone never does that."""
    every = [word for stream in streams for word in stream]
    assert len(set(every)) == len(every)
    assert all(0 <= word < 1 << 64 for word in every)


@pytest.mark.parametrize("draw", DRAWS)
def test_no_source_repeats_another_or_itself(draw: Draw) -> None:
    assert_all_new(*(draw(SecureBits(), 3000) for _ in range(5)))


def test_no_array_repeats_another_or_a_single_word() -> None:
    """Among 2^21 words chance alone repeats one with probability 2^-23."""
    bits = SecureBits()
    arrays: list[Words] = []
    for size in (0, 1, 2, ZEROS - 1, ZEROS, ZEROS + 1, 3 * ZEROS + 5):
        words = bits.words(size)
        assert (words.dtype, words.shape) == (np.dtype(np.uint64), (size,))
        arrays += [words, np.array(one_by_one(bits, 1500), dtype=np.uint64)]
    every = np.sort(np.concatenate(arrays))
    assert every[0] != every[1]
    assert np.all(every[1:] != every[:-1])


def test_an_array_is_the_callers() -> None:
    words = SecureBits().words(10)
    assert words.base is None
    assert words.flags.writeable


def test_copies_and_pickles_are_fresh() -> None:
    bits = SecureBits()
    before = by_turns(bits)
    copies = [copy.copy(bits), copy.deepcopy(bits), pickle.loads(pickle.dumps(bits))]
    shared = copy.deepcopy([bits, bits])
    assert_all_new(before, by_turns(bits), *(by_turns(other) for other in (*copies, shared[0])))
    assert {type(other) for other in copies} == {SecureBits}


def test_a_pickle_carries_nothing() -> None:
    used = SecureBits()
    by_turns(used)
    assert pickle.dumps(used) == pickle.dumps(SecureBits())


@pytest.mark.parametrize("draw", DRAWS)
def test_each_thread_has_its_own_stream(draw: Draw) -> None:
    bits, found, streams = SecureBits(), [draw(SecureBits(), 50)], []
    start = threading.Barrier(8)

    def work() -> None:
        start.wait()
        found.append(draw(bits, 3000))
        streams.append(bits._streams.current())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_all_new(draw(bits, 50), *found)
    assert len({id(stream) for stream in [*streams, bits._streams.current()]}) == 9


def test_a_stream_ends_with_its_thread() -> None:
    bits, streams = SecureBits(), []

    def work() -> None:
        bits.word()
        streams.append(weakref.ref(bits._streams.current()))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    del thread
    gc.collect()
    assert [stream() for stream in streams] == [None]


def test_the_words_are_a_ciphers_under_a_key_of_the_operating_systems(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def zeros(size: int) -> bytes:
        asked.append(size)
        return bytes(size)

    monkeypatch.setattr(os, "urandom", zeros)
    found = one_by_one(SecureBits(), 2)
    assert sorted(asked) == [12, 32]
    # a block of zeros under a key of zeros (McGrew and Viega's specification of GCM, test case 14)
    block = bytes.fromhex("cea7403d4d606b6e074ec5d3baf39d18")
    assert b"".join(word.to_bytes(8, sys.byteorder) for word in found) == block
    # the same stream, in pieces of any size
    pieces, whole = SecureBits(), SecureBits().words(2 * ZEROS + 8)
    assert whole[:2].tolist() == found
    parts = [pieces.words(size) for size in (4, 0, ZEROS + 2, ZEROS + 2)]
    assert np.array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize("draw", DRAWS)
def test_a_stream_ends_long_before_its_counter_does(
    draw: Draw, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    urandom = os.urandom

    def counted(size: int) -> bytes:
        asked.append(size)
        return urandom(size)

    monkeypatch.setattr(os, "urandom", counted)
    monkeypatch.setattr(streams, "_LONGEST", 2048)
    bits = SecureBits()
    found = [draw(bits, 100) for _ in range(10)]
    assert len(asked) == 2
    found += [draw(bits, 100) for _ in range(400)]
    assert len(asked) > 4
    assert_all_new(*found)


def interrupted_streams() -> tuple[int, list[object]]:
    """The steps of a stream's making at which an interrupt came, and what was then ignored."""
    ignored, code = list[object](), streams._Stream.__init__.__code__
    for stop in count(1):
        steps = 0

        def step(frame: FrameType, event: str, _: object, stop: int = stop) -> Traced:
            nonlocal steps
            if frame.f_code is not code:
                return None
            frame.f_trace_opcodes = True
            steps += event == "opcode"
            if steps == stop:
                sys.settrace(None)
                raise KeyboardInterrupt
            return step

        before, hook, sys.unraisablehook = sys.gettrace(), sys.unraisablehook, ignored.append
        sys.settrace(step)
        try:
            streams._Stream()
        except KeyboardInterrupt:
            continue
        finally:
            sys.settrace(before)
            sys.unraisablehook = hook
        return stop - 1, ignored
    raise AssertionError


def test_a_stream_whose_making_is_interrupted_goes_in_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At each step of it; an error in its end would be printed, and ignored."""
    # one of these steps, at which Python handles no signal, is between a lock and its release
    monkeypatch.setattr(streams._Process, "making", threading.RLock())
    steps, ignored = interrupted_streams()
    assert steps > 20
    assert not ignored


def test_a_stream_may_be_as_long_as_it_gets() -> None:
    """GCM takes 2^36 - 32 bytes under one nonce (NIST SP 800-38D, 5.2.1.1)."""
    assert 2 * 8 * streams._LONGEST <= 2**36


def test_a_draw_in_the_middle_of_a_draw_takes_other_words() -> None:
    """A signal's handler may run between any two steps of the interpreter: here, at each."""
    bits = SecureBits()
    inner: list[int] = []

    def step(frame: FrameType, event: str, _: object) -> Traced:
        if "noise/_bits.py" not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            sys.settrace(None)
            inner.extend([bits.word(), *at_once(bits, 2)])
            sys.settrace(step)
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        outer = by_turns(bits, 200)
    finally:
        sys.settrace(before)
    assert len(inner) > 5000
    assert_all_new(inner, outer)


TELL = """
import multiprocessing, os, sys, threading
from discreet.noise import SecureBits

bits = SecureBits()
def tell():
    words = [*(bits.word() for _ in range(20)), *bits.words(20).tolist()]
    sys.stdout.write("".join(f"{word}\\n" for word in words))
    sys.stdout.flush()
"""

FORKS = """
tell()
for _ in range(3):
    if child := os.fork():
        os.waitpid(child, 0)
        tell()
    else:
        if grandchild := os.fork():
            os.waitpid(grandchild, 0)
        tell()
        os._exit(0)
tell()
"""

BEFORE = {
    "as it is": "",
    "with process ids that come back": "os.getpid = lambda: 1",
    "behind Python's back": "from discreet.noise import _bits; _bits._Process.forks = 1e999",
}


@pytest.mark.parametrize("case", BEFORE)
def test_forks_never_repeat_a_stream(case: str) -> None:
    output = output_of(TELL + BEFORE[case] + FORKS)
    assert len(output) == 40 * (1 + 3 * 3 + 1)
    assert_all_new([int(line) for line in output])


WAYS = {
    "a fork of multiprocessing's": """
tell()
for _ in range(3):
    child = multiprocessing.get_context("fork").Process(target=tell)
    child.start()
    child.join()
tell()
""",
    "a fork in a thread": """
def work():
    tell()
    if child := os.fork():
        os.waitpid(child, 0)
        tell()
    else:
        tell()
        os._exit(0)

tell()
thread = threading.Thread(target=work)
thread.start()
thread.join()
tell()
""",
    "a fork while another thread has drawn": """
drawn, forked = threading.Event(), threading.Event()
def work():
    tell()
    drawn.set()
    forked.wait()
    tell()

thread = threading.Thread(target=work)
thread.start()
drawn.wait()
if child := os.fork():
    os.waitpid(child, 0)
    tell()
else:
    tell()
    os._exit(0)
forked.set()
thread.join()
tell()
""",
    "a spawn": """
tell()
for _ in range(2):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for word in pool.apply(bits.words, (40,)).tolist():
            print(word)
sys.stdout.flush()
tell()
tell()
""",
}


@pytest.mark.parametrize("way", WAYS)
def test_no_way_to_a_process_repeats_a_stream(way: str) -> None:
    output = output_of(TELL + WAYS[way])
    assert len(output) == 40 * 5
    assert_all_new([int(line) for line in output])


def test_a_fork_that_python_does_not_see_starts_another(monkeypatch: pytest.MonkeyPatch) -> None:
    bits = SecureBits()
    one_by_one(bits)
    stream = bits._streams.current()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert bits._streams.current() is not stream


BUSY = """
import os, signal, threading
from discreet.noise import RoundedGaussianLaw, SecureBits

bits, law, busy = SecureBits(), RoundedGaussianLaw(10), True
def work():
    while busy:
        law.draw(bits)
        law.draws(bits, 100)

thread = threading.Thread(target=work)
thread.start()
hung = 0
for _ in range(5):
    if child := os.fork():
        hung += os.waitpid(child, 0)[1] != 0
    else:
        signal.alarm(2)
        law.draw(bits)
        law.draws(bits, 100)
        os._exit(0)
busy = False
thread.join()
print(hung)
"""


def test_a_fork_draws_while_other_threads_of_its_parent_do() -> None:
    assert output_of(BUSY) == ["0"]


WIPED = """
import atexit, os, threading
from discreet.noise import SecureBits

bits, streams = SecureBits(), []
drawn, ended = threading.Event(), threading.Event()
def work():
    bits.word()
    streams.append(bits._streams.current())
    drawn.set()
    ended.wait()

thread = threading.Thread(target=work)
thread.start()
drawn.wait()
bits.word()
streams.append(bits._streams.current())
blocks = [stream._block for stream in streams]
def left():
    return sum(int(block.any()) for block in blocks)

print(left(), flush=True)
{then}
print(left(), flush=True)
print([word for stream in streams for word in stream._left][:2], flush=True)
print(bits.word() in (0, *blocks[1].tolist()), bits.words(2).all(), flush=True)
"""


def wiped(then: str, last: str) -> list[str]:
    return output_of(WIPED.format(then=then) + last)


def test_a_forked_child_wipes_words_not_drawn_by_its_parent() -> None:
    child = "child = os.fork()\nif child:\n    os.waitpid(child, 0)\n    print(left())\n"
    leave = "ended.set(); thread.join(); os._exit(0)"
    output = wiped(child + "    " + leave, "os._exit(0)")
    assert output == ["2", "0", "[]", "False", "True", "2"]  # the parent keeps its own


def test_the_end_of_the_process_wipes_what_was_not_drawn() -> None:
    """A thread's own when it ends, those of the last thread at the end of the process."""
    end = "ended.set(); thread.join(); streams.pop(0)\nprint(left())\natexit._run_exitfuncs()"
    assert wiped(end, "") == ["2", "1", "0", "[]", "False", "True"]


def test_a_thread_that_still_draws_is_left_alone() -> None:
    output = wiped("atexit._run_exitfuncs()\nstreams.pop(0)", "ended.set()")
    assert output == ["2", "1", "[]", "False", "True"]


SEEDS = """
import random
import numpy
from discreet.noise import SecureBits
{seed}
bits = SecureBits()
{seed}
for word in (*(bits.word() for _ in range(20)), *bits.words(20).tolist()):
    print(word)
"""


def test_no_seed_reaches_the_bits() -> None:
    """Neither Python's, NumPy's nor PyTorch's."""
    seed = "random.seed(0); numpy.random.seed(0); import torch; torch.manual_seed(0)"
    runs = [output_of(SEEDS.format(seed=seed), PYTHONHASHSEED="0") for _ in range(2)]
    assert_all_new(*([int(line) for line in run] for run in runs))


WRITES = """
import os, sys, threading
from discreet import noise
from discreet.noise import SecureBits

noise.DiscreteGaussianLaw(10).draws(SecureBits(), 10)  # whatever is imported late
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
found, is_on = [], True

def hook(event, args):
    if is_on and event == "open":
        path, mode, flags = args
        if set(mode or "") & set("wax+") or (flags or 0) & WRITING:
            found.append(path)
    elif is_on and event.startswith(("os.", "shutil.", "socket.", "sqlite3.", "subprocess.")):
        found.append(event)

sys.addaudithook(hook)
bits = SecureBits()
def draw():
    bits.word()
    bits.words(300_000)
    for law in (noise.DiscreteLaplaceLaw(3), noise.RoundedGaussianLaw(3), noise.BernoulliLaw(0.1)):
        law.draw(bits)
        law.draws(bits, 40_000)

draw()
thread = threading.Thread(target=draw)
thread.start()
thread.join()
is_on = False
print(len(found), *found)
is_on = True
open(os.devnull, "w").close()
os.close(os.open(os.devnull, os.O_WRONLY))
print(len(found))
"""


def test_drawing_writes_nothing() -> None:
    output = output_of(WRITES, PYTHONDONTWRITEBYTECODE="1")
    assert output == ["0", "2"]  # and the hook sees what it should


def test_nothing_can_seed_or_set_a_source() -> None:
    assert not inspect.signature(SecureBits).parameters
    with pytest.raises(TypeError):
        SecureBits(1)  # type: ignore[call-arg]
    bits = SecureBits()
    public = {name for name in dir(bits) if not name.startswith("_")}
    assert public == {"width", "word", "words", "fill"}
    assert bits.width == 64
    for name in ("width", "word", "words", "fill", "seed", "key", "state"):
        with pytest.raises(AttributeError):
            setattr(bits, name, 0)


def test_no_source_shows_its_stream() -> None:
    bits = SecureBits()
    drawn = by_turns(bits)
    shown = f"{bits!r} {bits} {pickle.dumps(bits)!r}"
    assert not any(str(word) in shown for word in drawn)


@pytest.mark.parametrize("draw", DRAWS)
def test_words_are_uniform(draw: Draw) -> None:
    """Each bit, and its sum with the next word's and with its neighbour bit; alarm 10^-9."""
    count = 1 << 17
    drawn = np.array(draw(SecureBits(), count), dtype=np.uint64)
    rows = np.unpackbits(drawn.view(np.uint8)).reshape(count, 64)
    counted = [  # (ones of each bit, among how many)
        (rows.sum(axis=0, dtype=np.int64), count),
        ((rows[::2] ^ rows[1::2]).sum(axis=0, dtype=np.int64), count // 2),
        ((rows ^ np.roll(rows, 1, axis=1)).sum(axis=0, dtype=np.int64), count),
    ]
    for ones, of in counted:
        tails = np.minimum(binom.cdf(ones, of, 0.5), binom.sf(ones - 1, of, 0.5))
        assert tails.min() * 2 * 64 * len(counted) >= 1e-9


def output_of(code: str, **environment: str) -> list[str]:
    command = [sys.executable, "-c", code]
    surroundings = os.environ | environment
    done = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=True)
    return done.stdout.split()
