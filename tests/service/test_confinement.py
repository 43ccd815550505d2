"""A confined process can read its own file, and do nothing else to the world."""

import json
import os
import platform
import pwd
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.service import kit

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="barriers of Linux"
)

# Each gives its result, or raises OSError.
FREE = {
    "read the rows": "open(rows).read()",
    "write a temporary file": "open(f'{folder}/spill', 'w').write('x')",
    "start a thread": "(lambda t: (t.start(), t.join()))(threading.Thread(target=print))",
    "import a library": "__import__('wave')",
    "write to an open pipe": "sys.stdout.flush()",
}
FORBIDDEN = {
    "network": [
        "socket.create_connection(('127.0.0.1', port), timeout=2)",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))",
        "socket.socket(socket.AF_UNIX)",
        "socket.socketpair()",
    ],
    "files": [
        "open(secret).read()",
        "open(f'{folder}/../secret').read()",
        "os.listdir(os.path.dirname(secret))",
        "open(f'/proc/{os.getppid()}/mem', 'rb')",
        "open(f'/proc/{os.getppid()}/environ').read()",
        "open('/etc/shadow').read()",
        "os.listdir('/dev')",
        "open(rows, 'a')",
        "open('/tmp/left-behind', 'w')",
        "os.unlink(rows)",
        "os.symlink(secret, '/tmp/left-behind')",
    ],
    "owners, modes and attributes": [
        "os.chmod(secret, 0o666)",
        "os.chmod(rows, 0o666)",
        "os.chown(secret, 1, 1)",
        "os.utime(rows)",
        "os.setxattr(rows, 'user.left', b'behind')",
        "os.fchmod(0, 0o600)",
    ],
    "programs": [
        "os.execv('/bin/true', ['true'])",
        "os.posix_spawn('/bin/true', ['true'], {})",
    ],
    "other processes": [
        "os.kill(os.getppid(), 0)",
        "os.pidfd_open(os.getppid())",
        "os.fork()",
        "resource.prlimit(os.getppid(), resource.RLIMIT_FSIZE, (0, 0))",
        "call(234, os.getppid(), os.getppid(), 0)",
        "fcntl.fcntl(0, 8, os.getppid())",
        "fcntl.ioctl(0, 0x8901, os.getppid().to_bytes(4, 'little'))",
        "call(29, 0, 4096, 0o1666)",
        "call(240, b'/left-behind', 0o102, 0o600, 0)",
        "os.unshare(os.CLONE_NEWUSER)" if hasattr(os, "unshare") else "os.kill(os.getppid(), 0)",
    ],
    "rights": ["os.setuid(0) or os.chown(rows, 1, 1)", "os.chroot(folder)", "os.nice(-5)"],
}

CHILD = """
import ctypes, fcntl, json, os, resource, socket, sys, threading
from pathlib import Path
from discreet.service._confinement import confine
rows, secret, folder, port, tries = json.loads(sys.argv[1])
if tries["confined"]:
    barriers = confine([Path(rows)], Path(folder), 1 << 34)
else:
    barriers = ()
def call(number, *given):
    if ctypes.CDLL(None, use_errno=True).syscall(number, *given) < 0:
        raise OSError(ctypes.get_errno(), "refused")
def outcome(code):
    try:
        eval(code)
    except OSError as error:
        return type(error).__name__
    return "done"
found = {code: outcome(code) for code in tries["codes"]}
print("\\n" + json.dumps([[b.name for b in barriers if not b.is_up], found]))
"""


def tried(
    tmp_path: Path, codes: list[str], *, confined: bool = True
) -> tuple[list[str], dict[str, str]]:
    """The barriers that are missing, and the outcome of each line in a confined process."""
    rows, secret, folder = tmp_path / "rows", tmp_path / "secret", tmp_path / "folder"
    folder.mkdir()
    for path in (rows, secret):
        path.write_text("private")
    asked = [*map(str, (rows, secret, folder)), 9, {"codes": codes, "confined": confined}]
    with rows.open() as own:  # never the terminal or /dev/null, whose mode a try would change
        done = subprocess.run(
            [sys.executable, "-c", CHILD, json.dumps(asked)],
            stdin=own,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    assert done.returncode == 0, done.stderr
    missing, found = json.loads(done.stdout.splitlines()[-1])
    return missing, found


def test_a_confined_process_can_read_its_rows_and_nothing_else(tmp_path: Path) -> None:
    forbidden = [code for codes in FORBIDDEN.values() for code in codes]
    missing, found = tried(tmp_path, [*FREE.values(), *forbidden])
    kit.needs_barriers(missing)
    assert {code: found[code] for code in FREE.values()} == dict.fromkeys(FREE.values(), "done")
    assert [code for code in forbidden if found[code] == "done"] == []


AS_NOBODY = """
import os, sys
from pathlib import Path
from discreet.service import _confinement
_confinement._is_open_to_all = lambda path: True
_confinement._python = lambda: []
folder = Path(sys.argv[1])
barriers = _confinement.confine([], folder, 1 << 34)
(folder / "spill").write_text("x")
tries = []
for way in (lambda: os.setuid(0), lambda: os.setresgid(0, 0, 0), lambda: os.setgroups([0])):
    try:
        way()
    except OSError:
        tries.append("refused")
print([one for one in barriers if not one.is_up], os.getresuid(), os.getgroups(), tries)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_root_becomes_nobody_for_good_if_all_can_read_the_rows() -> None:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own belong to root alone
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, folder],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    assert done.returncode == 0, done.stderr
    nobody = pwd.getpwnam("nobody").pw_uid
    assert done.stdout.strip() == f"[] {(nobody,) * 3} [] {['refused'] * 3}"


def test_without_barriers_the_same_process_can(tmp_path: Path) -> None:
    """So the test above can fail."""
    able = ["open(secret).read()", "socket.socketpair()", "os.kill(os.getppid(), 0)"]
    assert set(tried(tmp_path, able, confined=False)[1].values()) == {"done"}
