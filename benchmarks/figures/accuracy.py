"""Writes the accuracy of Opacus' models: ``python -m benchmarks.figures.accuracy``.

It needs Opacus' environment, made by ``make peers``, and ours. The data, the model, the sweep and
the choice are those of `benchmarks.accuracy`. The file is written again after each figure.
"""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.accuracy_data import DATA, split
from benchmarks.accuracy_sweep import (
    DELTA,
    EPSILONS,
    STEPS,
    Accuracies,
    Run,
    Setting,
    SweepResult,
    batch,
    sweep,
)
from benchmarks.rounds import ROOT, environment, progress

TARGET = Path(__file__).parent / "accuracy.json"


def stored(name: str, epsilon: float) -> SweepResult:
    """The stored result of Opacus."""
    entry = json.loads(TARGET.read_text())[name][f"{epsilon:g}"]
    return SweepResult(**{**entry, "setting": Setting(**entry["setting"])})


class Opacus:
    """The worker, and the folder of the splits that it reads."""

    def __init__(self, process: "subprocess.Popen[str]", folder: Path) -> None:
        self._process, self._folder = process, folder

    def train(self, name: str, epsilon: float, runs: Sequence[Run]) -> Iterator[Accuracies]:
        """The accuracies of each model."""
        for run in runs:
            yield self._trained(name, epsilon, run)

    def _trained(self, name: str, epsilon: float, run: Run) -> Accuracies:
        given = split(name, run.seed)
        file = self._folder / f"{name}-{run.seed}.npz"
        if not file.is_file():
            np.savez(file, x=given.x, y=given.y, test_x=given.test_x, test_y=given.test_y)
        request = {
            "file": str(file),
            "seed": 1000 * run.draw + run.seed,
            "epsilon": epsilon,
            "delta": DELTA,
            "batch": batch(len(given.x)),
            "steps": STEPS,
            "rate": run.setting.rate,
            "clip": run.setting.clip,
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return Accuracies(*map(float, self._process.stdout.readline().split()))


@contextmanager
def opacus() -> Iterator[Opacus]:
    """The worker, in its own environment."""
    script = ROOT / "benchmarks" / "figures" / "workers" / "opacus_accuracy.py"
    with TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [environment("opacus"), "-P", script],
            env={"PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        yield Opacus(process, Path(folder))
        process.communicate()


def main() -> None:
    """Ask for every data set and epsilon."""
    figures: dict[str, dict[str, object]] = {name: {} for name in DATA}
    rows = [(name, epsilon) for name in DATA for epsilon in EPSILONS]
    with opacus() as worker, progress() as bar:
        for name, epsilon in bar.track(rows, description="Opacus"):
            figures[name][f"{epsilon:g}"] = asdict(
                sweep(name, partial(worker.train, name, epsilon))
            )
            TARGET.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
