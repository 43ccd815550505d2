"""The counter of a stream: its totals, what they cost together, how wrong they are."""

import math
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from discreet import Ledger, Limit
from discreet._exact import fraction
from discreet._unit import Change, Unit
from discreet.accounting import PrivacyLoss
from discreet.audit import SeededBits, ZeroNoiseBits, replay
from discreet.errors import InvalidArgument, SessionEnded, WrongUnit
from discreet.mechanisms import (
    Bounded,
    DiscreteLaplace,
    Gaussian,
    Sensitivity,
    session,
    session_through,
)
from discreet.mechanisms._discrete_gaussian import DiscreteGaussian
from discreet.mechanisms.trees import StreamCounter, TreeNoise
from discreet.noise import SecureBits
from discreet.noise._sums import sum_half_width
from tests.bad_values import BadValue
from tests.mechanisms.kit import PERSON, FakePayer, number

REPLACED = PERSON.with_change(Change.REPLACE)


def totals(counter: StreamCounter, values: list[int], bits: Any) -> list[int]:
    answer = counter.begin(bits)
    return [answer(value)[0] for value in values]


def runs(steps: int) -> list[range]:
    """The runs of steps, from 0, that get a sum: those that end with each step."""
    ends = range(1, steps + 1)
    return [range(end - (end & -end), end) for end in ends]


def test_without_noise_the_totals_are_exact_and_the_end_is_known() -> None:
    counter, values = StreamCounter(DiscreteLaplace(2), steps=37), [(7 * i) % 5 for i in range(37)]
    answer = counter.begin(ZeroNoiseBits())
    found = [answer(value) for value in values]
    assert [total for total, _ in found] == np.cumsum(values).tolist()
    assert [goes_on for _, goes_on in found] == [True] * 36 + [False]


@pytest.mark.parametrize("steps", [1, 2, 7, 8, 30])
def test_each_total_is_the_sum_of_its_runs_with_their_noise(steps: int) -> None:
    """One draw for each step, and no value has a say in the draws."""
    law = DiscreteLaplace(5).law
    counter, bits = StreamCounter(DiscreteLaplace(5), steps=steps), SeededBits(9)
    noise = dict(zip(runs(steps), (law.draw(bits) for _ in range(steps)), strict=True))
    values = [10**30 * (i % 3) - i for i in range(steps)]
    for step, total in enumerate(totals(counter, values, SeededBits(9)), 1):
        tiles, at = [], step
        while at:
            tiles.append(range(at - (at & -at), at))
            at -= at & -at
        assert total == sum(values[:step]) + sum(noise[tile] for tile in tiles)


@pytest.mark.parametrize("change", Change)
@pytest.mark.parametrize(
    ("steps", "per_unit", "most"), [(1, 1, 1), (6, 1, 2), (7, 2, 1), (8, 3, 2)]
)
def test_no_neighbour_of_a_small_universe_loses_more(
    change: Change, steps: int, per_unit: int, most: int
) -> None:
    """Over all ways to move this many steps: what the sums of each length move by, in both norms,
    is at most what is priced, and for some exactly so; half the noise is therefore found out."""
    unit = PERSON.with_change(change)
    counter = StreamCounter(DiscreteLaplace(4), steps=steps, per_unit=per_unit, most=most)
    moved = min(steps, per_unit * (1 if change is Change.ADD_REMOVE else 2))
    priced, worst = counter._levels(unit), Fraction(0)
    for places in combinations(range(steps), moved):
        for sizes in product((-most, most), repeat=moved):
            by_step = np.zeros(steps, int)
            by_step[list(places)] = sizes
            total = 0
            for level, allowed in enumerate(priced):
                moves = [abs(by_step[run].sum()) for run in runs(steps) if len(run) == 1 << level]
                assert sum(moves) <= allowed.l1
                assert sum(m * m for m in moves) <= allowed.l2_squared
                assert max(moves, default=0) <= allowed.linf
                total += sum(moves)
            worst = max(worst, Fraction(int(total), 4))
    claimed = fraction(counter.privacy_loss(unit).epsilon())
    assert worst <= claimed + Fraction(1, 10**12)
    assert 2 * worst > claimed


@pytest.mark.parametrize("noise", [DiscreteLaplace(9), Gaussian(9), DiscreteGaussian(9)], ids=repr)
def test_one_step_of_a_unit_costs_as_many_sums_as_it_is_in(noise: TreeNoise) -> None:
    counter = StreamCounter(noise, steps=365)
    assert counter.privacy_loss(PERSON) == 9 * noise.privacy_loss(number())
    assert counter.privacy_loss(PERSON).unit == PERSON


@pytest.mark.parametrize("unit", [PERSON, REPLACED], ids=str)
def test_calibration_meets_its_target(unit: Unit) -> None:
    counter = StreamCounter.for_epsilon(0.5, unit, steps=1000, per_unit=3, most=2)
    assert counter.privacy_loss(unit).epsilon() == 0.5


def test_a_wanted_error_is_met() -> None:
    wanted = StreamCounter.for_error(50, 0.95, steps=6)
    assert 48 <= wanted.error(0.95) <= 50


def test_a_session_counts_pays_once_and_ends() -> None:
    payer, counter = FakePayer(), StreamCounter(DiscreteLaplace(Fraction(1, 1000)), steps=3)
    with session(counter, payer, unit=PERSON, name="arrivals") as stream:
        assert [stream.ask(number(lambda n=n: n)) for n in (5, 0, 4)] == [5, 5, 9]  # type: ignore[misc]
        with pytest.raises(SessionEnded):
            stream.ask(number())
    assert payer.charges == [counter.privacy_loss(PERSON)]
    assert payer.events == ["charge"]


def test_a_ledger_is_charged_for_the_whole_session() -> None:
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(epsilon=1))
    counter = StreamCounter.for_epsilon(1, PERSON, steps=10)
    with session(counter, ledger, unit=PERSON, name="arrivals") as stream:
        stream.ask(number())
    assert float(ledger.spent().epsilon) == 1.0


def test_too_sensitive_counts_are_refused_unread_and_the_session_goes_on() -> None:
    counter = StreamCounter(DiscreteLaplace(Fraction(1, 1000)), steps=3, most=2)
    pair: Bounded[Any] = Bounded(
        list, sensitivity=Sensitivity(l1=1), unit=PERSON, name="pair", shape=(2,)
    )
    real: Bounded[Any] = Bounded.real(lambda: 1, sensitivity=1, step=1, unit=PERSON, name="real")
    elsewhere: Bounded[int] = Bounded(lambda: 1, sensitivity=1, unit=REPLACED, name="other")
    with session(counter, FakePayer(), unit=PERSON, name="arrivals") as stream:
        for wrong in (number(sensitivity=3), pair, real):
            with pytest.raises(InvalidArgument):
                stream.ask(wrong)
        with pytest.raises(WrongUnit):
            stream.ask(elsewhere)
        assert stream.ask(number(sensitivity=2)) == 41


def test_neighbours_draw_and_show_alike() -> None:
    """Two streams of which one person moves one step, through the same door."""

    def act(door: Any, values: list[int]) -> object:
        counter = StreamCounter(DiscreteLaplace(3), steps=5)
        with session_through(door, counter, unit=PERSON, name="arrivals") as stream:
            return [stream.ask(number(lambda n=value: n)) for value in values]  # type: ignore[misc]

    replay(act, [3, 0, 0, 1, 7], [3, 0, 1, 1, 7])


# Forecasts


@pytest.mark.parametrize(
    "noise", [DiscreteLaplace(1000), Gaussian(2.5), DiscreteLaplace(1)], ids=repr
)
@pytest.mark.parametrize("count", [1, 2, 9])
def test_a_sums_forecast_holds_and_is_hardly_too_wide(noise: TreeNoise, count: int) -> None:
    """1e5 sums; six standard deviations of a share, and 1 % for cells."""
    bits, draws = SecureBits(), 100_000
    sums = sum(noise.law.draws(bits, draws).astype(np.int64) for _ in range(count))
    for confidence in (Fraction(1, 2), Fraction(95, 100)):
        q = sum_half_width(noise.law, count, confidence)
        slack = 6.5 * math.sqrt(0.25 / draws)
        assert np.mean(np.abs(sums) <= q) >= float(confidence) - slack
        assert np.mean(np.abs(sums) <= 0.97 * q - 1) <= float(confidence) + slack
        assert q <= np.quantile(np.abs(sums), float(confidence)) * 1.03 + 1


def test_sums_of_small_noise_are_exact() -> None:
    """By convolving the chances of 1 and of 2 draws as fractions of floats."""
    law = DiscreteLaplace(1).law
    chances = {x: math.tanh(0.5) * math.exp(-abs(x)) for x in range(-60, 61)}
    two: dict[int, float] = {}
    for (a, p), (b, q) in product(chances.items(), repeat=2):
        two[a + b] = two.get(a + b, 0) + p * q
    for confidence in ("0.1", "0.5", "0.9", "0.999999"):
        inside, q = 0.0, -1
        while inside < float(confidence):
            q += 1
            inside += two[q] + (two[-q] if q else 0)
        assert sum_half_width(DiscreteLaplace(1).law, 2, Fraction(confidence)) == q
    assert law.stddev() > 0


def test_far_out_each_draw_is_bounded_by_itself() -> None:
    sure = 1 - Fraction(1, 10**30)
    alone = DiscreteLaplace(5).error(1 - Fraction(1, 3 * 10**30))
    assert sum_half_width(DiscreteLaplace(5).law, 3, sure) == 3 * alone


@pytest.mark.parametrize("steps", [1, 2, 3, 6, 7, 8, 100])
def test_the_worst_step_is_the_one_forecast(steps: int) -> None:
    counter = StreamCounter(DiscreteLaplace(20), steps=steps)
    each = [counter.error_after(step, 0.9) for step in range(1, steps + 1)]
    assert counter.error(0.9) == max(each)


def test_the_tree_beats_noise_on_each_step() -> None:
    counter = StreamCounter.for_epsilon(1, PERSON, steps=10_000)
    by_step = math.sqrt(10_000) * DiscreteLaplace(1).stddev_of_noise()
    assert counter.error(0.95) < 1.5 * by_step
    assert StreamCounter.for_epsilon(1, PERSON, steps=10**6).error(0.95) < by_step * 2


# Bad input


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "1", None, float("nan")])
def test_bad_numbers_are_refused_by_name(wrong: BadValue) -> None:
    for name in ("steps", "per_unit", "most"):
        with pytest.raises(InvalidArgument, match=name):
            StreamCounter(DiscreteLaplace(1), **{"steps": 4, name: wrong})
    with pytest.raises(InvalidArgument, match="noise"):
        StreamCounter(wrong, steps=2)
    with pytest.raises(InvalidArgument, match="step"):
        StreamCounter(DiscreteLaplace(1), steps=4).error_after(5 if wrong == 1.5 else wrong, 0.9)
    with pytest.raises(InvalidArgument, match="confidence"):
        StreamCounter(DiscreteLaplace(1), steps=4).error(wrong)
    with pytest.raises(InvalidArgument, match="steps"):
        StreamCounter(DiscreteLaplace(1), steps=1 << 63)


def test_a_price_is_a_sum_for_its_unit() -> None:
    assert isinstance(StreamCounter(Gaussian(4), steps=5).privacy_loss(REPLACED), PrivacyLoss)
    alone = StreamCounter(Gaussian(4), steps=1).privacy_loss(PERSON)
    assert alone == Gaussian(4).privacy_loss(number())
