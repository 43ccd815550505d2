"""The command `discreet`, started from a process that has loaded everything it needs.

Loading takes a second of CPU for each command. `command()` gives a program that behaves as
`discreet` does: `_client` hands its arguments, folder, environment and open files to a server
(`_server`), which forks; the fork runs the command. Starts that are themselves tested, such as a
terminal's encoding, need the real one.
"""

import atexit
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent


@cache
def command() -> str:
    """The program's path. The server ends with this process."""
    folder = tempfile.TemporaryDirectory(prefix="warm-")
    program, address = Path(folder.name, "discreet"), Path(folder.name, "socket")
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.warm._server", address],
        cwd=HERE.parents[1],
        stdin=subprocess.PIPE,  # it ends when this is closed
        stdout=subprocess.PIPE,
    )
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    client = (HERE / "_client.py").read_text()
    program.write_text(f"#!{sys.executable} -ISE\n{client}\n\nmain({str(address)!r})\n")
    program.chmod(0o700)

    def end() -> None:
        server.communicate()
        folder.cleanup()

    atexit.register(end)
    return str(program)
