"""The discrete Gaussian: its table, its refusals and their bound, against direct sums by balls."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from flint import acb, arb
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from discreet._exact import ball, precision
from discreet.audit import ScriptedBits, SeededBits
from discreet.noise import DiscreteGaussianLaw, RoundedGaussianLaw, SecureBits, _discrete_gaussian

BITS = 192  # three times what the table is made with
SIGMAS = [Fraction(s) for s in ("1e-3", "0.3", "1", "7.7", "33", "64")]
by_sigma = pytest.mark.parametrize("sigma", SIGMAS, ids=str)
FULL = 1 << 64


@cache
def chances(sigma: Fraction) -> list[arb]:
    """exp(-k^2 / (2 sigma^2)) for k = 0, 1, ..., until they matter to nobody."""
    with precision(BITS + 64):
        last = math.ceil(20 * sigma) + 6  # exp(-200) < 2^-288
        return [ball(-(Fraction(k) ** 2) / (2 * sigma**2)).exp() for k in range(last + 1)]


@cache
def tails(sigma: Fraction) -> list[arb]:
    """P(|X| >= k) for k = 0, 1, ..., each a sum of its own; what is left out lies below 2^-280."""
    with precision(BITS + 64):
        left_out = arb(2) ** -280
        of = chances(sigma)
        beyond, found = left_out.union(arb(0)), []
        for chance in of[:0:-1]:
            beyond += chance
            found.append(beyond)
        total = 1 + 2 * beyond
        return [arb(1), *(2 * one / total for one in reversed(found))]


def test_the_sums_are_those_of_jacobis_theta() -> None:
    """By Poisson's formula the chances' sum is sigma sqrt(2 pi) sum exp(-2 (pi sigma k)^2)."""
    for sigma in SIGMAS[1:]:
        with precision(BITS):
            total = 1 + 2 * sum(chances(sigma)[1:], arb(0))
            s = ball(sigma)
            dual = 1 + 2 * sum(((-2 * (arb.pi() * s * k) ** 2).exp() for k in range(1, 40)), arb(0))
            other = s * (2 * arb.pi()).sqrt() * dual
            assert abs(total - other) < 1e-50 * other


@by_sigma
def test_every_threshold_lies_among_its_edges_words(sigma: Fraction) -> None:
    edges, true = _discrete_gaussian._edges(sigma), tails(sigma)
    assert edges.first.dtype == edges.last.dtype == np.uint64
    assert (edges.first <= edges.last).all()
    assert (np.diff(edges.first.astype(object)) >= 0).all()
    assert (np.diff(edges.last.astype(object)) >= 0).all()
    with precision(BITS):
        for k, (first, last) in enumerate(
            zip(edges.first.tolist(), edges.last.tolist(), strict=True), 1
        ):
            threshold = (1 - true[k]) * arb(2) ** 64
            assert first <= threshold
            assert threshold <= last + 1 or last == FULL - 1
            assert threshold < last + 1 or k > 9 * sigma
        assert edges.last[-1] == FULL - 1  # and with it all further thresholds stay open
        beyond = true[min(edges.first.size + 1, len(true) - 1)]
        assert beyond * arb(2) ** 64 < 1


@by_sigma
def test_the_edges_are_not_needlessly_wide(sigma: Fraction) -> None:
    """The share of words that they leave open, and the width of each."""
    edges = _discrete_gaussian._edges(sigma)
    widths = (edges.last - edges.first).astype(np.float64)
    assert widths.sum() / FULL < 1e-5


@pytest.mark.parametrize("bits", [1, 2, 16, 63, 64, 80, 200])
@by_sigma
def test_the_tables_tails_are_direct_sums(sigma: Fraction, bits: int) -> None:
    found, true = _discrete_gaussian._tails(sigma, bits), tails(sigma)
    assert found.steps == len(found.thresholds) >= 1
    with precision(BITS + 64):
        for k, threshold in enumerate(found.thresholds, 1):
            if k < len(true):
                assert threshold.overlaps(1 - true[k])
            assert threshold.rad() < 2.0 ** -(bits + 50)
        assert 1 - found.thresholds[-1] < arb(2) ** -bits
        assert all(1 - threshold >= arb(2) ** -bits for threshold in found.thresholds[:-1])


@pytest.mark.parametrize("exponent", [6, 50, 100, 200, 400, 900])
@pytest.mark.parametrize("bits", [1, 64, 128])
def test_the_tails_of_tiny_sigmas(exponent: int, bits: int) -> None:
    found = _discrete_gaussian._tails(Fraction(1, 10**exponent), bits)
    with precision(256):
        assert all(1 - threshold < arb(2) ** -bits for threshold in found.thresholds)
    law = DiscreteGaussianLaw(Fraction(1, 10**exponent))
    # words that leave U next to 0, then some that don't
    script = [0] * 32 + [1 << 60] * 32
    assert not law.draws(ScriptedBits(script), 32).any()


@dataclass(frozen=True)
class TableReference:
    """The outcome for given digits: a sign, and how many tails U lies below."""

    sigma: Fraction

    def outcome(self, numerator: int, size: int) -> int | None:
        digits = size - 1
        u = numerator & (1 << digits) - 1
        with precision(BITS):
            low, high = ball(Fraction(u, 1 << digits)), ball(Fraction(u + 1, 1 << digits))
            true = tails(self.sigma)[1:]
            above = sum(bool(tail >= high) for tail in true)
            below = sum(bool(tail <= low) for tail in true)
        if above + below < len(true):
            return None
        return -above if above and numerator >> digits else above


@by_sigma
def test_the_tables_words_are_decided_as_the_reference_does(sigma: Fraction) -> None:
    table, reference = _discrete_gaussian._TableLaw(sigma), TableReference(sigma)
    rest = np.random.default_rng(1)
    with precision(BITS):
        edges = [
            int((tail * arb(2) ** 63).floor().unique_fmpz() or 0) for tail in tails(sigma)[1:30]
        ]
    words = [
        int(word) + sign * (1 << 63)
        for on in edges[:: max(1, len(edges) // 4)]
        for off in (-(1 << 22), -3, -1, 0, 1, 2, 1 << 22)
        for sign in (0, 1)
        if 0 <= (word := on + off) < 1 << 63
    ] + rest.integers(0, FULL, 25, dtype=np.uint64).tolist()
    values, left = table.resolve_many(np.array(words, dtype=np.uint64), 64)
    for place, word in enumerate(words):
        true = reference.outcome(word, 64)
        assert table.resolve(word, 64) == true
        assert place in left or values[place] == true


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10])
@pytest.mark.parametrize("sigma", [Fraction("0.3"), Fraction("7.7")], ids=str)
def test_every_word_of_a_few_digits(sigma: Fraction, size: int) -> None:
    table, reference = _discrete_gaussian._TableLaw(sigma), TableReference(sigma)
    words = np.arange(1 << size, dtype=np.uint64)
    values, left = table.resolve_many(words, size)
    for word in range(0, 1 << size, max(1, (1 << size) // 128)):
        true = reference.outcome(word, size)
        assert table.resolve(word, size) == true
        assert true == (None if word in left else values[word])


def refusal(sigma: Fraction, k: int) -> arb:
    """1 - r(k) / r(0), by the integrals of the density over [-1/2, 1/2], with and without the
    factor cosh(y t) for y = k / sigma^2 that the step from 0 to k brings."""
    y, rate = acb(ball(Fraction(k) / sigma**2)), acb(ball(-1 / (2 * sigma**2)))
    half = acb(ball(Fraction(1, 2)))
    plain = acb.integral(lambda t, _: (rate * t * t).exp(), acb(0), half)
    raised = acb.integral(lambda t, _: (rate * t * t).exp() * (y * t).cosh(), acb(0), half)
    return 1 - plain.real / raised.real


@pytest.mark.parametrize(
    ("sigma", "ks"),
    [
        ("0.05", (1, 2)),
        ("0.1", (1, 2, 5)),
        ("0.5", (1, 3, 10)),
        ("7.7", (1, 8, 50)),
        ("64", (1, 64, 700)),
        ("1e9", (1, 10**9, 10**10)),
        (str(2**60), (1, 2**60, 9 * 2**60)),
        (str(2**70), (2**70, 5 * 2**70)),
    ],
)
def test_the_threshold_of_refusing_is_the_ratios(sigma: str, ks: tuple[int, ...]) -> None:
    exact = Fraction(sigma)
    for k in ks:
        for bits in (64, 80, 128, 300):
            with precision(bits + 64):
                found = _discrete_gaussian._Rejection(exact, k).threshold(0)
            assert found.rad() < 2.0**-bits
            with precision(700):
                true = refusal(exact, k)
            assert true.rad() < 2.0**-320
            assert found.overlaps(true)


sigmas = st.one_of(
    st.fractions(Fraction(1, 1000), 2**20, max_denominator=1000),
    st.integers(-10, 70).map(lambda e: Fraction(3, 2) * Fraction(2) ** e),
)


@given(sigmas, st.integers(1, 10**6))
def test_the_loose_bound_bounds_the_refusal(sigma: Fraction, far: int) -> None:
    k = math.ceil(sigma * far / 10**5) or 1  # up to ten sigma
    y = Fraction(k) / sigma**2
    bound = y**2 / 24
    with precision(800):
        refusing = _discrete_gaussian._Rejection(sigma, k).threshold(0)
        assert refusing > 0
        assert not refusing > 1
        assert refusing < ball(bound)
        half = ball(y) / 2
        assert not refusing > 1 - half / half.sinh()
    certain, loose = _discrete_gaussian._loose(sigma, 16)
    assert Fraction(float(k) * float(k) * loose) >= bound * 65536
    assert (k <= certain) == (bound * 65536 <= 1) or k >= 2**63


@pytest.mark.parametrize(
    "exponent", [-900, -400, -100, -49, -50, -51, 0, 49, 50, 51, 75, 80, 400, 900]
)
def test_the_loose_float_is_above_the_bound_or_makes_no_difference(exponent: int) -> None:
    sigma = Fraction(10) ** exponent
    (_, found), exact = _discrete_gaussian._loose(sigma, 16), 65536 / (24 * sigma**4)
    assert math.isfinite(found)
    assert found > 0
    assert Fraction(found) >= exact or found > 10**195
    if Fraction(1, 10**190) < exact < 10**190:
        assert Fraction(found) <= exact * (1 + Fraction(1, 1 << 39))
    largest = float(1 << 63) ** 2 * found
    assert math.isfinite(largest)


@pytest.mark.parametrize("sigma", ["0.5", "3", "100", "1e6"])
def test_refusals_are_decided_by_the_digits(sigma: str) -> None:
    """V just below the threshold refuses, V just above keeps, V on it takes more digits."""
    law, exact = DiscreteGaussianLaw(Fraction(sigma)), Fraction(sigma)
    k = math.ceil(2 * exact)
    with precision(1500):
        true = _discrete_gaussian._Rejection(exact, k).threshold(0)
        on = int((true * arb(2) ** 64).floor().unique_fmpz() or 0)
        longer = int((true * arb(2) ** 128).floor().unique_fmpz() or 0) - (on << 64)
    for found in (k, -k):
        none = ScriptedBits([])
        assert not law._is_accepted(found, none, on - 1, 64)
        assert law._is_accepted(found, none, on + 1, 64)
        assert not law._is_accepted(found, ScriptedBits([longer - 1]), on, 64)
        assert law._is_accepted(found, ScriptedBits([longer + 1]), on, 64)
    assert law._is_accepted(0, ScriptedBits([]), 0, 64)


def test_a_refused_draw_is_made_again() -> None:
    law, rounded = DiscreteGaussianLaw(100), RoundedGaussianLaw(100)
    far = 1 << 40  # a word of a large magnitude
    outcome = rounded.draw(ScriptedBits([far]))
    assert outcome > 400
    near = 1 << 62 | 12345
    assert law.draw(ScriptedBits([far, 0, near, FULL - 1])) == rounded.draw(ScriptedBits([near]))
    assert law.draw(ScriptedBits([far, FULL - 1])) == outcome
    many = ScriptedBits([near, far, near, 0xFFFF_0000_FFFF, near + 1, FULL - 1])
    assert law.draws(many, 3).tolist() == [
        rounded.draw(ScriptedBits([n])) for n in (near, near + 1, near)
    ]


Draws = npt.NDArray[np.int64]


def false_alarm(found: Draws, sigma: Fraction) -> float:
    """A bound on the probability that honest draws look as bad as these."""
    sizes, true = np.abs(found), [float(tail) for tail in tails(sigma)]
    ks = range(1, min(len(true), max(4, math.ceil(6 * sigma))), max(1, math.ceil(sigma / 4)))
    events = [
        (int(np.sum(seen)), chance)
        for k in ks
        for seen, chance in (
            (sizes >= k, true[k]),
            (found >= k, true[k] / 2),
            (sizes == k, true[k] - true[k + 1]),
        )
    ]
    worst = min(
        min(binom.cdf(often, found.size, chance), binom.sf(often - 1, found.size, chance))
        for often, chance in events
    )
    return float(worst) * 2 * len(events)


@pytest.mark.parametrize("sigma", ["0.3", "1", "7.7", "64"])
def test_draws_fit_the_law_one_by_one_and_together(sigma: str) -> None:
    law, exact = DiscreteGaussianLaw(Fraction(sigma)), Fraction(sigma)
    bits = SecureBits()
    alone = np.array([law.draw(bits) for _ in range(6000)])
    assert false_alarm(alone, exact) >= 1e-9
    assert false_alarm(law.draws(bits, 200_000), exact) >= 1e-9
    few = np.concatenate([law.draws(bits, 31) for _ in range(100)])  # too few for the table
    assert false_alarm(few, exact) >= 1e-9
    wrong = DiscreteGaussianLaw(exact * Fraction(105, 100))
    assert false_alarm(wrong.draws(SeededBits(1), 20_000), exact) < 1e-3 or exact < 1
    rounded = RoundedGaussianLaw(exact).draws(bits, 200_000)
    assert exact > 1 or false_alarm(rounded, exact) < 1e-9  # those two laws differ


def test_draws_without_a_table_fit_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_discrete_gaussian, "_LARGEST_TABLE", 0)
    for sigma in SIGMAS[1:4]:
        draws = DiscreteGaussianLaw(sigma).draws(SecureBits(), 100_000)
        assert false_alarm(draws, sigma) >= 1e-9


def test_sigmas_above_the_tables() -> None:
    sigma = Fraction("64.01")
    draws = DiscreteGaussianLaw(sigma).draws(SecureBits(), 200_000)
    assert false_alarm(draws, sigma) >= 1e-9


@pytest.mark.parametrize("sigma", [2**61, 2**70, Fraction(10) ** 400])
def test_huge_sigmas_are_whole_numbers_of_python(sigma: int | Fraction) -> None:
    law = DiscreteGaussianLaw(sigma)
    draws = law.draws(SeededBits(1), 40)
    assert draws.dtype == (object if sigma > 2**62 else np.int64)
    assert all(type(outcome) is int for outcome in draws.tolist())
    assert sigma > 2**62 or all(abs(outcome) < 1 << 63 for outcome in draws.tolist())
    shares = np.array([float(outcome / Fraction(sigma)) for outcome in draws.tolist()])
    assert 0.5 < shares.std() < 1.5
    alone = law.draw(SeededBits(1))
    assert alone == RoundedGaussianLaw(sigma).draw(
        SeededBits(1)
    )  # refusals are as rare as 1 / sigma^2


@pytest.mark.parametrize("width", [1, 3, 8, 64])
def test_any_width_gives_the_law(width: int) -> None:
    law, bits = DiscreteGaussianLaw(2), SeededBits(6, width)
    found = np.array([law.draw(bits) for _ in range(1000)])
    assert false_alarm(found, Fraction(2)) >= 1e-6
    assert false_alarm(law.draws(bits, 1000), Fraction(2)) >= 1e-6
    many = DiscreteGaussianLaw(100).draws(bits, 1000)
    assert false_alarm(many, Fraction(100)) >= 1e-6
