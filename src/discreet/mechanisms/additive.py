"""What mechanisms that add noise to integers share."""

import numpy as np

from discreet.mechanisms.bounded import IntegerArray, V, Value
from discreet.noise import Bits, Law, draw

_INT64 = np.iinfo(np.int64)


def with_noise(value: V, law: Law, bits: Bits) -> V:
    """The value with an independent draw of the law added to each of its numbers.

    Python integers, alone or in an object array, are exact at any size. A sum that leaves int64
    in an int64 array stays at its end: a function of the noisy value alone, so it costs nothing.
    """
    return _noisy(value, law, bits)  # type: ignore[return-value,arg-type]  # an integer or an array in, the same out


def _noisy(value: Value, law: Law, bits: Bits) -> Value:
    if not isinstance(value, np.ndarray):
        return value + draw(law, bits)
    noisy: IntegerArray = np.empty(value.size, dtype=object)
    noisy[:] = [int(number) + draw(law, bits) for number in value.flat]
    noisy = noisy.reshape(value.shape)
    if value.dtype == object:
        return noisy
    return np.clip(noisy, _INT64.min, _INT64.max).astype(np.int64)
