"""The source of randomness: a stream cipher that the operating system keys.

Nothing can seed it. Each thread has its own stream, and a forked process makes new ones.
"""

import atexit
import os
import threading
import weakref
from collections.abc import Iterator
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from discreet._ownership import Owned, process

Words = npt.NDArray[np.uint64]
"""An array of random 64-bit words."""

_BLOCK = 1 << 10  # words made at once for single draws
_ZEROS = memoryview(bytes(1 << 20))
_LONGEST = 1 << 32  # words of one stream: half of what one nonce may be used for


class Bits(Protocol):
    """A source of independent, uniform words of ``width`` bits each, 1 to 64."""

    @property
    def width(self) -> int:
        """The number of bits in a word."""

    def word(self) -> int:
        """The next word, from 0 up to 2^width - 1."""

    def words(self, count: int) -> Words:
        """The next words, as an array."""


class SecureBits:
    """AES-256 in counter mode, keyed from the operating system's generator; 64-bit words.

    The counter mode is part of GCM, whose tag is not used. It is twice as fast as plain CTR.
    The stream stays in this process and thread. It is never written to disk. A copy or a pickle of
    this object holds no part of it, and a forked process starts another one. When the process ends
    or forks, words that were made and not yet drawn are wiped, as far as Python can do that.
    """

    __slots__ = ("_streams",)

    def __init__(self) -> None:
        """Start without a stream; each thread makes its own when it first draws."""
        self._streams = _Streams()

    @property
    def width(self) -> int:
        """The number of bits in a word: 64."""
        return 64

    def word(self) -> int:
        """The next 64 bits of this thread's stream."""
        return self._streams.current().word()

    def words(self, count: int) -> Words:
        """The next words of this thread's stream; many at once take 0.7 nanoseconds each."""
        return self._streams.current().words(count)

    def fill(self, words: Words) -> None:
        """Overwrite a contiguous array with the next words: new memory costs more than words."""
        self._streams.current().fill(words)

    def __reduce__(self) -> tuple[type["SecureBits"], tuple[()]]:
        """Copies and pickles are fresh sources."""
        return SecureBits, ()


class _Stream(Owned):
    """One cipher stream, which is never copied.

    Taking a word is one step of the interpreter, and each block is new memory. So a signal handler
    that draws between two steps never gets the same word.
    """

    __slots__ = ("__weakref__", "_block", "_encryptor", "_left", "made", "process", "thread")

    described: ClassVar[str] = "a stream of random bits"

    def __init__(self) -> None:
        self._block: Words = np.empty(0, np.uint64)
        self._left: Iterator[int] = iter(())
        self.made = 0  # words
        self.thread = threading.get_ident()
        self.process = _Process.identity()
        with _Process.making:
            cipher = Cipher(algorithms.AES256(os.urandom(32)), modes.GCM(os.urandom(12)))
            self._encryptor = cipher.encryptor()
            _Process.streams.add(self)

    def word(self) -> int:
        while (word := next(self._left, None)) is None:
            block = self.words(_BLOCK)
            self._left = iter(block.data)
            self._block = block
        return word

    def words(self, count: int) -> Words:
        made = np.empty(count, np.uint64)
        self.fill(made)
        return made

    def fill(self, words: Words) -> None:
        self.made += words.size
        left = words.data.cast("B") if words.size else memoryview(b"")
        while left:
            size = min(len(left), len(_ZEROS))
            self._encryptor.update_into(_ZEROS[:size], left[:size])
            left = left[size:]

    def wipe(self) -> None:
        self._left = iter(())
        self._block.fill(0)

    def __del__(self) -> None:
        if hasattr(self, "_block"):  # otherwise `__init__` was interrupted at its start
            self.wipe()


class _Process:
    """The identity of this process, and its streams.

    A process id is not enough: ids are reused, and in a new namespace a child may have its parent's
    id. So each fork raises a counter, and `discreet._ownership` notices
    children that Python did not make.
    No fork happens while a stream is made, since the cipher's library has locks of its own.
    """

    forks = 0
    making = threading.RLock()
    streams: ClassVar["weakref.WeakSet[_Stream]"] = weakref.WeakSet()

    @classmethod
    def identity(cls) -> tuple[object, int]:
        return process(), cls.forks

    @classmethod
    def exits(cls) -> None:
        """Wipe this thread's words; other threads may still be drawing theirs."""
        with cls.making:
            for stream in tuple(cls.streams):
                if stream.thread == threading.get_ident():
                    stream.wipe()

    @classmethod
    def forked(cls) -> None:
        cls.making.release()
        cls.forks += 1
        for stream in tuple(cls.streams):
            stream.wipe()


os.register_at_fork(
    before=_Process.making.acquire,
    after_in_parent=_Process.making.release,
    after_in_child=_Process.forked,
)
atexit.register(_Process.exits)


class _Streams(threading.local):
    """This thread's stream. A new one is made in another process, and after `_LONGEST` words."""

    stream: _Stream | None = None

    def current(self) -> _Stream:
        stream = self.stream
        if stream is None or stream.made >= _LONGEST or stream.process != _Process.identity():
            stream = self.stream = _Stream()
        return stream
