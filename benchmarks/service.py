"""Many analysts at one service: ``python -m benchmarks.service [SECONDS]`` (60 unless given).

First 50 analysts ask at the same time, each one question after another, until the time is over;
their shares add up to more than the ledger's limit. Locust runs them, if `make peers` made its
environment, and threads otherwise. Answers are then asked for once more under their request ids.
Then 32 clients charge for computations elsewhere, each on one connection. The service, its two
workers and the clients share this machine.
"""

import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks.tables import duration, show, table
from discreet.accounting import Pure
from discreet.ledger import Kind
from tests.service import kit
from tests.service.kit import Served

ANALYSTS, CLIENTS, SECONDS, CHARGING = 50, 32, 60.0, 10.0
EPSILON, LIMIT = 0.1, 20
GOAL = 1_000  # charges a second
SQL = "SELECT year, COUNT(*) AS n, AVG(wage) AS pay FROM wages GROUP BY year"
LOSS = (1 * Pure(1e-9)).to_json()
_ROOT = Path(__file__).parents[1]
LOCUST = _ROOT / ".peers" / "locust" / "bin" / "locust"
ANALYST = _ROOT / "benchmarks" / "workers" / "service" / "analysts.py"


@dataclass
class Seen:
    """The answers to all clients."""

    statuses: Counter[int] = field(default_factory=Counter)
    times: dict[str, float] = field(default_factory=dict)  # seconds
    answered: list[tuple[str, str, bytes]] = field(default_factory=list)  # token, request, bytes


class Client:
    """One token on one connection."""

    def __init__(self, port: int, token: str) -> None:
        self.token = token
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def post(self, path: str, body: object) -> tuple[int, bytes]:
        """The status and the bytes of an answer."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        self._connection.request("POST", path, json.dumps(body).encode(), headers)
        found = self._connection.getresponse()
        return found.status, found.read()

    def ask(self, request: str) -> tuple[int, bytes]:
        """The status and the bytes of the answer to the question."""
        body = {"sql": SQL, "epsilon": EPSILON, "request": request}
        return self.post("/v1/tables/wages/ask", body)


def main() -> None:
    """Print the figures of both."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    with (
        tempfile.TemporaryDirectory() as folder,
        kit.service(Path(folder), more=kit.RATE) as running,
    ):
        asked = ask(running, seconds)
        made = table("questions", "", "")
        for name, figure in asked.items():
            made.add_row(name, figure)
        show(made)
        rate, statuses = charge(running)
        running.ledger.verify()
    print(f"charges by {CLIENTS} clients for {CHARGING:g} s: {dict(statuses)}")
    print(
        f"service: p50 = {asked['p50']}, p99 = {asked['p99']}, ceiling exact = {asked['exact']}, "
        f"charges per second = {rate:,.0f} (goal {GOAL:,})"
    )


def ask(running: Served, seconds: float) -> dict[str, str]:
    """The figures of analysts who ask at the same time."""
    share = 3 * LIMIT / ANALYSTS
    tokens = [running.token(f"analyst{number}", share=share) for number in range(ANALYSTS)]
    seen = (by_locust if LOCUST.exists() else by_threads)(running, tokens, seconds)
    charges = running.ledger.spent().charges
    again = [
        Client(running.port, token).ask(request) == (200, answer)
        for token, request, answer in seen.answered[:20]
    ]
    most = round(LIMIT / EPSILON)
    is_exact = charges == seen.statuses[200] and charges <= most
    is_reached = charges == most or not seen.statuses[402]
    after = running.ledger.spent().charges
    return {
        "answers by status": str(dict(sorted(seen.statuses.items()))),
        "charges, of at most": f"{charges} of {most}",
        "repeated with the same bytes": f"{sum(again)} of {len(again)}",
        "charges after repeating": str(after),
        "exact": str(is_exact and is_reached and all(again) and after == charges),
        **{name: duration(found) for name, found in seen.times.items()},
    }


def by_threads(running: Served, tokens: Sequence[str], seconds: float) -> Seen:
    """The answers to threads of this process."""
    seen, taken, end = Seen(), list[float](), time.monotonic() + seconds

    def asks(number: int) -> None:
        client = Client(running.port, tokens[number])
        for question in count():
            begun = time.monotonic()
            if begun >= end:
                return
            status, answer = client.ask(f"{question}")
            taken.append(time.monotonic() - begun)
            seen.statuses[status] += 1
            if status == 200:
                seen.answered.append((tokens[number], f"{question}", answer))

    together(asks, ANALYSTS)
    seen.times |= {"p50": median(taken), "p99": quantiles(taken, n=100)[-1], "longest": max(taken)}
    return seen


def by_locust(running: Served, tokens: Sequence[str], seconds: float) -> Seen:
    """The answers to the users of locust, in a process of its own."""
    file = running.folder / "tokens"
    file.write_text("\n".join(tokens), encoding="utf-8")
    options = f"--headless -u {ANALYSTS} -r {ANALYSTS} -t {seconds:g}s -s 120 --json"
    found = subprocess.run(  # locust, with options of this file
        [LOCUST, "-f", ANALYST, "--host", running.url.rstrip("/"), *options.split()],
        env={**os.environ, "TOKENS": str(file)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # its progress
        text=True,
        check=False,  # its status tells of failures, which the counts show
    )
    seen, milliseconds = Seen(), list[float]()
    for one in json.loads(found.stdout):  # one for each status
        if one["num_requests"]:
            seen.statuses[int(one["name"])] = one["num_requests"]
        for taken, number in one["response_times"].items():
            milliseconds += [float(taken)] * number
    seen.times |= {
        "p50": median(milliseconds) / 1e3,
        "p99": quantiles(milliseconds, n=100)[-1] / 1e3,
        "longest": max(milliseconds) / 1e3,
    }
    paid = [entry for entry in running.ledger.history() if entry.kind is Kind.CHARGE]
    names = {f"analyst{number}": token for number, token in enumerate(tokens)}
    for entry in paid[:20]:
        token, request = names[entry.by or ""], entry.request or ""
        seen.answered.append((token, request, Client(running.port, token).ask(request)[1]))
    return seen


def charge(running: Served) -> tuple[float, Counter[int]]:
    """The charges a second of clients whose computations run elsewhere."""
    tokens = [running.token(f"machine{number}") for number in range(CLIENTS)]
    for number in range(CLIENTS):  # the table of charges has an untouched ledger
        running.send("PUT", f"/v1/tables/fewer/shares/machine{number}", {"epsilon": 1})
    statuses, end = Counter[int](), time.monotonic() + CHARGING

    def charges(number: int) -> None:
        client = Client(running.port, tokens[number])
        for request in count():
            if time.monotonic() >= end:
                return
            body = {"privacy_loss": LOSS, "purpose": "load", "request": f"{request}"}
            status, _ = client.post("/v1/tables/fewer/charge", body)
            statuses[status] += 1

    begun, before = time.monotonic(), cpu(running.process.pid)
    together(charges, CLIENTS)
    passed, used = time.monotonic() - begun, cpu(running.process.pid) - before
    print(f"CPU of the service for one charge: {duration(used / max(1, statuses[200]))}")
    return statuses[200] / passed, statuses


def cpu(process: int) -> float:
    """The CPU time of a process, in seconds."""
    facts = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(facts[11]) + int(facts[12])) / os.sysconf("SC_CLK_TCK")


def together(work: Callable[[int], Any], number: int) -> None:
    """Run this in as many threads."""
    threads = [threading.Thread(target=work, args=(one,)) for one in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
