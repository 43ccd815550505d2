"""Random numbers that a batch draws, and that each of its examples gets again when it is alone."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor
from torch.overrides import TorchFunctionMode

from tests.train.as_of_pytorch import as_of_pytorch

_DROPOUTS = (F.dropout, F.dropout1d, F.dropout2d, torch.dropout)
_INTO = (Tensor.bernoulli_, Tensor.normal_, Tensor.uniform_, Tensor.exponential_)
_MADE = (
    *(torch.rand, torch.randn, torch.randint, torch.rand_like, torch.randn_like, torch.normal),
    *(torch.bernoulli, torch.poisson, torch.multinomial, torch.randperm),
    *(torch._standard_gamma, torch._sample_dirichlet),
)


@as_of_pytorch
class Recorded(TorchFunctionMode):
    """Keeps the numbers of a batch when it is first entered.

    Then ``again`` gives them to the batch, or those of one example, in the same order.

    Examples lie along the first dimension of ``examples`` rows; numbers without one are for all.
    """

    def __init__(self, examples: int) -> None:
        super().__init__()
        self._examples = examples
        self._found: list[Tensor] = []
        self._is_again = False
        self._place: int | None = None
        self._next = 0

    def again(self, place: int | None = None) -> "Recorded":
        """The same numbers, of one example, or of all."""
        self._is_again, self._place, self._next = True, place, 0
        return self

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # Any: PyTorch's functions and what they take
        keywords = kwargs or {}
        if func in _DROPOUTS:
            chance = args[1] if len(args) > 1 else keywords.get("p", 0.5)
            data: Tensor = args[0]
            ones = torch.ones_like(data)
            return data * self._numbers(lambda: func(ones, chance, True))
        if func in _INTO:
            numbers = self._numbers(lambda: func(torch.empty_like(args[0]), *args[1:], **keywords))
            return args[0].copy_(numbers)
        if func in _MADE:
            return self._numbers(lambda: func(*args, **keywords))
        return func(*args, **keywords)

    def _numbers(self, draw: Callable[[], Tensor]) -> Tensor:
        if not self._is_again:
            self._found.append(draw().detach().clone())
            return self._found[-1].clone()
        found = self._found[self._next]
        self._next += 1
        for dim, length in enumerate(found.shape):
            if length == self._examples and self._place is not None:
                return found.narrow(dim, self._place, 1).clone()
        return found.clone()
