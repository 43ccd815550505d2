"""Refuses models that write private data into themselves: only the optimizer may change a model.

A forward pass may write a running mean of the data into a buffer, without noise, and the buffer is
saved with the model. The same holds for attributes, and for parameters that are written through
`.data`. Buffers of parametrizations are put back (`discreet.train._state._parametrizations`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from torch import Tensor, nn

from discreet.errors import Refused
from discreet.train._state._attributes import Attributes
from discreet.train._state._checksums import Checksum, checksums
from discreet.train._state._parametrizations import Parametrizations, parts_of, refused


@dataclass(frozen=True, slots=True, repr=False)
class _Buffer:
    """One buffer: its place in the model, its version and checksum, and a copy."""

    module: nn.Module
    name: str
    tensor: Tensor
    version: int
    checksum: Checksum
    copy: Tensor

    def is_same(self, checksum: Checksum) -> bool:
        """Whether nothing was written since, if this is the checksum of its tensor now."""
        found = self.module._buffers.get(self.name)  # noqa: SLF001  # no public name sets one to a tensor of its own
        is_unwritten = found is self.tensor and found._version == self.version  # noqa: SLF001
        return is_unwritten and checksum == self.checksum


class Buffers:
    """Watches a model's buffers and attributes, and its parameters by their versions."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self.is_spoiled = False  # private data are in the model and can't be taken out
        self._copied: list[_Buffer] = []
        self._known: set[tuple[nn.Module, str]] = set()
        self._names: dict[nn.Module, set[str]] = {}  # of all buffers, also those that are None
        self._versions: list[tuple[str, Tensor, int]] = []
        self.parametrizations = Parametrizations(model)
        self.note()

    def note(self) -> None:
        """Take the present state as public; only changed buffers are copied."""
        self._versions = []
        self._attributes = Attributes(self._model)
        self.parametrizations.note()
        buffers = [*_buffers(self._model)]
        self._known = {(module, name) for module, name, _ in buffers}
        self._names = {one: {*one._buffers} for one in self._model.modules()}  # noqa: SLF001  # None
        if len(self._copied) == len(buffers) and not self._changed():
            return
        sums = checksums([tensor for *_, tensor in buffers])
        self._copied = [
            _Buffer(module, name, tensor, tensor._version, checksum, tensor.detach().clone())  # noqa: SLF001
            for (module, name, tensor), checksum in zip(buffers, sums, strict=True)
        ]

    def note_parameters(self) -> None:
        """Take the parameters' present versions as public."""
        named = self._model.named_parameters()
        self._versions = [(name, one, one._version) for name, one in named]  # noqa: SLF001

    @contextmanager
    def checked(self) -> Iterator[None]:
        """Check at the end, also after a failure."""
        try:
            yield
        finally:
            self.check()

    def check(self) -> None:
        """Refuse what was written since `note`, and put it back; parameters can't be put back."""
        changed = self._attributes.changed()
        if changed or self._attributes.has_derived:
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
                f"{lasting[0]} was written while the model saw data, without noise, and now holds "
                "private data: load the model anew, let only the optimizer write its parameters "
                "(an Embedding without max_norm), and store nothing of a batch in the model"
            )
        if changed:
            raise Refused(
                f"{changed[0]} was written while the model saw data, without noise; it was put "
                "back: store nothing of a batch in the model; fill a cache that depends on no data "
                "before the run, by one call of the model on made-up data"
            )

    def check_buffers(self) -> None:
        """Refuse buffers that were written since `note`, and put them back; those of
        parametrizations are put back in any case."""
        self.parametrizations.put_back()
        changed = self._changed()
        for one in changed:
            one.module._buffers[one.name] = one.copy  # noqa: SLF001
        found = ((module, name) for module, name, _ in [*_buffers(self._model)])
        new = [one for one in found if one not in self._known]
        for module, name in new:
            if name in self._names.get(module, ()):
                module._buffers[name] = None  # noqa: SLF001  # as it was
            else:
                delattr(module, name)
        if changed or new:
            self._copied = []
            raise refused([*((one.module, one.name) for one in changed), *new])

    def _changed(self) -> list[_Buffer]:
        """The buffers that were written since they were copied."""
        sums = checksums([one.tensor for one in self._copied])
        both = zip(self._copied, sums, strict=True)
        return [one for one, checksum in both if not one.is_same(checksum)]


def _buffers(model: nn.Module) -> Iterator[tuple[nn.Module, str, Tensor]]:
    """All buffers but those of parametrizations: module, name and tensor."""
    may_change = parts_of(model)
    for module in model.modules():
        if module not in may_change:
            for name, tensor in module.named_buffers(recurse=False):
                yield module, name, tensor
