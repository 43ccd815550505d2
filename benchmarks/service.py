"""Many analysts at one service: ``python -m benchmarks.service [SECONDS]`` (60 unless given).

First 50 analysts ask at the same time, each one question after another, until the time is over;
their shares add up to more than the ledger's limit. Some answers are then asked for once more under
their request ids. Then 32 clients charge for computations elsewhere, each on one connection. The
service, its two workers and the clients share this machine.
"""

import http.client
import json
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks.tables import duration, show, table
from discreet.accounting import Pure
from tests.service import kit
from tests.service.kit import Served

ANALYSTS, CLIENTS, SECONDS, CHARGING = 50, 32, 60.0, 10.0
EPSILON, LIMIT = 0.1, 20
GOAL = 1_000  # charges a second
SQL = "SELECT year, COUNT(*) AS n, AVG(wage) AS pay FROM wages GROUP BY year"
LOSS = (1 * Pure(1e-9)).to_json()


@dataclass
class Seen:
    """The answers to all clients."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
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
    seen, end = Seen(), time.monotonic() + seconds

    def asks(number: int) -> None:
        client = Client(running.port, tokens[number])
        for question in count():
            body = {"sql": SQL, "epsilon": EPSILON, "request": f"{question}"}
            begun = time.monotonic()
            if begun >= end:
                return
            status, answer = client.post("/v1/tables/wages/ask", body)
            seen.seconds.append(time.monotonic() - begun)
            seen.statuses[status] += 1
            if status == 200:
                seen.answered.append((tokens[number], f"{question}", answer))

    together(asks, ANALYSTS)
    charges = running.ledger.spent().charges
    again = [
        Client(running.port, token).post(
            "/v1/tables/wages/ask", {"sql": SQL, "epsilon": EPSILON, "request": request}
        )
        == (200, answer)
        for token, request, answer in seen.answered[:20]
    ]
    most = round(LIMIT / EPSILON)
    is_exact = charges == len(seen.answered) and charges <= most
    is_reached = charges == most or not seen.statuses[402]
    return {
        "answers by status": str(dict(sorted(seen.statuses.items()))),
        "charges, of at most": f"{charges} of {most}",
        "repeated with the same bytes": f"{sum(again)} of {len(again)}",
        "charges after repeating": str(running.ledger.spent().charges),
        "exact": str(is_exact and is_reached and all(again)),
        "p50": duration(median(seen.seconds)),
        "p99": duration(quantiles(seen.seconds, n=100)[-1]),
        "longest": duration(max(seen.seconds)),
    }


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
