"""Orders and samples: nothing twice, nothing missing, each as likely as any other."""

from collections import Counter
from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from discreet.audit import RecordingBits, ScriptedBits, SeededBits
from discreet.errors import InvalidArgument
from discreet.noise import SecureBits, permutation, sample_without_replacement

widths = st.sampled_from([1, 2, 5, 8, 64])


@given(st.integers(0, 300), widths, st.integers(0, 2**32))
def test_an_order_has_each_number_once(count: int, width: int, seed: int) -> None:
    order = permutation(count, SeededBits(seed, width))
    assert order.dtype == np.int64
    assert sorted(order.tolist()) == list(range(count))


@given(st.integers(0, 300), st.integers(0, 300), widths, st.integers(0, 2**32))
def test_a_sample_has_no_number_twice(one: int, other: int, width: int, seed: int) -> None:
    size, count = sorted((one, other))
    sample = sample_without_replacement(count, size, SeededBits(seed, width))
    assert sample.dtype == np.int64
    assert sample.shape == (size,)
    assert len(set(sample.tolist())) == size
    assert all(0 <= number < count for number in sample.tolist())


def assert_even(found: list[tuple[int, ...]], kinds: int) -> None:
    """Pearson's test; the draws are seeded, so that its answer never varies."""
    counts = Counter(found)
    assert len(counts) == kinds
    expected = len(found) / kinds
    statistic = sum((often - expected) ** 2 for often in counts.values()) / expected
    assert chi2.sf(statistic, kinds - 1) > 1e-6


@pytest.mark.parametrize("width", [1, 3, 64])
def test_all_orders_are_equally_likely(width: int) -> None:
    bits = SeededBits(2, width)
    found = [tuple(permutation(4, bits).tolist()) for _ in range(6000)]
    assert_even(found, len(list(permutations(range(4)))))


@pytest.mark.parametrize(
    ("count", "size", "kinds"), [(5, 2, 20), (3, 2, 6), (7, 2, 42), (6, 3, 120)]
)
@pytest.mark.parametrize("width", [4, 64])
def test_all_samples_are_equally_likely(count: int, size: int, kinds: int, width: int) -> None:
    bits = SeededBits(9, width)
    assert_even(
        [tuple(sample_without_replacement(count, size, bits).tolist()) for _ in range(6000)], kinds
    )


def order_by(*keys: int, then: list[int]) -> list[int]:
    """By words with these leading digits, and by these places among those of a tie that are left,
    all of which are used."""
    words = [key << 40 | 0x1234 for key in keys] + [(1 << 64) - 1 - place for place in then]
    recorded = RecordingBits(ScriptedBits(words))
    found: list[int] = permutation(len(keys), recorded).tolist()
    assert len(recorded.seen) == len(words)
    return found


def test_numbers_with_equal_words_are_exchanged() -> None:
    assert order_by(5, 5, 1, then=[1, 0]) == [2, 1, 0]
    assert order_by(5, 5, 5, then=[2, 0, 0]) == [2, 1, 0]
    assert order_by(5, 5, 5, then=[1, 1, 0]) == [1, 2, 0]
    assert order_by(1, 1, 8, 8, 4, then=[1, 0, 0, 0]) == [1, 0, 4, 2, 3]


@pytest.mark.parametrize("width", [1, 8, 62, 63, 64])
def test_no_number_is_lost_where_words_and_places_share_64_bits(width: int) -> None:
    for count in (1, 2, 3, 255, 256, 257, 1 << 12):
        order = permutation(count, SeededBits(5, width))
        np.testing.assert_array_equal(np.sort(order), np.arange(count))


def test_a_sample_is_the_start_of_a_list_without_repeats() -> None:
    """Words, counted from the last one down, are their own numbers modulo 1000."""
    script = [(1 << 64) - 1 - number for number in (7, 7, 8, 9, 7, 8, 10, 11)]
    assert sample_without_replacement(1000, 5, ScriptedBits(script)).tolist() == [7, 8, 9, 10, 11]


@pytest.mark.parametrize(("count", "size"), [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2), (10**15, 0)])
def test_the_smallest_samples(count: int, size: int) -> None:
    sample = sample_without_replacement(count, size, SecureBits())
    assert sample.dtype == np.int64
    assert sample.size == size


def test_a_few_of_very_many() -> None:
    recorded = RecordingBits(SeededBits(1))
    sample = sample_without_replacement(1 << 62, 1000, recorded)
    assert len(set(sample.tolist())) == 1000
    assert len(recorded.seen) == 1000


@pytest.mark.parametrize("count", [0, 1, 2])
def test_the_smallest_orders(count: int) -> None:
    assert sorted(permutation(count, SecureBits()).tolist()) == list(range(count))


@pytest.mark.parametrize(("count", "size"), [(1000.0, 5), (1000, 5.0), (1000, 900.0)])
def test_whole_floats_are_taken_or_refused_by_name(count: int, size: int) -> None:
    try:
        assert permutation(count, SeededBits(1)).size == count
        sample = sample_without_replacement(count, size, SeededBits(1))
    except InvalidArgument:
        return
    assert sample.size == size


Call = Callable[[], object]


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: permutation(-1, SeededBits(1)), "count = -1: give"),
        (lambda: permutation(True, SeededBits(1)), "count = True: give"),
        (lambda: permutation(1.5, SeededBits(1)), "count = 1.5: give"),  # type: ignore[arg-type]
        (lambda: permutation(float("nan"), SeededBits(1)), "count = nan: give"),  # type: ignore[arg-type]
        (lambda: sample_without_replacement(3, 4, SeededBits(1)), "size = 4: at most count = 3"),
        (lambda: sample_without_replacement(3, -1, SeededBits(1)), "size = -1: give"),
        (lambda: sample_without_replacement(-3, 1, SeededBits(1)), "count = -3: give"),
        (lambda: sample_without_replacement(3, True, SeededBits(1)), "size = True: give"),
        (lambda: sample_without_replacement(0, 1, SeededBits(1)), "size = 1: at most count = 0"),
    ],
)
def test_bad_input_is_refused_by_name(call: Call, named: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{named}"):
        call()
