"""Black-box audits of mechanisms whose privacy is known exactly."""

import math
import re
from collections.abc import Callable, Hashable
from fractions import Fraction
from itertools import count as counter
from time import perf_counter
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

from discreet import Bounded, DiscreteLaplace, Unit
from discreet import Gaussian as RoundedGaussian
from discreet._exact import Number
from discreet.accounting import Gaussian, PrivacyLoss, Pure
from discreet.audit import black_box, exact
from discreet.audit._certified import GuessCount, at_least, at_most
from discreet.audit._guesses import GuessRule
from discreet.audit._scores import OutputScore
from discreet.errors import InvalidArgument, NoBound
from tests.audit.laws import (
    gaussian,
    generator,
    geometric,
    laplace,
    on_grid,
    randomized_response,
)

PAIR = [(0, 1)]
TIGHT = {"randomized response": randomized_response, "laplace": laplace, "geometric": geometric}
EPSILONS = 0.1, 0.25, 0.5, 1, 2, 4, 8


@pytest.mark.parametrize("name", TIGHT)
@pytest.mark.parametrize("epsilon", [0.5, 1, 4])
def test_the_bound_is_below_the_claim_and_near_it(name: str, epsilon: float) -> None:
    """With 1e5 outputs of each dataset; the spread of the bound is below 2 % of epsilon."""
    audit = black_box(TIGHT[name](epsilon), PAIR, epsilon, samples=100_000)
    assert not audit.is_refuted
    assert 0.75 * epsilon < audit.epsilon() <= epsilon


@pytest.mark.long
@pytest.mark.parametrize("name", TIGHT)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_million_outputs_reach_85_percent(name: str, epsilon: float) -> None:
    """The logarithm of the odds of a right guess has a standard deviation of at most
    2 / sqrt(1.8e6) = 0.0015, and the bound lies 6.3 of them below: at epsilon 0.1 this is 90.6 %,
    with a standard deviation of 1.5 %, so that chance alone misses 85 % once in ten thousand runs.
    At a larger epsilon the distance is greater."""
    audit = black_box(TIGHT[name](epsilon), PAIR, epsilon, samples=1_000_000)
    assert not audit.is_refuted
    assert 0.85 * epsilon <= audit.epsilon() <= epsilon


def test_a_million_outputs_are_too_few_for_eight_categories() -> None:
    """The best guess, known beforehand, and alone: the bound of the mean counts is 83.3 %."""
    factor, categories = math.exp(0.1), 8
    named = 2_000_000 * (factor + 1) / (factor + categories - 1)
    share = at_least(round(named * factor / (factor + 1)), round(named), 1e-9)
    assert 0.083 < math.log(share / (1 - share)) < 0.084


@pytest.mark.parametrize("stddev", [0.7, 2])
def test_a_gaussian_stays_below_its_profile_and_its_curve(stddev: float) -> None:
    loss = PrivacyLoss.of(Gaussian(stddev))
    audit = black_box(gaussian(stddev), PAIR, loss, samples=100_000)
    assert not audit.is_refuted
    for delta in (1e-6, 1e-3, 0.01, 0.1):
        assert audit.epsilon(delta) <= loss.epsilon(delta)
    for epsilon in (0, 0.5, 1):
        assert audit.delta(epsilon) <= loss.delta(epsilon)
    assert audit.delta(0) > 0.8 * loss.advantage()
    for error in (0.05, 0.2, 0.5):
        exact = norm.cdf(norm.isf(error) - 1 / stddev)
        assert exact <= audit.type_two(error) <= exact + 0.15


@pytest.mark.parametrize("reveals", [(0.3, 0), (0, 0.3), (0.5, 0.1)])
def test_each_loss_that_holds_promises_no_more_than_is_measured(
    reveals: tuple[float, float],
) -> None:
    """Also if only one dataset shows itself, so that the two orders have different curves."""
    random = generator()
    laws: list[dict[Hashable, Number]] = [
        {1: Fraction(str(share)), 0: 1 - Fraction(str(share))} for share in reveals
    ]
    promised = exact([(laws[0], laws[1])]).trade_off()
    audit = black_box(
        lambda share, count: (random.random(count) < share).astype(int),
        [reveals],
        1,
        samples=50_000,
    )
    for error in (0, 0.1, 0.2, 0.4, 0.6, 0.9):
        assert promised.type_two(error) <= audit.type_two(error)
        assert error == 0 or audit.type_two(error) <= promised.type_two(error) + 0.15


def test_the_text_measures_at_the_epsilon_that_it_shows() -> None:
    """The claim is exceeded at an epsilon with many digits, which the text rounds."""
    seen = 0
    for number in range(10):
        claim = Gaussian(1.3 + number / 7)
        audit = black_box(gaussian(0.6, number), PAIR, claim, samples=3000)
        found = re.search(r"at epsilon (\S+) delta is at least (\S+), claimed (\S+)", repr(audit))
        assert found is not None
        epsilon, measured, claimed = map(float, found.groups())
        assert measured <= audit.delta(epsilon)
        assert claimed >= audit.profile.delta(epsilon)
        assert measured > claimed
        seen += epsilon not in audit.profile.epsilons
    assert seen


@pytest.mark.parametrize("epsilon", [0.25, 1, 4])
@pytest.mark.parametrize("name", TIGHT)
def test_a_quarter_less_noise_is_refuted(name: str, epsilon: float) -> None:
    audit = black_box(TIGHT[name](epsilon * 4 / 3), PAIR, epsilon, samples=200_000)
    assert audit.is_refuted
    assert "REFUTED" in repr(audit)


def test_less_noise_than_a_gaussian_needs_is_refuted() -> None:
    audit = black_box(gaussian(0.85), PAIR, Gaussian(1), samples=50_000)
    assert audit.exceeded_at is not None
    epsilon, claimed, measured = audit.exceeded_at
    assert claimed < measured <= norm.cdf(1 / 1.7 - 0.85 * epsilon)
    assert claimed >= PrivacyLoss.of(Gaussian(1)).delta(epsilon) * 0.999


def runs_refuted(runs: int, alarm: float) -> int:
    return sum(
        black_box(geometric(1, seed), PAIR, 1, samples=1000, confidence=1 - alarm).is_refuted
        for seed in range(runs)
    )


def test_false_alarms_are_as_rare_as_stated() -> None:
    """At an alarm of 1/2, for a claim that holds with equality; honest runs exceed this count with
    probability 1e-9."""
    assert runs_refuted(40, 0.5) <= binom.isf(1e-9, 40, 0.5)


@pytest.mark.long
def test_no_false_alarm_in_a_thousand_runs() -> None:
    """At an alarm of 1e-9 no run of 1000 refutes, but with probability 1e-6; at 0.2 few do."""
    assert runs_refuted(1000, 1e-9) == 0
    assert runs_refuted(1000, 0.2) <= binom.isf(1e-9, 1000, 0.2)


@pytest.mark.parametrize("trials", [1, 50, 10**6])
@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.999, 1])
def test_bounds_on_a_probability_are_those_of_clopper_and_pearson(
    trials: int, share: float
) -> None:
    count, alarm = round(share * trials), 1e-9
    low, high = at_least(count, trials, alarm), at_most(count, trials, alarm)
    assert 0 <= low <= count / trials <= high <= 1
    assert low == 0 or 0.999 * alarm <= binom.sf(count - 1, trials, low) <= alarm
    assert high == 1 or 0.999 * alarm <= binom.cdf(count, trials, high) <= alarm


def test_a_guess_that_names_one_dataset_counts_half_of_delta() -> None:
    """Everything is revealed with probability 0.2, of one dataset only: delta is 0.2."""
    random = generator()

    def reveal(value: int, count: int) -> Any:  # Any: an array
        return np.where(random.random(count) < 0.2, value, 0)

    audit = black_box(reveal, PAIR, 0, delta=0.2, samples=50_000)
    assert not audit.is_refuted
    assert 0.18 < audit.delta(0) <= audit.delta(2) + 0.01 <= 0.21
    assert black_box(reveal, PAIR, 0, delta=0.17, samples=50_000).is_refuted


def outputs_of_kinds() -> dict[str, Any]:
    """Functions of a bit that reveal it in 3 % of the outputs, each in a form of its own."""
    random = generator()

    def rarely(bit: int) -> bool:
        return bool(bit and random.random() < 0.03)

    def raises(bit: int) -> float:
        if rarely(bit):
            raise ValueError("secret")
        return random.normal()

    return {
        "None": lambda bit: None if rarely(bit) else random.normal(),
        "text": lambda bit: "b" if rarely(bit) else "a",
        "type": lambda bit: 1.0 if rarely(bit) else 1,
        "minus zero": lambda bit: -0.0 if rarely(bit) else 0.0,
        "nan": lambda bit: math.nan if rarely(bit) else random.normal(),
        "infinity": lambda bit: math.inf if rarely(bit) else random.normal(),
        "length": lambda bit: [random.normal()] * (3 if rarely(bit) else 2),
        "order": lambda bit: {"b": 1, "a": 2} if rarely(bit) else {"a": 2, "b": 1},
        "key": lambda bit: {"x": random.normal(), **({"y": 0} if rarely(bit) else {})},
        "error": raises,
        "one exact value": lambda bit: 7.25 if rarely(bit) else random.normal(),
        "coarse float": lambda bit: round(random.normal(), 9 - 8 * rarely(bit)),
        "third number": lambda bit: (
            random.normal(),
            random.normal(),
            9.0 * rarely(bit) + random.normal(),
        ),
        "numpy": lambda bit: np.float64(5) if rarely(bit) else np.float64(random.normal()),
    }


@pytest.mark.parametrize("kind", outputs_of_kinds())
def test_outputs_of_any_kind_are_told_apart(kind: str) -> None:
    function = outputs_of_kinds()[kind]
    assert black_box(function, PAIR, 0.5, samples=10_000).is_refuted
    assert not black_box(lambda _: function(1), PAIR, 0, samples=4000).is_refuted


def test_progress_rises_to_the_number_of_outputs() -> None:
    seen: list[tuple[int, int]] = []
    black_box(
        laplace(1), PAIR, 1, samples=60_000, progress=lambda done, of: seen.append((done, of))
    )
    assert seen == sorted(seen)
    assert len(seen) > 1
    assert seen[-1] == (120_000, 120_000)


def test_the_worst_pair_is_found() -> None:
    pairs = [(0, 0), (0, 1), (0, 3), (0, 2)]
    audit = black_box(gaussian(1), pairs, Gaussian(1), samples=20_000)
    assert audit.pair == 2
    assert audit.is_refuted


def test_a_mechanism_of_the_library_is_compared_with_its_price() -> None:
    unit = Unit("person")

    def counted(value: int) -> Bounded[int]:
        return Bounded(lambda: value, sensitivity=1, unit=unit, name="count")

    mechanism = DiscreteLaplace.for_epsilon(1, counted(0))
    audit = black_box(mechanism, [(counted(5), counted(6))], samples=100_000)
    assert audit.claim == mechanism.privacy_loss(counted(0))
    assert 0.9 < audit.epsilon() <= 1
    assert black_box(mechanism, [(counted(5), counted(7))], samples=20_000).is_refuted
    noise = RoundedGaussian(3)
    assert not black_box(noise, [(counted(5), counted(6))], samples=20_000).is_refuted
    assert black_box(noise, [(counted(5), counted(8))], samples=20_000).is_refuted


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"mechanism": 3}, "mechanism is of type int"),
        ({"mechanism": lambda value, count: [value]}, "1 items"),
        ({"mechanism": lambda value, count: "x" * count}, "return a list or an array"),
        ({"mechanism": lambda value: 1 / 0}, "raised in each call: ZeroDivisionError"),
        ({"pairs": []}, "pairs"),
        ({"pairs": [0, 1]}, "pairs"),
        ({"claim": None}, "claim"),
        ({"claim": -1}, "claim"),
        ({"claim": math.nan}, "claim"),
        ({"claim": Pure(1), "delta": 0.1}, "delta"),
        ({"delta": 1}, "delta"),
        ({"samples": 99}, "samples"),
        ({"samples": 1.5}, "samples"),
        ({"confidence": 1}, "confidence"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], text: str) -> None:
    right = {"mechanism": laplace(1), "pairs": PAIR, "claim": 1}
    with pytest.raises(InvalidArgument, match=text):
        black_box(**{**right, **arguments})


def test_a_session_is_given_as_a_function() -> None:
    from discreet.mechanisms.thresholds import SparseVector

    with pytest.raises(InvalidArgument, match="give a function that opens it"):
        black_box(SparseVector(0, threshold_scale=4, query_scale=8), PAIR)


def test_a_claim_without_a_bound_is_refused_before_anything_is_drawn() -> None:
    def draw(value: int) -> int:
        raise AssertionError

    with pytest.raises((NoBound, InvalidArgument)):
        black_box(draw, PAIR, claim="much")  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize("share", [0.0, 0.001, 0.05])
def test_rare_outputs_of_another_form_pass_through(share: float) -> None:
    """In some batches no output has a number, and in others a few have many."""
    random = generator()

    def draw(bit: int) -> Any:  # Any: a list or None
        length = 3 + 20 * (random.random() < 0.5)
        return [random.normal()] * length if random.random() < share else None

    assert not black_box(draw, PAIR, 0.1, samples=1500).is_refuted
    assert black_box(
        lambda bit: draw(bit) if bit else None, PAIR, 0.1, samples=1500
    ).is_refuted == (share > 0.01)


UGLY: list[Any] = [
    *(None, True, 0, 1, -(10**400), 2**53 + 1, 0.0, -0.0, 1e-320, 5e-324, 1.7e308, -1.7e308),
    *(math.nan, math.inf, -math.inf, "", "a", "\ud800", b"a", {1, 2}, object, 1j),
    *([], (), {}, [1, 2.5], (None, "x"), {"a": [1, math.nan]}, [[1], [2, [3]]], [1.5] * 70),
    *(np.float32(0.1), np.int64(7), np.bool_(True), np.str_("b")),
    *(np.zeros((0, 2)), np.ones((2, 2)), np.array([math.inf, math.nan])),
]


@pytest.mark.parametrize("seed", range(12))
def test_no_output_makes_an_audit_fail(seed: int) -> None:
    """Each seed mixes up to five kinds of ugly outputs for each dataset."""
    random = generator(seed)
    one, other = (
        [UGLY[place] for place in random.integers(len(UGLY), size=random.integers(1, 6))]
        for _ in range(2)
    )

    def draw(outputs: list[Any]) -> Any:  # Any: one of them
        return outputs[random.integers(len(outputs))]

    assert not black_box(draw, [(one, one)], 1, samples=100).is_refuted
    black_box(draw, [(one, other)], 1, samples=100)


def test_an_infinite_threshold_names_nothing() -> None:
    """Otherwise infinite outputs would count, though delta counts half."""
    values = np.array([-np.inf, 0.0, np.inf])
    score = OutputScore("number", lambda known: known.numbers[:, 0])
    first, second = GuessRule(score, math.inf, 0.0).names(values)
    assert (first.tolist(), second.tolist()) == ([False] * 3, [True, True, False])
    first, second = GuessRule(score, 0.0, -math.inf).names(values)
    assert (first.tolist(), second.tolist()) == ([False, True, True], [False] * 3)


def test_evidence_without_wrong_guesses_has_a_finite_epsilon() -> None:
    found = GuessCount("", 1000, 0, 2000, Fraction(1, 2), 1e-9)
    assert 3 < found.epsilon() < math.log(1000)
    assert GuessCount("", 0, 0, 2000, Fraction(1, 2), 1e-9).epsilon() == 0
    assert found.epsilon(0.9) <= found.epsilon(0.1) <= found.epsilon()
    assert found.delta(1000) == 0


STAMP_NOISE = generator()


def numbered(scale: float, stamp: Callable[[], Any]) -> Callable[[list[int]], Any]:
    """Noise on a count that moves by 1, next to a number that grows."""
    return lambda people: (stamp(), on_grid(len(people) + STAMP_NOISE.laplace(0, scale)))


def hours() -> Callable[[], int]:
    number = counter(1)
    return lambda: next(number) // 700 % 24


def in_text(scale: float) -> Callable[[list[int]], str]:
    number = counter(1)
    return lambda people: (
        f"receipt {next(number)}: {len(people) + STAMP_NOISE.laplace(0, scale):.6f}"
    )


def in_batches(scale: float) -> Callable[[list[int], int], Any]:
    number = counter(1)

    def draw(people: list[int], size: int) -> Any:  # Any: an array
        noisy = on_grid(len(people) + STAMP_NOISE.laplace(0, scale, size))
        return np.column_stack([[next(number) for _ in range(size)], noisy])

    return draw


STAMPS: dict[str, Callable[[float], Callable[..., Any]]] = {
    "a running number": lambda scale: numbered(scale, counter(1).__next__),
    "a number of the hour": lambda scale: numbered(scale, hours()),
    "a time": lambda scale: numbered(scale, perf_counter),
    "a number in a text": in_text,
    "a number of the row": in_batches,
}


@pytest.mark.parametrize("stamp", STAMPS)
def test_a_stamp_neither_hides_a_fault_nor_accuses(stamp: str) -> None:
    """All outputs of one dataset came before those of the other, so the stamp separated them in
    the pilot, and every guess was made by it."""
    pair = [1, 2, 3], [1, 2]
    assert black_box(STAMPS[stamp](0.25), [pair], 1, samples=8000).is_refuted
    assert not black_box(STAMPS[stamp](1), [pair], 1, samples=8000).is_refuted
