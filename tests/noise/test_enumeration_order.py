"""The trees of permutations, shuffles and samples without replacement."""

from collections.abc import Callable

import numpy as np
import pytest

from discreet._arrays import IndexArray
from discreet.noise import Bits, UniformLaw, _order, permutation, sample_without_replacement
from tests.noise.walk import (
    Record,
    assert_exact,
    assert_refuted,
    independent,
    many,
    numbers,
    one,
    ordered,
    walk,
    weighted,
)


def orders(count: int) -> Callable[[Bits], tuple[int, ...]]:
    return lambda bits: numbers(permutation(count, bits))


def samples(count: int, size: int) -> Callable[[Bits], tuple[int, ...]]:
    return lambda bits: numbers(sample_without_replacement(count, size, bits))


@pytest.mark.parametrize(
    ("count", "width", "words", "sliver"),
    [
        (0, 2, 1, 1e-9),
        (1, 2, 1, 1e-9),
        (2, 1, 16, 0.004),
        (2, 2, 8, 0.004),
        (2, 4, 4, 0.004),
        (3, 2, 7, 0.075),
        (3, 3, 5, 0.06),
        (3, 4, 3, 0.18),
        (4, 2, 6, 0.49),
        (4, 3, 4, 0.6),
    ],
)
def test_each_order_has_its_probability(
    count: int, width: int, words: int, sliver: float, record_property: Record
) -> None:
    tree = walk(orders(count), width, words)
    assert_exact(tree, ordered(count, count), sliver, record_property)


def test_orders_are_alike_at_every_level() -> None:
    masses = walk(orders(3), 2, 6).decided
    assert len(masses) == 6
    assert len(set(masses.values())) == 1


@pytest.mark.parametrize(
    ("count", "size", "width", "words", "sliver"),
    [
        (0, 0, 2, 1, 1e-9),
        (3, 0, 2, 1, 1e-9),
        (1, 1, 2, 1, 1e-9),
        (2, 1, 3, 1, 1e-9),
        (3, 1, 3, 4, 0.004),
        (4, 2, 2, 6, 0.001),
        (5, 2, 3, 4, 0.24),
        (6, 3, 3, 4, 0.51),
        (3, 2, 2, 5, 0.21),
        (3, 3, 2, 5, 0.21),
    ],
)
def test_each_sample_has_its_probability(
    count: int, size: int, width: int, words: int, sliver: float, record_property: Record
) -> None:
    tree = walk(samples(count, size), width, words)
    assert_exact(tree, ordered(count, size), sliver, record_property)


# Planted bugs, each refuted by the same function


@pytest.mark.parametrize("count", [2, 3])
def test_ties_left_in_place_are_refuted(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = orders(count)
    monkeypatch.setattr(_order, "_drawn_in_turn", lambda tied, size, bits: np.arange(size))
    assert_refuted(walk(honest, 3, count), ordered(count, count))


def test_ties_in_pairs_only_are_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, drawn = orders(3), _order._drawn_in_turn

    def first_two(tied: int, size: int, bits: Bits) -> IndexArray:
        return np.concatenate([drawn(2, 2, bits), np.arange(2, size)])

    monkeypatch.setattr(_order, "_drawn_in_turn", first_two)
    assert_refuted(walk(honest, 1, 7), ordered(3, 3))


def test_the_rest_of_a_sample_drawn_from_all_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, drawn = samples(4, 2), _order._drawn_in_turn
    monkeypatch.setattr(
        _order, "_drawn_in_turn", lambda count, size, bits: drawn(count - 1, size, bits)
    )
    assert_refuted(walk(honest, 2, 4), ordered(4, 2))


@pytest.mark.parametrize(("m", "width"), [(3, 8), (6, 8), (255, 8), (1000, 5)])
def test_a_uniform_number_without_rejection_is_refuted(
    m: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(UniformLaw, "_multiple", lambda law, size: 1 << size)
    law, chance = UniformLaw(m), weighted(*[1] * m)
    assert_refuted(walk(one(law), width, 2), chance)
    assert_refuted(walk(many(law, 1), width, 2), independent(chance))


def test_a_sample_that_favours_what_it_has_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    def clipped(law: UniformLaw, size: int) -> int:
        return 1 << size

    monkeypatch.setattr(UniformLaw, "_multiple", clipped)
    assert_refuted(walk(samples(5, 2), 3, 4), ordered(5, 2))
