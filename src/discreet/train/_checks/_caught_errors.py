"""Refuses losses that catch errors of calls with data, before the charge.

Values of one example decide whether such a call fails. Losses that go on compute something else for
all examples then, so a step must stop, and everybody sees that. Here each call that may fail fails
on purpose, once at each place of the code, on made-up or public examples. If the losses return all
the same, they would catch the error of an example, too.
"""

import sys
from collections.abc import Callable, Iterator
from itertools import islice
from types import FrameType
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor, nn

from discreet.errors import Refused
from discreet.train._calls._arguments import Args, Keywords, tensors_in
from discreet.train._calls._eager import eager
from discreet.train._flow import name_of
from discreet.train._forward._capture import Capture
from discreet.train._rules import RULES
from discreet.train._state._attributes import Attributes

_MOST = 64  # places
# by name: values decide whether these fail, as for a matrix without inverse or an index too large
_NAMES = """
cholesky cholesky_inverse cholesky_solve inverse inv solve solve_triangular eig eigh eigvals
eigvalsh svd svdvals lstsq lu_factor ldl_factor pinv matrix_power qr tensorinv tensorsolve
cross_entropy nll_loss binary_cross_entropy multi_margin_loss multilabel_margin_loss ctc_loss
embedding embedding_bag one_hot gather scatter scatter_ scatter_add scatter_add_ scatter_reduce
index_select index_add index_add_ index_copy index_copy_ index_put index_put_ take take_along_dim
multinomial bernoulli poisson binomial bincount repeat_interleave floor_divide __floordiv__
__rfloordiv__ remainder __mod__ fmod histc pack_padded_sequence _pack_padded_sequence
"""
_INDEXED = frozenset({Tensor.__getitem__, Tensor.__setitem__})  # by a tensor
_Instructions = tuple[tuple[object, int], ...]  # code and instruction of each frame


def _functions() -> Iterator[Any]:  # Any: functions of PyTorch's
    for space in (torch, Tensor, F, torch.linalg):
        for name in _NAMES.split():
            if hasattr(space, name):
                yield getattr(space, name)


FALLIBLE = frozenset(_functions())


class _OnPurpose(torch.linalg.LinAlgError, IndexError, ValueError, ArithmeticError):  # type: ignore[misc, name-defined]  # PyTorch has no types
    """An error of all the kinds that such calls raise."""


def refuse_caught_errors(
    model: nn.Module, losses: Callable[[], Tensor], batch: object, examples: int
) -> None:
    """Refuse losses that return though a call with data failed."""
    first = _Failing(model, batch, examples, place=None)
    first.run(losses)
    for place in islice(first.places, _MOST):
        before, failing = Attributes(model), _Failing(model, batch, examples, place=place)
        is_caught = failing.run(losses)
        before.put_back()
        if is_caught and failing.failed is not None:
            raise Refused(
                f"the model or its losses catch an error of {failing.failed}: values of one "
                "example decide whether it fails, and with it what is computed for all; compute "
                "what is defined for all values, such as torch.linalg.cholesky_ex in the place of "
                "cholesky"
            )


class _Failing(Capture):
    """A `Capture` in which one call fails, or which notes the places of all that may."""

    def __init__(
        self, model: nn.Module, batch: object, examples: int, *, place: _Instructions | None
    ) -> None:
        parameters = dict(model.named_parameters())
        super().__init__(model, parameters, examples, RULES, batch=batch, hides_shapes=True)
        self.places: dict[_Instructions, None] = {}  # as an ordered set
        self.failed: str | None = None  # the function that did
        self._place = place

    def run(self, losses: Callable[[], Tensor]) -> bool:
        """Whether the losses return."""
        try:
            with eager(), torch.enable_grad(), self:
                losses()
        except Exception:  # noqa: BLE001  it stops, whatever it raises
            return False
        return True

    def __torch_function__(
        self,
        func: Any,  # Any: a function of PyTorch's, and what it takes
        types: Any,
        args: Args = (),
        kwargs: Keywords | None = None,
    ) -> Any:
        if self._may_fail(func, args, kwargs or {}):
            place = _place_of_call()
            if place == self._place and self.failed is None:
                self.failed = name_of(func)
                raise _OnPurpose("a call fails on purpose, to see whether its error is caught")
            self.places[place] = None
        return super().__torch_function__(func, types, args, kwargs)

    def _may_fail(self, func: Any, args: Args, keywords: Keywords) -> bool:  # Any: as above
        given: object = (args, tuple(keywords.values()))
        if func in _INDEXED:
            given = args[1]
        elif func not in FALLIBLE:
            return False
        return any(map(self.has_values, tensors_in((given,))))


def _place_of_call() -> _Instructions:
    """The instructions of the losses that led to a call, so that turns of one loop count once."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  has no public name
    found = list[tuple[object, int]]()
    while frame is not None and frame.f_code is not _Failing.run.__code__:
        found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(found[1:])  # without `_Failing` itself
