"""Loads the command and all that questions and ledgers need, and forks for each client."""

import marshal
import os
import select
import signal
import socket
import sys
import threading
import traceback
from contextlib import suppress
from importlib import import_module

import discreet.cli
import discreet.ledger
import discreet.query

with suppress(ImportError):
    import_module("sqlalchemy.dialects.postgresql.psycopg")
    import_module("psycopg")


def main(address: str) -> None:
    """Serve until stdin is closed."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        print("ready", flush=True)
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            client, _ = listener.accept()
            with client:
                if os.fork() == 0:
                    listener.close()
                    serve(client)


def serve(client: socket.socket) -> None:
    """Be the client's command, or wait for its code, to the end of the process."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, files, _, _ = socket.recv_fds(client, 1, 3)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    with client.makefile("rb") as sent:
        folder, arguments, environment, code = marshal.loads(sent.read())
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - open until the end
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    if code is None:
        sys.argv = ["discreet", *arguments]
        client.send(bytes([run(None)]))
        os._exit(0)
    child = os.fork()
    if child == 0:
        client.close()
        sys.argv = ["-c", *arguments]
        os._exit(run(code))
    for number in range(3):
        os.close(number)  # so that they end with the child
    client.sendall(child.to_bytes(8))
    client.sendall(os.waitpid(child, 0)[1].to_bytes(8))
    os._exit(0)


def run(code: str | None) -> int:
    """Run the code, or the command; returns the exit status."""
    status = 0
    try:
        if code is None:
            discreet.cli.main()
        else:
            exec(compile(code, "<code>", "exec"), {"__name__": "__main__"})
            threading._shutdown()  # type: ignore[attr-defined]  # as at an exit
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 - as Python shows it
        traceback.print_exc()
        status = 1
    with suppress(OSError):  # nobody reads it any more
        sys.stdout.flush()
    return status


if __name__ == "__main__":
    main(sys.argv[1])
