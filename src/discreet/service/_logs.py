"""Logs: one line of JSON for each event on stderr, and the owner's log for causes of failures.

The first holds facts of requests only: kind, status, and the id and role of a token. Texts of
questions, names of analysts and values never stand in it.
"""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog

written = structlog.wrap_logger(
    structlog.PrintLogger(sys.stderr),
    processors=[
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.JSONRenderer(),
    ],
)

owners_log = logging.getLogger("discreet.owner")


@contextmanager
def logged_to(path: Path) -> Iterator[None]:
    """Send the owner's log to this file, which only its owner can read."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    owners_log.addHandler(handler)
    owners_log.propagate = False
    # the server's own lines: failures are for the owner, bad requests of strangers for nobody
    server = logging.FileHandler(path, encoding="utf-8")
    server.setLevel(logging.ERROR)
    servers_log = logging.getLogger("uvicorn")
    servers_log.addHandler(server)
    servers_log.propagate = False
    try:
        yield
    finally:
        servers_log.removeHandler(server)
        server.close()
        owners_log.removeHandler(handler)
        handler.close()
