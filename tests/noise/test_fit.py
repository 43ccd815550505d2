"""Many draws at 64 bits against the law: a false alarm has a probability below 10^-9.

Each event (an outcome of at most t, a magnitude of at least k, ...) is counted, and its count's
exact binomial tail is multiplied by the number of tails looked at. The same test has to reject a
scale that is a little wrong; the draws for that are seeded, so that its answer never varies.
"""

from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom

from discreet.audit import SeededBits
from discreet.exact import precision
from discreet.noise import Bits, DiscreteLaplaceLaw, Law, RoundedGaussianLaw, SecureBits, draw
from tests.noise.test_laws import LAWS

ALPHA = 1e-9
Draws = npt.NDArray[np.int64]


def draws(law: Law, bits: Bits, count: int) -> Draws:
    return np.array([draw(law, bits) for _ in range(count)], dtype=np.int64)


def chance_beyond(law: Law, magnitude: int) -> float:
    with precision(128):
        return float(law.tail(magnitude)) if magnitude > 0 else 1.0


def false_alarm(found: Draws, law: Law) -> float:
    """A bound on the probability that honest draws look as bad as these."""
    step = max(1, round(law.stddev() / 5))
    sizes, pairs = np.abs(found), found[: len(found) // 2 * 2].reshape(-1, 2)
    events = []  # (how often, of how many, chance)
    for k in range(1, 16 * step, step):
        beyond = chance_beyond(law, k)
        events.append((np.sum(sizes >= k), len(found), beyond))
        events.append((np.sum(found >= k), len(found), beyond / 2))
        events.append((np.sum(found <= -k), len(found), beyond / 2))
        events.append((np.sum(np.all(pairs >= k, axis=1)), len(pairs), beyond**2 / 4))
        events.append((np.sum(np.all(np.abs(pairs) >= k, axis=1)), len(pairs), beyond**2))
    worst = min(
        min(binom.cdf(often, of, chance), binom.sf(often - 1, of, chance))
        for often, of, chance in events
    )
    return float(worst) * 2 * len(events)


@pytest.mark.parametrize("scale", ["1", "2.5", "1000"])
@pytest.mark.parametrize("kind", LAWS)
def test_draws_fit_their_law(kind: type[Law], scale: str) -> None:
    law = kind(Fraction(scale))  # type: ignore[call-arg]  # a protocol's type
    assert false_alarm(draws(law, SecureBits(), 20_000), law) >= ALPHA


@pytest.mark.parametrize(
    ("law", "wrong", "count"),
    [
        (DiscreteLaplaceLaw(Fraction(10)), DiscreteLaplaceLaw(Fraction("10.5")), 100_000),
        (DiscreteLaplaceLaw(Fraction(10)), DiscreteLaplaceLaw(Fraction("9.5")), 100_000),
        (RoundedGaussianLaw(Fraction(10)), RoundedGaussianLaw(Fraction("10.5")), 60_000),
        (RoundedGaussianLaw(Fraction(10)), RoundedGaussianLaw(Fraction("9.5")), 60_000),
    ],
)
def test_a_scale_5_percent_wrong_is_rejected(law: Law, wrong: Law, count: int) -> None:
    assert false_alarm(draws(wrong, SeededBits(1), count), law) < ALPHA


@pytest.mark.parametrize(("kind", "other"), [LAWS, LAWS[::-1]])
def test_the_other_law_is_rejected(kind: type[Law], other: type[Law]) -> None:
    law = kind(Fraction(10))  # type: ignore[call-arg]
    alike = other(Fraction(str(round(law.stddev(), 3))))  # type: ignore[call-arg]
    assert false_alarm(draws(alike, SeededBits(1), 20_000), law) < ALPHA


def test_a_repeated_word_is_rejected() -> None:
    law = RoundedGaussianLaw(Fraction(10))
    once = draws(law, SeededBits(1), 10_000)
    assert false_alarm(np.repeat(once, 2), law) < ALPHA


@pytest.mark.long
@pytest.mark.parametrize(
    ("law", "wrong"),
    [
        (DiscreteLaplaceLaw(Fraction(100)), DiscreteLaplaceLaw(Fraction(101))),
        (RoundedGaussianLaw(Fraction(100)), RoundedGaussianLaw(Fraction(101))),
    ],
)
def test_a_scale_1_percent_wrong_is_rejected(law: Law, wrong: Law) -> None:
    assert false_alarm(draws(law, SecureBits(), 1_000_000), law) >= ALPHA
    assert false_alarm(draws(wrong, SeededBits(1), 2_000_000), law) < ALPHA
