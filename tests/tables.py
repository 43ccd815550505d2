"""Tables of cases that are too many to try all of them each time."""

from collections.abc import Iterable

import pytest


def one_in(step: int, cases: Iterable[object]) -> list[object]:
    """All cases; one in ``step`` of them is tried by `make test`, the others by `make test-long`
    only. A tuple has a value for each argument."""
    return [
        pytest.param(
            *(case if type(case) is tuple else [case]),
            marks=[pytest.mark.long] if place % step else [],
        )
        for place, case in enumerate(cases)
    ]
