"""The real Trainer trains privately: the plan's steps, and callbacks, logs and checkpoints."""

import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from torch import Tensor, nn
from torch.utils.data import IterableDataset
from transformers import (
    BertForNextSentencePrediction,
    DataCollatorForLanguageModeling,
    DataCollatorWithFlattening,
    EarlyStoppingCallback,
    PreTrainedTokenizerFast,
    TrainerCallback,
    TrainingArguments,
    default_data_collator,
)

from discreet._budget import Limit
from discreet._unit import Unit
from discreet.errors import InvalidArgument, Refused
from discreet.ledger import Kind, Ledger
from discreet.train import Collated, TrainingPlan, Units
from discreet.train._batches._data import microbatch_of
from discreet.train._own_losses import own_losses
from discreet.train.transformers import SAVED, PrivateTrainer
from tests.bad_values import BadValue
from tests.mechanisms.kit import FakePayer
from tests.train.steps import short
from tests.train.third_party_models import (
    MASKED,
    OF_SEQUENCES,
    OF_TOKENS,
    Texts,
    bert,
    by_hand,
    close,
    gpt,
    llama,
    model_s_own,
    moved,
    weights,
)
from tests.train.unfollowed import unfollowed

MODELS: dict[str, tuple[Callable[[], nn.Module], bool]] = {
    "GPT-2": (gpt, False),
    "Llama": (llama, False),
    "BERT, masked": (lambda: bert(MASKED), False),
    "BERT, of sequences": (lambda: bert(OF_SEQUENCES, num_labels=2), True),
}


def plan(**changes: BadValue) -> TrainingPlan:
    return short(**{"records": 40, "batch": 10, "steps": 4, **changes})


def arguments(folder: Path, **changes: BadValue) -> TrainingArguments:
    facts = {
        "max_steps": 4,
        "max_grad_norm": 0,
        "use_cpu": True,
        "report_to": [],
        "disable_tqdm": True,
        "logging_steps": 2,
        "save_strategy": "no",
        "optim": "sgd",
        "learning_rate": 1.0,
        "lr_scheduler_type": "constant",
        "per_device_train_batch_size": 3,
    }
    return TrainingArguments(output_dir=str(folder), **{**facts, **changes})


def trainer(folder: Path, model: nn.Module, **changes: BadValue) -> PrivateTrainer:
    """One that trains plainly; what differs goes to it or to its arguments."""
    own = {
        "plan": plan(),
        "payer": FakePayer(),
        "train_dataset": Texts(),
        "data_collator": default_data_collator,
    }
    known = {"eval_dataset", "callbacks", "losses", "eval_is_public", "processing_class", "by"}
    known |= {"compute_loss_func", "compute_metrics", "like", "name", "optimizers", *own}
    told = {key: value for key, value in changes.items() if key in known}
    rest = {key: value for key, value in changes.items() if key not in known}
    return PrivateTrainer(model=model, args=arguments(folder, **rest), **{**own, **told})


# Losses


@pytest.mark.parametrize(
    "make",
    [
        *(make for make, _ in MODELS.values()),
        lambda: bert(OF_TOKENS, num_labels=WORDS),
    ],
)
def test_an_example_s_own_loss_is_the_model_s_for_it_alone(make: Callable[[], nn.Module]) -> None:
    model = make()
    texts = Texts(labelled=isinstance(model, OF_SEQUENCES))
    collated = Collated(texts, default_data_collator, {**PADS})
    part = microbatch_of(collated, torch.arange(6).numpy())
    part["labels"] = part["labels"].clone()
    if part["labels"].dim() > 1:
        part["labels"][0, 1:3] = -100
    items = [dict(texts[place]) for place in range(6)]
    if part["labels"].dim() > 1:
        items[0]["labels"] = [*items[0]["labels"][:1], -100, -100, *items[0]["labels"][3:]]
    alone = torch.cat([model_s_own(model, item) for item in items])
    torch.testing.assert_close(own_losses(model, part), alone)


WORDS = 30
PADS = {"input_ids": 0, "attention_mask": 0, "labels": -100}


@pytest.mark.parametrize(
    ("problem", "labels"),
    [
        ("regression", torch.tensor([[0.5, 1.0], [2.0, -1.0]])),
        ("multi_label_classification", torch.tensor([[0.0, 1.0], [1.0, 1.0]])),
        (None, torch.tensor([[0.0, 1.0], [1.0, 0.0]])),
        (None, torch.tensor([1, 0])),
    ],
)
def test_classifiers_of_every_kind_have_their_own_losses(problem: str, labels: Tensor) -> None:
    model = bert(OF_SEQUENCES, num_labels=2, problem_type=problem)
    ids = torch.tensor([[1, 2, 3], [4, 5, 6]])
    found = own_losses(model, {"input_ids": ids, "labels": labels})
    for number in range(2):
        one = slice(number, number + 1)
        alone = bert(OF_SEQUENCES, num_labels=2, problem_type=problem)
        torch.testing.assert_close(
            found[number], alone(input_ids=ids[one], labels=labels[one]).loss
        )


def test_models_whose_losses_are_not_known_are_refused_by_name() -> None:
    part = {"input_ids": torch.ones(2, 3, dtype=torch.long)}
    with pytest.raises(Refused, match=r"GPT2LMHeadModel: .* with input_ids; give losses"):
        own_losses(gpt(), part)
    other = bert(BertForNextSentencePrediction)
    with pytest.raises(Refused, match="BertForNextSentencePrediction"):
        own_losses(other, {**part, "labels": torch.ones(2, dtype=torch.long)})
    with pytest.raises(Refused, match="Linear"):
        own_losses(nn.Linear(1, 1), {**part, "labels": part["input_ids"]})


# Training


@pytest.mark.parametrize("name", MODELS)
def test_a_trainer_moves_the_model_as_a_loop_over_examples(
    name: str, tmp_path: Path, drawn: list[list[int]]
) -> None:
    make, labelled = MODELS[name]
    model, other, texts = make(), make(), Texts(labelled=labelled)
    before = weights(model)
    made = plan(clip=0.5)
    output = trainer(tmp_path, model, plan=made, train_dataset=texts).train()
    assert output.global_step == len(drawn) == 4
    by_hand(other, texts, drawn, made, rate=1.0)
    close(moved(model, before), moved(other, before))


def test_units_are_sampled_and_clipped_as_one(tmp_path: Path, drawn: list[list[int]]) -> None:
    texts, model, other = Texts(), gpt(), gpt()
    before = weights(model)
    ids = [place % 20 for place in range(40)]
    given = Units(texts, ids, column="person", most=2)
    made = plan(unit=Unit("person"), records=20, clip=0.5)
    trainer(tmp_path, model, plan=made, train_dataset=given).train()
    by_hand(
        other,
        [(texts[place], texts[place + 20]) for place in range(20)],
        drawn,
        made,
        rate=1.0,
        alone=lambda model, pair: (model_s_own(model, pair[0]) + model_s_own(model, pair[1])) / 2,
    )
    close(moved(model, before), moved(other, before))


def test_losses_of_one_s_own(tmp_path: Path, drawn: list[list[int]]) -> None:
    model, other = gpt(), gpt()
    before = weights(model)

    def twice(model: nn.Module, inputs: dict[str, Any]) -> Tensor:
        return 2 * own_losses(model, inputs)

    trainer(tmp_path, model, losses=twice).train()
    by_hand(
        other,
        Texts(),
        drawn,
        plan(),
        rate=1.0,
        alone=lambda model, item: 2 * model_s_own(model, item),
    )
    close(moved(model, before), moved(other, before))


@pytest.mark.parametrize("problem", ["multi_label_classification", "regression"])
def test_several_labels_of_an_example_are_no_sequence(
    tmp_path: Path, drawn: list[list[int]], problem: str
) -> None:
    """The labels of an example are neither cut nor padded, as its sequence is."""
    model, other = (bert(OF_SEQUENCES, num_labels=3, problem_type=problem) for _ in range(2))
    before = weights(model)
    source = Texts()
    texts = [{**source[n], "labels": [1.0, 0.0, float(n % 2)]} for n in range(len(source))]
    trainer(tmp_path, model, train_dataset=texts, like=texts[:4]).train()
    by_hand(other, texts, drawn, plan(), rate=1.0, alone=model_s_own)
    close(moved(model, before), moved(other, before))


def test_a_run_is_paid_first_and_reported(tmp_path: Path) -> None:
    payer, made = FakePayer(), plan(multiplier=2)
    found = trainer(tmp_path, gpt(), payer=payer, plan=made, name="third try", by="ana")
    with pytest.raises(Refused, match="nothing was trained"):
        found.report()
    found.train()
    assert payer.charges == [made.privacy_loss]
    report = found.report()
    assert (report.done, report.taken, report.epsilon) == (4, 4, made.epsilon)
    assert (report.receipt.purpose, report.receipt.by) == ("third try", "ana")
    assert "NOT PRIVATE: step 4" in repr(found.not_private)


class Notes(TrainerCallback):  # type: ignore[misc]  # without types
    """Notes what it is called for."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.gradients: list[bool] = []
        self.logs: list[dict[str, float]] = []

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("on_") and name not in {"on_pre_optimizer_step", "on_log"}:
            return lambda *_, **__: self.events.append(name.removeprefix("on_"))
        return super().__getattribute__(name)

    def on_pre_optimizer_step(self, *_: Any, model: nn.Module, **__: Any) -> None:
        self.events.append("pre_optimizer_step")
        self.gradients.append(all(p.grad is not None for p in model.parameters()))

    def on_log(self, *_: Any, logs: dict[str, float], **__: Any) -> None:
        self.events.append("log")
        self.logs.append(dict(logs))


def test_callbacks_come_in_trainer_s_order_and_logs_hold_nothing_private(tmp_path: Path) -> None:
    notes, made = Notes(), plan(multiplier=2)
    found = trainer(
        tmp_path,
        gpt(),
        plan=made,
        callbacks=[notes],
        save_strategy="steps",
        save_steps=4,
        learning_rate=0.5,
        lr_scheduler_type="linear",
    )
    output = found.train()
    step = ["step_begin", "pre_optimizer_step", "optimizer_step", "step_end"]
    end = ["save", "epoch_end", "log", "train_end"]
    begin = ["init_end", "train_begin", "epoch_begin"]
    assert notes.events == [*begin, *step, *step, "log", *step, *step, "log", *end]
    assert notes.gradients == [True] * 4
    rates = [logs["learning_rate"] for logs in notes.logs[:2]]
    assert rates == [0.375, 0.125]
    spent = [logs["epsilon"] for logs in notes.logs[:2]]
    assert spent == [made.epsilon_after(2), made.epsilon_after(4)]
    kept = json.loads((tmp_path / "checkpoint-4" / "trainer_state.json").read_text())
    told = [*notes.logs, *kept["log_history"], output.metrics]
    assert not {"loss", "train_loss", "grad_norm"} & {name for logs in told for name in logs}
    assert math.isnan(output.training_loss)
    assert list(found.callback_handler.train_dataloader.__dict__) == ["steps"]
    with pytest.raises(Refused, match="drawn by the plan"):
        next(iter(found.get_train_dataloader()))


class Stops(TrainerCallback):  # type: ignore[misc]  # without types
    """Stops after some steps, in one way or the other."""

    def __init__(self, step: int, failure: type[BaseException] | None) -> None:
        self.step, self.failure = step, failure

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == self.step:
            if self.failure is not None:
                raise self.failure
            control.should_training_stop = True


@pytest.mark.parametrize("failure", [None, KeyboardInterrupt])
def test_a_stopped_run_goes_on_from_its_checkpoint(
    path: Path, tmp_path: Path, failure: type[BaseException] | None
) -> None:
    """Charged once; the step that the checkpoint does not have counts as made all the same."""
    changes: BadValue = {"save_strategy": "steps", "save_steps": 2, "lr_scheduler_type": "linear"}
    first = trainer(
        tmp_path, gpt(), payer=Ledger.open(path), callbacks=[Stops(3, failure)], **changes
    )
    if failure is None:
        first.train()
    else:
        with pytest.raises(failure):
            first.train()
    kept = tmp_path / "checkpoint-2"
    assert (kept / SAVED).exists()
    ledger, model = Ledger.open(path), gpt()
    second = trainer(tmp_path, model, payer=ledger, **changes)
    output = second.train(resume_from_checkpoint=str(kept))
    assert output.global_step == 4
    assert (second.report().done, second.report().taken) == (1, 4)
    assert second.lr_scheduler.last_epoch == 3  # as many as the model has
    assert [entry.kind for entry in ledger.history()].count(Kind.CHARGE) == 1


def test_no_step_of_a_finished_run_is_made_again(path: Path, tmp_path: Path) -> None:
    """A resumed model is the one that was saved; another plan, or no plan, resumes nothing."""
    changes: BadValue = {"save_strategy": "steps", "save_steps": 2, "payer": Ledger.open(path)}
    first = trainer(tmp_path, gpt(), **changes)
    first.train()
    model = gpt()
    second = trainer(tmp_path, model, **changes)
    second.train(resume_from_checkpoint=True)  # the last one
    assert second.report().done == 0
    assert torch.equal(weights(model), weights(first.model))
    kept = tmp_path / "checkpoint-2"
    again = trainer(tmp_path, gpt(), **changes)
    again.train(resume_from_checkpoint=str(kept))
    assert again.report().done == 0
    other = trainer(tmp_path, gpt(), plan=plan(multiplier=1), **changes)
    with pytest.raises(InvalidArgument, match="another plan"):
        other.train(resume_from_checkpoint=str(kept))
    (kept / SAVED).unlink()
    with pytest.raises(InvalidArgument, match=f"checkpoint-2 has no {SAVED}"):
        second.train(resume_from_checkpoint=str(kept))


def test_public_data_are_evaluated_and_decide(tmp_path: Path) -> None:
    notes = Notes()
    found = trainer(
        tmp_path,
        gpt(),
        eval_dataset=[{**Texts()[0]}, {**Texts()[0]}],
        eval_is_public=True,
        eval_strategy="steps",
        eval_steps=1,
        save_strategy="best",
        metric_for_best_model="loss",
        load_best_model_at_end=True,
        learning_rate=0.0,
        callbacks=[EarlyStoppingCallback(early_stopping_patience=2), notes],
    )
    assert found.train().global_step == 3  # nothing gets better
    assert notes.events.count("evaluate") == 3
    assert found.evaluate()["eval_loss"] > 0


def test_metrics_that_no_evaluation_computes_are_refused_before_the_charge(tmp_path: Path) -> None:
    payer = FakePayer()
    facts = {"eval_dataset": [{**Texts()[0]}], "eval_is_public": True, "eval_strategy": "steps"}
    with pytest.raises(InvalidArgument, match="metric_for_best_model = 'accuracy'"):
        trainer(tmp_path, gpt(), payer=payer, metric_for_best_model="accuracy", **facts).train()
    assert not payer.events
    for missing in ({}, {"eval_strategy": "no", "metric_for_best_model": "loss"}):
        changed = {**facts, **missing, "callbacks": [EarlyStoppingCallback()]}
        with pytest.raises(InvalidArgument, match="EarlyStoppingCallback waits for a metric"):
            trainer(tmp_path, gpt(), payer=payer, **changed)
    assert not payer.events
    own = {"compute_metrics": lambda _: {"accuracy": 1.0}, "eval_steps": 2}
    trainer(tmp_path, gpt(), metric_for_best_model="accuracy", **facts, **own).train()


def test_private_data_are_not_evaluated(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="eval_is_public=True"):
        trainer(tmp_path, gpt(), eval_dataset=Texts())
    found = trainer(tmp_path, gpt())
    for ask in (found.evaluate, found.predict):
        with pytest.raises(InvalidArgument, match="eval_is_public=True"):
            ask(Texts())


def test_words_are_masked_example_by_example(tmp_path: Path) -> None:
    """A collator that draws its own randomness, and makes labels."""
    from tokenizers import Tokenizer as Words
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

    words = Words(WordLevel({"[PAD]": 0, "[MASK]": 1, **{f"w{n}": n for n in range(2, 30)}}))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="[PAD]", mask_token="[MASK]"
    )
    seen = []

    def looking(model: nn.Module, inputs: dict[str, Any]) -> Tensor:
        seen.append(unfollowed(lambda: bool((inputs["labels"] == -100).any())))
        return own_losses(model, inputs)

    texts = [{"input_ids": text} for text in Texts().texts]
    found = trainer(
        tmp_path,
        bert(MASKED),
        train_dataset=texts,
        data_collator=DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.4),
        processing_class=tokenizer,
        losses=looking,
    )
    found.train()
    assert found.report().done == 4
    assert sum(seen) >= 4  # the steps; looks at made-up labels come in between


# What can't be obeyed


class Endless(IterableDataset):  # type: ignore[type-arg]
    def __iter__(self) -> Any:
        yield Texts()[0]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"gradient_accumulation_steps": 2}, "gradient_accumulation_steps = 2"),
        ({"max_grad_norm": 1.0}, "max_grad_norm = 1.0: each example is clipped"),
        ({"label_smoothing_factor": 0.1}, "label_smoothing_factor = 0.1"),
        ({"max_steps": 5}, "max_steps = 5: the plan has 4; give max_steps=plan.steps"),
        ({"max_steps": -1, "num_train_epochs": 2}, "max_steps = -1"),
        ({"auto_find_batch_size": True}, "auto_find_batch_size"),
        ({"neftune_noise_alpha": 5.0}, "neftune_noise_alpha"),
        ({"train_sampling_strategy": "group_by_length"}, "train_sampling_strategy"),
        ({"dataloader_drop_last": True}, "dataloader_drop_last"),
        ({"dataloader_num_workers": 2}, "dataloader_num_workers"),
        ({"include_num_input_tokens_seen": "all"}, "include_num_input_tokens_seen"),
        ({"optim": "galore_adamw_layerwise"}, "optim = galore_adamw_layerwise"),
        ({"compute_loss_func": lambda *_: 0}, "compute_loss_func"),
        ({"data_collator": DataCollatorWithFlattening()}, "DataCollatorWithFlattening packs"),
        ({"train_dataset": Endless()}, "train_dataset"),
        ({"train_dataset": None}, "train_dataset"),
    ],
)
def test_settings_that_can_not_be_obeyed_are_refused_by_name(
    changes: dict[str, BadValue], told: str, tmp_path: Path
) -> None:
    payer = FakePayer()
    with pytest.raises(InvalidArgument, match=told):
        trainer(tmp_path, gpt(), payer=payer, **changes)
    assert not payer.events


def test_arguments_that_are_changed_later_are_refused_too(tmp_path: Path) -> None:
    payer = FakePayer()
    found = trainer(tmp_path, gpt(), payer=payer)
    found.args.fp16 = True
    with pytest.raises(InvalidArgument, match=r"fp16 = True: .* use bf16"):
        found.train()
    found.args.fp16 = False
    with pytest.raises(InvalidArgument, match="Tuning"):
        found.train(trial={"learning_rate": 1.0})
    assert not payer.events


def test_a_ledger_s_refusal_leaves_the_model(tmp_path: Path) -> None:
    model = gpt()
    before = weights(model)
    with pytest.raises(Exception, match="would reach"):
        trainer(
            tmp_path, model, payer=Ledger.in_memory(unit=Unit.ROW, limit=Limit(1, 1e-5))
        ).train()
    assert torch.equal(weights(model), before)


class Centred(nn.Module):
    """Mixes examples."""

    def forward(self, data: Tensor) -> Tensor:
        return data - data.mean(0, keepdim=True)


def centred() -> nn.Module:
    model: Any = gpt()
    model.transformer.ln_f = nn.Sequential(model.transformer.ln_f, Centred())
    return model  # type: ignore[no-any-return]


def batch_normed() -> nn.Module:
    model: Any = bert(OF_SEQUENCES, num_labels=2)
    model.dropout = nn.BatchNorm1d(12)
    return model  # type: ignore[no-any-return]


def next_sentence() -> nn.Module:
    return bert(BertForNextSentencePrediction)


def counting(model: nn.Module, inputs: dict[str, Any]) -> Tensor:
    losses: Tensor = own_losses(model, inputs) / inputs["attention_mask"].sum()
    return losses


@pytest.mark.parametrize(
    ("make", "changes"),
    [
        (centred, {}),
        (batch_normed, {"train_dataset": Texts(labelled=True)}),
        (next_sentence, {}),
        (gpt, {"losses": counting, "like": Texts(number=8)}),
        (centred, {"like": Texts(number=8)}),
        (centred, {"losses": partial(own_losses), "like": Texts(number=8)}),
        (gpt, {"losses": lambda model, inputs: inputs["pixels"], "like": Texts(number=8)}),
    ],
)
def test_no_public_fact_costs_the_budget(
    make: Callable[[], nn.Module], changes: dict[str, BadValue], tmp_path: Path
) -> None:
    payer = FakePayer()
    with pytest.raises(Refused):
        trainer(tmp_path, make(), payer=payer, **changes).train()
    assert not payer.events


@pytest.mark.parametrize("name", MODELS)
def test_models_that_train_train_with_texts_like_them(name: str, tmp_path: Path) -> None:
    make, labelled = MODELS[name]
    like = Texts(number=8, labelled=labelled)
    given = trainer(tmp_path, make(), train_dataset=Texts(labelled=labelled), like=like)
    given.train()
    assert given.report().done == 4


WRITES: dict[str, Callable[[Any, Tensor], object]] = {
    "should_training_stop": lambda it, mean: setattr(it.control, "should_training_stop", mean > 0),
    "should_save": lambda it, mean: setattr(it.control, "should_save", mean > 0),
    "best_metric": lambda it, mean: setattr(it.state, "best_metric", mean),
    "log_history": lambda it, mean: it.state.log_history.append({"mean": mean}),
    "max_steps": lambda it, mean: setattr(it.args, "max_steps", 10**6),
    "mean": lambda it, mean: setattr(it, "mean", mean),
    "note": lambda it, mean: setattr(it.model.config, "note", mean),
    "n_inner": lambda it, mean: setattr(it.model.config, "n_inner", 7),
    "max_length": lambda it, mean: setattr(it.model.generation_config, "max_length", mean),
    "model_max_length": lambda it, mean: setattr(it.processing_class, "model_max_length", mean),
    "init_kwargs": lambda it, mean: it.processing_class.init_kwargs.update(mean=mean),
    "_tr_loss": lambda it, mean: setattr(it, "_tr_loss", mean),
    "callbacks": lambda it, mean: it.callback_handler.callbacks.append(mean),
    "stateful_callbacks": lambda it, mean: it.state.stateful_callbacks.update(own={"mean": mean}),
    "accelerator_config": lambda it, mean: setattr(it.args.accelerator_config, "mean", mean),
    "base_lrs": lambda it, mean: it.lr_scheduler.base_lrs.__setitem__(0, mean),
    "a callback's": lambda it, mean: setattr(
        it.callback_handler.callbacks[0], "a callback's", mean
    ),
}


NEVER_CALLED = (
    *("compute_loss", "training_step", "get_batch_samples", "_get_train_sampler"),
    "compute_loss_context_manager",
)


@pytest.mark.parametrize("name", NEVER_CALLED)
def test_methods_that_no_run_calls_are_refused(tmp_path: Path, name: str) -> None:
    """To override `compute_loss` is the usual way to change a loss."""
    payer = FakePayer()
    kind = type("Own", (PrivateTrainer,), {name: lambda *_: 0})
    with pytest.raises(InvalidArgument, match=f"{name}: a private run never calls it"):
        kind(
            model=gpt(),
            args=arguments(tmp_path),
            plan=plan(),
            payer=payer,
            train_dataset=Texts(),
            data_collator=default_data_collator,
        )
    it = trainer(tmp_path, gpt(), payer=payer)
    setattr(it, name, lambda *_: 0)
    with pytest.raises(InvalidArgument, match=f"{name}: a private run never calls it"):
        it.train()
    assert not payer.events


@pytest.mark.parametrize("by_items", [False, True])
def test_reading_items_writes_nothing_into_the_trainer(tmp_path: Path, *, by_items: bool) -> None:
    holder = list[Any]()

    def note(value: Any) -> None:
        if holder:
            holder[0].state.stateful_callbacks["own"] = {"n": int(value)}

    class Noted(Texts):
        def __getitem__(self, place: int) -> Any:
            if by_items:
                note(place)
            return super().__getitem__(place)

    def collate(rows: list[Any]) -> Any:
        if not by_items:
            note(rows[0]["input_ids"][0])
        return default_data_collator(rows)

    it = trainer(tmp_path, gpt(), like=Texts(), train_dataset=Noted(), data_collator=collate)
    holder.append(it)
    with pytest.raises(Refused, match="'stateful_callbacks' was written into the TrainerState"):
        it.train()
    assert "own" not in it.state.stateful_callbacks


def tokenizer() -> Any:
    made = Tokenizer(WordLevel({f"w{number}": number for number in range(WORDS)}, unk_token="w0"))
    made.pre_tokenizer = Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="w1", unk_token="w0")


def test_how_a_collator_cuts_texts_stays_out_of_the_files(tmp_path: Path) -> None:
    """The tokenizer keeps the last length that it was given, and each checkpoint has it."""
    own = tokenizer()

    def collate(rows: list[Any]) -> Any:
        own(["w2 w3"] * 2, padding="max_length", truncation=True, max_length=len(str(rows)))
        return default_data_collator(rows)

    it = trainer(
        tmp_path, gpt(), processing_class=own, data_collator=collate, save_strategy="steps"
    )
    before = own.backend_tokenizer.to_str()
    it.train()
    assert own.backend_tokenizer.to_str() == before
    files = [*tmp_path.rglob("tokenizer.json")]
    assert files
    for path in files:
        assert json.loads(path.read_text()) == json.loads(before)


def test_a_model_that_holds_private_data_is_not_saved(tmp_path: Path) -> None:
    payer = FakePayer()

    def losses(model: Any, inputs: dict[str, Any]) -> Tensor:
        if payer.charges:
            model.lm_head.weight.data.fill_(77)
        return own_losses(model, inputs)

    it = trainer(tmp_path, gpt(), payer=payer, losses=losses)
    with pytest.raises(Refused, match="holds private data"):
        it.train()
    with pytest.raises(Refused, match="nothing is saved"):
        it.save_model(str(tmp_path / "model"))
    assert not [*tmp_path.rglob("*.safetensors")]


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("name", WRITES)
def test_losses_write_no_attribute_of_the_trainer(
    tmp_path: Path, name: str, *, is_late: bool
) -> None:
    """A tensor as `should_training_stop` would tell by the number of steps how large a row is."""
    payer = FakePayer()

    def losses(model: nn.Module, inputs: dict[str, Any]) -> Tensor:
        found = own_losses(model, inputs)
        if payer.charges or not is_late:
            WRITES[name](it, found.detach().mean())
        return found

    it = trainer(tmp_path, gpt(), payer=payer, losses=losses, processing_class=tokenizer())
    with pytest.raises(Refused, match=f"{name!r} was written into the .* in a training step"):
        it.train()
    assert bool(payer.charges) == is_late
    assert not isinstance(it.control.should_training_stop, Tensor)
    assert not it.state.log_history
    assert not hasattr(it, "mean")
