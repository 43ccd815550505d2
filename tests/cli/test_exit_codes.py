"""Every error has its exit code, and none shows more than it may."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet import errors
from discreet.cli._failures import error_kind
from discreet.errors import DiscreetError
from discreet.query import Question
from tests.cli.kit import COUNT, DECLARE, Run

CODES = {
    "InvalidArgument": 2,
    "DeclarationError": 2,
    "Refused": 3,
    "NoBound": 3,
    "WrongUnit": 3,
    "QueryRefused": 3,
    "RequestReused": 3,
    "SessionEnded": 3,
    "QuestionFailed": 3,
    "LedgerLocked": 3,
    "LedgerDiffers": 3,
    "ReceiptDiffers": 3,
    "BudgetExceeded": 4,
    "LedgerError": 5,
    "LedgerDamaged": 5,
    "AnchorDiffers": 5,
    "ComputationFailed": 5,
    "ServiceError": 5,
    "DiscreetError": 5,
}
SECRET = "row 17 holds 4711"


def kinds(kind: type[DiscreetError] = DiscreetError) -> Iterator[type[DiscreetError]]:
    yield kind
    for inner in kind.__subclasses__():
        if inner.__module__ == errors.__name__:
            yield from kinds(inner)


@pytest.fixture
def release_raises(run: Run, monkeypatch: pytest.MonkeyPatch) -> type[Exception]:
    """Makes every release raise an error that discreet doesn't know."""
    run(*DECLARE)

    def raises(*_: object, **__: object) -> None:
        raise ZeroDivisionError(SECRET)

    monkeypatch.setattr(Question, "release", raises)
    return ZeroDivisionError


def test_every_error_has_its_code() -> None:
    assert {kind.__name__: error_kind(kind()).exit_code for kind in kinds()} == CODES


@pytest.mark.usefixtures("release_raises")
def test_an_unknown_error_shows_nothing_of_itself(run: Run) -> None:
    ended = run("ask", "wages", COUNT, "--epsilon", "1")
    assert ended.code == 5
    assert ended.out == ""
    for private in (SECRET, "ZeroDivision", "Traceback"):
        assert private not in ended.err
    assert "what was paid stays paid" in ended.err
    log = Path("wages.ledger.log")
    assert str(log) in ended.err
    assert SECRET in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600


@pytest.mark.usefixtures("release_raises")
def test_a_log_that_cannot_be_written_shows_nothing_either(run: Run) -> None:
    Path("wages.ledger.log").mkdir()
    ended = run("ask", "wages", COUNT, "--epsilon", "1")
    assert ended.code == 5
    for private in (SECRET, "ZeroDivision", "Traceback"):
        assert private not in ended.err


def test_no_log_is_made_where_nothing_failed(run: Run) -> None:
    run(*DECLARE)
    run("ask", "wages", COUNT, "--epsilon", "1")
    assert not list(Path().glob("*.log"))


def test_the_owners_log_reaches_no_other_logger(run: Run) -> None:
    run("tables")
    assert not logging.getLogger("discreet.owner").propagate


def test_a_librarys_warning_is_not_shown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import warnings

    run(*DECLARE)
    released = Question.release

    def warns(question: Question, *price: object, **rest: object) -> object:
        warnings.warn(SECRET, RuntimeWarning, stacklevel=1)
        return released(question, *price, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Question, "release", warns)
    monkeypatch.setattr("sys.warnoptions", [])
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        ended = run("ask", "wages", COUNT, "--epsilon", "1")
    assert ended.code == 0
    assert SECRET not in ended.err
