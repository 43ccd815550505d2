"""What a model keeps besides its parameters must not change while it sees data.

A running mean is written by the forward pass, from the data and without noise. Whoever saves the
model saves it too.
"""

from dataclasses import dataclass

from torch import Tensor, nn

from discreet.errors import Refused


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
    """A model's buffers, watched over the steps of a run."""

    def __init__(self, model: nn.Module) -> None:
        """Copy them."""
        self._model = model
        self._kept: list[_Kept] = []
        self.note()

    def note(self) -> None:
        """Take them as they are now, as public; copies are made of what changed only."""
        if len(self._kept) == sum(1 for _ in self._model.buffers(recurse=True)) and all(
            kept.is_same for kept in self._kept
        ):
            return
        self._kept = [
            _Kept(module, name, tensor, tensor._version, tensor.detach().clone())  # noqa: SLF001
            for module in self._model.modules()
            for name, tensor in module.named_buffers(recurse=False)
        ]

    def check(self) -> None:
        """Put back and refuse what was written since `note`."""
        changed = [kept for kept in self._kept if not kept.is_same]
        for kept in changed:
            kept.module._buffers[kept.name] = kept.copy  # noqa: SLF001
        if changed:
            self._kept = []
            kinds = sorted({f"{type(kept.module).__name__}.{kept.name}" for kept in changed})
            raise Refused(
                f"{', '.join(kinds)} was written while the model saw data, without noise; it was "
                "put back: use layers that keep nothing of a batch, such as GroupNorm in place of "
                "BatchNorm, or set them to eval()"
            )
