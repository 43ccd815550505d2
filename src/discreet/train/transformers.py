"""Private training by Hugging Face's Trainer: its callbacks, logs, schedules and checkpoints.

Trainer's own loop can't be made private: it draws batches by itself, averages their losses and
counts their tokens. `PrivateTrainer` replaces that loop by a paid run and leaves the rest.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor, nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import IterableDataset
from transformers import DataCollatorWithFlattening, EarlyStoppingCallback, Trainer
from transformers.optimization import GreedyLR
from transformers.trainer_utils import IntervalStrategy, TrainOutput

from discreet._budget import Payer
from discreet._ownership import Owned
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument, Refused
from discreet.train._batches._collated import Collated
from discreet.train._batches._data import Data, Invented, of_zeros
from discreet.train._batches._units import Units, rows_of
from discreet.train._hosted import Hosted, Only, Saved, check_obeyed, check_public, collated
from discreet.train._invented import field_names, invented_items
from discreet.train._own_losses import IGNORED, check_known, kind_of_labels, own_losses
from discreet.train._plans._plan import TrainingPlan
from discreet.train._plans._report import Report
from discreet.train._refusals import check_loss_function
from discreet.train._state._trainer_writes import WatchedPlace, refuse_trainer_writes
from discreet.train._state._trials import try_schedulers
from discreet.train._step_ticket import StepTicket

SAVED = "discreet.json"  # the file in each checkpoint's folder

_PADS = {"labels": IGNORED, "attention_mask": 0, "token_type_ids": 0, "position_ids": 0}
_PROBLEMS = ("regression", "single_label_classification", "multi_label_classification")
_NOT_PRIVATE = {"loss", "train_loss", "grad_norm"}  # Trainer's names, which are never logged


class PrivateTrainer(Owned, Trainer):  # type: ignore[misc]  # Trainer ships without types
    """A Trainer that trains by a plan, paid for as a whole before it reads any example.

    Guarantee: that of `discreet.train.run`, for the model, its checkpoints and its logs. No figure
    of the training data is logged, only epsilon so far; `not_private` shows the loss.
    ``losses`` gives one loss for each example; without it, `own_losses` knows the usual models.
    ``per_device_train_batch_size`` is how many examples are computed at once. Arguments that can't
    be obeyed are refused by name. ``train_dataset`` may be `Units` of a data set.
    Model and losses are checked before the charge: on ``like``, a data set of public examples in
    the form of ``train_dataset``, or on invented inputs, if the names of its fields are known
    without reading it (a list of mappings, or a data set with ``column_names``).
    ``eval_is_public`` states that evaluation data are public. It trains in the process that made
    it, and can't be copied or pickled.
    """

    described: ClassVar[str] = "a PrivateTrainer"
    advice: ClassVar[str] = Hosted.advice

    def __init__(  # Any: what Trainer takes
        self,
        *args: Any,
        plan: TrainingPlan,
        payer: Payer[PrivacyLoss],
        losses: Callable[[nn.Module, dict[str, Any]], Tensor] = own_losses,
        like: Data | None = None,
        eval_is_public: bool = False,
        name: str = "training",
        by: str = "owner",
        **keywords: Any,
    ) -> None:
        self.plan, self.losses, self.like = plan, losses, like
        self.eval_is_public = eval_is_public
        self.hosted = Hosted(plan, payer, name=name, by=by)
        self.control: Any = None  # Any: Trainer's own
        super().__init__(*args, **keywords)
        _check(self)

    @property
    def not_private(self) -> object:
        """Figures of the last step's batch. NOT PRIVATE."""
        return self.hosted.not_private

    def report(self) -> Report:
        """The public statement about the last run."""
        return self.hosted.report()

    def train(
        self,
        resume_from_checkpoint: str | bool | None = None,  # noqa: FBT001  # as Trainer has it
        trial: Any = None,
        ignore_keys_for_eval: list[str] | None = None,
    ) -> TrainOutput:
        """Train by the whole plan; charged once, also if a checkpoint is resumed."""
        _check(self)
        if trial is not None:
            raise InvalidArgument("trial: a choice among runs goes through discreet's Tuning")
        with closing(self.hosted):
            return super().train(resume_from_checkpoint, None, ignore_keys_for_eval)

    # The parts of Trainer's loop

    def get_train_dataloader(self) -> "_EpochLength":
        """A stand-in with the length of an epoch."""
        return _EpochLength(self.plan.phases[0].size.batches)

    def num_examples(self, dataloader: Any) -> int:
        """The declared number for the training data, which is public."""
        if isinstance(dataloader, _EpochLength):
            return self.plan.records
        found: int = super().num_examples(dataloader)
        return found

    def get_total_train_batch_size(self, _: Any) -> int:
        """The plan's batch, which is about the number of examples in a step."""
        return self.plan.phases[0].size.batch

    def _prepare_for_training(
        self, max_steps: int, train_dataloader: Any, resume_from_checkpoint: str | None
    ) -> tuple[nn.Module, Any]:
        """Pay, once model and optimizer are ready."""
        prepared: tuple[nn.Module, Any] = super()._prepare_for_training(
            max_steps, train_dataloader, resume_from_checkpoint
        )
        saved = None if resume_from_checkpoint is None else _saved(Path(resume_from_checkpoint))
        source, model = self._source(), prepared[0].train()
        if callable(getattr(self.optimizer, "train", None)):
            self.optimizer.train()
        if saved is None and not isinstance(self.lr_scheduler, GreedyLR):
            try_schedulers(self.optimizer, [self.lr_scheduler], self.plan.steps)
        self.hosted.open(
            model,
            self.optimizer,
            source,
            losses=partial(self._losses, model),
            like=self._examples(model, source),
            at_once=self.args.per_device_train_batch_size,
            saved=saved,
            before=partial(self._call, "on_pre_optimizer_step"),
            after=partial(self._call, "on_optimizer_step"),
        )
        return prepared

    def _examples(self, model: nn.Module, source: "Collated | Units") -> Data | Invented | None:
        """Public examples for the check before the charge: those given, or invented ones if the
        data can't be read before, and their fields are known."""
        if self.losses is own_losses:
            check_known(model)
        if self.like is not None or of_zeros(rows_of(source)) is not None:
            return self.like
        items = invented_items(model, field_names(self.train_dataset))
        return None if items is None else Invented(items)

    def _source(self) -> "Collated | Units":
        """The training data, each item collated by itself."""
        collate = self._get_collator_with_removed_columns(self.data_collator, "training")
        token = getattr(self.processing_class, "pad_token_id", None)
        pads = {**_PADS, "input_ids": token or 0}
        if kind_of_labels(self.model) == "example":  # several numbers are no sequence
            del pads["labels"]
        return collated(self.train_dataset, collate, pads, self._unwritten)

    def _run_epoch(self, model: nn.Module, epoch: int, steps_in_epoch: int, **state: Any) -> None:
        """Make the plan's steps up to the epoch's end, with Trainer's events around them."""
        resumed = state["resume_from_checkpoint"]
        if resumed is not None and epoch == state["epochs_trained"]:
            self._load_rng_state(resumed)

        def log_save_evaluate(rate: float | None) -> None:
            some = [state[key] for key in ("ignore_keys_for_eval", "start_time")]
            self._maybe_log_save_evaluate(
                self._tr_loss, None, model, None, epoch, *some, learning_rate=rate
            )

        rate = None
        while self.state.global_step < (epoch + 1) * steps_in_epoch:
            ticket = self.hosted.ticket()
            if ticket is None:
                self.control.should_training_stop = True
                break
            rate = self._one_step(model, ticket)
            self.state.global_step = ticket.step
            self.state.epoch = ticket.step / steps_in_epoch
            self._call("on_step_end")
            log_save_evaluate(rate)
            if self.control.should_epoch_stop or self.control.should_training_stop:
                break
        self._call("on_epoch_end")
        log_save_evaluate(rate)

    def _one_step(self, model: nn.Module, ticket: StepTicket) -> float:
        """Make one step; returns its learning rate."""
        assert self.hosted.run is not None
        self._call("on_step_begin")
        model.train()
        if callable(getattr(self.optimizer, "train", None)):
            self.optimizer.train()
        self.hosted.run.step(ticket)
        rate: float = self._get_learning_rate()
        if not isinstance(self.lr_scheduler, (ReduceLROnPlateau, GreedyLR)):
            self.lr_scheduler.step()  # those two step after evaluations
        return rate

    def _losses(self, model: nn.Module, microbatch: dict[str, Any]) -> Tensor:
        with self._unwritten():
            return self.losses(model, self._prepare_inputs(microbatch))

    def _unwritten(self) -> AbstractContextManager[None]:
        return _unwritten(self)

    def _call(self, event: str) -> None:
        tell = getattr(self.callback_handler, event)
        self.control = tell(self.args, self.state, self.control)

    # Logs and checkpoints

    def log(self, logs: dict[str, float], *more: Any) -> None:
        """Log without figures of the training data, and with epsilon so far."""
        if "loss" in logs and self.hosted.run is not None:
            logs["epsilon"] = self.hosted.report().epsilon
        for name in _NOT_PRIVATE & set(logs):
            del logs[name]
        super().log(logs, *more)

    def evaluate(self, *args: Any, **keywords: Any) -> dict[str, float]:
        """Evaluate public data, as Trainer does."""
        check_public("eval_dataset", is_public=self.eval_is_public)
        found: dict[str, float] = super().evaluate(*args, **keywords)
        return found

    def predict(self, *args: Any, **keywords: Any) -> Any:
        """Predict for public data, as Trainer does."""
        check_public("eval_dataset", is_public=self.eval_is_public)
        return super().predict(*args, **keywords)

    def _finalize_training(self, *args: Any) -> TrainOutput:
        """Remove the loss from the metrics."""
        found = super()._finalize_training(*args)
        metrics = {name: figure for name, figure in found.metrics.items() if name != "train_loss"}
        return TrainOutput(found.global_step, float("nan"), metrics)

    def _save(self, *args: Any, **keywords: Any) -> None:
        """Save the model, unless it holds private data."""
        self.hosted.refuse_spoiled()
        super()._save(*args, **keywords)

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        """Save the plan and the receipt beside them; no key and no noise."""
        super()._save_optimizer_and_scheduler(output_dir)
        if self.hosted.run is not None:
            fields = json.dumps(self.hosted.run.public_checkpoint(), indent=2)
            (Path(output_dir) / SAVED).write_text(fields, encoding="utf-8")


class _EpochLength:
    """Stands in for a data loader: it has a length, and nothing can be drawn from it."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[Any]:
        raise Refused("train_dataloader: batches are drawn by the plan, and no one sees them")


def _places(trainer: PrivateTrainer) -> Iterator[WatchedPlace]:
    """Attributes of Trainer's arguments, state, control, schedulers and callbacks, of the settings
    of its model and tokenizer, its log, and its own attributes."""
    it: Any = trainer  # Any: Trainer ships without types
    schedulers = (it.lr_scheduler, getattr(it.lr_scheduler, "scheduler", None))
    callbacks = it.callback_handler.callbacks
    for logged in it.state.log_history:
        yield "Trainer's log", logged
    saved = (*_configs(it.model), it.processing_class)  # with each checkpoint
    trainers = (it.args, it.state, it.control, it.callback_handler, *schedulers, *callbacks, it)
    for owner in (*trainers, *saved):
        if hasattr(owner, "__dict__"):
            yield f"the {type(owner).__name__} of Transformers", vars(owner)


@contextmanager
def _unwritten(trainer: PrivateTrainer) -> Iterator[None]:
    """Refuse what the block writes into a Trainer and what it saves. Libraries' own calls may set
    how a tokenizer pads, what it warned of, and a kind of problem; these are put back."""
    it: Any = trainer  # Any: as below
    known = {*map(id, it.model.modules())}
    configs = [one for one in _configs(it.model) if getattr(one, "problem_type", 0) is None]
    tokenizer = it.processing_class
    backend = getattr(tokenizer, "backend_tokenizer", None)
    before = backend and (backend.truncation, backend.padding)
    warned = getattr(tokenizer, "deprecation_warnings", {})
    told = dict(warned)
    with refuse_trainer_writes(
        _places(trainer), "a training step", spoil=trainer.hosted.spoil, known=known
    ):
        try:
            yield
        finally:
            for config in configs:
                if config.problem_type in _PROBLEMS:  # a forward pass sets it by the labels' type
                    config.problem_type = None
            if before:
                _set_back(backend, *before)
            warned.clear()
            warned.update(told)


def _set_back(backend: Any, truncation: Any, padding: Any) -> None:  # Any: without types
    """Give the tokenizer back how it cut and padded texts."""
    if backend.truncation != truncation:
        if truncation is None:
            backend.no_truncation()
        else:
            backend.enable_truncation(**truncation)
    if backend.padding != padding:
        if padding is None:
            backend.no_padding()
        else:
            backend.enable_padding(**padding)


def _configs(model: nn.Module) -> list[Any]:  # Any: as above
    """The settings of all parts of a model that are saved beside its weights, each once."""
    found: dict[int, Any] = {}
    modules = [vars(module) for module in model.modules()]
    waiting = [own.get(name) for own in modules for name in ("config", "generation_config")]
    waiting += [one for own in modules for one in dict(own.get("peft_config") or {}).values()]
    while waiting:
        one = waiting.pop()
        if id(one) not in found and callable(getattr(one, "to_dict", None)):
            found[id(one)] = one
            waiting += vars(one).values()
    return [*found.values()]


def _saved(folder: Path) -> Saved:
    """The plan and the receipt of a checkpoint."""
    try:
        found: Saved = json.loads((folder / SAVED).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidArgument(
            f"resume_from_checkpoint: {folder.name} has no {SAVED}; give a checkpoint of a "
            "PrivateTrainer, made without save_only_model"
        ) from None
    return found


def _check(trainer: PrivateTrainer) -> None:
    """Refuse settings that can't be obeyed, before the charge."""
    _check_arguments(trainer.args)
    check_loss_function(trainer.losses)
    trainer.hosted.check_steps(trainer.args.max_steps)
    if trainer.eval_dataset is not None:
        check_public("eval_dataset", is_public=trainer.eval_is_public)
    if trainer.compute_loss_func is not None:
        raise InvalidArgument(
            "compute_loss_func: it is of a whole batch; give losses, a function of model and "
            "inputs that returns one loss for each example"
        )
    _check_methods(trainer)
    _check_best_metric(trainer)
    if isinstance(trainer.data_collator, DataCollatorWithFlattening):
        raise InvalidArgument(
            "data_collator: DataCollatorWithFlattening packs examples together; give one that pads"
        )
    if trainer.train_dataset is None or isinstance(trainer.train_dataset, IterableDataset):
        raise InvalidArgument(
            "train_dataset: give one that has len() and items by number, so that it can be sampled"
        )


def _check_methods(trainer: PrivateTrainer) -> None:
    """Refuse methods of the user's that a private run would never call."""
    for name in _NEVER_CALLED:
        if _is_own(trainer, name):
            raise InvalidArgument(f"{name}: a private run never calls it; leave it out")
    evaluates = trainer.eval_dataset is not None
    if _is_own(trainer, "compute_loss_context_manager") and not evaluates:
        raise InvalidArgument(
            "compute_loss_context_manager: a private run never calls it, except to evaluate; enter "
            "the context in losses"
        )
    if _is_own(trainer, "compute_loss") and (trainer.losses is own_losses or not evaluates):
        raise InvalidArgument(
            "compute_loss: a private run never calls it, except to evaluate; give losses, a "
            "function of model and inputs that returns one loss for each example"
        )


def _is_own(trainer: PrivateTrainer, name: str) -> bool:
    """Whether a class of the user's, or the trainer itself, has another method of this name."""
    is_of_class = getattr(type(trainer), name, None) is not getattr(PrivateTrainer, name, None)
    return is_of_class or name in vars(trainer)


def _check_best_metric(trainer: PrivateTrainer) -> None:
    """Refuse to choose a model by a metric that no evaluation computes."""
    name, data = trainer.args.metric_for_best_model, trainer.eval_dataset
    if name is None or trainer.args.eval_strategy == IntervalStrategy.NO:
        if any(
            isinstance(each, EarlyStoppingCallback) for each in trainer.callback_handler.callbacks
        ):
            raise InvalidArgument(
                "EarlyStoppingCallback waits for a metric that no evaluation computes; give "
                "metric_for_best_model, eval_strategy, and public data to evaluate"
            )
        return
    sets = [f"{each}_" for each in data] if isinstance(data, dict) else [""]
    known = {f"{each}{metric}" for each in sets for metric in _METRICS}
    is_plain = trainer.compute_metrics is None and type(trainer).evaluate is PrivateTrainer.evaluate
    if is_plain and name.removeprefix("eval_") not in known:
        raise InvalidArgument(
            f"metric_for_best_model = {name!r}: no evaluation computes it; give compute_metrics, "
            "or take 'loss'"
        )


def _check_arguments(args: Any) -> None:  # Any: Trainer's arguments
    check_obeyed(args, _ONLY)
    optim = str(getattr(args.optim, "value", args.optim))
    if "lomo" in optim or "layerwise" in optim:
        raise InvalidArgument(
            f"optim = {optim}: it steps in the backward pass, without noise; take adamw_torch"
        )


_NEVER_CALLED = ("training_step", "get_batch_samples", "get_train_dataloader", "_get_train_sampler")
_METRICS = ("loss", "runtime", "samples_per_second", "steps_per_second", "model_preparation_time")
_ONE = "one process, on one device, draws the batches and the noise"
_NO: tuple[Any, ...] = (None, False, "", [], {}, 0)
_ONLY = (
    Only(
        "gradient_accumulation_steps", (1,), "the plan's batches are computed in parts; leave it 1"
    ),
    Only("max_grad_norm", (0, None), "each example is clipped as the plan says; set it 0"),
    Only("label_smoothing_factor", (0,), "it is a mean over the batch; give losses that smooth"),
    Only("fp16", _NO, "a gradient scaler would scale the noise; use bf16"),
    Only("auto_find_batch_size", _NO, "parts shrink by themselves where memory runs out"),
    Only("neftune_noise_alpha", _NO, "it can't be checked against a plain loop; leave it out"),
    Only("use_liger_kernel", _NO, "it computes gradients of whole batches; leave it out"),
    Only("train_sampling_strategy", ("random",), "the plan says how examples are sampled"),
    Only("dataloader_drop_last", _NO, "no batch is dropped; leave it out"),
    Only("dataloader_num_workers", _NO, "examples are read in this process; leave it 0"),
    Only(
        "include_num_input_tokens_seen", ("no", False), "how many tokens the data have is private"
    ),
    Only("deepspeed", _NO, _ONE),
    Only("fsdp", _NO, _ONE),
    Only("world_size", (1,), _ONE),
    Only("n_gpu", (0, 1), _ONE),
)
