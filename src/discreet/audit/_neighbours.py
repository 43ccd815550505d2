"""Pairs of neighbours, as all audits take them."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from discreet.errors import InvalidArgument

T = TypeVar("T")


def checked_pairs(pairs: Iterable[Sequence[T]], example: str) -> list[tuple[T, T]]:
    """At least one pair; the example shows the form of the argument."""
    known: list[Any] = list(pairs) if isinstance(pairs, Iterable) else []  # Any: of any form
    if not known or not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in known):
        raise InvalidArgument(f"pairs: give a list of pairs of neighbours, as {example}")
    return [(one, other) for one, other in known]
