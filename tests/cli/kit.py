"""Runs commands as a person types them, inside this process or as one of their own."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.cli import main
from tests import warm

DECLARE = (
    *("declare", "wages.parquet", "--unit", "person"),
    *("--rows", "6", "--groups", "3", "--rows-per-group", "2"),
    *("--bound", "wage=0..60", "--key", "year=1980..1982"),
    *("--epsilon", "2", "--delta", "1e-6"),
)
COUNT = "SELECT COUNT(*) AS n FROM wages"
BY_UNION = "SELECT in_union, AVG(wage) AS pay, COUNT(*) AS n FROM wages GROUP BY in_union"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended, and what it showed."""

    code: int
    out: str
    err: str

    @property
    def message(self) -> str:
        """The text on stderr, without the frames and folds of a terminal."""
        return re.sub(r"[\s│╭╮╰╯─]+", " ", self.err)


Run = Callable[..., Ended]


def wages(path: Path, people: int = 60) -> None:
    """A small panel: everyone in each of three years."""
    rows = [(person, year) for person in range(people) for year in (1980, 1981, 1982)]
    pq.write_table(
        pa.table(
            {
                "person": [person for person, _ in rows],
                "year": [year for _, year in rows],
                "in_union": [person % 3 == 0 for person, _ in rows],
                "job": ["clerk" if person % 2 else "cook" for person, _ in rows],
                "wage": [5.0 + person % 7 for person, _ in rows],
                "hours": [30.5 + person % 9 for person, _ in rows],
            }
        ),
        path,
    )


def runner(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs ``discreet`` in this process."""

    def run(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["discreet", *arguments])
        capfd.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        assert isinstance(end.value.code, int)
        return Ended(end.value.code, *capfd.readouterr())

    return run


def program(environment: Mapping[str, str]) -> str:
    """The path of ``discreet``: the real one if Python itself reads its settings at the start."""
    is_real = any(name.startswith("PYTHON") for name in environment)
    return str(Path(sys.executable).with_name("discreet")) if is_real else warm.command()


def process(*arguments: str, **environment: str) -> Ended:
    """Runs ``discreet`` as a process of its own."""
    ran = subprocess.run(
        [program(environment), *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
    )
    return Ended(ran.returncode, ran.stdout.decode(), ran.stderr.decode())
