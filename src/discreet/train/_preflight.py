"""Refuses public mistakes before a run is charged.

Nothing is read here but types, shapes of tensors and arrays, and public examples. Data sets that
give items by number show neither, so that they need public examples in the same form.
"""

from functools import partial

import torch
from torch import nn

from discreet import _checks
from discreet.errors import InvalidArgument
from discreet.train._batches import _data
from discreet.train._batches._collated import Collated, Microbatch
from discreet.train._batches._data import Data, Invented
from discreet.train._batches._units import Units, rows_of
from discreet.train._checks._checking import check_alone
from discreet.train._checks._made_up import Values, copies_of_first, tensors
from discreet.train._checks._microbatch import MicrobatchSize
from discreet.train._checks._model_check import (
    Losses,
    ModelCheck,
    Public,
    most_rows_of_a_batch,
    public_rows_of_a_batch,
    rows_of_a_batch,
)
from discreet.train._plans._noise import ExactGaussian
from discreet.train._plans._plan import TrainingPlan
from discreet.train._randomness._own_generators import refuse_counters, refuse_own_generators
from discreet.train._refusals import check_loss_function, check_run
from discreet.train._state._attributes import Attributes
from discreet.train._state._buffers import Buffers
from discreet.train._state._optimizer_writes import refuse_optimizer_writes
from discreet.train._state._trials import try_optimizer
from discreet.train._step_inputs import clipping_of

Like = Data | Units | Invented


def preflight(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    train_set: "Data | Units",
    plan: TrainingPlan,
    *,
    losses: Losses,
    like: "Like | None",
    at_once: int | None,
) -> tuple[MicrobatchSize, Public | None]:
    """Refuse what can't be trained; returns the size of microbatches, and the public examples."""
    check_loss_function(losses)
    check_run(model, optimizer, train_set, plan)
    try_optimizer(optimizer)
    public = None if like is None else _public(train_set, like)
    size = MicrobatchSize()
    if at_once is not None:
        size = MicrobatchSize(_checks.positive_count(at_once=at_once), is_chosen=True)
    buffers, attributes = Buffers(model), Attributes(model)
    try:
        with refuse_optimizer_writes(optimizer):
            if public is not None and public.are_read_alike:
                _check_items(public)
            _check_model(model, losses, train_set, plan, size, public)
    except BaseException:
        attributes.put_back()
        raise
    finally:
        buffers.check_buffers()
    return size, public


def _public(train_set: "Data | Units", like: "Like") -> Public:
    if isinstance(like, Invented):
        return Public(
            _data.public(rows_of(train_set), like.data), Values.INVENTED, are_read_alike=True
        )
    given, examples = rows_of(train_set), rows_of(like)
    are_read_alike = isinstance(given, Collated) or type(given) is type(examples)
    return Public(_data.public(given, examples), Values.GIVEN, are_read_alike)


def _check_items(public: Public) -> None:
    """Refuse generators that the code of items makes when it is first called, and counters."""
    refuse_counters(public.data, partial(public.microbatch_of, 1), name="like")
    refuse_own_generators(public.data, name="like")


def _check_model(  # noqa: PLR0917  # called in one place
    model: nn.Module,
    losses: Losses,
    train_set: "Data | Units",
    plan: TrainingPlan,
    size: MicrobatchSize,
    like: Public | None,
) -> None:
    """Check the model and the losses on public examples, and in the form of the data."""
    # 1. examples in the form of the data
    form = _data.of_zeros(rows_of(train_set))
    examples = form if like is None else like.data
    if examples is None:
        raise InvalidArgument(
            "train_set: the form of its rows is not known before they are read, and that is after "
            "the charge; give like=: two public examples or more in the form of train_set, such as "
            "invented ones, or give tensors or arrays by name"
        )
    # 2. compare the engine with a plain loop on them
    units = train_set if isinstance(train_set, Units) else None
    if isinstance(plan.noise, ExactGaussian):
        _check_alone(model, losses, form, like, most=units.most if units else 1)
        return
    check = ModelCheck(
        model,
        losses,
        clipping_of(plan.phase_now(0, ()), plan.noise.order),
        examples,
        size,
        by_unit=units is not None,
        rows=rows_of_a_batch(plan, units),
        most_rows=most_rows_of_a_batch(plan, units),
        whole=public_rows_of_a_batch(plan, units),
        like=like,
    )
    check.first()
    for other in _other_form(form, like):
        check.again(other)


def _check_alone(
    model: nn.Module, losses: Losses, form: Data | None, like: Public | None, *, most: int
) -> None:
    """Check units of one row and of the most rows, in each form that is known."""
    for rows in sorted({1, most}):
        if like is None:
            assert form is not None
            check_alone(model, losses, _data.of_one(form, rows))
            continue
        check_alone(model, losses, like.microbatch_of(rows), values=like.values)
        for microbatch in _other_form(form, like):
            fitted = like.in_shape_of(microbatch)
            if fitted is None:
                check_alone(model, losses, copies_of_first(microbatch, rows))
            else:
                check_alone(model, losses, fitted(rows), values=like.values)


def _other_form(form: Data | None, like: Public | None) -> list[Microbatch]:
    """One example in the form of the data, if public examples have another form."""
    if form is None or like is None:
        return []
    microbatch = _data.of_one(form, 1)
    forms = [
        [(t.dtype, t.shape[1:]) for t in tensors(one)]
        for one in (microbatch, like.microbatch_of(1))
    ]
    return [microbatch] if forms[0] != forms[1] else []
