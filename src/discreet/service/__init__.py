"""The service: analysts ask over HTTP, and one ceiling holds over all of them.

To read the files in order:

1. `_storage`: the service's own database; `_tokens`: who calls, in which role; `_answers`: the
   bytes of each paid answer, by request id
2. `_confinement`: barriers around a process that reads rows; `_linux`: their system calls
3. `_work_order`: a question for a worker; `_worker`: the confined process that answers it;
   `_results`: its answers as JSON; `_workers`: the processes, seen from their parent; `_payment`:
   their charges
"""

__all__: list[str] = []
