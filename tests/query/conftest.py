"""Each test compiles its own statements, so that a fault planted in one is in no other."""

from collections.abc import Iterator

import pytest

from discreet.query._bounding._compiled_plan import _known


@pytest.fixture(autouse=True)
def no_known_statements() -> Iterator[None]:
    """Without statements of earlier tests, and for later ones without those of this test."""
    _known.clear()
    yield
    _known.clear()
