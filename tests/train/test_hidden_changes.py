"""No change in place may be hidden from PyTorch's count of changes.

The backward pass reads the data that a layer used. If a hidden change puts another
example's number into them, it moves the gradients of all.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import pytest
import torch
from torch import Tensor
from torch.autograd import grad_mode

from discreet.errors import Refused
from discreet.train import Flat, check, clipped_sum
from tests.train.layers import WIDTH, Layers, of, summed

NUMBER = 5
Hide = Callable[[Tensor], AbstractContextManager[object]]

_SET = torch._C._autograd._unsafe_set_version_counter
_KEY = torch._C.DispatchKey.ADInplaceOrView


class put_back(nullcontext[None]):  # noqa: N801  used as a function
    """Set the count to its number before, which is known: nothing reads it."""

    def __init__(self, changed: Tensor) -> None:
        super().__init__()
        self.changed = changed

    def __exit__(self, *_: object) -> None:
        _SET((self.changed,), (0,))


class excluded(nullcontext[None]):  # noqa: N801  as above
    """Leave out the part of PyTorch that counts."""

    def __init__(self, _: Tensor) -> None:
        super().__init__()

    def __enter__(self) -> None:
        torch._C._dispatch_tls_set_dispatch_key_excluded(_KEY, True)

    def __exit__(self, *_: object) -> None:
        torch._C._dispatch_tls_set_dispatch_key_excluded(_KEY, False)


HIDING: dict[str, Hide] = {
    "kept": grad_mode._unsafe_preserve_version_counter,
    "put back": put_back,
    "below": lambda _: torch._C._AutoDispatchBelowADInplaceOrView(),
    "excluded": excluded,
}
CHANGES: dict[str, Callable[[Tensor, Tensor], object]] = {
    "in place": lambda z, factor: z.mul_(factor),
    "several": lambda z, factor: torch._foreach_mul_([z], factor),
    "out": lambda z, factor: torch.mul(z, factor, out=z),
    "an item": lambda z, factor: z.__setitem__(..., z * factor),
    "of a view": lambda z, factor: z.view(-1).mul_(factor),
    "of a detached one": lambda z, factor: z.detach().mul_(factor),
    "of an operator": torch.ops.aten.mul_.Tensor,
}


USES: dict[
    str, Callable[[Layers, Tensor, Tensor], Tensor]
] = {  # what keeps z for the backward pass
    "PyTorch": lambda m, x, z: torch.mul(m.layer(x), z),
    "a rule": lambda m, x, z: torch.mul(m.layer(z), x),
}


def of_all(x: Tensor) -> Tensor:
    """-1 if some example is large, otherwise 1."""
    return 1 - 2 * (x.detach() > 0.99).any().to(x.dtype)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("hidden", HIDING)
@pytest.mark.parametrize("name", CHANGES)
def test_hidden_changes_of_data_are_refused(name: str, hidden: str, use: str) -> None:
    def losses(m: Layers, x: Tensor) -> Tensor:
        z = x.detach().new_ones(x.shape) if use == "PyTorch" else x.detach() * 0 + 1
        found = USES[use](m, x, z)
        with torch.no_grad(), HIDING[hidden](z):
            CHANGES[name](z, of_all(x))
        return summed(found)

    model, data = Layers(losses).double(), of(NUMBER, WIDTH)
    with pytest.raises(Refused, match=r"count of changes"):
        clipped_sum(model, lambda: model(data), NUMBER, Flat(1.0), batch=data)


@pytest.mark.parametrize("name", ["in place", "out", "an item", "of a view"])
def test_changes_that_are_counted_train(name: str) -> None:
    """By a number that is the same for all data, before anything keeps the tensor."""

    def losses(m: Layers, x: Tensor) -> Tensor:
        z = x.detach() * 1
        with torch.no_grad():
            CHANGES[name](z, torch.tensor(2.0, dtype=x.dtype))
        return summed(m.layer(x) * z)

    model = Layers(losses).double()
    check(model, model, of(NUMBER, WIDTH))
