"""Buffers of parametrizations, which go on by the weights alone, once a step.

A parametrization gets weights only, so that its buffers may change, such as those of a spectral
norm. But how often it is computed depends on the batch, and the model's own forward pass may write
into it. So each microbatch begins with the buffers of the step's begin.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import ParametrizationList
from torch.nn.utils.spectral_norm import SpectralNorm

from discreet.errors import Refused
from discreet.train._tags._by_tensor import Tags


class Parametrizations:
    """The buffers of a model's parametrizations when this is made, or at the last `note`."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self.note()

    def note(self) -> None:
        """Take the present buffers as those that depend on no batch."""
        self._lists = _lists(self._model)
        with _unseen():
            self._before = [
                (module, {**module._buffers}, _copies(module))  # noqa: SLF001  no public name sets
                for module in parts(self._lists)
            ]

    def put_back(self) -> None:
        """Restore them, also where they were replaced or written through ``.data``."""
        with _unseen():
            for module, buffers, copies in self._before:
                registry = module._buffers  # noqa: SLF001  as above
                registry.clear()
                registry.update(buffers)
                for name, copy in copies.items():
                    _fill(registry[name], copy)

    def advance(self) -> None:
        """Compute each parametrization once, from the weights."""
        with torch.no_grad():
            for one in self._lists:
                if any(True for _ in one.buffers()):
                    one()


def parts(lists: Iterable[ParametrizationList]) -> Iterable[nn.Module]:
    """All modules of these parametrizations."""
    return dict.fromkeys(module for one in lists for module in one.modules())


def parts_of(model: nn.Module) -> set[nn.Module]:
    """All modules of a model's parametrizations."""
    return {*parts(_lists(model))}


def refuse_data(model: nn.Module, tags: Tags) -> None:
    """Refuse data that a forward pass wrote into buffers of parametrizations."""
    written = [
        (module, name)
        for module in parts(_lists(model))
        for name, one in module.named_buffers(recurse=False)
        if tags.depends(one)
    ]
    if written:
        raise refused(written)


def refused(written: Iterable[tuple[nn.Module, str]]) -> Refused:
    """The error for buffers that were written."""
    places = [*written]
    kinds = sorted({f"{type(module).__name__}.{name}" for module, name in places})
    mend = (
        "use layers that store nothing of a batch, such as GroupNorm in place of BatchNorm, as "
        "discreet.train.repair does, or set them to eval()"
    )
    hooks = [hook for module, _ in places for hook in module._forward_pre_hooks.values()]  # noqa: SLF001  no public name
    if any(isinstance(hook, SpectralNorm) for hook in hooks):
        mend = "use torch.nn.utils.parametrizations.spectral_norm in place of utils.spectral_norm"
    return Refused(
        f"{', '.join(kinds)} was written while the model saw data, without noise; it was put back: "
        f"{mend}"
    )


@contextmanager
def _unseen() -> Iterator[None]:
    """Within, no mode follows what is called."""
    with torch._C.DisableTorchFunction(), torch.no_grad():  # noqa: SLF001  has no public name
        yield


def _lists(model: nn.Module) -> list[ParametrizationList]:
    return [one for one in model.modules() if isinstance(one, ParametrizationList)]


def _copies(module: nn.Module) -> dict[str, Tensor]:
    return {name: one.clone() for name, one in module.named_buffers(recurse=False)}


def _fill(buffer: Tensor | None, copy: Tensor) -> None:
    assert buffer is not None
    if buffer.shape != copy.shape:
        buffer.resize_(copy.shape)
    buffer.copy_(copy)
