"""Methods of dataclasses, compiled when they are first called.

The package has about 470 dataclasses. Python writes and compiles five methods or so for each when
it is imported. One question calls few of them, and the rest are a seventh of its time.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

_MAKER = "_create_fn"  # of Python 3.11 and 3.12; later ones compile a class's methods together

Method = Callable[..., Any]  # Any: a method of any class


def compile_when_called(package: str) -> None:
    """From now on, compile the methods of new dataclasses of this package at their first call.

    Such a method looks like any other, but `inspect.signature` does not know its arguments.
    """
    make = getattr(dataclasses, _MAKER, None)
    if make is not None:
        setattr(dataclasses, _MAKER, _maker(make, package))


def _maker(make: Callable[..., Method], package: str) -> Callable[..., Method]:
    def make_later(name: str, args: Sequence[str], body: Sequence[str], **options: Any) -> Method:
        module = (options.get("globals") or {}).get("__name__", "")
        if module.partition(".")[0] != package:
            return make(name, args, body, **options)
        return _later(name, lambda: make(name, args, body, **options))

    return make_later


def _later(name: str, compiled: Callable[[], Method]) -> Method:
    """A method that compiles itself, and gives its place in its class to the compiled one."""
    method: Method | None = None

    def first(self: object, /, *args: Any, **named: Any) -> Any:
        nonlocal method
        if method is None:
            method = compiled()
            method.__qualname__ = first.__qualname__
            for owner in type(self).__mro__:
                if owner.__dict__.get(name) is first:
                    setattr(owner, name, method)
        return method(self, *args, **named)

    first.__name__ = name
    return first
