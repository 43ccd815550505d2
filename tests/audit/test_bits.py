"""The sources of words that are no secret."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.audit import OutOfWords, RecordingBits, ScriptedBits, SeededBits, ZeroNoiseBits
from discreet.errors import InvalidArgument
from discreet.mechanisms import DiscreteLaplace, Door, release_through
from discreet.noise import Bits
from tests.bad_values import BadValue
from tests.mechanisms.kit import FakePayer, number

widths = st.integers(1, 64)
counts = st.lists(st.none() | st.integers(0, 40), max_size=8)  # None: one word by itself

SOURCES: dict[str, Callable[[int], Bits]] = {
    "seeded": lambda width: SeededBits(1, width),
    "scripted": lambda width: ScriptedBits([i % 2**width for i in range(400)], width),
    "without noise": ZeroNoiseBits,
    "recording": lambda width: RecordingBits(SeededBits(1, width)),
}


@given(st.integers(-(2**70), 2**70), widths)
def test_a_seed_gives_the_same_words_and_another_gives_others(seed: int, width: int) -> None:
    one, same, other = (SeededBits(s, width) for s in (seed, seed, seed + 1))
    first, second, third = ([bits.word() for _ in range(128)] for bits in (one, same, other))
    assert first == second != third
    assert all(0 <= word < 1 << width for word in first)


def test_seeded_words_never_change() -> None:
    bits = SeededBits(1)
    words = [bits.word() for _ in range(2000)]
    assert (words[0], words[1999]) == (10749699804138165336, 5463434925441744937)
    assert len(set(words)) == 2000


@pytest.mark.parametrize("kind", SOURCES)
@given(widths, counts)
def test_an_array_holds_the_next_words(kind: str, width: int, sizes: list[int | None]) -> None:
    bits, one_by_one = SOURCES[kind](width), SOURCES[kind](width)
    drawn: list[int] = []
    for size in sizes:
        if size is None:
            drawn.append(bits.word())
        else:
            words = bits.words(size)
            assert (words.dtype, words.shape) == (np.dtype(np.uint64), (size,))
            drawn += words.tolist()
    assert drawn == [one_by_one.word() for _ in drawn]


def test_a_script_is_played_and_then_ends() -> None:
    bits = ScriptedBits([3, 0, 255], width=8)
    assert [bits.word() for _ in range(3)] == [3, 0, 255]
    for _ in range(2):
        with pytest.raises(OutOfWords, match="the script has 3 words, and one more was drawn"):
            bits.word()
        with pytest.raises(OutOfWords):
            bits.words(1)
        assert bits.words(0).size == 0


def test_a_script_too_short_for_an_array_says_so() -> None:
    with pytest.raises(OutOfWords, match="the script has 3 words, and one more was drawn"):
        ScriptedBits([3, 0, 255], width=8).words(4)


@pytest.mark.parametrize("words", [[256], [-1], [0.5], ["1"], [0, True]])
def test_a_script_holds_words_of_its_width(words: BadValue) -> None:
    with pytest.raises(InvalidArgument):
        ScriptedBits(words, width=8)


@given(widths)
def test_without_noise_means_ones(width: int) -> None:
    assert ZeroNoiseBits(width).word() == 2**width - 1


def test_a_record_is_replayed() -> None:
    recorded = RecordingBits(SeededBits(5, width=13))
    drawn = [*(recorded.word() for _ in range(4)), *recorded.words(5).tolist()]
    replayed = recorded.replay()
    assert recorded.seen == drawn == [replayed.word() for _ in range(9)]
    assert {type(word) for word in recorded.seen} == {int}
    assert recorded.width == replayed.width == 13
    with pytest.raises(OutOfWords):
        replayed.word()


@pytest.mark.parametrize("width", [0, -1, 65, 2.5, True, None])
def test_a_width_is_1_to_64(width: BadValue) -> None:
    for make in (lambda: SeededBits(1, width), lambda: ZeroNoiseBits(width)):
        with pytest.raises(InvalidArgument, match="width = "):
            make()
    with pytest.raises(InvalidArgument, match="width = "):
        ScriptedBits([], width)


def test_all_are_bits() -> None:
    every: list[Bits] = [make(64) for make in SOURCES.values()]
    assert [bits.width for bits in every] == [64] * 4


@pytest.mark.parametrize("kind", SOURCES)
def test_insecure_releases_say_so(kind: str) -> None:
    payer = FakePayer()
    door = Door(payer, SOURCES[kind](64), None)
    assert not door.is_secure
    answer = release_through(door, number(), DiscreteLaplace(1))
    assert answer.receipt.is_insecure
    assert repr(answer).startswith("INSECURE")
