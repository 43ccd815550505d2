"""Refuses data in the buffers of parametrizations, which may change with the weights.

`Buffers` leaves these out: a parametrization gets weights only, such as those whose largest
singular value it follows. Elsewhere a forward pass could write rows of the batch into them.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn
from torch.nn.utils.parametrize import ParametrizationList

from discreet.errors import Refused
from discreet.train._tags import Tags


def parametrizations(model: nn.Module) -> set[nn.Module]:
    """All modules within the model's parametrizations."""
    lists = (one for one in model.modules() if isinstance(one, ParametrizationList))
    return {module for one in lists for module in one.modules()}


@contextmanager
def refuse_data_in_parametrizations(model: nn.Module, tags: Tags) -> Iterator[None]:
    """Refuse buffers of parametrizations that depend on data at the end, and put them back."""
    modules = parametrizations(model)
    before = [(one, _copies(one)) for one in modules]
    try:
        yield
        for one in modules:
            for name, tensor in one.named_buffers(recurse=False):
                if tags.depends(tensor):
                    raise Refused(
                        f"{type(one).__name__}.{name} was written while the model saw data, "
                        "without noise; it was put back: a parametrization's buffers may change "
                        "with its weights only"
                    )
    except BaseException:
        for one, copies in before:
            one._buffers.clear()  # noqa: SLF001  no public name sets one to a tensor of its own
            one._buffers.update(copies)  # noqa: SLF001  as above
        raise


def _copies(module: nn.Module) -> dict[str, Tensor | None]:
    buffers = module._buffers.items()  # noqa: SLF001  as above
    return {name: None if one is None else one.detach().clone() for name, one in buffers}
