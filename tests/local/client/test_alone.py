"""The client's folder, copied under another name, where nothing but Python and NumPy is."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from discreet.local import client

FOLDER = Path(client.__file__).parent

RUN = """
import json, sys
from fractions import Fraction
import numpy

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"discreet", "flint", "scipy", "cryptography"}:
            raise ImportError(f"{name} is not on this device")

sys.meta_path.insert(0, Blocked())
before = set(sys.modules)
import device

half, third = Fraction(1, 2), Fraction(1, 3)
clients = [
    device.RandomizedResponse(Fraction(3), 5),
    device.UnaryEncoding(half, third, 5),
    device.HadamardResponse(Fraction(3), 5),
    device.LocalHashing(Fraction(3), 5, 3),
    device.CountMeanSketch(half, third, 100, 5),
    device.DuchiMean(Fraction(3), 0.0, 5.0),
    device.PiecewiseMean(Fraction(3), 16, 4, 0.0, 5.0),
]
for client in clients:
    client.randomize(3), client.randomize([3, 1])
memory = device.Rappor(Fraction(3, 4), Fraction(3, 4), 5)
kept = memory.memoise(3)
memory.randomize(kept), memory.randomize(device.PermanentAnswers(kept.bits))
new = {name.partition(".")[0] for name in set(sys.modules) - before}
print(json.dumps([
    [str(client.worst_ratio()) for client in [*clients, memory]],
    sorted(new - set(sys.stdlib_module_names) - {"numpy"}),
]))
"""


def test_the_client_runs_without_the_rest(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "device", ignore=shutil.ignore_patterns("__pycache__"))
    ratios, new = json.loads(run(tmp_path))
    assert ratios == ["3", "2", "3", "3", "2", "3", "3", "9"]
    assert new == ["device"]


@pytest.mark.parametrize("planted", ["import scipy", "from discreet._exact import fraction"])
def test_a_planted_import_is_found(tmp_path: Path, planted: str) -> None:
    shutil.copytree(FOLDER, tmp_path / "device", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "device" / "_values.py").open("a") as file:
        file.write(f"\n{planted}\n")
    with pytest.raises(subprocess.CalledProcessError) as failed:
        run(tmp_path)
    assert "is not on this device" in failed.value.stderr


def run(folder: Path) -> str:
    return subprocess.run(
        [sys.executable, "-c", RUN], cwd=folder, capture_output=True, text=True, check=True
    ).stdout
