"""What is not installed is not tested here; `test_torch` says how to get it."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

NEED = {
    "test_accuracy.py": ("sklearn",),
    "test_accelerate.py": ("accelerate", "transformers"),
    "test_lightning.py": ("lightning", "transformers"),
    "test_peft.py": ("peft", "transformers"),
    "test_transformers.py": ("transformers",),
}

collect_ignore: list[str] = []

if find_spec("torch"):
    import torch

    torch.set_num_threads(1)
    collect_ignore = sorted(
        name for name, guests in NEED.items() if not all(map(find_spec, guests))
    )
else:
    names = {path.name for path in Path(__file__).parent.glob("*.py")}
    collect_ignore = sorted(names - {"conftest.py", "test_torch.py"})


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """Runs of known bits; fills up with the places of each step's batch."""
    from discreet.mechanisms import Door
    from discreet.train.run import Batch, TrainingRun
    from tests.noise.fit import QuickBits

    made = classmethod(lambda _, payer: Door(payer, QuickBits(1), None))
    monkeypatch.setattr(Door, "secure", made)
    found: list[list[int]] = []
    plain = TrainingRun.batches

    def batches(self: TrainingRun) -> Iterator[Batch]:
        for batch in plain(self):
            found.append(self._places.tolist())
            yield batch

    monkeypatch.setattr(TrainingRun, "batches", batches)
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of a ledger that admits whatever runs charge."""
    from discreet.ledger import Ledger
    from discreet.payment import Limit
    from discreet.unit import Unit

    Ledger.create(tmp_path / "x.ledger", unit=Unit.ROW, limit=Limit(10**20, 0.5))
    return tmp_path / "x.ledger"
