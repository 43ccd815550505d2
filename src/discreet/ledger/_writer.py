"""Group commit: charges of many threads in one transaction, with one sync to the disk for all.

A thread that writes puts its decision into a queue. The first one leads: it takes the decisions
that wait, makes them one after another in one transaction, and commits. Nobody gets an outcome
before that commit is durable. Then one of those who came meanwhile leads.

If the transaction fails, each decision is made again in a transaction of its own, so that one of
them fails alone. If its leader is interrupted, the others find out whether their entry was recorded
before they decide again.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

from discreet._budget import Receipt
from discreet._ownership import process
from discreet.errors import DiscreetError, LedgerDamaged, LedgerError
from discreet.ledger._anchor import AnchorMark, AnchorPlace
from discreet.ledger._chain import next_state
from discreet.ledger._decisions import verified_head
from discreet.ledger._facts import Link
from discreet.ledger._store import Store, Transaction, log
from discreet.ledger._subtotals import TotalsReader

_PAUSES = (0.05, 0.2, 0.5, 1.0, 2.0)  # seconds before a failure that may pass is tried again
_MOST_JOBS = 64  # decisions in one transaction
_LEADER_SECONDS = 1.0  # seconds without a group until a thread checks that its leader is at work
_LEADER = "leader"
_SHARE_OF_COMMIT = 0.25  # part of the last commit's time that a group waits at most
_POLL = 0.0005  # seconds between two looks at the queue
_LONGEST_WAIT = 0.005  # seconds that a group waits for others to join it

R = TypeVar("R")
Decision = Callable[[Transaction, Link], R]


class Writer:
    """Makes the decisions of all threads that write to one ledger, in groups."""

    def __init__(self, store: Store, anchor: AnchorPlace | None) -> None:
        """Write to this store, and move this anchor after each commit."""
        self._store, self._anchor = store, anchor
        self.totals = TotalsReader()  # used during a transaction only
        self._start_empty()

    def write(self, decide: Decision[R]) -> R:
        """The outcome of the decision, made on the head of the chain, once it is durable.

        ``decide`` appends at most one entry. Its errors are raised here, and record nothing.
        """
        job = _Job(decide)
        self._finish_all([job])
        return job.result()

    def write_each(
        self, decisions: Sequence[Decision[R]], keys: Sequence[str | None]
    ) -> list[R | Exception]:
        """For each decision its outcome or its error, as `write`; they share transactions.
        ``keys`` has for each decision the key that it looks up, or None."""
        jobs = [
            _Job(decide, key=key, is_alone=len(decisions) == 1)
            for decide, key in zip(decisions, keys, strict=True)
        ]
        self._finish_all(jobs)
        return [job.outcome for job in jobs]

    def _finish_all(self, jobs: "Sequence[_Job[Any]]") -> None:
        """Return once these jobs are done."""
        if self._process != process():
            self._start_empty()  # the threads of its parent do not exist after a fork
        self._store.use.check(self._store.name)
        try:
            self._waiting.extend(jobs)
            for job in jobs:
                while not job.is_done:
                    if self._leader.setdefault(_LEADER, job) is job:
                        self._lead(job)
                    else:
                        self._wait(job)
        finally:  # interrupted or not
            for job in jobs:
                job.is_done = True  # no leader decides it now, even if it is still queued
                self._resign(job)
                with suppress(ValueError):
                    self._waiting.remove(job)
            if not self._leader:
                self._wake_next()

    def _start_empty(self) -> None:
        self._waiting: deque[_Job[Any]] = deque()
        self._leader: dict[str, _Job[Any]] = {}  # at most one: `setdefault` is atomic
        self._groups, self._process = 0, process()
        self._size = 0  # jobs of the last group, and those in the queue at its end
        self._seconds = 0.0  # time of the last commit

    def _wait(self, job: "_Job[Any]") -> None:
        """Wait until a leader has finished this job, or until this thread must lead."""
        groups, leader = self._groups, self._leader.get(_LEADER)
        if leader is not None and leader.thread == job.thread:  # in a signal's handler
            self._leader[_LEADER] = job
            return
        if job.woken.wait(_LEADER_SECONDS) or groups != self._groups:
            job.woken.clear()
            return
        with self._store.turns:  # held by a leader that is still at work
            if groups == self._groups and not job.is_done:
                self._leader[_LEADER] = job  # a second interrupt kept the leader from resigning

    def _lead(self, job: "_Job[Any]") -> None:
        """Serve those who wait, the first of them first."""
        with self._store.turns:
            if job.is_done:  # by a leader who was at work until now
                return
            if job not in self._waiting:  # a second interrupt kept its leader from putting it back
                self._waiting.append(job)
            if job.is_alone:  # a thread with several decisions has queued them all
                self._gather()
            self._groups += 1
            jobs = self._next_jobs()
            try:
                self._serve(jobs)
            finally:
                self._waiting.extendleft(left for left in reversed(jobs) if not left.is_done)
                self._resign(job)
                self._size = len(jobs) + len(self._waiting)
                for served in jobs:
                    served.woken.set()

    def _next_jobs(self) -> "list[_Job[Any]]":
        """The first jobs in the queue, without those that have an outcome already."""
        count = min(_MOST_JOBS, len(self._waiting))
        return [job for _ in range(count) if not (job := self._waiting.popleft()).is_done]

    def _gather(self) -> None:
        """If the last group had several jobs, wait a little for as many again: one sync for all of
        them takes less time than two."""
        most = min(_SHARE_OF_COMMIT * self._seconds, _LONGEST_WAIT)
        end = time.monotonic() + most if self._size > 1 else 0.0
        while len(self._waiting) < min(self._size, _MOST_JOBS) and time.monotonic() < end:
            time.sleep(_POLL)

    def _resign(self, job: "_Job[Any]") -> None:
        if self._leader.get(_LEADER) is job:
            self._leader.pop(_LEADER, None)

    def _wake_next(self) -> None:
        with suppress(IndexError):
            self._waiting[0].woken.set()

    def _serve(self, jobs: "list[_Job[Any]]", pauses: tuple[float, ...] = _PAUSES) -> None:
        """Decide all jobs in one transaction; each by itself if that fails."""
        rows = None
        try:
            # 1. decide, and write all entries at once
            mark = None if self._anchor is None else self._anchor.movable()
            with self._store.writing() as rows:
                head = verified_head(rows, mark)
                known = {AnchorMark.of(head)}
                if mark is not None and mark.number < head.number:  # a move of it failed
                    mark = self._advanced(AnchorMark.of(head), {mark, *known})
                    verified_head(rows, mark)
                if len(keys := {job.key for job in jobs if job.key is not None}) > 1:
                    rows.look_up(keys)
                for job in jobs:
                    job.decide(rows, head)
                    head = self._head_after(rows, head)
                if rows.written and (subtotal := self.totals.due(rows, head)) is not None:
                    rows.append(head, subtotal, next_state(head, rows.opening(head), subtotal))
                    head = self._head_after(rows, head)
                start = time.monotonic()
            self._seconds = time.monotonic() - start
        except Exception as failure:  # noqa: BLE001  # raised in the threads that wait for it
            # 2. a failure that passes is tried again; any other one fails its own job only
            if pauses and self._is_passing(failure):
                time.sleep(pauses[0])
                self._serve(jobs, pauses[1:])
                return
            if rows is None or len(jobs) == 1:
                _fail(jobs, failure)
                return
            for job in jobs:
                self._serve([job])
            return
        # 3. durable now: log, anchor, hand out the receipts
        for link in rows.written:
            log.info("%s: %s %d", self._store.name, link.kind.value, link.number)
        known |= {AnchorMark.of(link) for link in rows.written}
        self._finish(jobs, mark, AnchorMark.of(head), known)

    def _is_passing(self, failure: Exception) -> bool:
        """Whether the same may succeed if it is tried again."""
        return any(
            place.is_passing(failure) for place in (self._store, self._anchor) if place is not None
        )

    def _head_after(self, rows: Transaction, head: Link) -> Link:
        """The head after one decision. The totals are updated now, since the next charge to a
        share needs them."""
        if not rows.written or rows.written[-1] is head:
            return head
        self.totals.follow(head, rows.written[-1])
        return rows.written[-1]

    def _finish(
        self,
        jobs: "list[_Job[Any]]",
        mark: AnchorMark | None,
        head: AnchorMark,
        known: set[AnchorMark],
    ) -> None:
        """Mark all jobs as done; their entries are durable by now. ``known`` are marks of the
        chain.

        The anchor moves to the head even if nothing was written: the outcome may be a receipt for
        an entry whose writer was stopped before it moved the anchor.
        """
        if mark is not None and mark.number < head.number:
            try:
                self._move_anchor(head, {mark, *known})
            except LedgerError as failure:
                for job in jobs:
                    if job.entry is not None:
                        text = f"entry {job.entry} is recorded, but {failure}"
                        job.fail(type(failure)(text))
        for job in jobs:
            job.is_done = True

    def _move_anchor(self, head: AnchorMark, known: set[AnchorMark]) -> None:
        """Move the anchor to the head. Raises if its mark is not in the chain: another copy of the
        ledger went on, and only one of the two may give receipts."""
        while (there := self._advanced(head, known)) != head:
            with self._store.reading() as rows:
                verified_head(rows, there)
            if there.number >= head.number:  # another process of this ledger moved it further
                return
            known.add(there)

    def _advanced(self, head: AnchorMark, known: set[AnchorMark]) -> AnchorMark:
        """The mark of the anchor after its move, which is tried again where that may help: a charge
        without its mark is paid in vain."""
        assert self._anchor is not None
        for pause in _PAUSES:
            try:
                return self._anchor.advance(head, known)
            except LedgerError as failure:
                if not self._anchor.is_passing(failure):
                    raise
                time.sleep(pause)
        return self._anchor.advance(head, known)


class _Job(Generic[R]):
    """A decision in the queue, and later its outcome or its error."""

    def __init__(
        self, decision: Decision[R], *, key: str | None = None, is_alone: bool = True
    ) -> None:
        self._decision, self.key = decision, key
        self.is_alone = is_alone  # whether its thread has no other decision
        self._outcome: list[R] = []
        self._error: Exception | None = None
        self.link: Link | None = None  # the entry that it appended, committed or not
        self.woken, self.is_done, self.thread = threading.Event(), False, threading.get_ident()

    def decide(self, rows: Transaction, head: Link) -> None:
        """Decide on this head, unless an earlier transaction recorded the decision."""
        if self.link is not None and _is_recorded(self.link, rows, head):
            return
        count = len(rows.written)
        self.link, self._error, self._outcome = None, None, []
        try:
            self._outcome = [self._decision(rows, head)]
        except LedgerDamaged:
            raise
        except DiscreetError as refusal:
            if len(rows.written) > count:
                raise
            self._error = refusal
        if len(rows.written) > count:
            self.link = rows.written[-1]

    @property
    def entry(self) -> int | None:
        """The number of the entry behind the outcome, a new or an earlier one; or None."""
        if self.link is not None:
            return self.link.number
        shown = (outcome.number for outcome in self._outcome if isinstance(outcome, Receipt))
        return next(shown, None)

    def fail(self, error: Exception) -> None:
        """Store this error as the outcome."""
        self._error, self.is_done = error, True

    @property
    def outcome(self) -> R | Exception:
        """The outcome, or the error."""
        return self._outcome[0] if self._error is None else self._error

    def result(self) -> R:
        """The outcome; raises the error."""
        if self._error is not None:
            raise self._error
        return self._outcome[0]


def _is_recorded(link: Link, rows: Transaction, head: Link) -> bool:
    """Whether this link is in the chain. Its random id tells it from those of other processes."""
    return link.number <= head.number and rows.link(link.number).digest == link.digest


def _fail(jobs: Iterable[_Job[Any]], failure: Exception) -> None:
    """Store this error for the first job, and copies of it for the others."""
    for number, job in enumerate(jobs):
        job.fail(_for_another_thread(failure) if number else failure)


def _for_another_thread(failure: Exception) -> DiscreetError:
    """An error of the same meaning for another thread, with a traceback of its own."""
    if isinstance(failure, DiscreetError):
        return type(failure)(*failure.args)
    return LedgerError(f"the ledger's transaction failed ({type(failure).__name__}); try again")
