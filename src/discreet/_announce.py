"""Warns of answers that will tell nothing, before they are paid."""

import sys
import warnings
from collections.abc import Sequence

from discreet.errors import UselessAnswerWarning

_PACKAGE = "discreet."


def announce(texts: Sequence[str]) -> None:
    """Give these warnings of a forecast as one, at the line of the caller outside of this
    package."""
    if not texts:
        return
    level, frame = 1, sys._getframe()  # noqa: SLF001  # as warnings does it
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn("; ".join(texts), UselessAnswerWarning, stacklevel=level)
