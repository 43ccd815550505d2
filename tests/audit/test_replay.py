"""Record and replay finds a dependence on one unit in everything beside the answer."""

import warnings
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

from discreet.audit import Difference, replay
from discreet.errors import InvalidArgument
from discreet.mechanisms import Bounded, DiscreteLaplace, Door, Sensitivity, release_through
from tests.mechanisms.kit import LAPLACE, PERSON, number


def counting(count: Callable[[list[float]], int]) -> Callable[[Door, list[float]], object]:
    """The act of releasing what this function gives of a table."""
    return lambda door, table: release_through(door, number(lambda: count(table)), LAPLACE)


def finite(table: list[float]) -> int:
    """How many are still finite as powers; NumPy warns of the others."""
    return int(np.isfinite(np.exp(table)).sum())


def test_a_warning_that_depends_on_a_row_is_found() -> None:
    def act(door: Door, table: list[float]) -> object:
        return release_through(door, number(lambda: 1), LAPLACE), finite(table)

    replay(act, [1.0], [1.0, 2.0])
    with pytest.raises(Difference, match="the warnings differ"):
        replay(act, [1.0], [1.0, 1e5])


def test_a_warning_of_what_is_released_reaches_nobody() -> None:
    replay(counting(finite), [1.0], [1.0, 1e5])


def test_a_warning_of_both_runs_is_issued_once_and_may_be_an_error() -> None:
    def warned(door: Door, table: list[float]) -> object:
        warnings.warn("old", FutureWarning, stacklevel=1)
        return counting(len)(door, table)

    with pytest.warns(FutureWarning, match="old") as caught:
        replay(warned, [1.0], [1.0, 2.0])
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(FutureWarning):
            replay(warned, [1.0], [1.0, 2.0])


# Every public fact that a row could change, one at a time

SHORT, LONG = [1.0], [1.0, 2.0]  # neighbours, in all that follows
VECTOR = Sensitivity(l0=3, l1=5, l2_squared=11, linf=3)


def answered(door: Door, compute: Callable[[], int] = lambda: 7, **stated: str) -> object:
    return release_through(door, number(compute), LAPLACE, **stated)


def drawing_by_rows(door: Door, table: list[float]) -> object:
    answered(door)
    return [door.bits.word() for _ in table] and None


def drawing_arrays_by_rows(door: Door, table: list[float]) -> object:
    answered(door)
    door.bits.words(3 * len(table))
    return None


def failing_by_rows(door: Door, table: list[float]) -> object:
    if len(table) > 1:
        raise InvalidArgument("too many rows")
    return answered(door)


def naming_a_row(door: Door, table: list[float]) -> object:
    raise InvalidArgument(f"{max(table)} is too much")


LEAKS: dict[str, Callable[[Door, list[float]], object]] = {
    "words drawn one by one": drawing_by_rows,
    "words drawn in arrays": drawing_arrays_by_rows,
    "no release of one table": lambda door, table: len(table) == 1 and answered(door) and None,
    "two releases of one table": lambda door, table: [answered(door) for _ in table] and None,
    "its price": lambda door, table: release_through(door, number(), DiscreteLaplace(len(table))),
    "its purpose": lambda door, table: answered(door, purpose=f"of {len(table)}"),
    "who asks": lambda door, table: answered(door, by=f"ana {len(table)}"),
    "a request": lambda door, table: answered(door, request=f"request {len(table)}"),
    "what the engine does": lambda door, table: door.note("engine", f"LIMIT {len(table)}"),
    "a lock": lambda door, table: answered(door, lambda: 1 // (2 - len(table))),
    "an error": failing_by_rows,
    "an error's text": naming_a_row,
    "the type": lambda door, table: answered(door) if len(table) == 1 else None,
    "its columns": lambda door, table: SimpleNamespace(
        columns=[f"x{n}" for n, _ in enumerate(table)]
    ),
    "its columns' order": lambda door, table: SimpleNamespace(
        columns=["a", "b"] if len(table) == 1 else ["b", "a"]
    ),
    "a released type": lambda door, table: door.note("released", 1 if len(table) == 1 else 1.0),
    "a released length": lambda door, table: door.note("released", np.zeros(len(table))),
    "a released dtype": lambda door, table: door.note(
        "released", np.zeros(2, np.int32 if len(table) == 1 else np.int64)
    ),
    "a released column": lambda door, table: door.note("released", dict.fromkeys(table, 1)),
    "a released column's type": lambda door, table: door.note(
        "released", {"a": 1 if len(table) == 1 else 1.0}
    ),
    "the order of released columns": lambda door, table: door.note(
        "released", {"a": 1, "b": 2} if len(table) == 1 else {"b": 2, "a": 1}
    ),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_each_public_fact_is_compared(leak: str) -> None:
    replay(LEAKS[leak], SHORT, SHORT)
    for one, other in ((SHORT, LONG), (LONG, SHORT)):
        with pytest.raises(Difference, match="differ"):
            replay(LEAKS[leak], one, other)


def moving(moves: list[int], sensitivity: Sensitivity) -> Callable[[Door, list[float]], object]:
    """Release a vector that the second row moves by this much."""

    def act(door: Door, table: list[float]) -> object:
        bounded = Bounded(
            lambda: np.array(moves) * (len(table) - 1),
            sensitivity=sensitivity,
            unit=PERSON,
            name="counts",
            shape=(len(moves),),
        )
        return release_through(door, bounded, LAPLACE)

    return act


@pytest.mark.parametrize(
    "moves", [[3, -1, 1], [0, -3, 0], [-2, 2, 1], [1, 1, 1], [0, 0, 0]], ids=str
)
def test_moves_within_the_sensitivity_pass(moves: list[int]) -> None:
    replay(moving(moves, VECTOR), SHORT, LONG)


@pytest.mark.parametrize(
    ("moves", "norm"),
    [
        ([1, 1, 1, 1], "l0"),
        ([2, 2, 2], "l1"),
        ([-3, 2, -1], "l1"),
        ([-3, 2, 0], "l2_squared"),
        ([0, 4, 0], "linf"),
        ([0, 0, -4], "linf"),
    ],
    ids=str,
)
def test_one_step_beyond_the_sensitivity_is_found(moves: list[int], norm: str) -> None:
    """By each norm, and by one step: whoever allows more than what is stated lets these through."""
    bounds = {
        "l0": Sensitivity(l0=3, linf=3),
        "l1": Sensitivity(l0=3, l1=5, linf=3),
        "l2_squared": Sensitivity(l0=3, l2_squared=12, linf=3),
        "linf": Sensitivity(l0=3, linf=3),
    }
    for one, other in ((SHORT, LONG), (LONG, SHORT)):
        with pytest.raises(Difference, match=rf"moved by \d+ in {norm}, its sensitivity is"):
            replay(moving(moves, bounds[norm]), one, other)


@pytest.mark.parametrize("sensitivity", [1, 2, 3, 10, 2**40])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_number_may_move_by_its_sensitivity_and_no_further(sensitivity: int, sign: int) -> None:
    def act(moved: int) -> Callable[[Door, list[float]], object]:
        return lambda door, table: release_through(
            door, number(lambda: sign * moved * len(table), sensitivity), LAPLACE
        )

    replay(act(sensitivity), SHORT, LONG)
    with pytest.raises(Difference, match=f"moved by {sensitivity + 1} in"):
        replay(act(sensitivity + 1), SHORT, LONG)
