"""Trial steps of optimizers and schedulers on small stand-ins, before a run is charged.

Only PyTorch's own are tried: steps of others may have effects that no copy undoes.
"""

import copy
import inspect
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

from discreet.errors import InvalidArgument

_SIDE = 2  # of a stand-in, in each dimension


def unwrapped(optimizer: Any) -> torch.optim.Optimizer:  # Any: Accelerate's holds another one
    inner: torch.optim.Optimizer = getattr(optimizer, "optimizer", optimizer)
    return inner


def try_optimizer(optimizer: torch.optim.Optimizer) -> None:
    """Refuse an optimizer that fails in its first step, or whose step takes arguments."""
    inner = unwrapped(optimizer)
    name = type(inner).__name__
    if needed := _needed(inner.step):
        raise InvalidArgument(
            f"optimizer: {name}.step needs {needed!r}, and a private run calls step() "
            "once for each batch; take an optimizer such as SGD or Adam"
        )
    if inner.state or not _is_torchs(inner):  # one that has stepped can step
        return
    found = _stand_ins(inner)
    if found is None:
        return
    stand_in = found[0]
    for group in stand_in.param_groups:
        for parameter in group["params"]:
            parameter.grad = torch.zeros_like(parameter)
    try:
        stand_in.step()
    except Exception as error:
        raise InvalidArgument(
            f"optimizer: {name} can't make a step with dense gradients: {error}; change its "
            "arguments, or take another one"
        ) from error


def try_schedulers(optimizer: torch.optim.Optimizer, schedulers: Sequence[Any], steps: int) -> None:
    """Refuse schedulers that fail within ``steps`` steps, or that are of another optimizer."""
    inner = unwrapped(optimizer)
    for given in schedulers:
        # 1. what can be said without a step
        scheduler = getattr(given, "scheduler", given)  # Accelerate's holds another one
        name = type(scheduler).__name__
        its_own = unwrapped(getattr(scheduler, "optimizer", inner))
        if its_own is not inner:
            raise InvalidArgument(
                f"schedulers: {name} is of another optimizer; make it with the one that is trained"
            )
        if isinstance(scheduler, ReduceLROnPlateau):
            continue
        if needed := _needed(scheduler.step):
            raise InvalidArgument(
                f"schedulers: {name}.step needs {needed!r}, and a private run calls step() after "
                "each step of the optimizer; take one that depends on the step only"
            )
        # 2. all steps, on a stand-in
        if not _is_torchs(scheduler):
            continue
        found = _stand_ins(inner, scheduler)
        if found is None:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # no optimizer steps in between
                for _ in range(steps):
                    found[1].step()
        except Exception as error:
            raise InvalidArgument(
                f"schedulers: {name} can't make the plan's {steps} steps: {error}; make one "
                "for this number"
            ) from error


def _needed(step: Any) -> str | None:  # Any: a method of any class
    """The first argument that a step needs, or None if it needs none."""
    for one in inspect.signature(step).parameters.values():
        is_variable = one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        is_needed = one.default is one.empty and not is_variable
        if is_needed and one.name != "self":  # schedulers replace step by a function of self
            return one.name
    return None


def _is_torchs(one: object) -> bool:
    return type(one).__module__.startswith("torch.optim.")


def _stand_ins(optimizer: torch.optim.Optimizer, *others: Any) -> Any:  # Any: the same types
    """Copies that step small parameters, or None if something can't be copied."""
    own = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    memo: dict[int, Any] = {id(parameter): _small(parameter) for parameter in own}
    try:
        return copy.deepcopy((optimizer, *others), memo)
    except Exception:  # noqa: BLE001  # a user's own objects may refuse it for any reason
        return None


def _small(parameter: Tensor) -> nn.Parameter:
    shape = [min(size, _SIDE) for size in parameter.shape]
    return nn.Parameter(torch.zeros(shape, dtype=parameter.dtype, device=parameter.device))
