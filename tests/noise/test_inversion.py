"""Draws against an independent reference: the same words, compared with whole-number thresholds."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.audit import OutOfWords, RecordingBits, ScriptedBits, SeededBits, ZeroNoiseBits
from discreet.noise import (
    BernoulliLaw,
    CategoricalLaw,
    DiscreteGaussianLaw,
    DiscreteLaplaceLaw,
    GeometricLaw,
    RoundedGaussianLaw,
    UniformLaw,
    _inversion,
)
from discreet.noise._max_norm import MaxNormLaw
from discreet.noise._staircase import StaircaseLaw
from tests.noise.reference import (
    FINE,
    GEOMETRIC,
    MANY,
    NARROW,
    SYMMETRIC,
    Reference,
    SymmetricLaw,
    TailLaw,
    random_laws,
)

WIDTH = 64
LATE = 1 << 15  # draws for which a guide is made

every_law = pytest.mark.parametrize("law", MANY, ids=repr)
every_narrow_law = pytest.mark.parametrize("law", NARROW, ids=repr)


class Counting:
    """Seeded words that are counted, as the code under test and the reference both take them."""

    def __init__(self, seed: int, width: int) -> None:
        self.inner, self.width, self.taken = SeededBits(seed, width), width, 0

    def word(self) -> int:
        self.taken += 1
        return self.inner.word()

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        return np.array([self.word() for _ in range(count)], dtype=np.uint64)

    def __iter__(self) -> Iterator[int]:
        while True:
            yield self.word()


def spread(law: TailLaw) -> int:
    """About how far from 0 it goes."""
    return round(1 / law.success) if isinstance(law, GeometricLaw) else round(law.stddev()) + 1


@every_law
@pytest.mark.parametrize("width", [1, 7, 64])
def test_a_draw_is_the_references(law: TailLaw, width: int) -> None:
    ours, theirs, reference = Counting(5, width), Counting(5, width), Reference(law)
    for _ in range(25 if width > 1 else 5):
        assert law.draw(ours) == reference.draw(iter(theirs), width)
        assert ours.taken == theirs.taken


@every_law
def test_a_draw_takes_hardly_more_words_than_it_needs(law: TailLaw) -> None:
    ours, reference = Counting(6, 64), Reference(law)
    needed = 0
    for seed in range(100):
        words = iter(SeededBits(seed).word, None)
        numerator, size = next(words), 64
        while reference.outcome(numerator, size) is None:
            numerator, size = numerator << 64 | next(words), size + 64
        needed += size // 64
        recorded = RecordingBits(SeededBits(seed))
        law.draw(recorded)
        ours.taken += len(recorded.seen)
    assert needed <= ours.taken <= needed + 1


@every_law
@pytest.mark.parametrize(("width", "count"), [(64, 300), (16, 200), (64, 8192 + 3)])
def test_many_plain_draws_are_the_references(law: TailLaw, width: int, count: int) -> None:
    if count > 1000 and law not in NARROW[:3]:
        return  # the second chunk is the same for all
    ours, theirs = Counting(11, width), Counting(11, width)
    draws = law.draws(ours, count)
    assert draws.tolist() == Reference(law).plain(iter(theirs), width, count)
    assert ours.taken == theirs.taken


@every_narrow_law
@pytest.mark.parametrize(
    ("width", "count"), [(64, LATE), (64, (1 << 16) + 5), (24, LATE), (8, LATE)]
)
def test_many_guided_draws_are_the_references(law: TailLaw, width: int, count: int) -> None:
    if (width, count) != (64, LATE) and law not in NARROW[3:5]:
        return
    ours, theirs = Counting(13, width), Counting(13, width)
    draws = law.draws(ours, count)
    assert draws.dtype == np.int64
    assert draws.tolist() == Reference(law).guided(iter(theirs), width, count)
    assert ours.taken == theirs.taken


def words_of(whole: int, depth: int) -> list[int]:
    """A sign + and this whole number of 2^-FINE, as words."""
    return [whole << WIDTH * i >> FINE & (1 << WIDTH) - 1 for i in range(1, depth + 1)]


@pytest.mark.parametrize("law", SYMMETRIC[1:9] + SYMMETRIC[10:], ids=repr)
@pytest.mark.parametrize("depth", [1, 2, 5])
def test_words_on_a_boundary_stay_open_until_they_leave_it(law: SymmetricLaw, depth: int) -> None:
    reference = Reference(law)
    for k in {1, 2, spread(law)}:
        whole = reference.threshold(k) >> 1  # the first digit is the sign
        words = [
            w & (1 << WIDTH - 1) - 1 if not i else w
            for i, w in enumerate(words_of(whole, depth + 1))
        ]
        on, last = words[:-1], words[-1]
        with pytest.raises(OutOfWords):
            law.draw(ScriptedBits(on))
        with pytest.raises(OutOfWords):
            law.draws(ScriptedBits([*on]), 1)
        for word, magnitude in ((last - 1, k), (last + 1, k - 1)):
            if not 0 <= word < 1 << WIDTH:
                continue
            for sign in (0, 1 << WIDTH - 1):
                script = [on[0] | sign, *on[1:], word, *[1 << WIDTH - 1] * 3]
                outcome = -magnitude if sign else magnitude
                assert law.draw(ScriptedBits(script)) == outcome
                assert law.draws(ScriptedBits(script), 1).tolist() == [outcome]


@pytest.mark.parametrize("law", [SYMMETRIC[3], SYMMETRIC[13], GEOMETRIC[1]], ids=repr)
def test_guided_words_on_a_boundary_are_decided_rightly(law: TailLaw) -> None:
    """All first digits the same, those of a tail, and then words around it."""
    reference = Reference(law)
    signs = 0 if isinstance(law, GeometricLaw) else 1
    whole = reference.threshold(1) >> signs
    cell, word = whole >> FINE - 16, whole >> FINE - 80 & (1 << WIDTH) - 1
    begun = [sum(cell << 16 * i for i in range(4))] * (LATE // 4)
    near = [min(max(word + i, 0), (1 << WIDTH) - 1) for i in range(-LATE // 2, LATE // 2)]
    far = [0x0123_4567_89AB_CDEF] * 100
    ours = RecordingBits(ScriptedBits([*begun, *near, *far]))
    draws = law.draws(ours, LATE)
    theirs = iter([*begun, *near, *far])
    assert draws.tolist() == reference.guided(theirs, WIDTH, LATE)
    assert len(set(draws.tolist())) == 2
    assert ours.seen == [*begun, *near, *far][: len(ours.seen)]
    assert len(ours.seen) > LATE // 4 + LATE  # the word that the tail lies in took another


@every_law
@pytest.mark.parametrize("zeros", [1, 2, 20])
def test_words_of_zeros_go_on_until_the_magnitude_is_known(law: TailLaw, zeros: int) -> None:
    head = [0] * zeros
    with pytest.raises(OutOfWords):
        law.draw(ScriptedBits(head))
    with pytest.raises(OutOfWords):
        law.draws(ScriptedBits(head), zeros)
    script = [*head, 0x8123_4567_89AB_CDEF, 5, 6]
    outcome = law.draw(ScriptedBits(script))
    assert outcome == Reference(law, 2000).draw(iter(script), WIDTH)
    if not isinstance(law, DiscreteLaplaceLaw | RoundedGaussianLaw) or spread(law) > 1:
        assert outcome > 0


@pytest.mark.parametrize("width", [1, 8, 16, 24, 64])
@pytest.mark.parametrize("scale", [Fraction(1, 10**400), Fraction(1, 3), 1, 10, 10**6, 2**70])
def test_words_of_ones_are_no_noise(width: int, scale: Fraction | int) -> None:
    kinds = (DiscreteLaplaceLaw, RoundedGaussianLaw, DiscreteGaussianLaw)
    for law in [kind(scale) for kind in kinds]:
        assert law.draw(ZeroNoiseBits(width)) == 0
        assert law.draws(ZeroNoiseBits(width), (2, 20)).tolist() == [[0] * 20] * 2
        if width == 24 and isinstance(scale, Fraction | int) and 1 < scale <= 64:
            assert not law.draws(ZeroNoiseBits(width), LATE).any()


@pytest.mark.parametrize("width", [1, 8, 24, 64])
@pytest.mark.parametrize("m", [1, 2, 3, 100, 255, 257, 10**6, 2**63, 2**63 + 1, 10**30])
def test_words_of_ones_are_the_uniform_number_0(width: int, m: int) -> None:
    """For every bound, so that draws can be replayed without noise."""
    law = UniformLaw(m)
    assert law.draw(ZeroNoiseBits(width)) == 0
    assert law.draws(ZeroNoiseBits(width), (2, 3)).tolist() == [[0] * 3] * 2


@pytest.mark.parametrize("top", [1, 2, 50, 99, 100])
def test_words_of_ones_are_no_noise_of_staircases_and_cubes(top: int) -> None:
    stair = StaircaseLaw(drop=Fraction(1, 3), width=100, top=top)
    assert stair.draw(ZeroNoiseBits()) == 0
    assert stair.draws(ZeroNoiseBits(), (2, 3)).tolist() == [[0] * 3] * 2
    assert MaxNormLaw(Fraction(top, 3), length=5).draws(ZeroNoiseBits()).tolist() == [0] * 5


@pytest.mark.parametrize("exponent", range(60, 71))
@pytest.mark.parametrize("kind", [DiscreteLaplaceLaw, RoundedGaussianLaw])
def test_outcomes_beyond_int64_are_whole_numbers_of_python(
    kind: type[SymmetricLaw], exponent: int
) -> None:
    law = kind(2**exponent)
    draws = law.draws(Counting(17, WIDTH), 60)
    wanted = Reference(law).plain(iter(Counting(17, WIDTH)), WIDTH, 60)
    assert draws.tolist() == wanted
    is_beyond = any(not -(1 << 63) < outcome < 1 << 63 for outcome in wanted)
    assert draws.dtype == (object if is_beyond else np.int64)
    assert all(type(outcome) is int for outcome in draws.tolist())
    if exponent >= 66:
        assert is_beyond


@pytest.mark.parametrize("sign", [0, 1])
def test_the_ends_of_int64(sign: int) -> None:
    """An outcome of 2^63 - 1 fits; one of 2^63, or -2^63, becomes an integer of Python."""
    law = DiscreteLaplaceLaw(2**62)
    reference = Reference(law)
    for k, kind in (((1 << 63) - 1, np.dtype(np.int64)), (1 << 63, np.dtype(object))):
        between = (reference.threshold(k) + reference.threshold(k + 1)) // 2
        words = words_of(between >> 1, 4)
        script = [words[0] & (1 << WIDTH - 1) - 1 | sign << WIDTH - 1, *words[1:]]
        draws = law.draws(ScriptedBits(script), 1)
        assert draws.tolist() == [-k if sign else k]
        assert draws.dtype == kind


@pytest.mark.parametrize("scale", [Fraction(10) ** 400, Fraction(2) ** 1023])
@pytest.mark.parametrize("kind", [DiscreteLaplaceLaw, RoundedGaussianLaw])
def test_huge_scales_are_exact(kind: type[SymmetricLaw], scale: Fraction) -> None:
    law = kind(scale)
    reference = Reference(law, 2400)
    ours = Counting(3, WIDTH)
    assert law.draws(ours, 3).tolist() == reference.plain(iter(Counting(3, WIDTH)), WIDTH, 3)
    assert law.draw(Counting(4, WIDTH)) == reference.draw(iter(Counting(4, WIDTH)), WIDTH)


@pytest.mark.parametrize("kind", [DiscreteLaplaceLaw, RoundedGaussianLaw, DiscreteGaussianLaw])
@pytest.mark.parametrize("scale", [Fraction(1, 10**400), Fraction(1, 10**9), Fraction(1, 1000)])
def test_tiny_scales_are_no_noise(
    kind: type[DiscreteLaplaceLaw | DiscreteGaussianLaw], scale: Fraction
) -> None:
    law = kind(scale)
    assert not law.draws(SeededBits(1), 1000).any()
    assert {law.draw(SeededBits(seed)) for seed in range(20)} == {0}


@pytest.mark.parametrize("digits", [10, 38, 39, 41, 400, 900])
def test_a_success_very_close_to_1_is_no_failure(digits: int) -> None:
    law = GeometricLaw(1 - Fraction(1, 10**digits))
    assert law.draws(SeededBits(1), 50).tolist() == [0] * 50
    assert law.draw(SeededBits(1)) == 0
    assert law.draws(SeededBits(1), LATE).any() == False  # noqa: E712  # NumPy's truth value


@pytest.mark.parametrize(
    "law",
    [
        DiscreteLaplaceLaw(3),
        RoundedGaussianLaw(1e9),
        GeometricLaw(1),
        BernoulliLaw(0.5),
        CategoricalLaw([1]),
        DiscreteGaussianLaw(3),
        DiscreteGaussianLaw(100),
    ],
    ids=repr,
)
@pytest.mark.parametrize("shape", [(), (0,), 0, 5, (2, 3), (0, 4), (3, 1, 40)])
def test_shapes(law: _inversion.Inverse, shape: int | tuple[int, ...]) -> None:
    draws = law.draws(SeededBits(1), shape)  # type: ignore[attr-defined]  # laws have it
    assert draws.shape == (shape if isinstance(shape, tuple) else (shape,))
    assert draws.dtype == np.int64
    assert draws.flags.writeable
    flat = law.draws(SeededBits(1), math.prod(draws.shape))  # type: ignore[attr-defined]
    assert draws.reshape(-1).tolist() == flat.tolist()


@dataclass(frozen=True)
class Stubborn:
    """A law that keeps its outcome, which is beyond int64 for some, for this many digits."""

    opens: int
    is_narrow: bool = True

    def resolve(self, numerator: int, size: int) -> int | None:
        return None if size < self.opens else numerator >> size - self.opens << 60

    def resolve_many(
        self, numerators: npt.NDArray[np.uint64], size: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.intp]]:
        return np.zeros(numerators.size, np.int64), np.arange(numerators.size)


@pytest.mark.parametrize(("width", "count"), [(64, 10), (64, LATE + 7), (8, 100), (16, LATE)])
@pytest.mark.parametrize("opens", [1, 90])
def test_no_digit_is_lost_or_used_twice(width: int, count: int, opens: int) -> None:
    """A draw that the law leaves open is decided later by all its digits, in the order drawn."""
    law = Stubborn(opens)
    recorded = RecordingBits(SeededBits(2, width))
    found = _inversion.draws(law, recorded, count).tolist()
    words = iter(recorded.seen)
    size = min(16, width)
    if count < LATE:
        begun = [(next(words), width) for _ in range(count)]
    else:
        packed = [next(words) for _ in range(-(-count // (width // size)))]
        first = [w >> size * i & (1 << size) - 1 for w in packed for i in range(width // size)]
        begun = [(n << width | next(words), size + width) for n in first[:count]]
    wanted = []
    for numerator, known in begun:
        n, length = numerator, known
        while length < opens:
            n, length = n << width | next(words), length + width
        wanted.append(n >> length - opens << 60)
    assert found == wanted
    assert next(words, None) is None


@given(
    st.integers(0, 2**32),
    st.sampled_from([1, 3, 8, 16, 24, 32, 63, 64]),
    st.integers(0, 300),
    st.integers(1, 16),
)
def test_digits_are_the_words_digits(seed: int, width: int, count: int, size: int) -> None:
    size = min(size, width)
    recorded = RecordingBits(SeededBits(seed, width))
    digits = _inversion.digits(recorded, count, size)
    pieces: Iterable[int] = (
        word >> size * i & (1 << size) - 1 for word in recorded.seen for i in range(width // size)
    )
    assert digits.tolist() == list(pieces)[:count]
    assert len(recorded.seen) == -(-count // (width // size))


some_words = st.lists(
    st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 2**64 - 1, 1 << 63])), max_size=3
)


@settings(max_examples=150)
@given(random_laws, st.integers(1, WIDTH), some_words, st.integers(0, 2**32))
def test_any_words_are_decided_as_the_reference_does(
    law: TailLaw, width: int, head: list[int], seed: int
) -> None:
    rest = SeededBits(seed, width)
    script = [w >> WIDTH - width for w in head] + [rest.word() for _ in range(600 // width + 6)]
    recorded = RecordingBits(ScriptedBits(script, width))
    outcome = law.draw(recorded)
    reference = Reference(law)
    numerator = 0
    for word in recorded.seen:
        numerator = numerator << width | word
    assert reference.outcome(numerator, width * len(recorded.seen)) == outcome
