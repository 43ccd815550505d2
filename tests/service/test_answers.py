"""Of one request id there is one computation and one text of bytes, also in a race."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from discreet.errors import RequestReused
from discreet.service._answers import AnswerStore
from discreet.service._storage import open_storage


@pytest.fixture
def store(tmp_path: Path) -> AnswerStore:
    return AnswerStore(open_storage(tmp_path / "service"))


def test_a_repetition_has_the_stored_bytes(store: AnswerStore, tmp_path: Path) -> None:
    with store.claimed("ana", "1", "body") as stored:
        assert stored is None
        store.store("ana", "1", b"answer")
    for again in (store, AnswerStore(open_storage(tmp_path / "service"))):
        with again.claimed("ana", "1", "body") as stored:
            assert stored == b"answer"


def test_an_answer_is_stored_once(store: AnswerStore) -> None:
    with store.claimed("ana", "1", "body"):
        store.store("ana", "1", b"first")
        store.store("ana", "1", b"second")
    with store.claimed("ana", "1", "body") as stored:
        assert stored == b"first"


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
