"""A plugin of pytest that replays a user's own pipelines on neighbouring tables.

It is found by pytest when discreet is installed. It gives two fixtures and a marker:

- ``replay`` is `discreet.audit.replay_pipeline`;
- ``neighbours`` is a pair of neighbouring tables. A test with the marker
  ``@pytest.mark.neighbours(rows)`` runs once for each pair of `discreet.audit.neighbours(rows)`.

Nothing of discreet beside this module is imported before a test asks for it.
"""

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

_MARKER = "neighbours"
_LONGEST = 40


def pytest_configure(config: pytest.Config) -> None:
    """Describe the marker."""
    config.addinivalue_line(
        "markers", f"{_MARKER}(rows): run the test on each pair of neighbours made of these rows"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each pair of neighbouring tables."""
    marker = metafunc.definition.get_closest_marker(_MARKER)
    if marker is None or _MARKER not in metafunc.fixturenames:
        return
    from discreet.audit import neighbours

    pairs = neighbours(*marker.args, **marker.kwargs)
    metafunc.parametrize(_MARKER, pairs, ids=[_described(*pair) for pair in pairs])


@pytest.fixture
def replay() -> "Callable[..., tuple[str, ...]]":
    """`discreet.audit.replay_pipeline`."""
    from discreet.audit import replay_pipeline

    return replay_pipeline


@pytest.fixture
def neighbours(request: pytest.FixtureRequest) -> Any:  # Any: two lists of rows of any type
    """A pair of neighbouring tables; it needs the marker."""
    pytest.fail(f"{request.node.name}: mark the test with @pytest.mark.{_MARKER}(rows)")


def _described(one: list[Any], other: list[Any]) -> str:  # Any: rows of any type
    """The row that makes the difference."""
    longer, shorter = (one, other) if len(one) > len(other) else (other, one)
    place = next((at for at, row in enumerate(shorter) if row is not longer[at]), len(shorter))
    verb = "without" if longer is one else "with"
    return ascii(f"{verb} {longer[place]!r}")[1:-1][:_LONGEST]
