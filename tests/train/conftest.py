"""Without PyTorch nothing here runs but `test_torch`, which says how to get it."""

from importlib.util import find_spec
from pathlib import Path

collect_ignore: list[str] = []

if find_spec("torch"):
    import torch

    torch.set_num_threads(1)
else:
    names = {path.name for path in Path(__file__).parent.glob("*.py")}
    collect_ignore = sorted(names - {"conftest.py", "test_torch.py"})
