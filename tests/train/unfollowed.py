"""Reads values of data where nothing follows them, for tests of what else finds out."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def unfollowed(compute: Callable[[], T]) -> T:
    """The result of a function in another thread, which modes of PyTorch don't reach."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(compute).result()
