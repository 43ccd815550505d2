"""Noise for sums of gradients: each kind with its term, so that the added noise is the priced one.

Normal and Laplace numbers are made in float32, from 63-bit uniforms and 32-bit angles of a cipher's
stream that can't be seeded. The noisy sums are then rounded to a public grid, which hides their low
bits. That is fast, and not exact: `gap` states the difference. `ExactGaussian` has no such gap.
"""

import math
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from discreet._exact import float_up, shown
from discreet.accounting import Gaussian, Laplace, Term
from discreet.errors import InvalidArgument
from discreet.noise import Bits, RoundedGaussianLaw, SecureBits, Words

if TYPE_CHECKING:
    from torch import Tensor

Steps = npt.NDArray[np.int64]

FINEST = 30  # a clip norm is at most 2^30 steps of the grid, so that squares fit into int64

_AT_ONCE = 1 << 16  # numbers in a row: rows stay in a processor's cache
_FINENESS = 7  # results are rounded to steps of 2^-7 to 2^-6 of the noise's scale
_LEAST = 2.0**-126
_SPARE = 1 + 2.0**-20  # makes up for float32 rounding down from words to numbers
_WITHIN = 2.0**-62 * (1 - 2.0**-30)  # so that no square of a uniform is above 1


def _gap(words: str, end: str) -> str:
    """The difference of floating-point noise from exact noise, in words."""
    return (
        f"float noise: the noise is made and added in float32, from {words}, so that it ends at "
        f"{end} (probability below 1e-19 for each number), and sums of contributions are rounded; "
        "what comes out is rounded to steps of 1/128 to 1/64 of the noise's scale, which hides low "
        "bits (Mironov 2012), but its probabilities are right to float32's rounding only; exact "
        "noise closes this"
    )


@dataclass(frozen=True, slots=True)
class FloatGaussian:
    """Normal noise in floating point, about as fast as PyTorch's."""

    order: ClassVar[int] = 2
    gap: ClassVar[str | None] = _gap("63-bit uniforms and 32-bit angles", "9.3 standard deviations")

    def term(self, multiplier: Fraction) -> Term:
        """The term of one step with this multiplier."""
        return Gaussian(multiplier)

    def add(self, sums: Sequence["Tensor"], scale: Fraction, bits: Bits) -> None:
        """Add noise of this standard deviation to each entry, in place."""
        add_normal(sums, float_up(scale), bits)


@dataclass(frozen=True, slots=True)
class FloatLaplace:
    """Laplace noise in floating point, on contributions whose L1 norm is clipped: pure epsilon."""

    order: ClassVar[int] = 1
    gap: ClassVar[str | None] = _gap("63-bit uniforms", "43 times its scale")

    def term(self, multiplier: Fraction) -> Term:
        """The term of one step with this multiplier."""
        return Laplace(multiplier)

    def add(self, sums: Sequence["Tensor"], scale: Fraction, bits: Bits) -> None:
        """Add noise of this scale to each entry, in place."""
        add_laplace(sums, float_up(scale), bits)


@dataclass(frozen=True, slots=True)
class ExactGaussian:
    """Rounded normal noise on multiples of 2^-k.

    Each example's contribution is rounded to that grid, clipped again as integers and summed
    exactly; only the noisy sum becomes a float. Each contribution is computed alone, so that it
    does not depend on others; that is slow. Clipping is by one L2 norm of all parameters.
    """

    k: int

    order: ClassVar[int] = 2
    gap: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, int) or not -60 <= self.k <= 60:
            raise InvalidArgument(f"k = {self.k!r}: give a whole number from -60 to 60")

    def term(self, multiplier: Fraction) -> Term:
        """The term of one step with this multiplier."""
        return Gaussian(multiplier)

    def steps(self, length: Fraction) -> Fraction:
        """A length in steps of the grid."""
        return length * Fraction(2) ** self.k

    def check(self, norm: Fraction) -> None:
        """Refuse clip norms below a step, or too large to be summed."""
        if not 1 <= self.steps(norm) <= 1 << FINEST:
            raise InvalidArgument(
                f"k = {self.k}: a clip norm of {shown(norm)} is {float(self.steps(norm)):g} steps "
                f"of the grid, and 1 to 2^{FINEST} are allowed"
            )

    def on_grid(self, values: npt.NDArray[np.floating], norm: Fraction) -> Steps:
        """A contribution as integers whose L2 norm is at most the clip norm in steps, for all
        values."""
        most = self.steps(norm)
        with np.errstate(over="ignore"):
            found = values * values.dtype.type(2.0**self.k)
        if not np.isfinite(found).all():
            return np.zeros(values.shape, np.int64)
        edge = math.floor(most)
        np.clip(np.rint(found, out=found), -edge, edge, out=found)
        return clipped(found.astype(np.int64), most)

    def noisy(self, sums: Steps, scale: Fraction, bits: Bits) -> npt.NDArray[np.float64]:
        """The sums with noise of standard deviation ``scale``, as floats."""
        grid = RoundedGaussianLaw(scale).on_grid(self.k)
        return grid.floats(sums + grid.law.draws(bits, sums.size).reshape(sums.shape))


AnyNoise = FloatGaussian | FloatLaplace | ExactGaussian


def clipped(steps: Steps, most: Fraction) -> Steps:
    """The integers, shrunk toward 0 so that their L2 norm is at most ``most``, exactly.

    >>> clipped(np.array([3, -4]), Fraction(5)).tolist(), clipped(np.array([3, -4]), Fraction(4))
    ([3, -4], array([ 1, -2]))
    """
    square = squared_norm(steps)
    if square <= most**2:
        return steps
    share = math.floor(most * 2**30 / (math.isqrt(square) + 1))  # rounded down, as all below
    shrunk: Steps = np.sign(steps) * (np.abs(steps) * share >> 30)
    return shrunk


def squared_norm(steps: Steps) -> int:
    """The sum of squares of integers below 2^31, exactly."""
    largest = max(int(steps.max(initial=0)), -int(steps.min(initial=0)))
    if largest * largest * steps.size < 1 << 63:
        return int(np.dot(steps, steps))
    squares = steps * steps
    return (int((squares >> 32).sum()) << 32) + int((squares & 0xFFFFFFFF).sum())


def add_normal(sums: Sequence["Tensor"], stddev: float, bits: Bits) -> None:
    """Add normal noise to all entries of the tensors, in place, by Box and Muller (1958).

    The radius sqrt(-2 ln U) takes 64 bits, the angle 32 others; together they give two numbers.
    """
    import torch

    scale = stddev * _SPARE
    for flat, buffers in _pieces(sums, 2):
        half = (len(flat) + 1) // 2
        high, low, angle = buffers.integers(3, half, bits)
        radius = buffers.log_of_squares(high, low, high).neg_().sqrt_()
        angle.mul_(math.pi * 2.0**-31)
        flat[:half].addcmul_(radius, torch.cos(angle, out=low), value=scale)
        rest = len(flat) - half  # as many, or one less
        flat[half:].addcmul_(radius[:rest], angle.sin_()[:rest], value=scale)
        _round(flat, stddev)


def add_laplace(sums: Sequence["Tensor"], scale: float, bits: Bits) -> None:
    """Add Laplace noise to all entries, in place: -ln U takes 63 bits, the sign one."""
    import torch

    for flat, buffers in _pieces(sums, 1):
        high, low = buffers.integers(2, len(flat), bits)
        made = buffers.log_of_squares(high, low, low)
        flat.add_(torch.copysign(made, high, out=made), alpha=scale * _SPARE / 2)
        _round(flat, scale)


def _round(flat: "Tensor", scale: float) -> None:
    """Round to steps of a power of two: adding a large number rounds to its own step."""
    import torch

    _, exponent = math.frexp(scale)
    far = math.ldexp(1.5, exponent - _FINENESS) / torch.finfo(flat.dtype).eps
    flat.add_(far).sub_(far)


@dataclass(slots=True)
class _NoiseBuffers:
    """Buffers for random words and for the numbers that are made of them."""

    numbers: "Tensor"
    words: Words
    halves: "Tensor"  # of the words
    least: "Tensor"  # the square of the least uniform
    used: int = 0  # numbers

    @staticmethod
    def like(flat: "Tensor") -> "_NoiseBuffers":
        import torch

        numbers = torch.zeros(3 * _most(flat), dtype=flat.dtype, device=flat.device)
        words = np.zeros((len(numbers) + 1) // 2, np.uint64)
        least = torch.full((), _LEAST, dtype=flat.dtype, device=flat.device)
        return _NoiseBuffers(numbers, words, torch.from_numpy(words.view(np.int32)), least)

    def integers(self, rows: int, size: int, bits: Bits) -> "Sequence[Tensor]":
        """Split each 64-bit word into two signed 32-bit integers; returns rows of these."""
        count = rows * size
        self.used = max(self.used, count)
        words = self.words[: (count + 1) // 2]
        if isinstance(bits, SecureBits):
            bits.fill(words)
        else:
            words[:] = bits.words(len(words))
        return self.numbers[:count].copy_(self.halves[:count]).view(rows, size).unbind()

    def log_of_squares(self, high: "Tensor", low: "Tensor", into: "Tensor") -> "Tensor":
        """ln(U^2) with U = |high 2^32 + low| / 2^63, and 2^-63 instead of 0."""
        import torch

        high.add_(low, alpha=2.0**-32)
        return torch.addcmul(self.least, high, high, value=_WITHIN, out=into).log_()

    def wipe(self) -> None:
        self.numbers[: self.used].zero_()
        self.words[: (self.used + 1) // 2].fill(0)
        self.used = 0


class _BuffersOfThread(threading.local):
    """Each thread's buffers, used again by later calls: new memory would take most of the time."""

    def __init__(self) -> None:
        self.buffers: dict[object, _NoiseBuffers] = {}


_REUSED = _BuffersOfThread()


def _most(like: "Tensor") -> int:
    return _AT_ONCE << 8 if like.is_cuda else _AT_ONCE


def _pieces(sums: Sequence["Tensor"], times: int) -> Iterator[tuple["Tensor", _NoiseBuffers]]:
    """Yield all entries in flat pieces, each with buffers for it, which are wiped at the end."""
    import torch

    used: dict[object, _NoiseBuffers] = {}
    try:
        for flat in _flats(sums):
            kind = flat.device, flat.dtype, _most(flat)
            buffers = used[kind] = (
                used.get(kind) or _REUSED.buffers.pop(kind, None) or _NoiseBuffers.like(flat)
            )
            for piece in torch.split(flat, times * _most(flat)):
                yield piece, buffers
    finally:
        for each, buffers in used.items():
            buffers.wipe()
            if not buffers.numbers.is_cuda:
                _REUSED.buffers[each] = buffers


def _flats(sums: Sequence["Tensor"]) -> Iterator["Tensor"]:
    """Yield each tensor as a flat one; small ones are joined, and copied back afterwards."""
    import torch

    small: dict[object, list[Tensor]] = {}
    for tensor in sums:
        if tensor.numel() >= _most(tensor):
            yield tensor.view(-1)
        else:
            small.setdefault((tensor.dtype, tensor.device), []).append(tensor.view(-1))
    for those in small.values():
        joined = torch.cat(those)
        yield joined
        for each, part in zip(those, torch.split(joined, [*map(len, those)]), strict=True):
            each.copy_(part)
