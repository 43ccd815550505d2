"""Noise for sums of gradients: each kind with its term, so that what is added is what is priced.

Whole normal and Laplace numbers are made in float64, from 63-bit uniforms and 64-bit angles of a
cipher's stream that nothing can seed, and added to the sum with one rounding. That is fast, and
not exact: `FLOAT_GAP` says what it leaves open. `ExactGaussian` leaves nothing open of that kind.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from discreet.accounting import Gaussian, Laplace, Term
from discreet.errors import InvalidArgument
from discreet.exact import float_up, shown
from discreet.noise import Bits, RoundedGaussianLaw

if TYPE_CHECKING:
    from torch import Tensor

Steps = npt.NDArray[np.int64]

FLOAT_GAP = (
    "float noise: the noise is made and added in floating point, from 63-bit uniforms, so that it "
    "ends at 9.4 standard deviations (probability below 1e-19 for each number), sums of "
    "contributions are rounded, and the low bits of what comes out may tell about them (Mironov "
    "2012); exact noise closes this"
)
FINEST = 30  # a clip norm is at most 2^30 steps of the grid, so that squares and sums fit

_PAIRS = 1 << 14  # numbers that are made at once, so that they stay in the processor's cache
_LOW = (1 << 63) - 1
_UNIT = 2.0**-63


class Noise(Protocol):
    """A kind of noise: what it costs, and how it is added to a sum of contributions."""

    @property
    def order(self) -> int:
        """The norm in which contributions must be bounded: L1 or L2."""
        ...

    @property
    def gap(self) -> str | None:
        """What it leaves open, in words."""
        ...

    def term(self, multiplier: Fraction) -> Term:
        """What it costs who is in the sum, its scale being that many times the sensitivity."""
        ...


@dataclass(frozen=True, slots=True)
class FloatGaussian:
    """Normal noise in floating point, close to the speed of PyTorch's own."""

    order: ClassVar[int] = 2
    gap: ClassVar[str | None] = FLOAT_GAP

    def term(self, multiplier: Fraction) -> Term:
        """The Gaussian mechanism's."""
        return Gaussian(multiplier)

    def add(self, sums: Sequence["Tensor"], scale: Fraction, bits: Bits) -> None:
        """Add a number of this standard deviation to each entry, in place."""
        add_normal(sums, float_up(scale), bits)


@dataclass(frozen=True, slots=True)
class FloatLaplace:
    """Laplace noise in floating point, on contributions whose L1 norm is clipped: pure epsilon."""

    order: ClassVar[int] = 1
    gap: ClassVar[str | None] = FLOAT_GAP.replace("9.4 standard deviations", "44 times its scale")

    def term(self, multiplier: Fraction) -> Term:
        """The Laplace mechanism's."""
        return Laplace(multiplier)

    def add(self, sums: Sequence["Tensor"], scale: Fraction, bits: Bits) -> None:
        """Add a number of this scale to each entry, in place."""
        add_laplace(sums, float_up(scale), bits)


@dataclass(frozen=True, slots=True)
class ExactGaussian:
    """Rounded normal noise on multiples of 2^-k: each example's contribution is put onto that
    grid, clipped again as integers and summed exactly; only the noisy sum becomes a float.

    Contributions are made one by one, which is slow. Clipping is by one L2 norm over all.
    """

    k: int

    order: ClassVar[int] = 2
    gap: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        """Refuse what is no grid."""
        if isinstance(self.k, bool) or not isinstance(self.k, int) or not -60 <= self.k <= 60:
            raise InvalidArgument(f"k = {self.k!r}: give a whole number from -60 to 60")

    def term(self, multiplier: Fraction) -> Term:
        """The Gaussian mechanism's, which rounded noise on integers has too."""
        return Gaussian(multiplier)

    def steps(self, length: Fraction) -> Fraction:
        """A length in steps of the grid."""
        return length * Fraction(2) ** self.k

    def check(self, norm: Fraction) -> None:
        """Refuse clip norms of less than a step, or of more than can be summed."""
        if not 1 <= self.steps(norm) <= 1 << FINEST:
            raise InvalidArgument(
                f"k = {self.k}: a clip norm of {shown(norm)} is {float(self.steps(norm)):g} steps "
                f"of the grid, and 1 to 2^{FINEST} are allowed"
            )

    def on_grid(self, values: npt.NDArray[np.float64], norm: Fraction) -> Steps:
        """One contribution as integers whose L2 norm is at most the clip norm in steps, whatever
        the values are."""
        most = self.steps(norm)
        found = np.ldexp(values, self.k)
        if not np.isfinite(found).all():
            return np.zeros(values.shape, np.int64)
        edge = math.floor(most)
        return clipped(np.clip(np.rint(found), -edge, edge).astype(np.int64), most)

    def noisy(self, sums: Steps, scale: Fraction, bits: Bits) -> npt.NDArray[np.float64]:
        """The sums with their noise, ``scale`` being its standard deviation; floats at last."""
        grid = RoundedGaussianLaw(scale).on_grid(self.k)
        return grid.floats(sums + grid.law.draws(bits, sums.size).reshape(sums.shape))


AnyNoise = FloatGaussian | FloatLaplace | ExactGaussian


def clipped(steps: Steps, most: Fraction) -> Steps:
    """The integers, shrunk toward 0 if their L2 norm lies above ``most``; exactly no longer.

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
    squares = steps * steps
    return (int((squares >> 32).sum()) << 32) + int((squares & 0xFFFFFFFF).sum())


def add_normal(sums: Sequence["Tensor"], stddev: float, bits: Bits) -> None:
    """Add normal noise to every entry of the tensors, in place, by Box and Muller (1958): the
    radius sqrt(-2 ln U) from one word, the angle from another, two numbers from both."""
    import torch

    radius = torch.empty(_PAIRS, dtype=torch.float64)
    angle, other = torch.empty_like(radius), torch.empty_like(radius)
    for flat, start, size in _pieces(sums, 2 * _PAIRS):
        half = (size + 1) // 2
        words = torch.from_numpy(bits.words(2 * half).view(np.int64))
        r, a, b = radius[:half], angle[:half], other[:half]
        _to_uniform(words[:half], r)
        torch.sqrt(torch.log(r, out=r).mul_(-2.0 * stddev * stddev), out=r)
        a.copy_(words[half:]).mul_(math.pi * _UNIT)
        torch.cos(a, out=b).mul_(r)
        torch.sin(a, out=a).mul_(r)
        flat[start : start + half].add_(_on(flat, b))
        flat[start + half : start + size].add_(_on(flat, a[: size - half]))


def add_laplace(sums: Sequence["Tensor"], scale: float, bits: Bits) -> None:
    """Add Laplace noise to every entry of the tensors, in place: -ln U from 63 bits of a word,
    the sign from the last one."""
    import torch

    size_of = torch.empty(_PAIRS, dtype=torch.float64)
    sign_of = torch.empty_like(size_of)
    for flat, start, size in _pieces(sums, _PAIRS):
        words = torch.from_numpy(bits.words(size).view(np.int64))
        made, sign = size_of[:size], sign_of[:size].copy_(words)
        _to_uniform(words, made)
        torch.copysign(torch.log(made, out=made).mul_(scale), sign, out=made)
        flat[start : start + size].add_(_on(flat, made))


def _to_uniform(words: "Tensor", found: "Tensor") -> None:
    """(x + 1/2) / 2^63 for the low 63 bits x of each word, all others of which are lost."""
    found.copy_(words.bitwise_and_(_LOW)).add_(0.5).mul_(_UNIT)


def _on(flat: "Tensor", made: "Tensor") -> "Tensor":
    """The numbers where the sum is."""
    return made if flat.device == made.device else made.to(flat.device)


def _pieces(sums: Sequence["Tensor"], most: int) -> Iterator[tuple["Tensor", int, int]]:
    """Every entry once: a flat view of its tensor, where a piece of it starts, and its size."""
    for tensor in sums:
        flat = tensor.view(-1)
        for start in range(0, flat.numel(), most):
            yield flat, start, min(most, flat.numel() - start)
