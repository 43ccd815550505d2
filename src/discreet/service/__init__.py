"""The service: analysts ask over HTTP, and one ceiling holds over all of them.

To read the files in order:

1. `_storage`: the service's own database, and `_group_commit`: its writes; `_tokens`: who calls,
   in which role; `_sessions`: browsers that signed in; `_answers`: the bytes of each paid answer,
   by request id
2. `_confinement`: barriers around a process that reads rows; `_linux`: their system calls;
   `_databases`: those that such a process reaches
3. `_work_order`: a question for a worker; `_worker`: the confined process that answers it;
   `_results`: its answers as JSON; `_memory`: how much memory it takes; `_worker_process`: its
   start; `_workers`: the processes, seen from their parent; `_slots`: who gets the next one;
   `_payment`: their charges; `_new_declarations`: new declarations, and the settings of a table
4. `_outside_charges`: charges for computations elsewhere; `_desk`: every request as a method,
   without HTTP
5. `_problems`: the closed list of problems; `_body`: strict JSON; `_pace`: deadlines and rates;
   `_waiting_room`: places; `_queue`: requests that are answered together
6. `_routes`: all requests; `_protocol`: limits of HTTP itself; `_safe_headers`: what browsers may
   do with responses; `_app`: the application; `_logs`: logs; `_server`: listens; `_body_bytes`:
   bytes of bodies
7. `pages`: the same requests for people, by a browser
8. `_transport`: one request of a client; `_remote_ledger`: a payer behind a service; `_client`:
   tables of a service that runs elsewhere; `_remote_selection`: questions to them in Python

All but the client needs ``pip install 'discreet[service]'``.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.service._client import (
        RemoteAnswer,
        RemoteQuestion,
        RemoteTable,
        RemoteTables,
        connect,
    )
    from discreet.service._remote_ledger import RemoteLedger
    from discreet.service._server import ListenAddress, serve

__all__ = [
    "ListenAddress",
    "RemoteAnswer",
    "RemoteLedger",
    "RemoteQuestion",
    "RemoteTable",
    "RemoteTables",
    "connect",
    "serve",
]

_LISTENING = ("ListenAddress", "serve")


def __getattr__(name: str) -> object:
    """A name whose file needs more libraries than the others, imported when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module 'discreet.service' has no attribute {name!r}")
    file = "_server" if name in _LISTENING else "_client"
    return getattr(import_module(f"discreet.service.{file}"), name)
