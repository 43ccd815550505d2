"""Each draw decides what the law says for every U that its words leave open."""

from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from discreet.audit import OutOfWords, RecordingBits, ScriptedBits, SeededBits, ZeroNoiseBits
from discreet.exact import ball, precision
from discreet.noise import DiscreteLaplaceLaw, Law, RoundedGaussianLaw, draw
from tests.noise.test_laws import LAWS, laws

MANY = [kind(Fraction(s)) for kind in LAWS for s in ("1/3", "1", "2.5", "10", "1000", "1e15")]
WIDTH = 64


def assert_decided_rightly(law: Law, outcome: int, words: list[int], width: int) -> None:
    """The outcome's U-interval, by the law's tails at high precision, holds all that is open."""
    numerator, size = words[0] >> 1, width - 1
    for word in words[1:]:
        numerator, size = numerator << width | word, size + width
    k = abs(outcome)
    with precision(4 * size + 512):
        assert law.tail(k + 1) <= ball(Fraction(numerator, 1 << size))
        assert k == 0 or ball(Fraction(numerator + 1, 1 << size)) <= law.tail(k)
    assert outcome == 0 or (outcome < 0) == bool(words[0] & 1)


@given(
    laws,
    st.integers(1, WIDTH),
    st.lists(st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 2**64 - 1])), max_size=4),
    st.integers(0, 2**32),
)
def test_a_decided_outcome_is_right(law: Law, width: int, head: list[int], seed: int) -> None:
    tail = SeededBits(seed, width)
    script = [word >> (WIDTH - width) for word in head] + [
        tail.word() for _ in range(400 // width + 4)
    ]
    recorded = RecordingBits(ScriptedBits(script, width))
    outcome = draw(law, recorded)
    assert_decided_rightly(law, outcome, recorded.words, width)


def digits_of(number: arb, count: int) -> list[int]:
    """A first word for the sign + and this U, then the words that continue U."""
    first = int((number * (1 << WIDTH - 1)).floor().unique_fmpz() or 0)
    words, whole = [first << 1], first
    for place in range(1, count):
        longer = (number * (1 << WIDTH * (place + 1) - 1)).floor().unique_fmpz()
        assert longer is not None
        words.append(int(longer) - (whole << WIDTH))
        whole = int(longer)
    return words


@pytest.mark.parametrize("law", MANY, ids=repr)
@pytest.mark.parametrize("depth", [1, 2, 5])
def test_words_on_a_boundary_stay_open_until_they_leave_it(law: Law, depth: int) -> None:
    for k in {1, 2, round(law.stddev()) + 1}:
        with precision(4096):
            words = digits_of(law.tail(k), depth + 1)
        on, last = words[:-1], words[-1]
        with pytest.raises(OutOfWords):
            draw(law, ScriptedBits(on))
        resolution = 1 << 40  # in units of the last word; far finer than any other boundary
        for word, magnitude in ((last - resolution, k), (last + resolution, k - 1)):
            if 0 <= word < 1 << WIDTH:
                for sign in (0, 1):
                    script = [on[0] | sign, *on[1:], word]
                    assert draw(law, ScriptedBits(script)) == (-magnitude if sign else magnitude)


@pytest.mark.parametrize("law", MANY, ids=repr)
@pytest.mark.parametrize("zeros", [1, 2, 20])
def test_words_of_zeros_go_on_until_the_magnitude_is_known(law: Law, zeros: int) -> None:
    head = [0] * zeros
    with pytest.raises(OutOfWords):
        draw(law, ScriptedBits(head))
    recorded = RecordingBits(ScriptedBits([*head, 0x8123_4567_89AB_CDEF, 5, 6]))
    outcome = draw(law, recorded)
    assert outcome > 0
    assert len(recorded.words) > zeros
    assert_decided_rightly(law, outcome, recorded.words, WIDTH)


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("width", [1, 8, 64])
@pytest.mark.parametrize(
    "scale", [Fraction(1, 10**400), Fraction(1, 3), 1, 10, 10**6, 2**70, 10**30]
)
def test_words_of_ones_are_no_noise(kind: type[Law], width: int, scale: Fraction | int) -> None:
    law = kind(Fraction(scale))  # type: ignore[call-arg]  # a protocol's type
    assert draw(law, ZeroNoiseBits(width)) == 0


@pytest.mark.parametrize("law", MANY, ids=repr)
def test_nearly_every_draw_takes_one_word(law: Law) -> None:
    recorded = RecordingBits(SeededBits(7))
    for _ in range(200):
        draw(law, recorded)
    assert len(recorded.words) <= 201 + (law.stddev() > 1e12)


@pytest.mark.parametrize("scale", [Fraction(2) ** 500, Fraction(1, 10**400)])
@pytest.mark.parametrize("kind", LAWS)
def test_no_scale_is_too_extreme(
    kind: type[DiscreteLaplaceLaw | RoundedGaussianLaw], scale: Fraction
) -> None:
    recorded = RecordingBits(SeededBits(3))
    outcome = draw(kind(scale), recorded)
    assert_decided_rightly(kind(scale), outcome, recorded.words, WIDTH)
    assert (outcome == 0) == (scale < 1)
