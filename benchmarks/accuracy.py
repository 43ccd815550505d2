"""The accuracy of privately trained models: ``python -m benchmarks.accuracy``.

Logistic regression on two data sets of scikit-learn, at delta 1e-5, beside Opacus, whose figures
are stored (`benchmarks.figures.accuracy`). Both run the same steps of DP-SGD and choose settings by
the same sweep (`benchmarks.accuracy_sweep`). The privacy cost of the sweep is counted for neither.
So differences come from the noise that each accountant requires, and from chance, which the
standard error measures.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import cache, partial
from math import hypot
from multiprocessing import get_context
from statistics import fmean

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from benchmarks.accuracy_data import DATA, Split, split
from benchmarks.accuracy_sweep import (
    DELTA,
    EPSILONS,
    STEPS,
    Accuracies,
    Run,
    Setting,
    SweepResult,
    batch,
    sweep,
)
from benchmarks.figures.accuracy import stored
from benchmarks.rounds import progress
from benchmarks.tables import show, table
from discreet._budget import Receipt, Request
from discreet.accounting import PrivacyLoss
from discreet.mechanisms import Door
from discreet.train import TrainingPlan, plan
from discreet.train._batches._collated import Microbatch
from discreet.train._run import run_through
from discreet.train._training_run import TrainingRun

GOALS = {"digits": (0.876, 0.928, 0.950), "breast cancer": (0.965, 0.968, 0.975)}
PROCESSES, AT_ONCE = 2, 10


class Unrecorded:
    """A payer that accepts every charge: durable ledgers have benchmarks of their own."""

    def charge(
        self,
        loss: PrivacyLoss,  # noqa: ARG002  # a payer's, as are all names here
        *,
        purpose: str,
        by: str,
        request: Request | None = None,  # noqa: ARG002
        is_insecure: bool = False,
        statement: str | None = None,  # noqa: ARG002
    ) -> Receipt:
        """Return a receipt without recording the charge."""
        return Receipt(1, "0" * 64, datetime.now(UTC), purpose, by, None, is_insecure)

    def keep(self, receipt: Receipt, answer: str) -> None:
        """Store nothing."""

    def lock(self, receipt: Receipt) -> None:
        """Lock nothing."""


def main() -> None:
    """Print all accuracies, and on the last line the least lead over a goal and the mean lead over
    Opacus."""
    columns = "Opacus", "discreet", "lead", "its error", "goal", "met"
    made = table("accuracy", "epsilon", *columns)
    over_goals, leads = [], []
    for name, epsilon, found in figures():
        peer, goal = stored(name, epsilon), goal_of(name, epsilon)
        lead, error = found.over(peer)
        over_goals.append(found.share - goal)
        leads.append((lead, error))
        shares = (f"{peer.share:.4f}", f"{found.share:.4f}", f"{lead:+.4f}", f"{error:.4f}")
        made.add_row(
            name, f"{epsilon}", *shares, f"{goal:.3f}", "yes" if found.share >= goal else "NO"
        )
    show(made)
    lead, error = mean_of(leads)
    print(f"accuracy: least lead over a goal = {min(over_goals):+.4f}, ", end="")
    print(f"mean lead over Opacus = {lead:+.4f}, its error = {error:.4f}")


def mean_of(leads: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The mean of leads with standard errors, and its standard error."""
    each, errors = zip(*leads, strict=True)
    return fmean(each), hypot(*errors) / len(leads)


def figures() -> Iterator[tuple[str, float, SweepResult]]:
    """The result of the sweep for every data set and epsilon."""
    rows = [(name, epsilon) for name in DATA for epsilon in EPSILONS]
    new = get_context("spawn")  # processes that don't inherit our threads
    with ProcessPoolExecutor(PROCESSES, new) as processes, progress() as bar:
        for name, epsilon in bar.track(rows, description="accuracy"):
            yield name, epsilon, sweep(name, partial(train, processes, name, epsilon))


def train(
    processes: Executor, name: str, epsilon: float, runs: Sequence[Run]
) -> Iterable[Accuracies]:
    """The accuracies of each model."""
    return processes.map(partial(fitted, name, epsilon), runs, chunksize=AT_ONCE)


def goal_of(name: str, epsilon: float) -> float:
    """The accuracy to reach."""
    return GOALS[name][EPSILONS.index(epsilon)]


def fitted(name: str, epsilon: float, run: Run, door: Door | None = None) -> Accuracies:
    """The accuracies of a model trained privately, through the given door or a secure one."""
    torch.set_num_threads(1)
    given = split(name, run.seed)
    model = nn.Linear(given.x.shape[1], given.classes)
    for parameter in model.parameters():
        nn.init.zeros_(parameter)
    mean = AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=run.setting.rate)
    made, through = planned(len(given.x), run.setting, epsilon), door or Door.secure(Unrecorded())

    def losses(part: Microbatch) -> Tensor:
        return nn.functional.cross_entropy(model(part.x), part.y, reduction="none")

    opened = run_through(through, model, optimizer, tensors(given), made, losses=losses)
    for step, _ in enumerate(steps(opened)):
        if 2 * step >= STEPS:
            mean.update_parameters(model)
    return Accuracies(right(model, given), right(mean, given))


def planned(records: int, setting: Setting, epsilon: float) -> TrainingPlan:
    """The plan with the least noise for this epsilon."""
    return plan(
        multiplier=multiplier(records, epsilon),
        delta=DELTA,
        records=records,
        batch=batch(records),
        steps=STEPS,
        clip=setting.clip,
    )


@cache
def multiplier(records: int, epsilon: float) -> float:
    """The least noise, computed once for all settings."""
    size = batch(records)
    made = plan(epsilon=epsilon, delta=DELTA, records=records, batch=size, steps=STEPS)
    return float(made.phases[0].multiplier)


def tensors(given: Split) -> tuple[Tensor, Tensor]:
    """The training examples."""
    return torch.tensor(given.x, dtype=torch.float32), torch.tensor(given.y)


def steps(opened: AbstractContextManager[TrainingRun]) -> Iterator[None]:
    """Run each private step, and yield after it."""
    with opened as training:
        for turn in training.batches():
            training.step(turn)
            yield


def right(model: nn.Module, given: Split) -> float:
    """The share of correct predictions on the test examples."""
    with torch.no_grad():
        found = model(torch.tensor(given.test_x, dtype=torch.float32)).argmax(1)
    return float((found == torch.tensor(given.test_y)).double().mean())


if __name__ == "__main__":
    main()
