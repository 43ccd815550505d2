"""Laws of steps: exact thresholds leave nothing open, balls leave open what they straddle."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet._exact import ball, precision
from discreet.audit import ScriptedBits, SeededBits
from discreet.errors import InvalidArgument
from discreet.noise import BernoulliLaw, CategoricalLaw, SecureBits, _choices, _steps, poisson_mask
from tests.noise.reference import ExponentialBernoulliLaw

FULL = 1 << 64


@dataclass(frozen=True)
class Exact:
    """Steps at these rationals."""

    thresholds: tuple[Fraction, ...]

    @property
    def steps(self) -> int:
        return len(self.thresholds)

    def threshold(self, step: int) -> Fraction:
        return self.thresholds[step]


@dataclass(frozen=True)
class Blurred:
    """The same, each known to this many bits only, however high the precision."""

    thresholds: tuple[Fraction, ...]
    known: int

    @property
    def steps(self) -> int:
        return len(self.thresholds)

    def threshold(self, step: int) -> arb:
        return ball(self.thresholds[step]) + arb(0, arb(2) ** -self.known)


def reached(law: Exact | Blurred, numerator: int, size: int) -> int | None:
    """How many thresholds [numerator, numerator + 1) / 2^size has reached, by fractions alone."""
    low, high = Fraction(numerator, 1 << size), Fraction(numerator + 1, 1 << size)
    by_low = sum(t <= low for t in law.thresholds)
    return by_low if by_low == sum(t < high for t in law.thresholds) else None


def settled(law: Exact | Blurred, words: list[int], size: int = 64) -> list[int | None]:
    values, left = _steps.resolve_many(_steps.edges(law), np.array(words, dtype=np.uint64), size)
    outcomes: list[int | None] = [int(outcome) for outcome in values]
    for place in left.tolist():
        outcomes[place] = None
    return outcomes


words64 = st.integers(0, FULL - 1)
dyadic = st.tuples(words64, st.integers(0, 64)).map(lambda t: Fraction(t[0] >> t[1], FULL >> t[1]))
near_a_word = st.tuples(words64, st.integers(-3, 3), st.integers(65, 90)).map(
    lambda t: min(max(Fraction(t[0], FULL) + Fraction(t[1], 1 << t[2]), Fraction(0)), Fraction(1))
)
thresholds = st.lists(
    st.one_of(
        dyadic,
        near_a_word,
        st.fractions(0, 1, max_denominator=10**9),
        st.sampled_from([Fraction(0), Fraction(1), Fraction(1, 2), Fraction(1, 3)]),
    ),
    max_size=12,
).map(lambda some: Exact(tuple(sorted(some))))


def telling(law: Exact, more: list[int]) -> list[int]:
    """Words at, beside and far from the thresholds."""
    at = [int(t * FULL) + i for t in law.thresholds for i in (-1, 0, 1)]
    return [min(max(word, 0), FULL - 1) for word in [*at, *more, 0, FULL - 1]]


@settings(max_examples=300)
@given(thresholds, st.lists(words64, max_size=5), st.integers(1, 64))
def test_exact_thresholds_leave_open_only_what_they_cut(
    law: Exact, more: list[int], size: int
) -> None:
    words = sorted({word >> 64 - size for word in telling(law, more)})
    for word, outcome in zip(words, settled(law, words, size), strict=True):
        true = reached(law, word, size)
        assert _steps.resolve(law, word, size) == true
        if outcome is not None:
            assert outcome == true
        elif true is not None:  # only beside a threshold of 0, which cuts nothing
            assert word == 0
            assert 0 in law.thresholds


@settings(max_examples=200)
@given(thresholds, st.lists(words64, max_size=5), st.integers(1, 64), st.integers(20, 140))
def test_balls_are_never_wrong(law: Exact, more: list[int], size: int, known: int) -> None:
    """Thresholds that are apart: equal ones may be blurred across each other, with no harm."""
    blurred = Blurred(law.thresholds, known)
    words = sorted({word >> 64 - size for word in telling(law, more)})
    for word, outcome in zip(words, settled(blurred, words, size), strict=True):
        low, high = (Fraction(n, 1 << size) for n in (word, word + 1))
        off = Fraction(1, 1 << known)
        may_be = {
            sum(t + off <= low for t in law.thresholds),
            sum(t - off < high for t in law.thresholds),
        }
        true = reached(law, word, size)
        assert outcome is None or {outcome} == may_be == {true}
        one = _steps.resolve(blurred, word, size)
        assert one is None or one == true


@pytest.mark.parametrize("word", [1, 5, 1 << 40, (1 << 63) - 1, 1 << 63, FULL - 1])
def test_a_dyadic_threshold_leaves_no_word_open(word: int) -> None:
    law = Exact((Fraction(word, FULL),))
    assert settled(law, [word - 1, word, min(word + 1, FULL - 1)]) == [0, 1, 1]
    assert [_steps.resolve(law, w, 64) for w in (word - 1, word)] == [0, 1]
    edges = _steps.edges(law)
    assert edges.first.tolist() == [word]
    assert edges.last.tolist() == [word - 1]


@pytest.mark.parametrize("word", [0, 1, 5, 1 << 63, FULL - 1])
def test_a_threshold_inside_a_word_leaves_that_one_open(word: int) -> None:
    for part in (Fraction(1, 1 << 200), Fraction(1, 3), 1 - Fraction(1, 10**50)):
        law = Exact(((word + part) / FULL,))
        before, after = max(word - 1, 0), min(word + 1, FULL - 1)
        wanted = [0 if word else None, None, 1 if word < FULL - 1 else None]
        assert settled(law, [before, word, after]) == wanted
        assert _steps.resolve(law, word, 64) is None
        assert _steps.resolve(law, word << 2 | 3, 66) == (1 if part <= Fraction(3, 4) else None)


@pytest.mark.parametrize("word", [1, 7, 1 << 40, 1 << 63, FULL - 1])
@pytest.mark.parametrize("known", [70, 100, 158])
def test_a_ball_over_a_words_boundary_leaves_both_words_open(word: int, known: int) -> None:
    law = Blurred((Fraction(word, FULL),), known)
    after = [word + 1] if word < FULL - 1 else []
    before = [word - 2] if word > 1 else []
    wanted = [*([0] * len(before)), None, None, *([1] * len(after))]
    assert settled(law, [*before, word - 1, word, *after]) == wanted
    for size in (64, 128):
        for numerator in ((word << size - 64) - 1, word << size - 64):
            assert _steps.resolve(law, numerator, size) is None


def test_a_blurred_threshold_of_0_or_1_stays_within_the_words() -> None:
    law = Blurred((Fraction(0), Fraction(1)), 70)
    assert settled(law, [0, 1, FULL - 2, FULL - 1]) == [None, 1, 1, None]


def test_a_wide_ball_opens_every_word_that_it_touches() -> None:
    law = Blurred((Fraction(1, 2),), 60)
    half = FULL // 2
    words = [half - 18, half - 17, half - 16, half, half + 15, half + 16, half + 17]
    assert settled(law, words)[0] == 0
    assert settled(law, words)[-1] == 1
    assert settled(law, words)[2:5] == [None] * 3


@pytest.mark.parametrize("size", [1, 3, 64])
def test_thresholds_at_the_ends(size: int) -> None:
    last = (1 << size) - 1
    zeros, ones = Exact((Fraction(0),) * 3), Exact((Fraction(1),) * 3)
    assert [_steps.resolve(zeros, w, size) for w in (0, last)] == [3, 3]
    assert [_steps.resolve(ones, w, size) for w in (0, last)] == [0, 0]
    assert settled(zeros, [last], size) == [3]
    assert settled(ones, [0, last], size) == [0, 0]
    assert _steps.edges(ones).first.size == 0
    assert settled(Exact(()), [0, last], size) == [0, 0]
    assert _steps.resolve(Exact(()), 0, size) == 0


def test_many_thresholds_inside_one_word() -> None:
    word = 12345 << 40
    law = Exact(tuple((word + Fraction(i, 1001)) / FULL for i in range(1, 1001)))
    assert settled(law, [word - 1, word, word + 1]) == [0, None, 1000]
    assert _steps.resolve(law, word, 64) is None
    for i in (0, 1, 500, 1000):
        middle = (word + Fraction(2 * i + 1, 2002)) / FULL
        assert _steps.resolve(law, int(middle * 2**200), 200) == i


def test_edges_are_sorted_and_made_once() -> None:
    assert _choices._edges(BernoulliLaw(0.3)) is _choices._edges(BernoulliLaw(Fraction(3, 10)))
    law = CategoricalLaw([Fraction(1, 3), 0, 0, 2, Fraction(1, 7)])
    edges = law.edges()
    assert law.edges() is edges
    assert (np.diff(edges.first.astype(object)) >= 0).all()
    assert (np.diff(edges.last.astype(object)) >= 0).all()


def outcomes_at(law: BernoulliLaw | ExponentialBernoulliLaw, *scripts: list[int]) -> list[int]:
    alone = [law.draw(ScriptedBits(script)) for script in scripts]
    together = [int(law.draws(ScriptedBits(script), 1)[0]) for script in scripts]
    assert alone == together
    return alone


def test_a_coin_falls_by_the_words_beside_its_threshold() -> None:
    quarter = BernoulliLaw(0.25)
    edge = 3 << 62
    assert outcomes_at(quarter, [edge - 1], [edge], [0], [FULL - 1]) == [0, 1, 0, 1]
    third = BernoulliLaw(Fraction(1, 3))
    on = FULL * 2 // 3  # 0.1010... in binary: 2/3 lies inside this word, and the next, and ...
    assert outcomes_at(third, [on - 1], [on + 1]) == [0, 1]
    assert outcomes_at(third, [on, on, on - 1], [on, on, on + 1]) == [0, 1]
    for law, outcome in ((BernoulliLaw(0), 0), (BernoulliLaw(1), 1)):
        assert outcomes_at(law, [1], [FULL // 2], [FULL - 1]) == [outcome] * 3
        assert law.draws(SecureBits(), 50_000).tolist() == [outcome] * 50_000
        assert law.draw(ScriptedBits([0])) == outcome


@pytest.mark.parametrize("x", ["1e-30", "1e-3", "0.3", "1", "40", "44.5", "1000"])
def test_the_exponential_coin_falls_by_exp(x: str) -> None:
    law, exact = ExponentialBernoulliLaw(Fraction(x)), Fraction(x)
    with precision(4000):  # from the series of exp(-x), not by expm1
        true = 1 - (-ball(exact)).exp()
        digits = int((true * arb(2) ** 1792).floor().unique_fmpz() or 0)
    words = [digits >> 1792 - 64 * i & FULL - 1 for i in range(1, 29)]
    for depth in (0, 1, 3, 27):
        head, last = words[:depth], words[depth]
        if last:
            assert outcomes_at(law, [*head, last - 1]) == [0]
        if last < FULL - 1:
            assert outcomes_at(law, [*head, last + 1]) == [1]


def test_the_exponential_coins_ends() -> None:
    assert ExponentialBernoulliLaw(0).draws(SeededBits(1), 40_000).all()
    assert ExponentialBernoulliLaw(0).draw(ScriptedBits([0])) == 1
    for x in (10**9, Fraction(10) ** 900):
        law = ExponentialBernoulliLaw(x)
        assert not law.draws(SeededBits(1), 40_000).any()
        assert outcomes_at(law, [FULL - 1, FULL - 1, 7], [0]) == [0, 0]
    tiny = ExponentialBernoulliLaw(Fraction(1, 10**900))
    assert tiny.draws(SeededBits(1), 40_000).all()
    assert outcomes_at(tiny, [0, 0, 7], *([[0] * 46 + [7]]), [1]) == [1, 0, 1]


@pytest.mark.parametrize(
    "weights",
    [
        [1],
        [0, 0, 3, 0],
        [10**300, 1, 10**300],
        [Fraction(1, 10**200), 10**200],
        [0.1, 0.2, 0.7],
        [1] * 7,
        [1, 0, 0, 0, 1],
    ],
    ids=lambda weights: str(weights)[:30],
)
def test_a_weighted_choice_is_by_sums(weights: list[int | float | Fraction]) -> None:
    law = CategoricalLaw(weights)
    exact = [Fraction(str(w)) if isinstance(w, float) else Fraction(w) for w in weights]
    sums = [total / sum(exact) for total in accumulate(exact)][:-1]
    same = Exact(tuple(sums))
    assert [law.threshold(i) for i in range(law.steps)] == sums
    words = telling(same, [i * FULL // 97 for i in range(97)])
    for numerator in words:
        assert law.resolve(numerator, 64) == reached(same, numerator, 64)
    found = set(law.draws(SeededBits(1), 40_000).tolist())
    assert found <= {i for i, weight in enumerate(weights) if weight}


def test_a_choice_among_very_many() -> None:
    law = CategoricalLaw(range(1, 100_001))
    draws = law.draws(SeededBits(3), 3000)
    total, seeded = 100_000 * 100_001 // 2, SeededBits(3)
    for outcome in draws.tolist():
        u = Fraction(seeded.word(), FULL)
        assert outcome * (outcome + 1) <= 2 * u * total < (outcome + 1) * (outcome + 2)
    assert law.draw(ScriptedBits([FULL // 3])) == 57734
    assert law.draws(ScriptedBits([FULL // 3]), 1).tolist() == [57734]


def test_weights_in_an_array_and_big_ones() -> None:
    whole = CategoricalLaw(np.array([3, 0, 5]).tolist())
    assert whole == CategoricalLaw([3, 0, 5]) != CategoricalLaw([6, 0, 10])
    big = CategoricalLaw([2**2000 - 1, 1])
    assert not big.draws(SeededBits(1), 40_000).any()
    assert big.draw(ScriptedBits([FULL - 1] * 32)) == 1
    assert "_sums" not in repr(whole)


Build = Callable[[], object]


@pytest.mark.parametrize(
    ("build", "named"),
    [
        (lambda: BernoulliLaw(float("nan")), r"probability = nan: give"),
        (lambda: BernoulliLaw(-0.1), r"probability = -0\.1: give"),
        (lambda: BernoulliLaw(1.0000001), r"probability = 1\.0000001: give a number from 0 to 1"),
        (lambda: BernoulliLaw(True), r"probability = True: give"),
        (lambda: BernoulliLaw("0.5"), r"probability = '0\.5': give"),  # type: ignore[arg-type]
        (lambda: ExponentialBernoulliLaw(-1), r"x = -1: give"),
        (lambda: ExponentialBernoulliLaw(float("inf")), r"x = inf: give"),
        (lambda: ExponentialBernoulliLaw(float("nan")), r"x = nan: give"),
        (lambda: ExponentialBernoulliLaw(False), r"x = False: give"),
        (lambda: CategoricalLaw([]), r"weights: give at least one"),
        (lambda: CategoricalLaw([0, 0.0]), r"weights: give at least one"),
        (lambda: CategoricalLaw([1, -1]), r"weights\[1\] = -1: give"),
        (lambda: CategoricalLaw([float("nan")]), r"weights\[0\] = nan: give"),
        (lambda: CategoricalLaw([1, 2, True]), r"weights\[2\] = True: give"),
        (lambda: CategoricalLaw([float("inf"), 2]), r"weights\[0\] = inf: give"),
        (lambda: poisson_mask(2, 5, SeededBits(1)), r"rate = 2: give a number from 0 to 1"),
        (lambda: poisson_mask(float("nan"), 5, SeededBits(1)), r"rate = nan: give"),
        (lambda: poisson_mask(0.5, -1, SeededBits(1)), r"count = -1: give"),
        (lambda: poisson_mask(0.5, True, SeededBits(1)), r"count = True: give"),
        (lambda: poisson_mask(0.5, 1.5, SeededBits(1)), r"count = 1\.5: give"),  # type: ignore[arg-type]
    ],
)
def test_bad_input_is_refused_by_name(build: Build, named: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{named}"):
        build()


def test_a_poisson_sample_has_its_rate() -> None:
    mask = poisson_mask(0.125, 1 << 18, SeededBits(4))
    assert mask.dtype == np.bool_
    assert abs(mask.mean() - 0.125) < 6 * (0.125 * 0.875) ** 0.5 / (1 << 9)
    assert poisson_mask(0.5, 0, SeededBits(1)).shape == (0,)
    assert not poisson_mask(0, 50_000, SeededBits(1)).any()
    assert poisson_mask(1, 50_000, SeededBits(1)).all()
