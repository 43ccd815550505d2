"""Closes modes of PyTorch's that losses enter and do not leave.

Modes are left in reverse order, whichever is meant: otherwise one of ours would stay open for good.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from torch.overrides import (
    TorchFunctionMode,
    _get_current_function_mode_stack,
    _pop_mode,
    _push_mode,
)
from torch.utils import _python_dispatch
from torch.utils._python_dispatch import TorchDispatchMode

from discreet.errors import Refused

_Stacks = tuple[list[TorchFunctionMode], list[TorchDispatchMode]]


@contextmanager
def unchanged_modes() -> Iterator[None]:
    """Refuse code that enters a mode without leaving it, or leaves one of others; restore them."""
    before = _now()
    try:
        yield
    finally:
        is_changed = _now() != before
        if is_changed:
            _restore(before)
    if is_changed:
        raise Refused(
            "the model or its losses entered a mode of PyTorch's that they did not leave; use it "
            "in a with statement"
        )


def _now() -> _Stacks:
    return (
        _get_current_function_mode_stack(),  # type: ignore[no-untyped-call]  # PyTorch has no types
        _python_dispatch._get_current_dispatch_mode_stack(),  # noqa: SLF001  has no public name
    )


def _restore(before: _Stacks) -> None:
    functions, dispatched = _now()
    for _ in functions:
        _pop_mode()  # type: ignore[no-untyped-call]  # as above
    for mode in before[0]:
        _push_mode(mode)  # type: ignore[no-untyped-call]  # as above
    for _ in dispatched:
        _python_dispatch._pop_mode()  # noqa: SLF001  as above
    for each in before[1]:
        _python_dispatch._push_mode(each)  # noqa: SLF001  as above
