"""Outcomes drawn before they are asked for, so that a slow one is there at once.

Each is given out once, so an outcome stays as fresh as one that is drawn when it is asked for.
Slow ones that are not in reserve are drawn one at a time, and few requests wait for them.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from queue import Full

from discreet.explore._page import ControlPlaces, Experiment, ExperimentOutcome, Page

_OutcomeKey = tuple[str, str, ControlPlaces]
_TOGETHER = 4  # a request for another one waits that long
WAITING = 4  # requests


class OutcomeQueue:
    """Turns for slow outcomes: one at a time, while the newest few requests wait.

    A request that newer ones displace ends with `queue.Full`: its page has moved on, or is closed.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._tickets: list[object] = []  # the first one has its turn

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn, and hold it in the block."""
        ticket = object()
        with self._changed:
            self._tickets.append(ticket)
            if len(self._tickets) > 1 + WAITING:
                del self._tickets[1]
                self._changed.notify_all()
            self._changed.wait_for(
                lambda: ticket not in self._tickets or self._tickets[0] is ticket
            )
            if ticket not in self._tickets:
                raise Full
        try:
            yield
        finally:
            with self._changed:
                self._tickets.remove(ticket)
                self._changed.notify_all()


class OutcomeReserve:
    """An outcome for each value of the controls, of the slow experiments of opened pages."""

    def __init__(self) -> None:
        self._outcomes: dict[_OutcomeKey, ExperimentOutcome] = {}
        self._queue = OutcomeQueue()
        self._last: dict[str, tuple[Page, ControlPlaces]] = {}  # the newest page comes last

    def open(self, page: Page, places: ControlPlaces) -> None:
        """Keep outcomes of this page from now on, those near these places first."""
        self._last.pop(page.name, None)
        self._last[page.name] = page, places

    def steps_to(self, name: str, places: ControlPlaces) -> tuple[bool, int]:
        """A key that sorts the places of all pages: those near the last view come first."""
        newest = next(reversed(list(self._last.values())), None)
        if newest is None or newest[0].name != name:
            return True, 0
        return False, _distance(places, newest[1])

    def take(self, page: Page, experiment: Experiment, places: ControlPlaces) -> ExperimentOutcome:
        """An outcome that nobody else gets: one in reserve, or a new one. `queue.Full` if newer
        requests came while this one waited."""
        self.open(page, places)
        kept = self._outcomes.pop(_key(page, experiment, places), None)
        if kept is not None:
            return kept
        if not experiment.busy:
            return experiment.run(page.values(places))
        with self._queue.turn():
            return experiment.run(page.values(places))

    def fill(self) -> bool:
        """Draw a few outcomes that are missing; False if none is."""
        for page, last in reversed(list(self._last.values())):
            for experiment in page.experiments:
                few = list(islice(self._missing(page, experiment, last), _TOGETHER))
                drawn = experiment.outcomes([page.values(places) for places in few]) if few else ()
                for places, outcome in zip(few, drawn, strict=True):
                    self._outcomes[_key(page, experiment, places)] = outcome
                if few:
                    return True
        return False

    def _missing(
        self, page: Page, experiment: Experiment, last: ControlPlaces
    ) -> Iterator[ControlPlaces]:
        """Places without an outcome, near ones first. A slow experiment tells of its wait."""
        if experiment.busy:
            for places in sorted(page.own_places(experiment), key=partial(_distance, last)):
                if _key(page, experiment, places) not in self._outcomes:
                    yield places


def _distance(one: ControlPlaces, two: ControlPlaces) -> int:
    """How many steps of the controls lead from one to the other."""
    return sum(abs(a - b) for a, b in zip(one, two, strict=True))


def _key(page: Page, experiment: Experiment, places: ControlPlaces) -> _OutcomeKey:
    """The places of the experiment's own controls; the others change nothing."""
    own = (
        place
        for place, control in zip(places, page.controls, strict=False)
        if control.name in experiment.controls
    )
    return page.name, experiment.name, (*own,)
