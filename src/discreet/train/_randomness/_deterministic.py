"""Removes randomness from models, so that an example alone can be compared with it in a batch."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor
from torch.overrides import TorchFunctionMode

from discreet.errors import Refused
from discreet.train._calls._arguments import Args, Keywords
from discreet.train._calls._initializers import INITIALIZERS, as_method
from discreet.train._calls._lost_arguments import with_lost
from discreet.train._calls._values import READS
from discreet.train._randomness._held_draws import (
    HELD,
    MIDDLE,
    numbers_states,
    seed_numbers,
    set_numbers,
)

T = TypeVar("T")


class DeterministicMode(TorchFunctionMode):
    """Within, dropout returns its input, and other random functions a quantile or seeded draws.

    Attributes:
        has_drawn: whether a random function was called, of PyTorch, Python or NumPy.
    """

    def __init__(self) -> None:
        super().__init__()
        self.has_drawn = False
        self._level, self._seed = MIDDLE, _NONE
        self._reads = self._varied = 0  # of this pass
        self._after: dict[tuple[float, int], object] = {}  # states after a pass

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # Any: PyTorch's functions and what they take
        if func not in _WATCHED:  # nearly every call, and much of a check's time
            return func(*args, **with_lost(func, kwargs or {}))
        func, args, keywords = as_method(func, args, kwargs or {})
        if func in _DROPOUTS:
            return _copy_unless_in_place(args, keywords)
        if func in _INSTEAD:
            return _INSTEAD[func](args, keywords)
        if func in HELD:
            self.has_drawn = True
            if self._seed == _NONE or func in _UNEVEN:
                return HELD[func](args, keywords, self._share())
        self._reads += func in READS
        return func(*args, **keywords)

    def _share(self) -> float:
        """The level, or another one for each draw if Python seems to wait for one, in a loop."""
        if self._reads < _WAITED:
            return self._level
        self._varied += 1
        return (self._level + self._varied * _GOLDEN) % 1

    @contextmanager
    def held(self, level: float) -> Iterator[None]:
        """Within, draws are the quantiles at this level.

        Numbers of Python and NumPy differ at the middle level, since they may be used by place.
        """
        self._level = level
        try:
            yield
        finally:
            self._level = MIDDLE

    @contextmanager
    def seeded(self, seed: int) -> Iterator[None]:
        """Within, draws are real but the same in every pass, so that shuffles show."""
        self._seed = seed
        torch.manual_seed(seed)
        try:
            yield
        finally:
            self._seed = _NONE

    def repeating(self, losses: Callable[[Any], T]) -> Callable[[Any], T]:  # Any: a microbatch
        """The same losses, for which Python and NumPy draw the same numbers in each pass.

        Losses are refused that draw more of them for more examples.
        """

        def repeated(microbatch: Any) -> T:  # Any: as above
            self._reads = self._varied = 0
            if self._seed == _NONE and self._level != MIDDLE:
                set_numbers(self._level)
            else:
                seed_numbers(max(self._seed, 0))
            before = numbers_states()
            try:
                found = losses(microbatch)
            finally:
                after = numbers_states()
                self.has_drawn |= after != before
            if self._after.setdefault((self._level, self._seed), after) != after:
                raise Refused(
                    "the model or its losses draw numbers of Python or NumPy for each example; "
                    "draw them by torch.rand(len(x)) and its like, or one for all examples"
                )
            return found

        return repeated


def _copy_unless_in_place(args: Args, keywords: Keywords) -> Tensor:
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


_NONE = -1  # no seed
_WAITED, _GOLDEN = 100, 0.618034  # values that Python read; shares that fall everywhere
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
# they take as many random words as their arguments need, and so change the words of all others
_UNEVEN = frozenset(
    {torch.poisson, torch.binomial, torch._standard_gamma, torch._sample_dirichlet}  # noqa: SLF001
)
_WATCHED = frozenset({*_DROPOUTS, *_INSTEAD, *HELD, *READS, *INITIALIZERS})
