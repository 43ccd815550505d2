"""The command `discreet`, started from a process that has loaded everything it needs.

Loading takes a second of CPU for each command. `command()` gives a program that behaves as
`discreet` does: `_client` hands its arguments, folder, environment and open files to a server
(`_server`), which forks; the fork runs the command. Starts that are themselves tested, such as a
terminal's encoding, need the real one.

`WarmProcess` runs Python code in such a fork, which can be killed as any process can.
"""

import array
import atexit
import marshal
import os
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from threading import Timer
from types import TracebackType
from typing import Self

HERE = Path(__file__).parent


@cache
def command() -> str:
    """The program's path."""
    program = address().with_name("discreet")
    client = (HERE / "_client.py").read_text()
    program.write_text(f"#!{sys.executable} -ISE\n{client}\n\nmain({str(address())!r})\n")
    program.chmod(0o700)
    return str(program)


@cache
def address() -> Path:
    """The server's socket. The server ends with this process."""
    folder = tempfile.TemporaryDirectory(prefix="warm-")
    found = Path(folder.name, "socket")
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.warm._server", found],
        cwd=HERE.parents[1],
        stdin=subprocess.PIPE,  # it ends when this is closed
        stdout=subprocess.PIPE,
    )
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"

    def end() -> None:
        server.communicate()
        folder.cleanup()

    atexit.register(end)
    return found


class WarmProcess:
    """A process that runs Python code; it is used as `subprocess.Popen` is."""

    def __init__(self, code: str, *arguments: str) -> None:
        inputs, outputs, errors = os.pipe(), os.pipe(), os.pipe()
        self.stdin, self.stdout, self.stderr = (
            os.fdopen(inputs[1], "w"),
            os.fdopen(outputs[0]),
            os.fdopen(errors[0]),
        )
        self.returncode: int | None = None
        self._server = socket.socket(socket.AF_UNIX)
        self._server.connect(str(address()))
        theirs = inputs[0], outputs[1], errors[1]
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", theirs))
        self._server.sendmsg([b"-"], [rights])
        for file in theirs:
            os.close(file)
        self._server.sendall(marshal.dumps((str(Path.cwd()), arguments, dict(os.environ), code)))
        self._server.shutdown(socket.SHUT_WR)
        self.pid = self._number()

    def _number(self) -> int:
        found = self._server.recv(8, socket.MSG_WAITALL)
        assert len(found) == 8, "the warm server ended"
        return int.from_bytes(found)

    def send_signal(self, number: int) -> None:
        """Send it this signal, unless its end is known."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def wait(self) -> int:
        """Its status, once it has ended."""
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(self._number())
            self._server.close()
        return self.returncode

    def communicate(self, *, timeout: float) -> tuple[str, str]:
        """Its output and its errors, which are short; at the timeout it is killed."""
        late = Timer(timeout, self.send_signal, [signal.SIGKILL])
        late.start()
        with self:
            self.stdin.close()
            out, err = self.stdout.read(), self.stderr.read()
        late.cancel()
        return out, err

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for file in (self.stdin, self.stdout, self.stderr):
            file.close()
        self.wait()
