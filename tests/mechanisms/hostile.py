"""Objects whose own code fails whenever it is looked at."""

from typing import Any, NoReturn

Anything = Any  # Any: it pretends to be whatever is asked for


class Hostile:
    """Raises at every question but its hash, which it needs to be a key."""

    def _fails(self, *_: object) -> NoReturn:
        raise RuntimeError("77 is private")

    __class__: Anything = property(_fails)
    __float__ = __int__ = __index__ = __complex__ = __str__ = __repr__ = __bool__ = _fails
    __iter__ = __len__ = __gt__ = __lt__ = __getattr__ = _fails
    __array__ = None

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return 1


class HostileNumber(float):
    """A float that raises once it is converted."""

    def __float__(self) -> float:
        raise RuntimeError("77 is private")


class Exit(int):
    """An integer that ends the process."""

    def __float__(self) -> float:
        raise SystemExit(77)
