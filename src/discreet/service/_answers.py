"""Stored answers: the bytes of each response, by analyst and request id.

The ledger stores the noisy numbers of a paid request, so that it is charged and drawn once. Here
are the very bytes that left, so that a repetition is equal in each byte.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, Row, delete, select, update

from discreet.errors import RequestReused
from discreet.service._group_commit import GroupCommit
from discreet.service._storage import ANSWERS, inserted


class AnswerStore:
    """The responses to paid requests. Of one request, one computation runs at a time."""

    __slots__ = ("_busy", "_changed", "_engine", "_writes")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._busy: set[tuple[str, str]] = set()
        self._changed = threading.Condition()
        self._writes = GroupCommit(engine)

    @contextmanager
    def claimed(self, by: str, request: str, body: str) -> Iterator[bytes | None]:
        """The stored bytes for this request; None if they are still to be computed.

        ``body`` is a digest of the question. It is stored durably before anything is paid, and
        another body under the same id is refused (`RequestReused`). Calls with the same id wait for
        one another.
        """
        with self.alone(by, request):
            yield self._claim(by, request, body)

    @contextmanager
    def alone(self, by: str, request: str) -> Iterator[None]:
        """Within, no other thread has this request."""
        key = by, request
        with self._changed:
            self._changed.wait_for(lambda: key not in self._busy)
            self._busy.add(key)
        try:
            yield
        finally:
            with self._changed:
                self._busy.remove(key)
                self._changed.notify_all()

    def _claim(self, by: str, request: str, body: str) -> bytes | None:
        row = {"by": by, "request": request, "body": body}

        def step(connection: Connection) -> Row[Any]:
            connection.execute(inserted(self._engine).values(row).on_conflict_do_nothing())
            return connection.execute(select(ANSWERS).where(*_is(by, request))).one()

        return _same(self._writes.write(step), body)

    def store(self, by: str, request: str, answer: bytes) -> None:
        """Store the response durably; it is stored once."""
        empty = (*_is(by, request), ANSWERS.c.answer.is_(None))
        self._writes.write(
            lambda connection: connection.execute(
                update(ANSWERS).where(*empty).values(answer=answer)
            )
        )

    def put(self, by: str, request: str, body: str, answer: bytes) -> None:
        """Store the response to a request durably, unless there is one. It was paid, so what
        claimed its id before was not."""
        row = {"by": by, "request": request, "body": body, "answer": answer}
        stored = (
            inserted(self._engine)
            .values(row)
            .on_conflict_do_update(
                index_elements=[ANSWERS.c.by, ANSWERS.c.request],
                set_={"body": body, "answer": answer},
                where=ANSWERS.c.answer.is_(None),
            )
        )
        self._writes.write(lambda connection: connection.execute(stored))

    def forget(self, by: str, request: str) -> None:
        """Free a request id under which nothing was paid; one with an answer stays."""
        empty = (*_is(by, request), ANSWERS.c.answer.is_(None))
        self._writes.write(lambda connection: connection.execute(delete(ANSWERS).where(*empty)))

    def answered(self, by: str, requests: Sequence[str]) -> set[str]:
        """Those of these requests of one analyst to which a response is stored."""
        with self._engine.connect() as connection:
            asked = select(ANSWERS.c.request).where(
                ANSWERS.c.by == by, ANSWERS.c.request.in_(requests), ANSWERS.c.answer.is_not(None)
            )
            return set(connection.execute(asked).scalars())

    def answer(self, by: str, request: str) -> bytes | None:
        """The stored response to this request; None if there is none."""
        with self._engine.connect() as connection:
            asked = select(ANSWERS.c.answer).where(*_is(by, request))
            found: bytes | None = connection.execute(asked).scalar_one_or_none()
            return found


def _same(stored: Row[Any], body: str) -> bytes | None:
    if stored.body != body:
        raise RequestReused("this request id was used for another question: take a new request id")
    answer: bytes | None = stored.answer
    return answer


def _is(by: str, request: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return ANSWERS.c.by == by, ANSWERS.c.request == request
