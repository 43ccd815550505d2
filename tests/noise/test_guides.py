"""Guides have the outcomes of all words in a cell, and what is remembered is small and public."""

from fractions import Fraction
from functools import _lru_cache_wrapper

import numpy as np
import pytest

from discreet.noise import (
    BernoulliLaw,
    CategoricalLaw,
    DiscreteLaplaceLaw,
    RoundedGaussianLaw,
    SecureBits,
    _choices,
    _discrete_gaussian,
    _inversion,
    _laws,
    _quantiles,
    _steps,
)
from tests.noise.reference import NARROW, ExponentialBernoulliLaw, Reference, TailLaw

LATE = 1 << 15  # draws for which a guide is made

every_narrow_law = pytest.mark.parametrize("law", NARROW, ids=repr)

Guided = _inversion.Inverse
GUIDED: list[Guided] = [
    *NARROW,
    BernoulliLaw(Fraction(1, 3)),
    BernoulliLaw(Fraction(5, 8)),
    ExponentialBernoulliLaw(Fraction(1, 7)),
    CategoricalLaw([3, 0, 1, Fraction(1, 7), 0, 10**30]),
    CategoricalLaw(list(range(1, 400))),
    _discrete_gaussian._TableLaw(Fraction("2.5")),
    _discrete_gaussian._TableLaw(Fraction(64)),
]


@pytest.mark.parametrize("law", GUIDED, ids=lambda law: repr(law)[:40])
@pytest.mark.parametrize("size", [16, 5])
def test_a_guides_cell_has_the_outcome_of_both_its_ends_and_of_all_within(
    law: Guided, size: int
) -> None:
    guide = _inversion._guide(law, size)
    assert guide.shape == (1 << size,)
    assert size < 16 or np.count_nonzero(guide == _inversion._OPEN) < 1 << 14
    cells = np.flatnonzero(guide != _inversion._OPEN)
    if not cells.size:
        return  # none of 32 cells is narrow enough
    seeded = np.random.default_rng(3)
    chosen = np.unique(np.concatenate([cells[[0, -1]], seeded.choice(cells, 400)]))
    turns = cells[1:][np.diff(guide[cells]) != 0]
    for cell in np.union1d(chosen, turns[:200]).tolist():
        first, last = cell << 200 - size, (cell + 1 << 200 - size) - 1
        inside = first | int(seeded.integers(0, 1 << 62)) << 100
        for numerator in (first, inside, last):
            outcome = law.resolve(numerator, 200)
            assert outcome in {guide[cell], None}
            if outcome is None:  # a threshold at the cell's very end: of probability 0
                assert numerator in {first, last}


@every_narrow_law
def test_a_guide_is_open_only_where_an_outcome_changes(law: TailLaw) -> None:
    guide, reference = _inversion._guide(law, 16), Reference(law)
    for cell in np.flatnonzero(guide == _inversion._OPEN)[:300].tolist():
        assert reference.outcome(cell, 16) is None
    outcomes = len(np.unique(guide))
    assert np.count_nonzero(guide == _inversion._OPEN) <= 4 * outcomes + 4


def test_guides_are_shared_among_equal_laws_bounded_and_fixed() -> None:
    one = _inversion._guide(DiscreteLaplaceLaw(2.5), 16)
    assert _inversion._guide(DiscreteLaplaceLaw(Fraction(5, 2)), 16) is one
    assert _inversion._guide(RoundedGaussianLaw(2.5), 16) is not one
    assert _inversion._guide(_discrete_gaussian._TableLaw(Fraction("2.5")), 16) is not one
    assert one.nbytes == 1 << 19
    with pytest.raises(ValueError, match="read-only"):
        one[0] = 0
    assert _inversion._guide.cache_info().maxsize == 8  # 4 MiB of guides at most


def test_every_cache_is_bounded() -> None:
    modules = (_choices, _discrete_gaussian, _inversion, _laws, _quantiles, _steps)
    caches = {
        name: found
        for module in modules
        for name, found in vars(module).items()
        if isinstance(found, _lru_cache_wrapper)
    }
    assert {"_guide", "_edges", "_tails", "_laplace"} <= set(caches)
    unbounded = {name for name, found in caches.items() if found.cache_info().maxsize is None}
    assert unbounded == {"_table", "_rows"}  # of the two quantile functions, and no others
    assert all((found.cache_info().maxsize or 0) <= 64 for found in caches.values())


def test_caches_are_small() -> None:
    edges = _steps.edges(CategoricalLaw([1] * 4096))
    assert edges.first.nbytes + edges.last.nbytes <= 1 << 16  # times 16 laws: 1 MiB
    table = _discrete_gaussian._edges(Fraction(64))
    assert table.first.nbytes + table.last.nbytes < 11_000


def test_a_secure_source_is_never_a_key() -> None:
    """A guide knows the law alone; the draws made with it don't change it."""
    law = DiscreteLaplaceLaw(Fraction("3.25"))
    law.draws(SecureBits(), LATE)
    guide = _inversion._guide(law, 16)
    before = guide.copy()
    law.draws(SecureBits(), LATE)
    assert _inversion._guide(law, 16) is guide
    np.testing.assert_array_equal(guide, before)
