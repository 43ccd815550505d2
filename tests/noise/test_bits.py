"""Secure bits: uniform, never repeated, and beyond anybody's reach."""

import copy
import inspect
import os
import pickle
import subprocess
import sys
import threading
from types import FrameType
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from discreet.noise import SecureBits

Traced = Any  # the next trace function, or None


def words(bits: SecureBits, count: int = 50) -> list[int]:
    return [bits.word() for _ in range(count)]


def assert_all_new(*streams: list[int]) -> None:
    """No word comes twice: among some thousand of 64 bits, chance alone never does that."""
    every = [word for stream in streams for word in stream]
    assert len(set(every)) == len(every)
    assert all(0 <= word < 1 << 64 for word in every)


def test_no_source_repeats_another_or_itself() -> None:
    assert_all_new(*(words(SecureBits(), 3000) for _ in range(5)))


def test_copies_and_pickles_are_fresh() -> None:
    bits = SecureBits()
    before = words(bits)
    copies = [copy.copy(bits), copy.deepcopy(bits), pickle.loads(pickle.dumps(bits))]
    shared = copy.deepcopy([bits, bits])
    assert_all_new(before, words(bits), *(words(other) for other in (*copies, shared[0])))
    assert {type(other) for other in copies} == {SecureBits}


def test_a_pickle_carries_nothing() -> None:
    used = SecureBits()
    words(used)
    assert pickle.dumps(used) == pickle.dumps(SecureBits())


def test_each_thread_has_its_own_stream() -> None:
    bits, found, streams = SecureBits(), [words(SecureBits())], []
    start = threading.Barrier(8)

    def draw() -> None:
        start.wait()
        found.append(words(bits, 3000))
        streams.append(bits._streams.current())

    threads = [threading.Thread(target=draw) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_all_new(words(bits), *found)
    assert len({id(stream) for stream in [*streams, bits._streams.current()]}) == 9


def test_the_words_are_a_ciphers_under_a_key_of_the_operating_systems(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def zeros(size: int) -> bytes:
        asked.append(size)
        return bytes(size)

    monkeypatch.setattr(os, "urandom", zeros)
    found = words(SecureBits(), 2)
    assert sorted(asked) == [16, 32]
    # AES-256 of a block of zeros under a key of zeros (NIST's AESAVS, appendix D.3)
    block = bytes.fromhex("dc95c078a2408989ad48a21492842087")
    assert b"".join(word.to_bytes(8, sys.byteorder) for word in found) == block


def test_a_draw_in_the_middle_of_a_draw_takes_other_words() -> None:
    """A signal's handler may run between any two steps of the interpreter: here, at each."""
    bits = SecureBits()
    inner: list[int] = []

    def step(frame: FrameType, event: str, _: object) -> Traced:
        if "noise/bits.py" not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            sys.settrace(None)
            inner.append(bits.word())
            sys.settrace(step)
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        outer = words(bits, 20)
    finally:
        sys.settrace(before)
    assert len(inner) > 500
    assert_all_new(inner, outer)


FORKS = """
import os, sys
from discreet.noise import SecureBits

bits = SecureBits()
{before}
def tell():
    sys.stdout.write("".join(f"{{bits.word()}}\\n" for _ in range(20)))
    sys.stdout.flush()

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
    "behind Python's back": "from discreet.noise import bits as b; b._Process.forks = float('inf')",
}


@pytest.mark.parametrize("case", BEFORE)
def test_forks_never_repeat_a_stream(case: str) -> None:
    found = output_of(FORKS.format(before=BEFORE[case]))
    assert len(found) == 20 * (1 + 3 * 3 + 1)
    assert_all_new([int(line) for line in found])


def test_a_fork_that_python_does_not_see_starts_another(monkeypatch: pytest.MonkeyPatch) -> None:
    bits = SecureBits()
    words(bits)
    stream = bits._streams.current()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert bits._streams.current() is not stream


BUSY = """
import os, signal, threading
from fractions import Fraction
from discreet.noise import RoundedGaussianLaw, SecureBits, draw

bits, law, busy = SecureBits(), RoundedGaussianLaw(Fraction(10)), True
def work():
    while busy:
        draw(law, bits)

thread = threading.Thread(target=work)
thread.start()
hung = 0
for _ in range(5):
    if child := os.fork():
        hung += os.waitpid(child, 0)[1] != 0
    else:
        signal.alarm(2)
        draw(law, bits)
        os._exit(0)
busy = False
thread.join()
print(hung)
"""


def test_a_fork_draws_while_other_threads_of_its_parent_do() -> None:
    assert output_of(BUSY) == ["0"]


SEEDS = """
import random
import numpy
random.seed(0)
numpy.random.seed(0)
from discreet.noise import SecureBits
bits = SecureBits()
random.seed(0)
numpy.random.seed(0)
for _ in range(20):
    print(bits.word())
"""


def test_no_seed_reaches_the_bits() -> None:
    runs = [output_of(SEEDS, PYTHONHASHSEED="0") for _ in range(3)]
    assert_all_new(*([int(line) for line in run] for run in runs))


def test_nothing_can_seed_or_set_a_source() -> None:
    assert not inspect.signature(SecureBits).parameters
    with pytest.raises(TypeError):
        SecureBits(1)  # type: ignore[call-arg]
    bits = SecureBits()
    public = {name for name in dir(bits) if not name.startswith("_")}
    assert public == {"width", "word"}
    for name in ("width", "word", "seed", "key", "state"):
        with pytest.raises(AttributeError):
            setattr(bits, name, 0)


def test_no_source_shows_its_stream() -> None:
    bits = SecureBits()
    drawn = words(bits)
    shown = f"{bits!r} {bits} {pickle.dumps(bits)!r}"
    assert not any(str(word) in shown for word in drawn)


def test_words_are_uniform() -> None:
    """Each bit, and its sum with the next word's and with its neighbour bit; alarm 10^-9."""
    count = 1 << 17
    bits = SecureBits()
    drawn = np.array([bits.word() for _ in range(count)], dtype=np.uint64)
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
