"""Writes the figures of other accountants for the tests: ``python -m
benchmarks.figures.accounting``.

It needs their environments, made by ``make peers``, and takes about half an hour. Each peer runs as
a process of its own, which is ended if an answer takes longer than a minute. The file is written
again after each case.
"""

import json
import select
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack

from benchmarks.figures.cases import Case, cases
from benchmarks.rounds import ROOT, environment

TARGET = ROOT / "tests" / "accounting" / "figures" / "dp_accounting.json"
SECONDS = 60
FIGURES = {  # by the name in the file: a peer, and one of its figures
    "renyi": ("dp_accounting", "renyi"),
    "upper": ("dp_accounting", "upper"),
    "lower": ("dp_accounting", "lower"),
    "prv": ("prv_accountant", "bracket"),
    "opacus": ("opacus", "renyi"),
}
LEAST, MOST = 1e-4, 5e3  # the useful range of epsilon

Line = dict[str, object]


class Peer:
    """Another accountant. Its process starts with the first request, and again after it was
    ended."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._process: subprocess.Popen[str] | None = None

    def ask(self, request: Line) -> list[object]:
        """Its figures, one for each delta."""
        process = self._process or self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        print(json.dumps(request), file=process.stdin, flush=True)
        is_ready, _, _ = select.select([process.stdout], [], [], SECONDS)
        answer = process.stdout.readline() if is_ready else ""
        if answer:
            found: list[object] = json.loads(answer)
            return found
        self.stop()
        reason = "ended by itself" if is_ready else f"no answer within {SECONDS} s"
        return [reason] * len(request["deltas"])  # type: ignore[arg-type]  # a list

    def stop(self) -> None:
        """End the process at once."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _started(self) -> "subprocess.Popen[str]":
        script = ROOT / "benchmarks" / "figures" / "workers" / f"{self.name}.py"
        self._process = subprocess.Popen(
            [environment(self.name), "-P", script],
            env={"PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        return self._process


def main() -> None:
    """Ask all peers for all cases."""
    lines: list[Line] = []
    with ExitStack() as stack:
        peers = {name: Peer(name) for name, _ in FIGURES.values()}
        for peer in peers.values():
            stack.callback(peer.stop)
        for case in cases():
            lines.extend(line for line in figures(case, peers) if is_of_use(line))
            write(lines)


def figures(case: Case, peers: dict[str, Peer]) -> Iterator[Line]:
    """A line for each delta."""
    request: Line = {**case.as_json(), "deltas": case.deltas, "rough": None}
    found: dict[str, list[object]] = {}
    for name, (peer, figure) in FIGURES.items():
        found[name] = peers[peer].ask({**request, "figure": figure})
        if name == "renyi":
            request["rough"] = max((e for e in found[name] if isinstance(e, float)), default=None)
    for place, delta in enumerate(case.deltas):
        line: Line = {**case.as_json(), "delta": delta}
        answers = {name: each[place] for name, each in found.items()}
        missing = {name: reason for name, reason in answers.items() if isinstance(reason, str)}
        line.update({name: None if name in missing else figure for name, figure in answers.items()})
        yield {**line, "missing": missing} if missing else line


def is_of_use(line: Line) -> bool:
    """Whether epsilon may lie in the range that the tests use."""
    upper, renyi = line["upper"], line["renyi"]
    known = upper if isinstance(upper, float) else renyi
    return not isinstance(known, float) or LEAST <= known <= MOST


def write(lines: list[Line]) -> None:
    """Write one line per case, so that changes are readable."""
    text = ",\n".join(json.dumps(line) for line in lines)
    TARGET.write_text(f"[\n{text}\n]\n")


if __name__ == "__main__":
    main()
