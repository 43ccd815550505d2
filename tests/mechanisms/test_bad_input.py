"""BadValue arguments of every kind, for every argument of every mechanism, are refused by name; and
nothing is charged."""

from typing import Any

import numpy as np
import pytest

from discreet.errors import DiscreetError
from discreet.mechanisms import DiscreteLaplace, Gaussian, release, session
from discreet.mechanisms.thresholds import SparseVector
from discreet.mechanisms.tuning import PoissonRuns, Tuning
from tests.bad_values import BAD_VALUES, BadValue, Call, fails_with_huge, faults
from tests.mechanisms.kit import PERSON, FakePayer, number
from tests.mechanisms.registry import CASES
from tests.mechanisms.statements import STATED

FINE: dict[str, list[str]] = {
    "name": ["text"],
    "basis": ["text"],
    "facts": ["text", "empty text"],
    "deciding": ["text"],
    "others": ["empty mapping"],  # of a question that only counts
    "shape": ["empty list"],
    "threshold": ["negative"],
    "lower": ["negative"],
    "default": ["negative"],
    "top": ["None"],
    "total": ["None"],
    "apart": ["None"],
    **{norm: ["None"] for norm in ("l0", "l1", "l2", "l2_squared", "linf", "length")},
    # whether a function is the right one shows when it runs
    **{given: ["function", "type"] for given in ("compute", "measure", "sets", "read", "function")},
    "make": ["function", "type"],
    "null": ["None", "empty mapping"],
    "is_wide": ["truth"],
}
FINE_FOR: dict[str, dict[str, list[str]]] = {
    "GaussianThreshold": {"threshold": []},
    "LaplaceThreshold": {"threshold": []},
    "ProposeTestRelease": {"threshold": []},
    "SetUnion": {"threshold": []},
    "MaxNorm": {"length": []},
    "TopK.for_epsilon": {"noise": ["None"]},  # the one with the smaller error
}


def calls() -> dict[str, Call]:
    """Every constructor and question of every mechanism, each as a call that is good."""
    found: dict[str, Call] = {}
    for name, case in CASES.items():
        made, about = case.made, "unit" if case.is_session else "bounded"
        found[name] = case.kind, case.given
        if case.by_epsilon is not None:
            found[f"{name}.for_epsilon"] = case.by_epsilon
        if case.by_error is not None:
            found[f"{name}.for_error"] = case.by_error
        found[f"{name}.privacy_loss"] = made.privacy_loss, {about: case.about(PERSON)}
        if case.forecast is not None:
            found[f"{name}.error"] = made.error, {"confidence": 0.9}
        if case.is_session:
            found[f"{name}.check"] = made.check, {"bounded": number()}
    return found


CALLS: dict[str, Call] = calls() | STATED


@pytest.mark.parametrize("name", CALLS)
def test_every_wrong_argument_is_refused_by_name(name: str) -> None:
    assert faults(CALLS[name], FINE | FINE_FOR.get(name, {})) == []


@pytest.mark.parametrize("name", CALLS)
def test_huge_numbers_are_taken_or_refused(name: str) -> None:
    assert fails_with_huge(CALLS[name]) == []


@pytest.mark.parametrize("name", CASES)
def test_numpys_scalars_are_the_numbers_that_they_are(name: str) -> None:
    make, given = CASES[name].kind, CASES[name].given
    kinds: dict[type, Any] = {int: np.int64, float: np.float64}
    scalars = {
        argument: kinds[type(value)](value) if type(value) in kinds else value
        for argument, value in given.items()
    }
    assert repr(make(**scalars)) == repr(make(**given))


@pytest.mark.parametrize("kind", BAD_VALUES)
def test_nothing_is_charged_for_wrong_arguments(kind: str) -> None:
    wrong: BadValue = BAD_VALUES[kind]
    payer = FakePayer()
    with pytest.raises(DiscreetError, match="bounded"):
        release(wrong, DiscreteLaplace(2), payer)
    with pytest.raises(DiscreetError, match="mechanism"):
        release(number(), wrong, payer)
    with pytest.raises(DiscreetError, match="payer"):
        release(number(), DiscreteLaplace(2), wrong)
    with (
        pytest.raises(DiscreetError, match="unit"),
        session(SparseVector.for_epsilon(1, 5), payer, unit=wrong, name="session"),
    ):
        pass
    with (
        pytest.raises(DiscreetError, match="mechanism"),
        session(wrong, payer, unit=PERSON, name="session"),
    ):
        pass
    assert payer.events == []


def test_a_candidate_without_a_score_is_refused_before_the_charge() -> None:
    candidate: Any = Gaussian(3)  # gives a number, and no mapping
    with pytest.raises(
        DiscreetError, match=r"candidates\['plain'\] = Gaussian\(stddev=3\): give Scored"
    ):
        Tuning({"plain": candidate}, PoissonRuns(3))


def test_a_wrong_question_leaves_a_session_as_it_was() -> None:
    payer, wrong = FakePayer(), BAD_VALUES["object"]
    with session(SparseVector.for_epsilon(1, 5), payer, unit=PERSON, name="session") as opened:
        with pytest.raises(DiscreetError, match="bounded"):
            opened.ask(wrong)
        assert opened.ask(number()) in (True, False)
    assert payer.events == ["charge"]
