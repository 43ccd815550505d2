"""Loads the command and all that questions need, and forks for each client."""

import marshal
import os
import select
import signal
import socket
import sys
import traceback

import discreet.cli
import discreet.ledger
import discreet.query


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
    """Be the client's command, to the end of the process."""
    code = 70
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _, files, _, _ = socket.recv_fds(client, 1, 3)
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        with client.makefile("rb") as sent:
            folder, arguments, environment = marshal.loads(sent.read())
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = ["discreet", *arguments]
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 - open until the end
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
        discreet.cli.main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001 - as Python shows it
        traceback.print_exc()
        code = 1
    finally:
        client.send(bytes([code]))
        os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1])
