"""``discreet explore``."""

import itertools
import json
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pytest

from discreet.explore import _server, pages
from tests.cli.kit import Run


def test_help_names_the_options_and_the_extra(run: Run) -> None:
    ended = run("explore", "--help")
    assert ended.code == 0
    for word in ("--port", "--no-browser", "--export", "discreet[explore]"):
        assert word in ended.out


def test_the_explorer_serves_until_interrupted(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("discreet")), "explore", "--no-browser"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        try:
            address = running.stdout.readline().strip()
            assert address.startswith("http://127.0.0.1:")
            with urllib.request.urlopen(address, timeout=60) as answer:
                assert b"See what privacy costs" in answer.read()
            # an answer of the engine, then a private run: one process loads what both need
            for outcome in ("budget/ask/1-2-1-0-0-0-0", "training/train/1-3-1-1"):
                path = f"{address}outcomes/{outcome}.json"
                with urllib.request.urlopen(path, timeout=60) as answer:
                    found = json.load(answer)
                assert found["points"] or found["overlays"], found["says"]
        finally:
            running.send_signal(signal.SIGINT)
            _, said = running.communicate(timeout=60)
        assert running.returncode == 130, said
        assert "paid" not in said
    assert list(tmp_path.iterdir()) == []


def test_views_are_computed_until_the_server_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread runs on into the end of Python, which aborts within PyTorch's code."""
    import uvicorn

    begun, threads = threading.Event(), threading.active_count()

    def ask_nothing(_server: object, sockets: object) -> None:
        assert sockets
        assert begun.wait(60)
        raise KeyboardInterrupt

    def compute() -> None:
        begun.set()
        time.sleep(0.2)

    monkeypatch.setattr(uvicorn.Server, "run", ask_nothing)
    monkeypatch.setattr(_server, "_first", lambda: itertools.repeat(compute))
    with pytest.raises(KeyboardInterrupt):
        _server.serve(opens_browser=False, ready=lambda _: None)
    assert threading.active_count() == threads


def test_a_folder_with_files_is_not_overwritten(run: Run, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "mine.txt").write_text("precious")
    ended = run("explore", "--export", str(tmp_path / "site"))
    assert ended.code == 2
    assert "new or empty" in ended.message


def test_a_folder_that_cannot_be_made_is_named_with_the_reason(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    ended = run("explore", "--export", str(tmp_path / "file" / "site"))
    assert ended.code == 2
    assert "Not a directory; give another one" in ended.message
    assert "paid" not in ended.message


def test_a_stopped_export_says_nothing_of_payment(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pages, "view", stop)
    ended = run("explore", "--export", str(tmp_path / "site"))
    assert ended.code == 130
    assert "paid" not in ended.err
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize("port", ["-1", "65536", "x"])
def test_a_port_is_a_port(run: Run, port: str) -> None:
    assert run("explore", "--no-browser", "--port", port).code == 2
