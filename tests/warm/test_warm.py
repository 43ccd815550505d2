"""The warm command behaves as the real one."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import warm
from tests.cli.kit import BY_UNION, DECLARE, wages

REAL = str(Path(sys.executable).with_name("discreet"))


@pytest.fixture(scope="module")
def declared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a declared table; no test changes it."""
    folder = tmp_path_factory.mktemp("wages")
    wages(folder / "wages.parquet")
    subprocess.run([REAL, *DECLARE], cwd=folder, check=True, capture_output=True)
    return folder


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
def test_the_warm_command_shows_the_same(declared: Path, arguments: tuple[str, ...]) -> None:
    environment = {**os.environ, "COLUMNS": "70", "NO_COLOR": "1"}
    real, other = (
        subprocess.run(
            [one, *arguments], cwd=declared, env=environment, capture_output=True, check=False
        )
        for one in (REAL, warm.command())
    )
    assert other.stdout == real.stdout
    assert other.stderr == real.stderr
    assert other.returncode == real.returncode


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("print(sys.stdin.readline(), end='')", 0),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("sys.exit(3)", 3),
        ("raise ValueError", 1),
        ("threading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start()", 0),
    ],
)
def test_code_ends_as_in_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, status: int
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHOWN", "a value")
    start = "import os, signal, sys, threading, time\n"
    shows = "print(os.getcwd(), os.environ['SHOWN'], *sys.argv)\n"
    process = warm.WarmProcess(start + shows + code, "an", "argument")
    if "stdin" in code:  # the others may end before anything is written to them
        process.stdin.write("a line\n")
        process.stdin.flush()
    out, err = process.communicate(timeout=60)
    assert process.returncode == status
    assert err.endswith("ValueError\n" * (status == 1))
    more = {"print": "a line\n", "threa": "late\n"}.get(code[:5], "")
    assert out == (f"{tmp_path} a value -c an argument\n{more}" if status >= 0 else "")


def test_a_running_process_is_killed_and_its_end_is_known() -> None:
    with warm.WarmProcess("import time\nprint('x', flush=True)\ntime.sleep(60)") as process:
        assert process.stdout.readline() == "x\n"
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    process.send_signal(signal.SIGKILL)  # nothing is sent to another process of this number
