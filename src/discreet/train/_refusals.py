"""Refuses models, optimizers, data and plans that don't go together, before the charge."""

import torch
from torch import nn

from discreet.errors import InvalidArgument
from discreet.train._batches import _data
from discreet.train._batches._data import Data
from discreet.train._batches._units import Units, rows_of
from discreet.train._plans._adaptive import Adaptive
from discreet.train._plans._plan import TrainingPlan
from discreet.train._plans._sampling import SizeDeclaration
from discreet.train._randomness._own_generators import refuse_own_generators
from discreet.train._state._trials import unwrapped
from discreet.train._step_inputs import Examples, clipping_of, trainable

_SEVERAL = ("DataParallel", "DistributedDataParallel", "FullyShardedDataParallel", "FSDPModule")


def check_run(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    train_set: "Data | Units",
    plan: TrainingPlan,
) -> None:
    """Check everything but the number of units."""
    if not isinstance(plan, TrainingPlan):
        raise InvalidArgument(f"plan = {plan!r}: make one by discreet.train.plan")
    if isinstance(train_set, Units):
        _data.check_data(train_set.data, train_set.ids, has_ids=True)
    else:
        _data.check_data(train_set)
    refuse_own_generators(rows_of(train_set))
    column = train_set.column if isinstance(train_set, Units) else None
    if column != plan.unit.column:
        raise InvalidArgument(
            f"the plan protects {plan.unit}: give the rows as they are for Unit.ROW, and as "
            "Units(..., column=) with the unit's column for any other unit"
        )
    _check_model(model)
    names = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    for phase in plan.phases:
        if not isinstance(phase.clip, Adaptive):
            clipping_of(phase, plan.noise.order).groups(names)
    _check_processes(model, optimizer)
    check_optimizer(optimizer, model)


def check_number(train_set: "Data | Units", plan: TrainingPlan) -> None:
    """Refuse data of another size than declared, for samplings that replace units.

    There all neighbours have the same number of units, which is public. For other samplings nothing
    is counted.
    """
    if plan.sampling.declared is not SizeDeclaration.EXACT:
        return
    found = Examples.of(train_set).count
    if found != plan.records:
        raise InvalidArgument(
            f"records = {plan.records}, but the data have {found}: {plan.sampling!r} needs the "
            "exact number, which is public where units are replaced"
        )


def check_loss_function(losses: object) -> None:
    """Refuse losses that can't be called."""
    if not callable(losses):
        raise InvalidArgument(
            f"losses = {losses!r}: give a function that returns one loss for each example"
        )


def _check_model(model: nn.Module) -> None:
    # 1. the module
    if not isinstance(model, nn.Module):
        raise InvalidArgument(f"model is a {type(model).__name__}: give a torch.nn.Module")
    if any(isinstance(one, torch.jit.ScriptModule) for one in model.modules()):
        raise InvalidArgument(
            "model: a part of it is scripted or traced, and its calls can't be followed; give the "
            "module that it was made of"
        )
    if not trainable(model):
        raise InvalidArgument("model: none of its parameters requires a gradient")
    # 2. each parameter
    for name, parameter in model.named_parameters():
        if isinstance(parameter, nn.UninitializedParameter):
            raise InvalidArgument(
                f"model: {name!r} has no shape yet; call the model once, on made-up data"
            )
        if parameter.is_inference():
            raise InvalidArgument(
                f"model: {name!r} was made in torch.inference_mode, and can't be trained; make the "
                "model outside of it"
            )
        if parameter.is_meta:
            raise InvalidArgument(
                f"model: {name!r} is on the device meta, where nothing is computed; load its values"
            )
        if parameter.requires_grad and parameter.is_complex():
            raise InvalidArgument(
                f"model: {name!r} is complex, and half of its gradient would be lost; keep real "
                "and imaginary parts as two real parameters"
            )
    # 3. all of them together
    devices = sorted({str(parameter.device) for parameter in trainable(model)})
    if len(devices) > 1:
        raise InvalidArgument(
            f"model: its trained parameters are on {' and '.join(devices)}, and have one norm "
            "together; move the model to one device"
        )


def check_optimizer(optimizer: torch.optim.Optimizer, model: nn.Module) -> None:
    """Refuse an optimizer that steps other parameters than the trained ones."""
    if not hasattr(optimizer, "param_groups"):
        raise InvalidArgument(
            f"optimizer = {optimizer!r}: give one that is made, like SGD(model.parameters(), lr=1)"
        )
    if isinstance(unwrapped(optimizer), torch.optim.LBFGS):
        raise InvalidArgument("optimizer: LBFGS reads the data several times in a step; take SGD")
    stepped = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    if not stepped <= {id(parameter) for parameter in model.parameters()}:
        raise InvalidArgument(
            "optimizer: it has parameters that the model hasn't; their gradients would be without "
            "noise"
        )
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and id(parameter) not in stepped:
            raise InvalidArgument(
                f"optimizer: it hasn't {name!r}, which requires a gradient, and would never learn; "
                "make the optimizer once the model is whole, or freeze what is not to be trained"
            )


def _check_processes(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Refuse several processes, and optimizers that skip steps or scale gradients.

    Several processes would each draw batches and noise of their own, which no plan prices.
    Accelerate's optimizers are accepted, unless they accumulate or scale gradients.
    """
    # 1. processes
    names = {kind.__name__ for module in model.modules() for kind in type(module).__mro__}
    for name in _SEVERAL:
        if name in names:
            raise InvalidArgument(
                f"model: {name} spreads it over several devices; give the module that it wraps, "
                "on one device"
            )
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        number = distributed.get_world_size()
        if number > 1:
            raise InvalidArgument(
                f"{number} processes train together: each would add noise of its own; start one"
            )
    # 2. the optimizer
    scaler = getattr(optimizer, "scaler", None)
    if scaler is not None and scaler.is_enabled():
        raise InvalidArgument(
            "optimizer: its gradient scaler (float16) would scale noise and sums; use bfloat16, "
            "which needs none"
        )
    steps = getattr(getattr(optimizer, "gradient_state", None), "num_steps", 1)
    if steps != 1:
        raise InvalidArgument(
            f"optimizer: it steps once in {steps} times (gradient accumulation); leave that to "
            "the plan, whose batches are computed in parts that fit into memory"
        )
