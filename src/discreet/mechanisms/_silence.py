"""No warning while private data is looked at: that there is one may tell of it, and its text."""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

_here = threading.local()


class _IfSilent(type):
    """The metaclass of a warning that all warnings are, in threads that are silent."""

    def __subclasscheck__(cls, other: type) -> bool:
        return getattr(_here, "is_silent", False)


class _AnyWarning(Warning, metaclass=_IfSilent):
    """Python asks for each warning whether it is one of these."""


@contextmanager
def silent() -> Iterator[None]:
    """Ignore all warnings of this thread inside the block, those of NumPy's arithmetic too,
    whatever else is asked of them: to be shown, logged or raised as errors.

    `warnings.catch_warnings` would do so for all threads, and undo what others ask for meanwhile.
    The filter for it stays in place and says nothing to threads that aren't silent.
    """
    before = getattr(_here, "is_silent", False)
    if not warnings.filters or warnings.filters[0][2] is not _AnyWarning:
        warnings.simplefilter("ignore", _AnyWarning)
    _here.is_silent = True
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        _here.is_silent = before
