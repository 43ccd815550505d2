"""Hands a command's arguments, folder, environment and open files to the server."""

import array
import marshal
import os
import socket
import sys


def main(address: str) -> None:
    """End as the command that the server runs."""
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(address)
        files = array.array("i", [0, 1, 2])
        server.sendmsg([b"-"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
        folder = os.getcwd()  # noqa: PTH109 - pathlib takes longer to load than all of this
        server.sendall(marshal.dumps((folder, sys.argv[1:], dict(os.environ), None)))
        server.shutdown(socket.SHUT_WR)
        code = server.recv(1)
    os._exit(code[0] if code else 70)
