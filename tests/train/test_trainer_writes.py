"""A step must not write into the containers of a Trainer, even where they refer to each other."""

from typing import Any

import pytest

from discreet.errors import Refused
from discreet.train._state import _trainer_writes


def in_a_circle(count: int) -> list[dict[str, Any]]:
    """Dictionaries of which each holds the list of all."""
    every: list[dict[str, Any]] = []
    every.extend({"number": number, "every": every} for number in range(count))
    return every


def test_containers_in_a_circle_are_copied_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without that, a hundred of them would take a million copies."""
    seen = list[object]()
    parts_of = _trainer_writes._parts

    def noted(value: object) -> dict[Any, Any] | None:  # Any: as the product has it
        seen.append(value)
        return parts_of(value)

    monkeypatch.setattr(_trainer_writes, "_parts", noted)
    _trainer_writes._copied({"held": in_a_circle(100)})
    assert len([value for value in seen if isinstance(value, list | dict)]) <= 300


@pytest.mark.parametrize("count", [1, 2, 100])
def test_a_write_into_a_circle_is_refused_and_put_back(count: int) -> None:
    every = in_a_circle(count)
    places = [("the module", {"first": every[0], "held": every})]
    with (
        pytest.raises(Refused, match="written into the module"),
        _trainer_writes.refuse_trainer_writes(places, "training_step"),
    ):
        every[-1]["number"] = 0.5
    assert [one["number"] for one in every] == [*range(count)]
    assert all(one["every"] is every for one in every)
