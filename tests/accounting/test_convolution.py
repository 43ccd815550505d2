"""Sums modulo a size against exact ones, and what the bounds on their law's tails make of them."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce
from operator import mul

import numpy as np
import pytest
from flint import acb, arb, arb_poly
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import fft

from discreet._arrays import FloatArray
from discreet._exact import precision
from discreet.accounting.pld import _convolution as spectrum
from discreet.accounting.pld._continuous import ROUND
from discreet.accounting.pld._convolution import (
    Convolved,
    _LawRows,
    _summed,
    convolved,
    fft_radius,
    sum_radius,
)
from discreet.accounting.pld._discretize import Points
from discreet.accounting.pld._dominating_pairs import Side
from discreet.accounting.pld._tilted_sum import TiltedSum
from tests.accounting.sums import BITS, Law, numbers, power
from tests.accounting.test_continuous import exact

SMALL = [1, 2, 3, 4, 5, 6, 15, 25, 27, 45, 64, 75, 81, 100, 125, 128]
LARGE = [3**7, 5**5, 2**15, 3**4 * 5**4, 2**18]


KINDS = ["one", "law", "signs", "alternating", "steep"]


def roots(size: int) -> list[acb]:
    return [acb(exact(Fraction(-2 * k, size))).exp_pi_i() for k in range(size)]


class TestFftRadius:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("size", SMALL)
    def test_rfft_by_direct_sums(self, size: int, kind: str) -> None:
        values = numbers(kind, size)
        found = fft.rfft(values)
        with precision(128):
            turns, expected = roots(size), [exact(value) for value in values]
            for k, seen in enumerate(found):
                true = sum((turns[j * k % size] * expected[j] for j in range(size)), acb(0))
                off = abs(acb(exact(seen.real), exact(seen.imag)) - true)
                assert off <= exact(fft_radius(size)), k

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("size", SMALL[1:])
    def test_irfft_by_direct_sums(self, size: int, kind: str) -> None:
        half = size // 2 + 1
        spectrum = numbers(kind, half) * np.exp(2j * np.arange(half))
        spectrum[0] = abs(spectrum[0])
        if size % 2 == 0:
            spectrum[-1] = abs(spectrum[-1])
        found = fft.irfft(spectrum, size)
        whole = [*spectrum, *spectrum[1 : size - half + 1][::-1].conj()]
        with precision(128):
            turns = roots(size)
            expected = [acb(exact(value.real), exact(value.imag)) for value in whole]
            allowed = (
                exact(fft_radius(size)) * sum((abs(value) for value in expected), arb(0)) / size
            )
            for k, seen in enumerate(found):
                true = sum((turns[-j * k % size] * expected[j] for j in range(size)), acb(0)) / size
                assert abs(exact(seen) - true) <= allowed, k

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("size", LARGE)
    def test_transforms_agree_with_long_doubles(self, size: int, kind: str) -> None:
        values = numbers(kind, size)
        true = fft.rfft(values.astype(np.longdouble))
        assert np.finfo(true.real.dtype).eps < ROUND / 100
        assert float(np.abs(fft.rfft(values) - true).max()) <= fft_radius(size) / 4
        spectrum = true.astype(np.complex128)
        back = fft.irfft(spectrum.astype(np.clongdouble), size)
        allowed = fft_radius(size) * 2 * float(np.abs(spectrum).sum()) / size
        assert float(np.abs(fft.irfft(spectrum, size) - back).max()) <= allowed / 4


def assert_convolved(laws: Sequence[Law], size: int, expected: Sequence[arb], least: int) -> None:
    convolution = convolved(
        [(np.array(i, dtype=np.int64), np.array(share), count) for i, share, count in laws], size
    )
    assert_near(convolution, expected, least, size)


def assert_near(found: Convolved, expected: Sequence[arb], least: int, size: int) -> None:
    wrapped = [arb(0)] * size
    for place, mass in enumerate(expected):
        wrapped[(least + place - found.shift) % size] += mass
    whole = exact(found.log_whole).exp()
    for seen, mass in zip(found.mass, wrapped, strict=True):
        true = mass / whole
        assert abs(exact(seen) - true) <= exact(found.radius) + true * exact(1e-20)


@st.composite
def some_laws(draw: st.DrawFn) -> list[Law]:
    found = []
    for _ in range(draw(st.integers(1, 3))):
        length = draw(st.integers(1, 5))
        index = draw(st.lists(st.integers(-20, 20), min_size=length, max_size=length))
        logs = draw(st.lists(st.floats(-40, 0), min_size=length, max_size=length))
        share = np.exp(np.array(logs))
        found.append((index, list(share / share.sum()), draw(st.integers(1, 60))))
    return found


class TestConvolved:
    @given(some_laws(), st.sampled_from([1, 2, 3, 25, 64, 81, 128, 1024]))
    @settings(max_examples=60)
    def test_small_laws(self, laws: list[Law], size: int) -> None:
        with precision(BITS):
            expected, least = power(laws)
            assert_convolved(laws, size, expected, least)

    @given(
        st.floats(-40, -0.01),
        st.sampled_from([1, 2, 10, 1000, 10**4, 10**6]),
        st.sampled_from([64, 75, 1024]),
        st.booleans(),
        st.sampled_from([0.0, 1e-15, -1e-13]),
    )
    @example(math.log(1e-6), 10**6, 64, True, 0.0)
    @example(-0.7, 1000, 64, False, -1e-13)
    @settings(max_examples=60)
    def test_powers_of_two_points(
        self, log: float, count: int, size: int, is_rare_above: bool, excess: float
    ) -> None:
        """Binomial masses, even of laws that are nearly always one number."""
        rare = math.exp(log) if count < 10**4 else math.exp(log) * min(1.0, 30 / count)
        share = [1 - rare + excess, rare] if is_rare_above else [rare, 1 - rare + excess]
        with precision(BITS):
            expected = binomial(share if is_rare_above else share[::-1], count)
            least = 0
            if not is_rare_above:
                expected, least = expected[::-1], count - len(expected) + 1
            assert_convolved([([0, 1], share, count)], size, expected, least)

    @pytest.mark.parametrize("count", [1, 10, 10**6])
    def test_two_nearly_degenerate_laws(self, count: int) -> None:
        """The one often, the other once and hardly anywhere: where it is next to 0, so is the
        product."""
        laws: list[Law] = [
            ([3, 4], [1 - 2e-6, 2e-6], count),
            ([0, 1], [0.5, 0.5], 1),
        ]
        with precision(BITS):
            rare = binomial(laws[0][1], count)
            both = arb_poly(rare) * arb_poly([arb(1) / 2, arb(1) / 2])
            expected = [both[k] for k in range(both.degree() + 1)]
            assert_convolved(laws, 128, expected, 3 * count)

    def test_many_points_in_one_place(self) -> None:
        random = np.random.default_rng(0)
        share = random.exponential(size=5000)
        share /= share.sum()
        index = random.integers(0, 10**6, 5000).tolist()
        with precision(BITS):
            wrapped = [arb(0)] * 64
            for at, mass in zip(index, share, strict=True):
                wrapped[at % 64] += exact(mass)
            assert_convolved([(index, share.tolist(), 1)], 64, wrapped, 0)


@pytest.fixture(params=[True, False], ids=["by sums", "by transforms"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """How transforms are taken, whatever is quicker."""
    monkeypatch.setattr(spectrum, "_TRANSFORM", 1e9 if request.param else 0)
    return bool(request.param)


@pytest.mark.usefixtures("way")
class TestLawsSideBySide:
    """Those with one and the same array of numbers, which are taken together."""

    @pytest.mark.parametrize("size", [1, 25, 64, 81])
    @pytest.mark.parametrize("seed", range(2))
    def test_small_laws(self, size: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        index = random.integers(-20, 20, random.integers(1, 6))
        laws = []
        for _ in range(5):
            share = np.exp(random.uniform(-30, 0, len(index)))
            laws.append((index, share / share.sum(), int(random.integers(1, 30))))
        other = random.integers(-9, 9, 2), np.array([0.5, 0.5]), 3
        assert_told([*laws, other, laws[0]], size)

    @pytest.mark.parametrize("count", [1, 10**6])
    def test_laws_that_are_nearly_one_number(self, count: int) -> None:
        """Their rests are small, and so is what they are off by."""
        index = np.array([3, 4])
        laws = [(index, np.array([1 - rare, rare]), count) for rare in (1e-9, 2e-6, 1e-7)]
        with precision(BITS):
            expected = [binomial(law[1].tolist(), count) for law in laws]
            product = reduce(mul, map(arb_poly, expected))
            convolution = convolved(laws, 64)
            assert convolution.radius < 1e-12
            assert_near(
                convolution, [product[k] for k in range(product.degree() + 1)], 9 * count, 64
            )

    def test_a_thousand_laws(self) -> None:
        """Bounds on the sum of many rounding errors hold."""
        random = np.random.default_rng(1)
        index = np.arange(4)
        shares = random.dirichlet([50, 3, 2, 1], 1000)
        assert_told([(index, share, 1) for share in shares], 512)


def assert_told(laws: Sequence[tuple[NDArray[np.int64], FloatArray, int]], size: int) -> None:
    with precision(BITS):
        expected, least = power([(i.tolist(), share.tolist(), count) for i, share, count in laws])
        assert_near(convolved(laws, size), expected, least, size)


class TestDeclaredErrors:
    """Transforms as wrong as they are declared to be: seen ones are far better, and would hide a
    radius that is too small."""

    @pytest.mark.parametrize("sign", [1.0, -1.0])
    @pytest.mark.parametrize("count", [1, 40])
    @pytest.mark.parametrize("size", [27, 256])
    def test_back(
        self, size: int, count: int, sign: float, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        right = fft.irfft

        def wrong(spectrum: NDArray[np.complex128], size: int) -> FloatArray:
            whole = [*spectrum, *spectrum[1 : size - len(spectrum) + 1]]
            off = fft_radius(size) * float(np.abs(whole).sum()) / size
            return np.asarray(right(spectrum, size) + sign * 0.99 * off)

        monkeypatch.setattr(fft, "irfft", wrong)
        assert_told([(np.array([0, 1]), np.array([1 - 1e-6, 1e-6]), count)], size)

    @pytest.mark.parametrize("turn", [1.0, -1.0, 1j])
    @pytest.mark.parametrize("count", [1, 1000])
    def test_a_forward_transform_may_err_by_its_radius(
        self, count: int, turn: complex, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        right = fft.rfft

        def wrong(values: FloatArray) -> NDArray[np.complex128]:
            off = fft_radius(len(values)) * float(np.abs(values).sum())
            return np.asarray(right(values) + turn * 0.99 * off)

        monkeypatch.setattr(fft, "rfft", wrong)
        monkeypatch.setattr(spectrum, "_TRANSFORM", 0)
        share = np.array([0.2, 0.3, 0.5])
        assert_told([(np.array([0, 1, 5]), share, count)], 128)


class TestTilted:
    """A tilted share, times what all add up to, bounds the mass that it stands for."""

    @pytest.mark.parametrize("side", Side)
    @pytest.mark.parametrize("seed", range(4))
    def test_each_mass(self, seed: int, side: Side) -> None:
        """Both factors of a tilted mass far from 1, and so their rounding largest."""
        random = np.random.default_rng(seed)
        tilt, step, offset = 37.3, 0.1 + 1e-3 * random.random(), 0.01 * random.random()
        index = np.arange(160)
        mass = np.exp(-tilt * step * index + random.uniform(-3, 0, len(index)))
        points = Points(index, mass, 0.0, step, offset)
        found = TiltedSum.of([(points, 1)], tilt, side)
        with precision(200):
            whole = exact(found.log_total).exp()
            for place, share in enumerate(found.share):
                loss = exact(offset) + int(index[place]) * exact(step)
                seen = exact(share) * whole * (-exact(tilt) * loss).exp()
                assert (
                    seen >= exact(mass[place]) if side is Side.UPPER else seen <= exact(mass[place])
                )


class TestSumRadius:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("length", [1, 3, 100, 1000])
    def test_by_balls(self, kind: str, length: int) -> None:
        random = np.random.default_rng(length)
        size, shares = 2**15 - 7, np.array([numbers(kind, length)])
        index = random.integers(-size, size, length)
        places = np.unique(random.integers(0, size // 2, 20))
        expected = _LawRows(index, 0, shares, np.zeros(1), np.zeros(1), np.ones(1))
        real, imaginary, radius = _summed(expected, places, size)
        assert radius == sum_radius(length)
        with precision(128):
            for seen, place in zip(zip(real[0], imaginary[0], strict=True), places, strict=True):
                true = acb(0)
                for at, share in zip(index.tolist(), shares[0], strict=True):
                    true += acb(exact(Fraction(-2 * at * int(place), size))).exp_pi_i() * exact(
                        share
                    )
                assert abs(acb(*map(exact, seen)) - true) <= exact(radius)


class TestRows:
    @given(st.lists(st.floats(-60, 0), min_size=2, max_size=40))
    def test_no_digits_of_a_rest_are_lost(self, logs: list[float]) -> None:
        share = np.exp(np.array(logs))
        share /= share.sum()
        rows = _LawRows.of(np.arange(len(share)), np.array([share]), np.ones(1))
        whole = sum((Fraction(one) for one in share.tolist()), Fraction(0))
        assert abs(Fraction(rows.excess[0]) - (whole - 1)) <= Fraction(1, 2**90)
        rest = whole - Fraction(share.max())
        off = abs(Fraction(rows.rest[0]) - rest)
        assert off <= Fraction(ROUND) * (4 * rest + 4 * abs(whole - 1))


def binomial(share: Sequence[float], count: int) -> list[arb]:
    """The masses of 0, 1, ... of the second kind, as far as they are above nothing."""
    first, second = map(exact, share)
    term, found = first**count, []
    for k in range(count + 1):
        found.append(term)
        term *= exact(Fraction(count - k, k + 1)) * second / first
        if k > 2 * count * share[1] + 10 and term < arb(2) ** -300:
            break
    return found


class TestAtWorst:
    """Arithmetic that is off by all that is declared, always to the same side."""

    @pytest.mark.parametrize("side", Side)
    def test_logarithms_and_exponentials(self, side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
        sign = 1 if side is Side.UPPER else -1

        def off(
            exact_one: Callable[[FloatArray], FloatArray],
        ) -> Callable[[FloatArray], FloatArray]:
            return lambda x: exact_one(x) - sign * 4 * np.spacing(np.abs(exact_one(x)))

        points = Points(np.array([600]), np.array([math.exp(-600)]), 0.0, 1.0, 0.0)
        with monkeypatch.context() as patch:
            patch.setattr(np, "log", off(np.log))
            patch.setattr(np, "exp", off(np.exp))
            found = TiltedSum.of([(points, 1000)], 1.0, side).log_total
        with precision(BITS):
            true = 1000 * (exact(float(points.mass[0])).log() + 600)
            assert sign * (exact(found) - true) >= 0

    @pytest.mark.parametrize("place", [0, 5, 40])
    def test_a_transform(self, place: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """A wide law, whose transform is small nearly everywhere: errors there count in full."""
        size, width = 4096, 3000
        index, share = np.arange(width), np.full(width, 1 / width)
        turns = np.exp(-2j * math.pi * place * np.arange(size // 2 + 1) / size)
        plain = fft.rfft

        def off(values: FloatArray) -> NDArray[np.complex128]:
            worst = fft_radius(len(values)) * np.abs(values).sum() * turns
            return np.asarray(plain(values) + worst)

        monkeypatch.setattr(spectrum, "_TURN", 1 << 40)  # by transforms, and not by sums
        monkeypatch.setattr(fft, "rfft", off)
        convolution = convolved([(index, share, 1)], size)
        missed = np.roll(convolution.mass, convolution.shift % size) * math.exp(
            convolution.log_whole
        )
        missed[:width] -= share
        assert np.abs(missed).max() > fft_radius(size) / 2  # the error is there
        assert np.abs(missed).max() <= convolution.radius


def test_radius_grows_with_size() -> None:
    radii: NDArray[np.float64] = np.array([fft_radius(2**k) for k in range(22)])
    assert (np.diff(radii) > 0).all()
    assert radii[-1] < 1e-13
