"""The report of an audit in words and as JSON."""

import json
import re

import pytest

from discreet.accounting import Gaussian
from discreet.audit import BlackBoxResult, black_box, report
from tests.audit.laws import gaussian, geometric


@pytest.fixture(scope="module", params=["right", "broken", "gaussian"])
def result(request: pytest.FixtureRequest) -> BlackBoxResult:
    if request.param == "gaussian":
        return black_box(gaussian(1), [(0, 1)], Gaussian(1), samples=20_000)
    epsilon = 1 if request.param == "right" else 2
    return black_box(geometric(epsilon), [(0, 1)], 1, samples=20_000)


def test_the_page_states_claim_trial_finding_meaning_and_limits(result: BlackBoxResult) -> None:
    page = report(result)
    heads = re.findall(r"<h2>(.*?)</h2>", page)
    assert heads == ["Claimed", "Tried", "Found", "Meaning for one person", "Not tried"]
    assert ("is refuted" in page) == result.is_refuted
    assert str(result.samples) in page
    assert "<script" not in page


def test_the_share_of_right_guesses_agrees_with_epsilon(result: BlackBoxResult) -> None:
    shares = [float(one) for one in re.findall(r"at (?:least|most) ([\d.]+) %", report(result))]
    assert 50 <= shares[0] <= 100
    if result.claim.epsilon() == 1:
        assert shares[1] == 73.2  # e / (1 + e), rounded up
        assert (shares[0] > shares[1]) == result.is_refuted


def test_an_output_cannot_break_the_page() -> None:
    audit = black_box(lambda bit: "<b>" if bit else "<i>", [(0, 1)], 1, samples=1000)
    page = report(audit)
    assert "<b>" not in page
    assert "<i>" not in page
    assert "&lt;" in page


def test_json_holds_the_verdict_and_the_evidence(result: BlackBoxResult) -> None:
    found = json.loads(result.to_json())
    assert found["is_refuted"] == result.is_refuted
    assert found["measured_epsilon"] == result.epsilon()
    assert (found["claimed_epsilon"] is None) == (result.claim.epsilon() == float("inf"))
    assert [one["right"] for one in found["evidence"]] == [one.right for one in result.evidence]
