"""Noise for sums of gradients: each kind with its term, so that what is added is what is priced.

Whole normal and Laplace numbers are made in float64, from 63-bit uniforms and 64-bit angles of a
cipher's stream that nothing can seed, and added to the sum with one rounding. That is fast, and
not exact: `FLOAT_GAP` says what it leaves open. `ExactGaussian` leaves nothing open of that kind.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

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

_AT_ONCE = 1 << 15  # numbers that are made at once, so that they stay in the processor's cache
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

    Contributions are made one by one, each of them whatever the others are, which is slow.
    Clipping is by one L2 norm over all.
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

    def on_grid(self, values: npt.NDArray[np.floating], norm: Fraction) -> Steps:
        """One contribution as integers whose L2 norm is at most the clip norm in steps, whatever
        the values are."""
        most = self.steps(norm)
        with np.errstate(over="ignore"):
            found = values * values.dtype.type(2.0**self.k)
        if not np.isfinite(found).all():
            return np.zeros(values.shape, np.int64)
        edge = math.floor(most)
        np.clip(np.rint(found, out=found), -edge, edge, out=found)
        return clipped(found.astype(np.int64), most)

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
    largest = max(int(steps.max(initial=0)), -int(steps.min(initial=0)))
    if largest * largest * steps.size < 1 << 63:
        return int(np.dot(steps, steps))
    squares = steps * steps
    return (int((squares >> 32).sum()) << 32) + int((squares & 0xFFFFFFFF).sum())


def add_normal(sums: Sequence["Tensor"], stddev: float, bits: Bits) -> None:
    """Add normal noise to every entry of the tensors, in place, by Box and Muller (1958): the
    radius sqrt(-2 ln U) from one word, the angle from another, two numbers from both."""
    import torch

    for flat, room in _pieces(sums):
        radius, angle, turned, one, other = room.rows
        size = len(flat)
        total = room.total if size == len(room.total) else room.total[:size]
        room.words.copy_(_words(len(room.words), bits, flat))
        torch.log(_squared_uniform(radius, radius), out=radius)
        torch.sqrt(radius.mul_(-stddev * stddev), out=radius)
        total.copy_(flat)
        one.addcmul_(radius, torch.cos(angle.mul_(math.pi * _UNIT), out=turned))
        other.addcmul_(radius, torch.sin(angle, out=turned))
        flat.copy_(total)


def add_laplace(sums: Sequence["Tensor"], scale: float, bits: Bits) -> None:
    """Add Laplace noise to every entry of the tensors, in place: -ln U from 63 bits of a word,
    the sign from the last one."""
    import torch

    for flat, room in _pieces(sums):
        total, sign = room.total[: len(flat)], room.words[: len(flat)]
        sign.copy_(_words(len(flat), bits, flat))
        made = torch.log(_squared_uniform(sign, total), out=total).mul_(scale / 2)
        flat.copy_(torch.copysign(made, sign, out=made).add_(flat))


def _words(count: int, bits: Bits, like: "Tensor") -> "Tensor":
    """So many words as signed integers, where the tensor is."""
    import torch

    made = torch.from_numpy(bits.words(count).view(np.int64))
    return made.to(like.device) if like.is_cuda else made


def _squared_uniform(numbers: "Tensor", found: "Tensor") -> "Tensor":
    """U^2, of signed words x: U is |x| / 2^63, and 2^-64 in place of 0."""
    import torch

    least = torch.full((), 2.0**-128, dtype=found.dtype, device=found.device)
    return torch.addcmul(least, numbers, numbers, value=_UNIT * _UNIT, out=found)


class _Room(NamedTuple):
    """Where noise for some entries is made, in float64."""

    words: "Tensor"  # as many as entries, or one more
    total: "Tensor"  # as many
    rows: Sequence["Tensor"]  # all of it as five of half as many: words, one more, total

    @staticmethod
    def within(memory: "Tensor", entries: int) -> "_Room":
        half = (entries + 1) // 2
        used = memory[: 5 * half]
        return _Room(used[: 2 * half], used[3 * half :], used.view(5, half).unbind())


def _pieces(sums: Sequence["Tensor"]) -> Iterator[tuple["Tensor", _Room]]:
    """Every entry once, in flat pieces, and room for each."""
    import torch

    memory: dict[torch.device, Tensor] = {}
    rooms: dict[tuple[torch.device, int], _Room] = {}
    for flat in _flats(sums):
        most, device = _AT_ONCE << 8 if flat.is_cuda else _AT_ONCE, flat.device
        if device not in memory:
            memory[device] = torch.empty(5 * most // 2, dtype=torch.float64, device=device)
        for piece in torch.split(flat, most):
            size = len(piece)
            if (device, size) not in rooms:
                rooms[device, size] = _Room.within(memory[device], size)
            yield piece, rooms[device, size]


def _flats(sums: Sequence["Tensor"]) -> Iterator["Tensor"]:
    """Every tensor as a flat one. Small ones come joined, and get what became of them there."""
    import torch

    small: dict[object, list[Tensor]] = {}
    for tensor in sums:
        if tensor.numel() >= _AT_ONCE:
            yield tensor.view(-1)
        else:
            small.setdefault((tensor.dtype, tensor.device), []).append(tensor.view(-1))
    for those in small.values():
        joined = torch.cat(those)
        yield joined
        for each, part in zip(those, torch.split(joined, [*map(len, those)]), strict=True):
            each.copy_(part)
