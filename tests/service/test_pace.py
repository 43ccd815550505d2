"""Deadlines, sizes, rates and places are those of public numbers."""

from contextlib import ExitStack

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as some

from discreet.service._pace import SIZE, RateLimit, deadline, padded
from discreet.service._problems import Problem
from discreet.service._waiting_room import WaitingRoom


@given(some.floats(0, 1000), some.sampled_from([0.25, 2.0, 7.5]))
def test_a_deadline_is_the_first_of_its_grid(seconds: float, first: float) -> None:
    due = deadline(seconds, first)
    assert due >= seconds
    assert due == first or due / 2 < seconds
    steps = due / first
    assert int(steps) == steps
    assert int(steps) & (int(steps) - 1) == 0


@given(some.binary(max_size=2 * SIZE))
def test_a_size_is_a_multiple_and_the_text_stays(answer: bytes) -> None:
    full = padded(answer)
    assert len(full) % SIZE == 0
    assert full.startswith(answer)
    assert full[len(answer) :].strip() == b""


def test_a_caller_gets_a_burst_and_then_the_rate() -> None:
    now = [0.0]
    limit = RateLimit(rate=2, burst=5, clock=lambda: now[0])
    assert [limit.admits("ana") for _ in range(7)] == [True] * 5 + [False] * 2
    assert limit.admits("ben")  # each has his own
    now[0] += 1
    assert [limit.admits("ana") for _ in range(3)] == [True, True, False]
    now[0] -= 100  # a clock that goes back gives nothing
    assert not limit.admits("ana")
    now[0] += 1e6
    assert [limit.admits("ana") for _ in range(7)] == [True] * 5 + [False] * 2


@pytest.mark.parametrize(("declared", "at_once"), [(None, 60), (2, 6)])
def test_the_owner_sets_the_rate(declared: int | None, at_once: int) -> None:
    """The burst is that of three seconds."""
    rate = RateLimit.each_second(declared)
    rate._clock = lambda: 0.0
    assert [rate.admits("ana") for _ in range(at_once + 1)] == [True] * at_once + [False]


def test_one_token_takes_some_of_the_places_only() -> None:
    async def fill() -> None:
        room = WaitingRoom(5, 3)
        with ExitStack() as taken:
            for _ in range(3):
                taken.enter_context(room.place_for("ana"))
            with pytest.raises(Problem), room.place_for("ana"):
                pass
            for _ in range(2):
                taken.enter_context(room.place_for("ben"))
            with pytest.raises(Problem), room.place_for("eve"):
                pass
        with room.place_for("ana"):
            pass

    anyio.run(fill)
