"""What a model keeps must not change while it sees data, but by the optimizer's step.

A running mean is written by the forward pass, from the data and without noise. Whoever saves the
model saves it too. So is an attribute, or a parameter by way of its `.data`. A parametrization sees
weights alone, so what it keeps may change.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn.utils.parametrize import ParametrizationList

from discreet.errors import Refused
from discreet.train._attributes import Attributes


@dataclass(frozen=True, slots=True, repr=False)
class _Kept:
    """One buffer: where it is, how often it had been written, and a copy."""

    module: nn.Module
    name: str
    tensor: Tensor
    version: int
    copy: Tensor

    @property
    def is_same(self) -> bool:
        found = self.module._buffers.get(self.name)  # noqa: SLF001  # no public name sets one to a tensor of its own
        return found is self.tensor and found._version == self.version  # noqa: SLF001


class Buffers:
    """A model's buffers, watched over the steps of a run, and its parameters, without copies."""

    def __init__(self, model: nn.Module) -> None:
        """Copy the buffers."""
        self._model = model
        self.is_spoiled = False  # private data are in the model and can't be taken out
        self._kept: list[_Kept] = []
        self._versions: list[tuple[str, Tensor, int]] = []
        self.note()

    def note(self) -> None:
        """Take them as they are now, as public; copies are made of what changed only."""
        self._versions = []
        self._attributes = Attributes(self._model)
        buffers = [*_buffers(self._model)]
        if len(self._kept) == len(buffers) and all(kept.is_same for kept in self._kept):
            return
        self._kept = [
            _Kept(module, name, tensor, tensor._version, tensor.detach().clone())  # noqa: SLF001
            for module, name, tensor in buffers
        ]

    def note_parameters(self) -> None:
        """Take them as they are now."""
        named = self._model.named_parameters()
        self._versions = [(name, one, one._version) for name, one in named]  # noqa: SLF001

    @contextmanager
    def checked(self) -> Iterator[None]:
        """Check at the end, however that comes."""
        try:
            yield
        finally:
            self.check()

    def check(self) -> None:
        """Put back and refuse what was written since `note`; parameters can't be put back."""
        changed = self._attributes.changed()
        self._attributes.put_back()
        versions = self._versions
        written = [name for name, one, version in versions if one._version != version]  # noqa: SLF001
        lasting = (
            list(dict.fromkeys([*written, *self._attributes.changed()])) if changed else written
        )
        self.is_spoiled |= bool(lasting)
        self.check_buffers()
        if lasting:
            raise Refused(
                f"{lasting[0]} was written while the model saw data, without noise, and holds some "
                "now: load the model anew, and let the optimizer alone write its parameters (an "
                "Embedding without max_norm); keep nothing of a batch in the model"
            )
        if changed:
            raise Refused(
                f"{changed[0]} was written while the model saw data, without noise; it was put "
                "back: keep nothing of a batch in the model; a cache that depends on no data is to "
                "be there before the run, as after one call of the model on made-up data"
            )

    def check_buffers(self) -> None:
        """Put back and refuse buffers that were written since `note`."""
        changed = [kept for kept in self._kept if not kept.is_same]
        for kept in changed:
            kept.module._buffers[kept.name] = kept.copy  # noqa: SLF001
        if changed:
            self._kept = []
            kinds = sorted({f"{type(kept.module).__name__}.{kept.name}" for kept in changed})
            raise Refused(
                f"{', '.join(kinds)} was written while the model saw data, without noise; it was "
                "put back: use layers that keep nothing of a batch, such as GroupNorm in place of "
                "BatchNorm, as discreet.train.repair does, or set them to eval()"
            )


def _buffers(model: nn.Module) -> Iterator[tuple[nn.Module, str, Tensor]]:
    """All that may not change, each with where it is; parametrizations' may."""
    lists = (one for one in model.modules() if isinstance(one, ParametrizationList))
    may_change = {module for one in lists for module in one.modules()}
    for module in model.modules():
        if module not in may_change:
            for name, tensor in module.named_buffers(recurse=False):
                yield module, name, tensor
