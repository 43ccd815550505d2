"""Batches have the law that their terms state, by enumeration."""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy.stats import binom

from discreet._unit import Change
from discreet.accounting import (
    Gaussian,
    PoissonSampled,
    RandomAllocation,
    SampledWithoutReplacement,
    Shuffled,
    TruncatedPoisson,
)
from discreet.noise import Bits, SecureBits
from discreet.train._plans._sampling import (
    AllocatedBatches,
    PoissonSampling,
    Sampling,
    SamplingSize,
    ShuffledBatches,
    SizeDeclaration,
    TruncatedPoissonSampling,
    WithoutReplacement,
)
from tests.noise.walk import Record, assert_exact, assert_refuted, forget, walk

Batches = tuple[tuple[int, ...], ...]
STEP = Gaussian(2)


@pytest.fixture(autouse=True)
def _anew() -> None:
    forget()


def drawn(sampling: Sampling, size: SamplingSize, count: int) -> Callable[[Bits], Batches]:
    """A round's batches."""
    return lambda bits: tuple(
        tuple(int(place) for place in batch) for batch in sampling.round(size, count, bits)
    )


def only_term(sampling: Sampling, size: SamplingSize) -> object:
    [(term, times)] = sampling.privacy_loss(STEP, size, sampling.round_steps(size)).terms
    assert times == 1
    return term


# Each law from the numbers of the very term that prices it


def poisson_law(term: PoissonSampled, count: int) -> Callable[[Batches], Fraction]:
    def chance(batches: Batches) -> Fraction:
        [batch] = batches
        assert list(batch) == sorted(set(batch))
        taken = len(batch)
        return term.rate**taken * (1 - term.rate) ** (count - taken)

    return chance


def truncated_law(term: TruncatedPoisson, count: int) -> Callable[[Batches], Fraction]:
    def chance(batches: Batches) -> Fraction:
        [batch] = batches
        whole, rate = len(batch), term.rate
        if whole > term.most:
            return Fraction(0)
        alone = rate**whole * (1 - rate) ** (count - whole)
        if whole < term.most:
            return alone
        more = (
            comb(count - whole, size - whole)
            * rate**size
            * (1 - rate) ** (count - size)
            / comb(size, whole)
            for size in range(whole + 1, count + 1)
        )
        return alone + sum(more)

    return chance


def fixed_law(term: SampledWithoutReplacement) -> Callable[[Batches], Fraction]:
    size, whole = int(term.sample), int(term.population)

    def chance(batches: Batches) -> Fraction:
        [batch] = batches
        is_one = len(set(batch)) == len(batch) == size and set(batch) <= set(range(whole))
        return Fraction(1, comb(whole, size)) if is_one else Fraction(0)

    return chance


def allocated_law(term: RandomAllocation, count: int) -> Callable[[Batches], Fraction]:
    def chance(batches: Batches) -> Fraction:
        is_whole = sorted(place for batch in batches for place in batch) == list(range(count))
        is_one = len(batches) == term.steps and is_whole
        return Fraction(1, term.steps**count) if is_one else Fraction(0)

    return chance


@pytest.mark.parametrize(
    ("records", "batch", "count"), [(3, 1, 2), (5, 2, 2), (2, 1, 3), (4, 4, 2)]
)
def test_poisson(records: int, batch: int, count: int, record_property: Record) -> None:
    size = SamplingSize(records, batch)
    term = only_term(PoissonSampling(), size)
    assert isinstance(term, PoissonSampled)
    assert term.rate == Fraction(batch, records)
    tree = walk(drawn(PoissonSampling(), size, count), 4, 4 if count < 3 else 3)
    assert_exact(tree, poisson_law(term, count), 0.3, record_property)


@pytest.mark.parametrize(("most", "count"), [(1, 2), (2, 2), (2, 3), (1, 3)])
def test_truncated_poisson(most: int, count: int, record_property: Record) -> None:
    size, sampling = SamplingSize(4, 2), TruncatedPoissonSampling(most=most)
    term = only_term(sampling, size)
    assert isinstance(term, TruncatedPoisson)
    assert (term.rate, int(term.most), int(term.records)) == (Fraction(1, 2), most, 4)
    tree = walk(drawn(sampling, size, count), 2, 6)
    assert_exact(tree, truncated_law(term, count), 0.4, record_property)


@pytest.mark.parametrize(("records", "batch"), [(4, 1), (4, 2), (3, 2), (2, 2)])
def test_without_replacement(records: int, batch: int, record_property: Record) -> None:
    size = SamplingSize(records, batch)
    term = only_term(WithoutReplacement(), size)
    assert isinstance(term, SampledWithoutReplacement)
    assert (int(term.sample), int(term.population)) == (batch, records)
    tree = walk(drawn(WithoutReplacement(), size, records), 3, 5)
    assert_exact(tree, fixed_law(term), 0.3, record_property)


@pytest.mark.parametrize(
    ("records", "batch", "count"), [(4, 2, 3), (3, 1, 2), (5, 2, 2), (2, 2, 3)]
)
def test_allocated(records: int, batch: int, count: int, record_property: Record) -> None:
    size = SamplingSize(records, batch)
    term = only_term(AllocatedBatches(), size)
    assert isinstance(term, RandomAllocation)
    assert term.steps == -(-records // batch)
    if term.steps == 1:
        assert drawn(AllocatedBatches(), size, count)(SecureBits()) == ((0, 1, 2),)
        return
    tree = walk(drawn(AllocatedBatches(), size, count), 3, 4)
    assert_exact(tree, allocated_law(term, count), 0.3, record_property)


def test_shuffled(record_property: Record) -> None:
    """Not counted on, and fair all the same."""
    size = SamplingSize(3, 2)
    assert only_term(ShuffledBatches(), size) == Shuffled(STEP)
    tree = walk(drawn(ShuffledBatches(), size, 3), 4, 3)

    def chance(batches: Batches) -> Fraction:
        first, second = batches
        is_one = len(first) == 2 and len(second) == 1 and {*first, *second} == {0, 1, 2}
        return Fraction(1, 3) if is_one else Fraction(0)

    assert_exact(tree, chance, 0.3, record_property)


# The proof's own power: a wrong law is refuted


def test_another_rate_is_refuted() -> None:
    tree = walk(drawn(PoissonSampling(), SamplingSize(5, 2), 2), 4, 4)
    assert_refuted(tree, poisson_law(PoissonSampled(STEP, Fraction(1, 3)), 2))


def test_the_first_ones_in_place_of_any_are_refuted() -> None:
    size, sampling = SamplingSize(4, 2), TruncatedPoissonSampling(most=1)

    def first(bits: Bits) -> Batches:
        [batch] = PoissonSampling().round(size, 3, bits)
        return (tuple(batch[:1].tolist()),)

    assert_refuted(walk(first, 2, 6), truncated_law(only_term(sampling, size), 3))  # type: ignore[arg-type]


def test_a_shuffle_priced_as_allocation_is_refuted() -> None:
    tree = walk(drawn(ShuffledBatches(), SamplingSize(3, 2), 3), 4, 3)
    assert_refuted(tree, allocated_law(RandomAllocation(STEP, 2), 3))


# At 64 bits, and with sizes that are not as declared

FRESH: list[Sampling] = [PoissonSampling(), TruncatedPoissonSampling(most=50)]


@pytest.mark.parametrize("sampling", FRESH, ids=repr)
@pytest.mark.parametrize("count", [0, 1, 900, 1000, 1100])
def test_the_data_may_have_another_size(sampling: Sampling, count: int) -> None:
    """Each record has the plan's rate, whatever the number of them."""
    size, bits = SamplingSize(1000, 20), SecureBits()
    sizes = [sampling.round(size, count, bits)[0].size for _ in range(500)]
    total = sum(sizes)
    assert min(binom.cdf(total, 500 * count, 0.02), binom.sf(total - 1, 500 * count, 0.02)) > 1e-9
    assert count > 0 or total == 0


@pytest.mark.parametrize("mean", [30, 11])
def test_a_truncated_batch_never_has_more(mean: int) -> None:
    """Of a sample of 11, which one in eight is if that is the mean, one is left out: that no sample
    of 200 is has a chance below 1e-11."""
    sampling, size, bits = TruncatedPoissonSampling(most=10), SamplingSize(100, mean), SecureBits()
    for _ in range(200):
        [batch] = sampling.round(size, 100, bits)
        assert batch.size <= 10
        assert (np.diff(batch) > 0).all()


def test_an_epoch_has_each_once() -> None:
    bits = SecureBits()
    for sampling in (ShuffledBatches(), AllocatedBatches()):
        batches = sampling.round(SamplingSize(103, 10), 103, bits)
        assert len(batches) == 11 == sampling.round_steps(SamplingSize(103, 10))
        assert sorted(np.concatenate(batches).tolist()) == list(range(103))
    sizes = [batch.size for batch in ShuffledBatches().round(SamplingSize(103, 10), 103, bits)]
    assert sizes == [10] * 10 + [3]


def test_pairs_come_together_as_they_should() -> None:
    """Without replacement, each pair is as likely as any other."""
    bits, pairs = SecureBits(), dict.fromkeys(combinations(range(5), 2), 0)
    for _ in range(4000):
        [batch] = WithoutReplacement().round(SamplingSize(5, 2), 5, bits)
        pairs[tuple(batch.tolist())] += 1
    worst = max(pairs.values())
    assert binom.sf(worst - 1, 4000, 0.1) > 1e-10


SAMPLINGS = [
    AllocatedBatches(),
    PoissonSampling(),
    ShuffledBatches(),
    TruncatedPoissonSampling(most=1),
    WithoutReplacement(),
]


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_a_round_that_was_begun_costs_as_much_as_a_whole_one(sampling: Sampling) -> None:
    size = SamplingSize(10, 3)
    term, whole = only_term(sampling, size), sampling.round_steps(size)
    assert whole in (1, 4)
    for steps in range(1, 3 * whole + 1):
        assert sampling.privacy_loss(STEP, size, steps).terms == ((term, -(-steps // whole)),)


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_the_exact_number_is_asked_for_only_where_neighbours_share_it(sampling: Sampling) -> None:
    """Since it is compared before anything is paid."""
    assert sampling.declared is not SizeDeclaration.EXACT or sampling.change is Change.REPLACE
