"""The registry has every mechanism with every argument; each has a price, a draw, an error that is
known before data is read, and constructors for a privacy loss and for an error, or a reason."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from fractions import Fraction

import pytest

import discreet.mechanisms
from discreet import local
from discreet.errors import InvalidArgument
from discreet.local._mechanism import ReportingMechanism
from tests.mechanisms.cases import Case
from tests.mechanisms.kit import PERSON
from tests.mechanisms.registry import CASES

NO_MECHANISM = {"Release"}  # it has a privacy loss
LOCAL = {
    name: kind
    for name, kind in vars(local).items()
    if isinstance(kind, type) and hasattr(kind, "estimate")
}

every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def mechanisms() -> Iterator[str]:
    """The names of all classes that have a privacy loss."""
    package = discreet.mechanisms
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        module = importlib.import_module(info.name)
        for name, kind in inspect.getmembers(module, inspect.isclass):
            is_role = getattr(kind, "_is_protocol", False) or inspect.isabstract(kind)
            if kind.__module__ == info.name and hasattr(kind, "privacy_loss") and not is_role:
                yield name


def test_every_mechanism_has_an_entry() -> None:
    assert set(mechanisms()) == CASES.keys() | NO_MECHANISM


@every_case
def test_every_argument_has_a_value(case: Case) -> None:
    """The tables of wrong values try each argument in turn."""
    for call in ((case.kind, case.given), case.by_epsilon, case.by_error):
        if call is not None:
            function, given = call
            assert given.keys() == inspect.signature(function).parameters.keys()


@every_case
def test_a_mechanism_has_all_five_or_a_reason(case: Case) -> None:
    assert callable(case.kind.privacy_loss)
    assert callable(case.kind.begin if case.is_session else case.kind.sample)
    stated = {"for_epsilon": case.epsilon, "for_error": case.error, "error": case.forecast}
    missing = [verb for verb in stated if not hasattr(case.kind, verb)]
    assert missing == [verb for verb, value in stated.items() if value is None]
    assert bool(case.without) == bool(missing)


@every_case
def test_a_surer_error_is_no_smaller(case: Case) -> None:
    if case.forecast is None:
        return
    errors = [case.made.error(confidence) for confidence in (0.5, 0.9, 0.999)]
    assert all(isinstance(error, int | Fraction) for error in errors)
    assert 0 <= errors[0] <= errors[1] <= errors[2]


@every_case
@pytest.mark.parametrize("digits", [20, 260, 2000])
def test_extreme_confidences_are_answered_or_refused_by_name(case: Case, digits: int) -> None:
    if case.forecast is None:
        return
    for confidence in (Fraction(1, 10**digits), 1 - Fraction(1, 10**digits)):
        said = "confidence"
        try:
            assert case.made.error(confidence) >= 0
        except InvalidArgument as refusal:
            said = str(refusal)
        assert "confidence" in said


@every_case
def test_the_error_is_at_most_the_one_asked_for(case: Case) -> None:
    if case.by_error is None:
        return
    make, given = case.by_error
    apart = {"apart": given["apart"]} if "apart" in given else {}
    assert make(**given).error(given["confidence"], **apart) <= given["error"]


@every_case
def test_the_epsilon_is_at_most_the_one_asked_for(case: Case) -> None:
    if case.by_epsilon is None:
        return
    make, given = case.by_epsilon
    if "make" in given:  # the caller's function decides the price of a run
        assert make(**given).error(0.9) < 1
        return
    loss = make(**given).privacy_loss(case.about(PERSON))
    assert loss.delta(epsilon=given["epsilon"]) <= given.get("delta", 0)


def test_local_mechanisms_have_theirs() -> None:
    """Local mechanisms state their price and error, and their estimators the number of reports."""
    assert len(LOCAL) == 8
    for kind in LOCAL.values():
        for verb in ("privacy_loss", "randomize", "estimate", "error", "for_error"):
            assert callable(getattr(kind, verb)), (kind, verb)
    assert not hasattr(ReportingMechanism, "estimate")
