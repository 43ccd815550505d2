"""Where randomness comes from: a stream cipher keyed by the operating system.

Nothing can seed it. Each thread has a stream of its own, and a forked process makes new ones.
"""

import os
import threading
from collections.abc import Iterator
from typing import Protocol

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

_BLOCK = 1 << 13


class Bits(Protocol):
    """A source of independent, uniform words of ``width`` bits each."""

    @property
    def width(self) -> int:
        """The number of bits in a word."""
        ...

    def word(self) -> int:
        """The next word, from 0 up to 2^width - 1."""
        ...


class SecureBits:
    """AES-256 in counter mode, keyed from the operating system's generator; 64-bit words.

    The stream lives in this process and thread only: it is never written anywhere, a copy or a
    pickle of this object carries none of it, and a fork starts another.
    """

    __slots__ = ("_streams",)

    def __init__(self) -> None:
        """Start without a stream; each thread makes its own when it first draws."""
        self._streams = _Streams()

    @property
    def width(self) -> int:
        """64."""
        return 64

    def word(self) -> int:
        """The next 64 bits of this thread's stream."""
        return self._streams.current().word()

    def __reduce__(self) -> tuple[type["SecureBits"], tuple[()]]:
        """Copies and pickles are fresh sources."""
        return SecureBits, ()


class _Process:
    """Which process this is. Its id alone doesn't tell: ids come back, and in a new namespace a
    child may have its parent's. Each fork therefore counts one more."""

    forks = 0

    @classmethod
    def identity(cls) -> tuple[int, int]:
        return os.getpid(), cls.forks

    @classmethod
    def count_fork(cls) -> None:
        cls.forks += 1


os.register_at_fork(after_in_child=_Process.count_fork)


class _Stream:
    """One cipher stream, read word by word. Taking a word is one step of the interpreter, so
    that a signal's handler that draws in between never sees the same word."""

    __slots__ = ("_encryptor", "_words", "process")

    def __init__(self) -> None:
        self.process = _Process.identity()
        cipher = Cipher(algorithms.AES256(os.urandom(32)), modes.CTR(os.urandom(16)))
        self._encryptor = cipher.encryptor()
        self._words: Iterator[int] = iter(())

    def word(self) -> int:
        while (word := next(self._words, None)) is None:
            block = self._encryptor.update(bytes(_BLOCK))
            self._words = iter(memoryview(block).cast("Q"))
        return word


class _Streams(threading.local):
    """This thread's stream, made anew where the process is not the one that made it."""

    stream: _Stream | None = None

    def current(self) -> _Stream:
        stream = self.stream
        if stream is None or stream.process != _Process.identity():
            stream = self.stream = _Stream()
        return stream
