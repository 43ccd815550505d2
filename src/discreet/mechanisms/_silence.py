"""No warnings during private computations: a warning, or its text, may reveal data."""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

_here = threading.local()


class _IfSilent(type):
    """Makes every warning a subclass of `_AnyWarning`, in silent threads."""

    def __subclasscheck__(cls, other: type) -> bool:
        return getattr(_here, "is_silent", False)


class _AnyWarning(Warning, metaclass=_IfSilent):
    """The class in the warnings filter, against which Python checks each warning."""


@contextmanager
def silent() -> Iterator[None]:
    """Ignore all warnings of this thread inside the block, those of NumPy's arithmetic too, even if
    other filters show, log or raise them.

    `warnings.catch_warnings` would act on all threads, and undo filters that others set meanwhile.
    The filter set here stays in place, and has no effect in threads that aren't silent.
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
