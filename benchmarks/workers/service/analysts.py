"""Analysts who ask a service, as locust runs them: each has a token of its own, and asks one
question after another. `benchmarks.service` gives the tokens, one a line, in the file ``TOKENS``.

An answer (200) and a refusal for the budget (402) are successes, and everything else is a failure.
"""

import json
import os
from itertools import count
from pathlib import Path

from locust import FastHttpUser, task

TOKENS = iter(Path(os.environ["TOKENS"]).read_text(encoding="utf-8").split())
QUESTION = {
    "sql": "SELECT year, COUNT(*) AS n, AVG(wage) AS pay FROM wages GROUP BY year",
    "epsilon": 0.1,
}


class Analyst(FastHttpUser):  # type: ignore[misc]  # locust is not here when types are checked
    """An analyst, who begins a new question as soon as the last one was answered."""

    network_timeout = connection_timeout = 120.0

    def on_start(self) -> None:
        """Take a token that nobody has."""
        self.headers = {"Authorization": f"Bearer {next(TOKENS)}"}
        self.requests = count()

    @task  # type: ignore[untyped-decorator]  # the same
    def ask(self) -> None:
        """Ask a question under a new request id."""
        body = {**QUESTION, "request": f"locust {next(self.requests)}"}
        with self.client.post(
            "/v1/tables/wages/ask",
            data=json.dumps(body),
            headers={**self.headers, "Content-Type": "application/json"},
            catch_response=True,
        ) as answered:
            answered.request_meta["name"] = str(answered.status_code)  # counted apart
            if answered.status_code in (200, 402):
                answered.success()
            else:
                answered.failure(f"status {answered.status_code}")
