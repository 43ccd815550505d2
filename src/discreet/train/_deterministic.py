"""Removes randomness from models, so that an example alone can be compared with it in a batch."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor
from torch.overrides import TorchFunctionMode

from discreet.train._arguments import Args, Keywords


class DeterministicMode(TorchFunctionMode):
    """Within, dropout returns its input, and other random functions a constant or seeded draws."""

    def __init__(self) -> None:
        super().__init__()
        self.has_drawn = self._draws = False

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # Any: PyTorch's functions and what they take
        keywords = kwargs or {}
        if func in _DROPOUTS:
            return args[0] if args else keywords["input"]
        if func in _INSTEAD:
            return _INSTEAD[func](args, keywords)
        if func in _DRAWS:
            self.has_drawn = True
            if not self._draws:
                return _DRAWS[func](args, keywords)
        return func(*args, **keywords)

    @contextmanager
    def seeded(self, seed: int) -> Iterator[None]:
        """Within, draws are real but the same in every pass, so that shuffles show."""
        self._draws = True
        torch.manual_seed(seed)
        try:
            yield
        finally:
            self._draws = False


def _attention(args: Args, keywords: Keywords) -> Any:  # Any: what PyTorch's function returns
    keywords = keywords | ({"dropout_p": 0.0} if "dropout_p" in keywords else {})
    args = (*args[:4], 0.0, *args[5:]) if len(args) > 4 else args
    return F.scaled_dot_product_attention(*args, **keywords)


def _leaky(args: Args, keywords: Keywords) -> Any:  # Any: as above
    """`F.rrelu` with the mean slope, as in evaluation."""
    keywords = {**dict(zip(("input", "lower", "upper"), args, strict=False)), **keywords}
    return F.rrelu(**{**keywords, "training": False})


def _gumbel(args: Args, keywords: Keywords) -> Tensor:
    """`F.gumbel_softmax` with constant noise, which changes nothing."""
    names = ("logits", "tau", "hard", "eps", "dim")
    given = {**dict(zip(names, args, strict=False)), **keywords}
    along = given.get("dim", -1)
    soft = torch.softmax(given["logits"] / given.get("tau", 1), along)
    if not given.get("hard", False):
        return soft
    most = torch.zeros_like(soft).scatter_(along, soft.argmax(along, keepdim=True), 1.0)
    return most - soft.detach() + soft


def _like(number: float) -> Callable[[Args, Keywords], Tensor]:
    """A constant in place of functions that draw for each entry of a tensor."""
    return lambda args, keywords: torch.full_like(
        args[0], number, **{key: value for key, value in keywords.items() if key != "generator"}
    )


def _of_size(number: float) -> Callable[[Args, Keywords], Tensor]:
    """A constant in place of functions that draw a tensor of a given size."""

    def made(args: Args, keywords: Keywords) -> Tensor:
        given = args[0] if args and not isinstance(args[0], int) else args
        size: Any = keywords.get("size", given)  # Any: numbers, as PyTorch takes them
        rest = {key: keywords[key] for key in keywords if key not in ("size", "generator")}
        return torch.full(tuple(size), number, **{"dtype": torch.get_default_dtype(), **rest})

    return made


def _around(args: Args, keywords: Keywords) -> Tensor:
    """A constant in units of the standard deviation, in place of the noise of `torch.normal`."""
    given = {**dict(zip(("mean", "std"), args, strict=False)), **keywords}
    shift: Tensor = 0.7 * given.get("std", 1.0) + given["mean"]
    return shift


def _filled(number: float) -> Callable[[Args, Keywords], Tensor]:
    """A constant in place of methods that draw into a tensor."""
    return lambda args, _: args[0].fill_(number)


_DROPOUTS = frozenset(
    {
        *(F.dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout),
        *(F.feature_alpha_dropout, torch.dropout),
    }
)
_INSTEAD: dict[Any, Callable[[Args, Keywords], Any]] = {  # Any: functions, and what they return
    F.scaled_dot_product_attention: _attention,
    F.rrelu: _leaky,
}
_DRAWS: dict[Any, Callable[[Args, Keywords], Tensor]] = {
    torch.randn_like: _like(0.7),
    torch.rand_like: _like(0.5),
    torch.randn: _of_size(0.7),
    torch.rand: _of_size(0.5),
    Tensor.normal_: _filled(0.7),
    Tensor.uniform_: _filled(0.5),
    Tensor.exponential_: _filled(1.0),
    torch.bernoulli: _like(1.0),
    Tensor.bernoulli: _like(1.0),
    Tensor.bernoulli_: _filled(1.0),
    torch.normal: _around,
    F.gumbel_softmax: _gumbel,
}
