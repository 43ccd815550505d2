"""Binomial counts: the very digits compared, in words of any width and in any number of steps."""

from collections.abc import Callable
from fractions import Fraction
from importlib import import_module

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, chi2

from discreet.audit import RecordingBits, SeededBits
from discreet.errors import InvalidArgument
from discreet.noise import BinomialLaw, SecureBits

binomial = import_module("discreet.noise._binomial")

widths = pytest.mark.parametrize("width", [1, 8, 13, 64])


@pytest.fixture(params=[None, 1, 3, 40])
def at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is, and with so few words at once that counts are split and blocks end anywhere."""
    if request.param is not None:
        monkeypatch.setattr(binomial, "_AT_ONCE", request.param)


@pytest.mark.usefixtures("at_once")
@widths
def test_ones_are_those_of_the_words_drawn(width: int) -> None:
    counts = np.array([0, 5, 0, 0, 64, 65, 1, 1000, 0, 63, 128, 0])
    recorded = RecordingBits(SeededBits(1, width))
    found = binomial._ones(counts, recorded)
    words = iter(recorded.seen)
    for count, ones in zip(counts.tolist(), found.tolist(), strict=True):
        own = "".join(f"{next(words):0{width}b}" for _ in range(-(-count // width)))
        assert ones == own[:count].count("1")
    assert next(words, None) is None


def successes_by_digits(n: int, p: Fraction, digit: Callable[[], int]) -> int:
    """Trial by trial: U < p, a digit at a time."""
    found = 0
    for _ in range(n):
        rest = p
        while rest:
            rest *= 2
            own = int(rest >= 1)
            rest -= own
            if (one := digit()) != own:
                found += one < own
                break
    return found


@pytest.mark.usefixtures("at_once")
@widths
@pytest.mark.parametrize("p", ["0.3", "1/3", "0.875", "1e-9", "0.999999"])
def test_counts_fit_the_law(width: int, p: str) -> None:
    n, law = 20, BinomialLaw(20, Fraction(p))
    assert_fits(law.draws(SeededBits(3, width), 800), n, float(Fraction(p)))


def test_the_trials_themselves_fit_the_law() -> None:
    """The test's own way, so that it is known to tell right from wrong."""
    digits = SeededBits(8, 1)
    by_trial = [successes_by_digits(20, Fraction(1, 3), digits.word) for _ in range(1500)]
    assert_fits(np.array(by_trial), 20, 1 / 3)
    with pytest.raises(AssertionError):
        assert_fits(np.array(by_trial), 20, 0.36)


def assert_fits(found: npt.NDArray[np.int64], n: int, p: float) -> None:
    assert found.dtype == np.int64
    assert found.min() >= 0
    assert found.max() <= n
    expected = binom.pmf(np.arange(n + 1), n, p) * found.size
    seen = np.bincount(found, minlength=n + 1)
    likely = expected >= 5
    terms = (seen[likely] - expected[likely]) ** 2 / expected[likely]
    statistic, freedom = terms.sum(), max(1, int(np.count_nonzero(likely)) - 1)
    assert chi2.sf(float(statistic), freedom) > 1e-6
    assert seen[~likely].sum() <= expected[~likely].sum() + 6 * expected[~likely].sum() ** 0.5 + 6


@pytest.mark.parametrize("width", [8, 64])
@pytest.mark.parametrize(("n", "p"), [(100, "0.3"), (10**6, "1/7"), (12345, "0.5"), (3, "0.01")])
def test_mean_and_variance(n: int, p: str, width: int) -> None:
    if width == 8:  # seeded ones are slow
        n = min(n, 500)
    share, draws = Fraction(p), 40 if n == 10**6 else 2000
    bits = SecureBits() if width == 64 else SeededBits(5, width)
    found = BinomialLaw(n, share).draws(bits, draws).astype(np.float64)
    mean, variance = float(n * share), float(n * share * (1 - share))
    assert abs(found.mean() - mean) <= 6.5 * (variance / draws) ** 0.5  # by chance: 1 in 10^10
    kurtosis = 3 + (1 - 6 * float(share * (1 - share))) / variance
    assert abs(found.var() - variance) <= 8 * variance * (kurtosis / draws) ** 0.5


@given(st.integers(0, 10**6), st.sampled_from([1, 8, 64]), st.booleans())
def test_sure_trials_take_no_words(n: int, width: int, succeeds: bool) -> None:
    recorded = RecordingBits(SeededBits(1, width))
    found = BinomialLaw(n, int(succeeds)).draws(recorded, 3)
    assert found.tolist() == [n * succeeds] * 3
    assert not recorded.seen


@pytest.mark.parametrize("p", [0, 0.3, 1])
@pytest.mark.parametrize("shape", [(), (0,), 0, 5, (2, 3)])
def test_no_trials_and_any_shape(p: float, shape: int | tuple[int, ...]) -> None:
    for n in (0, 7):
        found = BinomialLaw(n, p).draws(SeededBits(1), shape)
        assert found.dtype == np.int64
        assert found.shape == (shape if isinstance(shape, tuple) else (shape,))
        assert n or not found.any()
    assert BinomialLaw(0, p).draw(SeededBits(1)) == 0


def test_a_draw_takes_about_two_bits_a_trial() -> None:
    recorded = RecordingBits(SeededBits(1))
    BinomialLaw(64_000, Fraction(1, 3)).draw(recorded)
    assert 1900 < len(recorded.seen) < 2100


def test_a_tiny_probability_is_exact() -> None:
    """The first 332 digits of p are 0: a success must have drawn as many."""
    recorded = RecordingBits(SeededBits(1))
    assert BinomialLaw(10**6, Fraction(1, 10**100)).draw(recorded) == 0
    assert len(recorded.seen) < 40_000


Call = Callable[[], object]


@pytest.mark.parametrize(
    ("build", "named"),
    [
        (lambda: BinomialLaw(-1, 0.5), "n = -1: give"),
        (lambda: BinomialLaw(True, 0.5), "n = True: give"),
        (lambda: BinomialLaw(1.5, 0.5), r"n = 1\.5: give"),  # type: ignore[arg-type]
        (lambda: BinomialLaw((1 << 40) + 1, 0.5), r"n = 1099511627777: at most 2\^40"),
        (lambda: BinomialLaw(5, -0.5), r"probability = -0\.5: give"),
        (lambda: BinomialLaw(5, 1.5), r"probability = 1\.5: give a number from 0 to 1"),
        (lambda: BinomialLaw(5, float("nan")), "probability = nan: give"),
        (lambda: BinomialLaw(5, True), "probability = True: give"),
    ],
)
def test_bad_input_is_refused_by_name(build: Call, named: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{named}"):
        build()


def test_as_many_trials_as_there_may_be() -> None:
    assert BinomialLaw(1 << 40, 1).draw(SeededBits(1)) == 1 << 40
    assert BinomialLaw(1 << 40, 0).draw(SeededBits(1)) == 0
