"""Of one request id there is one computation and one text of bytes, also in a race."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from discreet.errors import RequestReused
from discreet.service._answers import AnswerStore
from discreet.service._storage import StoragePlace, open_storage
from tests.service import kit


@pytest.fixture(params=kit.STORAGES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> StoragePlace:
    return kit.storage(request.param, tmp_path)


@pytest.fixture
def store(place: StoragePlace) -> Iterator[AnswerStore]:
    engine = open_storage(place)
    yield AnswerStore(engine)
    engine.dispose()


def test_a_repetition_has_the_stored_bytes(store: AnswerStore, place: StoragePlace) -> None:
    with store.claimed("ana", "1", "body") as stored:
        assert stored is None
        store.store("ana", "1", b"answer")
    engine = open_storage(place)
    for again in (store, AnswerStore(engine)):
        with again.claimed("ana", "1", "body") as stored:
            assert stored == b"answer"
    engine.dispose()


def test_an_answer_is_stored_once(store: AnswerStore) -> None:
    with store.claimed("ana", "1", "body"):
        store.store("ana", "1", b"first")
        store.store("ana", "1", b"second")
    with store.claimed("ana", "1", "body") as stored:
        assert stored == b"first"


def test_a_paid_answer_replaces_a_claim_and_no_answer(store: AnswerStore) -> None:
    with store.claimed("ana", "1", "body"):
        pass
    store.put("ana", "1", "other", b"first")
    store.put("ana", "1", "third", b"second")
    store.put("ana", "2", "body", b"another")
    assert store.answer("ana", "1") == b"first"
    assert store.answer("ana", "2") == b"another"
    with store.claimed("ana", "1", "other") as stored:
        assert stored == b"first"


def test_a_forgotten_request_is_free_and_an_answered_one_stays(store: AnswerStore) -> None:
    for request in ("1", "2"):
        with store.claimed("ana", request, "body"):
            pass
    store.store("ana", "2", b"answer")
    for request in ("1", "2"):
        store.forget("ana", request)
    with store.claimed("ana", "1", "other") as stored:
        assert stored is None
    assert store.answer("ana", "2") == b"answer"


def test_another_body_is_refused_even_before_there_is_an_answer(store: AnswerStore) -> None:
    with store.claimed("ana", "1", "body"):
        pass
    with pytest.raises(RequestReused), store.claimed("ana", "1", "other"):
        raise AssertionError
    with store.claimed("ana", "1", "body") as stored:  # the refusal changed nothing
        assert stored is None


def test_ids_belong_to_their_analyst(store: AnswerStore) -> None:
    with store.claimed("ana", "1", "body"), store.claimed("ben", "1", "other") as stored:
        assert stored is None


def test_a_race_of_one_id_computes_once(store: AnswerStore) -> None:
    started, computed = threading.Barrier(16), []

    def ask(number: int) -> bytes:
        started.wait()
        with store.claimed("ana", "1", "body") as stored:
            if stored is not None:
                return stored
            computed.append(number)
            store.store("ana", "1", b"%d" % number)
            return b"%d" % number

    with ThreadPoolExecutor(16) as threads:
        answers = set(threads.map(ask, range(16)))
    assert len(computed) == 1
    assert answers == {b"%d" % computed[0]}
