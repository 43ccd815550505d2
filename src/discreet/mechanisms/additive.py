"""What mechanisms that add noise to integers share."""

import numpy as np

from discreet.mechanisms.bounded import IntegerArray, V, Value
from discreet.noise import Bits, Law

_INT64 = np.iinfo(np.int64)


def with_noise(value: V, law: Law, bits: Bits) -> V:
    """The value with an independent draw of the law added to each of its numbers.

    Python integers, alone or in an object array, are exact at any size. A sum that leaves int64
    in an int64 array stays at its end: a function of the noisy value alone, so it costs nothing.
    """
    return _noisy(value, law, bits)  # type: ignore[return-value,arg-type]  # an integer or an array in, the same out


def _noisy(value: Value, law: Law, bits: Bits) -> Value:
    if not isinstance(value, np.ndarray):
        return value + law.draw(bits)
    noise = law.draws(bits, value.shape)
    if object in (value.dtype, noise.dtype) or not _fits(value, noise):
        exact = np.asarray(value.astype(object) + noise.astype(object), dtype=object)
        return exact if value.dtype == object else _saturated(exact)
    noise += value
    return noise


def _fits(value: IntegerArray, noise: IntegerArray) -> bool:
    """Whether no sum can leave int64."""
    if not value.size:
        return True
    least, most = int(value.min()) + int(noise.min()), int(value.max()) + int(noise.max())
    return bool(_INT64.min <= least and most <= _INT64.max)


def _saturated(exact: IntegerArray) -> IntegerArray:
    return np.asarray(np.clip(exact, _INT64.min, _INT64.max), dtype=np.int64)
