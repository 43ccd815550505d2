"""Refuses losses that write into the optimizer, which would apply it to the model without noise.

A learning rate, a momentum or a hook made of private rows changes the weights as much as it likes,
and a checkpoint holds it. Settings are compared by content, and the state's tensors by their
versions and sums.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from discreet.errors import Refused
from discreet.train._attributes import Content, content_of
from discreet.train._trials import unwrapped

_PARTS = ("param_groups", "state")


class OptimizerWrites:
    """The contents of an optimizer when this is made."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = unwrapped(optimizer)
        self._groups = [_copied(group) for group in self._optimizer.param_groups]
        self._before = _contents(self._optimizer)

    def refuse(self) -> None:
        """Refuse other contents than before, and put back the settings of groups."""
        now = _contents(self._optimizer)
        changed = [key for key in {**self._before, **now} if self._before.get(key) != now.get(key)]
        if not changed:
            return
        self._put_back()
        raise Refused(
            f"the losses wrote {changed[0]} of the optimizer while they saw data: the optimizer "
            "would apply it without noise; let schedulers set learning rates by the step alone"
        )

    def _put_back(self) -> None:
        groups = self._optimizer.param_groups
        del groups[len(self._groups) :]
        for group, before in zip(groups, self._groups, strict=False):
            group.clear()
            group.update(before)


@contextmanager
def refuse_optimizer_writes(optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """Refuse what the block writes into the optimizer."""
    before = OptimizerWrites(optimizer)
    yield
    before.refuse()


def _copied(group: dict[str, Any]) -> dict[str, Any]:  # Any: settings of any optimizer
    """The group's settings, of which tensors are copied; its parameters are the same."""
    return {
        key: value.clone() if isinstance(value, Tensor) else value for key, value in group.items()
    } | {"params": [*group["params"]]}


def _contents(optimizer: torch.optim.Optimizer) -> dict[str, Content]:
    """Contents by name."""
    groups, own = optimizer.param_groups, vars(optimizer)
    parameters = {id(one) for group in groups for one in group["params"]}
    found: dict[str, Content] = {"the number of groups": len(groups)}
    for number, group in enumerate(groups):
        found |= {f"{key} (group {number})": content_of(group[key], parameters) for key in group}
    for name, value in own.items():
        if name not in _PARTS:
            found[name] = content_of(value, parameters)
    tensors = list[Tensor]()
    for parameter, state in optimizer.state.items():
        for key, value in state.items():
            name = f"the state {key} ({id(parameter)})"
            if isinstance(value, Tensor):
                tensors.append(value)
                found[name] = id(value), value._version  # noqa: SLF001  has no public name
            else:
                found[name] = content_of(value, parameters)
    found["the state"] = _sums(tensors)
    return found


def _sums(tensors: list[Tensor]) -> Content:
    """The sum of each tensor, as text: writes through ``.data`` have no versions."""
    sums = [one.detach().sum().double().cpu() for one in tensors if one.layout == torch.strided]
    return repr(torch.stack(sums).tolist()) if sums else ""
