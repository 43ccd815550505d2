"""Private training by Lightning's Trainer: its hooks, loggers, schedules and checkpoints.

Lightning hands each batch and each optimizer step to a strategy: here `PrivateStrategy`. Trainer's
loader says what the examples are and how they are collated; the plan draws them.
"""

import dis
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from types import CodeType
from typing import Any, ClassVar

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import (
    Callback,
    GradientAccumulationScheduler,
    ThroughputMonitor,
)
from lightning.pytorch.core.hooks import DataHooks
from lightning.pytorch.loops.loop import _Loop
from lightning.pytorch.strategies import SingleDeviceStrategy
from lightning.pytorch.trainer.states import TrainerFn
from torch import Tensor
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
)

from discreet._budget import Payer
from discreet._ownership import Owned
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument, Refused
from discreet.train._batches._collated import Collated, Microbatch
from discreet.train._batches._data import Data
from discreet.train._batches._units import Units
from discreet.train._hosted import Hosted, Only, Saved, check_obeyed, check_public, collated
from discreet.train._plans._plan import TrainingPlan
from discreet.train._plans._report import Report
from discreet.train._state._trainer_writes import WatchedPlace, refuse_trainer_writes
from discreet.train._state._trials import try_schedulers
from discreet.train._step_ticket import StepTicket

SAVED = "discreet"  # the key in each checkpoint


class PrivateStrategy(Owned, SingleDeviceStrategy):  # type: ignore[misc]  # it ships without types
    """A strategy for Lightning's Trainer by which ``fit`` trains by a plan, paid for first.

    Guarantee: that of `discreet.train.run`, for the model and its checkpoints. ``training_step``
    returns one loss for each example and must log nothing, since figures of private data would be
    published; `not_private` has some for those who may see the data. The training loader's
    ``batch_size`` is how many examples are computed at once; its data set may be `Units`. ``like``
    is a data set of public examples in the form of the loader's: module and losses are checked on
    these before the charge. Settings of Trainer and loader that can't be obeyed are refused by
    name. ``eval_is_public`` states that validation data are public. It trains in the process that
    made it, and can't be copied or pickled.
    """

    described: ClassVar[str] = "a PrivateStrategy"
    advice: ClassVar[str] = Hosted.advice

    def __init__(
        self,
        plan: TrainingPlan,
        *,
        payer: Payer[PrivacyLoss],
        device: torch.device | str = "cpu",
        like: Data | None = None,
        eval_is_public: bool = False,
        name: str = "training",
        by: str = "owner",
    ) -> None:
        super().__init__(device)
        self.plan, self.like, self.eval_is_public = plan, like, eval_is_public
        self.hosted = Hosted(plan, payer, name=name, by=by)
        self.ticket: StepTicket | None = None  # of the step in progress
        self._saved: Saved | None = None  # of the checkpoint that is resumed
        self._source: Collated | Units | None = None
        self._at_once, self._place = 1, 0

    @property
    def not_private(self) -> object:
        """Figures of the last step's batch. NOT PRIVATE."""
        return self.hosted.not_private

    def report(self) -> Report:
        """The public statement about the last run."""
        return self.hosted.report()

    # Before the first step

    def setup(self, trainer: Trainer) -> None:
        """Check Trainer's settings, and take its loader's place."""
        if trainer.state.fn == TrainerFn.FITTING:
            _check(self, trainer)
            source = trainer.fit_loop._data_source  # noqa: SLF001  # no public name leads to it
            loader = source.dataloader()
            _check_loader(loader)
            self._at_once = loader.batch_size
            self._source = collated(loader.dataset, loader.collate_fn, {}, self._unwritten)
            source.name, source.instance = "", _StepTickets(self, trainer)
        else:
            check_public("dataloaders", is_public=self.eval_is_public)
        super().setup(trainer)

    def on_train_start(self) -> None:
        """Pay, once model and optimizer are loaded."""
        assert self._source is not None
        if self._saved is None:
            _check_monitored(self.lightning_module.trainer, self.lr_scheduler_configs)
            for config in self.lr_scheduler_configs:
                if not config.reduce_on_plateau:
                    steps = _steps_of(config, self.plan)
                    try_schedulers(self.optimizers[0], [config.scheduler], steps)
        self.hosted.open(
            self.lightning_module,
            self.optimizers[0],
            self._source,
            losses=self._losses,
            like=self.like,
            at_once=self._at_once,
            saved=self._saved,
            before=self._before_step,
        )

    # One step

    def training_step(self, _: int, place: int = 0) -> Tensor:
        """Compute nothing yet: Lightning calls this before the optimizer's step."""
        self._place = place
        return torch.tensor(float("nan"))

    def backward(self, closure_loss: Tensor, *_: Any, **__: Any) -> Tensor:
        """Call only the hook that comes before."""
        self.precision_plugin.pre_backward(closure_loss, self.lightning_module)
        return closure_loss

    def optimizer_step(
        self, _: torch.optim.Optimizer, closure: Callable[[], Any], *__: Any, **___: Any
    ) -> Any:
        """Make the whole step: contributions, noise, the optimizer's own step."""
        assert self.hosted.run is not None
        assert self.ticket is not None
        result = closure()
        self.hosted.run.step(self.ticket)
        return result

    def _before_step(self) -> None:
        """Call the hooks that take gradients; noise has been added to these."""
        module, optimizer = self.lightning_module, self._lightning_optimizers[0]
        self.precision_plugin.post_backward(torch.tensor(float("nan")), module)
        self.precision_plugin._after_closure(module, optimizer)  # noqa: SLF001  # as Lightning does

    def _losses(self, microbatch: Microbatch) -> Tensor:
        """The losses that the module's own training step returns."""
        with _unlogged(self.lightning_module), self._unwritten():
            batch = self.batch_to_device(self.precision_plugin.convert_input(microbatch))
            found = super().training_step(batch, self._place)
        losses: Tensor = found["loss"] if isinstance(found, Mapping) else found
        return losses

    def _unwritten(self) -> AbstractContextManager[None]:
        module = self.lightning_module
        return refuse_trainer_writes(
            _places(self, module.trainer),
            "a training step",
            spoil=self.hosted.spoil,
            known={*map(id, module.modules())},
        )

    def batch_to_device(self, batch: Any, *args: Any, **keywords: Any) -> Any:
        """Call the module's hooks on batches; Lightning's loop has the step's number only."""
        return (
            batch if isinstance(batch, int) else super().batch_to_device(batch, *args, **keywords)
        )

    # Checkpoints

    def save_checkpoint(self, checkpoint: dict[str, Any], *args: Any, **keywords: Any) -> None:
        """Add the plan and the receipt; no key and no noise is saved."""
        if self.hosted.run is not None:
            checkpoint[SAVED] = self.hosted.run.public_checkpoint()
        super().save_checkpoint(checkpoint, *args, **keywords)

    def load_checkpoint(self, *args: Any, **keywords: Any) -> dict[str, Any]:
        """Refuse to train on from a checkpoint without a receipt."""
        found: dict[str, Any] = super().load_checkpoint(*args, **keywords)
        self._saved = found.get(SAVED)
        if self._saved is None and self.lightning_module.trainer.state.fn == TrainerFn.FITTING:
            raise InvalidArgument(
                "ckpt_path: this checkpoint was not made with a PrivateStrategy; load its weights "
                "into the model instead"
            )
        return found

    def teardown(self) -> None:
        """End the run, also after a failure."""
        self.hosted.close()
        self._saved = None
        super().teardown()


def _steps_of(config: Any, plan: TrainingPlan) -> int:  # Any: Lightning's configuration
    """How many steps a scheduler makes in the whole run."""
    steps = plan.steps if config.interval == "step" else plan.steps // plan.phases[0].size.batches
    return int(steps // config.frequency)


class _StepTickets:
    """Stands in for the loader: the numbers of an epoch's steps, and no data."""

    def __init__(self, strategy: PrivateStrategy, trainer: Trainer) -> None:
        self.strategy, self.trainer = strategy, trainer

    def __len__(self) -> int:
        return self.strategy.plan.phases[0].size.batches

    def __iter__(self) -> Iterator[int]:
        for _ in range(len(self)):
            ticket = self.strategy.hosted.ticket()
            if ticket is None:
                self.trainer.should_stop = True
                return
            self.strategy.ticket = ticket
            yield ticket.step

    def state_dict(self) -> dict[str, Any]:
        """Empty: the ledger counts the steps."""
        return {}

    def load_state_dict(self, _: dict[str, Any]) -> None:
        """Do nothing, as above."""


def _places(strategy: PrivateStrategy, trainer: Trainer) -> Iterator[WatchedPlace]:
    """Trainer's metrics, its attributes, those of its loops and of what they hold, and those of the
    data module."""
    for metrics in (trainer.callback_metrics, trainer.logged_metrics, trainer.progress_bar_metrics):
        yield "Trainer's metrics", metrics
    schedulers = (config.scheduler for config in strategy.lr_scheduler_configs)
    experiments = (vars(logger).get("_experiment") for logger in trainer.loggers)
    loops = (trainer.fit_loop, trainer.validate_loop, trainer.test_loop, trainer.predict_loop)
    for owner in (
        *(trainer, *(inner for loop in loops for inner in _with_inner(loop))),
        getattr(trainer, "datamodule", None),
        *(strategy, strategy.precision_plugin, *strategy._lightning_optimizers, *schedulers),  # noqa: SLF001  as Lightning does
        *(*trainer.callbacks, *trainer.loggers, *experiments),
    ):
        if hasattr(owner, "__dict__"):
            yield f"the {type(owner).__name__.strip('_')} of Lightning", vars(owner)


def _with_inner(loop: _Loop) -> Iterator[_Loop]:
    """A loop and those in it: checkpoints have them all."""
    yield loop
    for each in vars(loop).values():
        if isinstance(each, _Loop):
            yield from _with_inner(each)


@contextmanager
def _unlogged(module: LightningModule) -> Iterator[None]:
    """Refuse `self.log`, and loggers, which would publish figures of private data."""

    def refusing(call: str) -> Callable[..., None]:
        def refuse(name: object = "", *_: Any, **__: Any) -> None:
            shown = repr(name) if isinstance(name, str) else ""
            raise Refused(
                f"{call}({shown}) in training_step would publish private data; leave it out: "
                "PrivateStrategy.not_private has the loss, for whoever may see the data"
            )

        return refuse

    loggers = [(one, name) for one in module.trainer.loggers for name in _LOGGED]
    before = [(vars(owner), name, vars(owner).get(name)) for owner, name in loggers]
    before.append((vars(module), "log", vars(module).get("log")))
    for own, name, _ in before:
        own[name] = refusing(f"{'self' if own is vars(module) else 'self.logger'}.{name}")
    try:
        yield
    finally:
        for own, name, method in before:
            if method is None:
                del own[name]
            else:
                own[name] = method


def _check(strategy: PrivateStrategy, trainer: Trainer) -> None:
    """Refuse settings of Trainer that can't be obeyed."""
    check_obeyed(trainer, _ONLY)
    strategy.hosted.check_steps(trainer.max_steps, also=", max_epochs=-1")
    if not trainer.lightning_module.automatic_optimization:
        raise InvalidArgument(
            "automatic_optimization = False: give True, since the plan decides the steps"
        )
    if getattr(trainer.precision_plugin, "scaler", None) is not None:
        raise InvalidArgument("precision: a gradient scaler would scale the noise; use bf16-mixed")
    module = trainer.lightning_module
    if type(module).backward is not LightningModule.backward or "backward" in vars(module):
        raise InvalidArgument("backward: a private run never calls it; leave it out")
    for owner in (module, *trainer.callbacks):
        _check_batch_hooks(owner)
    for hooks in (module, getattr(trainer, "datamodule", None) or module):
        if type(hooks).on_before_batch_transfer is not DataHooks.on_before_batch_transfer:
            raise InvalidArgument(
                "on_before_batch_transfer: Lightning's loop calls it with the step's number; "
                "change batches in on_after_batch_transfer"
            )
    for callback in trainer.callbacks:
        if isinstance(callback, tuple(_REFUSED)):
            kind, why = next(each for each in _REFUSED.items() if isinstance(callback, each[0]))
            raise InvalidArgument(f"callbacks: {kind.__name__} {why}")
    if trainer.enable_validation:
        check_public("val_dataloaders", is_public=strategy.eval_is_public)


def _check_batch_hooks(owner: LightningModule | Callback) -> None:
    """Refuse hooks that use a batch: they get the step's number in its place."""
    for name in ("on_train_batch_start", "on_train_batch_end"):
        hook = inspect.unwrap(getattr(owner, name))
        code: CodeType | None = getattr(hook, "__code__", None)
        if code is None or _is_of_lightning(hook):
            continue
        batch = _batch_of(name, owner, code, has_self=name not in vars(owner))
        steps = (step for step in dis.get_instructions(code) if step.opname.startswith("LOAD_"))
        is_used = any(batch in (step.argval, *_both(step.argval)) for step in steps)
        if batch is not None and is_used and name not in code.co_names:  # as of super
            raise InvalidArgument(
                f"{type(owner).__name__}.{name} uses the batch, which a private run shows to no "
                "hook; change batches in on_after_batch_transfer or training_step, and take "
                "figures from PrivateStrategy.not_private"
            )


def _both(names: object) -> tuple[object, ...]:
    """The names that one instruction of newer Pythons loads together."""
    return names if isinstance(names, tuple) else ()


def _is_of_lightning(hook: Any) -> bool:  # Any: a method
    return str(hook.__module__).partition(".")[0] == "lightning"


def _batch_of(name: str, owner: object, code: CodeType, *, has_self: bool) -> str | None:
    """The name that such a hook gives to the batch, or to all its other arguments."""
    place = has_self + 2 * isinstance(owner, Callback) + (name == "on_train_batch_end")
    names = code.co_varnames[: code.co_argcount]
    if len(names) > place:
        return names[place]
    after = code.co_argcount + code.co_kwonlyargcount
    return code.co_varnames[after] if code.co_flags & inspect.CO_VARARGS else None


def _check_monitored(trainer: Trainer, configs: list[Any]) -> None:  # Any: Lightning's
    """Refuse to wait for a metric in a run that has none: `training_step` logs nothing."""
    if trainer.enable_validation:
        return
    callbacks = ((type(one).__name__, getattr(one, "monitor", None)) for one in trainer.callbacks)
    schedulers = (
        (type(one.scheduler).__name__, one.monitor) for one in configs if one.reduce_on_plateau
    )
    for kind, monitor in (*callbacks, *schedulers):
        if monitor is not None:
            raise InvalidArgument(
                f"{kind} monitors {monitor!r}, but no metric is logged in training; give "
                "val_dataloaders of public data, or leave it out"
            )


def _check_loader(loader: Any) -> None:  # Any: whatever Trainer was given
    """Refuse settings of the loader that can't be obeyed."""
    if not isinstance(loader, DataLoader) or isinstance(loader.dataset, IterableDataset):
        raise InvalidArgument(
            "train_dataloaders: give one DataLoader of a data set that has len() and items by "
            "number, so that it can be sampled"
        )
    plain = type(loader.batch_sampler) is BatchSampler
    if not plain or type(loader.sampler) not in (RandomSampler, SequentialSampler):
        kind = type(loader.sampler if plain else loader.batch_sampler).__name__
        raise InvalidArgument(
            f"train_dataloaders: {kind} would choose examples; the plan does, so give none"
        )
    if loader.drop_last or loader.num_workers:
        raise InvalidArgument(
            "train_dataloaders: nothing is dropped, and this process reads the examples; leave out "
            "drop_last and num_workers"
        )


_LOGGED = ("log_metrics", "log_hyperparams", "log_graph", "save")  # of loggers
_REFUSED = {  # callbacks that change settings during the run, or that read batches
    GradientAccumulationScheduler: "would change accumulate_grad_batches; leave it out",
    ThroughputMonitor: "would read private batches; leave it out",
}
_ONLY = (
    Only("accumulate_grad_batches", (1,), "the plan's batches are computed in parts; leave it 1"),
    Only("gradient_clip_val", (None, 0), "each example is clipped as the plan says; leave it out"),
    Only("limit_train_batches", (1.0,), "the plan says how many there are; leave it out"),
    Only("overfit_batches", (0,), "the plan says which examples are drawn; leave it out"),
    Only("reload_dataloaders_every_n_epochs", (0,), "the data are what was paid for; leave it out"),
)
