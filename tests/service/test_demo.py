"""`make demo-service` starts everything, fills the history, and stops when asked."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import discreet
from discreet import connect
from discreet.errors import DiscreetError
from discreet.ledger import Kind, Ledger

SCRIPT = Path(__file__).parents[2] / "examples" / "demo_service.py"


@pytest.mark.long  # a whole service starts
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_the_demo_serves_two_analysts_until_it_is_asked_to_stop(
    tmp_path: Path, end: signal.Signals
) -> None:
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), "demo"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(discreet.__file__).parents[1])},
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        shown = []
        for line in process.stdout:
            shown.append(line)
            if "Ctrl-C" in line:
                break
        assert "Ctrl-C" in shown[-1], shown
        (address,) = [line.split()[-1] for line in shown if "listens on" in line]
        folder = tmp_path / "demo"
        tokens = {name: (folder / f"{name}.token").read_text() for name in ("owner", "ana", "ben")}
        histories = {
            name: connect(address, token)["wages"].history() for name, token in tokens.items()
        }
        charges = {
            name: sum(one["kind"] == Kind.CHARGE.value for one in entries)
            for name, entries in histories.items()
        }
        assert charges == {"owner": 5, "ana": 3, "ben": 2}
        assert not [path for path in folder.glob("*.token") if path.stat().st_mode & 0o077]
        process.send_signal(end)
        assert "stopped" in process.communicate(timeout=600)[0]
        assert process.returncode == 0
        with pytest.raises(DiscreetError):
            list(connect(address, tokens["ana"]))
        Ledger.open(folder / "wages.ledger").verify()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
