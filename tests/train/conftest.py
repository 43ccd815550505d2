"""Training runs of known bits, and ledgers that admit them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """Runs of known bits; fills up with the places of each step's batch."""
    from discreet.mechanisms import Door
    from discreet.train._step_ticket import StepTicket
    from discreet.train._training_run import TrainingRun
    from tests.noise.fit import QuickBits

    made = classmethod(lambda _, payer: Door(payer, QuickBits(1), None))
    monkeypatch.setattr(Door, "secure", made)
    found: list[list[int]] = []
    plain = TrainingRun.batches

    def batches(self: TrainingRun) -> Iterator[StepTicket]:
        for batch in plain(self):
            found.append(self._places.tolist())
            yield batch

    monkeypatch.setattr(TrainingRun, "batches", batches)
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of a ledger that admits whatever runs charge."""
    from discreet._budget import Limit
    from discreet._unit import Unit
    from discreet.ledger import Ledger

    Ledger.create(tmp_path / "x.ledger", unit=Unit.ROW, limit=Limit(10**20, 0.5))
    return tmp_path / "x.ledger"
