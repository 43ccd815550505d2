"""A service with two analysts, on the wages of 545 people over eight years.

Starts `discreet serve` on this machine only, makes a token and a share for each analyst, and lets
both ask. The service then goes on, so that you can try it, until Ctrl-C or SIGTERM.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from demo import question, run, say, write_wages

import discreet as dp

# not run by the tests: it waits to be stopped; tests/service/test_demo.py runs it so
FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "demo-service")
SHARES = {"ana": 1, "ben": 0.5}
ASKED = ("in_union", "year", "occupation")


def main() -> None:
    """Declare a table, serve it, let two analysts ask, and wait."""
    for end in (signal.SIGINT, signal.SIGTERM):
        signal.signal(end, stop)
    make_folder()
    write_wages(FOLDER / "wages.parquet")
    say("An owner declares the table, and serves it to two analysts.")
    run(
        "declare wages.parquet --unit person --rows 8"
        " --bound wage=0..20 --key year=1980..1987 --key occupation=1..9 --epsilon 3",
        folder=FOLDER,
    )
    with served() as (owner, address):
        write_token("owner", owner)
        for name, share in SHARES.items():
            run(f"ledger grant wages.ledger {name} --epsilon {share}", folder=FOLDER)
            facts = {"name": name, "role": "analyst", "days": 1}
            made = dp.connect(address, owner).service.post("tokens", body=facts)
            write_token(name, made["token"])
        say("Both ask at the same time, each from a share of the one budget.")
        with ThreadPoolExecutor() as threads:
            list(threads.map(lambda name: ask(name, address), SHARES))
        run("budget wages", folder=FOLDER)
        say(f"The service listens on {address}")
        print(f"Its pages are at {address}: open it in a browser, and sign in with a token.")
        print(f"tokens: {', '.join(str(token_file(name)) for name in ('owner', *SHARES))}")
        print(f"declaration, ledger and logs: {FOLDER.resolve()}")
        print(f"$ discreet budget wages --at {address} --token-file {token_file('ana')}")
        print("Press Ctrl-C to stop.", flush=True)
        signal.pause()


def ask(name: str, address: str) -> None:
    """Ask three questions; the last one of ben is refused, since his share is spent."""
    wages = dp.connect(address, token_file(name).read_text())["wages"]
    for key in ASKED:
        try:
            answer = wages.question(question(key)).release(epsilon=0.25, request=f"by {key}")
        except dp.errors.BudgetExceeded as refusal:
            print(f"{name}, by {key}: {refusal}", flush=True)
        else:
            print(f"{name}, by {key}: {len(answer.rows())} groups", flush=True)


@contextmanager
def served() -> Iterator[tuple[str, str]]:
    """The owner's token and the address of a running service, which is stopped at the end."""
    command = ["serve", "discreet.toml", "--port", "0", "--deadline", "0.5"]
    with (FOLDER / "service.log").open("w") as log:
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "discreet", *command],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=FOLDER,
            start_new_session=True,  # Ctrl-C is for this script, which stops the service in order
        )
    assert process.stdout is not None
    try:
        lines = [process.stdout.readline().split() for _ in range(2)]
        if not all(lines):
            sys.exit((FOLDER / "service.log").read_text())
        yield lines[0][-1], lines[1][-1]
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
        print("stopped", flush=True)


def stop(*_: object) -> None:
    """End this script; the service is stopped on the way."""
    for end in (signal.SIGINT, signal.SIGTERM):
        signal.signal(end, signal.SIG_IGN)
    sys.exit(0)


def token_file(name: str) -> Path:
    """Where the token of this name lies."""
    return FOLDER.resolve() / f"{name}.token"


def write_token(name: str, token: str) -> None:
    """Write a token to a file that only this user can read."""
    path = os.open(token_file(name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(path, "w") as file:
        file.write(token)


def make_folder() -> None:
    """Make an empty folder: remove the files of an earlier demo, and nothing else."""
    FOLDER.mkdir(exist_ok=True)
    for pattern in ("discreet.*", "wages.*", "service.log", "*.token"):
        for left in FOLDER.glob(pattern):
            left.unlink()


if __name__ == "__main__":
    main()
