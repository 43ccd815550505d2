"""Several choices at once: k best candidates, and the best of each group."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb

from discreet._exact import precision
from discreet._unit import Change
from discreet.accounting import BoundedRange, DiscreteLaplace, PrivacyLoss
from discreet.audit import SeededBits, ZeroNoiseBits
from discreet.errors import InvalidArgument, Refused
from discreet.mechanisms import Bounded, FloatArray, Sensitivity
from discreet.mechanisms.selection import BestOfEachGroup, Moves, TopK, TopKNoise
from discreet.mechanisms.selection._races import race_chance
from tests.bad_values import BadValue
from tests.mechanisms.kit import PERSON, lost
from tests.mechanisms.selection.kit import (
    ANYHOW,
    REPLACED,
    SETTINGS,
    Law,
    Scores,
    refutation,
    scores_of,
)
from tests.noise.walk import BITS, assert_exact, assert_refuted, e_to, walk
from tests.tables import one_in

NAMES = ("red", "blue", "green")
HALF = Fraction(1, 2)
ORDERS = list(itertools.permutations(range(3), 2))


def peeled(scores: Scores, order: tuple[int, ...], rate: Fraction) -> arb:
    """The chance of these choices: each has its share of the weights that are left."""
    with precision(BITS):
        weights = [e_to(rate * score) for score in scores]
        chance, left = arb(1), sum(weights, arb(0))
        for place in order:
            chance *= weights[place] / left
            left -= weights[place]
        return chance


def law(rate: Fraction) -> Law:
    def of(scores: Scores) -> FloatArray:
        return np.array([float(peeled(scores, order, rate)) for order in ORDERS])

    return of


def named(scores: Scores, rate: Fraction) -> Callable[[Any], arb]:  # Any: names
    return lambda found: peeled(scores, tuple(NAMES.index(name) for name in found), rate)


@pytest.mark.parametrize("scores", [(1, 0, 2), (0, 0, 3), (0, 90, -1)], ids=str)
def test_each_order_has_its_probability(scores: Scores) -> None:
    top = TopK(NAMES, 2, HALF)
    tree = walk(lambda bits: top.sample(np.array(scores), bits), 5, 2)
    assert_exact(tree, named(scores, HALF), 0.6, lambda *_: None)
    wrong = TopK(NAMES, 2, 1)
    tree = walk(lambda bits: wrong.sample(np.array(scores), bits), 5, 2)
    if scores[1] < 9:
        assert_refuted(tree, named(scores, HALF))


def test_drawing_gumbels_noise_at_once_is_the_same() -> None:
    """Sorting noisy scores against choosing one by one, by 200 000 draws of float noise: a share
    is off by 0.0075 in fewer than one of 10^9 runs (Hoeffding)."""
    rng, scores = np.random.default_rng(1), np.array([1, 0, 2])
    noisy = scores * 0.5 + rng.gumbel(size=(200_000, 3))
    order = np.argsort(-noisy, axis=1)[:, :2]
    for wanted in ORDERS:
        share = (order == wanted).all(axis=1).mean()
        assert abs(share - float(peeled((1, 0, 2), wanted, HALF))) < 0.0075


@pytest.mark.parametrize("name", SETTINGS)
def test_neighbours_lose_no_more_than_is_charged(name: str) -> None:
    setting = SETTINGS[name]
    loss = TopK(NAMES, 2, HALF, moves=setting.moves).privacy_loss(setting.scores())
    [(term, count)] = loss.terms
    assert isinstance(term, BoundedRange)
    assert count == 2
    assert refutation(law(HALF), setting, loss) is None
    assert refutation(law(Fraction(1)), setting, loss) is not None
    once = PrivacyLoss.of(term)
    if name in ("anyhow", "replaced", "far"):
        assert refutation(law(HALF), setting, once) is not None


def test_the_wanted_epsilon_is_reached() -> None:
    bounded = scores_of(3, ANYHOW)
    for noise, rate in ((TopKNoise.GUMBEL, Fraction(1, 4)), (TopKNoise.LAPLACE, Fraction(1, 3))):
        top = TopK.for_epsilon(1, bounded, NAMES, k=2, noise=noise)
        assert (top.rate, top.privacy_loss(bounded).epsilon()) == (rate, 1)


def test_with_a_delta_many_choices_cost_far_less() -> None:
    bounded = scores_of(200)
    loss = TopK(range(200), 100, 0.1).privacy_loss(bounded)
    assert loss.epsilon() == 10
    assert loss.epsilon(delta=1e-6) < 3


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("confidence", [0.5, 0.99])
def test_the_forecast_is_what_the_worst_scores_do(k: int, confidence: float) -> None:
    rate = Fraction(1, 40)
    error = TopK(NAMES, k, rate).error(confidence)

    def missed(gap: int) -> float:
        scores = tuple(gap if place < k else 0 for place in range(3))
        orders = itertools.permutations(range(k))
        return 1 - sum(float(peeled(scores, order, rate)) for order in orders)

    assert missed(error + 1) <= 1 - confidence
    assert missed(int(error * 0.97) + 1) > 1 - confidence


def test_no_other_scores_are_worse() -> None:
    rate, confidence = Fraction(1, 4), 0.8
    error = TopK(NAMES, 2, rate).error(confidence)
    for scores in itertools.product((0, error // 2, error + 1, 2 * error), repeat=3):
        second = sorted(scores)[1]
        far = sum(
            float(peeled(scores, order, rate))
            for order in ORDERS
            if min(scores[place] for place in order) < second - error
        )
        assert far <= 1 - confidence + 1e-12


def test_the_forecast_is_what_is_measured() -> None:
    """4000 draws: off by 0.052 in fewer than one of 10^9 runs (Hoeffding)."""
    top, bits = TopK(range(20), 3, 0.1), SeededBits(1)
    scores = np.where(np.arange(20) < 3, top.error(0.8) + 1, 0)
    found = [set(top.sample(scores, bits)) == {0, 1, 2} for _ in range(4000)]
    assert abs(found.count(False) / 4000 - 0.2) < 0.052


def test_the_wanted_error_is_reached() -> None:
    top = TopK.for_error(30, 0.9, range(9), k=3)
    assert top.error(0.9) <= 30 < TopK(range(9), 3, top.rate * Fraction(99, 100)).error(0.9)


def test_without_noise_the_best_come_first() -> None:
    scores = np.array([4, 9, -(2**62), 2**62, 9])
    assert TopK(range(5), 4, 2).sample(scores, ZeroNoiseBits()) == (3, 1, 4, 0)


@pytest.mark.parametrize("wrong", [0, 3, 4, -1, 1.5, True, "2", float("nan")], ids=repr)
def test_k_is_a_number_below_that_of_candidates(wrong: BadValue) -> None:
    with pytest.raises(InvalidArgument, match="k = "):
        TopK(NAMES, wrong, 1)
    with pytest.raises(InvalidArgument, match="k = "):
        TopK.for_epsilon(1, scores_of(3), NAMES, k=wrong)
    with pytest.raises(InvalidArgument, match="k = "):
        TopK.for_error(1, 0.9, NAMES, k=wrong)


def test_top_k_is_written_as_in_code() -> None:
    assert repr(TopK(NAMES[:2], 1, 0.1, moves=Moves.TOGETHER)) == (
        "TopK(('red', 'blue'), k=1, rate=0.1, moves=Moves.TOGETHER)"
    )
    with pytest.raises(Refused):
        TopK(NAMES, 1, 1, moves=Moves.TOGETHER).privacy_loss(scores_of(3, ANYHOW, REPLACED))


# Noise on all scores at once


def sorted_law(rate: Fraction) -> Law:
    """Of each order, by sums over the noise of the first two and the tails of the third's."""
    scale = float(1 / rate)
    noise = np.arange(-60, 61)
    mass = np.exp(-abs(noise) / scale) * np.tanh(0.5 / scale)

    def at_most(bound: FloatArray) -> FloatArray:
        p = np.exp(-1 / scale)
        below = np.exp(np.minimum(bound, -1) / scale) / (1 + p)
        above = 1 - np.exp(-np.maximum(bound + 1, 0) / scale) / (1 + p)
        return np.asarray(np.where(bound < 0, below, above))

    def of(scores: Scores) -> FloatArray:
        found = []
        for first, second in ORDERS:
            [third] = {0, 1, 2} - {first, second}
            one, two = scores[first] + noise[:, None], scores[second] + noise[None, :]
            is_ahead = one >= two if first < second else one > two
            spare = two - scores[third] - (0 if second < third else 1)
            chances = mass[:, None] * mass[None, :] * at_most(spare * np.ones(1))
            found.append(float(chances[is_ahead].sum()))
        return np.array(found)

    return of


@pytest.mark.parametrize("scores", one_in(2, [((1, 0, 2),), ((0, 0, 3),)]), ids=str)
def test_laplace_noise_gives_the_order_of_noisy_scores(scores: Scores) -> None:
    """20 000 draws: a share is off by 0.024 in fewer than one of 10^9 runs (Hoeffding)."""
    top, bits = TopK(NAMES, 2, HALF, noise=TopKNoise.LAPLACE), SeededBits(3)
    drawn = [top.sample(np.array(scores), bits) for _ in range(20_000)]
    chances = sorted_law(HALF)(scores)
    assert chances.sum() == pytest.approx(1, abs=1e-9)
    for order, chance in zip(ORDERS, chances, strict=True):
        share = drawn.count(tuple(NAMES[place] for place in order)) / 20_000
        assert abs(share - chance) < 0.024
    assert any(abs(sorted_law(Fraction(1))(scores) - chances) > 0.03)


@pytest.mark.parametrize("name", SETTINGS)
def test_neighbours_lose_no_more_than_noise_on_all_scores_costs(name: str) -> None:
    setting = SETTINGS[name]
    top = TopK(NAMES, 2, HALF, moves=setting.moves, noise=TopKNoise.LAPLACE)
    loss = top.privacy_loss(setting.scores())
    assert loss.terms == PrivacyLoss.of(DiscreteLaplace(2, setting.sensitivity.l1)).terms
    assert refutation(sorted_law(HALF), setting, loss) is None
    if name in ("one score", "one to another"):
        assert refutation(sorted_law(Fraction(3, 2)), setting, loss) is not None


@pytest.mark.parametrize("change", Change, ids=str)
@pytest.mark.parametrize("k", [1, 2, 5, 29])
def test_a_histogram_costs_epsilon_whatever_k_is(change: Change, k: int) -> None:
    """A unit counts in one place, so that it moves one count, or two if it is replaced."""
    unit = PERSON.with_change(change)
    l1 = 1 if change is Change.ADD_REMOVE else 2
    counts = scores_of(30, Sensitivity(l1=l1, linf=1), unit)
    top = TopK.for_epsilon(Fraction(1, 10), counts, range(30), k=k)
    assert top.privacy_loss(counts).epsilon() == 0.1
    assert top.rate == Fraction(1, 10 * l1)
    assert top.noise is (TopKNoise.GUMBEL if k == 1 else TopKNoise.LAPLACE)


def test_noise_with_the_smaller_error_is_taken() -> None:
    for l0, k in itertools.product((1, 2, 3, 7, 20), (1, 2, 3, 6)):
        counts = scores_of(20, Sensitivity(l0=l0, linf=1))
        made = [TopK.for_epsilon(1, counts, range(20), k=k, noise=noise) for noise in TopKNoise]
        taken = TopK.for_epsilon(1, counts, range(20), k=k)
        assert taken in made
        assert taken.error(0.95) == min(top.error(0.95) for top in made)
        assert taken.privacy_loss(counts).epsilon() == 1


def test_noise_is_chosen_at_any_epsilon() -> None:
    for epsilon in (Fraction(1, 10**300), Fraction(10**300)):
        top = TopK.for_epsilon(epsilon, scores_of(30), range(30), k=9)
        assert top.privacy_loss(scores_of(30)).terms
        assert top.noise is (TopKNoise.LAPLACE if epsilon < 1 else TopKNoise.GUMBEL)


def test_unequal_counts_lose_far_less() -> None:
    """The 20 largest of 1000 counts that fall as 1 / rank, at epsilon 0.1: the share of the counts
    that is lost by choosing others, over 50 releases of each."""
    scores = 2000 // np.arange(1, 1001)
    counts, bits = scores_of(1000), SeededBits(9)

    def lost_share(top: TopK) -> float:
        chosen = np.array([top.sample(scores, bits) for _ in range(50)])
        return float(1 - scores[chosen].sum() / (50 * scores[:20].sum()))

    cheaper = TopK.for_epsilon(0.1, counts, range(1000), k=20)
    one_by_one = TopK.for_epsilon(0.1, counts, range(1000), k=20, noise=TopKNoise.GUMBEL)
    assert lost_share(cheaper) < 0.05
    assert lost_share(one_by_one) > 0.4
    assert cheaper.error(0.95) < one_by_one.error(0.95) / 8


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("rate", [Fraction(3), Fraction(1, 2), Fraction(1, 5)])
@pytest.mark.parametrize("confidence", [0.5, 0.99])
def test_the_forecast_with_laplace_noise_is_what_the_worst_scores_do(
    k: int, rate: Fraction, confidence: float
) -> None:
    error = TopK(NAMES, k, rate, noise=TopKNoise.LAPLACE).error(confidence)

    def missed(gap: int) -> float:
        scores = tuple(gap if place >= 3 - k else 0 for place in range(3))  # the best come last
        chances = sorted_law(rate)(scores)
        best = set(range(3 - k, 3))
        return 1 - sum(
            float(chance)
            for order, chance in zip(ORDERS, chances, strict=True)
            if set(order[:k]) == best
        )

    assert missed(error + 1) <= 1 - confidence + 1e-9
    assert missed(math.floor(error * 0.99)) > 1 - confidence - 1e-9


def test_the_lowest_of_one_line_is_itself() -> None:
    chance = [
        race_chance(Fraction(9), Fraction(9), 0.99, under=5, lowest_of=many) for many in (1, 3, 40)
    ]
    for gap in (0, 10, 60, 200):
        assert 0 < chance[0](gap) < chance[1](gap) < chance[2](gap) <= 1
    noise = np.random.default_rng(5).laplace(scale=9, size=(200_000, 8))
    lowest = np.round(noise[:, :3]).min(axis=1)
    reached = (np.round(noise[:, 3:]).max(axis=1) >= 20 + lowest).mean()
    assert chance[1](20) == pytest.approx(reached, abs=0.01)


def test_scores_of_any_size_are_ordered_by_laplace_noise() -> None:
    for scores in ([4, 9, -(2**62), 2**62, 9], [2**63 - 1, 0, -(2**63), 2**63 - 1, 5]):
        value = np.array(scores)
        found = TopK(range(5), 4, 2, noise=TopKNoise.LAPLACE).sample(value, ZeroNoiseBits())
        assert found == tuple(np.argsort(-value.astype(object), kind="stable")[:4])
    wide = np.array([10**30, -(10**30), 5], dtype=object)
    assert TopK(NAMES, 2, 9, noise=TopKNoise.LAPLACE).sample(wide, SeededBits(1)) == (
        "red",
        "green",
    )


@pytest.mark.parametrize("wrong", ["laplace", 1, None, Moves.ANYHOW], ids=repr)
def test_noise_is_one_of_two_laws(wrong: BadValue) -> None:
    with pytest.raises(InvalidArgument, match="noise = "):
        TopK(NAMES, 1, 1, noise=wrong)
    if wrong is not None:
        with pytest.raises(InvalidArgument, match="noise = "):
            TopK.for_epsilon(1, scores_of(3), NAMES, k=1, noise=wrong)


def test_top_k_with_laplace_noise_is_written_as_in_code() -> None:
    top = TopK(NAMES[:2], 1, 0.1, moves=Moves.TOGETHER, noise=TopKNoise.LAPLACE)
    assert eval(repr(top)) == top != TopK(NAMES[:2], 1, 0.1, moves=Moves.TOGETHER)


# The best of each group


def table(sensitivity: int | Sensitivity) -> Bounded[Any]:  # Any: an integer array
    return Bounded(
        lambda: np.array([[1, 2], [3, 0]]),
        sensitivity=sensitivity,
        unit=PERSON,
        name="table",
        shape=(2, 2),
    )


def best(rate: Fraction, moves: Moves = Moves.ANYHOW) -> BestOfEachGroup:
    return BestOfEachGroup(groups=(7, 8), candidates=("a", "b"), rate=rate, moves=moves)


def both(scores: Scores, rate: float) -> FloatArray:
    """Of each pair of choices: both groups by themselves."""
    ahead = [1 / (1 + np.exp(rate * (y - x))) for x, y in (scores[:2], scores[2:])]
    chances = [np.array([p, 1 - p]) for p in ahead]
    return np.outer(*chances).ravel()


MOVES: list[tuple[Sensitivity, Moves, list[Scores]]] = [
    (Sensitivity(l1=1), Moves.ANYHOW, [(1, 0, 0, 0), (0, -1, 0, 0)]),
    (Sensitivity(l0=2, linf=1), Moves.TOGETHER, [(1, 0, 1, 0), (1, 1, 0, 0), (-1, 0, 0, -1)]),
    (Sensitivity(l0=2, linf=1), Moves.ANYHOW, [(1, -1, 0, 0), (1, 0, -1, 0)]),
    (Sensitivity(l0=3, linf=1), Moves.ANYHOW, [(1, -1, 1, 0), (0, -1, 1, -1)]),
    (Sensitivity(l0=2, linf=2), Moves.ANYHOW, [(2, 0, -2, 0), (-1, 2, 0, 0)]),
    (Sensitivity(l0=4, linf=1), Moves.ANYHOW, [(1, -1, 1, -1), (1, -1, -1, 1)]),
    (Sensitivity(l1=2, linf=2), Moves.TOGETHER, [(2, 0, 0, 0), (1, 0, 1, 0), (0, -1, -1, 0)]),
    (Sensitivity(l1=3, linf=2), Moves.ANYHOW, [(2, -1, 0, 0), (1, -1, 1, 0), (2, 0, -1, 0)]),
]


@pytest.mark.parametrize(("sensitivity", "moves", "steps"), MOVES)
def test_groups_lose_no_more_than_is_charged(
    sensitivity: Sensitivity, moves: Moves, steps: list[Scores]
) -> None:
    loss = best(HALF, moves).privacy_loss(table(sensitivity))
    claims = {e: loss.delta(e) for e in (0.0, loss.epsilon() / 2, loss.epsilon())}

    def excess(rate: float) -> float:
        found = -1.0
        for scores in itertools.product((0, 1, 3), repeat=4):
            for step in steps:
                other = tuple(s + d for s, d in zip(scores, step, strict=True))
                p, q = both(scores, rate), both(other, rate)
                found = max(found, *(lost(p, q, e) - claim for e, claim in claims.items()))
        return found

    assert excess(0.5) <= 1e-12
    assert excess(1.0) > 1e-3  # half the noise is caught


def test_each_group_has_its_choice() -> None:
    mechanism, value = best(HALF), np.array([[1, 2], [3, 0]])
    tree = walk(
        lambda bits: tuple(mechanism.sample(value, bits).items()), 6, 2
    )  # as tuples: mappings have no hash
    chances = both((1, 2, 3, 0), 0.5)

    def chance(outcome: Any) -> arb:  # Any: names
        (_, one), (_, other) = outcome
        return arb(float(chances[2 * "ab".index(one) + "ab".index(other)]), 1e-12)

    assert_exact(tree, chance, 0.1, lambda *_: None)
    assert mechanism.sample(value, ZeroNoiseBits()) == {7: "b", 8: "a"}


def test_privacy_loss_of_groups() -> None:
    names: dict[str, Any] = {"groups": (7, 8), "candidates": ("a", "b")}
    asked: list[tuple[int | Sensitivity, float]]
    asked = [(1, 0.5), (Sensitivity(l0=2, linf=3), 0.7), (0, 1)]
    for sensitivity, epsilon in asked:
        bounded = table(sensitivity)
        made = BestOfEachGroup.for_epsilon(epsilon, bounded, **names)
        assert made.privacy_loss(bounded).epsilon() == epsilon
    assert (
        best(HALF).privacy_loss(table(Sensitivity(l0=4, linf=3)))
        == PrivacyLoss.of(BoundedRange(3), unit=PERSON) * 2
    )
    for many in (Sensitivity(l0=3, linf=3), Sensitivity(l1=9, linf=9)):  # 9 in all
        one = PrivacyLoss.of(BoundedRange(Fraction(9, 2)), unit=PERSON)
        assert best(HALF).privacy_loss(table(many)) == one
    made = BestOfEachGroup.for_error(10, 0.9, **names)
    assert made.error(0.9) <= 10 < best(made.rate * Fraction(9, 10)).error(0.9)
    assert repr(made).startswith("BestOfEachGroup(groups=(7, 8), candidates=('a', 'b'), rate=")


def test_groups_and_candidates_are_checked() -> None:
    for wrong in ([], ["a", "a"], ["a", 1.5]):
        with pytest.raises(InvalidArgument, match="groups: give"):
            BestOfEachGroup(groups=wrong, candidates=("a", "b"), rate=1)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match="candidates: give"):
            BestOfEachGroup(groups=("a", "b"), candidates=wrong, rate=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"shape \(2, 2\)"):
        best(HALF).privacy_loss(scores_of(4))
