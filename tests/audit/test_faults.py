"""Planted faults: the black box finds each of them, and accuses no right version."""

import time

import pytest

from discreet.audit import BlackBoxResult, black_box
from tests.audit.faults import FAULTS, Fault, Function

SECONDS = 60  # of CPU time, for one audit


def audited(fault: Fault, function: Function) -> BlackBoxResult:
    start = time.process_time()
    found = black_box(function, [fault.pair], fault.claim, delta=fault.delta, samples=fault.samples)
    assert time.process_time() - start < SECONDS
    return found


def test_the_list_has_forty_faults() -> None:
    assert len(FAULTS) >= 40


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_and_its_right_version_is_not_accused(name: str) -> None:
    """A right version is accused with probability 1e-9."""
    fault = FAULTS[name]
    assert audited(fault, fault.broken).is_refuted
    assert not audited(fault, fault.right).is_refuted
