"""The report of each kind of audit, in words and as JSON."""

import json
import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.accounting import Gaussian
from discreet.audit import (
    BlackBoxResult,
    MisuseAttempt,
    MisuseResult,
    black_box,
    exact,
    membership,
    reconstruct,
    replay_pairs,
    report,
)
from discreet.audit._exact_privacy import Probabilities
from discreet.errors import InvalidArgument
from tests.audit.laws import gaussian, geometric

GENERATOR = np.random.default_rng()
HEADS = ["Claimed", "Tried", "Found", "Meaning for one person", "Not tried"]
YES: Probabilities = {"<yes>": 0.75, "no": 0.25}
NO: Probabilities = {"<yes>": 0.25, "no": 0.75}
COPIED = MisuseAttempt("copy.copy", None, is_refused=True)
FORKED = MisuseAttempt("a fork", "its noise repeats", is_refused=False)
GROUPS = [[1, 1, 1, 1], [1, 1, 1, 0], [1, 0, 0, 0]]


def answers(members: Any) -> Any:  # Any: arrays
    """Randomized response with a lie in every tenth answer: epsilon 2.2."""
    return members ^ (GENERATOR.random(members.size) < 0.1)


def noisy_mean(ages: list[float]) -> float:
    return sum(ages) / len(ages) + random.gauss(0, 1)


def noisy_count(ages: list[float]) -> float:
    return len(ages) + random.gauss(0, 1)


CASES: dict[str, tuple[bool, Callable[[], Any]]] = {  # a fault or none, and the result
    "black box": (False, lambda: black_box(geometric(1), [(0, 1)], 1, samples=2000)),
    "black box, broken": (True, lambda: black_box(geometric(4), [(0, 1)], 1, samples=2000)),
    "black box, no epsilon": (
        False,
        lambda: black_box(gaussian(1), [(0, 1)], Gaussian(1), samples=2000),
    ),
    "membership": (False, lambda: membership(answers, np.asarray, candidates=400, claim=3)),
    "membership, broken": (
        True,
        lambda: membership(answers, np.asarray, candidates=800, claim=0.5),
    ),
    "replay": (False, lambda: replay_pairs(noisy_count, [([1.0], [])], sensitivity=1)),
    "replay, broken": (True, lambda: replay_pairs(noisy_mean, [([1.0, 2.0], [1.0]), ([1.0], [])])),
    "misuse": (False, lambda: MisuseResult((COPIED,))),
    "misuse, broken": (True, lambda: MisuseResult((COPIED, FORKED))),
    "exact": (False, lambda: exact([(YES, NO)])),
    "exact, claimed": (False, lambda: exact([(YES, NO)], 1.1)),
    "exact, broken": (True, lambda: exact([(YES, NO)], 1)),
    "exact, infinite": (True, lambda: exact([({"yes": 1}, {"no": 1})], 1)),
    "reconstruction": (False, lambda: reconstruct(GROUPS, [1, 0, 1, 0])),
    "reconstruction with noise": (
        False,
        lambda: reconstruct(GROUPS, [1, 0, 1, 0], dp.DiscreteLaplace(6)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_audit_has_a_report_of_the_same_parts(name: str) -> None:
    has_fault, audit = CASES[name]
    result = audit()
    found = report(result)
    assert found.has_fault == has_fault, result
    page = found.html()
    assert re.findall(r"<h2>(.*?)</h2>", page) == HEADS
    assert all(part.count("<p>") for part in page.split("<h2>")[1:])
    assert "<script" not in page
    assert "<yes>" not in page
    data = json.loads(found.json())
    assert data["evidence"] == json.loads(result.to_json())
    assert (data["verdict"], data["has_fault"]) == (found.verdict, has_fault)
    assert all(data[one] for one in ("claimed", "tried", "found", "meaning", "not_tried"))


def test_anything_else_has_no_report() -> None:
    with pytest.raises(InvalidArgument, match="of type int; give the result of black_box"):
        report(1)


@pytest.fixture(scope="module", params=["right", "broken", "gaussian"])
def result(request: pytest.FixtureRequest) -> BlackBoxResult:
    if request.param == "gaussian":
        return black_box(gaussian(1), [(0, 1)], Gaussian(1), samples=20_000)
    epsilon = 1 if request.param == "right" else 2
    return black_box(geometric(epsilon), [(0, 1)], 1, samples=20_000)


def test_the_page_states_the_verdict(result: BlackBoxResult) -> None:
    page = report(result).html()
    assert ("is refuted" in page) == result.is_refuted
    assert str(result.samples) in page


def test_the_share_of_right_guesses_agrees_with_epsilon(result: BlackBoxResult) -> None:
    page = report(result).html()
    shares = [float(one) for one in re.findall(r"at (?:least|most) ([\d.]+) %", page)]
    assert 50 <= shares[0] <= 100
    if result.claim.epsilon() == 1:
        assert shares[1] == 73.2  # e / (1 + e), rounded up
        assert (shares[0] > shares[1]) == result.is_refuted


def test_an_output_cannot_break_the_page() -> None:
    audit = black_box(lambda bit: "<b>" if bit else "<i>", [(0, 1)], 1, samples=1000)
    page = report(audit).html()
    assert "<b>" not in page
    assert "<i>" not in page
    assert "&lt;" in page


def test_json_holds_the_verdict_and_the_evidence(result: BlackBoxResult) -> None:
    found = json.loads(result.to_json())
    assert found["is_refuted"] == result.is_refuted
    assert found["measured_epsilon"] == result.epsilon()
    assert (found["claimed_epsilon"] is None) == (result.claim.epsilon() == float("inf"))
    assert [one["right"] for one in found["evidence"]] == [one.right for one in result.evidence]
