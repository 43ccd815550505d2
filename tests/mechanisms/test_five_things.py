"""Each mechanism has a price, a draw, an error that is known before any data is seen, and can be
asked for by privacy and by accuracy; or it is said here why not."""

from fractions import Fraction
from typing import Any

import pytest

from discreet import local
from discreet.local._mechanism import ReportingMechanism
from tests.mechanisms.calls import ASKED_OF, BY_EPSILON, BY_ERROR, MADE, SESSIONS
from tests.mechanisms.kit import PERSON
from tests.mechanisms.test_table import ELSEWHERE, mechanisms

OWN_PARTS = "it is made of mechanisms, each with constructors and an error of its own"
BY_ITSELF = "its own constructor takes epsilon"
WHY_NOT: dict[tuple[str, str], str] = {
    ("Together", "error"): OWN_PARTS,
    ("Together", "for_epsilon"): OWN_PARTS,
    ("Together", "for_error"): OWN_PARTS,
    ("Scored", "for_epsilon"): OWN_PARTS,
    ("Scored", "for_error"): OWN_PARTS,
}
LOCAL = {
    name: kind
    for name, kind in vars(local).items()
    if isinstance(kind, type) and hasattr(kind, "estimate")
}


def made(name: str) -> Any:  # Any: each its own
    make, given = MADE[name]
    return make(**given)


def test_every_mechanism_is_in_the_tables() -> None:
    all_of_them = set(mechanisms()) - ELSEWHERE.keys()
    assert MADE.keys() == all_of_them
    assert ASKED_OF.keys() | set(SESSIONS) == all_of_them
    for verb, calls in (("for_epsilon", BY_EPSILON), ("for_error", BY_ERROR)):
        excused = {name for name, what in WHY_NOT if what == verb}
        assert calls.keys() | excused == all_of_them
        assert not calls.keys() & excused


@pytest.mark.parametrize("name", MADE)
def test_it_has_all_five_or_a_reason(name: str) -> None:
    draw = "begin" if name in SESSIONS else "sample"
    for verb in ("privacy_loss", draw, "error", "for_epsilon", "for_error"):
        assert callable(getattr(made(name), verb, None)) != ((name, verb) in WHY_NOT), verb


@pytest.mark.parametrize("name", [name for name in MADE if (name, "error") not in WHY_NOT])
def test_a_surer_error_is_no_smaller(name: str) -> None:
    errors = [made(name).error(confidence) for confidence in (0.5, 0.9, 0.999)]
    assert all(isinstance(error, int | Fraction) for error in errors)
    assert 0 <= errors[0] <= errors[1] <= errors[2]


@pytest.mark.parametrize("name", BY_ERROR)
def test_the_error_that_was_asked_for_is_kept(name: str) -> None:
    make, given = BY_ERROR[name]
    told = {"apart": given["apart"]} if "apart" in given else {}
    assert make(**given).error(given["confidence"], **told) <= given["error"]


@pytest.mark.parametrize("name", BY_EPSILON)
def test_the_epsilon_that_was_asked_for_is_kept(name: str) -> None:
    make, given = BY_EPSILON[name]
    about = PERSON if name in SESSIONS else ASKED_OF[name]
    if name == "Tuning":
        assert make(**given).error(0.9) < 1  # what a run costs is the caller's function's word
        return
    loss = make(**given).privacy_loss(about)
    assert loss.delta(epsilon=given["epsilon"]) <= given.get("delta", 0)


def test_local_mechanisms_have_theirs() -> None:
    """They are made from epsilon, and their estimators tell how many reports an error takes."""
    assert len(LOCAL) == 8
    for kind in LOCAL.values():
        for verb in ("privacy_loss", "randomize", "estimate", "error", "for_error"):
            assert callable(getattr(kind, verb)), (kind, verb)
    assert not hasattr(ReportingMechanism, "estimate")
