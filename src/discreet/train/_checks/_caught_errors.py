"""Refuses losses that catch errors of calls with data, before the charge.

Values of one example decide whether such a call fails. Losses that go on compute something else for
all examples then, so a step must stop, and everybody sees that. Here each call near a handler fails
with the errors that PyTorch raises for bad values, one in each run of the losses, on made-up or
public examples, in the forward and the backward pass. If the losses return all the same, they would
catch the error of an example, too.
"""

import dis
import os
import re
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch
from torch import Tensor, nn

from discreet.errors import Refused
from discreet.train import _flow
from discreet.train._calls._arguments import Args, Keywords, tensors_in
from discreet.train._calls._assertions import only_raises
from discreet.train._calls._graph import by_custom_functions
from discreet.train._calls._values import READS
from discreet.train._checks._bad_values import errors_for_values
from discreet.train._clipped_sums._clipping import Flat
from discreet.train._clipped_sums._engine import captured_sum
from discreet.train._flow import name_of
from discreet.train._forward._capture import Capture
from discreet.train._forward._unfollowed import tells_values
from discreet.train._rules import RULES
from discreet.train._state._attributes import Attributes
from discreet.train._tags._tag import ExampleRows

_SHOWN = frozenset({int, bool, float, str, type(None)})  # others may be long
_INDEXED = frozenset({Tensor.__getitem__, Tensor.__setitem__})  # by a tensor
# Python itself goes on after their errors: a loop over items ends at an IndexError
_IN_PYTHON = ("__getitem__", "__del__")
_Path = tuple[tuple[CodeType, int], ...]  # code and instruction of each frame
_FallibleCall = tuple[_Path, str]  # and what is called


class _NoBackwardOfTheirs(Exception):
    """The forward pass has shown all."""


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
    tried = set[tuple[_Path, type[Exception], str]]()
    for call, errors in first.errors.items():
        for error in errors:
            case = call[0], type(error), re.sub(r"\d+", "0", str(error))
            if case in tried:
                continue
            tried.add(case)
            before, failing = Attributes(model), _Failing(model, batch, examples, call, error)
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


@lru_cache(maxsize=4096)
def _has_handler(code: CodeType, at: int) -> bool:
    """Whether something around this instruction may go on after an error, or raise another one.

    PyTorch's own handlers raise the same again.
    """
    if code.co_filename.startswith(_KNOWN):
        return False
    if code.co_name in _IN_PYTHON:
        return True
    steps = [*dis.get_instructions(code)]
    places = {step.offset: number for number, step in enumerate(steps)}
    return any(
        entry.start <= at < entry.end
        and not only_raises(steps, places, places[entry.target], the_same=True)
        for entry in _table_of(code)
    )


class _Failing(Capture):
    """A `Capture` in which one call fails, or which finds the errors of all that may."""

    def __init__(  # noqa: PLR0917  # made in one place
        self,
        model: nn.Module,
        batch: object,
        examples: int,
        call: _FallibleCall | None = None,
        error: Exception | None = None,
    ) -> None:
        parameters = dict(model.named_parameters())
        super().__init__(model, parameters, examples, RULES, batch=batch, hides_shapes=True)
        self.errors: dict[_FallibleCall, list[Exception]] = {}
        self.failed: str | None = None  # the function that did
        self._call, self._error, self._whole = call, error, model
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
        keywords = kwargs or {}
        if (path := _path_to_handler()) and (of_data := self._values(func, args, keywords)):
            call = path, _signature(func, args, keywords)
            if self._error is None:
                if call not in self.errors:
                    found = errors_for_values(func, args, keywords, of_data, dims_of=self._dims_of)
                    self.errors[call] = [*filter(tells_values, found)]
            elif call == self._call and self.failed is None:
                self.failed = name_of(func)
                raise self._error
        return super().__torch_function__(func, types, args, kwargs)

    def _values(self, func: Any, args: Args, keywords: Keywords) -> list[Tensor]:  # Any: as above
        """The arguments whose values, or sizes, data decide."""
        if func in READS:
            return []
        several = tensors_in((args[1:] if func in _INDEXED else args, keywords))
        if func in _INDEXED and not _flow.has_public_shapes(self.tags, [args[0]]):
            several.append(args[0])
        return [one for one in several if self.has_values(one)]

    def _dims_of(self, tensor: Tensor) -> range:
        """The dimensions of a tensor whose sizes data decide, or may decide."""
        if _flow.has_public_shapes(self.tags, [tensor]):
            return range(0)
        tag = self.tags.of(tensor)
        return range(tag.dim, tag.dim + 1) if isinstance(tag, ExampleRows) else range(tensor.dim())


def _path_to_handler() -> _Path:
    """The instructions of the losses that led to the innermost handler around a call, so that turns
    of one loop count once; empty if there is none."""
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001  has no public name
    found, start = list[tuple[CodeType, int]](), None
    while frame is not None and frame.f_code is not _Failing.run.__code__:
        if start is None and _has_handler(frame.f_code, frame.f_lasti):
            start = len(found)
        found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return () if start is None else tuple(found[start:])


def _signature(func: Any, args: Args, keywords: Keywords) -> str:  # Any: a function of PyTorch's
    """A function, types and numbers of dimensions of its tensors, and its other arguments."""
    return f"{name_of(func)} {_text(args)} {_text(keywords)}"


def _text(value: Any) -> str:  # Any: nested arguments
    if isinstance(value, Tensor):
        return f"{value.dtype}{value.dim()}"
    if isinstance(value, dict):
        return f"{[*value]}{_text([*value.values()])}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_text, value))}]"
    return repr(value) if type(value) in _SHOWN else type(value).__name__
