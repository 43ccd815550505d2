"""One export for all tests of exports."""

from pathlib import Path

import pytest

from discreet.explore import export, pages


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The export of the quickest page; tests read it only."""
    place = tmp_path_factory.mktemp("exported") / "site"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "NAMES", ("survey",))
        export(place, outcomes=2)
    return place
