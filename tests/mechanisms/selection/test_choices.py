"""The exponential mechanism, permute-and-flip and report noisy max, each against the same laws."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb

from discreet import Ledger, Limit
from discreet._exact import precision
from discreet.accounting import BoundedRange, PrivacyLoss, Pure, ReportNoisyMax
from discreet.audit import SeededBits, ZeroNoiseBits, replay
from discreet.errors import InvalidArgument, Refused
from discreet.mechanisms import Bounded, Door, FloatArray, IntegerArray, Sensitivity, release
from discreet.mechanisms._release import release_through
from discreet.mechanisms.selection import (
    ExponentialMechanism,
    Moves,
    NoisyMax,
    PermuteAndFlip,
)
from discreet.mechanisms.selection._scores import with_laplace
from discreet.noise import DiscreteLaplaceLaw
from tests.bad_values import BadValue
from tests.mechanisms.kit import PERSON, number
from tests.mechanisms.selection.kit import (
    ANYHOW,
    REPLACED,
    SETTINGS,
    Law,
    Scores,
    refutation,
    scores_of,
    widest,
)
from tests.noise.walk import (
    BITS,
    Chance,
    Record,
    assert_exact,
    permute_and_flip_law,
    softmax,
    walk,
)
from tests.tables import one_in

Choice = ExponentialMechanism | PermuteAndFlip | NoisyMax
KINDS: list[type[Choice]] = [ExponentialMechanism, PermuteAndFlip, NoisyMax]
NAMES = ("red", "blue", "green")
HALF = Fraction(1, 2)
MILLION = 10**6

kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def made(kind: type[Choice], noise: Fraction, moves: Moves = Moves.ANYHOW) -> Choice:
    """With a noise of this scale."""
    if kind is NoisyMax:
        return NoisyMax(NAMES, noise, moves=moves)
    return kind(NAMES, 1 / noise, moves=moves)


def first_of_the_largest(scores: Scores, scale: float) -> FloatArray:
    """With discrete Laplace noise: a sum over each candidate's own noise of the chances that all
    others stay below, or reach no more if they come later."""
    own = np.arange(-int(90 * scale) - 5, int(90 * scale) + 6)
    mass = math.tanh(0.5 / scale) * np.exp(-np.abs(own) / scale)

    def below(limit: IntegerArray) -> FloatArray:
        tail = np.exp(-np.abs(np.where(limit > 0, limit, 1 - limit)) / scale)
        tail /= 1 + math.exp(-1 / scale)
        return np.where(limit > 0, 1 - tail, tail)

    def wins(place: int) -> float:
        chance = mass
        for other, score in enumerate(scores):
            if other != place:
                chance = chance * below(own + scores[place] - score + (other > place))
        return float(chance.sum())

    return np.array([wins(place) for place in range(len(scores))])


def law_of(kind: type[Choice], noise: Fraction) -> Law:
    """The exact law by its definition."""
    if kind is NoisyMax:
        return lambda scores: first_of_the_largest(scores, float(noise))
    chances = softmax if kind is ExponentialMechanism else permute_and_flip_law

    def law(scores: Scores) -> FloatArray:
        with precision(BITS):
            return np.array([float(chances(scores, 1 / noise)(i)) for i in range(len(scores))])

    return law


def chance_of(kind: type[Choice], noise: Fraction, scores: Scores) -> Chance[Any]:  # Any: names
    """The same as a ball that holds it."""
    law = law_of(kind, noise)(scores)
    return lambda name: arb(float(law[NAMES.index(name)]), 1e-12)


# What is drawn


TREES: list[tuple[type[Choice], int, int, float]] = [
    (ExponentialMechanism, 4, 3, 0.01),
    (PermuteAndFlip, 3, 4, 0.4),
    (NoisyMax, 6, 2, 0.8),
]


@pytest.mark.parametrize(("kind", "width", "words", "sliver"), TREES)
@pytest.mark.parametrize("scores", one_in(2, [((1, 0, 2),), ((0, 0, 3),), ((0, 4, -1),)]), ids=str)
def test_each_candidate_has_its_probability(
    kind: type[Choice],
    width: int,
    words: int,
    sliver: float,
    scores: Scores,
    record_property: Record,
) -> None:
    some = scores[:2] if kind is NoisyMax else scores
    mechanism = replace(made(kind, Fraction(2)), candidates=NAMES[: len(some)])
    tree = walk(lambda bits: mechanism.sample(np.array(some), bits), width, words)
    assert_exact(tree, chance_of(kind, Fraction(2), some), sliver, record_property)


@kinds
def test_draws_fit_the_law(kind: type[Choice]) -> None:
    """4000 draws: a share off by 0.06 comes by chance in fewer than one of 10^9 runs (Hoeffding:
    2 e^(-2 4000 0.06^2) < 10^-12), and half the noise is off by more."""
    scores, bits = (1, 0, 2), SeededBits(1)
    mechanism = made(kind, Fraction(2))
    drawn = [mechanism.sample(np.array(scores), bits) for _ in range(4000)]
    right, wrong = (law_of(kind, Fraction(n))(scores) for n in (2, 1))
    for place, name in enumerate(NAMES):
        assert abs(drawn.count(name) / 4000 - right[place]) < 0.06
    assert np.abs(right - wrong).max() > 0.12


def test_the_four_colours() -> None:
    """The worked case: epsilon 1, counts 5, 4, 3, 2: a softmax of half the counts, exactly."""
    names = ("red", "blue", "green", "yellow")
    votes = scores_of(4, Sensitivity(linf=1, length=4))
    mechanism = ExponentialMechanism.for_epsilon(1, votes, names)
    assert mechanism.rate == HALF
    assert mechanism.privacy_loss(votes).epsilon() == 1
    tree = walk(lambda bits: mechanism.sample(np.array([5, 4, 3, 2]), bits), 4, 6)
    chance = softmax([5, 4, 3, 2], HALF)
    assert_exact(tree, lambda name: chance(names.index(name)), 2e-4, lambda *_: None)
    shares = [round(float(chance(place)), 4) for place in range(4)]
    assert shares == [0.4551, 0.276, 0.1674, 0.1015]


@kinds
def test_without_noise_the_best_is_chosen(kind: type[Choice]) -> None:
    assert made(kind, Fraction(3)).sample(np.array([1, 7, 3]), ZeroNoiseBits()) == "blue"


@kinds
@pytest.mark.parametrize("far", [2**62, 2**63 - 1, 2**80, 10**1500])
def test_scores_of_any_size_are_exact(kind: type[Choice], far: int) -> None:
    dtype = np.int64 if far < 2**63 else object
    scores = np.array([-far, far - 1, far], dtype)
    for seed in range(30):
        assert made(kind, Fraction(1, 50)).sample(scores, SeededBits(seed)) == "green"
    shifted = np.array([0, 3, 4], dtype) + (far - 4)
    for seed in range(30):
        near = made(kind, Fraction(2)).sample(np.array([0, 3, 4]), SeededBits(seed))
        assert made(kind, Fraction(2)).sample(shifted, SeededBits(seed)) == near


# What it costs


@kinds
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("noise", ["1/2", "2"])
def test_neighbours_lose_no_more_than_is_charged(kind: type[Choice], name: str, noise: str) -> None:
    setting, scale = SETTINGS[name], Fraction(noise)
    loss = made(kind, scale, setting.moves).privacy_loss(setting.scores())
    assert refutation(law_of(kind, scale), setting, loss) is None


@kinds
@pytest.mark.parametrize("name", SETTINGS)
def test_half_the_noise_loses_more_than_is_charged(kind: type[Choice], name: str) -> None:
    setting = SETTINGS[name]
    loss = made(kind, Fraction(2), setting.moves).privacy_loss(setting.scores())
    assert refutation(law_of(kind, Fraction(1)), setting, loss) is not None


@kinds
def test_a_spread_one_too_small_is_caught(kind: type[Choice]) -> None:
    """Scores that move anyhow, priced as if they moved together."""
    setting = SETTINGS["anyhow"]
    loss = made(kind, Fraction(2), Moves.TOGETHER).privacy_loss(setting.scores())
    assert refutation(law_of(kind, Fraction(2)), setting, loss) is not None


@pytest.mark.parametrize("name", SETTINGS)
def test_the_exponential_mechanism_has_its_bounded_range(name: str) -> None:
    setting = SETTINGS[name]
    mechanism = ExponentialMechanism(NAMES, HALF, moves=setting.moves)
    [(term, count)] = mechanism.privacy_loss(setting.scores()).terms
    assert isinstance(term, BoundedRange)
    assert count == 1
    wide = widest(law_of(ExponentialMechanism, Fraction(2)), setting)
    assert wide == pytest.approx(float(term.eta), rel=1e-12)  # it is reached


def test_permute_and_flip_has_no_bounded_range() -> None:
    loss = PrivacyLoss.of(BoundedRange(1))
    setting = SETTINGS["one score"]
    assert widest(law_of(PermuteAndFlip, Fraction(1)), setting) > 1.1
    assert refutation(law_of(PermuteAndFlip, Fraction(1)), setting, loss) is not None


@kinds
def test_the_price_is_exactly_the_wanted_epsilon(kind: type[Choice]) -> None:
    for bounded, moves in [
        (scores_of(3, ANYHOW), Moves.ANYHOW),
        (scores_of(3, ANYHOW), Moves.TOGETHER),
        (scores_of(3, 1), Moves.ANYHOW),
        (scores_of(3, Sensitivity(l2_squared=2, length=3)), Moves.ANYHOW),
        (scores_of(3, 0), Moves.ANYHOW),
    ]:
        mechanism = kind.for_epsilon(0.3, bounded, NAMES, moves=moves)
        loss = mechanism.privacy_loss(bounded)
        assert loss.epsilon() == 0.3
        assert loss.unit == PERSON
    assert isinstance(
        loss.terms[0][0], BoundedRange if kind is ExponentialMechanism else ReportNoisyMax
    )


def test_several_choices_are_cheaper_by_the_exponential_mechanism() -> None:
    bounded = scores_of(3, ANYHOW)
    one = ExponentialMechanism.for_epsilon(0.1, bounded, NAMES).privacy_loss(bounded)
    other = PermuteAndFlip.for_epsilon(0.1, bounded, NAMES).privacy_loss(bounded)
    assert (50 * one).epsilon(delta=1e-6) < 0.75 * (50 * other).epsilon(delta=1e-6)
    assert (50 * other).epsilon(delta=1e-6) <= (50 * Pure(0.1)).epsilon(delta=1e-6)


@kinds
def test_scores_move_together_only_where_units_come_and_go(kind: type[Choice]) -> None:
    with pytest.raises(Refused, match=r"use Moves\.ANYHOW"):
        made(kind, Fraction(2), Moves.TOGETHER).privacy_loss(scores_of(3, ANYHOW, REPLACED))


# How wrong it is


@kinds
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("noise", ["1/3", "7", "50"])
def test_the_forecast_is_what_the_worst_scores_do(
    kind: type[Choice], confidence: float, noise: str
) -> None:
    """The best is the last, the others fall behind by more than the forecast: the chance of one of
    them is at most what is left over, and at a slightly smaller gap it is not."""
    scale = Fraction(noise)
    error = made(kind, scale).error(confidence)

    def missed(gap: int) -> float:
        return float(law_of(kind, scale)((0, 0, gap))[:2].sum())

    assert missed(error + 1) <= 1 - confidence + 1e-12
    smaller = min(error - 1, int(error * 0.97))
    assert smaller < 0 or missed(smaller + 1) > 1 - confidence


@kinds
def test_no_other_scores_are_worse(kind: type[Choice]) -> None:
    scale, confidence = Fraction(2), 0.9
    error, law = made(kind, scale).error(confidence), law_of(kind, scale)
    for scores in itertools.product((0, error // 2, error + 1, 2 * error), repeat=3):
        is_far = max(scores) - np.array(scores) > error
        assert law(scores)[is_far].sum() <= 1 - confidence + 1e-12


@kinds
def test_the_forecast_is_what_is_measured(kind: type[Choice]) -> None:
    """5000 draws: off by 0.0464 or more in one of 10^9 runs at most (Hoeffding)."""
    mechanism, bits = made(kind, Fraction(40)), SeededBits(2)
    gap = mechanism.error(0.9) + 1
    scores = np.array([0, 0, gap])
    missed = sum(mechanism.sample(scores, bits) != "green" for _ in range(5000)) / 5000
    assert abs(missed - 0.1) < 0.0464


@kinds
@pytest.mark.parametrize("error", [0, 5, 100])
def test_the_wanted_error_is_reached_with_the_most_noise(kind: type[Choice], error: int) -> None:
    mechanism = kind.for_error(error, 0.9, NAMES)
    assert mechanism.error(0.9) <= error
    scale = mechanism.scale if isinstance(mechanism, NoisyMax) else 1 / mechanism.rate
    assert made(kind, scale * Fraction(101, 100)).error(0.9) > error


def test_choices_err_less_than_laplace_noise() -> None:
    errors = [made(kind, Fraction(30)).error(0.95) for kind in KINDS]
    assert errors[1] < errors[0]  # permute-and-flip before the exponential mechanism
    assert errors[1] < errors[2]


@kinds
def test_the_forecast_goes_as_far_as_float64(kind: type[Choice]) -> None:
    errors = [kind(NAMES, 1).error(1 - Fraction(1, 10**n)) for n in (20, 100, 249)]
    for error, n in zip(errors, (20, 100, 249), strict=True):
        assert error == pytest.approx(math.log(10) * n, rel=0.2)
    with pytest.raises(InvalidArgument, match="confidence: give"):
        kind(NAMES, 1).error(1 - Fraction(1, 10**400))


def test_scales_beyond_float64s_have_no_forecast() -> None:
    assert NoisyMax(NAMES, Fraction(1, 10**400)).error(0.9) == 0
    with pytest.raises(InvalidArgument, match="scale: no error"):
        NoisyMax(NAMES, 10**400).error(0.9)


def test_for_many_candidates() -> None:
    many = range(MILLION)
    assert 27 <= ExponentialMechanism(many, 0.6).error(0.95) <= 29
    assert PermuteAndFlip(many, 0.6).error(0.95) <= 27
    assert NoisyMax(many, Fraction(5, 3)).error(0.95) < 40
    assert NoisyMax(NAMES, 10**30).error(0.95) > 10**30


# Through the door


@kinds
def test_a_choice_is_released_and_stored(kind: type[Choice]) -> None:
    bounded = Bounded(
        lambda: np.array([1, 90, 3]), sensitivity=1, unit=PERSON, name="votes", shape=(3,)
    )
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(epsilon=1))
    mechanism = kind.for_epsilon(1, bounded, NAMES)
    first = release(bounded, mechanism, ledger, request="a")
    assert first.value == "blue"
    assert first.error(0.9) == mechanism.error(0.9)
    assert release(bounded, mechanism, ledger, request="a").value == "blue"


@pytest.mark.parametrize("kind", [ExponentialMechanism, NoisyMax])
def test_neighbours_differ_in_nothing_else(kind: type[Choice]) -> None:
    """As many words are drawn, whatever the scores."""

    def act(door: Door, scores: list[int]) -> object:
        bounded = Bounded(
            lambda: np.array(scores), sensitivity=ANYHOW, unit=PERSON, name="v", shape=(3,)
        )
        return release_through(door, bounded, made(kind, Fraction(2)))

    for seed in range(20):
        for neighbour in ([1, 1, 2], [0, 1, 3], [1, 2, 3], [2, 1, 1]):
            replay(act, [1, 1, 2], neighbour, seed=seed)


def test_candidates_may_be_numbers_tuples_or_a_range() -> None:
    assert ExponentialMechanism([3, ("a", 1)], 1).candidates == (3, ("a", 1))
    assert ExponentialMechanism(range(5), 1) == ExponentialMechanism(range(5), 1.0)
    assert repr(NoisyMax(range(5), 0.1)) == "NoisyMax(range(0, 5), scale=0.1)"
    assert repr(PermuteAndFlip(("a", 2), 3, moves=Moves.TOGETHER)) == (
        "PermuteAndFlip(('a', 2), rate=3, moves=Moves.TOGETHER)"
    )
    many = [repr(ExponentialMechanism([*range(60), last], 1)) for last in (60, 61)]
    assert many[0] != many[1]
    assert len(many[0]) < 120


# Bad input


@kinds
@pytest.mark.parametrize(
    "wrong", [0, -1, 0.0, float("nan"), float("inf"), True, "1", None], ids=repr
)
def test_noise_and_epsilon_lie_above_zero(kind: type[Choice], wrong: BadValue) -> None:
    with pytest.raises(InvalidArgument, match=r"(rate|scale) = .*above 0"):
        kind(NAMES, wrong)
    with pytest.raises(InvalidArgument, match=r"epsilon = .*above 0"):
        kind.for_epsilon(wrong, scores_of(3), NAMES)


@kinds
@pytest.mark.parametrize(
    "wrong",
    [
        *([], ["one"], ["a", "a"], "ab", [1.5, 2], [True, False], [("a", 1.5), "b"], range(1)),
        *(None, 3, {"a": 1, "b": 2}.keys(), frozenset({1, 2})),
    ],
    ids=repr,
)
def test_candidates_are_two_different_names_or_more(kind: type[Choice], wrong: BadValue) -> None:
    with pytest.raises(InvalidArgument, match="candidates: give"):
        kind(wrong, 1)


@kinds
def test_each_candidate_needs_a_score(kind: type[Choice]) -> None:
    mechanism = kind(NAMES, 1)
    others: list[Bounded[Any]] = [scores_of(2), scores_of(4), number()]
    for wrong in others:
        with pytest.raises(InvalidArgument, match=r"an integer score for each candidate"):
            mechanism.privacy_loss(wrong)
    keys = Bounded.keys(lambda: {"a": 1}, per_unit=1, unit=PERSON, name="keys")
    with pytest.raises(InvalidArgument, match="counts under keys"):
        mechanism.privacy_loss(keys)  # type: ignore[arg-type]


@kinds
@pytest.mark.parametrize("wrong", ["together", True, None], ids=repr)
def test_moves_is_one_of_two(kind: type[Choice], wrong: BadValue) -> None:
    with pytest.raises(InvalidArgument, match="moves = "):
        kind(NAMES, 1, moves=wrong)
    with pytest.raises(InvalidArgument, match="moves = "):
        kind.for_epsilon(1, scores_of(3), NAMES, moves=wrong)


@kinds
@pytest.mark.parametrize("wrong", [0, 1, 1.5, -1, float("nan"), True, "1"], ids=repr)
def test_a_confidence_lies_between_0_and_1(kind: type[Choice], wrong: BadValue) -> None:
    with pytest.raises(InvalidArgument, match="confidence = "):
        kind(NAMES, 1).error(wrong)
    with pytest.raises(InvalidArgument, match="confidence = "):
        kind.for_error(3, wrong, NAMES)
    with pytest.raises(InvalidArgument, match="error = "):
        kind.for_error(-1, 0.9, NAMES)


def test_an_error_that_any_noise_has_is_refused() -> None:
    with pytest.raises(
        InvalidArgument, match=r"confidence = 0\.1: with any noise, .* is at most 3; give a larger"
    ):
        PermuteAndFlip.for_error(3, 0.1, ["a", "b"])


@pytest.mark.parametrize("rate", [Fraction(1, 10**300), Fraction(10**300)])
def test_errors_are_forecast_at_all_rates(rate: Fraction) -> None:
    error = PermuteAndFlip(range(3), rate).error(0.95)
    assert 2.9 < error * rate < 3 or error == 0


@pytest.mark.parametrize("end", [-(2**63), -(2**62), 0, 2**62 - 1, 2**63 - 1])
@pytest.mark.parametrize("scale", [1, 2**60, 2**61, 2**80])
def test_no_noisy_score_wraps_round(end: int, scale: int) -> None:
    """A score that wraps round would move by 2^64 when one unit moves it by 1."""
    scores = np.array([end, 0] * 100)
    noise = DiscreteLaplaceLaw(scale).draws(SeededBits(1), scores.shape)
    noisy = with_laplace(scores, Fraction(scale), SeededBits(1))
    assert noisy.tolist() == [
        int(score) + int(each) for score, each in zip(scores, noise, strict=True)
    ]
