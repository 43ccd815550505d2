"""Outputs of a mechanism as arrays: one label for each output, and the numbers inside it.

Everything about an output depends on this output alone, and not on the others that were drawn with
it: only then are labels and scores of independent outputs independent. One output may decide the
type of a whole array, so numbers in arrays are compared by their values, as floats; those that no
float holds are read one by one (`_canonical`). A label is a hash, so two different outputs may
share one; an attack then loses a little power, and its bounds stay valid.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.audit._canonical import MOST_NUMBERS, output_of

Labels = npt.NDArray[np.int64]
NumberArray = npt.NDArray[np.float64]
_Real = bool | int | float | np.bool_ | np.integer | np.floating

_REAL = "biuf"  # kinds of arrays of real numbers
_LARGEST = 2**53  # floats hold all integers up to this one
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Outputs:
    """Outputs as arrays: ``labels`` of shape (output,), ``structures`` of the same shape, and
    ``numbers`` of shape (output, place).

    A structure is the label of an output whose numbers are left out. A place without a number
    holds NaN.
    """

    labels: Labels
    structures: Labels
    numbers: NumberArray

    @staticmethod
    def of(drawn: Sequence[Any] | npt.NDArray[Any]) -> "Outputs":  # Any: outputs of any kind
        """From an array whose first axis counts outputs, or from a list of outputs."""
        if not isinstance(drawn, np.ndarray):
            return _of_list(drawn)
        if drawn.dtype.kind in _REAL and drawn.dtype.itemsize <= 8 and not _has_large(drawn):
            return _of_array(drawn.reshape(len(drawn), -1))
        if drawn.dtype.kind in f"{_REAL}O":
            return _of_objects(drawn.astype(object))
        return _of_list(list(drawn))

    @staticmethod
    def joined(parts: "Sequence[Outputs]") -> "Outputs":
        """All outputs of these."""
        width = max((part.numbers.shape[1] for part in parts), default=0)
        return Outputs(
            np.concatenate([part.labels for part in parts]),
            np.concatenate([part.structures for part in parts]),
            np.concatenate([part.wide(width) for part in parts]),
        )

    def column(self, place: int) -> NumberArray:
        """The numbers of this place."""
        is_there = place < self.numbers.shape[1]
        return self.numbers[:, place] if is_there else np.full(len(self), np.nan)

    def wide(self, width: int) -> NumberArray:
        """The numbers of this many places; missing ones are NaN."""
        found = np.full((len(self), width), np.nan)
        there = min(width, self.numbers.shape[1])
        found[:, :there] = self.numbers[:, :there]
        return found

    def __len__(self) -> int:
        return len(self.labels)


def layout(drawn: Sequence[Any] | npt.NDArray[Any]) -> str:
    """The form that outputs have together: outputs in arrays of two forms can't be compared, since
    one of them may decide the form of all."""
    if not isinstance(drawn, np.ndarray):
        return "a list"
    kind = drawn.dtype.kind
    numbers = "integers beyond 2^53" if _has_large(drawn) else "numbers or objects"
    named = {"U": "texts", "S": "bytes", **dict.fromkeys(f"{_REAL}O", numbers)}
    shape = "".join(f" × {length}" for length in drawn.shape[1:])
    return f"an array of {named.get(kind, drawn.dtype.name)}{shape}"


def _of_array(rows: npt.NDArray[Any]) -> Outputs:
    seed = np.uint64(zlib.crc32(f"{rows.shape[1]}".encode()))
    labels = np.full(len(rows), seed, dtype=np.uint64)
    numbers = rows.astype(np.float64)
    numbers[np.isnan(numbers)] = np.nan  # of whatever bits
    for column in numbers.view(np.uint64).T:  # the finalizer of splitmix64 between columns
        labels = (labels ^ column) * _MIX
        labels ^= labels >> np.uint64(29)
    structures = np.full(len(rows), seed, dtype=np.uint64)
    return Outputs(labels.view(np.int64), structures.view(np.int64), numbers[:, :MOST_NUMBERS])


def _has_large(drawn: npt.NDArray[Any]) -> bool:
    """Whether an integer is beyond those that floats hold."""
    if drawn.dtype.kind in "iu":
        return bool(((drawn > _LARGEST) | (drawn < -_LARGEST)).any())
    return drawn.dtype.kind == "O" and any(
        isinstance(one, int | np.integer) and not _is_float(one) for one in drawn.ravel().tolist()
    )


def _is_float(value: object) -> bool:
    """Whether a float holds this value."""
    if isinstance(value, int | np.integer):
        return abs(int(value)) <= _LARGEST
    if isinstance(value, np.longdouble):
        return bool(np.isnan(value) or float(value) == value)
    return isinstance(value, _Real)


def _of_objects(drawn: npt.NDArray[Any]) -> Outputs:
    """Those of floats only are what they would be in an array of floats."""
    rows = drawn.reshape(len(drawn), -1)
    is_real = np.array([all(map(_is_float, row)) for row in rows], dtype=bool)
    floats = rows[is_real].astype(np.float64).reshape(-1, rows.shape[1])
    real, other = _of_array(floats), _of_list(list(drawn[~is_real]))
    width = max(real.numbers.shape[1], other.numbers.shape[1])
    labels, structures = np.empty((2, len(rows)), np.int64)
    numbers = np.empty((len(rows), width))
    for part, at in ((real, is_real), (other, ~is_real)):
        labels[at], structures[at], numbers[at] = part.labels, part.structures, part.wide(width)
    return Outputs(labels, structures, numbers)


def _of_list(drawn: Sequence[Any]) -> Outputs:
    known = [output_of(one) for one in drawn]
    table = np.full((len(known), max((len(one.numbers) for one in known), default=0)), np.nan)
    for row, one in zip(table, known, strict=True):
        row[: len(one.numbers)] = one.numbers
    return Outputs(
        np.array([one.label for one in known], np.int64),
        np.array([one.structure for one in known], np.int64),
        table,
    )
