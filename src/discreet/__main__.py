"""The program ``discreet``, also by ``python -m discreet``: the command line, with less to load.

Three libraries load far more than a command needs, a fifth of the time of a short question:

- Arrow loads pandas to see whether a list is a column of pandas. Here pandas can be found, as
  PyTorch wants, and cannot be imported; Arrow then works without it.
- Ibis' package of compilers imports the compilers of all databases. Here that package is empty,
  and finds each compiler in its folder when it is named.
- SciPy imports all of NumPy, which has a compiler of Fortran. Here that package is empty.

Our own dataclasses compile their methods when these are called (`_late_methods`).
"""

import atexit
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType

from discreet._late_methods import compile_when_called

_COMPILERS = "ibis.backends.sql.compilers"
_FORTRAN = "numpy.f2py"


class _Refusal(Loader):
    """A loader of what the command works without."""

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Refuse the import as if the module were not installed."""
        raise ModuleNotFoundError(f"the command discreet works without {spec.name}", name=spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: no module is made. Python takes a loader without this method for an old one."""


class _LessToLoad:
    """A finder of modules, asked before the others."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, _target: object = None
    ) -> ModuleSpec | None:
        """Empty packages of compilers, and no pandas; None for other modules."""
        if name == "pandas":
            return ModuleSpec(name, _Refusal())
        if name not in (_COMPILERS, _FORTRAN) or path is None:
            return None
        package = ModuleSpec(name, None, is_package=True)
        if name == _COMPILERS:
            package.submodule_search_locations = [f"{folder}/compilers" for folder in path]
        return package


def main() -> None:
    """Run the command line in a process that is its own."""
    status = _Status(os.getpid())
    atexit.register(status.leave)
    if sys.argv[1:2] != ["audit"]:  # it imports a user's modules, which may need anything
        sys.meta_path.insert(0, _LessToLoad)
        compile_when_called("discreet")
    from discreet.cli import main as command

    try:
        command()
    except SystemExit as ending:
        status.code = ending.code
        raise


@dataclass(slots=True)
class _Status:
    """How a command ends, in the process of this number. ``code`` is not a number if Python has to
    end it, as after an error."""

    process: int
    code: object = ""

    def leave(self) -> None:
        """End without freeing each object and module, which takes a third of the time of a short
        question. It was registered first, so all else that runs at the end has run."""
        if isinstance(self.code, int) and os.getpid() == self.process:
            with suppress(OSError, ValueError):  # Python tells them
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(self.code)


if __name__ == "__main__":
    main()
