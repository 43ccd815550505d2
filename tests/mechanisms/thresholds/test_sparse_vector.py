"""The sparse vector technique: its law on all small neighbours, and variants that are broken."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from discreet import accounting
from discreet._budget import Limit
from discreet._unit import Change
from discreet.audit import SeededBits, ZeroNoiseBits, replay
from discreet.errors import InvalidArgument, Refused, SessionEnded
from discreet.ledger import Ledger
from discreet.mechanisms import Bounded, Door, FloatArray, Sensitivity, session, session_through
from discreet.mechanisms.selection import Moves
from discreet.mechanisms.thresholds import NumericSparseVector, SparseVector
from discreet.noise import Bits, DiscreteLaplaceLaw
from tests.bad_values import BadValue
from tests.mechanisms.kit import PERSON, FakePayer, number

Values = tuple[int, ...]
Laws = Callable[[Values], dict[Any, float]]  # Any: what is told; with its probability
REPLACED = PERSON.with_change(Change.REPLACE)
HALF = Fraction(1, 2)


def mass(scale: float, reach: int) -> FloatArray:
    """The chances of -reach, ..., reach."""
    x = np.arange(-reach, reach + 1)
    return np.asarray(math.tanh(0.5 / scale) * np.exp(-np.abs(x) / scale))


def at_least(least: npt.NDArray[np.int64], scale: float) -> FloatArray:
    tail = np.exp(-np.abs(np.where(least > 0, least, 1 - least)) / scale)
    tail /= 1 + math.exp(-1 / scale)
    return np.asarray(np.where(least > 0, tail, 1 - tail), np.float64)


def outcomes(values: Values, hits: int) -> Iterator[tuple[bool, ...]]:
    """All sequences of answers of a session on these values."""
    for answers in itertools.product((False, True), repeat=len(values)):
        ends = [i for i in range(len(answers)) if sum(answers[: i + 1]) == hits]
        if not ends or ends[0] == len(answers) - 1:
            yield answers
        elif not any(answers[ends[0] + 1 :]):
            yield answers[: ends[0] + 1]


def law(threshold_scale: float, query_scale: float, hits: int) -> Laws:
    """By its definition, for threshold 0: a sum over the threshold's noise."""
    line = np.arange(-int(60 * threshold_scale) - 5, int(60 * threshold_scale) + 6)
    chances = mass(threshold_scale, line[-1])

    def of(values: Values) -> dict[Any, float]:
        above = [at_least(line - value, query_scale) for value in values]
        found = {}
        for answers in outcomes(values, hits):
            each = (a if is_above else 1 - a for a, is_above in zip(above, answers, strict=False))
            found[answers] = float(math.prod(each, start=chances).sum())
        return found

    return of


def neighbours(moves: Moves, values: Iterable[int], count: int) -> Iterator[tuple[Values, Values]]:
    ways = [(0, 1), (0, -1)] if moves is Moves.TOGETHER else [(-1, 0, 1)]
    for one in itertools.product(values, repeat=count):
        for way in ways:
            for step in itertools.product(way, repeat=count):
                yield one, tuple(v + d for v, d in zip(one, step, strict=True))


def worst(of: Laws, pairs: Iterable[tuple[Values, Values]]) -> float:
    """The largest privacy loss of all."""
    found, known = 0.0, cache(of)
    for one, other in pairs:
        p, q = known(one), known(other)
        for answers in p:
            if p[answers] > 1e-14:
                found = max(found, math.log(p[answers] / q[answers]) if q[answers] else math.inf)
    return found


SETTINGS = [(1.0, 1.0, 1), (2.0, 4.0, 2), (0.5, 3.0, 3)]


@pytest.mark.parametrize("moves", Moves)
@pytest.mark.parametrize(("one", "each", "hits"), SETTINGS)
def test_neighbours_lose_no_more_than_is_charged(
    one: float, each: float, hits: int, moves: Moves
) -> None:
    mechanism = SparseVector(0, threshold_scale=one, query_scale=each, hits=hits, moves=moves)
    claim = mechanism.privacy_loss(PERSON).epsilon()
    pairs = list(neighbours(moves, (-1, 0, 2), 3))
    assert worst(law(one, each, hits), pairs) <= claim + 1e-9


def pinned(one: float, each: float, hits: int, moves: Moves) -> float:
    """The privacy loss of many numbers that are all answered as below, so that the threshold's
    noise must be large, then of some far below that are answered as above. The first rise, the
    others fall or stay."""
    line, apart = np.arange(-200, 201), int(12 * each)

    def chance(below: int, above: int) -> float:
        answered_so = (1 - at_least(line - below, each)) ** 5000
        answered_so *= at_least(line - above, each) ** hits
        return float((mass(one, 200) * answered_so).sum())

    fallen = -apart - (moves is Moves.ANYHOW)
    return math.log(chance(0, -apart) / chance(1, fallen))


@pytest.mark.parametrize("moves", Moves)
@pytest.mark.parametrize(("one", "each", "hits"), SETTINGS)
def test_the_price_is_reached_and_half_the_noise_caught(
    one: float, each: float, hits: int, moves: Moves
) -> None:
    mechanism = SparseVector(0, threshold_scale=one, query_scale=each, hits=hits, moves=moves)
    claim = mechanism.privacy_loss(PERSON).epsilon()
    assert 0.99 * claim < pinned(one, each, hits, moves) <= claim + 1e-9
    assert pinned(one / 2, each / 2, hits, moves) > 1.9 * claim


@pytest.mark.parametrize("values", [(0, 1, -1), (2, 2, 2), (-3, 0, 0)], ids=str)
def test_sessions_have_this_law(values: Values, monkeypatch: pytest.MonkeyPatch) -> None:
    """All noises up to 8 from 0, one after the other, as the sampler's next draws."""
    scripts: list[int] = []
    monkeypatch.setattr(DiscreteLaplaceLaw, "draw", lambda law, bits: scripts.pop(0))
    chances = dict(zip(range(-8, 9), mass(0.5, 8).tolist(), strict=True))
    mechanism = SparseVector(0, threshold_scale=HALF, query_scale=HALF, hits=2)
    found: dict[tuple[bool, ...], float] = {}
    for noises in itertools.product(chances, repeat=1 + len(values)):
        scripts[:] = noises
        answer, goes_on = mechanism.begin(ZeroNoiseBits()), True
        given: tuple[bool, ...] = ()
        for value in values:
            if goes_on:
                is_above, goes_on = answer(value)
                given += (is_above,)
        found[given] = found.get(given, 0) + math.prod(chances[noise] for noise in noises)
    expected = law(0.5, 0.5, 2)(values)
    assert found.keys() == expected.keys()
    for answers, chance in found.items():
        assert abs(chance - expected[answers]) < 1e-5  # the noises beyond 8


# Variants that were published and are not private, as Lyu, Su and Li (2017) number them; each was
# claimed to cost what is written here, and the same attack finds that it costs more


def without_query_noise(values: Values) -> dict[Any, float]:
    """Algorithm 5 (Stoddard, Chen and Machanavajjhala 2014): the threshold's noise alone."""
    line = np.arange(-60, 61)
    above = [line <= value for value in values]
    found = {}
    for answers in itertools.product((False, True), repeat=len(values)):
        each = (a if is_above else ~a for a, is_above in zip(above, answers, strict=True))
        found[answers] = float(math.prod(each, start=mass(1.0, 60)).sum())
    return found


def telling_the_noisy_number(values: Values) -> dict[Any, float]:
    """Algorithm 3 (Roth's lecture notes, 2011), one hit: the number with the noise that decided,
    threshold and numbers having noise of twice the sensitivity over epsilon = 1."""
    line = np.arange(-120, 121)
    found: dict[Any, float] = {}
    for hit in range(len(values)):
        below = [1 - at_least(line - value, 2.0) for value in values[:hit]]
        for noisy in range(-40, 41):
            is_above = line <= noisy
            own = math.tanh(0.25) * math.exp(-abs(noisy - values[hit]) / 2)
            found[hit, noisy] = own * float(math.prod(below, start=mass(2.0, 120) * is_above).sum())
    return found


BROKEN: dict[str, tuple[Laws, float]] = {
    "Algorithm 3 tells its noisy number": (telling_the_noisy_number, 1.0),
    "Algorithm 4 has too little noise for three hits": (law(4.0, 4 / 3, 3), 1.0),
    "Algorithm 5 has no noise on the numbers": (without_query_noise, 1.0),
    "Algorithm 6 never stops": (law(2.0, 2.0, 99), 1.0),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_variants_are_caught(name: str) -> None:
    of, claim = BROKEN[name]
    steps = [(0,) * 3 + (1,) * 3, (1,) * 3 + (0,) * 3, (0,) * 6, (1,) * 6, (1, 0) * 3, (0, 1) * 3]
    pairs = [(one, other) for one in steps for other in steps]
    assert worst(of, pairs) > claim + 0.2
    right = SparseVector.for_epsilon(1, 0, hits=3)
    scales = float(right.threshold_scale), float(right.query_scale)
    assert worst(law(*scales, 3), pairs) <= 1 + 1e-9


def test_the_noise_of_the_decision_is_not_the_released_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[int] = []
    honest = DiscreteLaplaceLaw.draw

    def draw(law: DiscreteLaplaceLaw, bits: Bits) -> int:
        drawn.append(honest(law, bits))
        return drawn[-1]

    monkeypatch.setattr(DiscreteLaplaceLaw, "draw", draw)
    finding = SparseVector(5, threshold_scale=2, query_scale=3, hits=2)
    answer = NumericSparseVector(finding, answer_scale=4).begin(SeededBits(1))
    assert answer(-1000) == (None, True)
    assert answer(1000) == (1000 + drawn[3], True)
    assert answer(1000) == (1000 + drawn[5], False)
    assert len(drawn) == 6


# Price


def test_the_session_costs_exactly_epsilon() -> None:
    for hits, sensitivity, moves in itertools.product((1, 2, 7), (1, 5), Moves):
        kind: dict[str, Any] = {"hits": hits, "sensitivity": sensitivity, "moves": moves}
        assert SparseVector.for_epsilon(0.3, 9, **kind).privacy_loss(PERSON).epsilon() == 0.3
        numeric = NumericSparseVector.for_epsilon(0.3, 9, **kind)
        assert numeric.privacy_loss(PERSON).epsilon() == 0.3


def test_the_split_has_the_smallest_variance() -> None:
    """No other split of the same epsilon has a smaller variance of the two noises' difference."""
    made = SparseVector.for_epsilon(1, 0, hits=5)
    one, each = float(made.threshold_scale), float(made.query_scale)
    for own in np.linspace(0.02, 0.98, 500):
        assert one**2 + each**2 <= ((1 / own) ** 2 + (10 / (1 - own)) ** 2) * (1 + 1e-8)


def test_privacy_loss_has_the_terms_of_its_fields() -> None:
    kind = SparseVector(3, threshold_scale=2, query_scale=5, hits=4, sensitivity=2)
    one = accounting.SparseVector(2, 5, 4, 2)
    numeric = NumericSparseVector(kind, answer_scale=9)
    assert kind.privacy_loss(PERSON).terms == ((one, 1),)
    assert dict(numeric.privacy_loss(PERSON).terms) == {one: 1, accounting.DiscreteLaplace(9, 2): 4}
    assert repr(numeric) == (
        "NumericSparseVector(SparseVector(3, threshold_scale=2, query_scale=5, hits=4, "
        "sensitivity=2), answer_scale=9)"
    )
    together = SparseVector(3, threshold_scale=2, query_scale=5, moves=Moves.TOGETHER)
    assert repr(together).endswith("hits=1, sensitivity=1, moves=Moves.TOGETHER)")
    with pytest.raises(Refused, match=r"use Moves\.ANYHOW"):
        together.privacy_loss(REPLACED)


# Forecast


def chance_of_a_mistake(mechanism: SparseVector, gap: int, under: int, over: int) -> float:
    """A sum over the threshold's noise, without blocks."""
    one, each = float(mechanism.threshold_scale), float(mechanism.query_scale)
    line = np.arange(-int(50 * one) - 5, int(50 * one) + 6)
    answered_so = (1 - at_least(line + gap, each)) ** under * at_least(line - gap, each) ** over
    return 1 - float((mass(one, line[-1]) * answered_so).sum())


@pytest.mark.parametrize("confidence", [0.5, 0.95])
@pytest.mark.parametrize(("questions", "hits"), [(1, 1), (2, 1), (20, 1), (20, 30), (9, 2)])
def test_the_forecast_is_what_the_worst_numbers_do(
    questions: int, hits: int, confidence: float
) -> None:
    mechanism = SparseVector.for_epsilon(0.05, 0, hits=hits)
    error = mechanism.error(confidence, questions=questions)
    mixes = [(questions - over, over) for over in range(min(hits, questions) + 1)]
    mistakes = [chance_of_a_mistake(mechanism, error + 1, *mix) for mix in mixes]
    assert max(mistakes) <= 1 - confidence
    smaller = int(error * 0.97)
    assert max(chance_of_a_mistake(mechanism, smaller, *mix) for mix in mixes) > 1 - confidence


def test_the_forecast_is_what_is_measured() -> None:
    """5000 sessions: off by 0.0463 in fewer than one of 10^9 runs (Hoeffding)."""
    mechanism, bits = SparseVector.for_epsilon(0.2, 100, hits=3), SeededBits(1)
    gap = mechanism.error(0.7, questions=6) + 1
    mistakes = 0
    for _ in range(5000):
        answer = mechanism.begin(bits)
        mistakes += any(answer(100 + s * gap)[0] != (s > 0) for s in (-1, 1, -1, -1, 1, 1))
    assert abs(mistakes / 5000 - 0.3) < 0.0463


@pytest.mark.parametrize("questions", [1, 40])
def test_the_wanted_error_is_reached(questions: int) -> None:
    made = SparseVector.for_error(30, 0.9, 7, questions=questions, hits=2)
    assert made.error(0.9, questions=questions) <= 30
    more = Fraction(101, 100)
    noisier = SparseVector(
        7,
        threshold_scale=made.threshold_scale * more,
        query_scale=made.query_scale * more,
        hits=2,
    )
    assert noisier.error(0.9, questions=questions) > 30


# Sessions


def test_a_session_answers_until_the_hits_are_used_up() -> None:
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(epsilon=1))
    mechanism = SparseVector.for_epsilon(1, 1000, hits=2)
    with session(mechanism, ledger, unit=PERSON, name="alarm") as opened:
        answers = [opened.ask(number(lambda n=n: n)) for n in (-900, 3000, -900, 3000)]  # type: ignore[misc]
        assert answers == [False, True, False, True]
        with pytest.raises(SessionEnded):
            opened.ask(number())


def test_too_sensitive_questions_are_not_read() -> None:
    mechanism = SparseVector(0, threshold_scale=1, query_scale=1, sensitivity=2)

    def read() -> int:
        raise AssertionError

    with session(mechanism, FakePayer(), unit=PERSON, name="alarm") as opened:
        with pytest.raises(InvalidArgument, match="sensitivity 2 at most"):
            opened.ask(number(read, sensitivity=3))
        vector: Bounded[Any] = Bounded(
            read,
            sensitivity=Sensitivity(l1=1),
            unit=PERSON,
            name="v",
            shape=(2,),
        )
        with pytest.raises(InvalidArgument, match="one integer"):
            opened.ask(vector)
        assert opened.ask(number(lambda: 10**30, sensitivity=2))


@pytest.mark.parametrize("kind", [SparseVector, NumericSparseVector])
def test_neighbours_differ_in_nothing_else(
    kind: type[SparseVector] | type[NumericSparseVector],
) -> None:
    """As long as the answers are the same, as many words are drawn."""

    def act(door: Door, values: list[int]) -> object:
        mechanism = kind.for_epsilon(1, 1000, hits=2)
        with session_through(door, mechanism, unit=PERSON, name="alarm") as opened:
            for value in values:
                opened.ask(number(lambda value=value: value))  # type: ignore[misc]
        return None

    replay(act, [5, 9000, 6], [6, 9001, 5], seed=1)


def test_without_noise_the_answers_are_right() -> None:
    answer = SparseVector(4, threshold_scale=9, query_scale=9, hits=9).begin(ZeroNoiseBits())
    assert [answer(value)[0] for value in (3, 4, 5, -9)] == [False, True, True, False]
    numeric = NumericSparseVector.for_epsilon(1, 4, hits=2).begin(ZeroNoiseBits())
    assert [numeric(value) for value in (3, 4, 6)] == [(None, True), (4, True), (6, False)]


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), True, "1", None], ids=repr)
def test_bad_input_is_refused_by_name(wrong: BadValue) -> None:
    good: dict[str, Any] = {"threshold_scale": 1, "query_scale": 1}
    for name in ("threshold_scale", "query_scale", "hits", "sensitivity"):
        with pytest.raises(InvalidArgument, match=f"{name} = "):
            SparseVector(3, **{**good, name: wrong})
    for name in ("hits", "sensitivity"):
        with pytest.raises(InvalidArgument, match=f"{name} = "):
            SparseVector.for_epsilon(1, 3, **{name: wrong})
    with pytest.raises(InvalidArgument, match="epsilon = "):
        SparseVector.for_epsilon(wrong, 3)
    with pytest.raises(InvalidArgument, match="epsilon = "):
        NumericSparseVector.for_epsilon(wrong, 3)
    with pytest.raises(InvalidArgument, match="answer_scale = "):
        NumericSparseVector(SparseVector(3, **good), answer_scale=wrong)
    with pytest.raises(InvalidArgument, match="questions = "):
        SparseVector(3, **good).error(0.9, questions=wrong)
    if wrong not in (0, -1):
        with pytest.raises(InvalidArgument, match="threshold = "):
            SparseVector(wrong, **good)


def test_the_threshold_is_whole_and_moves_are_named() -> None:
    good: dict[str, Any] = {"threshold_scale": 1, "query_scale": 1}
    assert SparseVector(-3, **good).threshold == -3
    with pytest.raises(InvalidArgument, match=r"threshold = 1\.5: give a whole number"):
        SparseVector(1.5, **good)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="moves = "):
        SparseVector(3, **{**good, "moves": "together"})
    with pytest.raises(InvalidArgument, match="finding = "):
        NumericSparseVector(7, answer_scale=1)  # type: ignore[arg-type]
