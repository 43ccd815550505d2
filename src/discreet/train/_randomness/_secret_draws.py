"""Seeds the global generators with secure bits within a step, so that random numbers are secret.

Dropout and augmentation draw from the global generators of PyTorch, NumPy and Python, whose seeds
are often public. If the draws are known, the mask of each row of a batch is known. One more example
shifts the masks of all rows behind it, and so changes all of their contributions, not only its own.
If draws are secret, the masks of all other rows have the same law with and without that example.
"""

import hashlib
import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.random import mtrand
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack

from discreet.errors import Refused
from discreet.noise import Bits
from discreet.train._calls._lost_arguments import with_lost
from discreet.train._calls._modes import unchanged_modes

T = TypeVar("T")

_WORDS = 4  # of the key: 256 bits from a secure source
_TWISTER = 624  # numbers of 32 bits: the state of PyTorch's generator on a processor (MT19937)
_STATE = 3  # the place of the first one in `Generator.get_state`, in words of 64 bits

_MEND = (
    "leave it out: within a step, secure bits seed the generators, since a known seed reveals "
    "each example's draws"
)


class SecretDraws:
    """Seeds all global generators from one key, with fresh seeds each time."""

    def __init__(self, bits: Bits) -> None:
        self._key, self._seeded = bits.words(_WORDS).tobytes(), 0
        self._numbers = np.random.MT19937()

    def renew(self) -> None:
        """Seed all global generators anew, unseen by modes that follow the losses."""
        self._seeded += 1
        with torch._C.DisableTorchFunction():  # noqa: SLF001  has no public name
            for generator in _generators():
                secret = self._stream(str(generator.device))
                if generator.device.type == "cpu":
                    generator.set_state(_twister_state(generator, secret))
                else:
                    generator.manual_seed(int.from_bytes(secret[:8]))
        if _is_seeded(self._numbers):  # an item did, and that shows for good
            self._numbers = np.random.MT19937()
        self._numbers.state = _numpy_state(self._stream("numpy"))
        mtrand.set_bit_generator(self._numbers)
        random.seed(self._stream("python")[:64])

    def secret(self, losses: Callable[[Any], T]) -> Callable[[Any], T]:  # Any: a microbatch
        """The same losses with fresh draws; losses that seed a generator are refused."""
        refused = refuse_known_draws(losses)

        def with_fresh_draws(microbatch: Any) -> T:  # Any: as above
            self.renew()
            return refused(microbatch)

        return with_fresh_draws

    def _stream(self, name: str) -> bytes:
        secret = self._key + self._seeded.to_bytes(8) + name.encode()
        return hashlib.shake_256(secret).digest(8 + 4 * _TWISTER)


_turn = threading.RLock()  # the generators are global: one thread at a time may seed them


def _renew_in_child() -> None:
    global _turn  # noqa: PLW0603  another thread may have held the old one, and is not in the child
    _turn = threading.RLock()


os.register_at_fork(after_in_child=_renew_in_child)


@contextmanager
def secret_draws(bits: Bits) -> Iterator[SecretDraws]:
    """Seed the global generators secretly within the block; restore them afterwards.

    Other threads wait until the block ends. Raises `Refused` within the losses of another run.
    """
    modes = _get_current_function_mode_stack()  # type: ignore[no-untyped-call]  # PyTorch has no types
    if any(isinstance(one, _Watch) for one in modes):
        raise Refused(
            "a run was checked or made a step within the losses of another run, which share one "
            "generator; train one run after the other"
        )
    with _turn, _seeded(bits) as draws:
        yield draws


@contextmanager
def _seeded(bits: Bits) -> Iterator[SecretDraws]:
    generators = [(generator, generator.get_state()) for generator in _generators()]
    numbers, numbers_state = mtrand.get_bit_generator(), np.random.get_state(legacy=False)
    python = random.getstate()
    try:
        draws = SecretDraws(bits)
        draws.renew()
        yield draws
    finally:
        for generator, state in generators:
            generator.set_state(state)
        mtrand.set_bit_generator(numbers)
        np.random.set_state(numbers_state)
        random.setstate(python)


def refuse_known_draws(losses: Callable[[Any], T]) -> Callable[[Any], T]:  # Any: a microbatch
    """The same losses; they are refused if they seed a generator or draw from one of their own.

    Not found: seeds of Python's own generator, and generators of NumPy and Python that the user
    made.
    """

    def watched(microbatch: Any) -> T:  # Any: as above
        with _Watch() as watch:
            with unchanged_modes():
                found = losses(microbatch)
            watch.check()
        watch.check_numpy()
        return found

    return watched


class RefuseGenerators(TorchFunctionMode):
    """Refuses draws from generators that are given to PyTorch's functions."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # Any: PyTorch's functions and what they take
        keywords = with_lost(func, kwargs or {})
        if any(isinstance(one, torch.Generator) for one in (*args, *keywords.values())):
            raise Refused(
                f"{getattr(func, '__name__', 'a function')} draws from a generator of its own; "
                f"{_MEND}"
            )
        return func(*args, **keywords)


class _Watch(RefuseGenerators):
    """Compares, at each call of PyTorch's functions, the seeds with those at the start."""

    def __init__(self) -> None:
        super().__init__()
        self._seeds = [(generator, generator.initial_seed()) for generator in _generators()]
        self._numbers = mtrand.get_bit_generator()
        self._is_seeded = _is_seeded(self._numbers)

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # Any: PyTorch's functions and what they take
        self.check()
        return super().__torch_function__(func, types, args, kwargs)

    def check(self) -> None:
        """Refuse another seed of PyTorch's."""
        if any(generator.initial_seed() != seed for generator, seed in self._seeds):
            raise Refused(
                "the model or its losses seed PyTorch's generator, by torch.manual_seed, or "
                f"another training run or thread does at the same time; {_MEND}"
            )

    def check_numpy(self) -> None:
        """Refuse another seed of NumPy's: `np.random.seed` leaves no seed sequence."""
        numbers = mtrand.get_bit_generator()
        if numbers is not self._numbers or _is_seeded(numbers) != self._is_seeded:
            raise Refused(
                f"the model or its losses seed NumPy's generator, as by np.random.seed; {_MEND}"
            )


def _is_seeded(numbers: Any) -> bool:  # Any: NumPy's types leave its bit generators out
    return numbers.seed_seq is None


def _generators() -> list[torch.Generator]:
    """PyTorch's own generators, of each device in use."""
    found = [torch.default_generator]
    for backend in (torch.cuda, torch.xpu):
        if backend.is_initialized():
            found += backend.default_generators
    if torch.backends.mps.is_available():
        found.append(torch.mps._get_default_mps_generator())  # noqa: SLF001  # has no public name
    return found


def states() -> list[bytes]:
    """The states of PyTorch's own generators, unseen by modes that follow the losses."""
    with torch._C.DisableTorchFunction():  # noqa: SLF001  has no public name
        return [generator.get_state().numpy().tobytes() for generator in _generators()]


def _numpy_state(secret: bytes) -> Any:  # Any: NumPy's dictionary, whose type has no public name
    key = np.frombuffer(secret, np.uint32, _TWISTER)
    return {"bit_generator": "MT19937", "state": {"key": key, "pos": _TWISTER}}


def _twister_state(generator: torch.Generator, secret: bytes) -> torch.Tensor:
    """A state of 624 secret numbers; `manual_seed` would use 32 bits alone."""
    state: torch.Tensor = generator.get_state()
    words = state.numpy().view(np.uint64)  # a seed, two flags, a place, and the numbers
    words[0] = int.from_bytes(secret[:8])
    words[1:_STATE] = (1 | 1 << 32), 0  # no number is left, and it is seeded
    words[_STATE : _STATE + _TWISTER] = np.frombuffer(secret, np.uint32, _TWISTER, offset=8)
    words[_STATE + _TWISTER :] = 0  # no normal number waits
    return state
