"""Laws of sums of independent integers, with error bounds: by Fourier transform modulo a size, or,
for few short laws, by plain sums.

In a transform, a law's largest mass is treated apart. Its transform is 1 plus the sum over the
other masses, and rounding errors are relative to that sum. So a law that is nearly constant stays
accurate through millions of repetitions. See docs/proofs/accountant.md.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from discreet._arrays import FloatArray, IndexArray
from discreet.accounting.pld._continuous import ROUND
from discreet.accounting.pld._discretize import Points
from discreet.accounting.pld._dominating_pairs import Side, sign_of

IntegerLaw = tuple[IndexArray, FloatArray, int]

_LEVEL = 16 * ROUND
_NOTHING = -60.0  # ln of a product that is neglected: far less than rounding
_TURN, _TRANSFORM = 100, 30  # relative times: a cosine and a sine; a transform, for each number
_PRODUCT = 1 << 18  # multiplications in a product of matrices that stays on one thread
_MOST_PRODUCTS = 1 << 24  # of two masses; more of them are left to tilted compositions
_MOST_LAWS = 32  # copies of one law, each convolved by itself
_LARGEST_SUM = 600.0  # of losses: its exponential times 1e-300 is below 1e-39
_UNDERFLOW = 1e-300  # bounds a product that no normal float holds; it hardly matters at any loss


def fft_radius(size: int) -> float:
    """Bound on the error of each entry of `scipy.fft.rfft`, for numbers whose absolute values add
    up to 1. It also bounds the error of `scipy.fft.irfft` times its size."""
    return _LEVEL * (1 + math.log2(size))


def sum_radius(length: int) -> float:
    """Bound on the error of a plain sum of this many numbers, in any order, whose absolute values
    add up to 1."""
    return 2 * (16 + length) * ROUND


@dataclass(frozen=True, slots=True)
class Convolved:
    """The law of a sum modulo a size. The probability of ``shift + i`` is e^log_whole times
    ``mass[i]``, whose error is at most ``radius``."""

    mass: FloatArray
    radius: float
    shift: int
    log_whole: float


def convolved(laws: Iterable[IntegerLaw], size: int) -> Convolved:
    """The law of a sum modulo the size.

    A law consists of its numbers, their masses (which add up to nearly 1), and its count. Laws that
    share one array of numbers are computed together if they are adjacent.

    At a frequency where each factor is at least 1/2, powers have a small relative error; elsewhere
    they are small. After some laws, the product is negligible at most frequencies. For the few
    others a plain sum is quicker than a transform.
    """
    product, shift, log_whole = _Product.of_nothing(size), 0, 0.0
    for same in _side_by_side(laws):
        shift += int(same.counts.sum()) * same.main
        log_whole += float(same.counts @ np.log1p(same.excess))
        done = 0
        while done < len(same.counts):
            left = same.part(slice(done, None))
            is_quick = left.is_quick_at(product)
            taken = left if is_quick else left.part(slice(1))
            transform = _summed if is_quick else _transformed
            product = product.times(taken, *transform(taken, product.frequencies, size))
            done += len(taken.counts)
    return Convolved(*product.back(), shift, log_whole)


@dataclass(frozen=True, slots=True)
class _LawRows:
    """Laws of the same numbers, a row each. ``main`` is the number with the largest mass, and
    ``index`` is relative to it. ``others`` holds the masses at the other numbers, ``rest`` their
    sum, and ``excess`` the distance of each law's whole mass from 1."""

    index: IndexArray
    main: int
    others: FloatArray
    rest: FloatArray
    excess: FloatArray
    counts: FloatArray

    @staticmethod
    def of(index: IndexArray, shares: FloatArray, counts: FloatArray) -> "_LawRows":
        main = int(np.argmax(counts @ shares))
        high = (1.0 + shares) - 1.0  # multiples of 2^-52: their sums are exact
        excess = (high.sum(axis=1) - 1.0) + (shares - high).sum(axis=1)
        rest = (1.0 - shares[:, main]) + excess  # without cancellation
        others = shares.copy()
        others[:, main] = 0.0
        return _LawRows(index - index[main], int(index[main]), others, rest, excess, counts)

    def part(self, rows: slice) -> "_LawRows":
        columns = (self.others[rows], self.rest[rows], self.excess[rows], self.counts[rows])
        return _LawRows(self.index, self.main, *columns)

    def is_quick_at(self, product: "_Product") -> bool:
        cells, count = len(self.index) * len(product.frequencies), len(self.counts)
        return cells * (_TURN + count) < _TRANSFORM * count * product.size


def _side_by_side(laws: Iterable[IntegerLaw]) -> Iterator[_LawRows]:
    for _, each in itertools.groupby(laws, key=lambda law: id(law[0])):
        same = list(each)
        shares = np.array([share for _, share, _ in same])
        counts = np.array([count for _, _, count in same], dtype=np.float64)
        yield _LawRows.of(same[0][0], shares, counts)


def _transformed(
    rows: _LawRows, frequencies: IndexArray, size: int
) -> tuple[FloatArray, FloatArray, float]:
    """The real and imaginary parts of the first law's transform minus 1 at these frequencies, and
    a bound on their error relative to ``rest``."""
    folded = rows.index % size
    most = int(np.bincount(folded).max())  # masses added to one number
    seen = scipy.fft.rfft(np.bincount(folded, rows.others[0], size))[np.newaxis, frequencies]
    return seen.real - rows.rest[:, np.newaxis], seen.imag, fft_radius(size) + 2 * most * ROUND


def _summed(
    rows: _LawRows, frequencies: IndexArray, size: int
) -> tuple[FloatArray, FloatArray, float]:
    """The parts of all laws' transforms minus 1, and the error bound, by plain sums."""
    turns = np.arange(size)
    turns[size // 2 + 1 :] -= size
    angles = turns * (2 * math.pi / size)  # at most pi, and right to 3 units in the last place
    cosines, sines = np.cos(angles), np.sin(angles)
    real, imaginary = (np.empty((len(rows.counts), len(frequencies))) for _ in range(2))
    few = max(1, _PRODUCT // rows.others.size)
    for part in (slice(start, start + few) for start in range(0, len(frequencies), few)):
        seen = np.multiply.outer(rows.index % size, frequencies[part]) % size
        real[:, part], imaginary[:, part] = rows.others @ cosines[seen], rows.others @ -sines[seen]
    return real - rows.rest[:, np.newaxis], imaginary, sum_radius(len(rows.index))


@dataclass(frozen=True, slots=True)
class _Product:
    """A product of powers of transforms, at the frequencies where it matters.

    Attributes:
        size: the number of points of the transform.
        frequencies: where the product may still matter; each array below has a number for each.
        log_size: ln of the product's absolute value.
        angle: the product's angle.
        log_error: bound on the error of ``log_size`` and of ``angle``.
        absolute_sum: the sum of the absolute values that were added to these two.
        is_large: whether no factor was small.
        small_factor_error: bound on the error of the small factors together.
        least: the smallest count of a law.
        neglected_error: bound on the error of ``log_size`` where the product was neglected.
        laws: the number of factors.
    """

    size: int
    frequencies: IndexArray
    log_size: FloatArray
    angle: FloatArray
    log_error: FloatArray
    absolute_sum: FloatArray
    is_large: NDArray[np.bool_]
    small_factor_error: float = 0.0
    least: float = math.inf
    neglected_error: float = 0.0
    laws: int = 0

    @staticmethod
    def of_nothing(size: int) -> "_Product":
        frequencies = np.arange(size // 2 + 1)
        zeros = np.zeros(len(frequencies))
        return _Product(
            size, frequencies, zeros, zeros, zeros, zeros, np.ones(len(frequencies), dtype=bool)
        )

    def times(
        self, rows: _LawRows, real: FloatArray, imaginary: FloatArray, transform_error: float
    ) -> "_Product":
        """Multiply by the powers of transforms, given by the parts of transform - 1. Their relative
        error is at most ``transform_error``."""
        # 1. bounds on the errors that these factors bring
        counts = rows.counts
        each = 2.5 * rows.rest * (transform_error + 8 * ROUND + 2 * np.abs(rows.excess))
        least = min(self.least, float(counts.min()))
        small_factor_error = self.small_factor_error + float(counts.sum()) * transform_error
        most = float((counts @ (each + 96 * ROUND)) + self.log_error.max(initial=0.0))
        # 2. only frequencies at which the product is not neglected
        square = real * (2 + real) + imaginary * imaginary  # |1 + z|^2 - 1
        likely = self._likely(square, counts)
        if not likely.all():
            square, real, imaginary = (
                square[:, likely],
                real[:, likely],
                imaginary[:, likely],
            )
        # 3. logarithms and angles of the factors, added to those so far
        is_near = square >= -0.75
        logs = _log_factor(square, real, imaginary)
        angles = np.arctan2(imaginary, 1 + real)
        found = _Product(
            self.size,
            self.frequencies[likely],
            self.log_size[likely] + counts @ logs,
            self.angle[likely] + counts @ angles,
            self.log_error[likely]
            + counts @ (32 * ROUND * (np.abs(real) + np.abs(imaginary)))
            + float(counts @ each),
            self.absolute_sum[likely] + counts @ (np.abs(logs) + np.abs(angles)),
            self.is_large[likely] & is_near.all(axis=0),
            small_factor_error,
            least,
            max(self.neglected_error, most),
            self.laws + len(counts),
        )
        return found._without_nothing()

    def _likely(self, square: FloatArray, counts: FloatArray) -> NDArray[np.bool_]:
        """Where the product may still matter, decided without logarithms. Squares near -1 have
        lost most digits, so these stay."""
        if len(counts) > 1:
            return np.ones(len(self.frequencies), dtype=bool)
        room = _NOTHING - float(self.log_size.max(initial=0.0))
        return np.asarray(square[0] > math.expm1(2 * room / float(counts[0])) - 64 * ROUND)

    def _without_nothing(self) -> "_Product":
        likely = self.log_size > _NOTHING
        if likely.all():
            return self
        names = ("frequencies", "log_size", "angle", "log_error", "absolute_sum", "is_large")
        return replace(self, **{name: getattr(self, name)[likely] for name in names})

    def back(self) -> tuple[FloatArray, float]:
        """The inverse transform, and a bound on its error."""
        height = np.exp(self.log_size)
        spectrum = np.zeros(self.size // 2 + 1, dtype=np.complex128)
        spectrum[self.frequencies] = height * (np.cos(self.angle) + 1j * np.sin(self.angle))
        # For few laws, the transforms' errors exceed the rounding of their sums.
        log_error = self.log_error + 2 * ROUND * (4 + self.laws) * (1 + self.absolute_sum)
        error = float((height * np.expm1(np.minimum(log_error, 700.0))).sum())
        factor_error = self.small_factor_error
        small = 2 * factor_error * math.exp(min(factor_error, 700.0)) * 0.5 ** (self.least - 1)
        nothing = math.exp(min(_NOTHING + self.neglected_error, 700.0))
        error += (self.size - float(np.count_nonzero(self.is_large))) * (small + nothing)
        whole = float(height.sum()) + error
        radius = 2.02 / self.size * (error + whole * fft_radius(self.size)) + 1e-300
        return scipy.fft.irfft(spectrum, self.size), radius


def _log_factor(square: FloatArray, real: FloatArray, imaginary: FloatArray) -> FloatArray:
    """ln |1 + z| of z = real + i imaginary, ``square`` being |1 + z|^2 - 1."""
    near = np.log1p(np.maximum(square, -0.75)) / 2
    is_far = square < -0.75
    if is_far.any():
        with np.errstate(divide="ignore"):
            near[is_far] = np.log(np.hypot(1 + real[is_far], imaginary[is_far]))
    return near


# Plain sums. All numbers are probabilities, so no digits cancel. A sum of n products in any order
# has a relative error of at most n + 1 times the rounding unit.


@dataclass(frozen=True, slots=True)
class SumMasses:
    """Bounds from one side on the masses of a sum at the indices from ``start`` on, and on its
    probabilities below and above them."""

    start: int
    mass: FloatArray
    below: float
    above: float


def convolved_directly(
    parts: Sequence[tuple[Points, int]], side: Side, window: tuple[int, int]
) -> SumMasses | None:
    """The masses of the sum on a window, given by its first index and its size; ``None`` if the
    laws are too many, too long, or have losses too large for this."""
    # 1. The range of indices with mass, and the work.
    ranges = []
    products, length, farthest = 0, 1, 0.0
    for points, count in parts:
        index = points.index[points.mass > 0]
        least, size = int(index.min()), int(index.max() - index.min()) + 1
        ranges.append((least, size))
        farthest += count * max(
            abs(points.offset + at * points.step) for at in (least, least + size)
        )
        if count > _MOST_LAWS or farthest > _LARGEST_SUM:
            return None
        for _ in range(count):
            products, length = products + length * size, length + size
    if products > _MOST_PRODUCTS:
        return None

    # 2. Convolve.
    whole, first, relative_error = np.ones(1), 0, 0.0
    for (points, count), (least, size) in zip(parts, ranges, strict=True):
        has_mass = points.mass > 0
        law = np.bincount(points.index[has_mass] - least, points.mass[has_mass], size)
        for _ in range(count):
            relative_error += (min(len(whole), size) + len(points.index) + 2) * ROUND
            whole, first = np.convolve(whole, law), first + least

    # 3. Move the masses to the requested side by their rounding errors, and cut out the window.
    if side is Side.UPPER:
        whole = whole * (1 + 2 * relative_error) + _UNDERFLOW
    else:
        whole = np.maximum(whole * (1 - 2 * relative_error) - _UNDERFLOW, 0.0)
    start, size = window
    safe = 1 + sign_of(side) * 2 * (len(whole) + 2) * ROUND
    low, high = (min(max(place - first, 0), len(whole)) for place in (start, start + size))
    mass = np.zeros(size)
    at = first + low - start
    mass[at : at + high - low] = whole[low:high]
    below, above = (float(part.sum()) * safe for part in (whole[:low], whole[high:]))
    return SumMasses(start, mass, min(below, 1.0), min(above, 1.0))
