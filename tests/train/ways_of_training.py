"""Ways of training, each called with one setting: a plan, a model, data."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lightning.pytorch as pl
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState
from torch import Tensor, nn
from torch.utils.data import DataLoader, Subset, TensorDataset
from transformers import TrainingArguments

from discreet._unit import Unit
from discreet.noise import SecureBits
from discreet.train import (
    Collated,
    ExactGaussian,
    Trained,
    TrainingPlan,
    Units,
    fit,
    run,
)
from discreet.train.lightning import PrivateStrategy
from discreet.train.transformers import PrivateTrainer
from tests.bad_values import BadValue
from tests.mechanisms.kit import FakePayer
from tests.train.steps import data, linear, losses_of, sgd, short

Losses = Callable[[Any, Any], Any]


def losses(model: nn.Module, part: Any) -> BadValue:
    return losses_of(model)(part)


@dataclass(frozen=True)
class Setting:
    """A run, right unless something is changed."""

    model: Callable[[], nn.Module] = linear
    losses: Losses = losses
    optimizer: Callable[[nn.Module], Any] = sgd
    plan: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)  # name and by

    def made(self, **more: BadValue) -> TrainingPlan:
        return short(**{"steps": 2, **more, **self.plan})


# Ways of training


def by_fit(
    it: Setting, payer: FakePayer, folder: Path, given: Any = None, **more: BadValue
) -> None:
    changes = {key: more.pop(key) for key in ("noise", "unit", "records") if key in more}
    model, rows = it.model(), data() if given is None else given
    made, optimizer = it.made(**changes), it.optimizer(model)
    fit(model, optimizer, rows, made, losses=it.losses, payer=payer, **{**it.facts, **more})


def by_run(it: Setting, payer: FakePayer, folder: Path) -> None:
    model = it.model()
    optimizer = it.optimizer(model)
    of: BadValue = partial(it.losses, model) if callable(it.losses) else it.losses
    with run(model, optimizer, data(), it.made(), payer=payer, losses=of, **it.facts) as training:
        for ticket in training.batches():
            training.step(ticket)


def by_accelerate(it: Setting, payer: FakePayer, folder: Path) -> None:
    try:
        model = it.model()
        model, optimizer = Accelerator(cpu=True).prepare(model, it.optimizer(model))
        fit(model, optimizer, data(), it.made(), losses=it.losses, payer=payer, **it.facts)
    finally:
        AcceleratorState._reset_state(reset_partial_state=True)
        GradientState._reset_state()


class Module(pl.LightningModule):  # type: ignore[misc]  # without types
    def __init__(self, it: Setting) -> None:
        super().__init__()
        self.model, self.it = it.model(), it

    def training_step(self, batch: Any, place: int) -> BadValue:
        x, y = batch
        return self.it.losses(self.model, SimpleNamespace(x=x, y=y))

    def configure_optimizers(self) -> BadValue:
        return self.it.optimizer(self.model)


def by_lightning(it: Setting, payer: FakePayer, folder: Path) -> None:
    made = it.made()
    strategy = PrivateStrategy(made, payer=payer, **it.facts)
    trainer = pl.Trainer(
        strategy=strategy,
        max_steps=made.steps,
        max_epochs=-1,
        default_root_dir=folder,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
    )
    trainer.fit(Module(it), DataLoader(TensorDataset(*data().values()), batch_size=7))


def rows_as_items(rows: int = 60) -> list[dict[str, Any]]:
    given = data(rows)
    pairs = zip(given["x"].tolist(), given["y"].tolist(), strict=True)
    return [{"x": x, "y": y} for x, y in pairs]


def by_trainer(it: Setting, payer: FakePayer, folder: Path) -> None:
    def named(model: nn.Module, inputs: dict[str, Any]) -> BadValue:
        return it.losses(model, SimpleNamespace(**inputs))

    made, model = it.made(), it.model()
    PrivateTrainer(
        model=model,
        args=arguments(folder, made, remove_unused_columns=False),
        plan=made,
        payer=payer,
        losses=named if callable(it.losses) else it.losses,
        train_dataset=rows_as_items(),
        like=rows_as_items(4),
        optimizers=(it.optimizer(model), None),
        **it.facts,
    ).train()


def arguments(folder: Path, made: TrainingPlan, **changes: BadValue) -> TrainingArguments:
    return TrainingArguments(
        output_dir=str(folder),
        max_steps=made.steps,
        max_grad_norm=0,
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
        save_strategy="no",
        lr_scheduler_type="constant",
        per_device_train_batch_size=8,
        **changes,
    )


class Items:
    """Read only once they are paid for."""

    def __init__(self, payer: FakePayer) -> None:
        self.payer, self.inner = payer, data()

    def __len__(self) -> int:
        return 60

    def __getitem__(self, place: int) -> tuple[Tensor, Tensor]:
        assert self.payer.events
        return self.inner["x"][place], self.inner["y"][place]


def of_pairs(it: Setting) -> Setting:
    def named(model: nn.Module, part: Any) -> BadValue:
        return it.losses(model, SimpleNamespace(x=part[0], y=part[1]))

    return Setting(it.model, named if callable(it.losses) else it.losses, it.optimizer, it.plan)


def pairs(rows: int) -> list[tuple[Tensor, Tensor]]:
    return [*zip(*data(rows).values(), strict=True)]


PERSONS = {"unit": Unit("person"), "records": 20}
IDS = [row % 20 for row in range(60)]


def of_persons(given: Any, **more: BadValue) -> Units:
    return Units(given, **{"ids": IDS, "column": "person", "most": 3, **more})


def by_persons(it: Setting, payer: FakePayer, folder: Path) -> None:
    by_fit(it, payer, folder, of_persons(data()), **PERSONS)


def by_items(it: Setting, payer: FakePayer, folder: Path) -> None:
    by_fit(of_pairs(it), payer, folder, Items(payer), like=pairs(5), **it.facts)


def by_collated(it: Setting, payer: FakePayer, folder: Path) -> None:
    given = Collated(Items(payer), torch.utils.data.default_collate)
    by_fit(of_pairs(it), payer, folder, of_persons(given), like=pairs(5), **PERSONS, **it.facts)


def by_subset(it: Setting, payer: FakePayer, folder: Path) -> None:
    given = Subset(TensorDataset(*data(80).values()), range(60))
    by_fit(of_pairs(it), payer, folder, given, **it.facts)


def by_arrays(it: Setting, payer: FakePayer, folder: Path) -> None:
    by_fit(it, payer, folder, {name: each.numpy() for name, each in data().items()})


def kept(it: Setting, payer: FakePayer, folder: Path) -> None:
    by_fit(it, payer, folder, keep=folder / "run.pt")


def exactly(it: Setting, payer: FakePayer, folder: Path) -> None:
    by_fit(it, payer, folder, noise=ExactGaussian(10))


def exactly_by_person(it: Setting, payer: FakePayer, folder: Path) -> None:
    by_fit(it, payer, folder, of_persons(data()), noise=ExactGaussian(10), **PERSONS)


def by_tuning(it: Setting, payer: FakePayer, folder: Path, **changes: BadValue) -> None:
    def start() -> tuple[nn.Module, Any]:
        model = it.model()
        return model, it.optimizer(model)

    made = it.made(**changes)
    given: BadValue = data()
    like: BadValue = data(5)
    if "unit" in changes:
        given, like = of_persons(given), Units(like, IDS[:5], "person", 3)
    candidate: BadValue = Trained(made, start, lambda value: value, it.losses, like)
    payer.charge(made.privacy_loss, purpose="tuning", by="owner")
    candidate.sample(given, SecureBits())


def by_tuning_of_persons(it: Setting, payer: FakePayer, folder: Path) -> None:
    by_tuning(it, payer, folder, **PERSONS)


def by_exact_tuning(it: Setting, payer: FakePayer, folder: Path) -> None:
    by_tuning(it, payer, folder, noise=ExactGaussian(10))


WAYS: dict[str, Callable[[Setting, FakePayer, Path], None]] = {
    "fit": by_fit,
    "fit, kept": kept,
    "fit, arrays": by_arrays,
    "fit, persons": by_persons,
    "fit, items": by_items,
    "fit, subset": by_subset,
    "fit, collated persons": by_collated,
    "fit, exact noise": exactly,
    "fit, exact noise, persons": exactly_by_person,
    "run": by_run,
    "tuning": by_tuning,
    "tuning, persons": by_tuning_of_persons,
    "tuning, exact noise": by_exact_tuning,
    "accelerate": by_accelerate,
    "lightning": by_lightning,
    "transformers": by_trainer,
}
