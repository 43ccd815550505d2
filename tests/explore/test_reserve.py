"""Outcomes in reserve: each is given out once, and is for the values that were asked for."""

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from queue import Full

import pytest
from starlette.testclient import TestClient

from discreet.explore import pages
from discreet.explore._page import (
    ControlPlaces,
    ControlValues,
    Experiment,
    ExperimentOutcome,
    Page,
)
from discreet.explore._reserve import WAITING, OutcomeQueue, OutcomeReserve
from discreet.explore._server import _compute_nearest, application

ODDS = pages.page("survey").controls[0].values


class Drawn:
    """Counts the outcomes that were drawn for each of the odds."""

    def __init__(self) -> None:
        self.counts: Counter[object] = Counter()

    def record(self, many: Sequence[ControlValues]) -> Iterator[ExperimentOutcome]:
        for values in many:
            self.counts[values["odds"]] += 1
            yield ExperimentOutcome(f"odds {values['odds']}, number {self.counts[values['odds']]}")

    def run(self, values: ControlValues) -> ExperimentOutcome:
        return next(self.record([values]))


def made(drawn: Drawn, busy: str = "Training…") -> Page:
    """The survey with one experiment, which depends on the odds alone."""
    slow = Experiment("try", "Try", "tries", ("odds",), drawn.run, busy=busy, record=drawn.record)
    return replace(pages.page("survey"), experiments=(slow,))


def fill(reserve: OutcomeReserve) -> None:
    while reserve.fill():
        pass


def test_each_outcome_is_given_out_once() -> None:
    drawn, reserve = Drawn(), OutcomeReserve()
    page = made(drawn)
    [experiment] = page.experiments
    reserve.open(page, page.start)
    fill(reserve)
    assert drawn.counts == dict.fromkeys(ODDS, 1)
    said = [reserve.take(page, experiment, (1, people, 0, 0)).says for people in (0, 3)]
    assert said == [f"odds {ODDS[1]}, number 1", f"odds {ODDS[1]}, number 2"]
    assert drawn.counts[ODDS[1]] == 2  # only the second one was drawn when it was asked for
    fill(reserve)
    assert drawn.counts == dict.fromkeys(ODDS, 1) | {ODDS[1]: 3}


def test_near_values_of_the_newest_page_come_first() -> None:
    first, second, reserve = Drawn(), Drawn(), OutcomeReserve()
    reserve.open(made(first), (0, 0, 0, 0))
    reserve.open(replace(made(second), name="other"), (len(ODDS) - 1, 0, 0, 0))
    assert reserve.fill()
    assert set(second.counts) == set(ODDS[-4:])
    assert not first.counts


def test_quick_experiments_have_no_reserve() -> None:
    drawn, reserve = Drawn(), OutcomeReserve()
    page = made(drawn, busy="")
    reserve.open(page, page.start)
    assert not reserve.fill()
    assert not drawn.counts


def test_the_server_answers_from_the_reserve(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, reserve = Drawn(), OutcomeReserve()
    page = made(drawn)
    monkeypatch.setattr(pages, "page", lambda _: page)
    client = TestClient(application(reserve=reserve))
    assert not reserve.fill()
    assert client.get("/survey.html").status_code == 200  # now the page is open
    fill(reserve)
    said = client.get("/outcomes/survey/try/2-0-0-0.json").json()["says"]
    assert said == f"odds {ODDS[2]}, number 1"
    assert drawn.counts == dict.fromkeys(ODDS, 1)
    assert client.get("/outcomes/survey/try/99-0-0-0.json").status_code == 404


def test_few_requests_wait_for_slow_outcomes() -> None:
    """The oldest that waits gives way to a new one: its page has moved on. All others are drawn,
    one at a time."""
    drawn, reserve, said = Drawn(), OutcomeReserve(), dict[int, str]()
    begun, may_end = threading.Semaphore(0), threading.Semaphore(0)

    def run(values: ControlValues) -> ExperimentOutcome:
        begun.release()
        assert may_end.acquire(timeout=60)
        return drawn.run(values)

    page = made(drawn)
    slow = replace(page.experiments[0], run=run, record=None)
    quick = replace(slow, busy="", run=drawn.run)

    def ask(number: int) -> None:
        try:
            said[number] = reserve.take(page, slow, page.start).says
        except Full:
            said[number] = "displaced"

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(3 + 1 + WAITING)]
    for number, thread in enumerate(threads):
        thread.start()
        if not number:
            assert begun.acquire(timeout=60)
        while len(reserve._queue._tickets) <= min(number, WAITING) and thread.is_alive():
            thread.join(0.001)
        if number > WAITING:
            threads[number - WAITING].join(60)
    assert said == dict.fromkeys((1, 2, 3), "displaced")
    assert reserve.take(page, quick, page.start).says.endswith("number 1")  # it waits for nobody
    for _ in range(WAITING):
        may_end.release()
        assert begun.acquire(timeout=60)
        assert not begun.acquire(blocking=False)
    may_end.release()
    for thread in threads:
        thread.join(60)
    assert len({*said.values()}) == 1 + 1 + WAITING
    assert not reserve._queue._tickets


def test_an_outcome_that_fails_ends_its_turn() -> None:
    queue = OutcomeQueue()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), queue.turn():
            raise ZeroDivisionError


def test_a_displaced_request_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    reserve = OutcomeReserve()

    def take(*_: object) -> ExperimentOutcome:
        raise Full

    monkeypatch.setattr(reserve, "take", take)
    answer = TestClient(application(reserve=reserve)).get("/outcomes/survey/flip/0-0-0-0.json")
    assert (answer.status_code, "ask again" in answer.text) == (503, True)


def test_views_near_the_last_one_are_computed_first(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[tuple[str, ControlPlaces]] = []
    monkeypatch.setattr(pages, "view", lambda *which: computed.append(which))
    reserve = OutcomeReserve()
    views: list[tuple[str, ControlPlaces]] = [
        ("linking", (1, 0, 0)),
        *(("trust", (place, 2, 0)) for place in range(4)),
    ]
    reserve.open(pages.page("linking"), (0, 0, 0))
    reserve.open(pages.page("trust"), (2, 2, 0))
    while views:
        _compute_nearest(views, reserve)
    assert computed[0] == ("trust", (2, 2, 0))
    assert computed[3:] == [("trust", (0, 2, 0)), ("linking", (1, 0, 0))]
