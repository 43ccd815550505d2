"""How many words a random source gave since its seed was set, found from its state alone.

The sources are Mersenne Twisters of 624 words of 32 bits. A reference with the same seed is
advanced block by block until its block is that of the source. So runs with different seeds can be
compared by the number of their draws.
"""

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from random import Random  # as imported here: a replay replaces the class
from typing import Any

import numpy as np

_BLOCK = 624
_MOST_BLOCKS = 2000
_TORCH_BLOCK, _TORCH_PLACE, _TORCH_NORMALS = slice(3, 3 + _BLOCK), 2, slice(3 + _BLOCK, None)

# A block of words, the place in it, and whether a normal number is left
State = tuple[object, int, bool]
Read = Callable[[], State]


@dataclass(frozen=True, slots=True)
class WordStream:
    """A source with a seed: ``read`` reads its state. ``reference`` makes another source of this
    seed, by functions that read its state and that draw a block."""

    read: Read
    reference: Callable[[], tuple[Read, Callable[[], object]]]

    def words(self) -> str | None:
        """The number of words that were drawn, in words; ``None`` if the source has another seed by
        now, or gave too many words."""
        block, place, has_more = self.read()
        read, draw = self.reference()
        known, start, _ = read()
        for blocks in range(_MOST_BLOCKS):
            if known == block:
                drawn = blocks * _BLOCK + place - start
                return f"{drawn} words" + (", a normal number is left" if has_more else "")
            draw()
            known = read()[0]
        return None


def python_stream(
    seed: int | str, state: Callable[[], Any] = random.getstate
) -> WordStream:  # Any: Python's own tuple
    """The module `random`, or the generator that gives this state, with this seed."""

    def reading(state: Callable[[], Any]) -> Read:
        def read() -> State:
            _, words, normal = state()
            return words[:-1], words[-1], normal is not None

        return read

    def reference() -> tuple[Read, Callable[[], object]]:
        other = Random(seed)  # noqa: S311  # no secret
        return reading(other.getstate), lambda: other.getrandbits(32 * _BLOCK)

    return WordStream(reading(state), reference)


def numpy_stream(seed: int) -> WordStream:
    """NumPy's global generator, with this seed."""

    def reading(source: Any) -> Read:  # Any: NumPy's module of random numbers, or one generator
        return lambda: _of_twister(source.get_state(legacy=False))

    def reference() -> tuple[Read, Callable[[], object]]:
        other = np.random.RandomState(seed)
        return reading(other), lambda: other.bytes(4 * _BLOCK)

    return WordStream(reading(np.random), reference)


def generator_stream(twister: np.random.MT19937, seed: list[int]) -> WordStream:
    """A generator of NumPy that draws from this Mersenne Twister, with this seed."""

    def reference() -> tuple[Read, Callable[[], object]]:
        other = np.random.MT19937(seed)
        return (lambda: _of_twister(other.state)), lambda: other.random_raw(_BLOCK, output=False)

    return WordStream(lambda: _of_twister(twister.state), reference)


def _of_twister(state: Any) -> State:  # Any: NumPy's own mapping
    return state["state"]["key"].tobytes(), state["state"]["pos"], bool(state.get("has_gauss"))


def torch_stream(seed: int) -> WordStream:
    """PyTorch's generator of the CPU, with this seed."""
    torch: Any = sys.modules["torch"]  # Any: imported by the user

    def reading(state: Callable[[], Any]) -> Read:
        def read() -> State:
            words = state().numpy().view(np.uint64)
            place = int(words[_TORCH_PLACE] & 0xFFFFFFFF) or _BLOCK  # 0 before the first word
            return words[_TORCH_BLOCK].tobytes(), place, bool(words[_TORCH_NORMALS].any())

        return read

    def reference() -> tuple[Read, Callable[[], object]]:
        other = torch.Generator().manual_seed(seed)
        return reading(other.get_state), lambda: torch.randint(0, 256, (_BLOCK,), generator=other)

    return WordStream(reading(torch.get_rng_state), reference)
