"""The real Lightning trains privately: the plan's steps, and hooks, schedules and checkpoints."""

from array import array
from collections import ChainMap, UserDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lightning.pytorch as pl
import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from lightning.pytorch import callbacks
from lightning.pytorch.loops.loop import _Loop
from lightning.pytorch.utilities import rank_zero_only
from torch import Tensor, nn
from torch.utils.data import (
    DataLoader,
    IterableDataset,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
)
from torchmetrics import MeanMetric

from discreet._unit import Unit
from discreet.errors import InvalidArgument, Refused
from discreet.ledger import Kind, Ledger
from discreet.train import TrainingPlan, Units
from discreet.train.lightning import SAVED, PrivateStrategy
from tests.bad_values import BadValue
from tests.mechanisms.kit import FakePayer
from tests.train.steps import data, short
from tests.train.third_party_models import by_hand, close, moved, weights

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec.*"),
    pytest.mark.filterwarnings("ignore:.*deprecated.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Checkpoint directory .* exists"),
    pytest.mark.filterwarnings("ignore:The .* does not have many workers"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.*"),
]


SEEN: list[int] = []  # how many examples come together


class Logistic(pl.LightningModule):  # type: ignore[misc]  # without types
    """A logistic regression as people write it, but for the reduction."""

    def __init__(self, rate: float = 1.0) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        self.rate = rate

    def training_step(self, batch: Any, place: int) -> BadValue:
        x, y = batch
        SEEN.append(len(x))
        return F.binary_cross_entropy_with_logits(self.layers(x)[:, 0], y, reduction="none")

    def configure_optimizers(self) -> BadValue:
        optimizer = torch.optim.SGD(self.parameters(), lr=self.rate)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
        return [optimizer], [{"scheduler": scheduler, "interval": "step"}]


class Told(Logistic):
    """The losses under their name."""

    def training_step(self, batch: Any, place: int) -> BadValue:
        return {"loss": super().training_step(batch, place)}


class Logs(Logistic):
    def training_step(self, batch: Any, place: int) -> BadValue:
        losses = super().training_step(batch, place)
        self.log("train_loss", losses.mean())
        return losses


class Mean(Logistic):
    def training_step(self, batch: Any, place: int) -> BadValue:
        return super().training_step(batch, place).mean()


class ByItself(Logistic):
    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False


def items() -> TensorDataset:
    given = data()
    return TensorDataset(given["x"], given["y"])


def loader(source: BadValue = None, **changes: BadValue) -> DataLoader[Any]:
    return DataLoader(source or items(), **{"batch_size": 7, "shuffle": True, **changes})


def plan(**changes: BadValue) -> TrainingPlan:
    return short(**{"steps": 4, **changes})


def trainer(folder: Path, strategy: PrivateStrategy, **changes: BadValue) -> pl.Trainer:
    facts = {
        "max_steps": strategy.plan.steps,
        "max_epochs": -1,
        "default_root_dir": folder,
        "logger": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "enable_checkpointing": False,
    }
    return pl.Trainer(strategy=strategy, **{**facts, **changes})


def private(payer: BadValue = None, **changes: BadValue) -> PrivateStrategy:
    return PrivateStrategy(**{"plan": plan(), "payer": payer or FakePayer(), **changes})


def alone(model: nn.Module, item: Any) -> Tensor:
    x, y = item
    assert isinstance(model, Logistic)
    found: Tensor = F.binary_cross_entropy_with_logits(
        model.layers(x[None])[:, 0], y[None], reduction="none"
    )
    return found


# Training


@pytest.mark.parametrize("make", [Logistic, Told])
def test_a_trainer_moves_the_model_as_a_loop_over_examples(
    make: Callable[[], Logistic], tmp_path: Path, drawn: list[list[int]]
) -> None:
    SEEN.clear()
    model, other, made = make(), Logistic(), plan(clip=0.3)
    before, strategy = weights(model), private(plan=made)
    found = trainer(tmp_path, strategy)
    found.fit(model, loader())
    assert found.global_step == len(drawn) == 4
    for rate, batches in ((1.0, drawn[:2]), (0.5, drawn[2:])):
        by_hand(other, items(), batches, made, rate=rate, alone=alone)
    close(moved(model, before), moved(other, before))
    assert max(SEEN) == 7
    assert strategy.report().done == 4
    assert "NOT PRIVATE: step 4" in repr(strategy.not_private)


def test_units_are_sampled_and_clipped_as_one(tmp_path: Path, drawn: list[list[int]]) -> None:
    model, other, source = Logistic(), Logistic(), items()
    before = weights(model)
    made = plan(unit=Unit("person"), records=30, batch=10, clip=0.3, steps=2)
    given = Units(source, [row % 30 for row in range(60)], column="person", most=2)
    trainer(tmp_path, private(plan=made)).fit(model, loader(given, shuffle=False))
    pairs = [(source[place], source[place + 30]) for place in range(30)]
    by_hand(
        other,
        pairs,
        drawn,
        made,
        rate=1.0,
        alone=lambda model, pair: (alone(model, pair[0]) + alone(model, pair[1])) / 2,
    )
    close(moved(model, before), moved(other, before))


def test_bfloat16_comes_close(tmp_path: Path, drawn: list[list[int]]) -> None:
    model, other = Logistic(), Logistic()
    before = weights(model)
    trainer(tmp_path, private(plan=plan(steps=2)), precision="bf16-mixed").fit(model, loader())
    by_hand(other, items(), drawn, plan(), rate=1.0, alone=alone)
    close(moved(model, before), moved(other, before), within=0.05)
    assert not torch.equal(moved(model, before), moved(other, before))


@pytest.mark.parametrize("precision", ["64-true", "bf16-true", "16-true"])
def test_data_get_the_precision_of_the_weights(precision: str, tmp_path: Path) -> None:
    strategy = private(plan=plan(steps=2))
    trainer(tmp_path, strategy, precision=precision).fit(Logistic(), loader())
    assert strategy.report().taken == 2


def test_a_run_is_paid_before_a_step_and_reported(tmp_path: Path) -> None:
    payer, made = FakePayer(), plan(multiplier=2)
    strategy = private(payer, plan=made, name="third try", by="ana")
    with pytest.raises(Refused, match="nothing was trained"):
        strategy.report()
    trainer(tmp_path, strategy).fit(Logistic(), loader())
    assert payer.charges == [made.privacy_loss]
    assert strategy.report().epsilon == made.epsilon
    assert (strategy.report().receipt.purpose, strategy.report().receipt.by) == ("third try", "ana")


class Notes(pl.Callback):  # type: ignore[misc]  # without types
    """Notes what it is called for, and whether there are gradients then."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def _note(self, name: str, module: nn.Module) -> None:
        has = all(parameter.grad is not None for parameter in module.parameters())
        self.events.append(f"{name}, gradients" if has else name)

    def on_train_start(self, trainer: Any, module: Any) -> None:
        self._note("start", module)

    def on_train_batch_start(self, trainer: Any, module: Any, *_: Any) -> None:
        self._note("batch", module)

    def on_before_zero_grad(self, trainer: Any, module: Any, *_: Any) -> None:
        self._note("zero", module)

    def on_before_backward(self, trainer: Any, module: Any, *_: Any) -> None:
        self._note("backward", module)

    def on_after_backward(self, trainer: Any, module: Any) -> None:
        self._note("after backward", module)

    def on_before_optimizer_step(self, trainer: Any, module: Any, *_: Any) -> None:
        self._note("optimizer", module)

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, *_: Any) -> None:
        assert outputs["loss"].isnan()  # it is private
        self._note("batch end", module)

    def on_train_end(self, trainer: Any, module: Any) -> None:
        self._note("end", module)


def test_hooks_come_in_lightning_s_order(tmp_path: Path) -> None:
    """With gradients from the backward pass on, which have their noise."""
    notes = Notes()
    trainer(tmp_path, private(plan=plan(steps=2)), callbacks=[notes]).fit(Logistic(), loader())
    after = ["after backward, gradients", "optimizer, gradients", "batch end, gradients"]
    assert notes.events[:7] == ["start", "batch", "zero", "backward", *after]
    assert notes.events[7] == "batch, gradients"
    assert notes.events[-1] == "end, gradients"
    assert len(notes.events) == 2 + 2 * 6


class Stops(pl.Callback):  # type: ignore[misc]  # without types
    def __init__(self, step: int, failure: type[BaseException] | None) -> None:
        self.step, self.failure = step, failure

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        if trainer.global_step == self.step - 1:
            trainer.save_checkpoint(Path(trainer.default_root_dir) / "kept.ckpt")
        if trainer.global_step == self.step:
            if self.failure is not None:
                raise self.failure
            trainer.should_stop = True


@pytest.mark.parametrize("failure", [None, KeyboardInterrupt])
def test_a_stopped_run_goes_on_from_its_checkpoint(
    path: Path, tmp_path: Path, failure: type[BaseException] | None
) -> None:
    """Charged once; the step that the checkpoint does not have counts as made all the same."""
    made = plan(steps=6)
    first = trainer(tmp_path, private(Ledger.open(path), plan=made), callbacks=[Stops(3, failure)])
    if failure is None:
        first.fit(Logistic(), loader())
    else:
        with pytest.raises((SystemExit, failure)):
            first.fit(Logistic(), loader())
    kept = tmp_path / "kept.ckpt"
    assert SAVED in torch.load(kept, weights_only=True)
    ledger, strategy = Ledger.open(path), private(Ledger.open(path), plan=made)
    model = Logistic()
    second = trainer(tmp_path, strategy)
    second.fit(model, loader(), ckpt_path=str(kept))
    assert (strategy.report().done, strategy.report().taken) == (3, 6)
    assert second.optimizers[0].param_groups[0]["lr"] == 0.25  # after 2 and 3 steps
    assert [entry.kind for entry in ledger.history()].count(Kind.CHARGE) == 1
    again = private(Ledger.open(path), plan=made)
    untouched = Logistic()
    trainer(tmp_path, again).fit(untouched, loader(), ckpt_path=str(kept))
    assert again.report().done == 0
    assert torch.equal(weights(untouched), weights_in(kept))
    other = private(Ledger.open(path), plan=plan(steps=6, multiplier=1))
    with pytest.raises(InvalidArgument, match="another plan"):
        trainer(tmp_path, other).fit(Logistic(), loader(), ckpt_path=str(kept))


def weights_in(checkpoint: Path) -> Tensor:
    states = torch.load(checkpoint, weights_only=True)["state_dict"]
    return torch.cat([state.reshape(-1) for state in states.values()])


def test_checkpoints_of_others_are_not_gone_on_with(tmp_path: Path) -> None:
    class Plain(Logistic):
        def training_step(self, batch: Any, place: int) -> BadValue:
            return super().training_step(batch, place).mean()

    facts = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    plain = pl.Trainer(max_steps=1, default_root_dir=tmp_path, accelerator="cpu", **facts)
    plain.fit(Plain(), loader())
    plain.save_checkpoint(tmp_path / "plain.ckpt")
    payer = FakePayer()
    with pytest.raises(InvalidArgument, match="not made with a PrivateStrategy"):
        trainer(tmp_path, private(payer)).fit(
            Logistic(), loader(), ckpt_path=str(tmp_path / "plain.ckpt")
        )
    assert not payer.events


class Validated(Logistic):
    def validation_step(self, batch: Any, place: int) -> None:
        x, y = batch
        losses = F.binary_cross_entropy_with_logits(self.layers(x)[:, 0], y)
        self.log("loss", losses)


def test_public_data_are_validated(tmp_path: Path) -> None:
    model = Validated()
    found = trainer(tmp_path, private(eval_is_public=True))
    found.fit(model, loader(), loader(shuffle=False))
    assert float(found.callback_metrics["loss"]) > 0
    assert found.validate(model, loader(shuffle=False), verbose=False)
    payer = FakePayer()
    with pytest.raises(InvalidArgument, match="eval_is_public=True"):
        trainer(tmp_path, private(payer)).fit(Validated(), loader(), loader(shuffle=False))
    assert not payer.events
    trainer(tmp_path, private(payer), limit_val_batches=0).fit(
        Validated(), loader(), loader(shuffle=False)
    )
    assert payer.events == ["charge"]
    with pytest.raises(InvalidArgument, match="eval_is_public=True"):
        trainer(tmp_path, private()).validate(Validated(), loader(shuffle=False), verbose=False)


def test_logs_of_private_data_are_refused(tmp_path: Path) -> None:
    model = Logs()
    before = weights(model)
    with pytest.raises(Refused, match=r"self\.log\('train_loss'\) in training_step"):
        trainer(tmp_path, private()).fit(model, loader())
    assert torch.equal(weights(model), before)
    assert "log" not in vars(model)


@pytest.mark.parametrize("is_late", [False, True])
def test_a_step_writes_nothing_by_a_logger(tmp_path: Path, *, is_late: bool) -> None:
    """Some loggers write files at once."""
    payer = FakePayer()

    class Writes(Logistic):
        def training_step(self, batch: Any, place: int) -> BadValue:
            if payer.charges or not is_late:
                self.logger.log_hyperparams({"count": 777})
                self.logger.save()
            return super().training_step(batch, place)

    logger = pl.loggers.CSVLogger(tmp_path)
    found = trainer(tmp_path, private(payer), logger=logger, log_every_n_steps=1)
    with pytest.raises(Refused, match=r"self\.logger\.log_hyperparams\(\) in training_step"):
        found.fit(Writes(), loader())
    logger.save()
    assert bool(payer.charges) == is_late
    assert not any("777" in path.read_text() for path in tmp_path.rglob("*.*") if path.is_file())


def test_noised_gradients_may_be_logged(tmp_path: Path) -> None:
    """Lightning's own documentation logs their norm in this hook."""

    class Norms(Logistic):
        def on_before_optimizer_step(self, _: Any) -> None:
            norms = [one.grad.norm() for one in self.parameters() if one.grad is not None]
            self.log("norm", torch.stack(norms).norm())

    logger = pl.loggers.CSVLogger(tmp_path)
    found = trainer(tmp_path, private(), logger=logger, log_every_n_steps=1)
    found.fit(Norms(), loader())
    assert float(found.logged_metrics["norm"]) > 0


class Measures(Logistic):
    """Writes what callbacks such as EarlyStopping read."""

    def training_step(self, batch: Any, place: int) -> BadValue:
        self.trainer.callback_metrics["mean"] = batch[0].mean().detach()
        return super().training_step(batch, place)


def test_metrics_that_a_module_writes_are_refused_before_the_charge(tmp_path: Path) -> None:
    model, payer = Measures(), FakePayer()
    found = trainer(tmp_path, private(payer))
    with pytest.raises(Refused, match="'mean' was written into Trainer's metrics"):
        found.fit(model, loader())
    assert not payer.charges
    assert "mean" not in found.callback_metrics


class Holds(pl.Callback):  # type: ignore[misc]  # without types
    """A callback with a tensor of its own."""

    def __init__(self) -> None:
        self.noted = torch.zeros(())


WRITES: dict[str, Callable[[Any, Tensor], object]] = {
    "should_stop": lambda trainer, mean: setattr(trainer, "should_stop", mean > 9),
    "mean": lambda trainer, mean: setattr(trainer, "mean", mean),
    "max_epochs": lambda trainer, mean: setattr(trainer.fit_loop, "max_epochs", 10**6),
    "stop": lambda trainer, mean: setattr(trainer.fit_loop.epoch_loop, "stop", [mean]),
    "callbacks": lambda trainer, mean: trainer.callbacks.append(mean),
    "of a strategy": lambda trainer, mean: setattr(trainer.strategy, "of a strategy", mean),
    "precision": lambda trainer, mean: setattr(trainer.precision_plugin, "precision", mean),
    "an optimizer's": lambda trainer, mean: setattr(
        trainer.lightning_module.optimizers(), "an optimizer's", mean
    ),
    "a scheduler's": lambda trainer, mean: setattr(
        trainer.lightning_module.lr_schedulers(), "a scheduler's", mean
    ),
    "noted": lambda trainer, mean: trainer.callbacks[0].noted.data.copy_(mean),
    "a callback's": lambda trainer, mean: setattr(trainer.callbacks[0], "a callback's", mean),
    "metrics": lambda trainer, mean: trainer.logger.experiment.metrics.append({"mean": mean}),
    "hparams": lambda trainer, mean: trainer.logger.experiment.hparams.update(mean=mean),
    "of the data": lambda trainer, mean: setattr(trainer.datamodule, "of the data", mean),
    "seen": lambda trainer, mean: trainer.datamodule.seen.update(mean=mean),
    "_hparams": lambda trainer, mean: trainer.datamodule.hparams.update(mean=mean),
    "epoch_progress": lambda trainer, mean: setattr(
        trainer.fit_loop.epoch_progress.current, "ready", mean
    ),
    "batch_progress": lambda trainer, mean: setattr(
        trainer.fit_loop.epoch_loop.batch_progress.total, "ready", mean
    ),
    "optim_progress": lambda trainer, mean: setattr(
        trainer.fit_loop.epoch_loop.automatic_optimization.optim_progress.optimizer.step.total,
        "ready",
        mean,
    ),
    "queue": lambda trainer, mean: trainer.datamodule.queue.append(mean),
    "kinds": lambda trainer, mean: trainer.datamodule.kinds.add(mean),
    "counts": lambda trainer, mean: trainer.datamodule.counts.__setitem__(0, 1),
    "pair": lambda trainer, mean: trainer.datamodule.pair[0].update(mean=mean),
    "space": lambda trainer, mean: setattr(trainer.datamodule.space, "mean", mean),
    "rule": lambda trainer, mean: trainer.datamodule.rule.keywords.update(mean=mean),
    "metric": lambda trainer, mean: trainer.datamodule.metric.update(mean),
    "net": lambda trainer, mean: trainer.datamodule.net.weight.data.fill_(mean),
    "table": lambda trainer, mean: trainer.datamodule.table.update(mean=mean),
    "chain": lambda trainer, mean: trainer.datamodule.chain.update(mean=mean),
    "raw": lambda trainer, mean: trainer.datamodule.raw.__setitem__(0, 1),
    "words": lambda trainer, mean: trainer.datamodule.words.append(1),
    "objects": lambda trainer, mean: trainer.datamodule.objects[0].update(mean=mean),
    "slots": lambda trainer, mean: setattr(trainer.datamodule.slots, "mean", mean),
}


@dataclass(slots=True)
class Slots:
    """A value without a dictionary."""

    mean: Any = None


class Seen(pl.LightningDataModule):  # type: ignore[misc]  # without types
    """A data module with state of its own, which checkpoints hold."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, Tensor] = {}
        self.queue, self.kinds, self.counts = deque[Tensor](), set[Tensor](), np.zeros(2)
        self.pair: tuple[dict[str, Tensor]] = ({},)
        self.space, self.rule = SimpleNamespace(), partial(list[Tensor])
        self.metric, self.net, self.slots = MeanMetric(), torch.nn.Linear(1, 1), Slots()
        self.table, self.chain = UserDict[str, Tensor](), ChainMap[str, Tensor]({})
        self.raw, self.words, self.objects = bytearray(2), array("l"), np.array([{}], object)
        self.save_hyperparameters()

    def train_dataloader(self) -> BadValue:
        return loader()


@pytest.mark.parametrize("name", WRITES)
def test_a_module_writes_no_attribute_of_the_trainer(tmp_path: Path, name: str) -> None:
    """A tensor as `should_stop` would tell by the number of steps how large a row is."""

    class Writes(Logistic):
        def training_step(self, batch: Any, place: int) -> BadValue:
            WRITES[name](self.trainer, batch[0].mean().detach())
            return super().training_step(batch, place)

    payer = FakePayer()
    logger = pl.loggers.CSVLogger(tmp_path)
    found = trainer(
        tmp_path,
        private(payer),
        logger=logger,
        callbacks=[Holds()],
        log_every_n_steps=1,
    )
    data, before = Seen(), ([*found.callbacks], found.fit_loop.max_epochs)
    with pytest.raises(Refused, match=f"{name!r} was written into the"):
        found.fit(Writes(), datamodule=data)
    assert not payer.charges
    assert not any([data.seen, data.queue, data.kinds, data.pair[0], data.rule.keywords])
    assert not any([data.table, data.chain, *data.raw, data.words, data.objects[0]])
    assert data.slots.mean is None
    assert data.metric.update_count == 0
    assert not vars(data.space)
    assert found.fit_loop.epoch_progress.current.ready in (0, 1)
    assert ([*found.callbacks][: len(before[0])], found.fit_loop.max_epochs) == before
    assert not hasattr(found, "mean")
    assert found.should_stop is False


LASTING: dict[str, Callable[[Any, int], object]] = {  # what can't be put back
    "a tensor of another size": lambda module, n: setattr(
        module.trainer.datamodule.seen["x"], "data", torch.zeros(n)
    ),
    "a weight": lambda module, n: module.layers[0].weight.data.fill_(n),
    "settings": lambda module, n: module.save_hyperparameters({"n": n}),
}
RESTORED: dict[str, Callable[[Any, int], object]] = {
    "a tensor": lambda module, n: module.trainer.datamodule.seen["x"].fill_(n),
    "an array": lambda module, n: module.trainer.datamodule.counts.fill(n),
    "bytes": lambda module, n: module.trainer.datamodule.raw.extend([1] * n),
    "objects": lambda module, n: module.trainer.datamodule.objects.fill(n),
    "a metric": lambda module, n: module.trainer.datamodule.metric.update(n),
    "a network": lambda module, n: module.trainer.datamodule.net.weight.data.fill_(n),
}


class SavesLast(pl.Callback):  # type: ignore[misc]  # without types
    """Saves when a run fails, as Lightning's `OnExceptionCheckpoint` does."""

    def on_exception(self, trainer: Any, *_: Any) -> None:
        trainer.save_checkpoint(Path(trainer.default_root_dir) / "refused.ckpt")


class Saved(Seen):
    """A data module of which checkpoints hold everything."""

    def __init__(self) -> None:
        super().__init__()
        self.seen["x"] = torch.zeros(2)

    def state_dict(self) -> dict[str, Any]:
        return {"all": repr({**vars(self), "trainer": None, "net": [*self.net.parameters()]})}


@pytest.mark.parametrize("name", [*LASTING, *RESTORED])
def test_no_checkpoint_holds_what_a_refused_step_wrote(tmp_path: Path, name: str) -> None:
    """A callback saves checkpoints when the refusal comes, which is after the charge."""
    count = 77

    class Writes(Logistic):
        def training_step(self, batch: Any, place: int) -> BadValue:
            if payer.charges:
                {**LASTING, **RESTORED}[name](self, count)
            return super().training_step(batch, place)

    payer, module, given = FakePayer(), Writes(), Saved()
    found = trainer(tmp_path, private(payer), callbacks=[SavesLast()])
    before = given.state_dict()
    with pytest.raises(Refused):
        found.fit(module, datamodule=given)
    assert payer.charges
    if name in LASTING:
        with pytest.raises(Refused, match="nothing is saved"):
            found.save_checkpoint(tmp_path / "later.ckpt")
        assert not [*tmp_path.glob("*.ckpt")]
    else:
        found.save_checkpoint(tmp_path / "later.ckpt")
        for path in (tmp_path / "later.ckpt", tmp_path / "refused.ckpt"):
            assert torch.load(path, weights_only=False)["Saved"] == before


def loops_in(owner: Any) -> list[Any]:  # Any: Lightning's, without types
    loops = [each for each in vars(owner).values() if isinstance(each, _Loop)]
    return [*loops, *(inner for each in loops for inner in loops_in(each))]


def test_a_module_writes_no_attribute_of_any_loop(tmp_path: Path) -> None:
    """Checkpoints have the progress of all of them, also of those that have not run."""
    count = len(loops_in(trainer(tmp_path, private())))
    assert count >= 8
    for place in range(count):

        class Writes(Logistic):
            def training_step(self, batch: Any, place: int, loop: int = place) -> BadValue:
                loops_in(self.trainer)[loop].mine = len(batch[0])
                return super().training_step(batch, place)

        payer = FakePayer()
        with pytest.raises(Refused, match=r"'mine' was written into the .* of Lightning"):
            trainer(tmp_path, private(payer)).fit(Writes(), loader())
        assert not payer.charges


class Collates(pl.LightningDataModule):  # type: ignore[misc]  # without types
    """A data module that notes what it reads, and puts that into checkpoints."""

    def __init__(self, *, by_items: bool) -> None:
        super().__init__()
        self.longest, self.by_items, self.items = 0.0, by_items, items()

    def __getitem__(self, place: int) -> Any:
        x, y = self.items[place]
        self.longest = max(self.longest, float(x.max())) if self.by_items else 0.0
        return x, y

    def __len__(self) -> int:
        return len(self.items)

    def collate(self, rows: Any) -> Any:
        if not self.by_items:
            self.longest = max(self.longest, float(rows[0][0].max()))
        return default_collate(rows)

    def train_dataloader(self) -> BadValue:
        return loader(self, collate_fn=self.collate)


@pytest.mark.parametrize("by_items", [False, True])
def test_reading_items_writes_nothing_into_the_trainer(tmp_path: Path, *, by_items: bool) -> None:
    data, like = Collates(by_items=by_items), items()
    with pytest.raises(Refused, match="'longest' was written into the Collates of Lightning"):
        trainer(tmp_path, private(like=like)).fit(Logistic(), datamodule=data)
    assert not data.longest


class Reads(Logistic):
    """Reads a public metric in training, and writes it in validation."""

    def validation_step(self, batch: Any, place: int) -> None:
        self.log("public", batch[0].mean())

    def training_step(self, batch: Any, place: int) -> BadValue:
        assert "public" in self.trainer.callback_metrics or not self.trainer.global_step
        return super().training_step(batch, place)


def test_metrics_of_public_data_may_be_read(tmp_path: Path) -> None:
    model, strategy = Reads(), private(eval_is_public=True)
    found = trainer(tmp_path, strategy, val_check_interval=1)
    found.fit(model, loader(), loader(shuffle=False))
    assert found.global_step == strategy.report().taken
    assert "public" in found.callback_metrics


# Hooks of the user's on batches


def shifted(self: Any, batch: Any, *_: Any) -> Any:
    x, y = batch
    return x + torch.randn_like(x) * 0.1, y


def test_a_hook_changes_batches_within_the_losses(tmp_path: Path) -> None:
    """Lightning's own place for augmentation on a device; the one before is not called so."""
    strategy, payer = private(like=items()), FakePayer()
    model = type("Augments", (Logistic,), {"on_after_batch_transfer": shifted})()
    trainer(tmp_path, strategy).fit(model, loader())
    assert strategy.report().taken == 4
    before = type("Augments", (Logistic,), {"on_before_batch_transfer": shifted})()
    with pytest.raises(InvalidArgument, match="change batches in on_after_batch_transfer"):
        trainer(tmp_path, private(payer)).fit(before, loader())
    assert not payer.events


def start(self: Any, batch: Any, place: int) -> None:
    x, _ = batch
    self.seen = x


def end(self: Any, outputs: Any, batch: Any, place: int) -> None:
    self.seen = len(batch)


def callback_start(self: Any, trainer: Any, module: Any, batch: Any, place: int) -> None:
    self.seen = batch[0]


def callback_end(self: Any, trainer: Any, module: Any, outputs: Any, b: Any, place: int) -> None:
    self.seen = b.mean()


def unused(self: Any, *_: Any) -> None:
    self.ran = True


@pytest.mark.parametrize("is_callback", [False, True])
@pytest.mark.parametrize("is_end", [False, True])
def test_hooks_that_use_a_batch_are_refused_before_the_charge(
    tmp_path: Path, *, is_end: bool, is_callback: bool
) -> None:
    name = "on_train_batch_end" if is_end else "on_train_batch_start"
    uses = ((start, end), (callback_start, callback_end))[is_callback][is_end]
    for hook in (uses, unused):
        payer, kind = FakePayer(), (pl.Callback if is_callback else Logistic)
        own = type("Own", (kind,), {name: hook})()
        module, more = (Logistic(), [own]) if is_callback else (own, [])
        found = trainer(tmp_path, private(payer), callbacks=more)
        if hook is unused:
            found.fit(module, loader())
            assert own.ran
        else:
            with pytest.raises(InvalidArgument, match=f"Own.{name} uses the batch"):
                found.fit(module, loader())
            assert not payer.events


def passed_on(self: Any, *rest: Any) -> None:
    self.seen = rest[-2]


@pytest.mark.parametrize("name", ["on_train_batch_start", "on_train_batch_end"])
@pytest.mark.parametrize("way", ["wrapped", "of the instance", "a lambda", "all arguments"])
def test_hooks_that_use_a_batch_are_found_in_every_form(
    tmp_path: Path, name: str, way: str
) -> None:
    uses = callback_end if name == "on_train_batch_end" else callback_start
    bound = (lambda t, m, o, b, i: b[0]) if uses is callback_end else (lambda t, m, b, i: b[0])
    own: Any = pl.Callback()
    if way == "wrapped":
        own = type("Own", (pl.Callback,), {name: rank_zero_only(uses)})()
    elif way == "of the instance":
        setattr(own, name, bound)
    elif way == "a lambda":
        own = pl.callbacks.LambdaCallback(**{name: bound})
    else:
        own = type("Own", (pl.Callback,), {name: passed_on})()
    payer = FakePayer()
    with pytest.raises(InvalidArgument, match=f"{name} uses the batch"):
        trainer(tmp_path, private(payer), callbacks=[own]).fit(Logistic(), loader())
    assert not payer.events


def test_a_backward_that_no_run_calls_is_refused(tmp_path: Path) -> None:
    payer = FakePayer()
    own = type("Own", (Logistic,), {"backward": lambda *_: None})()
    with pytest.raises(InvalidArgument, match="backward: a private run never calls it"):
        trainer(tmp_path, private(payer)).fit(own, loader())
    assert not payer.events


# What can't be obeyed


class Endless(IterableDataset):  # type: ignore[type-arg]
    def __iter__(self) -> Any:
        yield items()[0]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"accumulate_grad_batches": 2}, "accumulate_grad_batches = 2"),
        ({"gradient_clip_val": 1.0}, "gradient_clip_val = 1.0: each example is clipped"),
        ({"limit_train_batches": 2}, "limit_train_batches = 2"),
        ({"reload_dataloaders_every_n_epochs": 1}, "reload_dataloaders_every_n_epochs"),
        ({"max_steps": 5}, "max_steps = 5: the plan has 4; give max_steps=plan.steps"),
        ({"max_steps": -1, "max_epochs": 3}, "max_steps = -1"),
        ({"overfit_batches": 1}, "overfit_batches"),
        ({"fast_dev_run": True}, "max_steps|limit_train"),
    ],
)
def test_settings_that_can_not_be_obeyed_are_refused_by_name(
    changes: dict[str, BadValue], told: str, tmp_path: Path
) -> None:
    payer = FakePayer()
    with pytest.raises(InvalidArgument, match=told):
        trainer(tmp_path, private(payer), **changes).fit(Logistic(), loader())
    assert not payer.events


class Plateau(Logistic):
    def configure_optimizers(self) -> BadValue:
        optimizer = torch.optim.SGD(self.parameters(), lr=self.rate)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "monitor": "loss"}}


CALLBACKS: dict[str, Callable[[], BadValue]] = {
    "GradientAccumulationScheduler": lambda: callbacks.GradientAccumulationScheduler({0: 2}),
    "ThroughputMonitor": lambda: callbacks.ThroughputMonitor(batch_size_fn=len),
    "EarlyStopping monitors 'loss'": lambda: callbacks.EarlyStopping("loss"),
    "ModelCheckpoint monitors 'loss'": lambda: callbacks.ModelCheckpoint(monitor="loss"),
}


@pytest.mark.parametrize("told", CALLBACKS)
def test_callbacks_that_can_not_be_obeyed_are_refused(told: str, tmp_path: Path) -> None:
    payer, more = FakePayer(), [CALLBACKS[told]()]
    found = trainer(tmp_path, private(payer), callbacks=more, enable_checkpointing=True)
    with pytest.raises(InvalidArgument, match=told):
        found.fit(Logistic(), loader())
    assert not payer.events


def test_schedules_by_metrics_need_public_data(tmp_path: Path) -> None:
    payer = FakePayer()
    with pytest.raises(InvalidArgument, match="ReduceLROnPlateau monitors 'loss'"):
        trainer(tmp_path, private(payer)).fit(Plateau(), loader())
    assert not payer.events


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (lambda: loader(shuffle=False, sampler=WeightedRandomSampler([1.0] * 60, 60)), "Weighted"),
        (lambda: loader(drop_last=True), "drop_last"),
        (lambda: loader(num_workers=1), "num_workers"),
        (lambda: loader(Endless(), shuffle=False), "one DataLoader"),
        (lambda: [loader(), loader()], "one DataLoader"),
        (lambda: DataLoader(items(), batch_size=None), "NoneType would choose"),
    ],
)
def test_loaders_that_can_not_be_obeyed_are_refused(
    given: Callable[[], BadValue], told: str, tmp_path: Path
) -> None:
    payer = FakePayer()
    with pytest.raises(InvalidArgument, match=told):
        trainer(tmp_path, private(payer)).fit(Logistic(), given())
    assert not payer.events


def test_modules_that_can_not_be_obeyed_are_refused(tmp_path: Path) -> None:
    payer = FakePayer()
    with pytest.raises(InvalidArgument, match="automatic_optimization"):
        trainer(tmp_path, private(payer)).fit(ByItself(), loader())
    assert not payer.events
    with pytest.raises(InvalidArgument, match="reduction='none'"):
        trainer(tmp_path, private()).fit(Mean(), loader())


class Mixing(Logistic):
    def training_step(self, batch: Any, place: int) -> BadValue:
        return super().training_step(batch, place) * batch[0].mean().exp()


class Items:
    """Shapes can't be seen before they are read."""

    def __init__(self) -> None:
        self.inner = items()

    def __len__(self) -> int:
        return len(self.inner)

    def __getitem__(self, place: int) -> Any:
        return self.inner[place]


@pytest.mark.parametrize(
    ("module", "source", "like"),
    [
        (Mixing, items(), None),
        (Mixing, Items(), Items()),
        (Mean, items(), None),
        (Logs, items(), None),
        (Logs, Items(), items()),
    ],
)
def test_no_public_fact_costs_the_budget(
    module: type[Logistic], source: BadValue, like: BadValue, tmp_path: Path
) -> None:
    payer = FakePayer()
    strategy = private(payer, like=like)
    with pytest.raises((Refused, InvalidArgument)):
        trainer(tmp_path, strategy).fit(module(), loader(source))
    assert not payer.events


def test_a_strategy_trains_with_examples_like_the_data(tmp_path: Path) -> None:
    strategy = private(like=items())
    trainer(tmp_path, strategy).fit(Logistic(), loader(Items()))
    assert strategy.report().done == 4
