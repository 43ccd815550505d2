"""The README's two commands do the whole set-up; CI runs them, and fails if something is
missing."""

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools.readme import README, commands, difference

ROOT = Path(__file__).parents[1]
PAGE = README.read_text(encoding="utf-8")
CI = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TWO = ["make demo", "make test"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("```sh\nmake demo   # quick\nmake test\n```", TWO),
        ("```sh\nmake demo\n```\ntext\n```bash\nmake   test # all\n```", TWO),
        ("~~~sh\nmake demo\n\n# a comment\nmake test\n~~~", TWO),
        ("1. first\n\n   ```sh title='x'\n   make demo\n   make test\n   ```", TWO),
        ("```sh\nmake \\\n  demo\n```\n\n````sh\nmake test\n````", TWO),
        ("```text\nmake demo\n```\n```python\nmake = 1\n```\n`make test`", []),
        ("```sh\nmake torch\n```", ["make torch"]),
        ("```sh\nmake demo && make test\n```", ["make demo '&&' make test"]),
        ("", []),
    ],
)
def test_the_commands_of_a_page_are_found(text: str, found: list[str]) -> None:
    assert commands(text) == found


@pytest.mark.parametrize(
    "change",
    [
        ("make demo", "make torch\nmake demo"),
        ("make test", "make install test"),
        ("make test", ""),
        ("```sh\nmake demo", "```sh\npip install torch\nmake demo"),
        ("## Four ideas", "```bash\nmake torch\n```\n\n## Four ideas"),
    ],
)
def test_a_readme_with_other_commands_is_found_out(change: tuple[str, str]) -> None:
    assert difference(PAGE, TWO) is None
    other = PAGE.replace(*change, 1)
    assert other != PAGE
    assert "README.md says" in str(difference(other, TWO))


def test_ci_runs_the_commands_of_the_readme_before_any_other() -> None:
    lines = [line.partition("|")[0].split() for line in CI.splitlines()]
    made = [shlex.join(line) for line in lines if line[:1] == ["make"]]
    assert made[:2] == commands(PAGE) == TWO
    checked = re.search(r"-m tools\.readme (.*)", CI)
    assert checked
    assert shlex.split(checked[1]) == TWO


def test_every_install_has_fixed_versions() -> None:
    """Each uses the constraints or a list of exact versions, except the target that makes the
    constraints."""
    text = re.sub(r"^constraints:.*?(?=^\S)", "", MAKEFILE, flags=re.MULTILINE | re.DOTALL) + CI
    installs = re.findall(r"^.*(?:\$\(PIP\)|pip install|^ +install) .*$", text, re.MULTILINE)
    assert len(installs) == 6
    free = [line for line in installs if "-c constraints.txt" not in line]
    assert ["--no-deps" in line for line in free] == [True, True]
    for path in (*(ROOT / "benchmarks" / "peers").glob("*.txt"), ROOT / "tools" / "mutants.txt"):
        lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
        assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines), path


SKIPS = """
import pytest
from importlib.util import find_spec

def test_import():
    pytest.importorskip("nowhere_to_be_found")

@pytest.mark.skipif(find_spec("nowhere_to_be_found") is None, reason="it isn't here: make torch")
def test_mark():
    raise AssertionError

def test_call():
    pytest.skip("PyTorch is not installed")
"""
WHOLE = 'import pytest\npytest.importorskip("nowhere_to_be_found")\n'
FINE = """
import pytest

def test_law():
    pytest.skip("no fixed epsilon")

@pytest.mark.xfail(strict=True, reason="not here")
def test_expected():
    raise AssertionError

@pytest.mark.skip(reason="no CUDA device is here")
def test_device():
    raise AssertionError
"""


@pytest.mark.parametrize(
    ("text", "ci", "code", "line"),
    [
        (SKIPS, "true", 1, "2 failed, 1 error"),
        (SKIPS, None, 0, "3 skipped"),
        (SKIPS, "false", 0, "3 skipped"),
        (WHOLE, "1", 2, "1 error"),
        (WHOLE, None, 5, "1 skipped"),
        (FINE, "true", 0, "2 skipped, 1 xfailed"),
    ],
)
def test_in_ci_a_missing_module_fails(
    tmp_path: Path, text: str, ci: str | None, code: int, line: str
) -> None:
    (tmp_path / "conftest.py").write_text((ROOT / "conftest.py").read_text())
    (tmp_path / "test_skips.py").write_text(text)
    environment = {name: value for name, value in os.environ.items() if name[:6] != "PYTEST"}
    environment.pop("CI", None)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        env=environment | ({} if ci is None else {"CI": ci}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == code, ran.stdout
    assert line in ran.stdout.splitlines()[-1]
    assert ("in CI nothing may be missing" in ran.stdout) == (code in (1, 2))


PYTHON = """#!/bin/sh
echo "$@" >> "$LOG"
if [ -n "$BREAKS" ]; then case "$*" in *"$BREAKS"*) kill -9 $PPID; exit 1 ;; esac; fi
if [ "$2" = venv ]; then
    for last in "$@"; do :; done
    mkdir -p "$last/bin" && cp "$0" "$last/bin/python"
fi
"""


class Clone:
    """A clone with a fake Python, which logs its arguments, or kills its parent process."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "log"
        for name in ("Makefile", "pyproject.toml", "constraints.txt"):
            (folder / name).write_text((ROOT / name).read_text())
        peers = folder / "benchmarks" / "peers"
        peers.mkdir(parents=True)
        for path in (ROOT / "benchmarks" / "peers").glob("*.txt"):
            (peers / path.name).write_text(path.read_text())
        (folder / "fake").write_text(PYTHON)
        (folder / "fake").chmod(0o700)

    def make(self, target: str, breaks: str = "") -> list[str]:
        """The logged calls of Python that show what is made, installed and run."""
        self.log.write_text("")
        ran = subprocess.run(
            ["make", target, f"PYTHON={self.folder / 'fake'}"],
            cwd=self.folder,
            env={**os.environ, "LOG": str(self.log), "BREAKS": breaks, "MAKEFLAGS": ""},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ran.returncode != 0) == bool(breaks), ran.stderr
        lines = self.log.read_text().splitlines()
        found = [word for line in lines for word in WORDS if word in line]
        assert all(
            "-c constraints.txt" in line or "--no-deps" in line
            for line in lines
            if "pip" in line and " install " in line
        )
        return found

    def change(self, name: str) -> None:
        """Make a file newer than everything that was built."""
        now = time.time()
        for path in self.folder.rglob("*"):
            os.utime(path, (now - 100, now - 100))
        os.utime(self.folder / name, (now - 50, now - 50))


WORDS = ["venv --clear .venv", ".[dev]", "torch==", "peers/dp-accounting.txt", "examples/demo.py"]
WORDS += ["-m pytest"]
BASE, TRAINING, PEER = WORDS[:2], WORDS[2:3], WORDS[3:4]


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def test_make_demo_installs_no_pytorch_and_make_test_all(clone: Clone) -> None:
    assert clone.make("demo") == [*BASE, "examples/demo.py"]
    assert clone.make("demo") == ["examples/demo.py"]
    assert clone.make("test") == [*TRAINING, *PEER, "-m pytest"]
    assert clone.make("test") == ["-m pytest"]
    assert clone.make("demo") == ["examples/demo.py"]


def test_make_test_alone_does_all_the_set_up(clone: Clone) -> None:
    assert clone.make("test") == [*BASE, *TRAINING, *PEER, "-m pytest"]


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_changed_requirements_are_installed_again(clone: Clone, name: str) -> None:
    clone.make("test")
    clone.change(name)
    assert clone.make("demo") == [".[dev]", "examples/demo.py"]
    assert clone.make("test") == [*TRAINING, "-m pytest"]
    assert clone.make("test") == ["-m pytest"]


@pytest.mark.parametrize("breaks", ["venv", "editables", ".[dev]", "torch=="])
def test_an_install_that_was_broken_off_is_begun_anew(clone: Clone, breaks: str) -> None:
    """It was killed before its end, so no stamp marks it as done."""
    clone.make("test", breaks=breaks)
    assert clone.make("demo") == [*BASE, "examples/demo.py"]
    assert clone.make("test") == [*TRAINING, *PEER, "-m pytest"]


def test_a_peer_whose_install_was_broken_off_is_made_anew(clone: Clone) -> None:
    clone.make("test", breaks="peers/dp-accounting.txt")
    assert clone.make("test") == [*PEER, "-m pytest"]
    clone.change("benchmarks/peers/dp-accounting.txt")
    assert clone.make("test") == [*PEER, "-m pytest"]
