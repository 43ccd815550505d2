"""Steps of paid runs of an MLP, 784-256-256-10, on 800 rows: of 800 units, or of 200."""

from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor

import discreet as dp
from benchmarks.train_models import mlp
from benchmarks.worker import Case, serve

ROWS, EACH = 800, 4
TABLE = {"x": torch.randn(ROWS, 784), "y": torch.randint(10, (ROWS,))}
PERSONS = dp.train.Units(TABLE, np.arange(ROWS) // EACH, column="person", most=EACH)
EXACT = dp.train.ExactGaussian(16)


def steps(runs: ExitStack, given: Any, units: int, **more: Any) -> Case:  # Any: arguments of plans
    """A run whose steps all contain all units."""
    facts = {"multiplier": 1, "delta": 1e-5, "records": units, "batch": units, "steps": 10_000}
    plan, model = dp.train.plan(**{**facts, **more}), mlp().model
    ledger = dp.Ledger.in_memory(unit=plan.unit, limit=dp.Limit(epsilon=10**20, delta=0.5))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

    def losses(part: Any) -> Tensor:  # Any: a named tuple of the table's columns
        return F.cross_entropy(model(part.x), part.y, reduction="none")

    opened = dp.train.run(model, optimizer, given, plan, losses=losses, payer=ledger)
    run = runs.enter_context(opened)
    batches = run.batches()
    return units, lambda: run.step(next(batches))


torch.set_num_threads(1)
with ExitStack() as runs:
    of_rows = partial(steps, runs, TABLE, ROWS)
    of_persons = partial(steps, runs, PERSONS, ROWS // EACH, unit=dp.Unit("person"))
    serve(
        {
            "rows": of_rows(),
            "persons": of_persons(),
            "rows-exact": of_rows(noise=EXACT),
            "persons-exact": of_persons(noise=EXACT),
        }
    )
