"""Whether there is a PyTorch for the tests beside this one."""

import pytest


def test_torch_is_here() -> None:
    pytest.importorskip("torch", reason="PyTorch is not here: make torch")
