"""Refuses losses that catch errors of calls with data, before the charge.

Values of one example decide whether such a call fails. Losses that go on compute something else for
all examples then, so a step must stop, and everybody sees that. Here each call that may fail fails
on purpose, once at each place of the code that a handler is around, on made-up or public examples,
in the forward and the backward pass. If the losses return all the same, they would catch the error
of an example, too.
"""

import dis
import os
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor, nn

from discreet.errors import Refused
from discreet.train import _flow
from discreet.train._calls._arguments import Args, Keywords, tensors_in
from discreet.train._calls._assertions import only_raises
from discreet.train._calls._graph import by_custom_functions
from discreet.train._clipped_sums._clipping import Flat
from discreet.train._clipped_sums._engine import captured_sum
from discreet.train._flow import name_of
from discreet.train._forward._capture import Capture
from discreet.train._rules import RULES
from discreet.train._state._attributes import Attributes

# by name: values decide whether these fail, as for a matrix without inverse or an index too large
_NAMES = """
cholesky cholesky_inverse cholesky_solve inverse inv solve solve_triangular eig eigh eigvals
eigvalsh svd svdvals lstsq lu_factor ldl_factor pinv matrix_power qr tensorinv tensorsolve
cross_entropy nll_loss binary_cross_entropy multi_margin_loss multilabel_margin_loss ctc_loss
embedding embedding_bag one_hot gather scatter scatter_ scatter_add scatter_add_ scatter_reduce
index_select index_add index_add_ index_copy index_copy_ index_put index_put_ take take_along_dim
multinomial bernoulli poisson binomial normal bincount repeat_interleave floor_divide __floordiv__
__rfloordiv__ remainder __mod__ fmod histc histogram histogramdd max_unpool1d max_unpool2d
max_unpool3d logdet slogdet geqrf ormqr svd_lowrank pca_lowrank lobpcg symeig norm nuclear_norm
pack_padded_sequence _pack_padded_sequence
"""
_INDEXED = frozenset({Tensor.__getitem__, Tensor.__setitem__})  # by a tensor
_Instructions = tuple[tuple[CodeType, int], ...]  # code and instruction of each frame


def _functions() -> Iterator[Any]:  # Any: functions of PyTorch's
    for space in (torch, Tensor, F, torch.linalg):
        for name in _NAMES.split():
            if hasattr(space, name):
                yield getattr(space, name)
    yield from (one for name, one in vars(torch.linalg).items() if callable(one) and name[0] != "_")


FALLIBLE = frozenset(_functions())


class _OnPurpose(torch.linalg.LinAlgError, IndexError, ValueError, ArithmeticError):  # type: ignore[misc, name-defined]  # PyTorch has no types
    """An error of all the kinds that such calls raise."""


class _NoBackwardOfTheirs(Exception):
    """The forward pass has shown all."""


_ERRORS: tuple[type[Exception], ...] = (
    *(_OnPurpose, torch.linalg.LinAlgError, RuntimeError),  # type: ignore[attr-defined]  # as above
    *(IndexError, ValueError, ZeroDivisionError),
)
# with words of PyTorch's own errors, for losses that look for them
_TEXT = (
    "a call fails on purpose, to see whether its error is caught: the input is not "
    "positive-definite, is singular, the algorithm failed to converge because the input matrix is "
    "ill-conditioned, or "
    "contained non-finite values, nan or inf; index out of range, out of bounds; invalid argument; "
    "probability tensor contains either inf, nan or element < 0; division by zero; shape is "
    "invalid for input of size, size of tensor must match, CUDA error: device-side assert"
)
_KNOWN = tuple(
    f"{each}{os.sep}" for each in (Path(torch.__file__).parent, Path(__file__).parents[2])
)
_table_of: Callable[[CodeType], Any] = vars(dis)["_parse_exception_table"]  # Any: it has no types


def refuse_caught_errors(
    model: nn.Module, losses: Callable[[], Tensor], batch: object, examples: int
) -> None:
    """Refuse losses that return though a call with data failed, also in a backward pass."""
    first = _Failing(model, batch, examples)
    first.run(losses)
    for place in first.places:
        for kind in _errors_at(place):
            before, failing = Attributes(model), _Failing(model, batch, examples, place, kind)
            is_caught = failing.run(losses)
            before.put_back()
            if is_caught and failing.failed is not None:
                raise _refused(failing.failed)


def _refused(name: str) -> Refused:
    mend = (
        "torch.linalg.cholesky_ex in the place of cholesky"
        if "cholesky" in name
        else "by torch.where on the values that the call gets"
    )
    return Refused(
        f"the model or its losses catch an error of {name}: values of one example decide whether "
        "it fails, and with it what is computed for all; compute what is defined for all values, "
        f"such as {mend}"
    )


def _errors_at(place: _Instructions) -> tuple[type[Exception], ...]:
    """The errors to try: none where no handler is near, and all where one may ask which it is."""
    near = [is_with for code, at in place for is_with in _handlers_at(code, at)]
    if not near:
        return ()
    return (_OnPurpose,) if all(near) else _ERRORS


@lru_cache(maxsize=4096)
def _handlers_at(code: CodeType, at: int) -> tuple[bool, ...]:
    """The handlers of this instruction that may go on after an error; whether each is that of a
    ``with`` statement. PyTorch's own raise the error again."""
    if code.co_filename.startswith(_KNOWN):
        return ()
    steps = [*dis.get_instructions(code)]
    places = {step.offset: number for number, step in enumerate(steps)}
    return tuple(
        _is_with(steps, places[entry.target])
        for entry in _table_of(code)
        if entry.start <= at < entry.end and not only_raises(steps, places, places[entry.target])
    )


def _is_with(steps: list[dis.Instruction], start: int) -> bool:
    return "WITH_EXCEPT_START" in [step.opname for step in steps[start : start + 3]]


class _Failing(Capture):
    """A `Capture` in which one call fails, or which notes the places of all that may."""

    def __init__(  # noqa: PLR0917  # made in one place
        self,
        model: nn.Module,
        batch: object,
        examples: int,
        place: _Instructions | None = None,
        kind: type[Exception] = Exception,
    ) -> None:
        parameters = dict(model.named_parameters())
        super().__init__(model, parameters, examples, RULES, batch=batch, hides_shapes=True)
        self.places: dict[_Instructions, None] = {}  # as an ordered set
        self.failed: str | None = None  # the function that did
        self._place, self._kind, self._whole = place, kind, model
        self._has_returned = False  # the losses did, after a call had failed

    def run(self, losses: Callable[[], Tensor]) -> bool:
        """Whether the losses return, or the backward pass does if a call in it failed.

        Only a backward pass with functions of the user's may catch an error.
        """

        def watched() -> Tensor:
            found = losses()
            self._has_returned = self.failed is not None
            if not (isinstance(found, Tensor) and by_custom_functions(found)):
                raise _NoBackwardOfTheirs
            return found

        try:
            captured_sum(self._whole, self, watched, Flat(1.0))
        except Exception:  # noqa: BLE001  it stops, whatever it raises
            return self._has_returned
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
                raise self._kind(_TEXT)
            self.places[place] = None
        return super().__torch_function__(func, types, args, kwargs)

    def _may_fail(self, func: Any, args: Args, keywords: Keywords) -> bool:  # Any: as above
        several = tensors_in((args, tuple(keywords.values())))
        if not _flow.has_public_shapes(self.tags, several):
            return True  # sizes of rows that data picked may not fit
        if func in _INDEXED:
            several = tensors_in((args[1],))
        elif func not in FALLIBLE:
            return False
        return any(map(self.has_values, several))


def _place_of_call() -> _Instructions:
    """The instructions of the losses that led to a call, so that turns of one loop count once."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  has no public name
    found = list[tuple[CodeType, int]]()
    while frame is not None and frame.f_code is not _Failing.run.__code__:
        found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(found[1:])  # without `_Failing` itself
