"""Training steps by discreet, and the same without privacy."""

import torch

from benchmarks.train_models import MODELS, Task
from benchmarks.train_private import private_step
from benchmarks.train_steps import Step, peak_bytes, plain_step, timed
from benchmarks.worker import serve


def all_steps() -> dict[str, tuple[Task, Step]]:
    """Plain and private ones of every model."""
    found = {}
    for name, make in MODELS.items():
        task = make()
        found[f"{name}-plain"] = task, plain_step(task)
        found[f"{name}-private"] = task, private_step(task)
    return found


torch.set_num_threads(1)
STEPS = all_steps()
serve(timed(STEPS), figures=peak_bytes(STEPS))
