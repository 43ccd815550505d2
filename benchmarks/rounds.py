"""Times discreet beside its peers, in interleaved rounds: ``python -m benchmarks.rounds FOLDER``.

Each ``FOLDER/NAME.py`` is one contestant's worker, in a process and an environment of its own.
They take turns, so that whatever else the machine does falls on all of them alike.
"""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
ROUNDS = 7


class Contestant:
    """A running worker."""

    def __init__(self, script: Path, python: Path) -> None:
        """Start it; it answers line by line."""
        self.name = script.stem
        self._process = subprocess.Popen(
            [python, "-P", script],
            env={"PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def ask(self, line: str) -> str:
        """The worker's answer to one line."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(line, file=self._process.stdin, flush=True)
        return self._process.stdout.readline().strip()

    def stop(self) -> None:
        """End the worker, by the end of its input."""
        self._process.communicate()


def main(folder: Path) -> None:
    """Print each case's median time for each contestant."""
    with ExitStack() as stack:
        contestants = []
        for script in sorted(folder.glob("*.py")):
            if (python := environment(script.stem)).is_file():
                contestants.append(Contestant(script, python))
                stack.callback(contestants[-1].stop)
            else:
                print(f"{script.stem}: left out, since `make peers` has not been run")
        cases = {contestant: contestant.ask("?").split() for contestant in contestants}
        times: dict[str, dict[str, list[float]]] = {}
        for _ in range(ROUNDS):
            for contestant, names in cases.items():
                for case in names:
                    rounds = times.setdefault(case, {}).setdefault(contestant.name, [])
                    rounds.append(float(contestant.ask(case)))
    for case, by_name in times.items():
        for name, rounds in by_name.items():
            print(f"{case:32} {name:16} {median(rounds) * 1e6:12.3f} us")


def environment(name: str) -> Path:
    """The Python that runs this contestant."""
    is_peer = (ROOT / "benchmarks" / "peers" / f"{name}.txt").is_file()
    return ROOT / ".peers" / name / "bin" / "python" if is_peer else Path(sys.executable)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
