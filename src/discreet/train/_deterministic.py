"""Removes randomness from models, so that an example alone can be compared with it in a batch."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor, nn
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
            return _kept(args, keywords)
        if func in _INSTEAD:
            return _INSTEAD[func](args, keywords)
        if func in _DRAWS:
            self.has_drawn = True
            if not self._draws or func in _UNEVEN:
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


def _kept(args: Args, keywords: Keywords) -> Tensor:
    """The input of dropout: a copy, unless it is changed in place."""
    given: Tensor = args[0] if args else keywords["input"]
    is_same = keywords.get("inplace", args[3] if len(args) > 3 else False)
    return given if is_same else given.clone()


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


def _least(args: Args, keywords: Keywords) -> Tensor:
    """The least of the numbers that `torch.randint` may draw, for each entry."""
    has_low = len(args) > 2 or "low" in keywords or (len(args) == 2 and "size" in keywords)
    names = ("low", "high", "size") if has_low else ("high", "size")
    given = {**dict(zip(names, args, strict=False)), **keywords}
    rest = {key: given[key] for key in ("dtype", "device") if key in given}
    low: int = given.get("low", 0)
    return torch.full(tuple(given["size"]), low, **{"dtype": torch.int64, **rest})


def _unmoved(args: Args, keywords: Keywords) -> Tensor:
    """0, 1, 2, ... in place of a random order."""
    rest = {key: keywords[key] for key in ("dtype", "device") if key in keywords}
    return torch.arange(args[0] if args else keywords["n"], **rest)


def _rounded(args: Args, keywords: Keywords) -> Tensor:
    """The mean, rounded, in place of a number of that mean."""
    mean: Tensor = args[0] if args else keywords["input"]
    return mean.round()


def _rounded_product(args: Args, keywords: Keywords) -> Tensor:
    """The mean of a binomial number, rounded."""
    given = {**dict(zip(("count", "prob"), args, strict=False)), **keywords}
    mean: Tensor = given["count"] * given["prob"]
    return mean.round()


def _most_likely(args: Args, keywords: Keywords) -> Tensor:
    """The most likely places of each row, in place of some that are drawn."""
    names = ("input", "num_samples", "replacement")
    given = {**dict(zip(names, args, strict=False)), **keywords}
    number, chances = given["num_samples"], given["input"]
    if given.get("replacement"):
        best: Tensor = chances.argmax(-1, keepdim=True)
        return best.expand(*chances.shape[:-1], number).clone()
    places: Tensor = chances.topk(number, -1).indices
    return places


def _itself(args: Args, keywords: Keywords) -> Tensor:
    """The mean of a gamma variable of rate 1."""
    mean: Tensor = args[0] if args else keywords["input"]
    return mean * 1


def _normalised(args: Args, keywords: Keywords) -> Tensor:
    """The mean of a Dirichlet variable."""
    weights: Tensor = args[0] if args else keywords["input"]
    return weights / weights.sum(-1, keepdim=True)


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
_DRAWS: dict[Any, Callable[[Args, Keywords], Any]] = {  # Any: as above
    torch.randn_like: _like(0.7),
    torch.rand_like: _like(0.5),
    torch.randint_like: _like(0),
    torch.randn: _of_size(0.7),
    torch.rand: _of_size(0.5),
    torch.randint: _least,
    torch.randperm: _unmoved,
    **dict.fromkeys((Tensor.normal_, nn.init.normal_, Tensor.log_normal_), _filled(0.7)),
    **dict.fromkeys((Tensor.uniform_, nn.init.uniform_, Tensor.cauchy_), _filled(0.5)),
    **dict.fromkeys((Tensor.exponential_, Tensor.geometric_), _filled(1.0)),
    Tensor.random_: _filled(0),
    torch.bernoulli: _like(1.0),
    Tensor.bernoulli: _like(1.0),
    Tensor.bernoulli_: _filled(1.0),
    torch.normal: _around,
    torch.poisson: _rounded,
    torch.binomial: _rounded_product,
    **dict.fromkeys((torch.multinomial, Tensor.multinomial), _most_likely),
    torch._standard_gamma: _itself,  # noqa: SLF001  torch.distributions calls it
    torch._sample_dirichlet: _normalised,  # noqa: SLF001  as above
    F.gumbel_softmax: _gumbel,
}
# they take as many random words as their arguments need, and so change the words of all others
_UNEVEN = frozenset(
    {torch.poisson, torch.binomial, torch._standard_gamma, torch._sample_dirichlet}  # noqa: SLF001
)
