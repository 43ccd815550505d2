"""Each test of a command stands in an empty folder with one table."""

from pathlib import Path

import pytest

from tests.cli.kit import Run, runner, wages


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs ``discreet`` in a folder that holds ``wages.parquet`` and nothing else."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    wages(tmp_path / "wages.parquet")
    return runner(monkeypatch, capfd)
