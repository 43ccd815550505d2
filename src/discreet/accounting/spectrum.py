"""Sums of many independent whole numbers, modulo a size, by Fourier transform; and how far off the
computed law may be.

Of each law the largest mass is set apart: a transform is then 1 plus what the other masses do, and
rounding is relative to that. So a law that is nearly always one number stays right through
millions of repetitions. See docs/proofs/accountant.md.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from discreet.accounting.pieces import ROUND, Floats

_LEVEL = 16 * ROUND
_NOTHING = -200.0


def fft_radius(size: int) -> float:
    """What each entry of a transform by `scipy.fft.rfft`, of numbers whose absolute values add up
    to 1, may be off by; and of one by `scipy.fft.irfft`, times its size."""
    return _LEVEL * (1 + math.log2(size))


@dataclass(frozen=True, slots=True)
class Convolved:
    """The law of a sum modulo a size: ``mass[i]``, which may be off by ``radius``, times
    e^log_whole is the probability of ``moved + i``."""

    mass: Floats
    radius: float
    moved: int
    log_whole: float


def convolved(laws: Iterable[tuple[NDArray[np.int64], Floats, int]], size: int) -> Convolved:
    """The law of a sum modulo the size. Laws are numbers, their masses, which add up to nearly 1,
    and how often each is added.

    Where each factor is at least 1/2, its power is relatively right; elsewhere, it is small.
    """
    places = np.arange(size // 2 + 1)  # the frequencies at which the product is not next to 0
    log_size, angle, doubt = (np.zeros(len(places)) for _ in range(3))
    is_large = np.ones(len(places), dtype=bool)
    off, moved, total, least, log_whole = fft_radius(size), 0, 0, math.inf, 0.0
    for index, share, count in laws:
        main = int(np.argmax(share))
        others = share.copy()
        others[main] = 0.0
        rest, excess = math.fsum(others), math.fsum(np.append(share, -1.0))
        moved += count * int(index[main])
        log_whole += count * math.log1p(excess)
        folded = (index - index[main]) % size
        most = int(np.bincount(folded).max())  # so many are added to one number
        seen = fft.rfft(np.bincount(folded, others, size))[places]
        real, imaginary = seen.real - rest, seen.imag
        log_factor, is_near = _log_factor(real, imaginary)
        log_size += count * log_factor
        kept = log_size > _NOTHING
        if not kept.all():
            places, log_size, angle, doubt = places[kept], log_size[kept], angle[kept], doubt[kept]
            real, imaginary, is_large = real[kept], imaginary[kept], is_large[kept]
            is_near = is_near[kept]
        is_large &= is_near
        angle += count * np.arctan2(imaginary, 1 + real)
        doubt += 32 * ROUND * count * (np.abs(real) + np.abs(imaginary))
        doubt += 2.5 * count * rest * (off + (8 + 2 * most) * ROUND + 2 * abs(excess))
        total, least = total + count, min(least, count)
    height = np.exp(log_size)
    spectrum = np.zeros(size // 2 + 1, dtype=np.complex128)
    spectrum[places] = height * (np.cos(angle) + 1j * np.sin(angle))
    doubt += 8 * ROUND * (1 + np.abs(log_size) + np.abs(angle))
    apart = float((height * np.expm1(np.minimum(doubt, 700.0))).sum())
    small = 2 * total * off * math.exp(min(total * off, 700.0)) * 0.5 ** (least - 1)
    apart += (size - float(np.count_nonzero(is_large))) * (small + math.exp(_NOTHING))
    whole = float(height.sum()) + apart
    radius = 2.02 / size * (apart + whole * off) + 1e-300
    return Convolved(fft.irfft(spectrum, size), radius, moved, log_whole)


def _log_factor(real: Floats, imaginary: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """ln |1 + z| of z = real + i imaginary, and where 1 + z is at least 1/2."""
    square = real * (2 + real) + imaginary * imaginary  # |1 + z|^2 - 1
    is_near = square >= -0.75
    if is_near.all():
        return np.log1p(square) / 2, is_near
    with np.errstate(divide="ignore"):
        far = np.log(np.hypot(1 + real, imaginary))
    return np.where(is_near, np.log1p(np.maximum(square, -0.75)) / 2, far), is_near
