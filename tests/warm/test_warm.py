"""The warm command behaves as the real one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import warm
from tests.cli.kit import BY_UNION, DECLARE, wages

REAL = str(Path(sys.executable).with_name("discreet"))


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wages(tmp_path / "wages.parquet")
    monkeypatch.chdir(tmp_path)
    assert subprocess.run([REAL, *DECLARE], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("--version",),
        ("price", "--help"),
        ("explain", "wages", BY_UNION, "--epsilon", "1"),
        ("explain", "wages", "SELECT COUNT(", "--epsilon", "1"),
        ("explain", "wages", BY_UNION, "--epsilon", "1", "--json"),
        ("budget", "nobody"),
        ("ask", "wages", BY_UNION, "--epsilon", "100", "--yes"),
        ("tables", "--no-such-option"),
    ],
    ids=" ".join,
)
def test_the_warm_command_shows_the_same(arguments: tuple[str, ...]) -> None:
    environment = {**os.environ, "COLUMNS": "70", "NO_COLOR": "1"}
    real, other = (
        subprocess.run([one, *arguments], env=environment, capture_output=True, check=False)
        for one in (REAL, warm.command())
    )
    assert other.stdout == real.stdout
    assert other.stderr == real.stderr
    assert other.returncode == real.returncode
