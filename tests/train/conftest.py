"""Without torch these tests are skipped, and say how to get it."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

HOW = "torch is not here: make torch"


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Module | None:
    if find_spec("torch"):
        import torch

        torch.set_num_threads(1)
        return None
    skipped: pytest.Module = Skipped.from_parent(parent, path=module_path)
    return skipped


class Skipped(pytest.Module):
    """A test module that is not imported."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        pytest.skip(HOW, allow_module_level=True)
