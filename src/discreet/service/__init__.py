"""The service: analysts ask over HTTP, and one ceiling holds over all of them.

To read the files in order:

1. `_storage`: the service's own database; `_tokens`: who calls, in which role; `_answers`: the
   bytes of each paid answer, by request id
2. `_confinement`: barriers around a process that reads rows; `_linux`: their system calls
"""

__all__: list[str] = []
